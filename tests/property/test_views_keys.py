"""Views over keys that are equal in SQL and not the same: maintained, at every time, by walks.

The judge is the meaning of the plan over the contents at that time; PostgreSQL judges the meaning
itself in tests/adapter/test_numeric_judged.py and test_key_equality.py.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from noonmark.compute.plan.definition import Definition
from noonmark.rows.identity import hashable
from noonmark.rows.pg.text import parse_value
from noonmark.rows.schema import Schema
from noonmark.tvc import Update
from support.view.views import History, answer
from support.view.walk import Walker

TIMES, TICKS = 10, (3, 5, 8, 11)
POOLS = {
    "numeric": ("10", "10.0", "10.00", "0", "0.000", "NaN", "Infinity", "-1.5", "1e-40", "1e40"),
    "double precision": ("0", "-0", "NaN", "1.5", "-Infinity"),
    "interval": ("1 mon", "30 days", "720:00", "1 day", "24:00"),
    "jsonb": ("1", "1.0", "[1]", "[1.00]", "null"),
    "char(3)": ("a", "a  ", "b"),
}
QUERIES = {
    "grouped": "select k, count(*) as c, min(x) as low, max(x) as high from n group by k",
    "summed": "select k, sum(x) as s, avg(x) as a, count(distinct x) as d from n group by k",
    "total": "select sum(x) as s, avg(x) as a, max(x) as high from n",
    "pairs": "select n.i as a, m.i as b, n.k from n join m on n.k = m.k",
    "outer_pairs": "select n.i as a, m.i as b, m.k from n left join m on n.k = m.k",
    "there": "select i, k from n where k in (select k from m)",
    "not_there": "select i from n where not exists (select 1 from m where m.k = n.k)",
    "once": "select distinct k from n",
    "rest": "select k from n except select k from m",
    "large": "select i, x + 1 as y, x * 2.50 as z from n where x > 1 and x <= 'Infinity'",
    "equal": "select i from n where x = 10 or x is not distinct from 'NaN'",
    "above": "select n.i from n join m on n.x > m.x",
    "first": "select i, x from n order by x desc, i limit 3",
    "ranked": "select i, x, rank() over (partition by k order by x) as r from n",
}


def history(kind: str, seed: int) -> History:
    """Rows that come, go and come back in another form of the same value."""
    chance = random.Random(seed)
    made: History = {}
    for name in ("n", "m"):
        present: list[Any] = []
        made[name] = []
        for time in range(1, TIMES + 1):
            for _ in range(chance.randrange(4)):
                if present and chance.random() < 0.4:
                    made[name].append(Update(present.pop(chance.randrange(len(present))), time, -1))
                    continue
                texts = (chance.choice(POOLS[kind]), chance.choice(POOLS["numeric"]))
                key, number = (
                    None if chance.random() < 0.1 else hashable(parse_value(text, each.type))
                    for text, each in zip(texts, _schema(kind).columns, strict=False)
                )
                present.append((key, number, chance.randrange(4)))
                made[name].append(Update(present[-1], time, 1))
    return made


def _schema(kind: str) -> Schema:
    return Schema.of(k=kind, x="numeric", i="integer")


@pytest.mark.parametrize("kind", POOLS)
def test_views_are_their_definitions_at_every_time(tmp_path: Path, kind: str) -> None:
    schemas = {"n": _schema(kind), "m": _schema(kind)}
    updates = history(kind, seed=len(kind))
    walker = Walker(tmp_path, schemas, {})
    definitions = [Definition.of_sql(name, sql, schemas) for name, sql in QUERIES.items()]
    begun: dict[str, int] = {}
    now = 0
    for upper in TICKS:
        for definition in definitions[now > 0 :: 2] if len(begun) < len(definitions) else ():
            walker.create(definition)
            begun[definition.name] = now
        walker.write(updates, upper)
        now = upper - 1
        for name in begun:
            walker.tick(name)
    for each in definitions:
        for time in range(begun[each.name], TIMES + 1):
            wanted = answer(each.plan, updates, time)
            assert walker.at(each.name, time) == wanted, (each.name, time)
    walker.stop()
