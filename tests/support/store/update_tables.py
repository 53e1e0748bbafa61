"""Generated update tables of every storage type, and the plain-Python truth about them.

A row is turned into its *bits*: a Python value that is equal to another iff the two rows are the
same (NaN is NaN, -0.0 is not 0.0, NULL is NULL). It is computed from Python values alone, so it
owes nothing to the kernels under test.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])
INT64 = (-(2**63), 2**63 - 1)

_FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 5e-324]
_TEXTS = ["", "a", "ab", "b", "é", "\U0010ffff", "z" * 40, "z" * 41]
_UNSCALED = [0, 1, -1, 10**37, -(10**37)]
_BIT = st.integers(0, 1)
_INTERVAL_FIELDS = {"months": _BIT, "days": _BIT | st.none(), "micros": _BIT}
_RECORD = pa.struct([("a", pa.list_(pa.string())), ("b", pa.float64())])
_RECORD_FIELDS = {
    "a": st.lists(st.sampled_from(["", "x"]), max_size=1) | st.none(),
    "b": st.sampled_from(_FLOATS),
}


def _decimal(unscaled: int) -> Decimal:
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -2))


_VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bigint": (pa.int64(), st.sampled_from([0, 1, 2, 3, -1, *INT64])),
    "integer": (pa.int32(), st.integers(-3, 3)),
    "boolean": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.sampled_from(_FLOATS)),
    "real": (pa.float32(), st.sampled_from([*_FLOATS[:7], 2.0])),
    "numeric": (pa.decimal128(38, 2), st.sampled_from([_decimal(n) for n in _UNSCALED])),
    "text": (pa.string(), st.sampled_from(_TEXTS)),
    "bytea": (pa.binary(), st.sampled_from([b"", b"\x00", b"\xff", b"\xff" * 33, b"a" * 33])),
    "uuid": (pa.binary(16), st.sampled_from([bytes(16), b"\xff" * 16, bytes(range(16))])),
    "date": (pa.date32(), st.sampled_from([0, -1, 2**31 - 1, -(2**31)])),
    "time": (pa.time64("us"), st.sampled_from([0, 1, 86_399_999_999])),
    "timestamp": (pa.timestamp("us"), st.sampled_from([0, *INT64])),
    "timestamptz": (pa.timestamp("us", "UTC"), st.sampled_from([0, *INT64])),
    "interval": (INTERVAL, st.fixed_dictionaries(_INTERVAL_FIELDS)),
    "array": (pa.list_(pa.int64()), st.lists(st.integers(0, 2) | st.none(), max_size=2)),
    "reals": (pa.list_(pa.float64()), st.lists(st.sampled_from(_FLOATS), max_size=2)),
    "record": (_RECORD, st.fixed_dictionaries(_RECORD_FIELDS)),
}
TYPES = sorted(_VALUES)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Dates, times and timestamps come as integers: PostgreSQL's range is beyond datetime's."""
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def update_table(
    columns: dict[str, tuple[pa.DataType, list[Any]]], times: list[int], diffs: list[int]
) -> pa.Table:
    """An update table out of Python values."""
    arrays = {name: _array(values, kind) for name, (kind, values) in columns.items()}
    return pa.table(
        {**arrays, "_time": pa.array(times, pa.int64()), "_diff": pa.array(diffs, pa.int64())}
    )


@st.composite
def update_tables(
    draw: st.DrawFn, *, rows_max: int = 24, rows_min: int = 0, types: list[str] | None = None
) -> pa.Table:
    """Tables of one to three data columns with many repeated values, some of them sliced."""
    names = types or draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    rows = draw(st.integers(rows_min, rows_max))
    columns = {}
    for place, name in enumerate(names):
        kind, values = _VALUES[name]
        nullable = draw(st.booleans())
        items = (values | st.none()) if nullable else values
        columns[f"c{place}"] = (kind, draw(st.lists(items, min_size=rows, max_size=rows)))
    times = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    diffs = draw(st.lists(st.integers(-2, 2), min_size=rows, max_size=rows))
    table = update_table(columns, times, diffs)
    if draw(st.booleans()) and rows > rows_min:
        table = table.slice(1)
    if draw(st.booleans()) and table.num_rows > 1:
        half = table.num_rows // 2
        table = pa.concat_tables([table.slice(0, half), table.slice(half)])
    return table


def bits(value: Any) -> Any:
    """A value that is equal to another iff the two are the same."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value)  # noqa: PLR0124
    if isinstance(value, dict):
        return tuple((name, bits(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(bits(item) for item in value)
    return value


def rows_of(table: pa.Table, names: list[str] | None = None) -> list[tuple[Any, ...]]:
    """The rows as bits, in order."""
    columns = [_pylist(table.column(name)) for name in names or table.column_names]
    return [tuple(bits(value) for value in row) for row in zip(*columns, strict=True)]


def _pylist(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


def data_names(table: pa.Table) -> list[str]:
    """The data columns."""
    return [name for name in table.column_names if name not in ("_time", "_diff")]


def contents(table: pa.Table, time: int) -> dict[Any, int]:
    """The multiset of rows at a time, by definition: the sum of diffs of the updates up to it."""
    sums: Counter[Any] = Counter()
    times, diffs = (table.column(name).to_pylist() for name in ("_time", "_diff"))
    for row, at, diff in zip(rows_of(table, data_names(table)), times, diffs, strict=True):
        if at <= time:
            sums[row] += diff
    return {row: diff for row, diff in sums.items() if diff}
