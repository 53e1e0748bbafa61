"""Values, rows and COPY data: the same bytes as `rows.postgres`, there and back."""

from __future__ import annotations

import csv
import datetime as dt
import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.adapter.contract import CopyFormat
from noonmark.errors import BadCopyData, InvalidValue
from noonmark.rows import types as t
from noonmark.rows.postgres import encode_binary, encode_text
from noonmark.serve.pgwire.codec import RowEncoder, decode_parameters, spread, time_zone
from noonmark.serve.pgwire.copy import decoder, encoder
from support.store.rows import ALL_TYPES, SCALARS, same, values

BERLIN = time_zone("Europe/Berlin")


@st.composite
def typed_rows(draw: st.DrawFn) -> tuple[list[t.SqlType], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, max_size=4))
    row = st.tuples(*(st.none() | values(sql_type) for sql_type in types))
    return types, draw(st.lists(row, max_size=4))


@given(typed_rows(), st.data())
def test_a_row_is_its_values_each_with_its_length(
    typed: tuple[list[t.SqlType], list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    types, rows = typed
    formats = data.draw(st.tuples(*(st.integers(0, 1) for _ in types)))
    expected = b""
    for row in rows:
        body = struct.pack(">H", len(types))
        for value, sql_type, form in zip(row, types, formats, strict=True):
            raw = encode_binary(value, sql_type) if form else encode_text(value, sql_type, BERLIN)
            body += struct.pack(">i", -1 if raw is None else len(raw)) + (raw or b"")
        expected += b"D" + struct.pack(">i", len(body) + 4) + body
    assert RowEncoder(types, formats, BERLIN).encode(rows) == expected


@pytest.mark.parametrize("form", [0, 1])
@given(data=st.data())
def test_parameters_are_read_as_they_were_written(form: int, data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(SCALARS), max_size=4))
    given_values = [data.draw(st.none() | values(sql_type)) for sql_type in types]
    pairs = list(zip(given_values, types, strict=True))
    raw = [encode_binary(v, s) if form else encode_text(v, s, BERLIN) for v, s in pairs]
    found = decode_parameters(raw, types, (form,), BERLIN)
    assert same(list(found), given_values)


def test_a_parameter_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InvalidValue) as caught:
        decode_parameters([b"1", b"x"], [t.Integer(), t.Date()], (), dt.UTC)
    assert caught.value.detail == "Parameter $2 is of type date."


def test_formats_spread() -> None:
    assert spread((), 3) == (0, 0, 0)
    assert spread((1,), 3) == (1, 1, 1)
    assert spread((0, 1, 0), 3) == (0, 1, 0)
    assert spread((1,), 0) == ()


def test_zones_that_do_not_exist_are_utc() -> None:
    assert time_zone("No/Where") is dt.UTC
    assert time_zone("../../etc/passwd") is dt.UTC
    assert time_zone("Europe/Berlin") is not dt.UTC


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
SPECIAL = st.text(st.sampled_from("\\N\\.\t\n\r\",;'|abx071 "), max_size=8)
CELLS = st.none() | TEXTS | SPECIAL
FORMATS = (
    CopyFormat(),
    CopyFormat("text", "|", "NULL"),
    CopyFormat("csv", ",", ""),
    CopyFormat("csv", ";", "\\N", header=True, quote="'", escape="\\"),
    CopyFormat("csv", "\t", "NULL", quote='"', escape='"'),
    CopyFormat("binary"),
)


@given(
    st.sampled_from(FORMATS),
    st.lists(st.tuples(CELLS, st.none() | st.integers(-9, 9), CELLS), max_size=6),
    st.integers(1, 50),
)
def test_copy_there_and_back_in_pieces(
    form: CopyFormat, rows: list[tuple[Any, ...]], size: int
) -> None:
    types = [t.Text(), t.Integer(), t.Text()]
    out = encoder(form, types, dt.UTC)
    pieces = [out.begin(["a", "b", "c"]), *(out.encode(row) for row in rows), out.end()]
    raw = b"".join(pieces)
    back = decoder(form, types, dt.UTC)
    found = [row for at in range(0, len(raw), size) for row in back.decode(raw[at : at + size])]
    assert found + back.end() == rows


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_csv_is_what_other_programs_read(rows: list[tuple[str | None, str | None]]) -> None:
    form = CopyFormat("csv", ",", "")
    out = encoder(form, [t.Text(), t.Text()], dt.UTC)
    text = b"".join(out.encode(row) for row in rows).decode()
    found = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True)]
    assert found == [tuple(cell or "" for cell in row) for row in rows]


@pytest.mark.parametrize(
    ("form", "raw", "words"),
    [
        (CopyFormat(), b"a\n", "missing data"),
        (CopyFormat(), b"a\tb\tc\n", "extra data"),
        (CopyFormat(), b"a\t\xff\n", "UTF8"),
        (CopyFormat(), b"\\.\na\tb\n", "after EOF"),
        (CopyFormat("csv", ",", ""), b'a,"b', "unterminated"),
        (CopyFormat("binary"), b"PGCOPX", "signature"),
        (CopyFormat("binary"), b"PGCOPY\n\xff\r\n\0" + b"\0\1\0\0" + b"\0" * 4, "flags"),
        (CopyFormat("binary"), b"PGCOPY\n\xff\r\n\0" + b"\0" * 8 + b"\0\3", "field count"),
        (CopyFormat("binary"), b"PGCOPY\n\xff\r\n\0" + b"\0" * 8 + b"\0\2\xff\0\0\0", "size"),
        (CopyFormat("binary"), b"PGCOPY\n\xff\r\n\0" + b"\0" * 8 + b"\0\2", "unexpected EOF"),
        (CopyFormat("binary"), b"PGCOPY\n\xff\r\n\0" + b"\0" * 8 + b"\xff\xff\0", "after EOF"),
    ],
)
def test_data_that_are_no_rows_are_refused(form: CopyFormat, raw: bytes, words: str) -> None:
    back = decoder(form, [t.Text(), t.Text()], dt.UTC)
    with pytest.raises(BadCopyData, match=words):
        _all(back, raw)


def _all(back: Any, raw: bytes) -> list[Any]:
    return [*back.decode(raw), *back.end()]


def test_lines_of_other_programs() -> None:
    form = CopyFormat()
    back = decoder(form, [t.Text(), t.Text()], dt.UTC)
    raw = b"a\\x41\\102\t\\N\r\nback\\\\n\t\\n\n\\.\n"
    assert _all(back, raw) == [("aAB", None), ("back\\n", "\n")]
    back = decoder(CopyFormat("csv", ",", ""), [t.Text(), t.Text()], dt.UTC)
    assert _all(back, b'"a""b",\r\n"",x"y"\r\n') == [('a"b', None), ("", "xy")]


@given(st.sampled_from(FORMATS), st.binary(max_size=80))
def test_any_bytes_are_rows_or_an_error(form: CopyFormat, raw: bytes) -> None:
    back = decoder(form, [t.Integer(), t.Text()], dt.UTC)
    try:
        for row in _all(back, raw):
            assert len(row) == 2
    except (BadCopyData, InvalidValue):
        return
