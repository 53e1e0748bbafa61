"""The law of copy_binary: a table that it gives has the rows that the exact way makes."""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.adapter.contract import CopyFormat
from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.arrow import from_table
from noonmark.rows.schema import Column, Schema
from noonmark.serve.pgwire.copy import decoder, encoder
from noonmark.serve.pgwire.copy_binary import BinaryColumns
from support.store.rows import values

FORM = CopyFormat("binary")
KINDS: tuple[t.SqlType, ...] = (
    t.Boolean(), t.SmallInt(), t.Integer(), t.BigInt(), t.Real(), t.Double(), t.Numeric(),
    t.Numeric(12, 3), t.Text(), t.Varchar(), t.Date(), t.Timestamp(), t.Time(), t.Uuid(),
    t.Jsonb(), t.Json(), t.Bytea(), t.TimestampTz(), t.Interval(), t.Array(t.Integer()),
    t.Array(t.Text()),
)  # fmt: skip


def encoded(kinds: tuple[t.SqlType, ...], rows: list[Any]) -> tuple[bytes, bytes]:
    """What comes before the rows, and the rows."""
    write = encoder(FORM, kinds, dt.UTC)
    return write.begin([]), b"".join(write.encode(row) for row in rows)


def exactly(kinds: tuple[t.SqlType, ...], data: bytes) -> list[Any] | str:
    opening, _ = encoded(kinds, [])
    decode = decoder(FORM, kinds, dt.UTC)
    try:
        return list(decode.decode(opening + data))
    except NoonmarkError as error:
        return error.message


def by_columns(kinds: tuple[t.SqlType, ...], data: bytes) -> tuple[int, list[Any] | None]:
    end, table = BinaryColumns(kinds).decode(data)
    schema = Schema(tuple(Column(str(at), kind) for at, kind in enumerate(kinds)))
    return end, None if table is None else list(from_table(table, schema))


@st.composite
def rows_of(draw: st.DrawFn) -> tuple[tuple[t.SqlType, ...], list[Any]]:
    kinds = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)))
    row = st.tuples(*(st.none() | values(kind) for kind in kinds))
    return kinds, draw(st.lists(row, min_size=1, max_size=5))


@settings(max_examples=1000)
@given(rows_of())
def test_what_was_encoded_is_for_columns(drawn: tuple[tuple[t.SqlType, ...], list[Any]]) -> None:
    kinds, rows = drawn
    _, data = encoded(kinds, rows)
    end, found = by_columns(kinds, data)
    assert end == len(data)
    assert repr(found) == repr(exactly(kinds, data))


@settings(max_examples=1000)
@given(rows_of(), st.data())
def test_what_is_cut_changed_or_followed_by_more(
    drawn: tuple[tuple[t.SqlType, ...], list[Any]], data: st.DataObject
) -> None:
    """Bytes changed anywhere, an end anywhere: what the exact way says, or nothing."""
    kinds, rows = drawn
    _, whole = encoded(kinds, rows)
    raw = bytearray(whole + data.draw(st.sampled_from([b"", b"\xff\xff", b"\0\1", b"\0"])))
    for _ in range(data.draw(st.integers(0, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    sent = bytes(raw[: data.draw(st.sampled_from([len(raw), len(raw) - 1, len(raw) // 2]))])
    end, found = by_columns(kinds, sent)
    exact = exactly(kinds, sent[:end])
    assert found is None or repr(found) == repr(exact)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (t.Date(), struct.pack(">i", 2**31 - 2)),
        (t.Timestamp(), struct.pack(">q", 2**63 - 2)),
        (t.Timestamp(), struct.pack(">q", -(2**63) + 1)),
        (t.Time(), struct.pack(">q", -1)),
        (t.Boolean(), b"\2"),
        (t.Integer(), b"\0\0\1"),
        (t.Text(), b"a\0b"),
        (t.Text(), b"\xff"),
        (t.Uuid(), b"short"),
    ],
)
def test_what_is_no_value_is_for_the_exact_way(kind: t.SqlType, number: bytes) -> None:
    data = struct.pack(">hi", 1, len(number)) + number
    assert by_columns((kind,), data) == (len(data), None)
    assert isinstance(exactly((kind,), data), str)
