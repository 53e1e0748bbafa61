"""Formats: the quick way against the exact one, on records good, odd and broken."""

from __future__ import annotations

import ast
import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noonmark.errors import ConfigError, SchemaMismatch
from noonmark.rows.arrow import from_array
from noonmark.rows.pg.text import parse_value
from noonmark.rows.schema import Column, Schema
from noonmark.source.contract import HEADERS
from noonmark.source.format import convert
from noonmark.source.format.convert import Parsed, from_texts, from_values
from noonmark.source.format.csv import Csv
from noonmark.source.format.decode import Decoding, Format
from noonmark.source.format.include import Include
from noonmark.source.format.json import Json
from noonmark.source.format.plain import Bytes, Text

SCHEMA = Schema.of(
    small="smallint",
    big="bigint",
    real="real",
    double="double precision",
    money="numeric(8,2)",
    plain="numeric",
    flag="boolean",
    name="text",
    short="character varying(3)",
    day="date",
    at="timestamp",
    instant="timestamp with time zone",
    id="uuid",
)
NESTED = Schema.of(pair="record(a integer, b text)", list="bigint[]", name="text")
OPEN = Schema.of(pad="character(3)", doc="jsonb", span="interval", raw="bytea", clock="time")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that blocks of all sizes, good and bad, meet in a few records."""
    monkeypatch.setattr(convert, "_BLOCK", 8)
    monkeypatch.setattr(convert, "_EXACT", 2)


def rows(parsed: Parsed, schema: Schema) -> list[Any]:
    """A row, or a reason, per record."""
    columns = [from_array(a, c.type) for a, c in zip(parsed.columns, schema.columns, strict=True)]
    found: list[Any] = [repr(row) for row in zip(*columns, strict=True)]
    for at, reason in parsed.reasons.items():
        found[at] = ("bad", reason)
    return found


def agree(form: Json | Csv, records: list[bytes]) -> list[Any]:
    values = pa.array(records, pa.binary())
    exact = rows(form.exact(values), form.schema)
    assert rows(form.parse(values), form.schema) == exact
    return exact


NUMBERS = [
    "0", "-0", "1", "-7", "32767", "32768", "9223372036854775807", "9223372036854775808", "1.0",
    "1.5", "1.555", "-0.0", "1e2", "1E-2", "1e400", "1e-400", "1e39", "1e-50", "123456.78",
    "1234567", "0.000000000000000000000000000000000000000000000000001", "12345678901234567890.5",
    "00", "0x10",
]  # fmt: skip
TEXTS = [
    "", "a", "abcd", "abc ", "true", "T", "off", "5", " 5", "+5", "5.", "1_0", "0x10", "NaN", "inf",
    "2024-02-29", "2023-02-29", "0000-01-01", "2024-2-1", "2024-02-29 12:00", "2024-02-29 12",
    "2024-02-29T12:00:00Z", "2024-02-29 12:00:00+0530", "2024-02-29 12:00:00.1234567",
    "2024-02-29 23:59:60", "infinity", "0044-03-15 BC", "\u00e9", "a\tb", "1 day", "\\x00ff",
    "12:30",    "6b1f0c5e-7b0e-4a8e-9a53-0d6d7e0f5b11", "{1,2}", "(1,x)", '"', "a,b", "nul\x00",
]  # fmt: skip

OTHERS = ["null", "true", "false", "[1,2]", "[null]", '{"a":1}', '{"b":"x"}', "[]", "{}"]

scalars = st.one_of(
    st.sampled_from(NUMBERS[:-2]),
    st.sampled_from(TEXTS).map(json.dumps),
    st.sampled_from(
        ["null", "true", "false", "[1,2]", "[null]", '{"a":1}', '{"b":"x"}', "[]", "{}"]
    ),
)


@st.composite
def documents(draw: st.DrawFn, schema: Schema) -> bytes:
    names = draw(st.lists(st.sampled_from([*schema.names, "other"]), max_size=4))
    fields = [f"{json.dumps(name)}:{draw(scalars)}" for name in names]
    return ("{" + ",".join(fields) + "}").encode()


broken = st.sampled_from(
    [b"", b" ", b"{", b"[]", b"3", b"null", b'{"a":1}{"a":2}', b'{"big":1}\n', b'{"name":"\xff"}',
     b'{"big":01}', b'{"big":NaN}', b'{"name":"\\ud800"}', b'{"big":1,}', b'\xef\xbb\xbf{"big":1}',
     b' {"big":1}', b'{"big":1} ', b'{"big":\n1}', b'{"name":"a\tb"}', b'{"name":"\\u0000"}',
     b'{"big":1,"big":2}', b'{"double":1e-400}', b'{"real":0.' + b"0" * 60 + b"1}"]
)  # fmt: skip


@given(st.lists(st.one_of(documents(SCHEMA), documents(SCHEMA), broken), max_size=20))
@settings(max_examples=200)
@example([b'{"big":1}{"big":2}', b"", b'{"big":3}'])
@example([b'{"double":1e-400}', b'{"real":1e39}'])
@example([b'{"money":1234567}'])
@example([b'{"plain":123456789012345678901}'])
def test_json_columns(records: list[bytes]) -> None:
    agree(Json(SCHEMA), records)


@pytest.mark.parametrize("column", [*SCHEMA.columns, *NESTED.columns], ids=str)
def test_every_json_value_alone_is_read_as_exactly(column: Column) -> None:
    values = [*NUMBERS[:-2], *map(json.dumps, TEXTS), *OTHERS]
    for value in values:
        agree(Json(Schema((column,))), [f'{{"{column.name}":{value}}}'.encode()])
        if column.name == "pair":
            agree(Json(Schema((column,))), [f'{{"pair":{{"a":{value}}}}}'.encode()])


@given(st.lists(st.one_of(documents(NESTED), broken), max_size=12))
def test_json_nested_columns(records: list[bytes]) -> None:
    agree(Json(NESTED), records)


@given(st.lists(st.one_of(documents(OPEN), broken), max_size=8))
def test_json_columns_that_arrow_cannot_read(records: list[bytes]) -> None:
    agree(Json(OPEN), records)


def loads(text: str) -> Any:
    return json.loads(text, parse_float=decimal.Decimal, parse_int=decimal.Decimal)


@given(st.lists(st.one_of(documents(SCHEMA), broken), max_size=8))
def test_json_without_columns_is_one_document(records: list[bytes]) -> None:
    for record, found in zip(records, agree(Json(), records), strict=True):
        try:
            document = loads(record.decode())
        except ValueError:
            assert found[0] == "bad"
            continue
        if found[0] != "bad":  # jsonb refuses more: NUL, surrogates, NaN
            assert loads(ast.literal_eval(found)[0]) == document


fields = st.sampled_from([*TEXTS, *NUMBERS])


@st.composite
def lines(draw: st.DrawFn, width: int) -> bytes:
    count = draw(st.sampled_from([width, width, width, width, width - 1, width + 1]))
    made = []
    for text in draw(st.lists(fields, min_size=count, max_size=count)):
        quote = draw(st.booleans())
        made.append('"' + text.replace('"', '""') + '"' if quote else text)
    return ",".join(made).encode()


odd_lines = st.sampled_from([b"", b",", b'"a"b,c', b'a"b,c', b'"a', b"a\r", b"\xff,a", b'"",""'])
PAIR = Schema.of(big="bigint", name="text")


@given(st.lists(st.one_of(lines(2), odd_lines), max_size=20))
@settings(max_examples=200)
def test_csv(records: list[bytes]) -> None:
    agree(Csv(PAIR), records)


@pytest.mark.parametrize("column", [*SCHEMA.columns, *OPEN.columns], ids=str)
def test_every_text_alone_is_read_as_exactly(column: Column) -> None:
    """One text at a time, so that no neighbour sends it the exact way."""
    for text in [*TEXTS, *NUMBERS]:
        quick, bad = from_texts(pa.array([text], pa.string()), column.type)
        exact, reasons = from_values([text], column.type, lambda t: parse_value(t, column.type))
        assert bad == reasons, text
        assert repr(from_array(quick, column.type)) == repr(from_array(exact, column.type)), text


@given(st.lists(lines(13), max_size=12))
def test_csv_of_every_type(records: list[bytes]) -> None:
    agree(Csv(SCHEMA), records)


@given(st.lists(st.sampled_from([b"", b'""', b"5", b'"5"', b"x"]), max_size=12))
def test_csv_of_one_column(records: list[bytes]) -> None:
    meaning = {b"": "(None,)", b'""': "('',)", b"5": "('5',)", b'"5"': "('5',)", b"x": "('x',)"}
    assert agree(Csv(Schema.of(a="text")), records) == [meaning[record] for record in records]


def test_what_json_values_mean() -> None:
    schema = Schema.of(i="integer", t="text", n="numeric(6,2)", d="date", a="integer[]")
    found = agree(
        Json(schema),
        [
            b'{"i":5,"t":"x","n":1.005,"d":"2024-02-29","a":[1,null],"more":1}',
            b'{"i":"5","t":1.50,"n":"7","a":"{3}"}',
            b'{"i":null}',
            b'{"i":5.0}',
            b'{"i":3000000000}',
            b'{"t":{"a":1}}',
            b'{"d":"2024-02-30"}',
            b'{"a":{}}',
        ],
    )
    one = (5, "x", decimal.Decimal("1.01"), dt.date(2024, 2, 29), [1, None])
    two = (5, "1.50", decimal.Decimal("7.00"), None, [3])
    assert found[:3] == [repr(one), repr(two), repr((None,) * 5)]
    assert [reason for _, reason in found[3:]] == [
        'column "i": invalid input syntax for type integer: "5.0"',
        'column "i": value "3000000000" is out of range for type integer',
        'column "t": a JSON object is no value of type text',
        found[6][1],
        'column "a": a JSON object is no value of type integer[]',
    ]
    assert found[6][1].startswith('column "d": ')


def batch(
    values: list[bytes | None], keys: list[bytes | None] | None = None, unit: int = 1
) -> pa.RecordBatch:
    count = len(values)
    return pa.record_batch(
        {
            "_partition": pa.array([3] * count, pa.int64()),
            "_offset": pa.array([at * unit for at in range(count)], pa.int64()),
            "_output": pa.array([0] * count, pa.int8()),
            "key": pa.array(keys or [None] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([dt.datetime(2024, 1, 1)] * count, pa.timestamp("us", "UTC")),
            "headers": pa.nulls(count, HEADERS),
        }
    )


def test_every_record_comes_out_once() -> None:
    decoding = Decoding(Json(Schema.of(a="integer not null")), Text(Schema.of(k="text not null")))
    raw = batch(
        [b'{"a":1}', None, b"x", b'{"a":null}', b'{"a":2}', b'{"a":3}'],
        [b"k0", b"k1", b"k2", b"k3", None, b"\xff"],
    )
    found = decoding.decode(raw).to_pydict()
    assert found["_offset"] == [0, 1, 2, 3, 4, 5]
    assert found["_tombstone"] == [False, True, False, False, False, False]
    assert found["_keyed"] == [True, True, True, True, False, False]
    assert found["k"] == ["k0", "k1", "k2", "k3", None, None]
    assert found["a"][:2] == [1, None]
    assert [reason is None for reason in found["_reason"]] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert found["_reason"][3:] == [
        'column "a": NULL, and it is NOT NULL',
        "key: the record has none",
        "key: not UTF-8 at byte 0",
    ]
    assert found["_raw"] == [None, None, b"x", b'{"a":null}', b'{"a":2}', b'{"a":3}']


def test_include_partition_offset_and_timestamp() -> None:
    include = (Include("partition", "p"), Include("offset", "o"), Include("timestamp", "ts"))
    decoding = Decoding(Bytes(), include=include, offset_unit=4)
    found = decoding.decode(batch([b"a", b"b", b"c"], unit=4))
    assert str(decoding.schema) == (
        "(data bytea NOT NULL, p bigint NOT NULL, o bigint NOT NULL, ts timestamp with time zone)"
    )
    assert found.column("o").to_pylist() == [0, 1, 2]
    assert found.column("p").to_pylist() == [3, 3, 3]
    assert found.column("data").to_pylist() == [b"a", b"b", b"c"]
    assert found.column("ts").to_pylist()[0] == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    with pytest.raises(SchemaMismatch, match="no timestamp "):
        decoding.decode(batch([b"a"]).drop_columns(["timestamp"]))


_LISTS = [
    [("a", b"1"), ("b", None), ("a", b"2")],
    None,
    [("a", b"\xff")],
    [("a", None)],
]


def test_include_headers_and_one_of_them() -> None:
    include = (
        Include("headers", "all"),
        Include("header", "text", "a"),
        Include("header bytes", "raw", "a"),
    )
    decoding = Decoding(Bytes(), include=include)
    headers = [
        None if each is None else [{"key": key, "value": value} for key, value in each]
        for each in _LISTS
    ]
    plain = batch([b"v"] * len(_LISTS)).drop_columns(["headers"])
    found = decoding.decode(plain.append_column("headers", pa.array(headers, HEADERS)))
    assert found.column("all").to_pylist() == [each or [] for each in headers]
    assert found.column("text").to_pylist() == ["2", None, None, None]
    assert found.column("raw").to_pylist() == [b"2", None, b"\xff", None]
    reasons = [None, None, 'header "a": not text in UTF-8', None]
    assert found.column("_reason").to_pylist() == reasons
    assert decoding.schema["all"].nullable is False
    with pytest.raises(SchemaMismatch, match="no headers"):
        decoding.decode(plain)


def test_names_that_meet_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="more than once"):
        _ = Decoding(Bytes(), include=(Include("offset", "data"),)).schema


@pytest.mark.parametrize(
    ("first", "reasons"),
    [
        (b"big,name", [None]),
        (b'big,"name"', [None]),
        (b"name,big", ["the header is name, big, not big, name", None]),
        (b"big", ["1 fields, not 2", None]),
    ],
)
def test_a_header_is_no_row(first: bytes, reasons: list[str | None]) -> None:
    decoding = Decoding(Csv(PAIR, header=True), offset_unit=4)
    found = decoding.decode(batch([first, b"1,x"], unit=4))
    assert found.column("_reason").to_pylist() == reasons
    assert found.column("name").to_pylist()[-1] == "x"
    later = decoding.decode(batch([first, b"1,x"], unit=4).slice(1))
    assert later.column("name").to_pylist() == ["x"]


def test_text_and_bytes() -> None:
    values = [b"a", b"\xff", b"n\x00l", b""]
    text = Decoding(Text()).decode(batch(list(values)))
    assert text.column("_reason").to_pylist() == [
        None,
        "not UTF-8 at byte 0",
        'invalid byte sequence for encoding "UTF8": 0x00',
        None,
    ]
    assert text.column("text").to_pylist() == ["a", None, None, ""]
    assert Decoding(Bytes()).decode(batch(list(values))).column("data").to_pylist() == values


@pytest.mark.parametrize("form", [Json(), Json(SCHEMA), Csv(PAIR), Text(), Bytes()])
def test_no_records_is_fine(form: Format) -> None:
    assert Decoding(form).decode(batch([])).num_rows == 0


def test_one_bad_record_leaves_its_neighbours_on_the_quick_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    exact = Json.exact

    def spy(self: Json, values: pa.Array) -> Parsed:
        seen.append(len(values))
        return exact(self, values)

    monkeypatch.setattr(Json, "exact", spy)
    records = [b'{"a":%d}' % n for n in range(8)]
    records[5] = b"bad"
    parsed = Json(Schema.of(a="integer")).parse(pa.array(records, pa.binary()))
    assert set(parsed.reasons) == {5}
    assert sum(seen) <= 2


@pytest.mark.parametrize("delimiter", ["", "ab", '"', "\n", "é"])
def test_a_delimiter_is_one_plain_character(delimiter: str) -> None:
    with pytest.raises(ConfigError, match="delimiter"):
        Csv(PAIR, delimiter)


def test_another_delimiter() -> None:
    assert agree(Csv(PAIR, "|"), [b'1|"a|b"', b"2|c,d", b"3"]) == [
        "(1, 'a|b')",
        "(2, 'c,d')",
        ("bad", "1 fields, not 2"),
    ]
