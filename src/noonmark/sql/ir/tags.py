"""What the parts of a plan are called where plans are stored: numbers, never names of Python.

Each kind of node, type and enumeration has a tag, and each of its fields an id. They are given once
and for ever: what is stored, and what is named after it (`ir.encoding`), stays the same when a
class or a field gets another name here.

    a new kind     takes the next free tag
    a new field    takes the next free id of its kind, with the value `absent` that stands for what
                   there was before: a field that has it is not written
    what is gone   leaves its number unused

Fields that do not count when plans are compared (names for people, positions) are not written.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from noonmark.rows import schema as rows
from noonmark.rows import types as t
from noonmark.rows.coded import CODED
from noonmark.sql.ir import asked as a
from noonmark.sql.ir import call as k
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s

#: Of a field that is always written.
WRITTEN: Any = object()


@dataclass(frozen=True)
class Field:
    """A field of a kind: its id, what it is called here, and the value that is not written."""

    id: int
    name: str
    absent: Any = WRITTEN


@dataclass(frozen=True)
class Kind:
    """A kind of node: its tag, its class and its fields, by id."""

    tag: int
    made: type[Any]
    fields: tuple[Field, ...]


def _kind(tag: int, made: type[Any], *fields: str | tuple[str, Any]) -> Kind:
    """A kind whose fields have the ids 1, 2, ... in the order given."""
    found = []
    for number, each in enumerate(fields, 1):
        name, absent = (each, WRITTEN) if isinstance(each, str) else each
        found.append(Field(number, name, absent))
    return Kind(tag, made, tuple(found))


RELATIONS = (
    _kind(1, r.Scan, "collection", "columns"),
    _kind(2, r.Constant, "columns", "rows"),
    _kind(3, r.Get, "name", "columns"),
    _kind(4, r.Filter, "input", "predicate"),
    _kind(5, r.Project, "input", "scalars", "names"),
    _kind(6, r.Join, "kind", "left", "right", ("keys", ()), "on"),
    _kind(7, r.Apply, "kind", "left", "right", "scope", "on"),
    _kind(8, r.Aggregate, "input", ("keys", ()), ("aggregates", ()), "names", ("growing", False)),
    _kind(9, r.Distinct, "input"),
    _kind(
        10,
        r.TopK,
        "input",
        ("partition", ()),
        ("order", ()),
        ("limit", None),
        ("offset", 0),
        ("growing", False),
    ),
    _kind(11, r.Union, "inputs"),
    _kind(12, r.Intersect, "left", "right", ("all", False)),
    _kind(13, r.Except, "left", "right", ("all", False)),
    _kind(14, r.Window, "input", ("partition", ()), ("order", ()), "calls", "names"),
    _kind(15, r.FlatMap, "input", "call", "names"),
    _kind(16, r.Let, "name", "value", "body"),
    _kind(17, r.Recursive, "names", "values", "body", ("limit", None), ("returns", False)),
)

PARTS = (
    _kind(32, r.JoinKey, "left", "right", ("null_equal", False)),
    _kind(33, k.SortKey, "scalar", ("descending", False), ("nulls_first", False)),
    _kind(
        34, k.AggregateCall, "function", ("arguments", ()), ("distinct", False), ("filter", None),
        ("order", ()),
    ),
    _kind(
        35, k.Frame, "unit", ("start", None), ("end", None), "exclude", ("by", None),
        ("first", None), ("last", None),
    ),
    _kind(36, k.WindowCall, "function", ("arguments", ()), "frame", ("filter", None)),
    _kind(37, k.TableCall, "function", ("arguments", ()), ("ordinality", False)),
    _kind(38, s.When, "condition", "value"),
    _kind(39, rows.Schema, "columns"),
    _kind(40, rows.Column, "name", "type", ("nullable", True)),
    _kind(41, t.Field, "name", "type"),
)  # fmt: skip

SCALARS = (
    _kind(64, s.ColumnRef, "type", "nullable", "index"),
    _kind(65, s.OuterRef, "type", "nullable", "scope", "index"),
    _kind(66, s.Literal, "type", ("value", None)),
    _kind(67, s.Call, "function", ("arguments", ())),
    _kind(68, s.Cast, "type", "operand"),
    _kind(69, s.Compare, "op", "left", "right"),
    _kind(70, s.IsDistinct, "left", "right"),
    _kind(71, s.And, ("parts", ())),
    _kind(72, s.Or, ("parts", ())),
    _kind(73, s.Not, "operand"),
    _kind(74, s.Is, "operand", ("value", None)),
    _kind(75, s.InList, "operand", "items"),
    _kind(76, s.Case, "branches", "default"),
    _kind(77, s.Coalesce, "arguments"),
    _kind(78, s.MakeArray, "type", ("elements", ())),
    _kind(79, s.MakeRecord, "type", "values"),
    _kind(80, s.FieldRef, "record", "index"),
    _kind(81, a.Now),
)

TYPES = (
    _kind(128, t.Boolean),
    _kind(129, t.SmallInt),
    _kind(130, t.Integer),
    _kind(132, t.BigInt),
    _kind(133, t.Real),
    _kind(134, t.Double),
    _kind(135, t.Numeric, ("precision", None), ("scale", None), ("trimmed", False)),
    _kind(136, t.Text),
    _kind(137, t.Varchar, ("length", None)),
    _kind(138, t.Char, "length"),
    _kind(139, t.Bytea),
    _kind(140, t.Date),
    _kind(141, t.Time),
    _kind(142, t.Timestamp),
    _kind(143, t.TimestampTz),
    _kind(144, t.Interval),
    _kind(145, t.Uuid),
    _kind(146, t.Jsonb),
    _kind(147, t.Array, "element"),
    _kind(148, t.Record, "fields"),
    _kind(149, t.Vector, "element"),
    _kind(151, t.Json),
    _kind(152, t.Enum, "uid"),
    # From 153 on, of 64 in all: each says its own.
    *(_kind(each.tag, each, *each.fields) for each in CODED),
)

KINDS = (*RELATIONS, *PARTS, *SCALARS, *TYPES)

#: Each enumeration with its tag, and each of its members with its code.
ENUMS: dict[int, dict[enum.Enum, int]] = {
    1: {
        r.JoinKind.INNER: 1,
        r.JoinKind.LEFT: 2,
        r.JoinKind.RIGHT: 3,
        r.JoinKind.FULL: 4,
        r.JoinKind.SEMI: 5,
        r.JoinKind.ANTI: 6,
    },
    2: {k.Unit.ROWS: 1, k.Unit.GROUPS: 2, k.Unit.RANGE: 3},
    3: {
        k.Exclusion.NO_OTHERS: 1,
        k.Exclusion.CURRENT_ROW: 2,
        k.Exclusion.GROUP: 3,
        k.Exclusion.TIES: 4,
    },
}

#: What a plan is told when it is run: no maintained plan has it, and so none is written.
UNWRITTEN = (a.Parameter, a.Ask)
