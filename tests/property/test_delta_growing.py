"""Aggregates and top-k of what only grows: maintained by their own rows, exact whatever comes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.growing import keeps_itself
from noonmark.compute.plan.pushdown import operators
from noonmark.compute.view.explain import explain_view
from noonmark.tvc import Update
from support.house.counts import counted
from support.view.views import KEYS, SCHEMAS, TEXTS, VALUES, History, answer, seeded_history
from support.view.walk import Walker

TIMES = 12
VIEWS = {
    "ends": "SELECT k, min(v) AS a, max(s) AS b, count(*) AS n FROM l GROUP BY k",
    "some": "SELECT k, max(v) FILTER (WHERE s = 'a') AS a, count(s) AS n FROM l GROUP BY k",
    "mixed": "SELECT k, max(v) AS a, count(v) AS n, sum(v) AS b, avg(v) AS c FROM l GROUP BY k",
    "distinct": "SELECT k, max(v) AS a, count(DISTINCT s) AS n FROM l GROUP BY k",
    "all": "SELECT min(v) AS a, max(s) AS b, count(*) AS n FROM l",
    "floats": "SELECT k, max(-(v::float8)) AS a, min(v::real) AS b FROM l GROUP BY k",
    "joined": "SELECT l.k, max(w) AS a, count(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "nested": "SELECT n, avg(a) AS b, sum(n) AS c FROM (SELECT l.k, s, max(w) AS a, "
    "count(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY l.k, s) x GROUP BY n",
    "failing": "SELECT k, max(10 / v) AS a, count(*) AS n FROM l WHERE v <> 1 GROUP BY k",
    "kept_joined": "SELECT r.w, x.a, x.n FROM r JOIN (SELECT k, max(v) AS a, count(s) AS n FROM l "
    "GROUP BY k) x ON r.k = x.k",
    "kept_best": "SELECT k, a FROM (SELECT k, max(v) AS a FROM l GROUP BY k) x "
    "ORDER BY a DESC, k LIMIT 2",
    "best": "SELECT k, v, s FROM l ORDER BY v DESC NULLS LAST, s LIMIT 3",
    "greatest": "SELECT k, v, s FROM l WHERE v > -9 ORDER BY v DESC, s LIMIT 3",
    "least": "SELECT v, s FROM l WHERE v > -9 ORDER BY v, s DESC LIMIT 2",
    "nothing": "SELECT k, v FROM l WHERE v > -9 ORDER BY v LIMIT 0",
    "page": "SELECT k, v, s FROM l ORDER BY v, s LIMIT 2 OFFSET 1",
    "each": "SELECT DISTINCT ON (k) k, v, s FROM l ORDER BY k, v DESC, s",
    "near": "SELECT x.k, y.v FROM (SELECT DISTINCT k FROM r) x, LATERAL "
    "(SELECT v FROM l WHERE l.k = x.k ORDER BY v DESC LIMIT 2) y",
    "outer": "SELECT l.k, max(w) AS a FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.k",
    "all_joined": "SELECT max(w) AS a, count(*) AS n FROM l JOIN r ON l.k = r.k",
    "top_of_join": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k ORDER BY w, v DESC LIMIT 2",
}
#: Those of which an operator is maintained so.
KEPT = set(VIEWS) - {"failing", "page", "outer", "all_joined", "top_of_join"}


def definitions(growing: frozenset[str]) -> list[Definition]:
    made = (Definition.of_sql(name, sql, SCHEMAS) for name, sql in VIEWS.items())
    return [replace(each, growing=growing) for each in made]


def inserted(seed: int, times: int, size: int = 5) -> History:
    """A history in which rows only come."""
    chance = random.Random(seed)
    pools = {"l": (KEYS, VALUES, TEXTS), "r": (KEYS, VALUES)}
    return {
        name: [
            Update(tuple(map(chance.choice, pool)), time, chance.choice([1, 1, 2]))
            for time in range(1, times + 1)
            for _ in range(chance.randrange(size))
        ]
        for name, pool in pools.items()
    }


def later(history: History) -> History:
    return {n: [Update(u.data, u.time + 1, u.diff) for u in x] for n, x in history.items()}


@pytest.mark.parametrize("tasks", [0, 3])
@pytest.mark.parametrize("growing", ["l r", "l"])
@pytest.mark.parametrize("comes_only", [True, False])
@pytest.mark.parametrize("seed", range(counted(2, 30)))
def test_views_are_exact_whether_rows_go_or_not(
    tmp_path: Path, seed: int, comes_only: bool, growing: str, tasks: int
) -> None:
    """What was said of the inputs decides what a tick costs, and not what it gives."""
    history = inserted(seed, TIMES) if comes_only else later(seeded_history(seed, TIMES))
    walker = Walker(tmp_path, SCHEMAS, {}, tasks=tasks)
    views = definitions(frozenset(growing.split()))
    for each in views[::2]:
        walker.create(each)
    for at, upper in enumerate((3, 4, 7, TIMES + 1)):
        walker.write(history, upper)
        for each in views[1::2] if at == 1 else ():  # that begin with something
            walker.create(each)
        for name in walker.views:
            walker.tick(name)
    begun = {name: view.hydrated_at for name, view in walker.views.items()}
    wrong = [
        (each.name, time)
        for each in views
        for time in range(begun[each.name], TIMES + 1)
        if told(walker.at(each.name, time)) != told(answer(each.relation, history, time))
    ]
    walker.stop()
    assert wrong == []


def told(found: Any) -> Any:
    """Rows by how they are written: NaN is not equal to itself."""
    return found if found == "error" else {repr(row): count for row, count in found.items()}


@pytest.mark.parametrize("name", VIEWS)
def test_the_mark_means_nothing(name: str) -> None:
    """The plan with marks is the plan; and only what grows has them."""
    plain = Definition.of_sql(name, VIEWS[name], SCHEMAS)
    marked = replace(plain, growing=frozenset({"l", "r"}))
    assert any(map(keeps_itself, operators(marked.plan))) == (name in KEPT)
    assert not any(map(keeps_itself, operators(plain.plan)))
    assert not any(map(keeps_itself, operators(replace(plain, growing=frozenset({"x"})).plan)))
    history = later(seeded_history(5, 6))
    for time in range(7):
        found, expected = (answer(plan, history, time) for plan in (marked.plan, plain.relation))
        assert told(found) == told(expected)


@pytest.mark.parametrize("name", ["ends", "joined", "best", "each"])
def test_what_comes_reads_nothing_of_the_rows_that_are_there(tmp_path: Path, name: str) -> None:
    """A change of a group looks at what is kept of the group, however many rows that has."""
    walker = Walker(tmp_path, SCHEMAS, {})
    plain = Definition.of_sql(name, VIEWS[name], SCHEMAS)
    walker.create(replace(plain, growing=frozenset({"l", "r"})))
    touched = []
    for time, size in enumerate((300, 1, 1), 1):
        rows = [Update((1, at, "a"), time, 1) for at in range(size)]
        walker.write({"l": rows, "r": [Update((1, 2), 1, 1)]}, time + 1)
        before = walker.traces.touched
        walker.tick(name)
        touched.append(walker.traces.touched - before)
    text = explain_view(walker.views[name])
    walker.stop()
    assert max(touched[1:]) < 30
    assert "its own rows, of what only grows" in text
