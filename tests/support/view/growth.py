"""Generated views over joins, and how many stored rows a change of them looks at.

Three tables: accounts in regions, items that belong to accounts, events of items. An event also has
the account of its item, so keys are composite and functional: (item, account) is as good as item.
Half of all events are of a few items, which have more of them the larger the state is; regions,
categories and days stay as few as they are, so their groups grow with the state, too. What changes
are events, of some items, the same number in every state: the keys that change are as many.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from noonmark.compute.incremental import first
from noonmark.compute.plan.definition import Definition
from noonmark.compute.plan.maintenance import decisions
from noonmark.rows.schema import Schema
from noonmark.tvc import Update
from support.view.walk import Walker

SCHEMAS = {
    "account": Schema.of(id="bigint not null", region="integer", rank="integer"),
    "item": Schema.of(id="bigint not null", account="bigint", category="integer", price="bigint"),
    "event": Schema.of(
        id="bigint not null", item="bigint", account="bigint", day="integer", amount="bigint",
        tag="text",
    ),
}  # fmt: skip
KEYS = {"account": ("id",), "item": ("id",), "event": ("id",)}
JOINS = (
    "event e JOIN item i ON e.item = i.id",
    "event e JOIN item i ON e.item = i.id AND e.account = i.account",
    "event e JOIN item i ON e.item = i.id JOIN account a ON i.account = a.id",
    "event e JOIN item i ON e.item = i.id AND e.account = i.account JOIN account a ON "
    "e.account = a.id",
    "item i JOIN account a ON i.account = a.id JOIN event e ON e.item = i.id AND e.account = a.id",
    "event e JOIN account a ON e.account = a.id",
)
COLUMNS = {
    "e": ("item", "account", "day", "tag"),
    "i": ("id", "account", "category", "price"),
    "a": ("id", "region", "rank"),
}
AGGREGATES = (
    "count(*)", "sum(e.amount)", "avg(e.amount)", "max(e.amount)", "min(e.amount)",
    "count(DISTINCT e.tag)", "max(e.amount + e.day)", "sum(DISTINCT e.day)", "max(e.tag)",
)  # fmt: skip
FILTERS = ("", "", " WHERE e.amount > 10", " WHERE e.day <> 3")
HOT, CHANGED, CHANGES, DAYS = 3, 25, 40, 7


def query(chance: random.Random) -> str:
    """One view: a join, grouped by keys of one or more of its inputs, perhaps grouped again."""
    join = chance.choice(JOINS)
    named = [f"{at}.{name}" for at in COLUMNS if f" {at} " in join for name in COLUMNS[at]]
    keys = chance.sample(named, chance.randrange(1, 4))
    shown = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
    source = f"FROM {join}{chance.choice(FILTERS)}"
    kind = chance.random()
    if kind < 0.15:
        return f"SELECT DISTINCT {shown} {source}"
    calls = chance.sample(AGGREGATES, chance.randrange(1, 3))
    made = ", ".join(f"{call} AS v{at}" for at, call in enumerate(calls))
    inner = f"SELECT {shown}, {made} {source} GROUP BY {', '.join(keys)}"
    if kind < 0.6:
        return inner
    over = chance.choice(["avg(v0)", "count(*)", "max(v0)", "sum(v0)"])
    if "tag" in calls[0] and "DISTINCT" not in calls[0]:
        over = "count(*)"
    return f"SELECT k0, {over} AS x FROM ({inner}) t GROUP BY k0"


def views(seed: int, count: int) -> dict[str, Definition]:
    """So many different views."""
    chance, made = random.Random(seed), dict[str, Definition]()
    seen: set[str] = set()
    while len(made) < count:
        sql = query(chance)
        if sql not in seen:
            seen.add(sql)
            made[f"v{len(made)}"] = Definition.of_sql(f"v{len(made)}", sql, SCHEMAS)
    return made


def is_incremental(view: Definition) -> bool:
    """Whether EXPLAIN says of every operator that a change reads neither a group nor a relation."""
    return not any(each.reads_groups or each.costs_all for each in decisions(view.plan, KEYS))


class World:
    """The tables at a size, and views over them."""

    def __init__(self, path: Path, seed: int, size: int, over: Mapping[str, Definition]) -> None:
        path.mkdir()
        self.chance = random.Random(seed)
        self.size = size
        self.walker = Walker(path, SCHEMAS, KEYS)
        self.events: list[tuple[Any, ...]] = []
        self.number = 0
        rows: dict[str, list[tuple[Any, ...]]] = {
            "account": [(at, at % 4, self.chance.randrange(9)) for at in range(size)],
            "item": [
                (at, at % size, self.chance.randrange(4), self.chance.randrange(5))
                for at in range(2 * size)
            ],
            "event": [self._event(2 * size) for _ in range(20 * size)],
        }
        self._write(1, {name: [(row, 1) for row in made] for name, made in rows.items()})
        self.now = 2
        for each in over.values():
            self.walker.create(each)

    def _event(self, items: int) -> tuple[Any, ...]:
        item = self.chance.randrange(HOT if self.chance.random() < 0.5 else items)
        account, number = item % self.size, self.number
        self.number += 1
        row = (
            number, item, account, self.chance.randrange(DAYS), self.chance.randrange(1000),
            f"t{self.chance.randrange(30)}",
        )  # fmt: skip
        self.events.append(row)
        return row

    def change(self) -> None:
        """Events come, and some go."""
        among = [row for row in self.events if row[1] < CHANGED]
        gone = self.chance.sample(among, CHANGES // 4)
        self.events = [row for row in self.events if row not in set(gone)]
        come = [self._event(CHANGED) for _ in range(CHANGES - len(gone))]
        self._write(self.now, {"event": [*((r, 1) for r in come), *((r, -1) for r in gone)]})
        self.now += 1

    def _write(self, time: int, rows: Mapping[str, Sequence[tuple[tuple[Any, ...], int]]]) -> None:
        updates = {n: [Update(row, time, d) for row, d in made] for n, made in rows.items()}
        self.walker.write(updates, time + 1)

    def touched(self, name: str) -> float:
        """Tick a view: the stored rows that were looked at, for each row that changed."""
        before = self.walker.traces.touched
        self.walker.tick(name)
        return (self.walker.traces.touched - before) / CHANGES


def growth(
    path: Path, seed: int, over: Mapping[str, Definition], *, size: int, factor: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """Rows touched per changed row, in a state and in one so many times as large.

    Below some thousands of rows a key is read as it is, for that is quicker than to put parts in
    order (`first.ROWS_MIN`). Here it never is: else the two states would differ in that.
    """
    floors = {"ROWS_MIN": 0, "FIRST_MIN": 1}
    before = {name: getattr(first, name) for name in floors}
    for name, value in floors.items():
        setattr(first, name, value)
    try:
        worlds = [World(path / str(n), seed, n, over) for n in (size, factor * size)]
        sums: dict[str, list[float]] = {name: [0.0, 0.0] for name in over}
        for _ in range(rounds):
            for at, world in enumerate(worlds):
                world.change()
                for name in over:
                    sums[name][at] += world.touched(name) / rounds
        for world in worlds:
            world.walker.stop()
    finally:
        for name, value in before.items():
            setattr(first, name, value)
    return {name: (small, large) for name, (small, large) in sums.items()}
