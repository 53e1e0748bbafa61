"""Samples of what every function, aggregate and cast means, as short digests.

The samples of an entry follow from its id alone, so they are the same in every process and version.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from noonmark.errors import NoonmarkError
from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.coded.geometry import Box, Circle, Line, Lseg, Path, Point, Polygon
from noonmark.rows.coded.jsonpath import Jsonpath
from noonmark.rows.coded.lsn import Lsn, Xid8
from noonmark.rows.coded.network import Cidr, Inet, Macaddr, Macaddr8
from noonmark.rows.coded.ranges import PAIRS, Multirange
from noonmark.rows.coded.snapshots import PgSnapshot, TxidSnapshot
from noonmark.rows.label import Label
from noonmark.sql.evaluate import evaluate
from noonmark.sql.functions import AGGREGATES, FUNCTIONS, TABLE_FUNCTIONS
from noonmark.sql.functions.aggregate import Aggregator
from noonmark.sql.functions.cast import cast, cast_edition, cast_exists
from noonmark.sql.functions.function import Any_, Function, Signature
from noonmark.sql.ir.scalar import Call, Literal

SAMPLES = 40
_MOMENTS = (
    "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2000-02-29 12:30:15.000001",
    "2024-12-30 00:00:00", "0001-01-01 01:01:01", "9999-12-31 23:59:59", "infinity", "-infinity",
)  # fmt: skip
_INTS = ("0", "1", "-1", "7", "-7", "2", "100", "32767", "-32768")
_NUMBERED = ("[1,5)", "empty", "(,3)", "[3,9]", "[5,)", "(1,2]")
_DATED = (
    "[2024-01-01,2024-02-01)",
    "empty",
    "[2024-01-15,)",
    "(,2024-01-01]",
    "[2024-02-01,2025-01-01)",
)
_RANGES = {
    t.Integer: _NUMBERED, t.BigInt: _NUMBERED, t.Numeric: ("[1.0,5)", *_NUMBERED, "(1.50,3.00]"),
    t.Date: _DATED, t.Timestamp: _DATED, t.TimestampTz: _DATED,
}  # fmt: skip
_FLOATS = ("0", "-0", "1.5", "-2.25", "1e30", "0.1", "infinity", "-infinity", "nan", "3")
#: Values of every type, as text.
TEXTS: dict[type[t.SqlType], Sequence[str]] = {
    t.Boolean: ("true", "false"),
    t.SmallInt: _INTS,
    t.Integer: (*_INTS, "2147483647", "-2147483648"),
    t.BigInt: (*_INTS, "9223372036854775807", "-9223372036854775808"),
    t.Real: _FLOATS,
    t.Double: _FLOATS,
    t.Numeric: (
        "0", "0.00", "1.25", "-3.99", "99999999.99", "1e-20", "12345678901234567890", "NaN",
    ),
    t.Text: (
        "", "abc", "ABC", "a%b", "ünï", "x y z", "ß", "a,b", "1", "2024-01-02", "day", "a", "%a%",
        "{1,2}", '{"a": 1}', "$.a", "YYYY-MM-DD", "999.9", "hex", "(a+)", "i", "-1.5", "UTC",
    ),
    t.Varchar: ("", "abc", "Ab c", "%b"),
    t.Char: ("abc", "a"),
    t.Bytea: ("", "\\x00ff", "\\x616263", "abc"),
    t.Date: ("1970-01-01", "1969-12-31", "2000-02-29", "2024-12-30", "0001-01-01", "infinity"),
    t.Time: ("00:00:00", "23:59:59.999999", "12:30:15.5", "24:00:00"),
    t.Timestamp: _MOMENTS,
    t.TimestampTz: tuple(f"{x}+00" if x[-1].isdigit() else x for x in _MOMENTS),
    t.Interval: ("0", "1 day", "-1 mon 2 days", "1 year 03:04:05.6", "-00:00:01", "100 days"),
    t.Uuid: ("00000000-0000-0000-0000-000000000000", "6ecd8c99-4036-403d-bf84-cf8400f67836"),
    t.Json: ("null", "1", '{"a": [1, null]}', '[{"b":2}]', '"x"', "{}"),
    t.Jsonb: ("null", "1", '{"a": [1, null]}', '[{"b":2}, 1.50]', '"x"', "{}", "[]"),
    Bit: ("1", "101", "", "0110"),
    Varbit: ("", "1", "0110", "11"),
    Inet: ("10.0.0.1", "10.0.0.1/8", "192.168.1.0/24", "::1", "2001:db8::1/64"),
    Cidr: ("10.0.0.0/8", "192.168.1.0/24", "::/64", "10.0.0.1"),
    Macaddr: ("08:00:2b:01:02:03", "ff:ff:ff:00:00:00"),
    Macaddr8: ("08:00:2b:ff:fe:01:02:03", "00:00:00:00:00:00:00:01"),
    Jsonpath: ("$", "$.a[*] ? (@ == 1)", "strict $[0]", "$.a.type()", "$[*].b > 1", "1 + 2"),
    PgSnapshot: ("10:20:10,14,15", "1:1:", "3:9:4"),
    TxidSnapshot: ("10:20:10,14,15", "1:1:"),
    Point: ("(1,2)", "(0,0)", "(-1.5,1e300)", "(nan,inf)"),
    Lseg: ("[(0,0),(1,1)]", "[(1,0),(0,1)]", "[(2,2),(2,2)]"),
    Box: ("(1,1),(0,0)", "(3,3),(0.5,-2)", "(0,0),(0,0)"),
    Line: ("{1,2,3}", "{0,1,0}", "{1,0,-2}"),
    Circle: ("<(0,0),2>", "<(1,1),0>", "<(3,1),1.5>"),
    Path: ("((0,0),(1,1),(2,0))", "[(0,0),(1,1)]", "[(1,0)]"),
    Polygon: ("((0,0),(1,1),(2,0))", "((0.5,0.25),(1,0.5),(1,0.25))", "((5,5))"),
    Lsn: ("0/0", "0/1A", "FFFFFFFF/FFFFFFFF"),
    Xid8: ("0", "3", "18446744073709551615"),
    **{
        kind: tuple(f"{{{x}}}" for x in ranges) if issubclass(kind, Multirange) else ranges
        for pair in PAIRS
        for kind in pair
        for ranges in [_RANGES[type(kind.element)]]
    },
}  # fmt: skip
_RECORD = t.Record((t.Field("a", t.Integer()), t.Field("b", t.Text())))
_KINDS: dict[type[t.SqlType], t.SqlType] = {
    t.Char: t.Char(4), t.Varchar: t.Varchar(5), t.Record: _RECORD,
}  # fmt: skip
_LABELS = tuple(Label(text, bytes([64 + at])) for at, text in enumerate(("low", "mid", "high")))
_ENUM = t.Enum("sample", labels=_LABELS)


def kind_of(parameter: type[t.SqlType]) -> t.SqlType:
    """One type of a class."""
    if parameter is t.Enum:
        return _ENUM
    return _KINDS.get(parameter) or parameter()


def pool(kind: t.SqlType) -> list[Any]:
    """Values of a type; none where there are no samples of it."""
    if isinstance(kind, t.Enum):
        return list(_LABELS)
    if isinstance(kind, t.Record):
        return [(1, "a"), (None, 'a "b",'), (-3, None)]
    if isinstance(kind, t.Array):
        some = pool(kind.element)
        return [(), tuple(some[:2]), tuple(some[1:4]), (some[0], None)] if some else []
    return [cast(text, t.Text(), kind) for text in TEXTS.get(type(kind), ())]


def kinds_of(entry: Signature) -> Iterator[tuple[t.SqlType, ...]]:
    """Types that an entry takes: of open parameters, two."""
    parameters = entry.parameters + (entry.parameters[-1:] if entry.variadic else ())
    is_open = any(isinstance(each, Any_) for each in parameters)
    for element in (t.Integer(), t.Text()) if is_open else (t.Integer(),):
        kinds: list[t.SqlType] = []
        for each in parameters:
            if isinstance(each, Any_):
                kinds.append(t.Array(element) if each is Any_.ARRAY else element)
            elif each is t.Array:
                kinds.append(t.Array(kind_of(entry.element)))
            else:
                kinds.append(kind_of(each))
        if entry.takes(tuple(kinds)):
            yield tuple(kinds)


def _said(act: Callable[[], Any]) -> str:
    try:
        return repr(act())
    except NoonmarkError as error:
        return error.sqlstate
    except Exception as error:  # arguments that no plan gives: samples may still be counted
        return type(error).__name__


def _digest(answers: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(answers).encode(), digest_size=6).hexdigest()


def _arguments(name: str, kinds: tuple[t.SqlType, ...]) -> Iterator[tuple[Any, ...]]:
    """Lists of arguments: some of all."""
    chance = random.Random(name)
    pools = [[*pool(kind), None] for kind in kinds]
    if all(len(each) > 1 for each in pools):
        for _ in range(SAMPLES):
            yield tuple(chance.choice(each) for each in pools)


def _function(entry: Function) -> list[str]:
    found = []
    for kinds in kinds_of(entry):
        for values in _arguments(entry.id, kinds):
            scalars = tuple(map(Literal, kinds, values))
            found.append(_said(lambda scalars=scalars: evaluate(Call(entry.id, scalars))))
    return found


def _rows_function(entry: Function) -> list[str]:
    found = []
    for kinds in kinds_of(entry):
        for values in _arguments(entry.id, kinds):
            if entry.strict and None in values:
                continue
            given = (kinds, *values) if entry.typed else values
            found.append(
                _said(lambda given=given: list(itertools.islice(entry.meaning(*given), 9)))
            )
    return found


def _aggregate(entry: Aggregator) -> list[str]:
    found = []
    for kinds in kinds_of(entry):
        rows = [
            values
            for values in _arguments(entry.id, kinds)
            if not entry.strict or None not in values
        ]
        for size in (0, 1, 2, 5, 9):
            some = [(values, 1 + at % 2) for at, values in enumerate(rows[:size])]
            found.append(_said(lambda some=some, kinds=kinds: entry.meaning(kinds, some)))
    return found


def _cast(source: t.SqlType, target: t.SqlType) -> list[str]:
    return [_said(lambda value=value: cast(value, source, target)) for value in pool(source)]


def meanings() -> dict[str, tuple[int, str]]:
    """Of every entry, its edition and the digest of its samples."""
    found: dict[str, tuple[int, str]] = {}
    for entry in FUNCTIONS.by_id.values():
        if not (entry.volatile or entry.waits):
            found[f"function {entry.id}"] = entry.edition, _digest(_function(entry))
    for aggregate in AGGREGATES.by_id.values():
        found[f"aggregate {aggregate.id}"] = aggregate.edition, _digest(_aggregate(aggregate))
    for rows in TABLE_FUNCTIONS.by_id.values():
        if not (rows.volatile or rows.waits):
            found[f"rows {rows.id}"] = rows.edition, _digest(_rows_function(rows))
    kinds = [kind_of(each) for each in TEXTS]
    for source, target in itertools.product(kinds, kinds):
        if source != target and cast_exists(source, target):
            edition = cast_edition(source, target)
            found[f"cast {source} to {target}"] = edition, _digest(_cast(source, target))
    return found
