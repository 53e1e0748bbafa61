"""What was derived from parts, kept for the next run: a server that starts again fills no cache.

The cache of a run goes with it (`trace.cache`). A location on the disk of this machine has a folder
beside its objects (``~cache``: ``~`` occurs in no key) in which the same files have a second name,
which says their checksum. A later run takes a file from there and names it in a cache of its own.

Law: `take` gives a file whose bytes are those that `keep` was given, by the same code over the same
parts: every byte is compared with the checksum first. What is torn, flipped or of another version
is as if it were not there, and is made again. Nothing is ever synced: what a crash takes is made
again too.

It is bounded: `tidy` lets go of what is derived from parts that are gone, and beyond a size of
what was not used for longest.

Where it runs: executors.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import xxhash

from noonmark.persist import task
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.open import open_blob
from noonmark.persist.part.part import Part
from noonmark.version import __version__

FOLDER = "~cache"
_PARTS = "parts"
_PIECE_BYTES = 8 << 20


class KeptFiles:
    """The files that are derived from some parts of a location."""

    def __init__(self, root: Path, parts: Sequence[Part]) -> None:
        digest = hashlib.blake2b(_meaning(), digest_size=12)
        for part in parts:
            digest.update(f" {part.key} {part.checksum}".encode())
        self.folder = root / digest.hexdigest()
        self._parts = tuple(part.key for part in parts)

    def take(self, path: Path) -> bool:
        """Give `path` the bytes that were kept under its name; False when there are none."""
        with suppress(OSError):  # another process lets go of it, or nothing may be changed here
            for held in self.folder.glob(f"{path.name}.*"):
                if held.suffix == f".{_checksum(held)}":
                    _named(held, path)
                    return True
                held.unlink(missing_ok=True)
        return False

    def keep(self, path: Path) -> None:
        """Keep the bytes of a file; a disk that is full keeps nothing."""
        with suppress(OSError):
            if not self.folder.exists():
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                (self.folder / _PARTS).write_text("\n".join(self._parts))
            held = self.folder / f"{path.name}.{_checksum(path)}"
            if not held.exists():
                _named(path, held)

    def touch(self) -> None:
        """Say that it was used."""
        with suppress(FileNotFoundError):
            os.utime(self.folder)


def kept_files(place: task.TaskLocation, parts: Sequence[Part]) -> KeptFiles | None:
    """What is kept of parts; None for a location that is not on a disk of this machine."""
    root = root_of(place.url)
    return None if root is None else KeptFiles(root / FOLDER, parts)


@cache
def root_of(url: str) -> Path | None:
    """The folder of a location."""
    blob = open_blob(url)
    return Path(blob.root) if isinstance(blob, FileBlob) else None


def tidy(url: str, bytes_max: int) -> None:
    """Let go of what nobody can ask for, and of more until the rest fits."""
    root = root_of(url)
    if root is None or not (root / FOLDER).exists():
        return
    with suppress(OSError):  # another process does the same now
        for folder in (root / FOLDER).iterdir():
            if not _is_wanted(root, folder):
                shutil.rmtree(folder, ignore_errors=True)
        make_room(root / FOLDER, bytes_max)


def make_room(root: Path, bytes_max: int) -> None:
    """Let folders go, those not used for longest first, until the rest fits.

    A process that has one of them mapped keeps it until it lets go: the bytes are freed then.
    """
    sizes = {
        folder: sum(file.stat().st_size for file in folder.glob("*") if file.is_file())
        for folder in root.iterdir()
        if folder.is_dir()
    }
    total = sum(sizes.values())
    for folder in sorted(sizes, key=lambda each: each.stat().st_mtime):
        if total <= bytes_max:
            return
        shutil.rmtree(folder, ignore_errors=True)
        total -= sizes[folder]


def _is_wanted(root: Path, folder: Path) -> bool:
    """Whether all of its parts are still there."""
    try:
        parts = (folder / _PARTS).read_text().splitlines()
    except (OSError, ValueError):
        return False
    return all((root / key).exists() for key in parts)


def _named(source: Path, target: Path) -> None:
    """Give a file a second name, or where disks differ a second copy."""
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except OSError:
        fresh = target.with_name(f"~{target.name}.{os.getpid()}")
        shutil.copyfile(source, fresh)
        fresh.rename(target)


def _checksum(path: Path) -> str:
    digest = xxhash.xxh3_64()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


@cache
def _meaning() -> bytes:
    """Of which code the files are: an index of another version may have other hashes."""
    root = Path(__file__).parents[2]
    facts = [
        (str(path.relative_to(root)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*.py"))
    ]
    return repr((__version__, facts)).encode()
