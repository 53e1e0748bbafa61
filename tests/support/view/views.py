"""Histories of collections, and what a plan is at every time of one.

A history is, for each collection, its updates at times 0, 1, 2, ...: rows come, go, come twice and
are replaced; values and keys are NULL as often as not. No row is retracted that is not there.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from noonmark.compute.plan.definition import errors_name
from noonmark.errors import EvaluationError
from noonmark.persist.client import Client
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import bind
from noonmark.sql.meaning.relation import outcome
from noonmark.storage.transaction import Transaction, own_capability
from noonmark.tvc import Update

Row = tuple[Any, ...]
History = dict[str, list[Update[Row, int]]]

#: Two collections that join on k; v may be 0, and whoever divides by it has an error.
LEFT = Schema.of(k="bigint", v="integer", s="text")
RIGHT = Schema.of(k="bigint", w="integer")
SCHEMAS = {"l": LEFT, "r": RIGHT}

KEYS = (None, 1, 2, 3)
VALUES = (None, 0, 1, 2, -3)
TEXTS = (None, "a", "b")


@st.composite
def histories(draw: st.DrawFn, times: int, size: int = 4) -> History:
    """Updates of both collections at times 0 to `times` - 1."""
    pools = {
        "l": st.tuples(*(st.sampled_from(x) for x in (KEYS, VALUES, TEXTS))),
        "r": st.tuples(*(st.sampled_from(x) for x in (KEYS, VALUES))),
    }
    made: History = {}
    for name, rows in pools.items():
        present: Counter[Row] = Counter()
        made[name] = []
        for time in range(times):
            for _ in range(draw(st.integers(0, size))):
                there = sorted((row for row, n in present.items() if n > 0), key=repr)
                if there and draw(st.booleans()):
                    row, diff = draw(st.sampled_from(there)), -1
                else:
                    row, diff = draw(rows), draw(st.sampled_from([1, 1, 2]))
                present[row] += diff
                made[name].append(Update(row, time, diff))
    return made


def seeded_history(seed: int, times: int, size: int = 5) -> History:
    """One history, the same for the same seed."""
    chance = random.Random(seed)
    pools: dict[str, Callable[[], Row]] = {
        "l": lambda: tuple(chance.choice(x) for x in (KEYS, VALUES, TEXTS)),
        "r": lambda: tuple(chance.choice(x) for x in (KEYS, VALUES)),
    }
    made: History = {}
    for name, fresh in pools.items():
        present: Counter[Row] = Counter()
        made[name] = []
        for time in range(times):
            for _ in range(chance.randrange(size)):
                there = sorted((row for row, n in present.items() if n > 0), key=repr)
                gone = bool(there) and chance.random() < 0.45
                row = chance.choice(there) if gone else fresh()
                diff = -1 if gone else chance.choice([1, 1, 2])
                present[row] += diff
                made[name].append(Update(row, time, diff))
    return made


def contents(updates: list[Update[Row, int]], time: int) -> dict[Row, int]:
    """The multiset at a time."""
    counts: Counter[Row] = Counter()
    for row, at, diff in updates:
        if at <= time:
            counts[row] += diff
    return {row: count for row, count in counts.items() if count}


def answer(plan: r.Relation, history: Mapping[str, list[Update[Row, int]]], time: int) -> Any:
    """What the plan is at a time: its rows, or "error"."""
    plan = bind(plan, (), time)
    found = outcome(plan, {name: contents(updates, time) for name, updates in history.items()})
    return "error" if isinstance(found, EvaluationError) else found


def spoil(client: Client, view: str, updates: list[Update[Row, int]], upper: int) -> None:
    """Write to a view what is not its own, by its own capability."""
    wrong, state = Transaction(client), client.state
    wrong.update_and_downgrade(own_capability(state, view), updates, upper)
    wrong.update_and_downgrade(own_capability(state, errors_name(view)), None, upper)
    wrong.commit().result()
