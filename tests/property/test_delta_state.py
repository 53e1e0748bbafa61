"""Old rows by key: the same pairs, however the parts of a run are mapped."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from noonmark import persist
from noonmark.compute.trace import cache, kept
from noonmark.compute.trace.by_key import CollectionAt, TraceReader
from noonmark.errors import Unsupported
from noonmark.persist import task
from noonmark.persist.client import Client, Options
from noonmark.persist.config import Config
from noonmark.persist.part.part import Part
from noonmark.rows.schema import Schema
from noonmark.sql.ir.scalar import column
from noonmark.tvc import Update

SCHEMA = Schema.of(k="bigint", name="text")
#: Parts of three rows, none of them in the log.
CONFIG = Config(part_rows_max=3, inline_bytes_max=0, merge_fan_in=1000)
ROWS = [(k, f"{'x' * k}{n}") for n in range(4) for k in range(8)]
PROBES = [3, 7, 3, None, 100]


@pytest.fixture(autouse=True)
def parts_are_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of few rows, which are kept in memory elsewhere."""
    monkeypatch.setattr("noonmark.compute.trace.small.FEW", -1)


def _opened(path: Path) -> Client:
    return persist.open(path, options=Options(notify_host=None, config=CONFIG))


def _written(client: Client) -> CollectionAt:
    """Rows at 1, some of them gone at 2, and NULL at 3."""
    write = client.create_or_load("t", SCHEMA, key=("k",))[0]
    write.compare_and_append([Update(row, 1, 1) for row in ROWS], 0, 2).result()
    write.compare_and_append([Update(row, 2, -1) for row in ROWS[::5]], 2, 3).result()
    write.compare_and_append([Update((None, None), 3, 1)], 3, 4).result()
    where = task.TaskLocation(client.blob.url, CONFIG)
    return CollectionAt(where, client.state.collection("t"), 2)


def _pairs(traces: TraceReader, place: CollectionAt) -> Counter[tuple[Any, ...]]:
    key = (column(0, SCHEMA.columns[0]),)
    places, rows = traces.find(place, key, [pa.array(PROBES, pa.int64())], {0, 1})
    made: Counter[tuple[Any, ...]] = Counter()
    names = rows.columns[1]
    assert names is not None, "it was asked for"
    for at, name, diff in zip(places.tolist(), names.to_pylist(), rows.diff.tolist(), strict=True):
        made[(at, name)] += diff
    return +made


def _expected() -> Counter[tuple[Any, ...]]:
    gone = ROWS[::5]
    left = [row for row in ROWS if row not in gone]
    return Counter((at, name) for at, k in enumerate(PROBES) for own, name in left if own == k)


@pytest.mark.parametrize("rows_max", [1, 7, 1_000], ids=["alone", "some", "all"])
def test_pairs_do_not_depend_on_how_parts_are_mapped(
    tmp_path: Path, rows_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache.pieces, "__defaults__", (rows_max,))
    with _opened(tmp_path / "data") as client:
        place = _written(client)
        traces = TraceReader(tmp_path / "cache")
        assert _pairs(traces, place) == _expected()
        assert _pairs(traces, place) == _expected(), "when they are mapped already"
        found = list(traces.segments(place, {0}))
    assert len(found) == {1: 14, 7: 7, 1_000: 2}[rows_max]


def test_texts_that_do_not_go_together_are_mapped_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_TEXT_BYTES_MAX", 60)
    with _opened(tmp_path / "data") as client:
        place = _written(client)
        traces = TraceReader(tmp_path / "cache")
        assert _pairs(traces, place) == _expected()
        assert len(list(traces.segments(place, {1}))) > 2
        assert _pairs(traces, place) == _expected(), "when that is known already"
        monkeypatch.setattr(cache, "_TEXT_BYTES_MAX", 1)
        shutil.rmtree(tmp_path / "data" / kept.FOLDER)
        with pytest.raises(Unsupported, match="more than 2 GiB of text"):
            _pairs(TraceReader(tmp_path / "other"), place)


def test_pieces_are_neighbours_of_one_schema() -> None:
    sizes = [(1, 0), (2, 0), (2, 0), (9, 0), (1, 1), (1, 1)]
    parts = [
        Part(f"p{at}", rows, 1, 0, 0, 0, 0, 0, schema_id=schema)
        for at, (rows, schema) in enumerate(sizes)
    ]
    made = [[part.key for part in group] for group in cache.pieces(parts, 4)]
    assert made == [["p0", "p1"], ["p2"], ["p3"], ["p4", "p5"]]
    assert list(cache.pieces([], 4)) == []


def test_what_was_not_used_for_longest_goes_once_in_a_while(tmp_path: Path) -> None:
    for at, name in enumerate(("old", "older", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "column.arrow").write_bytes(bytes(100))
        os.utime(tmp_path / name, (at, 10 * (at != 1) + at))
    room = cache.Room(bytes_max=200)
    room.taken(tmp_path, 3)
    assert len(list(tmp_path.iterdir())) == 3, "a sixty-fourth more is not looked at"
    room.taken(tmp_path, 1)
    assert {each.name for each in tmp_path.iterdir()} == {"old", "new"}
