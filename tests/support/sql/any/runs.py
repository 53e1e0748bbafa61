"""The runs of C14: expressions of one row, queries over tables, and views over tables that change.

Each takes a number of texts, a seed, and may end early at a deadline; each failing text is made
smaller before it is told. The number of texts counts what both sides have answered or refused with
one SQLSTATE: what is set apart (`versus`) does not count.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from noonmark.clock import SYSTEM
from noonmark.sql.functions import AGGREGATES, FUNCTIONS, WINDOWS
from support.sql.any.calls import call, signatures
from support.sql.any.changes import Changes
from support.sql.any.choices import Choices, smaller
from support.sql.any.mutations import mutated
from support.sql.any.queries import Queries
from support.sql.any.scalars import Scalars
from support.sql.any.ticks import added_label, change
from support.sql.any.values import CREATE_TYPE, PLAIN, TYPES, Table, quoted, schema
from support.sql.any.versus import Both, Text, faulty, judge, shrunk
from support.sql.any.withs import Withs
from support.sql.seen import Seen, ask

ROWS = 6
QUERIES_IN_A_WORLD = 500
VIEWS_IN_A_WORLD = 64
TICKS = 10
#: Where conditions decide what is evaluated, errors depend on an order that nobody promised.
_CONDITIONS = re.compile(r"\b(case|coalesce|and|or|greatest|least)\b")

Advance = Callable[..., None]
Remake = Callable[[Choices], str]
Built = Callable[[Choices], tuple[str, bool]]


@dataclass
class Run:
    """What a run has seen."""

    both: Both
    seed: int
    deadline: float | None = None
    advance: Advance = lambda *_: None
    met: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and SYSTEM.monotonic() > self.deadline

    def compare(self, make: Callable[[int], Text], count: int, remake: Remake) -> int:
        """Texts by their numbers, until the time is up; how many. A difference is made smaller."""
        compared = 0
        for text, difference in self.both.stream(self._made(make, count)):
            compared += 1
            if difference is not None:
                self._tell(text, remake)
            self.advance()
        return compared

    def _made(self, make: Callable[[int], Text], count: int) -> Iterator[Text]:
        for number in range(count):
            if self.is_over:
                return
            yield make(number)

    def _tell(self, text: Text, remake: Remake) -> None:
        both = self.both

        def differs(sql: str) -> bool:
            alone = text.one_row and not _CONDITIONS.search(sql)
            mine, theirs = both.asked(sql)
            if text.broken and faulty(mine, theirs):
                return False
            return judge(sql, mine, theirs, one_row=alone, ordered=False) == "wrong"

        small = replace(text, sql=shrunk(text.choices.drawn, remake, differs, 120))
        counts, both.counts = both.counts, Counter()
        self.tell(both.compare(small) or small.sql)
        both.counts = counts

    def tell(self, difference: str) -> None:
        """A difference, at once: a long run need not end to be of use."""
        self.wrong.append(difference)
        print(difference, file=sys.stderr, flush=True)


def scalars(run: Run, count: int) -> int:
    """Expressions over one row, hostile literals among them; how many were compared."""
    both, known = run.both, run.both.known()
    typed(both)
    columns = [(f"a{at}", kind) for at, kind in enumerate(TYPES)]
    specs = ", ".join(f"{name} {TYPES[kind]}" for name, kind in columns)
    values = ", ".join(f"{quoted(PLAIN[kind][-1])}::{TYPES[kind]}" for _, kind in columns)
    both.run(f"create table one ({specs})")
    both.run(f"insert into one values ({values})")

    def remake(choices: Choices) -> str:
        kind = choices.pick(list(TYPES))
        stream = Scalars(choices, known, hostile=True, met=run.met)
        return f"select {stream.scalar(kind, columns, 1 + choices.below(2))} from one"

    def make(number: int) -> Text:
        choices = Choices(run.seed * 1_000_003 + number)
        sql = remake(choices)
        return Text(sql, choices, one_row=not _CONDITIONS.search(sql))

    return run.compare(make, count, remake)


def typed(both: Both) -> None:
    """The type that somebody made, anew; what an earlier world has is gone."""
    for connection in (both.ours, both.peer):
        names = "select tablename from pg_tables where schemaname = 'public'"
        for (name,) in connection.execute(names).fetchall():
            connection.execute(f"drop table {name} cascade")
        connection.execute("drop type if exists mood")
    both.run(CREATE_TYPE)
    both.know("mood")


def world(both: Both, seed: int, prefix: str = "") -> list[Table]:
    """Tables with rows, the same on both sides; those of an earlier world are gone."""
    choices = Choices(seed)
    tables = schema(choices)
    typed(both)
    for table in tables:
        table.name = f"{prefix}{table.name}"
        both.run(table.create)
        rows = ", ".join(table.row(choices, number) for number in range(ROWS))
        both.run(f"insert into {table.name} values {rows}")
    return tables


def queries(run: Run, count: int) -> int:
    """Queries over random tables; how many were compared."""
    known, done = run.both.known(), 0
    while done < count and not run.is_over:
        tables = world(run.both, run.seed + done)

        def built(choices: Choices, tables: list[Table] = tables) -> tuple[str, bool]:
            return Queries(choices, known, tables, run.met).next()

        def make(number: int, first: int = done, built: Built = built) -> Text:
            choices = Choices(run.seed * 1_000_033 + first + number)
            sql, ordered = built(choices)
            return Text(sql, choices, one_row=False, ordered=ordered)

        wanted = min(QUERIES_IN_A_WORLD, count - done)
        done += run.compare(make, wanted, lambda choices, built=built: built(choices)[0])
    return done


def mutants(run: Run, count: int) -> int:
    """Queries with words too many, too few or exchanged; how many were compared."""
    known = run.both.known()
    tables = world(run.both, run.seed, "m")

    def remake(choices: Choices) -> str:
        queries = Queries(choices, known, tables, run.met)
        return mutated(choices, queries.query(choices.below(2))[0], run.met)

    def make(number: int) -> Text:
        choices = Choices(run.seed * 1_000_121 + number)
        return Text(remake(choices), choices, one_row=False, broken=True)

    return run.compare(make, count, remake)


def views(run: Run, count: int) -> int:
    """Views of queries, over tables that change, read after every tick; how many there were."""
    known, made_in_all, number = run.both.known(), 0, 0
    while made_in_all < count and not run.is_over:
        seed = run.seed * 7_919 + number
        number += 1
        tables = world(run.both, seed, "v")
        wanted = min(VIEWS_IN_A_WORLD, count - made_in_all)

        def make(choices: Choices, tables: list[Table] = tables) -> str:
            return Queries(choices, known, tables, run.met).next(named=True)[0]

        made = _made(run, seed, wanted, make)
        choices = Choices(seed + 1)
        for tick in range(TICKS):
            changes = [change(choices, tables) for _ in range(1 + choices.below(4))]
            if tick % 4 == 2:
                changes += _labelled(run, choices, tick, tables)
            for connection in (run.both.ours, run.both.peer):
                ask(connection, "begin")  # one transaction, and so one time
            for each in changes:
                run.both.run(each)
            for connection in (run.both.ours, run.both.peer):
                assert not ask(connection, "commit").state
            _read(run, made)
        for _ in run.both.at_once([f"drop materialized view {name} cascade" for name in made]):
            pass
        made_in_all += len(made)
        run.advance(len(made))
    return made_in_all


def _labelled(run: Run, choices: Choices, tick: int, tables: list[Table]) -> list[str]:
    """A label more, unless a view depends on which ones there are; changes that bring it in."""
    add, use = added_label(choices, tick, tables)
    if ask(run.both.ours, add).state:
        run.met["label refused"] += 1
        return []
    assert not ask(run.both.peer, add).state
    run.met["label added"] += 1
    return use


def _made(run: Run, seed: int, wanted: int, make: Remake) -> dict[str, str]:
    """Views of queries that both sides answer alike, by name."""
    both, chosen = run.both, {}

    def texts() -> Iterator[Text]:
        for at in range(6 * wanted):
            if len(chosen) == wanted or run.is_over:
                return
            choices = Choices(seed * 1_000_003 + at)
            yield Text(make(choices), choices, one_row=False)

    for at, (text, (mine, theirs)) in enumerate(both.answers(texts())):
        told = judge(text.sql, mine, theirs, one_row=False, ordered=False)
        if told in ("answered", "form") and len(chosen) < wanted:
            chosen[f"view_{at}"] = text.sql
    made = {}
    statements = [f"create materialized view {name} as {sql}" for name, sql in chosen.items()]
    for (name, sql), told in zip(chosen.items(), both.at_once(statements), strict=True):
        if not told.state:
            made[name] = sql
            continue
        both.counts["view refused"] += 1
        both.refusals[f"{told.state} {told.message[:60]}"] += 1
        if told.state[:2] not in ("0A", "42"):
            run.tell(f"as a view: {sql}\n  ours: {told.state} {told.message}")
    return made


def _read(run: Run, made: dict[str, str]) -> None:
    names = list(made)
    reads = run.both.apart([(f"select * from {name}", made[name]) for name in names])
    for name, (mine, theirs) in zip(names, reads, strict=True):
        sql = made[name]
        verdict = judge(sql, mine, theirs, one_row=False, ordered=False)
        run.both.counts[f"view {verdict}"] += 1
        if verdict == "wrong":
            why = f"{mine.state} {mine.message[:100]} {mine.detail[:400]}"
            rows = f"ours {sorted(map(repr, mine.rows))[:6]} {why}"
            peer = f"PostgreSQL {sorted(map(repr, theirs.rows))[:6]} {theirs.state}"
            run.tell(f"as a view, after changes: {sql}\n  {rows}\n  {peer}")
            del made[name]  # told once


def called(run: Run, count: int) -> int:
    """Calls of functions by PostgreSQL's own signatures; how many were compared."""
    both = run.both
    typed(both)
    both.run("create table single (a0 int)")
    both.run("insert into single values (1)")
    names = [
        entry.name for table in (FUNCTIONS, AGGREGATES, WINDOWS) for entry in table.by_id.values()
    ]
    found = signatures(both.peer, names)

    def remake(choices: Choices) -> str:
        return call(choices, choices.pick(found))

    def make(number: int) -> Text:
        choices = Choices(run.seed * 1_000_039 + number)
        return Text(remake(choices), choices, one_row=True)

    return run.compare(make, count, remake)


def changes(run: Run, count: int) -> int:
    """Statements that change a table, each in a transaction that is undone; how many there were."""
    both, known, done = run.both, run.both.known(), 0
    while done < count and not run.is_over:
        tables = world(both, run.seed + done, "c")

        def remake(choices: Choices, tables: list[Table] = tables) -> tuple[str, str]:
            made = Withs if choices.often(1, 4) else Changes
            return made(choices, known, tables, run.met).next()

        for number in range(done, min(count, done + QUERIES_IN_A_WORLD)):
            if run.is_over:
                break
            choices = Choices(run.seed * 1_000_081 + number)
            sql, table = remake(choices)
            verdict, told = _changed(both, sql, table)
            both.counts[f"change {verdict}"] += 1
            if verdict == "refused":
                both.refusals[told[:100]] += 1
            if verdict == "wrong":
                small = _smaller(both, choices, remake)
                run.tell(f"{small[0]}\n{_changed(both, *small)[1]}")
            run.advance()
            done += 1
    return done


def _smaller(
    both: Both, choices: Choices, remake: Callable[[Choices], tuple[str, str]]
) -> tuple[str, str]:
    def fails(drawn: list[int]) -> bool:
        try:
            return _changed(both, *remake(Choices(replay=drawn)))[0] == "wrong"
        except (IndexError, KeyError, ValueError):
            return False

    return remake(Choices(replay=smaller(choices.drawn, fails, 120)))


def _changed(both: Both, sql: str, table: str) -> tuple[str, str]:
    """What is said of a statement, and of its table after it; and what both told."""
    told = []
    for connection in (both.ours, both.peer):
        ask(connection, "begin")
        said = ask(connection, sql)
        after = ask(connection, f"select * from {table}") if not said.state else said
        ask(connection, "rollback")
        told.append((said, after))
    (mine, mine_after), (theirs, theirs_after) = told
    theirs, theirs_after = both.named(theirs), both.named(theirs_after)
    verdict = judge(sql, mine, theirs, one_row=False, ordered=False)
    if verdict in ("answered", "form"):
        after = judge(sql, mine_after, theirs_after, one_row=False, ordered=False)
        verdict = verdict if after in ("answered", "form") else after
    if verdict == "refused":
        return verdict, mine.message
    return (
        verdict,
        f"  ours: {_lines(mine, mine_after)}\n  PostgreSQL: {_lines(theirs, theirs_after)}",
    )


def _lines(said: Seen, after: Seen) -> str:
    if said.state:
        return f"{said.state} {said.message[:200]}"
    return f"{sorted(map(repr, said.rows))[:4]} leaves {sorted(map(repr, after.rows))[:7]}"[:1500]
