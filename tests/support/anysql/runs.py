"""The runs of C14: expressions of one row, queries over tables, and views over tables that change.

Each takes a number of texts, a seed, and may end early at a deadline; each failing text is made
smaller before it is told. The number of texts counts what both sides have answered or refused with
one SQLSTATE: what is set apart (`versus`) does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from noonmark.clock import SYSTEM
from support.anysql.choices import Choices
from support.anysql.queries import Queries
from support.anysql.scalars import Scalars
from support.anysql.values import PLAIN, TYPES, Table, quoted, schema
from support.anysql.versus import Both, judge, shrunk
from support.sql_seen import ask

ROWS = 6
QUERIES_IN_A_WORLD = 500
VIEWS_IN_A_WORLD = 25
TICKS = 10
#: Where conditions decide what is evaluated, errors depend on an order that nobody promised.
_CONDITIONS = re.compile(r"\b(case|coalesce|and|or|greatest|least)\b")

Advance = Callable[..., None]


@dataclass
class Run:
    """What a run has seen."""

    both: Both
    seed: int
    deadline: float | None = None
    met: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and SYSTEM.monotonic() > self.deadline

    def told(
        self, choices: Choices, make: Callable[[Choices], tuple[str, bool]], one_row: bool
    ) -> None:
        """A difference, made smaller."""
        both = self.both

        def text(trial: Choices) -> str:
            return make(trial)[0]

        def differs(sql: str) -> bool:
            alone = one_row and not _CONDITIONS.search(sql)
            mine, theirs = ask(both.ours, sql), ask(both.peer, sql)
            return judge(mine, theirs, one_row=alone, ordered=False) == "wrong"

        small = shrunk(choices.drawn, text, differs, 120)
        counts, both.counts = both.counts, Counter()
        self.wrong.append(both.compare(small, one_row=one_row) or small)
        both.counts = counts


def scalars(run: Run, count: int, advance: Advance = lambda *_: None) -> int:
    """Expressions over one row, hostile literals among them; how many were compared."""
    both, known = run.both, run.both.known()
    columns = [(f"a{at}", kind) for at, kind in enumerate(TYPES)]
    specs = ", ".join(f"{name} {TYPES[kind]}" for name, kind in columns)
    values = ", ".join(f"{quoted(PLAIN[kind][-1])}::{TYPES[kind]}" for _, kind in columns)
    both.run(f"create table one ({specs})")
    both.run(f"insert into one values ({values})")

    def make(choices: Choices) -> tuple[str, bool]:
        kind = choices.pick(list(TYPES))
        stream = Scalars(choices, known, hostile=True, met=run.met)
        return f"select {stream.scalar(kind, columns, 1 + choices.below(2))} from one", False

    for number in range(count):
        if run.is_over:
            return number
        choices = Choices(run.seed * 1_000_003 + number)
        sql, _ = make(choices)
        one_row = not _CONDITIONS.search(sql)
        if both.compare(sql, one_row=one_row) is not None:
            run.told(choices, make, one_row)
        advance()
    return count


def world(both: Both, seed: int, prefix: str = "") -> list[Table]:
    """Tables with rows, the same on both sides; those of an earlier world are gone."""
    choices = Choices(seed)
    tables = schema(choices)
    for table in tables:
        table.name = f"{prefix}{table.name}"
        for connection in (both.ours, both.peer):
            ask(connection, f"drop table if exists {table.name} cascade")
        both.run(table.create)
        rows = ", ".join(table.row(choices, number) for number in range(ROWS))
        both.run(f"insert into {table.name} values {rows}")
    return tables


def queries(run: Run, count: int, advance: Advance = lambda *_: None) -> int:
    """Queries over random tables; how many were compared."""
    known, tables = run.both.known(), []
    for number in range(count):
        if run.is_over:
            return number
        if number % QUERIES_IN_A_WORLD == 0:
            tables = world(run.both, run.seed + number)

        def make(choices: Choices, tables: list[Table] = tables) -> tuple[str, bool]:
            return Queries(choices, known, tables, run.met).next()

        choices = Choices(run.seed * 1_000_033 + number)
        sql, ordered = make(choices)
        if run.both.compare(sql, one_row=False, ordered=ordered) is not None:
            run.told(choices, make, False)
        advance()
    return count


def views(run: Run, count: int, advance: Advance = lambda *_: None) -> int:
    """Views of queries, over tables that change, read after every tick; how many there were."""
    known, made_in_all, number = run.both.known(), 0, 0
    while made_in_all < count and not run.is_over:
        seed = run.seed * 7_919 + number
        number += 1
        tables = world(run.both, seed, "v")
        wanted = min(VIEWS_IN_A_WORLD, count - made_in_all)
        made = _made(run, seed, wanted, lambda c, t=tables: Queries(c, known, t, run.met).next()[0])
        choices = Choices(seed + 1)
        for _ in range(TICKS):
            for _ in range(1 + choices.below(4)):
                run.both.run(change(choices, tables))
            _read(run, made)
        for name in made:
            ask(run.both.ours, f"drop materialized view {name} cascade")
        made_in_all += len(made)
        advance(len(made))
    return made_in_all


def _made(run: Run, seed: int, wanted: int, make: Callable[[Choices], str]) -> dict[str, str]:
    """Views of queries that both sides answer alike, by name."""
    both, made, at = run.both, {}, 0
    while len(made) < wanted and at < 6 * wanted and not run.is_over:
        at += 1
        sql = make(Choices(seed * 1_000_003 + at))
        mine, theirs = ask(both.ours, sql), ask(both.peer, sql)
        if judge(mine, theirs, one_row=False, ordered=False) != "answered":
            continue
        name = f"view_{at}"
        told = ask(both.ours, f"create materialized view {name} as {sql}")
        if told.state:
            both.counts["view refused"] += 1
            both.refusals[f"{told.state} {told.message[:60]}"] += 1
            if told.state[:2] not in ("0A", "42"):
                run.wrong.append(f"as a view: {sql}\n  ours: {told.state} {told.message}")
            continue
        made[name] = sql
    return made


def _read(run: Run, made: dict[str, str]) -> None:
    for name, sql in list(made.items()):
        mine, theirs = ask(run.both.ours, f"select * from {name}"), ask(run.both.peer, sql)
        verdict = judge(mine, theirs, one_row=False, ordered=False)
        run.both.counts[f"view {verdict}"] += 1
        if verdict == "wrong":
            rows = f"ours {sorted(map(repr, mine.rows))[:6]} {mine.state} {mine.message[:100]}"
            peer = f"PostgreSQL {sorted(map(repr, theirs.rows))[:6]} {theirs.state}"
            run.wrong.append(f"as a view, after changes: {sql}\n  {rows}\n  {peer}")
            del made[name]  # told once


def change(choices: Choices, tables: list[Table]) -> str:
    """A statement that changes a table in the same way on both sides."""
    table = choices.pick(tables)
    form = choices.below(4)
    if form < 2:
        number = 100 + choices.below(1_000_000)
        return f"insert into {table.name} values {table.row(choices, number)}"
    key = choices.below(12)
    if form == 2:
        return f"delete from {table.name} where k = {key} or k > {100 + choices.below(900_000)}"
    name, kind = table.columns[1 + choices.below(len(table.columns) - 1)]
    value = f"{quoted(choices.pick(PLAIN[kind]))}::{TYPES[kind]}"
    return f"update {table.name} set {name} = {value} where k >= {key}"
