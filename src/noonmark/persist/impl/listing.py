"""Listing the objects of a folder tree, by prefix.

Law: the answer holds every object that was there from the beginning of the call to its end, and
only objects that were there at some moment of it. One folder of few names is one instant (see
`FileSystem.names`). What lies in a folder of ``~`` is no object: scratch, and what is derived.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from noonmark.persist.impl.file_system import FileSystem, Name
from noonmark.persist.location import BlobEntry


def walk(system: FileSystem, root: str, prefix: str, most: int | None) -> list[BlobEntry] | None:
    """Objects whose key starts with `prefix`; None when that means to look at `most` names."""
    entries: list[BlobEntry] = []
    pending = [prefix.rpartition("/")[0]]
    seen = 0
    while pending:
        path = pending.pop()
        try:
            folder = system.open_folder(_join(root, path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            names = system.names(folder)
            seen += len(names)
            if most is not None and seen >= most:
                return None
            pending += _folders(path, prefix, names)
            entries += _objects(system, folder, path, prefix, names)
        finally:
            system.close(folder)
    return entries


def _folders(path: str, prefix: str, names: list[Name]) -> Iterator[str]:
    for name, is_folder in names:
        folder = _join(path, name)
        if is_folder and not folder.startswith("~") and f"{folder}/".startswith(prefix):
            yield folder


def _objects(
    system: FileSystem, folder: int, path: str, prefix: str, names: list[Name]
) -> Iterator[BlobEntry]:
    for name, is_folder in names:
        key = _join(path, name)
        if not is_folder and key.startswith(prefix):
            with suppress(FileNotFoundError):  # deleted since it was named
                yield BlobEntry(key, system.shape_of(folder, name).bytes)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name
