"""The folders of one root, opened once and known to be durable.

Law: a folder that `open` returned stays there after power loss. A folder's name is durable when the
folder above it was fsynced after the name was made, so the first `open` of a folder fsyncs every
folder above it, up to the root of the file system: also those that another process made, because
that process may not have come to its own fsync.

A folder above the location that we may not open was not made by a process of ours that could, so
it is left alone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import RLock

from noonmark.persist.impl.file_system import FileSystem


class Folders:
    """Open folders by their path below the root; the empty path is the root itself."""

    def __init__(self, system: FileSystem, root: str) -> None:
        self._system = system
        self._root = root
        self._lock = RLock()
        self._open: dict[str, int] = {}

    def open(self, path: str) -> int:
        """The folder, made if it is missing, and durable."""
        folder = self._open.get(path)
        if folder is not None:
            return folder
        with self._lock:
            if path not in self._open:
                self._open[path] = self._make(path)
            return self._open[path]

    def settle(self, key: str) -> None:
        """Make the name of an existing object durable."""
        self._system.fsync_folder(self.open(key.rpartition("/")[0]))

    def close(self) -> None:
        """Close every folder."""
        with self._lock:
            while self._open:
                self._system.close(self._open.popitem()[1])

    def _make(self, path: str) -> int:
        if not path:
            return self._make_root()
        above = self.open(path.rpartition("/")[0])
        folder = self._make_one(f"{self._root}/{path}")
        self._system.fsync_folder(above)
        return folder

    def _make_one(self, path: str) -> int:
        with suppress(FileExistsError):  # made before, by us or by another process
            self._system.make_folder(path)
        return self._system.open_folder(path)

    def _make_root(self) -> int:
        missing = []
        path = self._root
        while path != "/" and not self._system.is_folder(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            self._system.close(self._make_one(folder))
        root = self._system.open_folder(self._root)
        path = self._root
        while path != "/":
            path = os.path.dirname(path)
            self._fsync_above(path)
        return root

    def _fsync_above(self, path: str) -> None:
        try:
            folder = self._system.open_folder(path)
        except PermissionError:
            return
        try:
            self._system.fsync_folder(folder)
        finally:
            self._system.close(folder)
