"""Views whose clock steps back and leaps ahead, and whose history is made longer and shorter.

Law: no tick fails for it, frontiers only advance, and more history is kept from when it is asked
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from noonmark import persist
from noonmark.compute.plan.definition import Definition
from noonmark.compute.view.audit import audit_view
from noonmark.compute.view.view import View
from noonmark.persist.client import Client, Options
from noonmark.persist.log.state import State
from noonmark.rows.schema import Schema
from noonmark.storage.transaction import Transaction
from noonmark.tvc import Antichain, Update
from support.store.clocks import SetClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMAS = {"t": Schema.of(k="bigint", v="bigint"), "u": Schema.of(k="bigint", w="bigint")}
#: Two that share an arrangement, one over everything, and one over a view.
SQL = {
    "sums": "select k, sum(v) as s, min(v) as least from t group by k",
    "pairs": "select t.k, v, w from t join u on t.k = u.k",
    "more": "select t.k, count(*) as n from t join u on t.k = u.k group by t.k",
}
START_MS = 1_700_000_000_000
STEPS = 10
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> SetClock:
    return SetClock(now_ms=START_MS)


@pytest.fixture
def client(tmp_path: Path, clock: SetClock) -> Iterator[Client]:
    with persist.open(tmp_path, options=Options(notify_host=None), clock=clock) as opened:
        for name, schema in SCHEMAS.items():
            opened.create_or_load(name, schema, frontier=START_MS)
        yield opened


def write(client: Client, random: Random, time: int) -> None:
    """Rows at a time of the timeline, which never goes back."""
    txn = Transaction(client)
    for name in SCHEMAS:
        handle, read = client.create_or_load(name)
        rows = [Update((random.randrange(3), random.randrange(9)), time, 1)]
        txn.append(handle, rows if random.random() < 0.7 else [], read.upper, time + 1)
        txn.let_history_go(handle.collection, Antichain.of(max(START_MS, time - 2 * HOUR_MS)))
    txn.commit().result()


def check_forward(before: State, after: State) -> None:
    for ref, old in before.collections.items():
        new = after.collections[ref]
        assert new.upper.at_or_beyond(old.upper)
        assert new.since.at_or_beyond(old.since)


def test_a_view_goes_on_whatever_the_clock_does(
    client: Client, clock: SetClock, spark: SparkSession
) -> None:
    random, time = Random(1), START_MS
    write(client, random, time)
    views = [
        View(client, lambda: spark, Definition.of_sql(name, sql, SCHEMAS)).start()
        for name, sql in SQL.items()
    ]
    for view in views:
        view.tick()
    for step in range(STEPS):
        clock.wall_ms += random.choice((-24, -1, 1, 1, 2, 24)) * HOUR_MS // random.choice((1, 7))
        time = max(time + 1, clock.wall_ms)
        for view in views:
            if random.random() < 0.4:
                view.retain_ms = random.choice((0, HOUR_MS // 6, HOUR_MS, 48 * HOUR_MS))
        before = client.state
        write(client, random, time)
        for view in random.sample(views, len(views)):
            assert view.tick() is not None, f"step {step}"
        check_forward(before, client.state)
    assert audit_view(views[0], time) == []


def test_more_history_is_kept_from_now_on(
    client: Client, clock: SetClock, spark: SparkSession
) -> None:
    random = Random(3)
    write(client, random, START_MS)
    view = View(client, lambda: spark, Definition.of_sql("sums", SQL["sums"], SCHEMAS)).start()
    view.tick()
    kept = []
    for minutes in range(20, 200, 20):
        clock.wall_ms = START_MS + minutes * 60_000
        write(client, random, clock.wall_ms)
        assert view.tick() is not None
        view.retain_ms = HOUR_MS  # from ten minutes
        kept.append((clock.wall_ms - (view.since.only() or 0)) // 60_000)
    assert kept[0] == 10
    assert kept[1:] == sorted(kept[1:])
    assert kept[-1] == 60
