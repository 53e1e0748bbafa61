"""FORMAT AVRO: what was written is read, by whichever schema; what was not is a reason."""

from __future__ import annotations

import datetime as dt
import io
import json
import pickle
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from noonmark.errors import ConfigError, SourceStalled
from noonmark.rows.arrow import from_array
from noonmark.source.format.avro import Avro, avro, columns_of, debezium_columns
from noonmark.source.format.registry import Registry
from support.neighbour.registry import RegistryServer

EVERY: dict[str, Any] = {
    "type": "record",
    "name": "every",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "b", "type": "bytes"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "e", "type": {"type": "enum", "name": "mood", "symbols": ["SAD", "GLAD"]}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {
            "name": "n",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "list", "type": {"type": "array", "items": ["null", "int"]}},
        {"name": "map", "type": {"type": "map", "values": "int"}},
        {
            "name": "inner",
            "type": {
                "type": "record",
                "name": "inner",
                "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}],
            },
        },
    ],
}
ROW: dict[str, Any] = {
    "flag": True,
    "i": -5,
    "l": None,
    "f": 1.5,
    "d": 2.25,
    "b": b"\x00\xff",
    "s": "ä",
    "e": "GLAD",
    "day": dt.date(2020, 2, 29),
    "ts": dt.datetime(2020, 1, 1, 1, 2, 3, 456789, tzinfo=dt.UTC),
    "local": dt.datetime(2020, 1, 1, 1, 2, 3, 456000),
    "n": Decimal("12.34"),
    "u": UUID(int=7),
    "list": [1, None, 3],
    "map": {"b": 2, "a": 1},
    "inner": {"x": 1, "y": None},
}


def encode(schema: Any, datum: Any, number: int | None = None) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), datum)
    head = b"" if number is None else b"\0" + number.to_bytes(4)
    return head + out.getvalue()


def rows(form: Avro, *values: bytes) -> tuple[list[tuple[Any, ...]], dict[int, str]]:
    parsed = form.parse(pa.array(values, pa.binary()))
    columns = [
        from_array(array, column.type)
        for array, column in zip(parsed.columns, form.schema.columns, strict=True)
    ]
    return list(zip(*columns, strict=True)), parsed.reasons


def test_every_type() -> None:
    form = avro(json.dumps(EVERY), with_header=False)
    assert str(form.schema) == (
        "(flag boolean NOT NULL, i integer NOT NULL, l bigint, f real NOT NULL, d double precision"
        " NOT NULL, b bytea NOT NULL, s text, e text NOT NULL, day date NOT NULL, ts timestamp with"
        " time zone NOT NULL, local timestamp without time zone NOT NULL, n numeric(10,2) NOT NULL,"
        " u uuid NOT NULL, list integer[] NOT NULL, map jsonb NOT NULL, inner record(x integer, y"
        " text) NOT NULL)"
    )
    ((row,), reasons) = rows(pickle.loads(pickle.dumps(form)), encode(EVERY, ROW))
    assert reasons == {}
    assert row == (
        *(ROW[name] for name in form.schema.names[:14]),
        '{"a": 1, "b": 2}',
        (1, None),
    )


def test_what_is_no_record_is_one_column() -> None:
    form = avro('"string"', with_header=False)
    assert rows(form, encode("string", "x")) == ([("x",)], {})


@given(some.binary(max_size=40))
def test_any_bytes_are_a_row_or_a_reason(value: bytes) -> None:
    for with_header in (True, False):
        form = avro(json.dumps(EVERY), with_header=with_header)
        found, reasons = rows(form, value)
        assert len(found) == 1
        assert set(reasons) <= {0}


def test_bad_neighbours_do_no_harm() -> None:
    form = avro(json.dumps(EVERY), with_header=False)
    good = encode(EVERY, ROW)
    found, reasons = rows(form, b"", good, good + b"x", good[:-1])
    assert sorted(reasons) == [0, 2, 3]
    assert found[1][1] == -5
    assert reasons[2] == "not Avro: bytes are left over"


def test_a_text_that_is_no_schema() -> None:
    with pytest.raises(ConfigError, match="not an Avro schema"):
        columns_of('{"type": "nothing"}')


def test_writers_of_other_versions(registry_server: RegistryServer) -> None:
    old = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
    extra = {"name": "b", "type": ["null", "string"], "default": None}
    new = {**old, "fields": [*old["fields"], extra]}
    for each in (old, new):
        registry_server.give("t-value", json.dumps(each))
    form = avro(json.dumps(new), Registry(registry_server.url))
    values = [
        encode(old, {"a": 1}, 1),
        encode(new, {"a": 2, "b": "x"}, 2),
        encode(old, {"a": 3}, 9),
    ]
    found, reasons = rows(form, *values)
    assert found[:2] == [(1, None), (2, "x")]
    assert reasons == {2: "not Avro: the schema registry has no schemas/ids/9"}


def test_a_registry_that_does_not_answer_is_waited_for() -> None:
    form = avro('"int"', Registry("http://127.0.0.1:1", "user", "SENTINEL"))
    with pytest.raises(SourceStalled, match="does not answer") as stalled:
        rows(form, b"\0\0\0\0\x01\x02")
    assert "SENTINEL" not in str(stalled.value) + repr(form)


def test_the_images_of_debezium() -> None:
    image = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}]}
    fields = [
        {"name": "before", "type": ["null", image]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ]
    text = json.dumps({"type": "record", "name": "Envelope", "fields": fields})
    assert str(debezium_columns(text)) == "(id integer NOT NULL)"
    assert debezium_columns(json.dumps(image)) is None
