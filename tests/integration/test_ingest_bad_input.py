"""Bad input: what each kind does, and that no bad record ever stops a source.

| input | what happens |
|---|---|
| malformed JSON, a value of the wrong type | an error with the bytes, at the record's time |
| a bad value under UPSERT | the key's row gives way to an error, till its next value or tombstone |
| a truncated Parquet file | nothing until it has settled; then one error for the file, for good |
| a file that shrinks, or is replaced | one error for the file, for good; what was read stays |
| a file that goes away | before it was read: an error; after: nothing |
| a schema that changed upstream | new fields are ignored, missing ones NULL, other types errors |
| a schema that changed in the description | refused when the ingestion is made |
| duplicate keys under NONE | all rows are there, each as often as it came |
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noonmark.errors import ConfigError, SchemaMismatch
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine, raw
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client, open_location
from noonmark.rows.schema import Schema
from noonmark.source.envelope import Kind
from noonmark.source.format.json import Json
from noonmark.source.impl.file_forms import Parquet
from noonmark.source.impl.files import Files, of_lines
from support.ingest.world import HistoryClock

SCHEMA = Schema.of(id="bigint not null", word="text")
GOOD = [{"id": 1, "word": "a"}, {"id": 2, "word": "b"}]


@dataclass
class Rig:
    """A folder of files and its ingestion."""

    client: Client
    clock: HistoryClock
    folder: Path
    ingestion: Ingestion = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.oracle = MemoryOracle(self.clock)

    def lines(self, envelope: Kind = "NONE", schema: Schema = SCHEMA) -> Rig:
        source = of_lines(str(self.folder))
        key = ("id",) if envelope == "UPSERT" else ()
        feeds = (raw(source, 0, "t", Json(schema), envelope=envelope, key=key),)
        self.ingestion = Ingestion(
            self.client, self.oracle, source, "f", InPlaceEngine(), feeds=feeds
        ).start()
        return self

    def parquet(self) -> Rig:
        source = Files(str(self.folder), Parquet(SCHEMA), "t", settle_ms=1000)
        self.ingestion = Ingestion(self.client, self.oracle, source, "f", InPlaceEngine()).start()
        return self

    def append(self, name: str, *lines: Any) -> None:
        with (self.folder / name).open("ab") as file:
            for line in lines:
                file.write(line if isinstance(line, bytes) else json.dumps(line).encode())
                file.write(b"\n")

    def write_parquet(self, name: str, columns: dict[str, Any]) -> bytes:
        pq.write_table(pa.table(columns), self.folder / name)
        return (self.folder / name).read_bytes()

    def tick(self) -> int:
        self.clock.now += 10
        return self.ingestion.tick().time

    def rows(self, name: str = "t", as_of: int | None = None) -> Counter[Any]:
        _, read = self.client.create_or_load(name)
        last = (read.upper.only() or 1) - 1
        return read.snapshot(last if as_of is None else as_of).result().counts()

    def errors(self) -> list[tuple[Any, ...]]:
        return sorted(self.rows("f_errors").elements(), key=str)

    def still_alive(self) -> None:
        """Other files and later lines are ingested as if nothing had been."""
        before = self.rows().total()
        if isinstance(getattr(self.ingestion.source, "form", None), Parquet):
            self.write_parquet("later.parquet", {"id": [99], "word": ["later"]})
        else:
            self.append("later.json", {"id": 99, "word": "later"})
        self.tick()
        assert self.rows()[99, "later"] == 1
        assert self.rows().total() == before + 1


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    # The clock is ahead of the files' own times: whatever needs to settle has settled.
    clock = HistoryClock(now=4_000_000_000_000)
    with open_location(tmp_path / "location", clock=clock) as client:
        yield Rig(client, clock, tmp_path / "in")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"id": 3', "not JSON"),
        (b"[1, 2]", "object"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"id": "three"}', 'column "id"'),
        (b'{"id": 1.5}', 'column "id"'),
        (b'{"id": 99999999999999999999}', 'column "id"'),
        (b'{"word": "no id"}', 'column "id": NULL'),
        (b'{"id": null}', 'column "id": NULL'),
        (b'{"id": 1, "word": {"not": "text"}}', 'column "word"'),
    ],
)
def test_a_record_that_cannot_be_read_is_an_error_at_its_time(
    bad: bytes, reason: str, rig: Rig
) -> None:
    rig.lines().append("a.json", GOOD[0])
    before = rig.tick()
    rig.append("a.json", bad, GOOD[1])
    time = rig.tick()
    assert rig.rows() == Counter({(1, "a"): 1, (2, "b"): 1})
    ((output, partition, offset, key, value, why),) = rig.errors()
    line = json.dumps(GOOD[0])
    assert (output, partition, offset, key, value) == ("t", "a.json", len(line) + 1, None, bad)
    assert reason in why
    assert not rig.rows("f_errors", before)
    assert rig.rows("f_errors", time)
    rig.still_alive()


def test_a_line_is_a_record_once_it_ends(rig: Rig) -> None:
    rig.lines()
    (rig.folder / "a.json").write_bytes(b'{"id": 1}\n{"id": 2, "wor')
    rig.tick()
    assert rig.rows() == Counter({(1, None): 1})
    with (rig.folder / "a.json").open("ab") as file:
        file.write(b'd": "b"}\n')
    rig.tick()
    assert rig.rows() == Counter({(1, None): 1, (2, "b"): 1})
    assert rig.errors() == []


def test_duplicate_keys_under_none_are_all_there(rig: Rig) -> None:
    rig.lines().append("a.json", GOOD[0], GOOD[0], {"id": 1, "word": "z"})
    rig.tick()
    rig.append("b.json", GOOD[0])
    rig.tick()
    assert rig.rows() == Counter({(1, "a"): 3, (1, "z"): 1})
    assert rig.errors() == []


def test_duplicate_keys_under_upsert_are_the_last_one(rig: Rig) -> None:
    rig.lines("UPSERT").append("a.json", GOOD[0], {"id": 1, "word": "z"})
    rig.tick()
    assert rig.rows() == Counter({(1, "z"): 1})
    rig.append("a.json", b"{", {"id": 1, "word": "y"})
    rig.tick()
    assert rig.rows() == Counter({(1, "y"): 1})
    assert len(rig.errors()) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [(lambda path: path.write_bytes(b""), "shorter"),
     (lambda path: path.write_bytes(b'{"id": 7, "word": "x"}\n' * 9), "replaced")],
)  # fmt: skip
def test_a_file_that_takes_back_what_was_read(change: Any, reason: str, rig: Rig) -> None:
    rig.lines().append("a.json", *GOOD)
    first = rig.tick()
    change(rig.folder / "a.json")
    rig.tick()
    assert rig.rows() == rig.rows(as_of=first) == Counter({(1, "a"): 1, (2, "b"): 1})
    ((output, partition, _, _, _, why),) = rig.errors()
    assert (output, partition) == (None, "a.json")
    assert reason in why
    rig.append("a.json", {"id": 8})
    rig.tick()
    assert len(rig.errors()) == 1  # the file is not read again, and not complained about again
    assert rig.rows() == rig.rows(as_of=first)
    rig.still_alive()


def test_a_file_that_goes_away(rig: Rig) -> None:
    rig.lines().append("a.json", *GOOD)
    rig.append("b.json", {"id": 3})
    rig.tick()
    (rig.folder / "a.json").unlink()
    rig.tick()
    assert rig.rows().total() == 3
    assert rig.errors() == []
    rig.still_alive()


def test_a_file_that_goes_away_between_its_binding_and_its_reading(rig: Rig) -> None:
    rig.lines().append("a.json", *GOOD)
    rig.append("b.json", {"id": 3})
    inner = rig.ingestion.engine

    @dataclass
    class Late:
        def run(self, *work: Any) -> Any:
            (rig.folder / "a.json").unlink()
            return inner.run(*work)

    rig.ingestion.engine = Late()
    rig.tick()
    rig.ingestion.engine = inner
    assert rig.rows() == Counter({(3, None): 1})
    ((_, partition, _, _, _, why),) = rig.errors()
    assert (partition, "went away before it was read" in why) == ("a.json", True)
    rig.still_alive()


def test_a_truncated_parquet_file(rig: Rig) -> None:
    whole = rig.parquet().write_parquet("a.parquet", {"id": [1], "word": ["a"]})
    rig.write_parquet("b.parquet", {"id": [2], "word": ["b"]})
    (rig.folder / "a.parquet").write_bytes(whole[:-20])
    now, rig.clock.now = rig.clock.now, 0  # as if it had been written just now
    rig.tick()
    assert rig.rows() == Counter({(2, "b"): 1})
    assert rig.errors() == []
    rig.clock.now = now
    rig.tick()
    ((_, partition, _, _, _, why),) = rig.errors()
    assert (partition, "not a whole Parquet file" in why) == ("a.parquet", True)
    rig.still_alive()


def test_a_parquet_file_that_is_still_being_written(rig: Rig) -> None:
    whole = rig.parquet().write_parquet("a.parquet", {"id": [1], "word": ["a"]})
    (rig.folder / "a.parquet").write_bytes(whole[: len(whole) // 2])
    rig.clock.now = 0
    rig.tick()
    (rig.folder / "a.parquet").write_bytes(whole)
    rig.tick()
    assert rig.rows() == Counter({(1, "a"): 1})
    assert rig.errors() == []


def test_a_schema_that_changed_upstream(rig: Rig) -> None:
    rig.lines().append("a.json", {"id": 1, "word": "a", "new": [1]}, {"id": 2}, {"id": "3"})
    rig.append("a.json", {"id": 4, "word": [5]})
    rig.tick()
    assert rig.rows() == Counter({(1, "a"): 1, (2, None): 1, (3, None): 1})
    assert ['column "word"' in why for *_, why in rig.errors()] == [True]
    rig.still_alive()


def test_a_parquet_schema_that_changed(rig: Rig) -> None:
    rig.parquet().write_parquet("a.parquet", {"id": [1], "word": ["a"], "new": [1.5]})
    rig.write_parquet("b.parquet", {"id": [2]})
    rig.write_parquet("c.parquet", {"id": ["x"], "word": ["c"]})
    rig.write_parquet("d.parquet", {"word": ["no id"]})
    rig.tick()
    assert rig.rows() == Counter({(1, "a"): 1, (2, None): 1})
    assert [row[1] for row in rig.errors()] == ["c.parquet", "d.parquet"]
    rig.still_alive()


def test_a_schema_that_changed_in_the_description(rig: Rig) -> None:
    rig.lines().append("a.json", *GOOD)
    rig.tick()
    with pytest.raises(SchemaMismatch, match='"t" exists with another schema'):
        rig.lines(schema=Schema.of(id="text"))


def test_a_feed_that_cannot_be(rig: Rig) -> None:
    source = of_lines(str(rig.folder))
    with pytest.raises(ConfigError, match="needs a format"):
        Ingestion(rig.client, rig.oracle, source, "f", InPlaceEngine()).start()
    with pytest.raises(ConfigError, match="needs a key"):
        raw(source, 0, "t", Json(SCHEMA), envelope="UPSERT")
    lists = Json(Schema.of(id="bigint[]"))
    with pytest.raises(ConfigError, match="cannot be in a key"):
        raw(source, 0, "t", lists, envelope="UPSERT", key=("id",))
    with pytest.raises(SchemaMismatch, match="does not exist"):
        raw(source, 0, "t", Json(SCHEMA), envelope="UPSERT", key=("other",))
    twice = (raw(source, 0, "t", Json(SCHEMA)), raw(source, 0, "u", Json(SCHEMA)))
    with pytest.raises(ConfigError, match="feeds one collection"):
        Ingestion(rig.client, rig.oracle, source, "f", InPlaceEngine(), feeds=twice).start()
