"""Functions that PostgreSQL has, of types that Noonmark has not: they take part in the choice.

Which function a literal of no type belongs to depends on all functions of a name. ``trunc(NULL)``
is ambiguous in PostgreSQL because there is one of macaddr. What the choice falls on is refused by
name.

Types have a category, and some are preferred in theirs (PostgreSQL's `pg_type`).
"""

from __future__ import annotations

from noonmark.rows import types as t
from noonmark.rows.coded import CODED

_SIGNATURES = """
&&: tsquery tsquery
*: float4 money, float8 money, int2 money, int4 money, int8 money,
    money float4, money float8, money int2, money int4, money int8
+: _aclitem aclitem, date timetz, interval timetz, money money, timetz date, timetz interval
-: _aclitem aclitem, money money, timetz interval
/: money float4, money float8, money int2, money int4, money int8, money money
<@: tsquery tsquery
@>: _aclitem aclitem
age: xid
array_agg: anyarray
date_part: text timetz
length: tsvector
like: name text
overlaps: timetz timetz timetz timetz
timezone: interval timetz, text timetz, timetz
||: tsquery tsquery, tsvector tsvector
~: name text
~*: name text
"""
_OWN: dict[str, type[t.SqlType]] = {
    "int2": t.SmallInt, "int4": t.Integer, "int8": t.BigInt, "numeric": t.Numeric,
    "float4": t.Real, "float8": t.Double, "text": t.Text, "date": t.Date, "interval": t.Interval,
    "bytea": t.Bytea, "_text": t.Array,
}  # fmt: skip
_CATEGORIES = {
    "money": "N", "timetz": "D", "name": "S",
    "_float8": "A", "anyarray": "P", "anyelement": "P",
}  # fmt: skip
_OWN_CATEGORIES: dict[type[t.SqlType], str] = {
    **dict.fromkeys((t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double), "N"),
    **dict.fromkeys((t.Text, t.Varchar, t.Char), "S"),
    **dict.fromkeys((t.Date, t.Time, t.Timestamp, t.TimestampTz), "D"),
    t.Interval: "T", t.Boolean: "B", t.Array: "A", t.Record: "P", t.Enum: "E",
    **{kind: kind.category for kind in CODED},
}  # fmt: skip
_PREFERRED = (t.Double, t.Text, t.TimestampTz, t.Interval, t.Boolean,
              *(kind for kind in CODED if kind.preferred))  # fmt: skip

Kind = type[t.SqlType] | str


def category(kind: Kind) -> tuple[str, bool]:
    """The category of a type, and whether it is preferred there."""
    if isinstance(kind, str):
        return _CATEGORIES.get(kind, "U"), False
    return _OWN_CATEGORIES.get(kind, "U"), kind in _PREFERRED


def element_of(kind: str) -> type[t.SqlType] | None:
    """The element of an array, if that is of a type of our own."""
    return _OWN.get(kind.removeprefix("_")) if kind.startswith("_") else None


def _read() -> dict[str, list[tuple[Kind, ...]]]:
    found: dict[str, list[tuple[Kind, ...]]] = {}
    for entry in _SIGNATURES.strip().replace("\n    ", " ").splitlines():
        name, _, signatures = entry.partition(": ")
        found[name] = [
            tuple(_OWN.get(word, word) for word in text.split()) for text in signatures.split(",")
        ]
    return found


#: The kinds of parameters, by the name of the function; those of types of our own as such.
ELSEWHERE = _read()
