"""Rows as the evaluator takes them, and back.

The evaluator keeps rows in dicts: equal is the same there (`noonmark.rows.identity`), and an array
is a tuple; a client gets an array as a list (`noonmark.rows.value`). Most schemas need neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows import types as t
from noonmark.rows.arrow import from_table
from noonmark.rows.identity import hashable, is_own_identity
from noonmark.rows.schema import Schema

Row = tuple[Any, ...]
#: A row, when, how many more.
Change = tuple[Row, int, int]


def decoded(table: pa.Table, schema: Schema) -> list[Row]:
    """The rows of a table in the order of the schema, each fit for a dict."""
    rows = from_table(table.select(list(schema.names)), schema)
    if all(is_own_identity(column.type) for column in schema):
        return rows
    return [tuple(map(hashable, row)) for row in rows]


def counted(table: pa.Table, schema: Schema) -> list[tuple[Row, int]]:
    """The rows of a snapshot's table with their multiplicities."""
    return list(zip(decoded(table, schema), table.column(DIFF).to_pylist(), strict=True))


def changes(table: pa.Table, schema: Schema) -> list[Change]:
    """The updates of a table of changes."""
    times, diffs = table.column(TIME).to_pylist(), table.column(DIFF).to_pylist()
    return list(zip(decoded(table, schema), times, diffs, strict=True))


def finisher(types: Sequence[t.SqlType]) -> Callable[[Iterable[Row]], list[Row]]:
    """Makes rows of these types fit for a client: lists, and numbers that are equal as numbers."""
    acts = [_finish_of(kind) for kind in types]
    if all(act is None for act in acts):
        return list
    places = [(at, act) for at, act in enumerate(acts) if act is not None]

    def finish(rows: Iterable[Row]) -> list[Row]:
        made = []
        for row in rows:
            values = list(row)
            for at, act in places:
                if values[at] is not None:
                    values[at] = act(values[at])
            made.append(tuple(values))
        return made

    return finish


def _finish_of(kind: t.SqlType) -> Callable[[Any], Any] | None:
    match kind:
        case t.Array():
            return list
        case t.Real() | t.Double():
            return float
        case t.Numeric(precision=None):
            return Decimal
    return None


def identified(schema: Schema) -> Callable[[Sequence[tuple[Row, int]]], Sequence[tuple[Row, int]]]:
    """Makes counted rows of another process fit for a dict: what is pickled is another NaN."""
    if all(is_own_identity(column.type) for column in schema):
        return lambda rows: rows
    return lambda rows: [(tuple(map(hashable, row)), count) for row, count in rows]
