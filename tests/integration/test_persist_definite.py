"""Every way to read a collection gives its definite error, at its times and at no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from noonmark import persist
from noonmark.cli import app
from noonmark.errors import BelowUpper, DefiniteError, FrontierRegression
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import Failure
from noonmark.persist.read.plan import Query
from noonmark.persist.spark.read import changes_frame, snapshot_frame
from noonmark.rows.schema import Schema
from noonmark.storage import Storage
from noonmark.tvc import Antichain

FAILURE = Failure("55000", "column x was dropped", "The detail.", "Run ALTER SOURCE.", "t")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection with a row for each time from 1 to 9, in error over [4, 7)."""
    with persist.open(tmp_path / "location") as client:
        write, _ = client.create_or_load("t", Schema.of(a="int"))
        for time in range(1, 10):
            txn = client.atomic()
            if time in (4, 7):
                txn.add(c.SetError(write.collection, time, FAILURE if time == 4 else None))
            txn.append(write, [persist.Update((time,), time, 1)], time if time > 1 else 0, time + 1)
            txn.commit().result()
    return tmp_path / "location"


@pytest.fixture
def client(folder: Path) -> Iterator[persist.Client]:
    with persist.open(folder) as opened:
        yield opened


def rows(time: int) -> list[int]:
    return list(range(1, time + 1))


@pytest.mark.parametrize("time", range(1, 10))
def test_a_snapshot(client: persist.Client, time: int) -> None:
    _, read = client.create_or_load("t")
    if not 4 <= time < 7:
        assert sorted(read.snapshot(time).result().rows()) == [(n,) for n in rows(time)]
        return
    with pytest.raises(DefiniteError) as refused:
        read.snapshot(time).result()
    error = refused.value
    assert (error.sqlstate, error.message, error.hint) == ("55000", FAILURE.message, FAILURE.hint)
    assert "no rows from time 4 on" in (error.detail or "")
    kept = read.snapshot(time, despite_error=True).result().rows()
    assert sorted(kept) == [(n,) for n in rows(time)]


def test_a_listen_gives_what_was_before_and_then_the_error(client: persist.Client) -> None:
    _, read = client.create_or_load("t")
    seen, progress = [], []
    with pytest.raises(DefiniteError) as refused:  # noqa: PT012 - the steps before it matter
        for step in read.listen(1):
            seen += [update.data[0] for update in step.updates]
            progress.append(step.progress.only())
    assert (seen, progress[-1]) == ([2, 3], 4)
    assert refused.value.fields["time"] == 4
    for step in read.listen(7):
        assert sorted(u.data[0] for u in step.updates) == [8, 9]
        break


def test_a_listen_over_errors_goes_on_where_there_are_rows_again(client: persist.Client) -> None:
    write, read = client.create_or_load("t")
    client.submit((c.SetError(write.collection, 10, FAILURE),)).result()
    gone = [persist.Update((1,), 11, -1), persist.Update((99,), 11, 1)]
    write.compare_and_append(gone, 10, 12).result()
    opened = read.open_listen(1, hold=False, over_errors=True)
    listen = client.runtime.submit(opened).result()

    def following() -> tuple[Counter[tuple[int, int]], int | None]:
        step = client.runtime.submit(listen.next()).result()
        assert step is not None
        return (
            Counter({(u.data[0], u.time): u.diff for u in step.updates}),
            step.progress.only(),
        )

    assert following() == (Counter({(2, 2): 1, (3, 3): 1}), 4)
    # What happened while there were no rows is told at the time at which there are again.
    assert following() == (Counter({(4, 7): 1, (5, 7): 1, (6, 7): 1, (7, 7): 1}), 8)
    assert following() == (Counter({(8, 8): 1, (9, 9): 1}), 10)
    for _ in range(2):
        with pytest.raises(DefiniteError):
            following()
    back = [persist.Update((99,), 14, -1)]
    txn = client.atomic().add(c.SetError(write.collection, 14, None))
    txn.append(write, back, 12, 15).commit().result()
    # What came and went meanwhile is not told at all.
    assert following() == (Counter({(1, 14): -1}), 15)


def test_changes_are_refused_if_one_of_their_times_is(client: persist.Client) -> None:
    number = client.state.names["t"]
    for after, as_of in ((0, 3), (6, 9), (3, 3)):
        client.reader.plan(number, Query(as_of, after=after))
    for after, as_of in ((0, 4), (3, 5), (5, 9), (0, 9)):
        with pytest.raises(DefiniteError):
            client.reader.plan(number, Query(as_of, after=after))


def test_a_subscription_of_storage(client: persist.Client) -> None:
    storage = Storage(client)
    read, write = storage.acquire_capabilities("t")
    storage.drop(write)
    seen = []
    with pytest.raises(DefiniteError):  # noqa: PT012 - the steps before it matter
        for step in storage.subscribe_at(storage.downgrade(read, Antichain.of(2))):
            seen += [update.data[0] for update in step.updates]
    assert seen == [1, 2, 3]


def test_the_command_line(folder: Path) -> None:
    run = CliRunner().invoke
    found = run(app, ["shard", "dump", "t", "--as-of", "5", "--data", str(folder)])
    assert found.exit_code != 0
    assert FAILURE.message in str(found.exception) + found.output
    assert run(app, ["shard", "dump", "t", "--as-of", "3", "--data", str(folder)]).exit_code == 0
    shown = run(app, ["shard", "show", "t", "--data", str(folder)])
    assert FAILURE.message in shown.output


def test_spark(folder: Path, spark: SparkSession, tmp_path: Path) -> None:
    url = str(folder)
    assert snapshot_frame(spark, url, "t", 3).count() == 3
    with pytest.raises(DefiniteError):
        snapshot_frame(spark, url, "t", 4)
    with pytest.raises(DefiniteError):
        changes_frame(spark, url, "t", 2, 9)
    given = spark.read.format("noonmark").option("location", url)
    assert given.option("as_of", 7).load("t").count() == 7
    with pytest.raises(PySparkException, match=FAILURE.message):
        given.option("as_of", 5).load("t").count()
    stream = spark.readStream.format("noonmark").option("location", url).load("t")
    query = (
        stream.writeStream.format("memory")
        .queryName("seen")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        with pytest.raises(PySparkException, match=FAILURE.message):
            query.processAllAvailable()
    finally:
        query.stop()


def test_an_error_begins_at_a_time_that_is_not_complete(client: persist.Client) -> None:
    number = client.state.names["t"]
    with pytest.raises(BelowUpper):
        client.submit((c.SetError(number, 9, FAILURE),)).result()
    client.submit((c.SetError(number, 12, FAILURE),)).result()
    with pytest.raises(FrontierRegression):
        client.submit((c.SetError(number, 11, None),)).result()
    # Like an update it is durable before it is sealed, and holds from its time on.
    write, read = client.create_or_load("t")
    write.seal(14).result()
    assert len(read.snapshot(11).result().rows()) == 9
    with pytest.raises(DefiniteError):
        read.snapshot(12).result()


def test_compaction_forgets_an_error_that_is_over(client: persist.Client) -> None:
    write, read = client.create_or_load("t")
    write.allow_compaction(5).result()
    assert [e.time for e in client.state.collection("t").errors] == [4, 7]
    with pytest.raises(DefiniteError):
        read.snapshot(5).result()
    write.allow_compaction(8).result()
    assert client.state.collection("t").errors == ()
    client.compact("t").result()
    assert sorted(read.snapshot(8).result().rows()) == [(n,) for n in rows(8)]
