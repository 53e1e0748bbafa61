"""Scratch: where a file is written before it gets its key.

Each handle that writes has one folder ``~tmp/<id>`` under the root (``~`` occurs in no key, so a
scratch file is never an object), and keeps it locked while the handle lives. The kernel lets go of
the lock when the process ends in whatever way, so a scratch folder that can be locked belongs to
nobody: it is swept by the next handle that writes.

Law (two names): an object that has a scratch name beside its key may not be durable yet; an object
whose key is its only name is durable. The writer removes the scratch name only after the fsync of
the object's folder; a sweep does the same for the dead, and finds that folder in the scratch name,
which spells the key with ``@`` for ``/``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import suppress

from noonmark.clock import Clock
from noonmark.persist.impl.file_system import FileSystem

SCRATCH = "~tmp"


class Scratch:
    """One handle's scratch folder."""

    def __init__(self, system: FileSystem, root: str, clock: Clock) -> None:
        """Open a folder of our own below `root`, which exists."""
        self._system = system
        self._base = f"{root}/{SCRATCH}"
        self._numbers = itertools.count()
        with suppress(FileExistsError):  # made by an earlier handle
            system.make_folder(self._base)
        self.path, self.folder = self._open(clock)

    def _open(self, clock: Clock) -> tuple[str, int]:
        while True:
            path = f"{self._base}/{clock.fresh_id()}"
            self._system.make_folder(path)
            folder = self._lock(path)
            if folder is not None:
                return path, folder

    def _lock(self, path: str) -> int | None:
        """The folder, open and locked by us, if it is there and nobody else has it."""
        try:
            folder = self._system.open_folder(path)
        except FileNotFoundError:
            return None  # swept between our look and our lock
        if self._system.lock(folder) and self._system.same_folder(folder, path):
            return folder
        self._system.close(folder)
        return None

    def name(self, key: str) -> str:
        """A fresh scratch name for the object; unique also after a fork."""
        return f"{os.getpid()}-{next(self._numbers)}@{key.replace('/', '@')}"

    def sweep(self, settle: Callable[[str], None]) -> None:
        """Remove what dead handles left; `settle(key)` makes the folder of `key` durable first."""
        base = self._system.open_folder(self._base)
        try:
            entries = self._system.names(base)
        finally:
            self._system.close(base)
        for entry in entries:
            path = f"{self._base}/{entry.name}"
            folder = self._lock(path) if entry.is_folder and path != self.path else None
            if folder is None:
                continue
            try:
                self._empty(folder, settle)
                self._system.remove_folder(path)
            finally:
                self._system.close(folder)

    def _empty(self, folder: int, settle: Callable[[str], None]) -> None:
        for entry in self._system.names(folder):
            if self._system.shape_of(folder, entry.name).links > 1:
                settle(entry.name.partition("@")[2].replace("@", "/"))
            self._system.unlink(folder, entry.name)

    def close(self) -> None:
        """Let go of the lock and, when nothing is left in it, of the folder."""
        with suppress(OSError):  # something is in it: the next handle that writes sweeps it
            self._system.remove_folder(self.path)
        self._system.close(self.folder)
