"""Codecs: how a program's values become rows, and updates become tables.

A collection stores rows of its schema. A `Codec` maps a program's own values to such rows, many
at a time. The default, `RowCodec`, takes tuples in the order of the columns. Whoever writes a
codec answers for its compatibility: a value encoded by an older version must decode under the
newer one.

Law: ``decode(encode(values)) == values``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from noonmark.errors import InvalidValue, SchemaMismatch
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows import arrow
from noonmark.rows.schema import Schema
from noonmark.tvc import Update

TIME_MAX = 2**63 - 2


class Codec(Protocol):
    """Values of one type, as rows of one schema."""

    @property
    def schema(self) -> Schema:
        """The columns that the values fill."""

    def encode(self, values: Sequence[Any]) -> pa.Table:
        """One row per value, in order."""

    def decode(self, table: pa.Table) -> list[Any]:
        """One value per row, in order."""


class RowCodec:
    """Values are tuples, one item per column."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def encode(self, values: Sequence[Any]) -> pa.Table:
        """See `Codec.encode`."""
        return arrow.to_table(values, self.schema)

    def decode(self, table: pa.Table) -> list[Any]:
        """See `Codec.decode`."""
        return arrow.from_table(table.select(list(self.schema.names)), self.schema)


def update_table(
    updates: pa.Table | Iterable[Update[Any, int]], codec: Codec, schema: Schema
) -> pa.Table:
    """Updates as a table of `schema` with `_time` and `_diff`, checked."""
    if isinstance(updates, pa.Table):
        return _checked(updates, schema)
    updates = list(updates)
    data = codec.encode([update.data for update in updates])
    if type(codec) is not RowCodec or codec.schema != schema:
        data = arrow.conform(data, schema)  # what `RowCodec` encodes conforms already
    times = pa.array([update.time for update in updates], pa.int64())
    diffs = pa.array([update.diff for update in updates], pa.int64())
    table = data.append_column(TIME, times).append_column(DIFF, diffs)
    _check_times(table)
    return table


def updates_of(table: pa.Table, codec: Codec) -> list[Update[Any, int]]:
    """A table with `_time` and `_diff` as updates."""
    times, diffs = table.column(TIME).to_pylist(), table.column(DIFF).to_pylist()
    data = codec.decode(table.drop_columns([TIME, DIFF]))
    return [Update(*update) for update in zip(data, times, diffs, strict=True)]


def _checked(table: pa.Table, schema: Schema) -> pa.Table:
    for name in (TIME, DIFF):
        if name not in table.column_names:
            raise SchemaMismatch(
                f'a table of updates needs a column "{name}"',
                detail=f"It has {', '.join(table.column_names)}.",
                hint=f'Add "{TIME}" (bigint: when) and "{DIFF}" (bigint: how many copies more).',
                column=name,
            )
    table = table.select([n for n in table.column_names if n not in (TIME, DIFF)] + [TIME, DIFF])
    data = arrow.conform(table.drop_columns([TIME, DIFF]), schema)
    for name in (TIME, DIFF):
        column = table.column(name)
        if column.type != pa.int64():
            column = column.cast(pa.int64())
        data = data.append_column(name, column)
    _check_times(data)
    return data


def _check_times(table: pa.Table) -> None:
    for name in (TIME, DIFF):
        if table.column(name).null_count:
            raise InvalidValue(f'column "{name}" of a table of updates has NULLs', column=name)
    if table.num_rows:
        times = table.column(TIME).to_numpy()
        low, high = int(times.min()), int(times.max())
        if low < 0 or high > TIME_MAX:
            raise InvalidValue(
                f"time {low if low < 0 else high} is outside of the timeline",
                detail=f"Times are milliseconds since the epoch, from 0 to {TIME_MAX}.",
                hint="Write at a time inside of it.",
                time=low if low < 0 else high,
            )
