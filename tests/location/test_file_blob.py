"""What is particular to objects in files: scratch, sweeps, seen is durable, errors, speed."""

from __future__ import annotations

import asyncio
import errno
import multiprocessing
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import Determinate, Indeterminate, StorageError, StorageUnfit
from noonmark.persist.impl.file_system import FileSystem
from noonmark.persist.impl.files import INLINE_BYTES_MAX, FileBlob
from noonmark.persist.location import BlobEntry
from support.kill.dying import die_in_put
from support.store.doubles import FailingFileSystem

T = TypeVar("T")


class CountingFileSystem(FileSystem):
    """Counts fsyncs of folders, by path."""

    def __init__(self) -> None:
        self.paths: dict[int, str] = {}
        self.fsynced: list[str] = []

    def open_folder(self, path: str) -> int:
        folder = super().open_folder(path)
        self.paths[folder] = path
        return folder

    def fsync_folder(self, folder: int) -> None:
        super().fsync_folder(folder)
        self.fsynced.append(self.paths[folder])


def run(body: Callable[[], Awaitable[T]]) -> T:
    return asyncio.run(body())  # type: ignore[arg-type]


def scratch_files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "~tmp").rglob("*") if path.is_file())


def test_opening_and_reading_make_nothing(tmp_path: Path) -> None:
    root = tmp_path / "not" / "there"

    async def body() -> None:
        blob = FileBlob(root)
        assert await blob.get("part/a") is None
        assert await blob.list("") == []
        await blob.delete("part/a")
        await blob.close()
        assert not (tmp_path / "not").exists()

    run(body)


def test_new_folders_are_durable_up_to_the_root(tmp_path: Path) -> None:
    system = CountingFileSystem()
    root = tmp_path / "x" / "y"

    async def body() -> None:
        blob = FileBlob(root, system=system)
        await blob.put_if_absent("a/b/1", b"")
        above = [str(path) for path in (tmp_path, root.parent, root, root / "a", root / "a" / "b")]
        assert set(above) <= set(system.fsynced)
        assert system.fsynced[-1] == str(root / "a" / "b")
        system.fsynced.clear()
        await blob.put_if_absent("a/b/2", b"")
        assert system.fsynced == [str(root / "a" / "b")]
        await blob.close()

    run(body)


def test_what_a_reader_sees_it_makes_durable(tmp_path: Path) -> None:
    """Two names: the writer has linked, not yet fsynced; the reader does it before it answers."""

    async def body() -> None:
        failing = FailingFileSystem()
        writer = FileBlob(tmp_path, system=failing)
        await writer.put("log/0", b"zero")
        failing.fail("fsync_folder", errno.EIO)
        with pytest.raises(Indeterminate):
            await writer.put_if_absent("log/1", b"one")
        system = CountingFileSystem()
        reader = FileBlob(tmp_path, system=system)
        assert await reader.get("log/0") == b"zero"
        assert system.fsynced == []
        assert await reader.get_range("log/1", 0, 1) == b"o"
        assert system.fsynced[-1] == str(tmp_path / "log")
        await reader.close()
        await writer.close()

    run(body)


def test_a_killed_writer_leaves_nothing_that_is_seen_and_is_swept(tmp_path: Path) -> None:
    child = multiprocessing.get_context("spawn").Process(target=die_in_put, args=(str(tmp_path),))
    child.start()
    child.join(30)
    assert child.exitcode == 9
    assert len(scratch_files(tmp_path)) == 2

    async def body() -> None:
        system = CountingFileSystem()
        blob = FileBlob(tmp_path, system=system)
        assert await blob.list("") == [BlobEntry("log/linked", 6)]
        await blob.put("part/a", b"a")
        assert scratch_files(tmp_path) == []
        assert str(tmp_path / "log") in system.fsynced
        assert await blob.list("") == [BlobEntry("log/linked", 6), BlobEntry("part/a", 1)]
        await blob.close()
        assert list((tmp_path / "~tmp").iterdir()) == []

    run(body)


def test_a_sweep_leaves_the_living_alone(tmp_path: Path) -> None:
    async def body() -> None:
        failing = FailingFileSystem()
        living = FileBlob(tmp_path, system=failing)
        await living.put("part/a", b"a")
        failing.fail("unlink", errno.EIO)
        await living.put("part/b", b"b")
        assert len(scratch_files(tmp_path)) == 1
        other = FileBlob(tmp_path)
        await other.put("part/c", b"c")
        assert len(scratch_files(tmp_path)) == 1
        failing.heal()
        await living.put("part/d", b"d")
        await living.close()
        await other.close()

    run(body)


@pytest.mark.parametrize("method", ["create", "write", "fsync", "link"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_full_read_only_and_forbidden_are_unfit(tmp_path: Path, method: str, number: int) -> None:
    async def body() -> None:
        failing = FailingFileSystem()
        blob = FileBlob(tmp_path, system=failing)
        await blob.put("part/a", b"a")
        failing.fail(method, number)
        with pytest.raises(StorageUnfit) as caught:
            await blob.put_if_absent("part/b", b"b")
        assert caught.value.hint
        failing.heal()
        assert await blob.get("part/b") is None
        assert await blob.put_if_absent("part/b", b"b")
        await blob.close()

    run(body)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("create", Determinate),
        ("write", Determinate),
        ("fsync", Determinate),
        ("link", Indeterminate),
        ("fsync_folder", Indeterminate),
    ],
)
@pytest.mark.parametrize("value", [b"small", bytes(INLINE_BYTES_MAX + 1)], ids=["inline", "thread"])
def test_an_error_of_the_disk_while_writing(
    tmp_path: Path, method: str, kind: type[StorageError], value: bytes
) -> None:
    """Until the link nothing has happened; from then on it may have."""

    async def body() -> None:
        failing = FailingFileSystem()
        blob = FileBlob(tmp_path, system=failing)
        await blob.put("part/a", b"a")
        failing.fail(method, errno.EIO, has_effect=method == "link")
        with pytest.raises(kind):
            await blob.put_if_absent("part/b", value)
        failing.heal()
        there = await blob.get("part/b")
        assert there == (None if kind is Determinate else value)
        await blob.close()

    run(body)


@pytest.mark.parametrize("method", ["open_read", "shape", "read"])
def test_an_error_of_the_disk_while_reading_is_determinate(tmp_path: Path, method: str) -> None:
    async def body() -> None:
        failing = FailingFileSystem()
        blob = FileBlob(tmp_path, system=failing)
        await blob.put("part/a", b"a")
        failing.fail(method, errno.EIO)
        with pytest.raises(Determinate):
            await blob.get("part/a")
        failing.fail("names", errno.EIO)
        with pytest.raises(Determinate):
            await blob.list("part/")
        await blob.close()

    run(body)


def test_a_file_in_the_place_of_the_root_is_unfit(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def body() -> None:
        blob = FileBlob(tmp_path / "file" / "data")
        assert await blob.get("part/a") is None
        with pytest.raises(StorageUnfit):
            await blob.put("part/a", b"")

    run(body)


def test_descriptors_are_let_go(tmp_path: Path) -> None:
    async def body() -> None:
        before = len(os.listdir("/proc/self/fd"))
        blob = FileBlob(tmp_path)
        for number in range(20):
            await blob.put(f"part/{number % 3}/{number}", bytes(number * 100_000))
            await blob.get(f"part/{number % 3}/{number}")
            await blob.list("part/")
            await blob.delete(f"part/{number % 3}/{number}")
        await blob.close()
        assert len(os.listdir("/proc/self/fd")) == before

    run(body)


def test_a_small_put_costs_no_more_than_the_least_that_is_durable(tmp_path: Path) -> None:
    """The bar: write, fsync, rename, fsync of the folder. Generous, for a machine that is busy."""
    value = bytes(1000)
    folder = tmp_path / "bar"
    folder.mkdir()

    def bar(number: int) -> None:
        with open(folder / "temporary", "wb") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        os.rename(folder / "temporary", folder / str(number))
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    async def body() -> float:
        blob = FileBlob(tmp_path / "data")
        ours, theirs = [], []
        for number in range(150):
            start = SYSTEM.monotonic()
            bar(number)
            middle = SYSTEM.monotonic()
            assert await blob.put_if_absent(f"log/{number}", value)
            theirs.append(middle - start)
            ours.append(SYSTEM.monotonic() - middle)
        await blob.close()
        return sorted(ours)[75] / sorted(theirs)[75]

    assert run(body) < 2
