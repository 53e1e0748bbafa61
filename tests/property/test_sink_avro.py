"""Law (read back) of `noonmark.sink.avro`: what it writes is read again by FORMAT AVRO."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from noonmark.errors import InvalidValue
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Column, Schema
from noonmark.rows.value import EndOfDay, FarDate, FarTimestamp
from noonmark.sink.avro import AvroEncoding
from noonmark.source.format.avro import avro, debezium_columns
from support.store.rows import same, values

_PAIR = t.Record((t.Field("x", t.Integer()), t.Field("y", t.Text())))
_ROW: dict[str, t.SqlType] = {
    "a_boolean": t.Boolean(), "a_smallint": t.SmallInt(), "an_integer": t.Integer(),
    "a_bigint": t.BigInt(), "a_real": t.Real(), "a_double": t.Double(),
    "a_numeric": t.Numeric(12, 3), "a_plain": t.Numeric(), "a_text": t.Text(),
    "a_varchar": t.Varchar(7), "a_char": t.Char(3), "a_bytea": t.Bytea(), "a_date": t.Date(),
    "a_time": t.Time(), "a_timestamp": t.Timestamp(), "a_timestamptz": t.TimestampTz(),
    "an_interval": t.Interval(), "a_uuid": t.Uuid(), "a_jsonb": t.Jsonb(), "a_json": t.Json(),
    "an_array": t.Array(t.Integer()), "a_record": _PAIR, "records": t.Array(_PAIR),
}  # fmt: skip
SCHEMA = Schema(
    (Column("id", t.BigInt(), nullable=False), *(Column(*each) for each in _ROW.items()))
)
_FAR = (FarDate, FarTimestamp, EndOfDay)
#: What comes back as its text.
_AS_TEXT = (t.Interval,)


def _near(value: Any) -> bool:
    return not isinstance(value, _FAR)


ROWS = some.tuples(
    values(t.BigInt()), *(some.none() | values(each).filter(_near) for each in _ROW.values())
)


def back(text: str, data: bytes) -> tuple[Any, ...]:
    form = avro(text)
    parsed = form.parse(pa.array([data], pa.binary()))
    assert parsed.reasons == {}
    pairs = zip(parsed.columns, form.schema.columns, strict=True)
    return tuple(from_array(array, column.type)[0] for array, column in pairs)


@given(ROWS)
def test_a_row_is_read_again(row: tuple[Any, ...]) -> None:
    encoding = AvroEncoding(SCHEMA, ("id",), is_debezium=False, value_number=7)
    data = encoding.value(row)
    assert data[:5] == b"\0\0\0\0\7"
    found = back(encoding.value_schema, data)
    for column, value, got in zip(SCHEMA.columns, row, found, strict=True):
        shown = value
        if value is not None and (isinstance(column.type, _AS_TEXT) or t.is_plain(column.type)):
            shown = format_value(value, column.type)
        assert same(got, shown), column.name
    assert back(encoding.key_schema or "", encoding.key(row[:1])) == row[:1]


@settings(max_examples=20)
@given(ROWS, ROWS)
def test_a_change_is_read_again(old: tuple[Any, ...], new: tuple[Any, ...]) -> None:
    encoding = AvroEncoding(SCHEMA, (), is_debezium=True)
    assert encoding.key_schema is None
    images = debezium_columns(encoding.value_schema)
    assert images is not None
    assert images.names == SCHEMA.names
    for before, after in ((old, new), (None, new), (old, None)):
        found = back(encoding.value_schema, encoding.change(before, after, "u"))
        assert [image is None for image in found[:2]] == [before is None, after is None]
        assert found[2] == "u"


def test_times_that_few_can_read_are_written() -> None:
    schema = Schema.of(d="date", s="timestamp", e="time")
    encoding = AvroEncoding(schema, (), is_debezium=False)
    row = (FarDate(2**31 - 1), FarTimestamp(2**63 - 1), EndOfDay())
    assert len(encoding.value(row)) > len(encoding.value((None, None, None)))


def test_a_name_that_avro_does_not_take() -> None:
    encoding = AvroEncoding(Schema((Column("?column?", t.Text()),)), (), is_debezium=False)
    with pytest.raises(InvalidValue, match=r'"\?column\?" cannot be a field') as refused:
        json.loads(encoding.value_schema)
    assert refused.value.hint is not None
