"""Bad use and bad stores are refused: a typed error that says what, why and what to do, no change.

Each case is a call that must fail. The error has its class, the offending values in `fields`, a
detail and a hint; and every stored byte of the location is what it was before.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import (
    BeforeSince,
    BelowUpper,
    CapabilityInvalid,
    FrontierRegression,
    InvalidValue,
    LockHeld,
    NewerFormat,
    NoonmarkError,
    NotBelowFrontier,
    NotYetComplete,
    ReadOnly,
    SchemaMismatch,
    Stopped,
    StorageUnfit,
    UnknownCollection,
    UsageError,
)
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.location import Blob
from noonmark.persist.log.frame import ENTRY, FORMAT_VERSION, open_frame, seal_frame
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import parse_type
from noonmark.tvc import Antichain
from support.store.doubles import FailingFileSystem, UnconditionalBlob

SCHEMA = Schema.of(id="bigint", name="text")
TEXT = parse_type("text")
#: Nothing is rewritten behind the test's back.
QUIET = persist.Config(
    rollup_entries=10**6, rollup_bytes_min=1 << 40, inline_batches_max=10**6, merge_fan_in=10**6
)
# Not data: a lock, what is being written, and the probe of conditional puts.
_NOT_DATA = ("writer.lock", "~tmp", "probe")

Error = type[NoonmarkError]


def stored(folder: Path) -> dict[str, bytes]:
    """Every stored object."""
    paths = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    return {n: p.read_bytes() for n, p in paths.items() if n.split("/")[0] not in _NOT_DATA}


def refused(error: Error, fields: tuple[str, ...], call: Callable[[], Any]) -> NoonmarkError:
    """The error that the call, or the future that it returns, gives; checked to be complete."""

    def result() -> Any:
        answer = call()
        return answer.result(20) if isinstance(answer, Future) else answer

    with pytest.raises(NoonmarkError) as caught:
        result()
    found = caught.value
    assert type(found) is error
    assert found.detail, f"{found!r} has no detail"
    assert found.hint, f"{found!r} has no hint"
    assert set(fields) <= set(found.fields), found.fields
    return found


@dataclass
class Place:
    """A location with one collection, readable from 5 and complete to 10."""

    folder: Path
    client: persist.Client
    write: persist.WriteHandle
    read: persist.ReadHandle

    def update(self, time: int, *data: Any) -> list[persist.Update[Any, int]]:
        return [persist.Update(data or (1, "x"), time, 1)]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "data"
    with persist.open(folder, options=persist.Options(config=QUIET)) as client:
        write, read = client.create_or_load("c", SCHEMA, ("id",))
        write.write([persist.Update((n, "x"), n, 1) for n in range(1, 10)])
        write.seal(10)
        write.allow_compaction(5).result()
        yield Place(folder, client, write, read)


def table(**columns: list[Any]) -> pa.Table:
    return pa.table({**columns, "_time": [20], "_diff": [1]})


CASES: dict[str, tuple[Error, tuple[str, ...], Callable[[Place], Any]]] = {
    "write below upper": (
        BelowUpper, ("collection", "time", "upper"), lambda p: p.write.write(p.update(9))
    ),
    "seal backwards": (
        FrontierRegression, ("collection", "current", "asked"), lambda p: p.write.seal(9)
    ),
    "allow compaction backwards": (
        FrontierRegression,
        ("collection", "current", "asked"),
        lambda p: p.write.allow_compaction(4),
    ),
    "read before since": (
        BeforeSince, ("collection", "as_of", "since", "upper"), lambda p: p.read.snapshot(4)
    ),
    "listen before since": (BeforeSince, ("as_of", "since"), lambda p: p.read.listen(4)),
    "read what is not complete": (
        NotYetComplete, ("as_of", "upper"), lambda p: p.read.snapshot(10, wait=False)
    ),
    "append from another upper": (
        FrontierRegression,
        ("collection", "expected", "upper"),
        lambda p: p.write.compare_and_append(p.update(12), 11, 13),
    ),
    "append beyond its own upper": (
        NotBelowFrontier,
        ("time", "upper"),
        lambda p: p.write.compare_and_append(p.update(15), 10, 15),
    ),
    "unknown collection": (
        UnknownCollection, ("collection",), lambda p: p.client.create_or_load("nothing")
    ),
    "drop an unknown collection": (
        UnknownCollection, ("collection",), lambda p: p.client.drop("nothing")
    ),
    "another schema": (
        SchemaMismatch,
        ("collection",),
        lambda p: p.client.create_or_load("c", Schema.of(id="text", name="text")),
    ),
    "another key": (
        SchemaMismatch,
        ("collection",),
        lambda p: p.client.create_or_load("c", SCHEMA, ("name",)),
    ),
    "a key that is no column": (
        SchemaMismatch,
        ("column",),
        lambda p: p.client.create_or_load("d", SCHEMA, ("nothing",)),
    ),
    "a table with a column more": (
        SchemaMismatch, (), lambda p: p.write.write(table(id=[1], name=["x"], other=[1]))
    ),
    "a table of other types": (
        SchemaMismatch, (), lambda p: p.write.write(table(id=["one"], name=["x"]))
    ),
    "a table without times": (
        SchemaMismatch, ("column",), lambda p: p.write.write(pa.table({"id": [1], "name": ["x"]}))
    ),
    "a time before all time": (
        InvalidValue, ("time",), lambda p: p.write.write(p.update(-1))
    ),
    "a new column that may not be NULL": (
        SchemaMismatch, (), lambda p: p.client.evolve("c", (Column("extra", TEXT, False),))
    ),
    "a new column that is there already": (
        SchemaMismatch, (), lambda p: p.client.evolve("c", (Column("name", TEXT, True),))
    ),
    "a column that is not there": (
        SchemaMismatch, ("column",), lambda p: p.read.snapshot(9, columns=("nothing",))
    ),
    "keys of several lengths": (
        UsageError, ("collection",), lambda p: p.read.snapshot(9, keys=((1,), (1, "x")))
    ),
    "a second writer": (LockHeld, ("holder", "epoch"), lambda p: persist.open(p.folder)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_use_is_refused_and_changes_nothing(place: Place, name: str) -> None:
    error, fields, call = CASES[name]
    before = stored(place.folder)
    refused(error, fields, lambda: call(place))
    assert stored(place.folder) == before
    assert place.read.snapshot(9).result().counts() == {(n, "x"): 1 for n in range(1, 10)}
    place.write.write(place.update(10)).result()


def test_a_refused_operation_takes_its_whole_transaction_with_it(place: Place) -> None:
    other, _ = place.client.create_or_load("d", SCHEMA)
    before = stored(place.folder)
    together = place.client.atomic()
    together.write(other, place.update(3)).write(place.write, place.update(3))
    refused(BelowUpper, ("time", "upper"), together.commit)
    assert stored(place.folder) == before


def test_a_hold_that_expired_is_refused(tmp_path: Path) -> None:
    config = persist.Config(hold_lease_ms=200)
    with persist.open(tmp_path, options=persist.Options(config=config)) as client:
        _, read = client.create_or_load("c", SCHEMA)
        hold = client.runtime.submit(client.acquire(read.collection)).result()
        client.holds.clear()  # its process stalls: nobody renews it
        client.runtime.submit(SYSTEM.sleep(0.3)).result()
        gone = lambda: client.runtime.submit(hold.downgrade(Antichain.of(0)))  # noqa: E731
        refused(CapabilityInvalid, ("hold",), gone)


@pytest.mark.parametrize("mode", ["polling", "notified", "independent"])
def test_a_reader_writes_nothing(place: Place, mode: persist.client.Mode) -> None:
    before = stored(place.folder)
    with persist.open(place.folder, options=persist.Options(mode=mode)) as reader:
        write, _ = reader.create_or_load("c")
        calls: list[Callable[[], Any]] = [
            lambda: write.write(place.update(11)),
            lambda: write.seal(12),
            lambda: reader.drop("c"),
            lambda: reader.compact("c"),
            lambda: reader.evolve("c", (Column("extra", TEXT, True),)),
        ]
        for call in calls:
            assert refused(ReadOnly, ("mode",), call).fields["mode"] == mode
        refused(UnknownCollection, ("collection",), lambda: reader.create_or_load("d", SCHEMA))
    assert stored(place.folder) == before


def test_an_independent_reader_takes_no_hold(place: Place) -> None:
    before = stored(place.folder)
    with persist.open(place.folder, options=persist.Options(mode="independent")) as reader:
        _, read = reader.create_or_load("c")
        refused(ReadOnly, ("mode",), lambda: read.listen(9, hold=True))
    assert stored(place.folder) == before


def test_calls_after_the_stop_are_refused(place: Place) -> None:
    place.client.stop()
    before = stored(place.folder)
    for call in (
        lambda: place.write.write(place.update(11)),
        lambda: place.write.seal(12),
        lambda: place.read.snapshot(9),
        lambda: place.client.compact("c"),
    ):
        refused(Stopped, (), call)
    assert stored(place.folder) == before


def test_a_newer_format_is_refused_by_who_reads_and_who_writes(place: Place) -> None:
    place.client.stop()
    newest = max((place.folder / "log").iterdir())
    name = f"log/{int(newest.name)}"
    payload = open_frame(name, ENTRY, newest.read_bytes())
    newest.write_bytes(seal_frame(name, ENTRY, payload, FORMAT_VERSION + 1))
    before = stored(place.folder)
    for mode in ("write", "polling", "independent"):
        options = persist.Options(mode=mode)  # type: ignore[arg-type]
        opened = lambda: persist.open(place.folder, options=options)  # noqa: B023, E731
        found = refused(NewerFormat, ("object", "found", "supported"), opened)
        assert found.fields["found"] == FORMAT_VERSION + 1
    assert stored(place.folder) == before


def open_on(blob: Blob, consensus: Blob, mode: persist.client.Mode = "write") -> persist.Client:
    runtime = Runtime.start()
    options = persist.Options(mode=mode, notify_host=None, config=QUIET)
    start = persist.Client.start(runtime, blob, BlobConsensus(consensus), options)
    try:
        return runtime.submit(start).result()
    except BaseException:
        runtime.stop()
        raise


def test_a_store_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    blob = UnconditionalBlob(FileBlob(tmp_path))
    refused(StorageUnfit, ("url",), lambda: open_on(blob, FileBlob(tmp_path)))
    assert stored(tmp_path) == {}


@pytest.mark.parametrize("rows", [1, 5_000])
def test_a_full_disk_is_refused_and_when_there_is_room_again_work_goes_on(
    tmp_path: Path, rows: int
) -> None:
    disk = FailingFileSystem()
    blobs = [FileBlob(tmp_path, system=disk) for _ in range(2)]
    with open_on(*blobs) as client:
        write, read = client.create_or_load("c", SCHEMA, ("id",))
        before = stored(tmp_path)
        updates = [persist.Update((n, f"{n:050x}"), 1, 1) for n in range(rows)]
        disk.fail("write", errno.ENOSPC)
        refused(StorageUnfit, ("key", "url"), lambda: write.write(updates))
        refused(StorageUnfit, ("key", "url"), lambda: write.seal(5))
        assert stored(tmp_path) == before
        disk.heal()
        write.write(updates).result()
        write.seal(2).result()
        assert len(read.snapshot(1).result().rows()) == rows


class ReadOnlyDisk(FailingFileSystem):
    """Mounted read-only: whatever would change it fails."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("create", "link", "rename", "unlink", "remove_folder", "write"):
            return self._refuse
        return super().__getattribute__(name)

    def _refuse(self, *_: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    def make_folder(self, path: str) -> None:
        if self.is_folder(path):
            raise FileExistsError(path)
        self._refuse()


def test_a_read_only_folder_can_be_read_and_not_written(place: Place) -> None:
    place.client.stop()
    before = stored(place.folder)
    blobs = [FileBlob(place.folder, system=ReadOnlyDisk()) for _ in range(2)]
    refused(StorageUnfit, ("key", "url"), lambda: open_on(*blobs))
    blobs = [FileBlob(place.folder, system=ReadOnlyDisk()) for _ in range(2)]
    with open_on(*blobs, mode="independent") as reader:
        _, read = reader.create_or_load("c")
        assert len(read.snapshot(9).result().rows()) == 9
    assert stored(place.folder) == before
