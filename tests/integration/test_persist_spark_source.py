"""``spark.read`` and ``spark.readStream`` with the format "noonmark"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark import errors, persist
from noonmark.persist.client import Options
from noonmark.persist.config import Config
from noonmark.persist.read.plan import Query
from noonmark.persist.spark import NoonmarkSource, typed_errors
from noonmark.persist.spark.filters import narrowed
from noonmark.persist.spark.target import Target
from noonmark.rows.schema import Schema
from noonmark.spark import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = Schema.of(id="bigint", name="text", price="double precision")
CONFIG = Config(inline_bytes_max=0, part_rows_max=4, merge_fan_in=1000)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[str, persist.Client, persist.WriteHandle]]:
    """A location whose collection "v" has 20 rows at time 1 and is complete up to 3."""
    options = Options(config=CONFIG, notify_host=None)
    with persist.open(tmp_path / "v", options=options) as client:
        write, _ = client.create_or_load("v", SCHEMA, ("id",))
        write.write([persist.Update((n, f"n{n}", n / 2), 1, 1) for n in range(20)])
        write.write([persist.Update((3, "n3", 1.5), 3, -1), persist.Update((4, "n4", 2.0), 3, 1)])
        write.seal(4).result()
        yield client.blob.url, client, write


def load(spark: SparkSession, url: str, **options: Any) -> DataFrame:
    reader = spark.read.format("noonmark").option("location", url)
    return reader.options(**options).load("v")


def test_a_batch_is_the_contents_at_a_time(spark: SparkSession, place: Any) -> None:
    """Spark finds the source by itself: nothing is registered here."""
    url, _, _ = place
    before = load(spark, url, as_of=2)
    assert before.columns == ["id", "name", "price"]
    assert sorted(row.id for row in before.collect()) == list(range(20))
    assert load(spark, url, as_of="1970-01-01 00:00:00.002Z").count() == 20
    newest = load(spark, url)
    assert newest.columns == before.columns
    assert Counter(row.id for row in newest.collect()) == Counter([*range(20), 4]) - Counter([3])
    assert [row.name for row in newest.where("id = 7 and price < 9").collect()] == ["n7"]
    assert sorted(row.id for row in newest.where("id in (3, 4, 5)").collect()) == [4, 4, 5]
    assert newest.where("id = 99").count() == 0


def test_columns_that_are_asked_for_alone_are_read(spark: SparkSession, place: Any) -> None:
    url, _, _ = place
    some = load(spark, url, columns="price, id", as_of=2)
    assert some.columns == ["price", "id"]
    assert [tuple(row) for row in some.where("id = 3").collect()] == [(1.5, 3)]
    reader = spark.read.format("noonmark").option("location", url).schema("name string")
    assert Counter(row.name for row in reader.load("public.v").collect())["n4"] == 2


def test_changes_say_their_time(spark: SparkSession, place: Any) -> None:
    url, _, _ = place
    found = load(spark, url, changes=True)
    assert found.columns == ["id", "name", "price", "_time", "_diff"]
    rows = {row.id: (row["_time"], row["_diff"]) for row in found.collect()}
    assert rows[4] == (3, 2)
    assert rows[5] == (3, 1)
    changes = load(spark, url, lower=2, upper=4).collect()
    assert {(row.id, row["_time"], row["_diff"]) for row in changes} == {(3, 3, -1), (4, 3, 1)}
    assert load(spark, url, lower=2).count() == 2


def test_registering_is_the_same(spark: SparkSession, place: Any) -> None:
    session = spark.newSession()
    register(session)
    assert NoonmarkSource.name() == "noonmark"
    assert load(session, place[0], as_of=1).count() == 20


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"as_of": 9}, errors.NotYetComplete),
        ({"as_of": "soon"}, errors.ConfigError),
        ({"as_of": 1, "upper": 2}, errors.ConfigError),
        ({"asof": 1}, errors.ConfigError),
        ({"columns": "id, other"}, errors.ConfigError),
        ({"changes": "perhaps"}, errors.ConfigError),
        ({"location": "memory:here"}, errors.ConfigError),
    ],
)
def test_options_that_cannot_be(
    options: dict[str, Any], error: type[Exception], spark: SparkSession, place: Any
) -> None:
    with pytest.raises(error), typed_errors():
        load(spark, place[0], **options).count()


def test_filters_become_ranges_and_keys(place: Any) -> None:
    """Pushed filters narrow what is opened; what is not understood narrows nothing."""
    _, client, _ = place
    found = client.state.collection("v")

    def parts(*filters: Any) -> int:
        query = narrowed(Query(3), found, filters)
        return len(client.reader.plan(found.id, query).parts)

    assert parts() == 6
    assert parts(("EqualTo", ("id",), 7)) == 1
    assert parts(("In", ("id",), (0, 19))) == 2
    assert parts(("GreaterThan", ("id",), 11)) == 3
    assert parts(("GreaterThan", ("id",), 11), ("LessThanOrEqual", ("id",), 13)) == 2
    assert parts(("EqualTo", ("name",), "n3")) <= 4
    assert parts(("EqualTo", ("price",), 1.0)) == 6
    assert parts(("EqualTo", ("id",), None), ("IsNull", ("id",), None)) == 6
    assert parts(("EqualTo", ("id",), 2**70)) == 6
    assert parts(("EqualTo", ("_time",), 1)) == 6
    assert narrowed(Query(3), found, [("EqualTo", ("id",), 7)]).keys == [7]


def test_a_target_needs_a_location_and_a_collection() -> None:
    with pytest.raises(errors.ConfigError, match='"location" is missing'):
        Target.of({"path": "v"})
    with pytest.raises(errors.ConfigError, match='"path" is missing'):
        Target.of({"location": "x"})
    assert Target.of({"location": "x", "path": "v", "as_of": "7", "HOLD": "false"}) == Target(
        "x", None, "v", 7, None, None, hold=False
    )
    assert Target.of({"location": "x", "path": "s.v", "lower": "7"}).changes


def stream(spark: SparkSession, url: str, folder: Path, **options: Any) -> Counter[Any]:
    """Run a stream over all that is there, into files; returns all that it ever wrote."""
    reader = spark.readStream.format("noonmark").option("location", url)
    reader = reader.option("changes", True).options(**options)
    query = (
        reader.load("v")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(folder / "out")).collect()
    return Counter({(row.id, row["_time"]): row["_diff"] for row in rows}) if rows else Counter()


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, place: Any, tmp_path: Path) -> None:
    """Three runs with one checkpoint: nothing twice, nothing lost, also after a compaction."""
    url, client, write = place
    expected = Counter({(n, 1): 1 for n in range(20)} | {(3, 3): -1, (4, 3): 1})
    assert stream(spark, url, tmp_path, hold="false") == expected
    write.write([persist.Update((50, "new", None), 5, 1)])
    write.seal(6).result()
    write.allow_compaction(3).result()
    client.compact("v").result()
    expected[50, 5] = 1
    assert stream(spark, url, tmp_path, hold="false") == expected
    write.allow_compaction(5).result()
    assert stream(spark, url, tmp_path, hold="false") == expected
    write.write([persist.Update((51, "newer", None), 6, 1)])
    write.seal(8).result()
    write.allow_compaction(7).result()
    with pytest.raises(errors.BeforeSince), typed_errors():
        stream(spark, url, tmp_path, hold="false")


def test_a_running_stream_holds_what_it_has_not_delivered(
    spark: SparkSession, place: Any, tmp_path: Path
) -> None:
    url, client, write = place
    seen: list[tuple[int, int]] = []

    def note(batch: DataFrame, _: int) -> None:
        seen.extend((row.id, row["_time"]) for row in batch.where("_time > 3").collect())

    reader = spark.readStream.format("noonmark").option("location", url).option("lower", 3)
    sink = reader.load("v").writeStream.foreachBatch(note)
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for time in (4, 5, 6):
            query.processAllAvailable()
            write.write([persist.Update((time, "more", None), time, 1)])
            write.seal(time + 1).result()
            write.allow_compaction(time).result()
        query.processAllAvailable()
        (hold,) = client.state.holds.values()
        assert 3 < hold.frontier.only() <= 6
        assert client.state.collection("v").since == hold.frontier
    finally:
        query.stop()
    assert sorted(seen) == [(4, 4), (5, 5), (6, 6)]


def test_a_stream_begins_with_what_compaction_left(
    spark: SparkSession, place: Any, tmp_path: Path
) -> None:
    url, client, write = place
    write.allow_compaction(2).result()
    client.compact("v").result()
    expected = Counter({(n, 2): 1 for n in range(20)} | {(3, 3): -1, (4, 3): 1})
    assert stream(spark, url, tmp_path / "all", hold="false") == expected
    later = stream(spark, url, tmp_path / "later", lower=3)
    assert later == Counter({(3, 3): -1, (4, 3): 1})


def test_a_stream_of_plain_rows_is_of_rows_that_only_come(
    spark: SparkSession, place: Any, tmp_path: Path
) -> None:
    url, client, _ = place
    only, _ = client.create_or_load("only", SCHEMA, ("id",))
    only.write([persist.Update((n, "n", None), 1, 2) for n in range(3)])
    only.seal(4).result()
    reader = spark.readStream.format("noonmark").option("location", url)

    def run(name: str) -> list[int]:
        sink = reader.load(name).writeStream.format("memory").queryName(f"plain_{name}")
        sink = sink.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True)
        sink.start().awaitTermination()
        return sorted(row.id for row in spark.table(f"plain_{name}").collect())

    assert run("only") == [0, 0, 1, 1, 2, 2]
    with pytest.raises(errors.UsageError, match="go and change"), typed_errors():
        run("v")
