"""Walks against the definition: every view, at every time, of generated histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonmark.compute.plan.definition import Definition
from noonmark.tvc import Update
from support.view.queries import QUERIES, RECURSIVE, TEMPORAL
from support.view.views import SCHEMAS, History, answer, contents, seeded_history
from support.view.walk import Walker

TIMES = 12
TICKS = (3, 4, 8, TIMES + 1)


def later(history: History) -> History:
    """The same, beginning at time 1."""
    return {
        name: [Update(u.data, u.time + 1, u.diff) for u in updates]
        for name, updates in history.items()
    }


@pytest.mark.parametrize(
    "queries", [QUERIES, TEMPORAL, RECURSIVE], ids=["all", "temporal", "recursive"]
)
@pytest.mark.parametrize(("seed", "tasks"), [(0, 0), (1, 0), (2, 0), (1, 3), (2, 2)])
def test_views_are_their_definitions_at_every_time(
    tmp_path: Path, seed: int, queries: dict[str, str], tasks: int
) -> None:
    """In one task, and with every tick cut over some as if it were large."""
    history = later(seeded_history(seed, TIMES))
    walker = Walker(tmp_path, SCHEMAS, {"l": ("k",)} if seed % 2 else {}, tasks=tasks)
    definitions = [Definition.of_sql(name, sql, SCHEMAS) for name, sql in queries.items()]
    begun: dict[str, int] = {}
    now = 0
    for upper in TICKS:
        # Every other view begins when there is nothing, the rest when there is something.
        for definition in definitions[now > 0 :: 2] if len(begun) < len(definitions) else ():
            walker.create(definition)
            begun[definition.name] = now
        walker.write(history, upper)
        now = upper - 1
        for name in begun:
            walker.tick(name)
    wrong = [
        (each.name, time, walker.at(each.name, time), answer(each.plan, history, time))
        for each in definitions
        for time in range(begun[each.name], TIMES + 1)
        if walker.at(each.name, time) != answer(each.plan, history, time)
    ]
    walker.stop()
    assert set(begun.values()) == {0, TICKS[0] - 1}
    assert contents(history["l"], TIMES), "a history with nothing in it shows nothing"
    assert bool(walker.cut) == bool(tasks)
    assert wrong[:3] == []
