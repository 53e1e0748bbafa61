"""Rows as the evaluator takes them, and back.

The evaluator keeps rows in dicts, so an array is a tuple and there is one NaN; a client gets an
array as a list (`noonmark.rows.value`). Most schemas need neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from noonmark.persist.run import DIFF, TIME
from noonmark.rows import types as t
from noonmark.rows.arrow import from_table
from noonmark.rows.schema import Schema

Row = tuple[Any, ...]
#: A row, when, how many more.
Change = tuple[Row, int, int]


def hashable(value: Any) -> Any:
    """A value that can be in a dict's key: an array as a tuple, and one NaN for all."""
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _needs_care(kind: t.SqlType) -> bool:
    return isinstance(kind, t.Array | t.Record | t.Real | t.Double)


def decoded(table: pa.Table, schema: Schema) -> list[Row]:
    """The rows of a table in the order of the schema, each fit for a dict."""
    rows = from_table(table.select(list(schema.names)), schema)
    if any(_needs_care(column.type) for column in schema):
        return [tuple(map(hashable, row)) for row in rows]
    return rows


def counted(table: pa.Table, schema: Schema) -> list[tuple[Row, int]]:
    """The rows of a snapshot's table with their multiplicities."""
    return list(zip(decoded(table, schema), table.column(DIFF).to_pylist(), strict=True))


def changes(table: pa.Table, schema: Schema) -> list[Change]:
    """The updates of a table of changes."""
    times, diffs = table.column(TIME).to_pylist(), table.column(DIFF).to_pylist()
    return list(zip(decoded(table, schema), times, diffs, strict=True))


def finisher(types: Sequence[t.SqlType]) -> Callable[[Iterable[Row]], list[Row]]:
    """Makes rows of these types fit for a client."""
    arrays = [at for at, kind in enumerate(types) if isinstance(kind, t.Array)]
    if not arrays:
        return list

    def finish(rows: Iterable[Row]) -> list[Row]:
        return [
            tuple(
                list(x) if at in arrays and isinstance(x, tuple) else x for at, x in enumerate(row)
            )
            for row in rows
        ]

    return finish
