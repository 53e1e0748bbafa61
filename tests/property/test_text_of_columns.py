"""The text of many values of one type is that of each; and lines of COPY are made of such texts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.adapter.contract import CopyFormat
from noonmark.rows import types as t
from noonmark.rows.pg.text import format_value, formatter
from noonmark.serve.pgwire.copy import encoder
from noonmark.serve.pgwire.copy_lines import escape_text, quote_csv
from support.store.rows import ALL_TYPES, values

ZONE = dt.timezone(dt.timedelta(hours=-3))
SCALES = [t.Numeric(20, 0), t.Numeric(38, 6), t.Numeric(38, 7), t.Numeric(38, 18)]


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@given(data=st.data())
def test_one_type_is_found_out_once(kind: t.SqlType, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    assert formatter(kind, ZONE)(value) == format_value(value, kind, ZONE)


@pytest.mark.parametrize("kind", SCALES, ids=str)
@given(number=st.integers(-(10**18), 10**18) | st.integers(-9, 9), scale=st.integers(0, 18))
def test_numbers_of_other_scales_get_their_digits(kind: t.Numeric, number: int, scale: int) -> None:
    """Also those for which Python would write an exponent."""
    value = Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
    told = formatter(kind, ZONE)(value)
    assert told == format_value(value, kind, ZONE)
    assert "E" not in told
    whole = Decimal(number).scaleb(-kind.stored_scale)
    assert formatter(kind, ZONE)(whole) == format_value(whole, kind, ZONE) == f"{whole:f}"


@pytest.mark.parametrize("kind", ["text", "csv"])
@pytest.mark.parametrize("delimiter", ["\t", "-", "|"])
@pytest.mark.parametrize("null", ["\\N", "", "7"])
@given(data=st.data())
def test_lines_are_their_cells(kind: Any, delimiter: str, null: str, data: st.DataObject) -> None:
    form = CopyFormat(kind, delimiter, null)
    kinds = data.draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, max_size=4))
    row = [data.draw(st.none() | values(each)) for each in kinds]
    write = quote_csv if kind == "csv" else escape_text
    cells = [
        null if value is None else write(format_value(value, each, ZONE), form, len(row) == 1)
        for value, each in zip(row, kinds, strict=True)
    ]
    assert encoder(form, kinds, ZONE).encode(tuple(row)) == (delimiter.join(cells) + "\n").encode()
