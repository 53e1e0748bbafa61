"""The law of copy_columns: a table that it gives has the rows that the exact way makes."""

from __future__ import annotations

import datetime as dt
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
from noonmark.serve.pgwire.copy_columns import _PLAIN, Columns
from support.store.rows import values

KINDS: tuple[t.SqlType, ...] = (
    t.Boolean(), t.SmallInt(), t.Integer(), t.BigInt(), t.Real(), t.Double(), t.Numeric(),
    t.Numeric(12, 3), t.Text(), t.Varchar(), t.Date(), t.Timestamp(), t.Time(), t.Uuid(),
    t.Jsonb(), t.Json(), t.Bytea(), t.TimestampTz(),
)  # fmt: skip
FORMS = (
    CopyFormat(),
    CopyFormat("csv", ",", ""),
    CopyFormat("csv", ";", "NULL"),
    CopyFormat("text", "|", "-"),
    CopyFormat("csv", ",", "", quote="'", escape="'"),
    CopyFormat("csv", ",", "", quote='"', escape="\\"),
)


def exactly(form: CopyFormat, kinds: tuple[t.SqlType, ...], lines: bytes) -> list[Any] | str:
    decode = decoder(form, kinds, dt.UTC)
    try:
        return [*decode.decode(lines), *decode.end()]
    except NoonmarkError as error:
        return error.message


def by_columns(form: CopyFormat, kinds: tuple[t.SqlType, ...], lines: bytes) -> list[Any] | None:
    end, table = Columns(form, kinds, dt.UTC).decode(lines)
    if table is None or end < len(lines):  # the rest is for the next look
        return None
    schema = Schema(tuple(Column(str(at), kind) for at, kind in enumerate(kinds)))
    return list(from_table(table, schema))


@settings(max_examples=400)
@given(st.data())
def test_what_was_encoded(data: st.DataObject) -> None:
    kinds = tuple(data.draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4)))
    rows = data.draw(
        st.lists(st.tuples(*(st.none() | values(kind) for kind in kinds)), min_size=1, max_size=5)
    )
    form = data.draw(st.sampled_from(FORMS))
    write = encoder(form, kinds, dt.UTC)
    lines = b"".join(write.encode(row) for row in rows)
    found = by_columns(form, kinds, lines)
    assert found is None or repr(found) == repr(exactly(form, kinds, lines))


CELLS = st.one_of(
    st.sampled_from(
        [
            "", " 1", "1 ", "+1", "-0", "0x1f", "1_000", "1e3", "Inf", "nan", "t", "TRUE", "yes",
            "on", "1", "0", "2024-02-29", "2024-1-1", "20240101", "infinity", "2024-01-01 10:00",
            "10:20", "\\N",
            "N", "NULL", "-", "\\.", ".5", "5.", "99999999999", "32768", "1.0005", "é", "{}",
            "null",
            '"', '""', '"a', 'b"', '"a,b"', '"a""b"', '"1"', '"a\nb"', "'x'", "\\\\", "\\x41",
            "\ufeff", "a\\", "\r",
            "epoch", "now", "2024-01-01T10:00:00Z", "2024-01-01 10:00:00+02", "1e400", "\\x41", "x",
        ]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4),
)  # fmt: skip


BREAKS = st.sampled_from(["\n", "\n", "\r\n"])


@settings(max_examples=2500)
@given(st.lists(st.sampled_from(KINDS), min_size=2, max_size=3), st.data())
def test_what_people_write(kinds: list[t.SqlType], data: st.DataObject) -> None:
    """Spellings of all sorts, wrong ones and lines that are no rows among them."""
    form = data.draw(st.sampled_from(FORMS))
    lines = b""
    for _ in range(data.draw(st.integers(1, 3))):
        width = data.draw(st.sampled_from([len(kinds)] * 9 + [1, len(kinds) + 1]))
        cells = data.draw(st.lists(CELLS, min_size=width, max_size=width))
        lines += (form.delimiter.join(cells) + data.draw(BREAKS)).encode()
    found = by_columns(form, tuple(kinds), lines)
    assert found is None or repr(found) == repr(exactly(form, tuple(kinds), lines))


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        (CopyFormat(), "1\tone\t1.5\t2024-01-01 10:00\n2\t\\N\t-2\t2024-01-01 10:00:00.123456\n"),
        (CopyFormat(), "1\t\\\\a\\tb\\n\t1\t2024-01-01 10:00\r\n"),
        (FORMS[1], '1,"a ""b"", c",1,2024-01-01 10:00\r\n2,"",1,2024-01-01 10:00\r\n'),
        (FORMS[1], '1,"two\nlines",1,2024-01-01 10:00\n2,C:\\dir,,"2024-01-01 10:00"\n'),
    ],
)
def test_ordinary_lines_are_for_columns(form: CopyFormat, lines: str) -> None:
    kinds = (t.Integer(), t.Text(), t.Double(), t.Timestamp())
    assert by_columns(form, kinds, lines.encode()) == exactly(form, kinds, lines.encode())


def test_what_is_not_whole_is_left() -> None:
    """A line break in quotes ends no row."""
    whole, rest = b'1,"a\nb"\n', b'2,"c\nd'
    end, table = Columns(FORMS[1], (t.Integer(), t.Text()), dt.UTC).decode(whole + rest)
    assert end == len(whole)
    assert table.num_rows == 1


@pytest.mark.parametrize("kind", _PLAIN)
def test_every_plain_type_is_tried(kind: type[t.SqlType]) -> None:
    assert any(isinstance(each, kind) for each in KINDS)
