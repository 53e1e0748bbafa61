"""The same text to Noonmark and to PostgreSQL, by the same client, and what counts as a difference.

Names, oids of types, text of the rows (as a multiset; as a list where the order is total) and
SQLSTATE must be equal. Nothing is rounded and nothing is read into values. Not counted as wrong:

    refused     Noonmark answers 0A000: it says what it does not do. Counted by what it said.
    form        the same rows, except that one of several equal intervals stands for them in another
                form (1 day, 24:00:00), or one of the two zeros of a float (0, -0): which one
                DISTINCT, GROUP BY, a set operation, min or max keeps, and which of them ORDER BY
                puts first, is nobody's promise. Only in statements that have one of these; and
                where the order is total, rows that differ in more than that stand in one order.
                Likewise which of two equal numerics (0, 0.00), or ranges of them, DISTINCT, GROUP
                BY and a set operation keep: PostgreSQL the one that it meets first.
    order       both fail, in a statement with more than one row or condition, with errors of values
                (22, 21; 54 of ``chr(0)``; 0A000 of a unit that a type has not; 42601 of a
                template): which row or condition is evaluated first is nobody's promise. So with
                a key that one row violates (23) beside a value of another.
    failed otherwise
                a text that was broken on purpose, in which both find another fault.
    once        in such a statement one fails with an error of that class and the other does not
                evaluate that part at all.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction

import psycopg

from support.neighbour.ready import ready
from support.neighbour.servers import server_folder, start_postgres
from support.serve.host import DatabaseHost
from support.sql.any.choices import Choices, smaller
from support.sql.seen import Row, Seen, ask, seen

_DATA = ("22", "21", "54")
#: A unit that a type has not, a pattern of a template that stands twice.
_ALSO_OF_VALUES = (
    ("42601", "invalid range bound flags"),
    ("0A000", 'unit "'),
    ("42601", 'cannot use "'),
    ("0A000", "cannot convert infinity"),
    ("0A000", "cannot convert NaN"),
)
#: How many statements are under way at the same time: a server that is alone on a busy machine
#: waits for its turn more than it works.
BESIDE = 8

_FIRST_MADE, _RECORD = 16_384, 2249

#: A connection to Noonmark and one to PostgreSQL.
Pair = tuple[psycopg.Connection, psycopg.Connection]


@dataclass(frozen=True)
class Text:
    """A statement, the choices that made it, and how it is compared.

    Of one that is `broken` no two servers find the same fault first: both must find one.
    """

    sql: str
    choices: Choices
    one_row: bool
    ordered: bool = False
    broken: bool = False


@dataclass
class Both:
    """The two servers, and what was seen; `beside` are more connections to both."""

    ours: psycopg.Connection
    peer: psycopg.Connection
    beside: list[Pair] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    #: What Noonmark alone failed with where that is excused: to be read by whoever runs it.
    alone: Counter[str] = field(default_factory=Counter)
    #: What the peer's numbers of types that somebody made are here.
    made: dict[int, int] = field(default_factory=dict)

    def know(self, name: str) -> None:
        """A type that somebody made on both sides, and its arrays: they have other numbers."""
        sql = f"select '{name}'::regtype::oid::int, '{name}[]'::regtype::oid::int"
        # Not prepared: a name is looked up when a statement is planned.
        mine, theirs = (map(int, ask(one, sql).rows[0]) for one in (self.ours, self.peer))  # type: ignore[arg-type]
        self.made = dict(zip(theirs, mine, strict=True))

    def asked(self, sql: str) -> tuple[Seen, Seen]:
        """What both say to a statement."""
        return ask(self.ours, sql), self.named(ask(self.peer, sql))

    def named(self, theirs: Seen) -> Seen:
        """What the peer says, with our numbers for types that somebody made.

        The row of a table is of a type of its own there, and a record here.
        """
        if not any(oid >= _FIRST_MADE for oid, _ in theirs.types):
            return theirs
        types = tuple(
            (self.made.get(oid, _RECORD) if oid >= _FIRST_MADE else oid, mod)
            for oid, mod in theirs.types
        )
        return replace(theirs, types=types)

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

    def stream(self, texts: Iterable[Text]) -> Iterator[tuple[Text, str | None]]:
        """Each text and what differs, in their order; some are under way at the same time."""
        for text, (mine, theirs) in self.answers(texts):
            yield text, self._told(text, mine, theirs)

    def answers(self, texts: Iterable[Text]) -> Iterator[tuple[Text, tuple[Seen, Seen]]]:
        """Each text and what both say to it, in their order."""
        kept = deque[Text]()

        def asked() -> Iterator[tuple[str, str]]:
            for text in texts:
                kept.append(text)
                yield text.sql, text.sql

        for told in self.apart(asked()):
            yield kept.popleft(), told

    def apart(self, statements: Iterable[tuple[str, str]]) -> Iterator[tuple[Seen, Seen]]:
        """What each server says to the statement for it, in their order."""
        free, under_way = list(self.beside), deque[Pair]()

        def first() -> tuple[Seen, Seen]:
            pair = under_way.popleft()
            free.append(pair)
            return answer(pair[0]), self.named(answer(pair[1]))

        for statement in statements:
            if not free:
                yield first()
            pair = free.pop()
            for connection, sql in zip(pair, statement, strict=True):
                send(connection, sql)
            under_way.append(pair)
        while under_way:
            yield first()

    def compare(self, text: Text) -> str | None:
        """What differs; None if nothing does."""
        return self._told(text, *self.asked(text.sql))

    def _told(self, text: Text, mine: Seen, theirs: Seen) -> str | None:
        verdict = judge(text.sql, mine, theirs, one_row=text.one_row, ordered=text.ordered)
        if text.broken and verdict == "wrong" and faulty(mine, theirs):
            verdict = "failed otherwise"
        self.counts[verdict] += 1
        if verdict == "refused":
            self.refusals[mine.message[:60]] += 1
        if verdict == "once" and mine.state:
            self.alone[f"{mine.state} {mine.message[:60]}"] += 1
        if verdict != "wrong":
            return None
        return f"{text.sql}\n  ours: {_shown(mine)}\n  PostgreSQL: {_shown(theirs)}"

    def at_once(self, statements: Sequence[str]) -> Iterator[Seen]:
        """What Noonmark says to each, some at the same time on connections of their own."""
        for start in range(0, len(statements), len(self.beside)):
            some = statements[start : start + len(self.beside)]
            for (ours, _), sql in zip(self.beside, some, strict=False):
                send(ours, sql)
            for (ours, _), _ in zip(self.beside, some, strict=False):
                yield answer(ours)


def answer(connection: psycopg.Connection) -> Seen:
    """What a server says to the statement that it was sent."""
    wire, last = connection.pgconn, None
    while True:
        while wire.is_busy():
            # Without holding anything that a server in this process may need.
            ready(wire.socket)
            wire.consume_input()
        result = wire.get_result()
        if result is None:
            assert last is not None
            return seen(last)
        last = result


def send(connection: psycopg.Connection, sql: str) -> None:
    """Send a statement, whose `answer` is for later."""
    connection.pgconn.send_query(sql.encode())
    while connection.pgconn.flush():
        ready(connection.pgconn.socket, to_write=True)


def faulty(mine: Seen, theirs: Seen) -> bool:
    """Whether both refuse a statement, and neither by mistake."""
    return bool(mine.state and theirs.state) and mine.state != "XX000"


def judge(sql: str, mine: Seen, theirs: Seen, *, one_row: bool, ordered: bool) -> str:
    """See the module: answered, failed, refused, form, order, once or wrong."""
    if mine.state == "0A000" and theirs.state != "0A000":
        return "refused"
    if mine.state or theirs.state:
        if mine.state == theirs.state:
            return "failed"
        if theirs.state == "0A000" and theirs.message.startswith("could not implement"):
            return "failed"  # it has no hashing of strings of bits
        data = [_is_of_values(each) for each in (mine, theirs)]
        keyed = [each.state[:2] == "23" for each in (mine, theirs)]
        if not one_row and all(map(max, data, keyed)) and any(data):
            return "order"
        quiet = [not each.state for each in (mine, theirs)]
        if not one_row and any(data) and any(quiet):
            return "once"
        return "wrong"
    if mine.names != theirs.names:
        return "wrong"
    if _oids(mine) != _oids(theirs):
        return "wrong"
    if _same(mine.rows, theirs.rows, ordered=ordered):
        return "answered"
    if one_row or not _KEEPS_ONE.search(sql):
        return "wrong"
    if not _same(*(_in_forms(each, _KEEPS_KEY.search(sql)) for each in (mine, theirs))):
        return "wrong"
    if ordered and not _same(*(_in_forms(each, True) for each in (mine, theirs)), ordered=True):
        return "wrong"
    return "form"


_NUMERIC, _NUMRANGES, _FLOATS = 1700, (3906, 4532), (700, 701)
#: What keeps one of several equal values, or puts one of them first.
_KEEPS_ONE = re.compile(
    r"\b(distinct|group by|union|intersect|except|min\(|max\(|rollup|cube|sets|order by)"
)
_KEEPS_KEY = re.compile(r"\b(distinct|group by|union|intersect|except)\b")
#: The fraction of an end of a range.
_FRACTION = re.compile(r"\.\d+(?=[,)\]])")
_SPAN = re.compile(
    r"(?:([-+]?\d+) years? ?)?(?:([-+]?\d+) mons? ?)?(?:([-+]?\d+) days? ?)?"
    r"(?:([-+]?)(\d+):(\d\d):(\d\d(?:\.\d+)?))?"
)


def _in_forms(seen: Seen, numerics: object) -> list[Row]:
    """The rows with equal values written alike, those of numerics too if that is asked for."""
    forms = [_form(oid, numerics) for oid in _oids(seen)]
    return [
        tuple(cell and form(cell) for cell, form in zip(row, forms, strict=True))
        for row in seen.rows
    ]


def _form(oid: int, numerics: object) -> Callable[[str], str]:
    """The text of a cell of that type, in which equal values are written alike."""
    if oid in _FLOATS:
        return lambda cell: "0" if cell == "-0" else cell
    if oid == _NUMERIC and numerics:
        return lambda cell: cell.rstrip("0").rstrip(".") if "." in cell else cell
    if oid in _NUMRANGES and numerics:
        return lambda cell: _FRACTION.sub(lambda found: found[0].rstrip("0").rstrip("."), cell)
    return _of_spans


def _of_spans(cell: str) -> str:
    spans = _SPAN.sub(lambda m: f"<{_hours(m)}>" if m[0].strip() else m[0], cell)
    zeros = re.sub(r"(?<![\w.])-0(?![\w.:])", "0", spans)  # in a text of several floats
    return re.sub(r'"(<[^>]*>)"', r"\1", zeros)  # in an array


def _hours(match: re.Match[str]) -> Fraction:
    years, months, days = (int(match[at] or 0) for at in (1, 2, 3))
    clock = Fraction(match[7] or 0) / 3600 + Fraction(match[6] or 0) / 60 + int(match[5] or 0)
    return ((years * 12 + months) * 30 + days) * 24 + (-clock if match[4] == "-" else clock)


def _same(mine: Sequence[Row], theirs: Sequence[Row], *, ordered: bool = False) -> bool:
    if ordered:
        return tuple(mine) == tuple(theirs)
    return sorted(map(repr, mine)) == sorted(map(repr, theirs))


def _is_of_values(seen: Seen) -> bool:
    return seen.state[:2] in _DATA or any(
        seen.state == state and seen.message.startswith(start) for state, start in _ALSO_OF_VALUES
    )


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
def both(dsn: str | None = None, *, by_columns: bool = False) -> Iterator[Both]:
    """A Noonmark in memory, without Spark, unless one is given; and a PostgreSQL.

    With `by_columns` the one in memory computes by kernels what they can, however few the rows are.
    """
    with server_folder("any") as folder, start_postgres(folder) as server:
        host = None if dsn else DatabaseHost()
        if host and by_columns:
            host.database.reads.answers.columns_rows_min = 0
        mine = dsn or (host.dsn("noonmark") if host else "")
        with (
            psycopg.connect(mine, autocommit=True) as ours,
            psycopg.connect(server.dsn, autocommit=True, options="-c jit=off") as peer,
            ExitStack() as stack,
        ):
            beside = [
                (
                    stack.enter_context(psycopg.connect(mine, autocommit=True)),
                    stack.enter_context(
                        psycopg.connect(server.dsn, autocommit=True, options="-c jit=off")
                    ),
                )
                for _ in range(BESIDE)
            ]
            for connection in (ours, peer, *(each for pair in beside for each in pair)):
                connection.execute("set timezone = 'UTC'")
                connection.execute("set extra_float_digits = 1")
            yield Both(ours, peer, beside)
        if host:
            host.close()
