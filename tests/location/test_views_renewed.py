"""Views whose text another version understood otherwise: renewed at one time, then as ever.

The other version is played by another query under the same text: what a version reads in a text
reaches the view as its plan and in no other way (`Definition.meaning`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.compute.plan.definition import Definition
from noonmark.compute.view.view import View
from noonmark.tvc import Update
from support.view.views import SCHEMAS, History, answer, histories, seeded_history
from support.view.walk import Walker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How far the history is known when the other version comes, and how far it goes.
BEFORE, TIMES = 4, 9
#: What a text meant, and what it means: one of every kind of state that a view may keep.
MEANT = {
    "same": ("SELECT k, sum(v) AS n FROM l GROUP BY k",) * 2,
    "linear": ("SELECT k, v + 1 AS n FROM l", "SELECT k, v + 2 AS n FROM l"),
    "sums": (
        "SELECT k, count(*) AS n, sum(v) AS total FROM l GROUP BY k",
        "SELECT k, count(v) AS n, sum(v + 1) AS total FROM l GROUP BY k",
    ),
    "shared": (
        "SELECT k, n FROM (SELECT k, count(*) AS n, sum(v) AS s FROM l GROUP BY k) t WHERE n > 1",
        "SELECT k, n FROM (SELECT k, count(*) AS n, sum(v) AS s FROM l GROUP BY k) t WHERE n < 3",
    ),
    "join": (
        "SELECT l.k, count(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY l.k",
        "SELECT l.k, count(*) AS n FROM l LEFT JOIN r ON l.k = r.k AND w > 0 GROUP BY l.k",
    ),
    "bounds": (
        "SELECT l.k, n FROM l JOIN (SELECT w, count(*) AS n FROM r GROUP BY w) t ON l.v < t.w",
        "SELECT l.k, n FROM l JOIN (SELECT w, count(*) AS n FROM r GROUP BY w) t ON l.v > t.w",
    ),
    "best": (
        "SELECT DISTINCT v FROM l ORDER BY v DESC LIMIT 2",
        "SELECT DISTINCT v FROM l ORDER BY v LIMIT 2",
    ),
    "soon": (
        "SELECT k, v, s FROM l WHERE mz_now() <= v + 6",
        "SELECT k, v, s FROM l WHERE mz_now() <= v + 5",
    ),
    "fails": (
        "SELECT k, sum(6 / v) AS ratio FROM l GROUP BY k",
        "SELECT k, sum(6 / (v - 1)) AS ratio FROM l GROUP BY k",
    ),
}


def meant(name: str) -> Definition:
    """The view as the other version understood it."""
    return Definition.of_sql(name, MEANT[name][0], SCHEMAS)


def means(name: str) -> Definition:
    """The view as this one does: of the same text."""
    return replace(Definition.of_sql(name, MEANT[name][1], SCHEMAS), sql=MEANT[name][0])


def later(history: History) -> History:
    """Times begin at 1, and 0 is before everything."""
    return {name: [Update(u.data, u.time + 1, u.diff) for u in of] for name, of in history.items()}


def stored(path: Path, history: History) -> None:
    """What the other version leaves."""
    walker = Walker(path, SCHEMAS, {})
    walker.write(history, 2)
    for name in MEANT:
        walker.create(meant(name))
    walker.write(history, BEFORE)
    while any(walker.upper(name) < BEFORE for name in MEANT):
        assert walker.tick_all() == {}
    walker.stop()


def taken_up(path: Path) -> Walker:
    """As this version finds it."""
    walker = Walker.found(path, SCHEMAS)
    for name in MEANT:
        walker.take_up(means(name))
    return walker


def to_the_end(walker: Walker) -> None:
    while any(walker.upper(name) <= TIMES for name in MEANT):
        assert walker.tick_all() == {}


def check(walker: Walker, history: History) -> None:
    for name in MEANT:
        for time in range(2, TIMES + 1):
            plan = (meant(name) if time < BEFORE else means(name)).plan
            assert walker.at(name, time) == answer(plan, history, time), (name, time)


@settings(max_examples=12, deadline=None)
@given(histories(TIMES, size=3).map(later), st.booleans())
def test_a_view_is_what_it_was_and_then_what_its_text_means(
    tmp_path_factory: pytest.TempPathFactory, history: History, at_once: bool
) -> None:
    """What is new comes at one time or at several; and a second version finds nothing to do."""
    path = tmp_path_factory.mktemp("renewed")
    stored(path, history)
    walker = taken_up(path)
    assert {name for name, view in walker.views.items() if view.owned.is_foreign} == {
        name for name, (before, after) in MEANT.items() if before != after
    }
    for upper in (TIMES + 1,) if at_once else (BEFORE + 1, BEFORE + 3, TIMES + 1):
        walker.write(history, upper)
        assert walker.tick_all() == {}
    to_the_end(walker)
    assert not any(view.owned.is_foreign for view in walker.views.values())
    check(walker, history)
    walker.stop()
    again = taken_up(path)
    assert not any(view.owned.is_foreign for view in again.views.values())
    again.stop()


@pytest.mark.parametrize("rounds", range(3))
def test_a_process_that_ends_between_the_steps_loses_nothing(tmp_path: Path, rounds: int) -> None:
    history = later(seeded_history(rounds, TIMES))
    stored(tmp_path, history)
    for steps in range(rounds + 1):
        walker = taken_up(tmp_path)
        walker.write(history, BEFORE + 1)
        for _ in range(steps):
            assert walker.tick_all() == {}
        walker.stop()
    walker = taken_up(tmp_path)
    walker.write(history, TIMES + 1)
    to_the_end(walker)
    check(walker, history)
    walker.stop()


@pytest.mark.spark
def test_large_views_are_renewed_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    history = later(seeded_history(5, TIMES))
    stored(tmp_path, history)
    walker = taken_up(tmp_path)
    walker.write(history, BEFORE + 1)
    for name in MEANT:
        view = View(walker.client, lambda: spark, means(name)).start()
        view.task_bytes_max = 0
        records = []
        while view.upper.only() == BEFORE:
            record = view.tick()
            assert record is not None
            records.append(record.strategy)
        assert (records[-1] == "renew") == (MEANT[name][0] != MEANT[name][1])
    walker.write(history, TIMES + 1)
    to_the_end(walker)
    check(walker, history)
    walker.stop()
