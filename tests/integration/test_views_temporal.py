"""Views that follow the time, on Spark: rows come and go at their turn, whatever the way of a tick.

Each view is asked at every time, also those at which nothing was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from noonmark import persist
from noonmark.compute.plan.definition import Definition, errors_name
from noonmark.compute.view.audit import audit_view
from noonmark.compute.view.explain import explain_view
from noonmark.compute.view.view import View
from noonmark.persist.client import Client, Options
from noonmark.tvc import EMPTY
from support.serve.host import DatabaseHost
from support.view.queries import TEMPORAL
from support.view.views import SCHEMAS, answer, seeded_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMES, HYDRATED, END = 6, 2, 12
HISTORY = seeded_history(11, TIMES, size=7)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with persist.open(tmp_path, options=Options(notify_host=None)) as opened:
        for name, schema in SCHEMAS.items():
            opened.create_or_load(name, schema)
        yield opened


def write(client: Client, lower: int, upper: int | None) -> None:
    for name in SCHEMAS:
        handle = client.create_or_load(name)[0]
        last = TIMES + END if upper is None else upper
        updates = [u for u in HISTORY[name] if lower <= u.time < last]
        handle.compare_and_append(updates, lower, last).result()
        if upper is None:
            handle.seal(EMPTY).result()


def view_of(client: Client, spark: SparkSession, name: str) -> View:
    return View(client, lambda: spark, Definition.of_sql(name, TEMPORAL[name], SCHEMAS)).start()


def stored(client: Client, name: str, time: int) -> Any:
    """What a view says at a time: its rows, or "error"."""
    failed = client.create_or_load(errors_name(name))[1].snapshot(time).result().counts()
    if failed:
        return "error"
    return dict(client.create_or_load(name)[1].snapshot(time).result().counts())


def wrong(client: Client, view: View, until: int) -> list[Any]:
    plan = view.definition.plan
    return [
        (view.name, time, got, want)
        for time in range(view.hydrated_at, until)
        if (got := stored(client, view.name, time)) != (want := answer(plan, HISTORY, time))
    ]


@pytest.mark.parametrize("name", ["halves", "window_fails"])
def test_large_changes_have_their_turns(client: Client, spark: SparkSession, name: str) -> None:
    write(client, 0, HYDRATED + 1)
    view = view_of(client, spark, name)
    view.task_bytes_max = 0
    hydrated = view.tick()
    write(client, HYDRATED + 1, TIMES)
    by_spark = view.tick()
    view = view_of(client, spark, name)  # taken up again, and small from here on
    write(client, TIMES, TIMES + 2)
    view.tick()
    write(client, TIMES + 2, END)
    view.tick()
    assert wrong(client, view, END) == []
    assert hydrated is not None
    assert by_spark is not None
    assert (hydrated.strategy, by_spark.strategy) == ("hydrate", "tasks")
    assert audit_view(view, END - 1) == []


def test_nothing_due_is_no_job_and_what_is_due_is_one(client: Client, spark: SparkSession) -> None:
    write(client, 0, TIMES)
    view = view_of(client, spark, "sliding")
    assert "at its turn" in explain_view(view)
    view.tick()
    times = range(TIMES, END)
    strategies = {}
    for time in times:
        before = stored(client, "sliding", time - 1)
        write(client, time, time + 1)
        due = view.is_due(time)
        record = view.tick()
        assert record is not None
        strategies[time] = record.strategy
        # A row that came at its turn and goes at the same time has a job, and is no change.
        assert (record.strategy == "delta") == due
        assert due or stored(client, "sliding", time) == before
        assert record.jobs == (1 if due else 0)
    assert {"idle", "delta"} == set(strategies.values())
    assert wrong(client, view, END) == []


def test_of_what_has_ended_all_turns_are_known(client: Client, spark: SparkSession) -> None:
    write(client, 0, TIMES)
    view = view_of(client, spark, "until")
    view.tick()
    write(client, TIMES, None)
    view.tick()
    assert view.upper.only() is None
    assert wrong(client, view, END) == []
    assert view.turns.next() is None
    assert view.tick() is None


WINDOW = """
    create materialized view recent as select page, count(*) as n from visit
    where mz_now() >= at and mz_now() < at + interval '4 seconds' group by page
"""


def test_a_window_slides_for_a_client_though_nothing_is_written(
    tmp_path: Path, spark: SparkSession
) -> None:
    host = DatabaseHost(str(tmp_path / "served"), spark)
    try:
        with psycopg.connect(host.dsn(), autocommit=True) as client:
            client.execute("create table visit (page text, at timestamptz)")
            client.execute(WINDOW)
            client.execute(
                "insert into visit values ('home', now()), ('old', now() - interval '1 h')"
            )
            ends = client.execute(
                "select mz_timestamp(at + interval '4 s') from visit where page = 'home'"
            ).fetchone()
            assert ends is not None
            seen: list[Any] = []
            with client.cursor() as cursor:
                began = f"subscribe (select page, n from recent) as of {ends[0] - 4000}"
                for row in cursor.stream(began):
                    seen.append(row)
                    if row[1] < 0:
                        break
            assert [row[1:] for row in seen] == [(1, "home", 1), (-1, "home", 1)]
            assert seen[-1][0] == ends[0]
            assert client.execute("select * from recent").fetchall() == []
            assert client.execute("audit materialized view recent").fetchall() == []
    finally:
        host.close()
