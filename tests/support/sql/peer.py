"""The same SQL on a PostgreSQL and on the reference, and how the two answers are compared.

Values are compared as values of the type that the plan gives them. Numerics may differ behind the
18th digit after the point, where ours are rounded, and floats in the last digits, where sums of
ours are exact. An error is an answer too: both must fail, with the same class of SQLSTATE.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.identity import hashable
from noonmark.rows.order import row_key, total_key
from noonmark.rows.pg.text import format_value
from noonmark.rows.postgres import decode_text, oid
from noonmark.rows.schema import Schema
from noonmark.sql.functions.number.fit import quantize
from noonmark.sql.ir.relation import Relation
from noonmark.sql.meaning.relation import evaluate, in_order
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify

Row = tuple[Any, ...]
Rows = Mapping[str, Mapping[Row, int]]


class Failed(Exception):
    """An answer that is an error."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate} {message}")
        self.sqlstate = sqlstate


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection whose session means what ours does: UTC, ISO, collation C."""
    options = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c jit=off"
    with psycopg.connect(dsn, autocommit=True, options=options) as connection:
        yield connection


def load(connection: psycopg.Connection, schemas: Mapping[str, Schema], rows: Rows) -> None:
    """Temporary tables with the rows of every collection."""
    for name, schema in schemas.items():
        columns = ", ".join(f'"{c.name}" {c.type}' for c in schema)
        connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        connection.execute(f'CREATE TEMP TABLE "{name}" ({columns})')
        types = [c.type for c in schema]
        with (
            connection.cursor() as cursor,
            cursor.copy(f'COPY "{name}" FROM STDIN') as copy,
        ):
            for row, count in rows[name].items():
                texts = [
                    None if value is None else format_value(value, kind)
                    for value, kind in zip(row, types, strict=True)
                ]
                for _ in range(count):
                    copy.write_row(texts)


def theirs(connection: psycopg.Connection, sql: str, schema: Schema) -> list[Row]:
    """PostgreSQL's rows as values of our types."""
    result = connection.pgconn.exec_params(sql.encode(), None)
    if result.status != ExecStatus.TUPLES_OK:
        state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"?????"
        raise Failed(state.decode(), result.error_message.decode(errors="replace"))
    types = [column.type for column in schema]
    assert result.nfields == len(types), (sql, result.nfields, str(schema))
    for at, kind in enumerate(types):
        if not isinstance(kind, t.Record):
            shown = result.ftype(at)
            assert shown == oid(kind), f"{sql}: column {at} is oid {shown} there, {kind} here"
    return [
        tuple(_decode(result.get_value(n, at), kind) for at, kind in enumerate(types))
        for n in range(result.ntuples)
    ]


def _decode(raw: bytes | None, kind: t.SqlType) -> Any:
    if raw is not None and isinstance(kind, t.Numeric):
        return Decimal(raw.decode())
    return hashable(decode_text(raw, kind))


def ours(sql: str, schemas: Mapping[str, Schema], rows: Rows, *, rules: bool) -> list[Row]:
    """The reference's rows, sorted if the query is."""
    try:
        query = plan_query(sql, schemas)
        ordered = simplify(query.ordered) if rules else query.ordered
        found = evaluate(ordered, rows)
    except NoonmarkError as error:
        raise Failed(error.sqlstate, str(error)) from error
    listed = in_order(found, ordered, query.order)
    return [row[: len(query.names)] for row in listed]


def schema_of(sql: str, schemas: Mapping[str, Schema]) -> Relation:
    return plan_query(sql, schemas).relation


def alike(a: Any, b: Any, kind: t.SqlType) -> bool:
    """Whether two values are the same as far as they promise to be."""
    if a is None or b is None:
        return a is b
    if isinstance(kind, t.Numeric):
        return bool(quantize(a, 18) == quantize(b, 18))
    if isinstance(kind, t.Real | t.Double):
        digits = 1e-6 if isinstance(kind, t.Real) else 1e-12
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=digits)
    if isinstance(kind, t.Array):
        return len(a) == len(b) and all(
            alike(x, y, kind.element) for x, y in zip(a, b, strict=True)
        )
    return bool(a == b)


def same_rows(mine: Sequence[Row], peer: Sequence[Row], schema: Schema, ordered: bool) -> bool:
    """Whether two answers are the same multiset, or the same list."""
    types = tuple(column.type for column in schema)
    if not ordered:
        key = row_key(types, total_key)
        mine, peer = sorted(mine, key=key), sorted(peer, key=key)
    return len(mine) == len(peer) and all(
        alike(x, y, kind)
        for a, b in zip(mine, peer, strict=True)
        for x, y, kind in zip(a, b, types, strict=True)
    )


def disagreement(
    connection: psycopg.Connection,
    sql: str,
    schemas: Mapping[str, Schema],
    rows: Rows,
    *,
    ordered: bool = False,
    rules: bool = True,
) -> str | None:
    """What differs between the two answers; None if nothing does."""
    answers: list[list[Row] | Failed] = []
    schema = Schema(())
    try:
        schema = schema_of(sql, schemas).schema
        answers.append(ours(sql, schemas, rows, rules=rules))
    except NoonmarkError as error:
        answers.append(Failed(error.sqlstate, str(error)))
    except Failed as failed:
        answers.append(failed)
    try:
        answers.append(
            theirs(connection, sql, schema) if schema.columns else _only(connection, sql)
        )
    except Failed as failed:
        answers.append(failed)
    mine, peer = answers
    if isinstance(mine, Failed) or isinstance(peer, Failed):
        both = isinstance(mine, Failed) and isinstance(peer, Failed)
        if both and mine.sqlstate[:2] == peer.sqlstate[:2]:  # type: ignore[union-attr]
            return None
        return f"{sql}\n  ours: {mine!r:.500}\n  PostgreSQL: {peer!r:.500}"
    if same_rows(mine, peer, schema, ordered):
        return None
    return f"{sql}\n  ours: {mine!r:.800}\n  PostgreSQL: {peer!r:.800}"


def _only(connection: psycopg.Connection, sql: str) -> list[Row]:
    """Whether PostgreSQL fails as well, when ours could not even be planned."""
    result = connection.pgconn.exec_params(sql.encode(), None)
    if result.status != ExecStatus.TUPLES_OK:
        state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"?????"
        raise Failed(state.decode(), result.error_message.decode(errors="replace"))
    return [
        tuple(result.get_value(n, at) for at in range(result.nfields))
        for n in range(result.ntuples)
    ]
