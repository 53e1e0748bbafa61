"""Rows of literals as values of a table's columns, a column at a time.

Law (same): where `literal_rows` gives rows, they are the values that planning and evaluating each
cell gives, before they are fitted to the table; where it gives None, some cell means more than its
text does (a number for a text, a date relative to now, -0), or nothing, and is planned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from noonmark.adapter.catalog import Item
from noonmark.rows import types as t
from noonmark.rows.array import from_array
from noonmark.source.format.convert import from_texts
from noonmark.sql.assign import loose
from noonmark.sql.statement.literals import LiteralRows

_WORDS = {"null": None, "true": "true", "false": "false"}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9:.]+)?", re.ASCII)
_MINUS_ZERO = re.compile(r"-0+(?:\.0+)?")
#: More digits than these are rounded on the way from a number to a float.
_DIGITS_MAX = 15


def literal_rows(
    item: Item, places: Sequence[int], query: LiteralRows
) -> list[tuple[Any, ...]] | None:
    """The rows in the order of the table's columns; None where they have to be planned."""
    columns = item.schema.columns
    rest = [each for at, each in enumerate(columns) if at not in places]
    if len(query.cells[0]) != len(places) or {"identity", "generated"} & item.definition.keys():
        return None
    if any(each.name in item.definition.get("defaults", {}) or each.domain for each in rest):
        return None
    found: dict[int, list[Any]] = {}
    for place, cells in zip(places, zip(*query.cells, strict=True), strict=True):
        kind = loose(columns[place].type)
        texts = _texts(cells, kind)
        if texts is None:
            return None
        array, reasons = from_texts(pa.array(texts, pa.string()), kind)
        if reasons:
            return None
        found[place] = from_array(array, kind)
    absent = [None] * len(query.cells)
    return list(zip(*(found.get(at, absent) for at in range(len(columns))), strict=True))


def _texts(cells: Sequence[str], kind: t.SqlType) -> list[str | None] | None:
    """The texts of which the values are made; None where a cell is not of the type by itself."""
    is_own = _OWN.get(type(kind))
    if is_own is None:
        return None
    texts: list[str | None] = []
    for cell in cells:
        first = cell[0]
        if first == "'":
            text: str | None = cell[1:-1].replace("''", "'") if "''" in cell else cell[1:-1]
        elif first in "-0123456789":
            text = cell
        else:
            text = _WORDS[cell.lower()]
        if text is not None and not is_own(first, text):
            return None
        texts.append(text)
    return texts


def _is_text(first: str, _: str) -> bool:
    return first == "'"


def _is_whole(first: str, text: str) -> bool:
    return first == "'" or (first in "-0123456789" and "." not in text)


def _is_numeric(first: str, _: str) -> bool:
    return first in "'-0123456789"


def _is_float(first: str, text: str) -> bool:
    if first == "'":
        return True
    return (
        first in "-0123456789" and len(text) <= _DIGITS_MAX and _MINUS_ZERO.fullmatch(text) is None
    )


def _is_boolean(first: str, _: str) -> bool:
    return first not in "-0123456789"


def _is_day(first: str, text: str) -> bool:
    return first == "'" and _DAY.fullmatch(text) is not None


#: Whether a literal, by its first character and its text, means its text as a value of the type.
_OWN: dict[type[t.SqlType], Callable[[str, str], bool]] = {
    t.SmallInt: _is_whole,
    t.Integer: _is_whole,
    t.BigInt: _is_whole,
    t.Numeric: _is_numeric,
    t.Double: _is_float,
    t.Boolean: _is_boolean,
    t.Text: _is_text,
    t.Varchar: _is_text,
    t.Uuid: _is_text,
    t.Date: _is_day,
    t.Timestamp: _is_day,
}
