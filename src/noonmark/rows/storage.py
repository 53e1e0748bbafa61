"""The Arrow type in which each SQL type is stored, sent to Spark and read back.

| SQL | Arrow | why |
|---|---|---|
| boolean, integers, floats, text, bytea | bool, int16/32/64, float32/64, string, binary | |
| numeric(p,s) | decimal128(p,s) | |
| numeric | binary | any size, NaN, with its scale: bytes in the order of numbers (`rows.numeral`) |
| varchar, char | string | char padded with blanks, so that equal values have equal bytes |
| date | date32 | the int32 extremes are the infinities |
| time | int64, microseconds since midnight | Spark has no time type it can write; 24:00:00 fits |
| timestamp, timestamptz | timestamp[us], timestamp[us, UTC] | int64 extremes are the infinities |
| interval | struct<months: int32, days: int32, micros: int64> | |
| enum | binary: the place of the label and its text, in the order of the type (`rows.label`) | |
| bits, addresses, ranges, ... | binary, in the order of the type (`rows.coded`) | |
| uuid | binary, 16 bytes | Spark turns fixed_size_binary into binary: one form, no casts |
| jsonb | string, canonical | equal documents have equal bytes |
| json | string, as it was written | |
| array, record | list, struct | |

Law (order): dates, times, timestamps, numbers, enums and uuids are ordered in storage as in SQL,
the infinities being the extremes. So statistics and binary search need no knowledge of SQL types.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from noonmark.rows import types as t
from noonmark.rows.schema import Schema

INTERVAL_STRUCT = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())])

_SIMPLE: dict[type[t.SqlType], pa.DataType] = {
    t.Boolean: pa.bool_(),
    t.SmallInt: pa.int16(),
    t.Integer: pa.int32(),
    t.BigInt: pa.int64(),
    t.Real: pa.float32(),
    t.Double: pa.float64(),
    t.Text: pa.string(),
    t.Varchar: pa.string(),
    t.Char: pa.string(),
    t.Bytea: pa.binary(),
    t.Date: pa.date32(),
    t.Time: pa.int64(),
    t.Timestamp: pa.timestamp("us"),
    t.TimestampTz: pa.timestamp("us", "UTC"),
    t.Interval: INTERVAL_STRUCT,
    t.Uuid: pa.binary(),
    t.Enum: pa.binary(),
    t.Jsonb: pa.string(),
    t.Json: pa.string(),
}


@lru_cache(maxsize=4096)
def arrow_type(sql_type: t.SqlType) -> pa.DataType:
    """The storage type of a SQL type."""
    match sql_type:
        case t.Numeric(precision=None) | t.Coded():
            return pa.binary()
        case t.Numeric():
            return pa.decimal128(sql_type.stored_precision, sql_type.stored_scale)
        case t.Array(element):
            # Spark names the field so; the same name everywhere keeps schemas equal.
            return pa.list_(pa.field("element", arrow_type(element)))
        case t.Record(fields):
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in fields])
    return _SIMPLE[type(sql_type)]


@lru_cache(maxsize=1024)
def arrow_schema(schema: Schema) -> pa.Schema:
    """The storage schema of a schema."""
    return pa.schema(
        [pa.field(c.name, arrow_type(c.type), nullable=c.nullable) for c in schema.columns]
    )
