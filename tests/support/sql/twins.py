"""One statement, two databases: Noonmark and PostgreSQL must answer with the same text.

Both are asked over PostgreSQL's protocol, in text format, so what is compared is what a client
sees. Numerics are compared by value: the number of digits after the point of a quotient is not.
Where one fails, the other must fail with an error of the same class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus

from noonmark.rows.pg.text import format_value
from support.neighbour.servers import start_postgres
from support.serve.process import serving
from support.sql.queries import ROWS, SCHEMAS
from support.sql.scalars import COLUMNS, TABLE

_NUMERIC, _FLOATS = 1700, (700, 701)
#: In one view: more would make it slow to plan, fewer would make more views.
IN_ONE_VIEW = 25

Answer = list[tuple[str | None, ...]] | str


class Twins:
    """A Noonmark and a PostgreSQL with the same tables."""

    def __init__(self, ours: psycopg.Connection, peer: psycopg.Connection) -> None:
        self.ours = ours
        self.peer = peer
        self._views = 0

    def run(self, sql: str) -> None:
        """The same statement on both, which must succeed."""
        self.ours.execute(sql.encode())
        self.peer.execute(sql.encode())

    def make_scalars(self) -> None:
        """The one row that scalars are about."""
        columns = ", ".join(f"{name} {kind}" for name, kind, _ in COLUMNS)
        self.run(f"create table {TABLE} ({columns})")
        self.run(f"insert into {TABLE} values ({', '.join(value for *_, value in COLUMNS)})")

    def make_tables(self) -> None:
        """The small tables of `support.sql.queries`."""
        for name, schema in SCHEMAS.items():
            self.run(f"create table {name} {schema}")
            types = [column.type for column in schema]
            for row, count in ROWS[name].items():
                texts = [
                    "null" if value is None else f"'{format_value(value, kind)}'"
                    for value, kind in zip(row, types, strict=True)
                ]
                for _ in range(count):
                    self.run(f"insert into {name} values ({', '.join(texts)})")

    def has_answer(self, sql: str) -> bool:
        """Whether PostgreSQL has one."""
        return not isinstance(_ask(self.peer, sql), str)

    def difference(self, sql: str) -> str | None:
        """What differs between the two answers to a query; None if nothing does."""
        return self._compare(sql, _ask(self.ours, sql), _ask(self.peer, sql))

    def view_difference(self, queries: Sequence[str]) -> list[str]:
        """As `difference`, with the queries as materialized views of Noonmark."""
        found = []
        for sql in queries:
            self._views += 1
            name = f"view_{self._views}"
            self.ours.execute(f"create materialized view {name} as {sql}".encode())
            mine = _ask(self.ours, f"select * from {name}")
            found.append(self._compare(f"as a view: {sql}", mine, _ask(self.peer, sql)))
            self.ours.execute(f"drop materialized view {name}".encode())
        return [each for each in found if each is not None]

    @staticmethod
    def _compare(sql: str, mine: Answer | _Typed, peer: Answer | _Typed) -> str | None:
        if isinstance(mine, _Typed) and isinstance(peer, _Typed):
            same = _same(mine, peer)
        else:
            same = isinstance(mine, str) and isinstance(peer, str) and mine[:2] == peer[:2]
        return None if same else f"{sql}\n  ours: {mine!r:.400}\n  PostgreSQL: {peer!r:.400}"


class _Typed(list[tuple[str | None, ...]]):
    """Rows as text, and the types of their columns."""

    def __init__(self, rows: list[tuple[str | None, ...]], oids: tuple[int, ...]) -> None:
        super().__init__(rows)
        self.oids = oids


def _ask(connection: psycopg.Connection, sql: str) -> _Typed | str:
    result = connection.pgconn.exec_params(sql.encode(), None)
    if result.status != ExecStatus.TUPLES_OK:
        state = result.error_field(DiagnosticField.SQLSTATE) or b"?????"
        return f"{state.decode()} {result.error_message.decode(errors='replace')}"
    rows = [
        tuple(
            None if (raw := result.get_value(at, n)) is None else raw.decode()
            for n in range(result.nfields)
        )
        for at in range(result.ntuples)
    ]
    return _Typed(rows, tuple(result.ftype(n) for n in range(result.nfields)))


def _same(mine: _Typed, peer: _Typed) -> bool:
    if mine.oids != peer.oids or len(mine) != len(peer):
        return False
    key = [_key(row, peer.oids) for row in peer]
    return sorted((_key(row, mine.oids) for row in mine), key=repr) == sorted(key, key=repr)


def _key(row: tuple[str | None, ...], oids: tuple[int, ...]) -> tuple[object, ...]:
    return tuple(_value(text, oid) for text, oid in zip(row, oids, strict=True))


def _value(text: str | None, oid: int) -> object:
    if text is None:
        return None
    if oid == _NUMERIC:
        return round(Decimal(text), 12).normalize() + 0
    if oid in _FLOATS:
        number = float(text)
        return number if math.isinf(number) or math.isnan(number) else float(f"{number:.12g}")
    return text


@contextmanager
def twins(folder: Path) -> Iterator[Twins]:
    """Both, running."""
    for name in ("noonmark", "postgres"):
        (folder / name).mkdir()
    with (
        serving(folder / "noonmark") as ours,
        start_postgres(folder / "postgres") as server,
        ours.connect() as mine,
        psycopg.connect(server.dsn, autocommit=True) as peer,
    ):
        yield Twins(mine, peer)
