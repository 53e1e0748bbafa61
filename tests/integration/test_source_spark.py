"""Sources and reclocking on Spark: the records of the source, read by executors, with times."""

from __future__ import annotations

import asyncio
import json
from collections import Counter as Multiset
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from noonmark.clock import SYSTEM
from noonmark.errors import SourceStalled
from noonmark.remap import Remap, begin, mint, reclock_time
from noonmark.remap.lookup import TIME, TimeTable
from noonmark.rows.schema import Schema
from noonmark.source import START, Source, Split
from noonmark.source.contract import NO_OUTPUT, is_error
from noonmark.source.envelope import Envelope
from noonmark.source.format.decode import Decoding
from noonmark.source.format.json import Json
from noonmark.source.impl.auction import Auction
from noonmark.source.impl.counter import Counter
from noonmark.source.impl.files import of_lines
from noonmark.source.spark import records, run, stalled
from noonmark.source.splits import Batches, read_splits
from noonmark.tvc import Partition, Partitioned, partition_frontier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = 1_700_000_000_000


def rows(table: pa.Table) -> Multiset[Any]:
    return Multiset(tuple(row.values()) for row in table.to_pylist())


def assign_times(frame: DataFrame, table: TimeTable) -> DataFrame:
    """The records, which have `_partition` and `_offset`, with their `_time`: as a task does it."""

    def assign(batches: Batches) -> Batches:
        return (table.assign(batch) for batch in batches)

    schema = StructType([*frame.schema.fields, StructField(TIME, LongType())])
    return frame.mapInArrow(assign, schema)


def in_process(source: Source, splits: list[Split], output: int) -> Multiset[Any]:
    found: Multiset[Any] = Multiset()
    for batch in read_splits(source, splits):
        if not is_error(batch) and batch.column("_output")[0].as_py() == output:
            found.update(rows(pa.Table.from_batches([batch])))
    return found


def test_executors_read_what_the_source_reads(spark: SparkSession) -> None:
    source = Auction(start_ms=NOON, keep=3)
    splits = source.plan(START, partition_frontier({0: 120}))
    splits += source.plan(partition_frontier({0: 120}), partition_frontier({0: 200}))
    for output in range(len(source.outputs)):
        found = rows(records(spark, source, splits, output).toArrow())
        assert found == in_process(source, splits, output)
        assert found


def test_times_are_those_of_the_reference(spark: SparkSession) -> None:
    source = Counter(start_ms=NOON)
    remap: Remap[Partitioned] = begin(START, 10).remap
    for time, upper in ((20, 7), (21, 8), (30, 8), (40, 50)):
        remap = mint(remap, partition_frontier({0: upper}), time).remap
    # Beyond the last binding, too: those have no time yet, and are not there.
    frame = records(spark, source, source.plan(START, partition_frontier({0: 60})), 0)
    timed = assign_times(frame, TimeTable.of(remap)).select("counter", "_time").toArrow()
    expected = {n: reclock_time(Partitioned.at(0, n), remap) for n in range(60)}
    assert rows(timed) == Multiset((n, t) for n, t in expected.items() if t is not None)


def timed_updates(decoding: Decoding, envelope: Envelope, table: TimeTable) -> Any:
    """Runs on executors: decode, reclock, apply the envelope."""

    def pipeline(batches: Batches) -> Batches:
        for batch in batches:
            if not is_error(batch):
                timed = table.assign(decoding.decode(batch))
                updates = envelope.apply(pa.Table.from_batches([timed]))
                yield from updates.rows.to_batches()

    return pipeline


def test_files_to_updates_in_one_job(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.of(id="bigint not null", name="text", price="numeric(10,2)")
    for part in range(3):
        lines = [{"id": n, "name": f"n{n}", "price": n / 4} for n in range(part, 300, 3)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"part{part}.json").write_text(text + ("not json\n" if part == 1 else ""))
    source = of_lines(str(tmp_path))
    upper = asyncio.run(source.latest(SYSTEM))
    remap = mint(begin(START, 1).remap, upper, 5).remap
    decoding = Decoding(
        Json(schema), partition_kind=source.partition_kind, offset_unit=source.offset_unit
    )
    envelope = Envelope("NONE", schema, output="files", offset_unit=source.offset_unit)
    pipeline = timed_updates(decoding, envelope, TimeTable.of(remap))
    made = run(
        spark, source, source.plan(START, upper), pipeline, envelope.nothing().rows.schema
    ).toArrow()
    assert sorted(made.column("id").to_pylist()) == list(range(300))
    assert set(made.column("_time").to_pylist()) == {5}
    assert set(made.column("_diff").to_pylist()) == {1}


def test_what_is_broken_comes_as_errors(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("kept", "lost"):
        (tmp_path / name).write_text("line\n")
    source = of_lines(str(tmp_path))
    splits = source.plan(START, asyncio.run(source.latest(SYSTEM)))
    (tmp_path / "lost").unlink()
    errors = records(spark, source, splits, NO_OUTPUT).toArrow().to_pylist()
    assert [(row["_partition"], row["_reason"]) for row in errors] == [
        ("lost", "file 'lost' went away before it was read")
    ]
    good = records(spark, source, splits, 0).toArrow().to_pylist()
    assert [(row["_partition"], row["value"]) for row in good] == [("kept", b"line")]


class Stalling(Counter):
    """A source whose upstream does not answer."""

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        raise SourceStalled(f"no answer about {split.partition}")


def test_a_stalled_source_is_known_on_the_driver(spark: SparkSession) -> None:
    splits = [Split(0, 0, 1)]
    with pytest.raises(Exception, match="no answer") as caught:
        records(spark, Stalling(start_ms=NOON), splits, 0).toArrow()
    error = stalled(caught.value)
    assert error is not None
    assert error.message == "no answer about 0"
    assert stalled(ValueError("another")) is None


def test_nothing_to_read_is_an_empty_frame(spark: SparkSession) -> None:
    frame = records(spark, Counter(start_ms=NOON), [], 0)
    assert frame.toArrow().num_rows == 0
    assert frame.columns == ["_partition", "_offset", "_output", "_diff", "counter"]


def test_partitions_that_appear_later(spark: SparkSession, tmp_path: Path) -> None:
    """Two files, one of them only seen by the second binding."""
    (tmp_path / "a").write_text("1\n")
    source = of_lines(str(tmp_path))
    first = asyncio.run(source.latest(SYSTEM))
    remap = mint(begin(START, 1).remap, first, 2).remap
    (tmp_path / "b").write_text("2\n")
    with (tmp_path / "a").open("a") as file:
        file.write("3\n")
    second = asyncio.run(source.latest(SYSTEM, first))
    remap = mint(remap, second, 3).remap
    frame = assign_times(records(spark, source, source.plan(START, second), 0), TimeTable.of(remap))
    found: dict[Partition, Any] = {}
    for row in frame.toArrow().to_pylist():
        found[row["value"]] = row["_time"]
    assert found == {b"1": 2, b"2": 3, b"3": 3}
