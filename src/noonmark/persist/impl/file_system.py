"""The one door to the local file system.

`FileBlob` changes the disk through these calls and no others, so that a double can count them, fail
them, or record them and replay any prefix of them as a disk after power loss would show it. What
such a replay may assume, and all that the code above it assumes:

- `write` puts bytes into a file that no other call writes to; until `fsync` of that file returns,
  any part of them may be missing after power loss, also the file's length;
- `make_folder`, `create`, `link`, `rename` and `unlink` change names in a folder at once for every
  process; until `fsync_folder` of that folder returns, each change may or may not be there after
  power loss, in any combination;
- `rename` replaces and `link` refuses an existing name, each in one step.

Files and folders are named by descriptors: small integers that `create`, `open_read` and
`open_folder` return and `close` ends. Errors are `OSError`, untouched.
"""

from __future__ import annotations

import fcntl
import os
import stat
from typing import NamedTuple

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Shape(NamedTuple):
    """What a file is: its length, and how many names it has."""

    bytes: int
    links: int


class Name(NamedTuple):
    """One name in a folder."""

    name: str
    is_folder: bool


class FileSystem:
    """The real file system (POSIX)."""

    def make_folder(self, path: str) -> None:
        """Make one folder; `FileExistsError` when the name is taken."""
        os.mkdir(path, 0o777)

    def open_folder(self, path: str) -> int:
        """A descriptor by which names in the folder are changed."""
        return os.open(path, _FOLDER)

    def create(self, folder: int, name: str) -> int:
        """A new empty file, open for writing; `FileExistsError` when the name is taken."""
        return os.open(name, _CREATE, 0o666, dir_fd=folder)

    def write(self, file: int, value: bytes) -> None:
        """Append all of `value`."""
        written = os.write(file, value)
        while written < len(value):
            written += os.write(file, memoryview(value)[written:])

    def fsync(self, file: int) -> None:
        """Make the contents of the file durable."""
        os.fsync(file)

    def fsync_folder(self, folder: int) -> None:
        """Make every change of names in the folder durable."""
        os.fsync(folder)

    def close(self, descriptor: int) -> None:
        """End a descriptor of a file or folder."""
        os.close(descriptor)

    def link(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        """Give the file a second name; `FileExistsError` when that name is taken."""
        os.link(name, to_name, src_dir_fd=folder, dst_dir_fd=to_folder)

    def rename(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        """Move the file to another name, in place of what had it."""
        os.rename(name, to_name, src_dir_fd=folder, dst_dir_fd=to_folder)

    def unlink(self, folder: int, name: str) -> None:
        """Remove a name; the file goes with its last name."""
        os.unlink(name, dir_fd=folder)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    def lock(self, folder: int) -> bool:
        """Take the folder's lock unless another descriptor has it; ends with the descriptor."""
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def same_folder(self, folder: int, path: str) -> bool:
        """Whether `path` still names the folder that the descriptor was opened on."""
        try:
            return os.path.samestat(os.fstat(folder), os.stat(path))
        except FileNotFoundError:
            return False

    def open_read(self, path: str) -> int:
        """A descriptor of an existing file, to read from."""
        return os.open(path, _READ)

    def shape(self, file: int) -> Shape:
        """Length and number of names of an open file; `IsADirectoryError` for a folder."""
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(file)
        return Shape(status.st_size, status.st_nlink)

    def shape_of(self, folder: int, name: str) -> Shape:
        """The same of a file by name."""
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        return Shape(status.st_size, status.st_nlink)

    def read(self, file: int, start: int, length: int) -> bytes:
        """Bytes ``[start, start + length)``, cut at the end of the file."""
        value = os.pread(file, length, start)
        pieces = [value]
        while value and (start := start + len(value)) and (length := length - len(value)) > 0:
            value = os.pread(file, length, start)
            pieces.append(value)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def names(self, folder: int) -> list[Name]:
        """The names in a folder, in no order.

        A folder of a few hundred names is read in one call to the kernel, under the folder's lock:
        then the answer is one instant.
        """
        with os.scandir(folder) as entries:
            return [Name(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]

    def is_folder(self, path: str) -> bool:
        """Whether a folder of that path is there."""
        return os.path.isdir(path)
