"""Walks against the definition: every view, at every time, of generated histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from noonmark.compute.definition import Definition
from noonmark.tvc import Update
from support.views import SCHEMAS, History, answer, contents, seeded_history
from support.views_queries import QUERIES
from support.views_walk import Walker

TIMES = 12
TICKS = (3, 4, 8, TIMES + 1)


def later(history: History) -> History:
    """The same, beginning at time 1."""
    return {
        name: [Update(u.data, u.time + 1, u.diff) for u in updates]
        for name, updates in history.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_views_are_their_definitions_at_every_time(tmp_path: Path, seed: int) -> None:
    history = later(seeded_history(seed, TIMES))
    walker = Walker(tmp_path, SCHEMAS, {"l": ("k",)} if seed % 2 else {})
    plans = {}
    for name, sql in QUERIES.items():
        definition = Definition.of_sql(name, sql, SCHEMAS)
        plans[name] = definition.plan
        walker.create(definition)
    for upper in TICKS:
        walker.write(history, upper)
        for name in QUERIES:
            walker.tick(name)
    wrong = [
        (name, time, walker.at(name, time), answer(plan, history, time))
        for name, plan in plans.items()
        for time in range(TIMES + 1)
        if walker.at(name, time) != answer(plan, history, time)
    ]
    walker.stop()
    assert contents(history["l"], TIMES), "a history with nothing in it shows nothing"
    assert wrong[:3] == []
