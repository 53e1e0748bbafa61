"""The lock of one machine, for locations on local disk: held by a living process or by nobody.

The write lock is in the log, where any process on any machine can see it. On local disk there is
a better witness of whether its holder still lives: an advisory lock on a file, which the
operating system takes back when the process ends, however it ends. So after a kill -9 the next
writer starts at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from noonmark.errors import StorageUnfit

_SOMEBODY = "another process"
_NAME_BYTES = 255


class HostLock:
    """An exclusive lock on ``writer.lock`` in a location's folder, which says who has it."""

    def __init__(self, folder: str, owner: str) -> None:
        self.folder = folder
        self._path = Path(folder) / "writer.lock"
        self._owner = owner
        self._file: int | None = None

    def acquire(self) -> bool:
        """Take the lock if nobody has it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageUnfit(
                f'cannot write to "{self._path.parent}"',
                detail=str(error),
                hint="Choose a folder that this user may write to, or open it read-only.",
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        with contextlib.suppress(OSError):  # a full disk: the name is for people, the lock is held
            # One write of one length: nobody ever reads a part of a name.
            os.pwrite(file, self._owner.encode()[:_NAME_BYTES].ljust(_NAME_BYTES) + b"\n", 0)
        return True

    def is_free(self) -> bool:
        """Whether nobody has it; it is not taken."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return True  # nobody ever had it, or it is not ours to have, which `acquire` says
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(file)
        return True

    def holder(self) -> str:
        """Who took the lock last, as far as it could say."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return self._path.read_text().strip() or _SOMEBODY
        return _SOMEBODY

    def release(self) -> None:
        """Let the lock go."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
