"""The format on disk: what a version wrote, every later version reads; what a later one wrote, not.

A location of every format version is kept under ``tests/location/format-N``, with its contents as
text (`support.store.stored_format` says what is in it).
"""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from noonmark import persist
from noonmark.errors import BelowUpper, CapabilityInvalid, NewerFormat
from noonmark.persist.log import command as c
from noonmark.persist.log.frame import ENTRY, FORMAT_VERSION, ROLLUP, open_frame, seal_frame
from noonmark.shard.verify import verify
from noonmark.tvc import Antichain
from support.store.stored_format import contents, describe, kept, write_location

VERSIONS = range(1, FORMAT_VERSION + 1)
MODES = ("write", "notified", "polling", "independent")


@pytest.fixture(params=VERSIONS, ids="format-{}".format)
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A copy of the location that a version wrote, and what must be found in it."""
    folder = kept(request.param)
    shutil.copytree(folder / "data", tmp_path / "data")
    return tmp_path / "data", (folder / "expected.txt").read_text()


@pytest.mark.parametrize("mode", MODES)
def test_every_version_is_read_whole(copy: tuple[Path, str], mode: persist.client.Mode) -> None:
    folder, expected = copy
    with persist.open(folder, options=persist.Options(mode=mode)) as client:
        assert describe(client) == expected
        _, read = client.create_or_load("orders")
        assert contents(read, 30, keys=[1, 2, 105]) == [
            '  +1 ["1", "item 1", "5.00"]',
            '  +1 ["105", "priced", "105.99"]',
            '  +3 ["2", "item 2", null]',
        ]


def test_every_object_of_every_version_is_verified(copy: tuple[Path, str]) -> None:
    folder, _ = copy
    with persist.open(folder, options=persist.Options(mode="independent")) as client:
        report = client.runtime.submit(verify(client, None, lambda *_: None)).result(30)
    assert report.findings == ()
    assert min(report.entries, report.rollups, report.parts) > 0


def test_every_version_is_written_on(copy: tuple[Path, str]) -> None:
    folder, _ = copy
    with persist.open(folder) as client:
        orders, read = client.create_or_load("orders")
        with pytest.raises(BelowUpper):
            orders.write([persist.Update((1, "late", None), 30, 1)]).result(30)
        orders.write([persist.Update((500, "new", Decimal("1.00")), 31, 1)])
        orders.seal(32).result(30)
        before = contents(read, 31)
        assert '  +1 ["500", "new", "1.00"]' in before
        assert '  +1 ["9", "after the rollup", "0.10"]' in before
        orders.allow_compaction(31).result(30)
        assert read.since == Antichain.of(4), "the reader's hold is still in force"
        client.compact("orders").result(30)
        _, read_types = client.create_or_load("types")
        types_before = contents(read_types, 10)
        client.compact("types").result(30)
        fresh, _ = client.create_or_load("fresh", read.codec.schema)
        assert fresh.collection > 7, "no id is used again"
        pending, _ = client.create_or_load("pending")
        with pytest.raises(CapabilityInvalid, match="may still be written at 5"):
            pending.seal(7).result(30)
        client.submit((c.Release("writer"),)).result(30)
        pending.seal(7).result(30)
        client.runtime.submit(client.journal.write_rollup()).result(30)
    with persist.open(folder, options=persist.Options(mode="independent")) as client:
        assert contents(client.create_or_load("orders")[1], 31) == before
        assert contents(client.create_or_load("types")[1], 10) == types_before
        written = contents(client.create_or_load("pending")[1], 6)
        assert written == ['  +1 ["1", "x"]', '  +1 ["2", "y"]']


def test_what_is_kept_is_what_the_code_writes(tmp_path: Path) -> None:
    write_location(tmp_path)
    with persist.open(tmp_path, options=persist.Options(mode="independent")) as client:
        assert describe(client) == (kept(FORMAT_VERSION) / "expected.txt").read_text()


def stamp_newer(path: Path, name: str, kind: bytes) -> None:
    """Have a stored frame say that the next version wrote it."""
    payload = open_frame(name, kind, path.read_bytes())
    path.write_bytes(seal_frame(name, kind, payload, version=FORMAT_VERSION + 1))


def stamp_entry(path: Path) -> None:
    stamp_newer(path, f"log/{int(path.name)}", ENTRY)


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("newer", ["everything", "the last entry"])
@pytest.mark.parametrize("mode", MODES)
def test_a_newer_version_is_refused_and_left_alone(
    tmp_path: Path, mode: persist.client.Mode, newer: str
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(kept(FORMAT_VERSION) / "data", folder)
    entries = sorted((folder / "log").iterdir())
    if newer == "everything":
        for path in (folder / "rollup").iterdir():
            stamp_newer(path, f"rollup/{path.name}", ROLLUP)
        for path in entries:
            stamp_entry(path)
    else:
        stamp_entry(entries[-1])
    before = everything(folder)
    with pytest.raises(NewerFormat) as refused:
        persist.open(folder, options=persist.Options(mode=mode))
    assert refused.value.fields["found"] == FORMAT_VERSION + 1
    assert refused.value.fields["supported"] == FORMAT_VERSION
    assert everything(folder) == before
