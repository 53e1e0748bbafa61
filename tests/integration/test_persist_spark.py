"""The laws of `noonmark.persist.spark`: frames against the in-process reader, on one location."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from noonmark import errors, persist
from noonmark.persist.client import Options
from noonmark.persist.config import Config
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.spark import (
    SparkCompactor,
    changes_frame,
    compact_on_spark,
    snapshot_frame,
    typed_errors,
    write_frame,
)
from noonmark.rows import types as t
from noonmark.rows.arrow import conform, from_table
from noonmark.rows.schema import Column, Schema
from support.store.rows import ALL_TYPES, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Tiny parts, so that a few rows are many parts, and no inline batch unless a test wants one.
TINY = Config(inline_bytes_max=0, part_rows_max=4, merge_rows_max=3, merge_fan_in=1000)
INLINE = Config(part_rows_max=4, merge_fan_in=1000)
ORDERS = Schema.of(id="bigint not null", item="text", price="double precision")


def opened(path: Path | str, config: Config) -> persist.Client:
    return persist.open(path, options=Options(config=config, notify_host=None))


def add(row: tuple[Any, ...], time: int, diff: int = 1) -> persist.Update:
    return persist.Update(row, time, diff)


def bits(table: pa.Table, schema: Schema) -> list[str]:
    """The rows as text that tells 0.0 from -0.0, and takes NaN for NaN; with time and diff."""
    extra = [table[name].to_pylist() for name in (TIME, DIFF) if name in table.column_names]
    data = conform(table.select(list(schema.names)), schema)
    rows = from_table(data, schema)
    return [repr(row) for row in (zip(rows, *extra, strict=True) if extra else rows)]


def frame_rows(frame: DataFrame, schema: Schema) -> Counter[str]:
    """The rows, with their numbers of copies."""
    return Counter(bits(frame.toArrow(), schema))


def update_rows(frame: DataFrame, schema: Schema) -> Counter[str]:
    """Updates: at most one of each row and time."""
    table = frame.toArrow()
    found = Counter(bits(table.drop_columns([DIFF]), schema))
    assert set(found.values()) <= {1}
    return Counter(bits(table, schema))


def snapshot_rows(read: persist.ReadHandle, as_of: int) -> Counter[str]:
    """What the in-process reader says."""
    counts: Counter[str] = Counter()
    table = read.snapshot(as_of).result().to_arrow()
    rows = bits(table.drop_columns([DIFF]), read.codec.schema)
    for row, diff in zip(rows, table[DIFF].to_pylist(), strict=True):
        counts[row] += diff
    return +counts


def listened(client: persist.Client, name: str, lower: int, upper: int) -> Counter[str]:
    """What the in-process reader says of changes."""
    found = client.state.collection(name)
    plan = client.reader.plan(found.id, Query(as_of=upper - 1, after=lower - 1))
    tables = list(client.iterate(client.reader.contents(plan)))
    return Counter(row for table in tables for row in bits(table, found.schema))


def plan_of(frame: DataFrame) -> Plan:
    plan: Plan = vars(frame)["_noonmark_plan"]
    return plan


CHECK: Any = {
    "deadline": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}
GROUPS = [ALL_TYPES[at::4] for at in range(4)]
UPPER = 4
#: From this time on rows have one more column.
EVOLVED = 2


@st.composite
def histories(draw: st.DrawFn, types: tuple[t.SqlType, ...]) -> list[list[persist.Update]]:
    """Batches of updates at times 0 to 3; no row is retracted that is not there."""
    row = st.tuples(*(st.none() | values(kind) for kind in types))
    pool = draw(st.lists(row, min_size=3, max_size=6))
    present: Counter[int] = Counter()
    batches = []
    for time in range(UPPER):
        batch = []
        for at in draw(st.lists(st.integers(0, len(pool) - 1), max_size=6)):
            diff = draw(st.sampled_from([1, 2, -present[at]] if present[at] else [1, 2]))
            later = (draw(st.none() if diff < 0 else st.sampled_from([None, "x"])),)
            batch.append(add(pool[at] + (later if time >= EVOLVED else ()), time, diff))
            present[at] += diff if later == (None,) else 0
        batches.append(batch)
    return batches


@pytest.mark.parametrize("at", range(len(GROUPS)))
@pytest.mark.parametrize("config", [TINY, INLINE], ids=["parts", "inline"])
def test_frames_are_what_the_reader_says(
    at: int, config: Config, spark: SparkSession, tmp_path: Path
) -> None:
    """NULL, NaN, -0.0, infinities, nesting, retractions, several times, an evolved schema."""
    types = GROUPS[at]
    schema = Schema(tuple(Column(f"c{n}", kind) for n, kind in enumerate(types)))
    number = iter(range(1000))

    # A failure is not made smaller: each try takes seconds.
    @settings(max_examples=2, derandomize=True, database=None, **CHECK)
    @given(histories(types))
    def check(batches: list[list[persist.Update]]) -> None:
        with opened(tmp_path / str(next(number)), config) as client:
            write, read = client.create_or_load("v", schema, ("c0",) if at % 2 else ())
            for time, batch in enumerate(batches):
                if time == EVOLVED:
                    client.evolve("v", (Column("later", t.Text()),)).result()
                    write, read = client.create_or_load("v")
                write.write(batch)
                write.seal(time + 1).result()
            newest = client.state.collection("v").schema
            for as_of in (0, 1, UPPER - 1):
                frame = snapshot_frame(spark, client, "v", as_of)
                assert frame_rows(frame, newest) == snapshot_rows(read, as_of)
            for lower in (0, 1):
                frame = changes_frame(spark, client, "v", lower, UPPER)
                assert update_rows(frame, newest) == listened(client, "v", lower, UPPER)

    check()


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[tuple[persist.Client, persist.WriteHandle]]:
    """A location with 100 orders at time 1, in 25 parts, in a folder with a blank in its name."""
    with opened(tmp_path / "a b", TINY) as client:
        write, _ = client.create_or_load("orders", ORDERS, ("id",))
        write.write([add((n, f"item {n}", n / 4), 1) for n in range(100)])
        write.seal(2).result()
        yield client, write


def test_a_scan_opens_the_parts_it_needs(spark: SparkSession, orders: Any) -> None:
    client, write = orders
    everything = snapshot_frame(spark, client, "orders", 1)
    assert len(everything.inputFiles()) == 25
    few = snapshot_frame(spark, client, "orders", 1, where={"id": (10, 17)}, columns=["item"])
    assert len(few.inputFiles()) == 3
    assert sorted(few.toArrow()["item"].to_pylist()) == [f"item {n}" for n in range(10, 18)]
    write.write([add((10, "item 10", 2.5), 2, -1)])
    write.seal(3).result()
    merged = snapshot_frame(spark, client, "orders", 2, where={"id": (10, 17)}, columns=["item"])
    assert len(plan_of(merged).parts) == 4
    assert sorted(merged.toArrow()["item"].to_pylist()) == [f"item {n}" for n in range(11, 18)]
    assert snapshot_frame(spark, client, "orders", 1).count() == 100


def test_a_few_changed_keys_in_many_parts(spark: SparkSession, orders: Any) -> None:
    """Also a row replaced at one time, where the diffs of a key sum to zero."""
    client, write = orders
    write.write([add((3, "item 3", 0.75), 2, -1), add((3, "other", -0.0), 2)])
    write.write([add((4, "item 4", 1.0), 2), add((70, "item 70", 17.5), 2, -1)])
    write.seal(3).result()
    read = client.create_or_load("orders")[1]
    frame = snapshot_frame(spark, client, "orders", 2)
    assert frame_rows(frame, ORDERS) == snapshot_rows(read, 2)
    some = snapshot_frame(spark, client, "orders", 2, columns=["price"], where={"id": (2, 5)})
    assert sorted(some.toArrow()["price"].to_pylist()) == [-0.0, 0.5, 1.0, 1.0, 1.25]
    before = snapshot_frame(spark, client, "orders", 1)
    assert before.count() == 100


def test_times_that_cannot_be_read(spark: SparkSession, orders: Any) -> None:
    client, write = orders
    with pytest.raises(errors.NotYetComplete):
        snapshot_frame(spark, client, "orders", 2)
    with pytest.raises(errors.NotYetComplete):
        changes_frame(spark, client, "orders", 0, 3)
    with pytest.raises(errors.UsageError):
        changes_frame(spark, client, "orders", 2, 1)
    write.allow_compaction(1).result()
    with pytest.raises(errors.BeforeSince):
        snapshot_frame(spark, client, "orders", 0)
    with pytest.raises(errors.BeforeSince):
        changes_frame(spark, client, "orders", 1, 2)
    assert changes_frame(spark, client.blob.url, "orders", 2, 2).count() == 0


@pytest.mark.parametrize("place", [4, 60, -200, -12])
@pytest.mark.parametrize("retracted", [False, True])
def test_a_flipped_bit_is_an_error_that_names_the_part(
    place: int, retracted: bool, spark: SparkSession, orders: Any, tmp_path: Path
) -> None:
    """A page header, a page body, the page index, the footer."""
    client, write = orders
    part = client.state.collection("orders").batches[0].parts[7]
    if retracted:
        write.write([add((28, "item 28", 7.0), 2, -1)])
    write.seal(3).result()
    frame = snapshot_frame(spark, client, "orders", 2)
    stored = tmp_path / "a b" / part.key
    data = bytearray(stored.read_bytes())
    data[place] ^= 0x10
    stored.write_bytes(data)
    with pytest.raises(errors.Corrupt, match=part.key), typed_errors():
        frame.toArrow()
    stored.unlink()
    with pytest.raises(errors.MissingObject, match=part.key), typed_errors():
        snapshot_frame(spark, client, "orders", 2, where={"id": (27, 30)}).toArrow()


def order_updates(spark: SparkSession, count: int, time: int, parts: int) -> DataFrame:
    return spark.range(0, count, 1, parts).selectExpr(
        "(id * 7) % 1000 as id",
        "concat('item ', id) as item",
        "cast(null as double) as price",
        f"{time}L as _time",
        "1L as _diff",
    )


def test_a_frame_is_written_whole(spark: SparkSession, tmp_path: Path) -> None:
    """Few rows travel inline, many as runs, with ranges as one run; each is one commit."""
    with opened(tmp_path / "w", Config(part_rows_max=100, inline_bytes_max=8192)) as client:
        write, read = client.create_or_load("orders", ORDERS, ("id",))
        before = client.state.seqno
        write_frame(order_updates(spark, 20, 0, 2), client, write, 0, 1).result()
        assert [b.inline is not None for b in client.state.collection("orders").batches] == [True]
        write_frame(order_updates(spark, 600, 1, 2), client, write, 1, 2, ranges=0).result()
        write_frame(order_updates(spark, 600, 2, 2), client, write, 2, 3, ranges=3).result()
        assert client.state.seqno == before + 3
        one_run = client.state.collection("orders").batches[-1].parts
        assert len(one_run) >= 6
        ends = [part.columns[0][:2] for part in one_run]
        assert all(one[1] <= other[0] for one, other in pairwise(ends))
        expected = Counter(
            (n * 7 % 1000, f"item {n}", None) for c in (20, 600, 600) for n in range(c)
        )
        assert read.snapshot(2).result().counts() == expected
        frame = snapshot_frame(spark, client, "orders", 2)
        assert frame_rows(frame, ORDERS) == snapshot_rows(read, 2)


def test_a_refused_frame_changes_nothing(spark: SparkSession, orders: Any) -> None:
    client, write = orders
    before = client.state.collection("orders")
    with pytest.raises(errors.FrontierRegression):
        write_frame(order_updates(spark, 50, 5, 2), client, write, 5, 6).result()
    with pytest.raises(errors.NotBelowFrontier):
        write_frame(order_updates(spark, 50, 5, 2), client, write, 2, 4)
    nothing = order_updates(spark, 5, 2, 1).selectExpr("null as id", "item", "_time", "_diff")
    with pytest.raises(errors.SchemaMismatch, match='"id" violates its NOT NULL'):
        write_frame(nothing, client, write, 2, 3)
    with pytest.raises(errors.SchemaMismatch, match="_diff"):
        write_frame(order_updates(spark, 5, 2, 1).drop("_diff"), client, write, 2, 3)
    with opened_reader(client) as reader, pytest.raises(errors.ReadOnly):
        write_frame(order_updates(spark, 5, 2, 1), reader, write, 2, 3)
    assert client.state.collection("orders") == before


def opened_reader(client: persist.Client) -> persist.Client:
    return persist.open(client.blob.url, options=Options(mode="independent"))


def test_compaction_by_executors(spark: SparkSession, orders: Any) -> None:
    """Retractions vanish, the parts of all ranges are one run, contents stay."""
    client, write = orders
    write.write([add((n, f"item {n}", n / 4), 2, -1) for n in range(0, 100, 3)])
    write.write([add((n, "new", None), 2) for n in range(40, 50)])
    write.seal(3).result()
    read = client.create_or_load("orders")[1]
    expected = snapshot_rows(read, 2)
    write.allow_compaction(2).result()
    compact_on_spark(spark, client, "orders").result()
    (batch,) = client.state.collection("orders").batches
    assert batch.rows == 66 + 10
    assert len(batch.parts) > 10
    assert snapshot_rows(read, 2) == expected
    assert frame_rows(snapshot_frame(spark, client, "orders", 2), ORDERS) == expected
    lows = [part.columns[0][0] for part in batch.parts]
    assert lows == sorted(lows)


def test_upkeep_gives_big_compactions_to_its_engine(spark: SparkSession, orders: Any) -> None:
    client, write = orders
    write.write([add((1000, "more", None), 2)])
    write.seal(3).result()
    sizes = []

    class Engine(SparkCompactor):
        async def rewrite(self, collection: Any, batches: Any) -> Any:
            sizes.append(sum(batch.bytes for batch in batches))
            return await super().rewrite(collection, batches)

    client.upkeep.compactor = Engine(spark, client, bytes_min=10**9)
    client.compact("orders").result()
    assert sizes == []
    write.write([add((1001, "more", None), 3)])
    write.seal(4).result()
    client.upkeep.compactor = Engine(spark, client, bytes_min=1000)
    client.compact("orders").result()
    assert len(sizes) == 1
    assert sizes[0] >= 1000
    assert snapshot_frame(spark, client, "orders", 3).count() == 102


def test_a_location_in_memory_is_read_and_written_through_the_driver(spark: SparkSession) -> None:
    with opened("memory:test-persist-spark", TINY) as client:
        write, read = client.create_or_load("orders", ORDERS, ("id",))
        write_frame(order_updates(spark, 20, 0, 2), client, write, 0, 1).result()
        write.write([add((0, "item 0", None), 1, -1), add((1, "twice", 1.5), 1, 2)])
        write.seal(2).result()
        frame = snapshot_frame(spark, client, "orders", 1)
        assert frame_rows(frame, ORDERS) == snapshot_rows(read, 1)
        changes = changes_frame(spark, client, "orders", 1, 2)
        assert update_rows(changes, ORDERS) == listened(client, "orders", 1, 2)
        compact_on_spark(spark, client, "orders").result()
        assert snapshot_frame(spark, client, "orders", 1).count() == 21


def test_more_retracted_than_written_is_an_error(spark: SparkSession, orders: Any) -> None:
    client, write = orders
    write.write([add((200, "never there", None), 2, -1)])
    write.seal(3).result()
    with pytest.raises(errors.IntegrityError, match="negative multiplicity"), typed_errors():
        snapshot_frame(spark, client, "orders", 2).count()


def test_dates_before_the_gregorian_calendar_are_not_shifted(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = Schema.of(id="bigint", day="date", at="timestamp", instant="timestamptz")
    moment = dt.datetime(1000, 2, 28, 1, 2, 3, 4)
    row = (1, moment.date(), moment, moment.replace(tzinfo=dt.UTC))
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    with opened(tmp_path / "days", TINY) as client:
        write, read = client.create_or_load("days", schema, ("id",))
        write.write([add(row, 0)])
        write.seal(1).result()
        expected = snapshot_rows(read, 0)
        for session in (spark, other):
            frame = snapshot_frame(session, client, "days", 0)
            assert frame_rows(frame, schema) == expected
