"""The wire formats without a server: round trips, and decoders that nothing breaks."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import InvalidValue, NoonmarkError, Unsupported
from noonmark.rows import types as t
from noonmark.rows import value as v
from noonmark.rows.arrow import to_array
from noonmark.rows.calendar import civil_from_days, days_from_civil, days_in_month
from noonmark.rows.jsonb import canonical
from noonmark.rows.pg.nested import join_array, join_record, split_array, split_record
from noonmark.rows.postgres import (
    decode_binary,
    decode_text,
    encode_binary,
    encode_column,
    encode_text,
    type_of,
)
from support.store.rows import ALL_TYPES, JSON_TREES, SCALARS, same, values


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_values_survive_both_formats(sql_type: t.SqlType, data: st.DataObject) -> None:
    value = data.draw(st.none() | values(sql_type))
    assert same(decode_text(encode_text(value, sql_type), sql_type), value)
    assert same(decode_binary(encode_binary(value, sql_type), sql_type), value)


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
@settings(max_examples=20)
@given(data=st.data())
def test_a_column_is_its_values(sql_type: t.SqlType, data: st.DataObject) -> None:
    column = data.draw(st.lists(st.none() | values(sql_type), max_size=4))
    array = to_array(column, sql_type)
    assert encode_column(array, sql_type) == [encode_text(value, sql_type) for value in column]
    binary = [encode_binary(value, sql_type) for value in column]
    assert encode_column(array, sql_type, "binary") == binary


_PLAIN_COLUMNS: list[tuple[t.SqlType, st.SearchStrategy[Any]]] = [
    (t.Date(), st.dates()),
    (t.Timestamp(), st.datetimes()),
    (t.TimestampTz(), st.datetimes(timezones=st.just(dt.UTC))),
    (t.Numeric(12, 6), st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-6))),
]


@pytest.mark.parametrize(("sql_type", "plain"), _PLAIN_COLUMNS, ids=str)
@given(data=st.data())
def test_the_short_cuts_of_a_column_give_the_same_bytes(
    sql_type: t.SqlType, plain: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    column = data.draw(st.lists(st.none() | plain, max_size=6))
    chunked = pa.chunked_array(
        [to_array(column, sql_type), to_array([None, *column], sql_type)[1:]]
    )
    expected = [encode_text(value, sql_type) for value in column]
    assert encode_column(chunked, sql_type) == expected * 2


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
@settings(max_examples=50)
@given(raw=st.binary(max_size=40))
def test_no_bytes_break_a_decoder(sql_type: t.SqlType, raw: bytes) -> None:
    for decode in (decode_text, decode_binary):
        try:
            value = decode(raw, sql_type)
        except NoonmarkError:
            continue
        to_array([value], sql_type)  # what is decoded can be stored


_NEAR_SYNTAX = st.text(st.sampled_from("0123456789-+:. eEaBCTZPYMDHS{}()\",\\x'[]nul"), max_size=25)


@pytest.mark.parametrize("sql_type", SCALARS, ids=str)
@given(text=_NEAR_SYNTAX)
def test_near_syntax_is_read_or_refused(sql_type: t.SqlType, text: str) -> None:
    try:
        value = decode_text(text.encode(), sql_type)
    except NoonmarkError:
        return
    again = encode_text(value, sql_type)
    assert encode_text(decode_text(again, sql_type), sql_type) == again


_ITEMS = st.lists(st.none() | st.text(max_size=6), min_size=1, max_size=4)


@given(items=_ITEMS)
def test_quoting_is_undone_by_splitting(items: list[str | None]) -> None:
    assert split_array(join_array(items)) == items
    assert split_record(join_record(items)) == items


@pytest.mark.parametrize("text", ["{{1,2},{3,4}}", "[2:3]={1,2}"])
def test_arrays_of_other_shapes_are_refused_by_name(text: str) -> None:
    with pytest.raises(Unsupported):
        decode_text(text.encode(), t.Array(t.Integer()))


@given(days=st.integers(-(10**10), 10**10))
def test_the_calendar_is_a_bijection(days: int) -> None:
    year, month, day = civil_from_days(days)
    assert days_from_civil(year, month, day) == days
    assert 1 <= month <= 12
    assert 1 <= day <= days_in_month(year, month)


@given(date=st.dates())
def test_the_calendar_is_pythons(date: dt.date) -> None:
    assert civil_from_days(v.days_of(date)) == (date.year, date.month, date.day)


@given(tree=JSON_TREES)
def test_jsonb_is_canonical(tree: Any) -> None:
    text = canonical([tree])
    assert canonical(text) == text
    assert canonical(json.dumps(json.loads(text, parse_float=str), ensure_ascii=True)) == canonical(
        json.dumps(json.loads(text, parse_float=str), indent=3)
    )


def test_jsonb_keys_are_ordered_by_bytes_and_the_last_wins() -> None:
    assert canonical('{"é":1,"zz":2,"z":3,"z":4}') == '{"z": 4, "zz": 2, "é": 1}'
    assert canonical("[1.0e2, 10e-1, -0, 1.10]") == "[100, 1.0, 0, 1.10]"


@pytest.mark.parametrize(
    "document", ["[" * 50_000, "1e999999", [{1: 2}], [object()], [float("nan")]]
)
def test_jsonb_refuses_what_it_cannot_write(document: Any) -> None:
    with pytest.raises(InvalidValue):
        canonical(document)


@pytest.mark.parametrize("text", ["1e-999999999", "1e999999999"])
def test_far_exponents_are_refused_without_being_written_out(text: str) -> None:
    with pytest.raises(InvalidValue):
        decode_text(text.encode(), t.Numeric())
    assert decode_text(b"0e999999999", t.Numeric()) == 0
    assert decode_text(b"1e-999999999", t.Numeric(5, 2)) == 0


def test_oids_without_a_type_are_refused() -> None:
    for oid in (0, 142, 2249, 2287, 999_999):
        with pytest.raises(Unsupported):
            type_of(oid)
    assert type_of(1042) == t.Char(None)
    assert type_of(1114, 3) == t.Timestamp()


def test_an_instant_is_read_in_the_zone_of_the_session() -> None:
    east = dt.timezone(dt.timedelta(hours=5, minutes=30))
    value = decode_text(b"2024-01-01 05:30:00", t.TimestampTz(), east)
    assert value == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert encode_text(value, t.TimestampTz(), east) == b"2024-01-01 05:30:00+05:30"
    assert encode_text([value], t.Array(t.TimestampTz()), east) == b'{"2024-01-01 05:30:00+05:30"}'
