"""A disk in memory that can lose power: a double of `noonmark.persist.impl.file_system.FileSystem`.

It keeps what the door promises and no more. Of a file it knows the bytes written and the bytes that
were fsynced; of a folder the names, and the changes of names since its last fsync. `Disk(calls)`
loses power at the call of that number: the call raises `PowerLoss`, as does every later one.
`after` gives a disk as the next start may find it: each change of a name that was not fsynced is
there or not, each file that was not fsynced is empty, torn, zeroed or whole.

`on_link` is called between a link and whatever follows, for a reader that looks at that moment.
`ignores` names calls that do nothing, as planted bugs.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from noonmark.persist.impl.file_system import FileSystem, Name, Shape


class PowerLoss(BaseException):
    """Nothing more happens on this disk. Not an `Exception`: nobody may handle it."""


@dataclass
class _File:
    value: bytes = b""
    durable: bytes = b""
    links: int = 1


@dataclass
class _Folder:
    names: dict[str, _File | _Folder] = field(default_factory=dict)
    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    pending: list[tuple[str, _File | _Folder | None]] = field(default_factory=list)
    locked_by: int | None = None

    def change(self, name: str, what: _File | _Folder | None) -> None:
        if what is None:
            del self.names[name]
        else:
            self.names[name] = what
        self.pending.append((name, what))


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class Disk(FileSystem):
    """See the module. Paths are absolute; the root is there."""

    def __init__(self, calls: int | None = None, ignores: frozenset[str] = frozenset()) -> None:
        self.calls = 0
        self.on_link: Callable[[], None] | None = None
        self._calls_max = calls
        self._ignores = ignores
        self._root = _Folder()
        self._open: dict[int, _File | _Folder] = {}
        self._next = 3

    def after(self, random: Random, whole: bool = False) -> Disk:
        """What the next start may find; with `whole`, everything that was ever done."""
        disk = Disk()
        disk._root = _recover(self._root, random, whole)
        return disk

    # Changes: each is one call.

    def make_folder(self, path: str) -> None:
        folder, name = self._split(path)
        if self._counts("make_folder"):
            if name in folder.names:
                raise _error(errno.EEXIST)
            folder.change(name, _Folder())

    def create(self, folder: int, name: str) -> int:
        self._counts("create")
        file = _File()
        self._folder(folder).change(name, file)
        return self._opened(file)

    def write(self, file: int, value: bytes) -> None:
        self._counts("write")
        self._file(file).value += value

    def fsync(self, file: int) -> None:
        if self._counts("fsync"):
            self._file(file).durable = self._file(file).value

    def fsync_folder(self, folder: int) -> None:
        if self._counts("fsync_folder"):
            found = self._folder(folder)
            found.durable = dict(found.names)
            found.pending.clear()

    def link(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        self._counts("link")
        target = self._folder(to_folder)
        if to_name in target.names:
            raise _error(errno.EEXIST)
        file = self._folder(folder).names[name]
        assert isinstance(file, _File)
        file.links += 1
        target.change(to_name, file)
        if self.on_link is not None:
            self.on_link()

    def rename(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        self._counts("rename")
        file = self._folder(folder).names[name]
        self._folder(folder).change(name, None)
        self._folder(to_folder).change(to_name, file)

    def unlink(self, folder: int, name: str) -> None:
        self._counts("unlink")
        file = self._folder(folder).names.get(name)
        if file is None:
            raise _error(errno.ENOENT)
        if isinstance(file, _Folder):
            raise _error(errno.EISDIR)
        file.links -= 1
        self._folder(folder).change(name, None)

    def remove_folder(self, path: str) -> None:
        self._counts("remove_folder")
        folder, name = self._split(path)
        found = folder.names[name]
        assert isinstance(found, _Folder)
        if found.names:
            raise _error(errno.ENOTEMPTY)
        folder.change(name, None)

    # The rest changes nothing that lasts.

    def open_folder(self, path: str) -> int:
        found = self._find(path)
        if isinstance(found, _File):
            raise _error(errno.ENOTDIR)
        return self._opened(found)

    def open_read(self, path: str) -> int:
        return self._opened(self._find(path))

    def close(self, descriptor: int) -> None:
        found = self._open.pop(descriptor)
        if isinstance(found, _Folder) and found.locked_by == descriptor:
            found.locked_by = None

    def lock(self, folder: int) -> bool:
        found = self._folder(folder)
        if found.locked_by is None:
            found.locked_by = folder
        return found.locked_by == folder

    def same_folder(self, folder: int, path: str) -> bool:
        try:
            return self._find(path) is self._folder(folder)
        except FileNotFoundError:
            return False

    def shape(self, file: int) -> Shape:
        found = self._open[file]
        if isinstance(found, _Folder):
            raise _error(errno.EISDIR)
        return self._shape(found)

    def shape_of(self, folder: int, name: str) -> Shape:
        found = self._folder(folder).names.get(name)
        if found is None:
            raise _error(errno.ENOENT)
        assert isinstance(found, _File)
        return self._shape(found)

    def _shape(self, file: _File) -> Shape:
        return Shape(len(file.value), 1 if "links" in self._ignores else file.links)

    def read(self, file: int, start: int, length: int) -> bytes:
        return self._file(file).value[start : start + length]

    def names(self, folder: int) -> list[Name]:
        found = self._folder(folder).names
        return [Name(name, isinstance(what, _Folder)) for name, what in found.items()]

    def is_folder(self, path: str) -> bool:
        try:
            return isinstance(self._find(path), _Folder)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _counts(self, method: str) -> bool:
        """One more call; False when this disk only pretends to do it."""
        if self._calls_max is not None and self.calls >= self._calls_max:
            raise PowerLoss
        self.calls += 1
        return method not in self._ignores

    def _find(self, path: str) -> _File | _Folder:
        found: _File | _Folder = self._root
        for name in filter(None, path.split("/")):
            if isinstance(found, _File):
                raise _error(errno.ENOTDIR)
            if name not in found.names:
                raise _error(errno.ENOENT)
            found = found.names[name]
        return found

    def _split(self, path: str) -> tuple[_Folder, str]:
        above, _, name = path.rpartition("/")
        folder = self._find(above)
        assert isinstance(folder, _Folder)
        return folder, name

    def _opened(self, what: _File | _Folder) -> int:
        self._next += 1
        self._open[self._next] = what
        return self._next

    def _folder(self, descriptor: int) -> _Folder:
        found = self._open[descriptor]
        assert isinstance(found, _Folder)
        return found

    def _file(self, descriptor: int) -> _File:
        found = self._open[descriptor]
        assert isinstance(found, _File)
        return found


def _recover(folder: _Folder, random: Random, whole: bool) -> _Folder:
    files: dict[int, _File] = {}

    def recovered(what: _File | _Folder) -> _File | _Folder:
        if isinstance(what, _Folder):
            return recovered_folder(what)
        if id(what) not in files:
            value = what.value if whole else _torn(what, random)
            files[id(what)] = _File(value, value, 0)
        files[id(what)].links += 1
        return files[id(what)]

    def recovered_folder(old: _Folder) -> _Folder:
        names = dict(old.durable)
        for name, what in old.pending:
            if whole or random.random() < 0.5:
                names.pop(name, None)
                if what is not None:
                    names[name] = what
        new = {name: recovered(what) for name, what in names.items()}
        return _Folder(dict(new), new)

    return recovered_folder(folder)


def _torn(file: _File, random: Random) -> bytes:
    if file.durable == file.value:
        return file.value
    cut = random.randrange(len(file.value) + 1)
    return random.choice([b"", file.value[:cut], bytes(len(file.value)), file.value])
