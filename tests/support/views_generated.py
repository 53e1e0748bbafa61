"""Generated queries as views over generated histories, against the reference at every time.

One location has a few tables and a history of them: at every time rows come, go and are replaced;
a tick covers one to three times. Views over generated queries begin at different times. Afterwards
every view is compared with its definition at every time at which it can be read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noonmark.compute.definition import Definition, errors_name
from noonmark.compute.reference import outcome
from noonmark.errors import EvaluationError, NoonmarkError
from noonmark.persist.run import TIME
from noonmark.tvc import Update
from support.sql_generator import Generator
from support.sql_queries import SCHEMAS
from support.views_walk import Walker

Row = tuple[Any, ...]
History = dict[str, list[Update[Row, int]]]
KEYS: tuple[dict[str, tuple[str, ...]], ...] = ({}, {"t": ("a",), "u": ("a", "x"), "v": ("k",)})


@dataclass(frozen=True)
class Outcome:
    """How many answers were compared, how many of them had rows, and what was wrong."""

    compared: int
    filled: int
    failed: int
    wrong: tuple[str, ...]


def history(seed: int, times: int) -> History:
    """Updates at times 1, 2, ...; no row is retracted that is not there."""
    chance, rows = random.Random(seed), Generator(seed)
    made: History = {name: [] for name in SCHEMAS}
    present: dict[str, Counter[Row]] = {name: Counter() for name in SCHEMAS}
    for time in range(1, times + 1):
        for name, fresh in rows.rows().items():
            there = [row for row, count in present[name].items() if count > 0]
            gone = [row for row in there if chance.random() < 0.25 + 0.05 * len(there)]
            changes = [(row, -1) for row in gone] if chance.random() < 0.7 else []
            if chance.random() < 0.6:
                changes += list(fresh.items())[: chance.randrange(4)]
            for row, diff in changes:
                present[name][row] += diff
                made[name].append(Update(row, time, diff))
    return made


def definitions(seed: int, count: int) -> Iterator[Definition]:
    """Queries that can be planned; what is refused is not maintained either."""
    generator = Generator(seed)
    made = 0
    while made < count:
        sql, _ = generator.query(2, [])
        try:
            definition = Definition.of_sql(f"view_{seed}_{made}", sql, SCHEMAS)
        except NoonmarkError:
            continue
        if definition.inputs:  # the rules may find that a query reads nothing
            made += 1
            yield definition


def run(path: Path, seed: int, count: int, times: int) -> Outcome:
    """Maintain `count` generated views over a generated history, and compare all answers."""
    chance = random.Random(seed)
    changes = history(seed, times)
    walker = Walker(path, SCHEMAS, KEYS[seed % 2])
    waiting = list(definitions(seed, count))
    begun: dict[str, tuple[Definition, int]] = {}
    now = 0
    while now < times:
        for _ in range(min(len(waiting), max(1, count // 3))):
            definition = waiting.pop()
            walker.create(definition)
            begun[definition.name] = (definition, now)
        now = min(times, now + chance.choice([1, 1, 2, 3]))
        walker.write(changes, now + 1)
        for name in begun:
            walker.tick(name)
    outcomes = [_compare(walker, changes, *each, times) for each in begun.values()]
    walker.stop()
    return Outcome(
        sum(each.compared for each in outcomes),
        sum(each.filled for each in outcomes),
        sum(each.failed for each in outcomes),
        tuple(text for each in outcomes for text in each.wrong),
    )


def _compare(
    walker: Walker, changes: History, definition: Definition, start: int, times: int
) -> Outcome:
    rows = _Replay(walker, definition.name, start, times)
    errors = _Replay(walker, errors_name(definition.name), start, times)
    inputs = {name: _Played(changes[name]) for name in definition.inputs}
    filled = failed = 0
    for time in range(start, times + 1):
        wanted = outcome(definition.plan, {name: each.at(time) for name, each in inputs.items()})
        got = "error" if errors.at(time) else rows.at(time)
        expected = "error" if isinstance(wanted, EvaluationError) else wanted
        filled += bool(expected) and expected != "error"
        failed += expected == "error"
        if got != expected:
            text = f"{definition.sql} at {time}: {got} instead of {expected}"
            return Outcome(time - start + 1, filled, failed, (text,))
    return Outcome(times - start + 1, filled, failed, ())


class _Played:
    """A collection at one time after another."""

    def __init__(self, updates: list[Update[Row, int]]) -> None:
        self.updates = sorted(updates, key=lambda update: update.time)
        self.counts: Counter[Row] = Counter()
        self.next = 0

    def at(self, time: int) -> dict[Row, int]:
        while self.next < len(self.updates) and self.updates[self.next].time <= time:
            update = self.updates[self.next]
            self.counts[update.data] += update.diff
            self.next += 1
        return {row: count for row, count in self.counts.items() if count}


class _Replay(_Played):
    """What a stored collection says, read once."""

    def __init__(self, walker: Walker, name: str, start: int, times: int) -> None:
        read = walker.client.create_or_load(name)[1]
        first = [Update(row, start, n) for row, n in read.snapshot(start).result().counts().items()]
        step = next(iter(read.listen(start)))
        assert step.table.num_rows == 0 or max(step.table.column(TIME).to_pylist()) <= times
        super().__init__([*first, *step.updates])
