"""What a disk may show after power loss.

`Recorder` is the real file system that writes down every change it makes, in order. `Disk` replays
what was written down, as far as one likes, and draws states that power loss there could leave:

- bytes of a file that were not fsynced may be missing, torn, or zeros;
- names that were changed since the last fsync of their folder may or may not have changed. Two
  adversaries: ``strict`` loses each change by itself, in any combination, as the contract of
  `noonmark.persist.impl.file_system` allows; ``ordered`` keeps a prefix of all changes since the
  last fsync of anything, as a journaling file system does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from noonmark.persist.impl.file_system import FileSystem

T = TypeVar("T")


class Change(NamedTuple):
    """One recorded call, with folders as paths and files as numbers; or a mark of the test."""

    what: str
    arguments: tuple[Any, ...]


class Recorder(FileSystem):
    """The file system below `base`, recorded. Thread-safe: the record's order is the disk's.

    Calls that it `forgets` are done and not recorded: as if the product had left them out.
    """

    def __init__(self, base: str, forgets: frozenset[str] = frozenset()) -> None:
        self._base = base
        self._forgets = forgets
        self._lock = RLock()
        self._names: dict[int, Any] = {}
        self._files = 0
        self.changes: list[Change] = []

    def mark(self, line: str) -> None:
        """Write down that the test saw something, at this point."""
        with self._lock:
            self.changes.append(Change("mark", (line,)))

    def _inside(self, path: str) -> str | None:
        below = os.path.relpath(path, self._base)
        return None if below.startswith("..") else below.removeprefix(".").removeprefix("/")

    def _do(self, what: str, arguments: tuple[Any, ...], call: Callable[[], T]) -> T:
        with self._lock:
            result = call()
            if None not in arguments and what not in self._forgets:
                self.changes.append(Change(what, arguments))
            return result

    def make_folder(self, path: str) -> None:
        self._do(
            "make_folder", (self._inside(path),), lambda: super(Recorder, self).make_folder(path)
        )

    def open_folder(self, path: str) -> int:
        with self._lock:
            folder = super().open_folder(path)
            self._names[folder] = self._inside(path)
            return folder

    def create(self, folder: int, name: str) -> int:
        with self._lock:
            file = super().create(folder, name)
            self._files += 1
            self._names[file] = self._files
            self.changes.append(Change("create", (self._names[folder], name, self._files)))
            return file

    def write(self, file: int, value: bytes) -> None:
        self._do(
            "write",
            (self._names[file], bytes(value)),
            lambda: super(Recorder, self).write(file, value),
        )

    def fsync(self, file: int) -> None:
        self._do("fsync", (self._names[file],), lambda: super(Recorder, self).fsync(file))

    def fsync_folder(self, folder: int) -> None:
        self._do(
            "fsync_folder",
            (self._names[folder],),
            lambda: super(Recorder, self).fsync_folder(folder),
        )

    def close(self, descriptor: int) -> None:
        with self._lock:
            self._names.pop(descriptor, None)
            super().close(descriptor)

    def link(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        places = (self._names[folder], name, self._names[to_folder], to_name)
        self._do(
            "link", places, lambda: super(Recorder, self).link(folder, name, to_folder, to_name)
        )

    def rename(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        places = (self._names[folder], name, self._names[to_folder], to_name)
        self._do(
            "rename", places, lambda: super(Recorder, self).rename(folder, name, to_folder, to_name)
        )

    def unlink(self, folder: int, name: str) -> None:
        self._do(
            "unlink",
            (self._names[folder], name),
            lambda: super(Recorder, self).unlink(folder, name),
        )

    def remove_folder(self, path: str) -> None:
        self._do(
            "remove_folder",
            (self._inside(path),),
            lambda: super(Recorder, self).remove_folder(path),
        )


class Entry(NamedTuple):
    """What a name stands for: a file by number, or a folder by path."""

    file: int | None
    folder: str | None


Tree = dict[str, dict[str, Entry]]


class NameChange(NamedTuple):
    """A name that came to stand for something, or (None) for nothing."""

    folder: str
    name: str
    entry: Entry | None


@dataclass
class Disk:
    """Replays changes under one adversary."""

    ordered: bool
    durable: Tree = field(default_factory=lambda: {"": {}})
    now: Tree = field(default_factory=lambda: {"": {}})
    #: Changes of names that may be lost; those of one inner tuple go together.
    pending: list[tuple[NameChange, ...]] = field(default_factory=list)
    synced: dict[int, bytes] = field(default_factory=dict)
    unsynced: dict[int, bytes] = field(default_factory=dict)

    def load(self, base: Path) -> None:
        """Begin with what is in a folder, all of it durable. Files get negative numbers."""
        numbers: dict[int, int] = {}
        for path, folders, files in os.walk(base):
            here = os.path.relpath(path, base).removeprefix(".")
            entries = {name: Entry(None, _join(here, name)) for name in folders}
            for name in files:
                inode = os.stat(f"{path}/{name}").st_ino
                number = numbers.setdefault(inode, -1 - len(numbers))
                self.synced[number] = Path(path, name).read_bytes()
                entries[name] = Entry(number, None)
            self.durable[here] = dict(entries)
            self.now[here] = dict(entries)

    def replay(self, change: Change) -> None:
        handler = getattr(self, f"_{change.what}", None)
        if handler is not None:
            handler(*change.arguments)

    def _change(self, *changes: NameChange) -> None:
        _apply(self.now, changes)
        self.pending += [changes] if self.ordered else [(change,) for change in changes]

    def _make_folder(self, path: str) -> None:
        self.durable.setdefault(path, {})
        self.now.setdefault(path, {})
        above, _, name = path.rpartition("/")
        self._change(NameChange(above, name, Entry(None, path)))

    def _remove_folder(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        self._change(NameChange(above, name, None))

    def _create(self, folder: str, name: str, file: int) -> None:
        self.synced[file] = b""
        self.unsynced[file] = b""
        self._change(NameChange(folder, name, Entry(file, None)))

    def _write(self, file: int, value: bytes) -> None:
        self.unsynced[file] += value

    def _fsync(self, file: int) -> None:
        self.synced[file] += self.unsynced.pop(file, b"")
        if self.ordered:
            self._flush(lambda _: True)

    def _fsync_folder(self, folder: str) -> None:
        self._flush(lambda change: self.ordered or change[0].folder == folder)

    def _flush(self, reached: Callable[[tuple[NameChange, ...]], bool]) -> None:
        for change in self.pending:
            if reached(change):
                _apply(self.durable, change)
        self.pending = [change for change in self.pending if not reached(change)]

    def _link(self, folder: str, name: str, to_folder: str, to_name: str) -> None:
        self._change(NameChange(to_folder, to_name, self.now[folder][name]))

    def _rename(self, folder: str, name: str, to_folder: str, to_name: str) -> None:
        entry = self.now[folder][name]
        self._change(NameChange(to_folder, to_name, entry), NameChange(folder, name, None))

    def _unlink(self, folder: str, name: str) -> None:
        self._change(NameChange(folder, name, None))

    def lose_power(self, random: Random, target: Path) -> dict[str, int]:
        """Write one state that may be found afterwards into `target`; what was lost, by kind."""
        faults: dict[str, int] = {}
        tree = {path: dict(entries) for path, entries in self.durable.items()}
        chance = random.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        cut = random.randrange(len(self.pending) + 1)
        for place, change in enumerate(self.pending):
            if place < cut if self.ordered else random.random() < chance:
                _apply(tree, change)
            else:
                faults["name lost"] = faults.get("name lost", 0) + 1
        written: dict[int, Path] = {}

        def write_out(folder: str, target: Path) -> None:
            target.mkdir(exist_ok=True)
            for name, entry in tree[folder].items():
                place = target / name
                if entry.folder is not None:
                    write_out(entry.folder, place)
                elif entry.file in written:
                    os.link(written[entry.file], place)
                else:
                    assert entry.file is not None
                    written[entry.file] = place
                    torn = self._torn(entry.file, random, faults)
                    place.write_bytes(self.synced[entry.file] + torn)

        write_out("", target)
        return faults

    def _torn(self, file: int, random: Random, faults: dict[str, int]) -> bytes:
        value = self.unsynced.get(file, b"")
        if not value:
            return b""
        kind = random.choice(("data dropped", "data torn", "data zeros", "data kept"))
        faults[kind] = faults.get(kind, 0) + 1
        cut = random.randrange(len(value))
        return {
            "data dropped": b"",
            "data torn": value[:cut],
            "data zeros": value[:cut] + bytes(len(value) - cut),
            "data kept": value,
        }[kind]


def _apply(tree: Tree, changes: tuple[NameChange, ...]) -> None:
    for folder, name, entry in changes:
        if entry is None:
            tree[folder].pop(name, None)
        else:
            tree[folder][name] = entry


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
