"""The same text to Noonmark and to PostgreSQL, by the same client, and what counts as a difference.

Names, oids of types, text of the rows (as a multiset; as a list where the order is total) and
SQLSTATE must be equal. Nothing is rounded and nothing is read into values. Not counted as wrong:

    refused     Noonmark answers 0A000: it says what it does not do. Counted by what it said.
    order       both fail, in a statement with more than one row or condition, with errors of the
                class of data (22): which row or condition is evaluated first is nobody's promise.
    once        in such a statement one fails with an error of that class and the other does not
                evaluate that part at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from support.anysql.choices import Choices, smaller
from support.pgwire_host import DatabaseHost
from support.servers import server_folder, start_postgres
from support.sql_seen import Row, Seen, ask

_DATA = ("22", "21")


@dataclass
class Both:
    """The two servers, and what was seen."""

    ours: psycopg.Connection
    peer: psycopg.Connection
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def run(self, sql: str) -> None:
        """A statement that both must take."""
        for connection in (self.ours, self.peer):
            told = ask(connection, sql)
            assert not told.state, (sql, told)

    def known(self) -> Callable[[str], bool]:
        """Whether PostgreSQL has a function or operator of that name."""
        rows = self.peer.execute(
            "select proname from pg_proc union select oprname from pg_operator"
        )
        names = {name for (name,) in rows} | {"concat", "coalesce"}
        return lambda name: name in names

    def compare(self, sql: str, *, one_row: bool, ordered: bool = False) -> str | None:
        """What differs; None if nothing does."""
        mine, theirs = ask(self.ours, sql), ask(self.peer, sql)
        verdict = judge(mine, theirs, one_row=one_row, ordered=ordered)
        self.counts[verdict] += 1
        if verdict == "refused":
            self.refusals[mine.message[:60]] += 1
        if verdict != "wrong":
            return None
        return f"{sql}\n  ours: {_shown(mine)}\n  PostgreSQL: {_shown(theirs)}"


def judge(mine: Seen, theirs: Seen, *, one_row: bool, ordered: bool) -> str:
    """See the module: answered, failed, refused, order, once or wrong."""
    if mine.state == "0A000" and theirs.state != "0A000":
        return "refused"
    if mine.state or theirs.state:
        if mine.state == theirs.state:
            return "failed"
        if mine.message.endswith("is not supported") and mine.state == "22023":
            return "refused"  # told by a value: a template, an option of a pattern
        data = [each.state[:2] in _DATA for each in (mine, theirs)]
        if not one_row and all(data):
            return "order"
        quiet = [not each.state for each in (mine, theirs)]
        if not one_row and any(data) and any(quiet):
            return "once"
        return "wrong"
    if mine.names != theirs.names:
        return "wrong"
    if _oids(mine) != _oids(theirs):
        return "wrong"
    return "answered" if _same(mine.rows, theirs.rows, ordered=ordered) else "wrong"


def _same(mine: Sequence[Row], theirs: Sequence[Row], *, ordered: bool) -> bool:
    if ordered:
        return tuple(mine) == tuple(theirs)
    return sorted(map(repr, mine)) == sorted(map(repr, theirs))


def _oids(seen: Seen) -> list[int]:
    return [oid for oid, _ in seen.types]


def _shown(seen: Seen) -> str:
    if seen.state:
        return f"{seen.state} {seen.message[:200]}"
    rows = sorted(map(repr, seen.rows))
    return f"{list(zip(seen.names, seen.types, strict=True))} {len(rows)} rows {rows[:8]}"[:700]


def shrunk(
    drawn: list[int],
    make: Callable[[Choices], str],
    differs: Callable[[str], bool],
    tries_max: int = 300,
) -> str:
    """The text of a smaller sequence of choices that still makes a difference."""

    def fails(trial: list[int]) -> bool:
        try:
            return differs(make(Choices(replay=trial)))
        except (IndexError, KeyError, ValueError):
            return False

    return make(Choices(replay=smaller(drawn, fails, tries_max)))


@contextmanager
def both(dsn: str | None = None) -> Iterator[Both]:
    """A Noonmark in memory, without Spark, unless one is given; and a PostgreSQL."""
    with server_folder("any") as folder, start_postgres(folder) as server:
        host = None if dsn else DatabaseHost()
        mine = dsn or (host.dsn("noonmark") if host else "")
        with (
            psycopg.connect(mine, autocommit=True) as ours,
            psycopg.connect(server.dsn, autocommit=True, options="-c jit=off") as peer,
        ):
            for connection in (ours, peer):
                connection.execute("set timezone = 'UTC'")
                connection.execute("set extra_float_digits = 1")
            yield Both(ours, peer)
        if host:
            host.close()
