"""Generated queries as views over generated histories, against the reference at every time.

One location has a few tables and a history of them: at every time rows come, go and are replaced;
a tick covers one to three times. Views over generated queries begin at different times. Some have a
twin of the same query, which shares what both keep; it begins later, and is often left behind.
Afterwards every view is compared with its definition at every time at which it can be read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from noonmark.compute.plan.definition import Definition, errors_name
from noonmark.errors import EvaluationError, NoonmarkError
from noonmark.persist.part.run import TIME
from noonmark.rows.identity import hashable
from noonmark.sql.ir import relation as r
from noonmark.sql.meaning.relation import outcome
from noonmark.tvc import Update
from support.sql.queries import SCHEMAS
from support.sql.wide import WideGenerator
from support.view.coverage import SHARED, operators_of
from support.view.walk import Walker

Row = tuple[Any, ...]
History = dict[str, list[Update[Row, int]]]
KEYS: tuple[dict[str, tuple[str, ...]], ...] = ({}, {"t": ("a",), "u": ("a", "x"), "v": ("k",)})


#: How often a collection does not change at a time.
STILL = 0.6
#: How many of the integers divide by something that may be 0.
FAILS = 0.15
#: How many of the views have a twin, and how often that is left behind.
TWINS, LEFT_BEHIND = 0.25, 0.6
TWIN = "twin"


@dataclass(frozen=True)
class Outcome:
    """How many answers were compared, how many had rows or were errors, and what was wrong."""

    compared: int = 0
    filled: int = 0
    failed: int = 0
    wrong: tuple[str, ...] = ()
    operators: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.compared + other.compared,
            self.filled + other.filled,
            self.failed + other.failed,
            self.wrong + other.wrong,
            self.operators + other.operators,
        )


def history(seed: int, times: int) -> History:
    """Updates at times 1, 2, ...: of some collections each; no row goes that is not there."""
    chance, rows = random.Random(seed), WideGenerator(seed)
    made: History = {name: [] for name in SCHEMAS}
    present: dict[str, Counter[Row]] = {name: Counter() for name in SCHEMAS}
    for time in range(1, times + 1):
        for name, fresh in rows.rows().items():
            there = [row for row, count in present[name].items() if count > 0]
            gone = [row for row in there if chance.random() < 0.25 + 0.05 * len(there)]
            if chance.random() < STILL:
                continue
            changes = [(row, -1) for row in gone] if chance.random() < 0.7 else []
            if chance.random() < 0.7:
                changes += list(fresh.items())[: chance.randrange(4)]
            for row, diff in changes:
                present[name][row] += diff
                made[name].append(Update(row, time, diff))
    return made


def definitions(seed: int, count: int) -> Iterator[Definition]:
    """Queries that can be planned; what is refused is not maintained either."""
    generator = WideGenerator(seed, FAILS)
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


def run(path: Path, seed: int, count: int, ticks: int, tasks: int = 0) -> Outcome:
    """Maintain `count` generated views over a generated history, and compare all answers.

    With `tasks`, every tick is cut over so many (`noonmark.compute.runner.large`).
    """
    chance = random.Random(seed)
    steps = [chance.choice([1, 1, 2, 3]) for _ in range(ticks)]
    times = sum(steps)
    changes = history(seed, times)
    walker = Walker(path, SCHEMAS, KEYS[seed % 2], tasks=tasks)
    waiting = list(definitions(seed, count))
    begun: dict[str, tuple[Definition, int]] = {}
    twins: list[Definition] = []
    crashed: list[str] = []
    now = 0
    for step in steps:
        given = [twins.pop() for _ in twins[:1] if chance.random() < LEFT_BEHIND]
        for _ in range(min(len(waiting), max(1, count // 3))):
            given.append(waiting.pop())
            if chance.random() < TWINS:
                twins.append(replace(given[-1], name=f"{given[-1].name}_{TWIN}"))
        for definition in given:
            begun[definition.name] = (definition, walker.create(definition))
        now += step
        walker.write(changes, now + 1)
        due = [n for n in begun if TWIN not in n or chance.random() > LEFT_BEHIND]
        for name, text in walker.tick_all(due).items():
            definition, _ = begun.pop(name)
            crashed.append(f"{definition.sql} at {now}: {text}")
    while any(walker.upper(name) <= now for name in begun):
        walker.tick_all()  # those that were left behind catch up first
    covered = Counter(o for d, _ in begun.values() for o in operators_of(d.sql))
    covered[SHARED] = walker.shared()
    done = Outcome(wrong=tuple(crashed), operators=covered)
    for definition, start in begun.values():
        done += _compare(walker, changes, definition, start, times)
    walker.stop()
    return done


def _compare(
    walker: Walker, changes: History, definition: Definition, start: int, times: int
) -> Outcome:
    rows = _Replay(walker, definition.name, start, times)
    errors = _Replay(walker, errors_name(definition.name), start, times)
    inputs = {name: _Played(changes[name]) for name in r.scans(definition.written)}
    filled = failed = 0
    for time in range(start, times + 1):
        wanted = outcome(definition.written, {name: each.at(time) for name, each in inputs.items()})
        got = "error" if errors.at(time) else rows.at(time)
        if isinstance(wanted, EvaluationError) and got != "error":
            # As it is written it fails, in a value that is not needed: the rules may see that.
            given = {name: each.at(time) for name, each in inputs.items()}
            wanted = outcome(definition.plan, given)
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
        later = [Update(tuple(map(hashable, u.data)), u.time, u.diff) for u in step.updates]
        super().__init__([*first, *later])
