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
from support.rows import values

KINDS: tuple[t.SqlType, ...] = (
    t.Boolean(), t.SmallInt(), t.Integer(), t.BigInt(), t.Real(), t.Double(), t.Numeric(),
    t.Numeric(12, 3), t.Text(), t.Varchar(), t.Date(), t.Timestamp(), t.Time(), t.Uuid(),
    t.Jsonb(), t.Bytea(), t.TimestampTz(),
)  # fmt: skip
FORMS = (
    CopyFormat(),
    CopyFormat("csv", ",", ""),
    CopyFormat("csv", ";", "NULL"),
    CopyFormat("text", "|", "-"),
)


def exactly(form: CopyFormat, kinds: tuple[t.SqlType, ...], lines: bytes) -> list[Any] | str:
    decode = decoder(form, kinds, dt.UTC)
    try:
        return [*decode.decode(lines), *decode.end()]
    except NoonmarkError as error:
        return error.message


def by_columns(form: CopyFormat, kinds: tuple[t.SqlType, ...], lines: bytes) -> list[Any] | None:
    table = Columns(form, kinds, dt.UTC).decode(lines)
    if table is None:
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
            "epoch", "now", "2024-01-01T10:00:00Z", "2024-01-01 10:00:00+02", "1e400", "\\x41", "x",
        ]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4),
)  # fmt: skip


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(KINDS), min_size=2, max_size=3), st.data())
def test_what_people_write(kinds: list[t.SqlType], data: st.DataObject) -> None:
    """Spellings of all sorts, wrong ones and lines that are no rows among them."""
    form = data.draw(st.sampled_from(FORMS))
    lines = b""
    for _ in range(data.draw(st.integers(1, 3))):
        width = data.draw(st.sampled_from([len(kinds)] * 9 + [1, len(kinds) + 1]))
        cells = data.draw(st.lists(CELLS, min_size=width, max_size=width))
        lines += (form.delimiter.join(cells) + "\n").encode()
    found = by_columns(form, tuple(kinds), lines)
    assert found is None or repr(found) == repr(exactly(form, tuple(kinds), lines))


def test_ordinary_lines_are_for_columns() -> None:
    kinds = (t.Integer(), t.Text(), t.Double(), t.Timestamp())
    lines = b"1\tone\t1.5\t2024-01-01 10:00:00\n2\t\\N\t-2\t2024-01-01 10:00:00.123456\n"
    assert by_columns(CopyFormat(), kinds, lines) == exactly(CopyFormat(), kinds, lines)


@pytest.mark.parametrize("kind", _PLAIN)
def test_every_plain_type_is_tried(kind: type[t.SqlType]) -> None:
    assert any(isinstance(each, kind) for each in KINDS)
