"""The laws of noonmark.rows.arrow: values survive storage, and conform changes no meaning."""

from __future__ import annotations

import datetime as dt
import io
import math
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import InvalidValue, NoonmarkError, SchemaMismatch
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.arrow import (
    arrow_schema,
    arrow_type,
    conform,
    from_array,
    from_table,
    to_array,
    to_table,
)
from noonmark.rows.numeral import scale_of
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import parse_type
from support.store.rows import ALL_TYPES, same, values


def _one(sql_type: t.SqlType) -> Schema:
    return Schema((Column("c", sql_type),))


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_values_survive_arrow_and_parquet(sql_type: t.SqlType, data: st.DataObject) -> None:
    column = data.draw(st.lists(st.none() | values(sql_type), max_size=6))
    array = to_array(column, sql_type)
    array.validate(full=True)
    assert array.type == arrow_type(sql_type)
    assert same(from_array(array, sql_type), column)
    assert same(from_array(array.slice(1), sql_type), column[1:])

    table = pa.table({"c": array}, schema=arrow_schema(_one(sql_type)))
    file = io.BytesIO()
    pq.write_table(table, file)
    read = pq.read_table(io.BytesIO(file.getvalue()))
    assert same(from_table(read, _one(sql_type)), [(value,) for value in column])
    assert conform(table, _one(sql_type)) is table
    assert conform(read, _one(sql_type)).schema.equals(table.schema)


_ORDERED = [
    parse_type(name) for name in ("date", "timestamptz", "uuid", "numeric", "bytea", "text")
]


@pytest.mark.parametrize("sql_type", _ORDERED, ids=str)
@given(data=st.data())
def test_storage_has_the_order_of_sql(sql_type: t.SqlType, data: st.DataObject) -> None:
    column = data.draw(st.lists(values(sql_type), max_size=8))
    array = to_array(column, sql_type)
    by_storage = from_array(array.take(pa.compute.sort_indices(array)), sql_type)
    assert by_storage == sorted(column, key=_sql_key)


def _sql_key(value: Any) -> Any:
    if isinstance(value, v.FarDate | dt.date) and not isinstance(value, dt.datetime):
        return v.days_of(value)
    if isinstance(value, v.FarTimestamp | dt.datetime):
        return v.micros_of_timestamptz(value)
    if isinstance(value, Decimal):
        odd = value.is_nan()
        return odd, Decimal(0) if odd else Decimal(value), scale_of(value)
    return value.encode() if isinstance(value, str) else value


REFUSED: list[tuple[str, Any]] = [
    ("boolean", 1),
    ("smallint", 32768),
    ("integer", True),
    ("bigint", 1.0),
    ("bigint", 2**63),
    ("real", 1e39),
    ("numeric(3,1)", Decimal("1.25")),
    ("numeric(3,1)", Decimal("100")),
    ("numeric(3,1)", Decimal("NaN")),
    ("numeric", 0.1),
    ("numeric", Decimal("1e-16384")),
    ("numeric", Decimal("1e131072")),
    ("text", b"bytes"),
    ("text", "nul\0"),
    ("text", "\ud800"),
    ("varchar(2)", "abc"),
    ("char(2)", "abc"),
    ("bytea", "text"),
    ("date", dt.datetime(2024, 1, 1)),
    ("time", dt.time(1, tzinfo=dt.UTC)),
    ("timestamp", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ("timestamptz", dt.datetime(2024, 1, 1)),
    ("interval", 5),
    ("uuid", "not a uuid"),
    ("jsonb", "{"),
    ("jsonb", '"\\u0000"'),
    ("integer[]", "{1}"),
    ("integer[]", ["1"]),
    ("record(a integer)", (1, 2)),
    ("record(a varchar(1))", ("ab",)),
]


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=lambda x: str(x)[:20])
def test_what_a_type_cannot_hold_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidValue):
        to_array([None, value], parse_type(name))


def test_far_values_have_one_form() -> None:
    for days in (0, v.days_of(dt.date.min), v.days_of(dt.date.max)):
        with pytest.raises(InvalidValue):
            v.FarDate(days)
    assert isinstance(v.date_of(v.days_of(dt.date.max) + 1), v.FarDate)
    assert isinstance(v.timestamp_of(v.micros_of_timestamp(dt.datetime.min) - 1), v.FarTimestamp)
    for beyond in (v.DAYS_MAX + 1, v.DAYS_MIN - 1):
        with pytest.raises(InvalidValue):
            v.date_of(beyond)


def test_values_are_taken_in_looser_python_forms() -> None:
    tokyo = dt.timezone(dt.timedelta(hours=9))
    assert from_array(
        to_array([dt.datetime(2024, 1, 1, 9, tzinfo=tokyo)], t.TimestampTz()), t.TimestampTz()
    ) == [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]
    assert from_array(to_array([dt.timedelta(1, 2, 3)], t.Interval()), t.Interval()) == [
        v.Interval(0, 1, 2_000_003)
    ]
    assert from_array(to_array(["ab"], t.Char(4)), t.Char(4)) == ["ab  "]
    assert from_array(to_array([{"b": 1, "a": [None]}], t.Jsonb()), t.Jsonb()) == [
        '{"a": [null], "b": 1}'
    ]
    assert from_array(to_array([7], t.Numeric(5, 2)), t.Numeric(5, 2)) == [Decimal("7.00")]


def test_nan_has_one_bit_pattern() -> None:
    for sql_type, form, odd in (
        (t.Double(), "<d", 0xFFF8000000000123),
        (t.Real(), "<f", 0xFFC00123),
    ):
        raw = odd.to_bytes(struct.calcsize(form), "little")
        storage = arrow_type(sql_type)
        array = pa.Array.from_buffers(storage, 1, [None, pa.py_buffer(raw)])
        fixed = conform(pa.table({"c": array}), _one(sql_type))["c"].chunk(0)
        assert fixed.buffers()[1].to_pybytes()[: len(raw)] == struct.pack(form, math.nan)
        nested = pa.table({"c": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array)})
        inner = conform(nested, _one(t.Array(sql_type)))["c"].chunk(0).flatten()
        assert inner.buffers()[1].to_pybytes()[: len(raw)] == struct.pack(form, math.nan)


CASTS: list[tuple[str, pa.Array, list[Any]]] = [
    ("smallint", pa.array([1, None], pa.int64()), [1, None]),
    ("bigint", pa.array([1], pa.uint8()), [1]),
    ("double precision", pa.array([1], pa.int32()), [1.0]),
    ("double precision", pa.array([0.5, math.nan], pa.float32()), [0.5, math.nan]),
    ("real", pa.array([0.5, None, math.inf], pa.float64()), [0.5, None, math.inf]),
    ("numeric(5,2)", pa.array([Decimal("1.5")], pa.decimal128(20, 1)), [Decimal("1.50")]),
    ("numeric(5,2)", pa.array([7], pa.int64()), [Decimal("7.00")]),
    ("text", pa.array(["", None], pa.large_string()), ["", None]),
    ("text", pa.array(["é"], pa.string_view()), ["é"]),
    ("text", pa.array(["x", "x", None]).dictionary_encode(), ["x", "x", None]),
    ("char(3)", pa.array(["a", "abc", "ab    "]), ["a  ", "abc", "ab "]),
    ("jsonb", pa.array(['{"b":1,"a":2}']), ['{"a": 2, "b": 1}']),
    ("bytea", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ("uuid", pa.array([b"\0" * 16], pa.binary(16)), None),  # type: ignore[list-item]
    ("date", pa.array([dt.date(2024, 1, 1)], pa.date64()), [dt.date(2024, 1, 1)]),
    ("time", pa.array([dt.time(1, 2)], pa.time32("s")), [dt.time(1, 2)]),
    ("timestamp", pa.array([5], pa.timestamp("s")), [dt.datetime(1970, 1, 1, 0, 0, 5)]),
    ("timestamp", pa.array([5000], pa.timestamp("ns")), [dt.datetime(1970, 1, 1, 0, 0, 0, 5)]),
    (
        "timestamptz",
        pa.array([0], pa.timestamp("ms", "Asia/Tokyo")),
        [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
    ),
    (
        "interval",
        pa.array([(1, 2, 3000), None], pa.month_day_nano_interval()),
        [v.Interval(1, 2, 3), None],
    ),
    ("integer[]", pa.array([[1], None, []], pa.large_list(pa.int64())), [[1], None, []]),
    ("integer[]", pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
    ("integer[]", pa.array([[1], None, [2, 3]], pa.list_view(pa.int32())), [[1], None, [2, 3]]),
    (
        "record(a integer, b text)",
        pa.array(
            [{"b": "x", "a": 1}, None], pa.struct([("b", pa.large_string()), ("a", pa.int64())])
        ),
        [(1, "x"), None],
    ),
    ("date[]", pa.nulls(2), [None, None]),
]


@pytest.mark.parametrize(("name", "array", "expected"), CASTS, ids=lambda x: str(x)[:30])
def test_conform_takes_every_layout_without_loss(
    name: str, array: pa.Array, expected: list[Any] | None
) -> None:
    schema = _one(parse_type(name))
    table = conform(pa.table({"c": array}), schema)
    assert table.schema.equals(arrow_schema(schema))
    table.validate(full=True)
    if expected is not None:
        assert same(from_array(table["c"], schema["c"].type), expected)
    assert conform(table, schema) is table


LOSSY: list[tuple[str, pa.Array]] = [
    ("smallint", pa.array([40000])),
    ("integer", pa.array([1.0])),
    ("bigint", pa.array(["1"])),
    ("bigint", pa.array([True])),
    ("text", pa.array([1])),
    ("text", pa.array([b"a"])),
    ("real", pa.array([0.1], pa.float64())),
    ("double precision", pa.array([2**53 + 1])),
    ("numeric(3,1)", pa.array([Decimal("1.25")])),
    ("numeric", pa.array([1.5])),
    ("bytea", pa.array(["a"])),
    ("timestamp", pa.array([1], pa.timestamp("ns"))),
    ("timestamp", pa.array([1], pa.timestamp("us", "UTC"))),
    ("timestamptz", pa.array([1], pa.timestamp("us"))),
    ("date", pa.array([1], pa.timestamp("us"))),
    ("interval", pa.array([(0, 0, 1)], pa.month_day_nano_interval())),
    ("integer[]", pa.array([1])),
    ("record(a integer)", pa.array([{"b": 1}])),
    ("boolean", pa.array([1])),
]


@pytest.mark.parametrize(("name", "array"), LOSSY, ids=lambda x: str(x)[:30])
def test_conform_names_what_does_not_fit(name: str, array: pa.Array) -> None:
    schema = _one(parse_type(name))
    with pytest.raises(SchemaMismatch) as caught:
        conform(pa.table({"c": array}), schema)
    assert caught.value.fields == {
        "column": "c",
        "expected": str(arrow_type(schema["c"].type)),
        "found": str(array.type),
    }


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("text", pa.array(["a", "\0"])),
        ("varchar(2)", pa.array(["abc"])),
        ("uuid", pa.array([b"short"])),
        ("time", pa.array([-1])),
        ("date", pa.array([-3_000_000], pa.int32()).view(pa.date32())),
        ("timestamp", pa.array([v.INT64_MIN + 1]).view(pa.timestamp("us"))),
        ("jsonb[]", pa.array([["{"]])),
    ],
    ids=str,
)
def test_conform_refuses_values_outside_the_type(name: str, array: pa.Array) -> None:
    with pytest.raises(InvalidValue, match='column "c"'):
        conform(pa.table({"c": array}), _one(parse_type(name)))


def test_columns_are_matched_by_name() -> None:
    schema = Schema.of(a="integer not null", b="text", c="date[]")
    swapped = pa.table({"b": ["x"], "a": pa.array([1], pa.int32())})
    assert from_table(conform(swapped, schema), schema) == [(1, "x", None)]
    for table, name in (
        (pa.table({"b": ["x"]}), "a"),
        (pa.table({"a": [1], "z": [1]}), "z"),
        (pa.table({"a": pa.array([1, None])}), "a"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "a"),
    ):
        with pytest.raises(SchemaMismatch) as caught:
            conform(table, schema)
        assert caught.value.fields["column"] == name


def test_a_null_hides_what_lies_under_it() -> None:
    """Bytes under a NULL are no value: neither a NUL character nor a long string is found there."""
    hidden = pa.array(["a\0bcd", "x"])
    masked = pa.StringArray.from_buffers(
        2, hidden.buffers()[1], hidden.buffers()[2], pa.py_buffer(b"\x02"), 1
    )
    table = conform(pa.table({"c": masked}), _one(t.Varchar(2)))
    assert table["c"].to_pylist() == [None, "x"]


def test_rows_of_the_wrong_width_or_null_are_refused() -> None:
    schema = Schema.of(a="integer not null", b="text")
    assert from_table(to_table([], schema), schema) == []
    with pytest.raises(SchemaMismatch):
        to_table([(1,)], schema)
    with pytest.raises(SchemaMismatch, match="NOT NULL"):
        to_table([(None, "x")], schema)


def test_errors_of_conform_are_all_ours() -> None:
    """Every storage type against every other: a fit, or one of our errors."""
    for found in ALL_TYPES:
        table = pa.table({"c": to_array([None], found)})
        for wanted in ALL_TYPES:
            try:
                conform(table, _one(wanted))
            except NoonmarkError:
                continue
