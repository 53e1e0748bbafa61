"""Functions that PostgreSQL has, of types that Noonmark has not: they take part in the choice.

Which function a literal of no type belongs to depends on all functions of a name. ``trunc(NULL)``
is ambiguous in PostgreSQL because there is one of macaddr. What the choice falls on is refused by
name.

Types have a category, and some are preferred in theirs (PostgreSQL's `pg_type`).
"""

from __future__ import annotations

from noonmark.rows import types as t

_SIGNATURES = """
#: bit bit, box box, line line, lseg lseg, path, polygon
&: bit bit, inet inet, macaddr macaddr, macaddr8 macaddr8
&&: box box, circle circle, inet inet, polygon polygon, tsquery tsquery
*: box point, circle point, float4 money, float8 money, int2 money, int4 money, int8 money,
    money float4, money float8, money int2, money int4, money int8, path point, point point
+: _aclitem aclitem, box point, circle point, date timetz, inet int8, int8 inet, interval
    timetz, money money, numeric pg_lsn, path path, path point, pg_lsn numeric, point point,
    timetz date, timetz interval
-: _aclitem aclitem, box point, circle point, inet inet, inet int8, money money, path point,
    pg_lsn numeric, pg_lsn pg_lsn, point point, timetz interval
/: box point, circle point, money float4, money float8, money int2, money int4, money int8,
    money money, path point, point point
<<: bit int4, box box, circle circle, inet inet, point point, polygon polygon
<@: box box, circle circle, lseg box, lseg line, point box, point circle, point line, point
    lseg, point path, point polygon, polygon polygon, tsquery tsquery
>>: bit int4, box box, circle circle, inet inet, point point, polygon polygon
?|: line, lseg, point point
@>: _aclitem aclitem, box box, box point, circle circle, circle point, path point, polygon
    point, polygon polygon, tsquery tsquery
age: xid
array_agg: anyarray
bit_count: bit
bit_length: bit
convert_from: bytea name
convert_to: text name
date_part: text timetz
get_bit: bit int4
length: bit, bytea name, lseg, path, tsvector
like: name text
octet_length: bit
overlaps: timetz timetz timetz timetz
overlay: bit bit int4, bit bit int4 int4
percentile_cont: _float8 float8, _float8 interval
percentile_disc: _float8 anyelement
position: bit bit
set_bit: bit int4 int4
substring: bit int4, bit int4 int4
timezone: interval timetz, text timetz, timetz
trunc: macaddr, macaddr8
|: bit bit, inet inet, macaddr macaddr, macaddr8 macaddr8
||: tsquery tsquery, tsvector tsvector, varbit varbit
~: bit, inet, macaddr, macaddr8, name text
~*: name text
"""
_OWN: dict[str, type[t.SqlType]] = {
    "int2": t.SmallInt, "int4": t.Integer, "int8": t.BigInt, "numeric": t.Numeric,
    "float4": t.Real, "float8": t.Double, "text": t.Text, "date": t.Date, "interval": t.Interval,
    "bytea": t.Bytea, "_text": t.Array,
}  # fmt: skip
_CATEGORIES = {
    **dict.fromkeys(("point", "lseg", "path", "box", "polygon", "line", "circle"), "G"),
    "bit": "V", "varbit": "V", "inet": "I", "money": "N", "timetz": "D", "name": "S",
    "_float8": "A", "anyarray": "P", "anyelement": "P",
}  # fmt: skip
_FOREIGN_PREFERRED = frozenset(("varbit", "inet"))
_OWN_CATEGORIES: dict[type[t.SqlType], str] = {
    **dict.fromkeys((t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double, t.Oid), "N"),
    **dict.fromkeys((t.Text, t.Varchar, t.Char), "S"),
    **dict.fromkeys((t.Date, t.Time, t.Timestamp, t.TimestampTz), "D"),
    t.Interval: "T", t.Boolean: "B", t.Array: "A", t.Record: "P", t.Enum: "E",
}  # fmt: skip
_PREFERRED = (t.Double, t.Oid, t.Text, t.TimestampTz, t.Interval, t.Boolean)

Kind = type[t.SqlType] | str


def category(kind: Kind) -> tuple[str, bool]:
    """The category of a type, and whether it is preferred there."""
    if isinstance(kind, str):
        return _CATEGORIES.get(kind, "U"), kind in _FOREIGN_PREFERRED
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
