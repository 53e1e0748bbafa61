"""Plans as text: one relation a line, its inputs indented below it, scalars as SQL people read.

Columns are shown as ``#position:name``, so that the text says what the plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from noonmark.rows import types as t
from noonmark.rows.pg.text import format_value
from noonmark.rows.types import quote_name
from noonmark.sql.ir import asked
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.call import AggregateCall, Frame, SortKey, TableCall, Unit, WindowCall


def show(relation: r.Relation) -> str:
    """The plan as an indented tree."""
    return "\n".join(_lines(relation, 0))


def _lines(relation: r.Relation, depth: int) -> Iterable[str]:
    yield "  " * depth + _HEADS[type(relation)](relation)
    for child in r.relations_below(relation):
        yield from _lines(child, depth + 1)


def _list(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _named(names: Iterable[str], texts: Iterable[str]) -> str:
    return _list(f"{quote_name(n)} = {text}" for n, text in zip(names, texts, strict=True))


def _scan(relation: r.Scan) -> str:
    return f"Scan {quote_name(relation.collection)}"


def _constant(relation: r.Constant) -> str:
    rows = [
        "(" + _list(_value(x, c.type) for x, c in zip(row, relation.schema, strict=True)) + ")"
        for row in relation.rows[:5]
    ]
    more = f", {len(relation.rows) - 5} more" if len(relation.rows) > 5 else ""
    return f"Constant {_list(rows) or 'no rows'}{more}"


def _project(relation: r.Project) -> str:
    return f"Project {_named(relation.names, map(text, relation.scalars))}"


def _keys(keys: Iterable[r.JoinKey]) -> list[str]:
    return [
        f"{text(k.left)} {'is not distinct from' if k.null_equal else '='} {text(k.right)}"
        for k in keys
    ]


def _join(relation: r.Join) -> str:
    parts = [*(["by " + " and ".join(_keys(relation.keys))] if relation.keys else [])]
    parts += [f"on {text(relation.on)}"] if relation.on != s.TRUE else []
    cross = relation.kind is r.JoinKind.INNER and not parts
    return " ".join([f"Join {'cross' if cross else relation.kind.value}", *parts])


def _apply(relation: r.Apply) -> str:
    on = f" on {text(relation.on)}" if relation.on != s.TRUE else ""
    return f"Apply {relation.kind.value} outer {relation.scope}{on}"


def _aggregate(relation: r.Aggregate) -> str:
    count = len(relation.keys)
    keys = _named(relation.names[:count], map(text, relation.keys))
    calls = _named(relation.names[count:], map(_call, relation.aggregates))
    return f"Aggregate by ({keys}): {calls}"


def _order(keys: Iterable[SortKey]) -> str:
    texts = []
    for key in keys:
        words = text(key.scalar) + (" desc" if key.descending else "")
        texts.append(words + (" nulls first" if key.nulls_first else ""))
    return _list(texts)


def _top_k(relation: r.TopK) -> str:
    by = f" by ({_list(map(text, relation.partition))})" if relation.partition else ""
    limit = "" if relation.limit is None else f" limit {relation.limit}"
    offset = f" offset {relation.offset}" if relation.offset else ""
    return f"TopK{by} order ({_order(relation.order)}){limit}{offset}"


def _window(relation: r.Window) -> str:
    calls = _named(relation.names, map(_window_call, relation.calls))
    by = _list(map(text, relation.partition))
    return f"Window by ({by}) order ({_order(relation.order)}): {calls}"


def _call(call: AggregateCall) -> str:
    inside = ("distinct " if call.distinct else "") + _list(map(text, call.arguments))
    inside += f" order by {_order(call.order)}" if call.order else ""
    where = f" filter ({text(call.filter)})" if call.filter is not None else ""
    return f"{call.entry.name}({inside}){where}"


def _window_call(call: WindowCall) -> str:
    where = f" filter ({text(call.filter)})" if call.filter is not None else ""
    arguments = _list(map(text, call.arguments))
    return f"{call.entry.name}({arguments}){where}{_frame(call.frame)}"


def _frame(frame: Frame) -> str:
    if frame == Frame():
        return ""
    sides = (frame.start, frame.first), (frame.end, frame.last)
    ends = [
        text(edge) if edge is not None else "open" if each is None else str(each)
        for each, edge in sides
    ]
    unit = frame.unit.value.lower() if frame.unit is not Unit.RANGE else "range"
    return f" {unit} {ends[0]} to {ends[1]} excluding {frame.exclude.value.lower()}"


def _flat_map(relation: r.FlatMap) -> str:
    return f"FlatMap {_list(map(quote_name, relation.names))} = {_table_call(relation.call)}"


def _table_call(call: TableCall) -> str:
    ordinality = " with ordinality" if call.ordinality else ""
    return f"{call.entry.name}({_list(map(text, call.arguments))}){ordinality}"


def _rounds(relation: r.Recursive) -> str:
    if relation.limit is None:
        return ""
    return f" {'as it is' if relation.returns else 'error'} after {relation.limit} rounds"


_HEADS: dict[type[r.Relation], Callable[[Any], str]] = {
    r.Scan: _scan,
    r.Constant: _constant,
    r.Get: lambda x: f"Get {x.name}",
    r.Filter: lambda x: f"Filter {text(x.predicate)}",
    r.Project: _project,
    r.Join: _join,
    r.Apply: _apply,
    r.Aggregate: _aggregate,
    r.Distinct: lambda _: "Distinct",
    r.TopK: _top_k,
    r.Union: lambda _: "Union",
    r.Intersect: lambda x: f"Intersect{' all' if x.all else ''}",
    r.Except: lambda x: f"Except{' all' if x.all else ''}",
    r.Window: _window,
    r.FlatMap: _flat_map,
    r.Let: lambda x: f"Let {x.name}",
    r.Recursive: lambda x: f"Recursive {_list(x.names)}{_rounds(x)}",
}


# --- scalars


def text(scalar: s.Scalar) -> str:
    """The scalar as one line."""
    return _TEXTS[type(scalar)](scalar)


def _value(value: Any, sql_type: t.SqlType) -> str:
    if value is None:
        return f"null::{sql_type}"
    shown = format_value(value, sql_type)
    if isinstance(sql_type, t.Boolean):
        return "true" if value else "false"
    if isinstance(sql_type, t.Integer | t.Numeric):
        return shown
    quoted = "'" + shown.replace("'", "''") + "'"
    return quoted if isinstance(sql_type, t.Text) else f"{quoted}::{sql_type}"


def _function(scalar: s.Call) -> str:
    name, arguments = scalar.entry.name, [text(each) for each in scalar.arguments]
    if not name.replace(" ", "").replace("_", "").isalnum() and len(arguments) == 2:
        return f"({arguments[0]} {name} {arguments[1]})"
    return f"{name}({_list(arguments)})"


def _case(scalar: s.Case) -> str:
    whens = [f"when {text(b.condition)} then {text(b.value)}" for b in scalar.branches]
    return f"case {' '.join(whens)} else {text(scalar.default)} end"


def _is(scalar: s.Is) -> str:
    word = {None: "null", True: "true", False: "false"}[scalar.value]
    return f"({text(scalar.operand)} is {word})"


_TEXTS: dict[type[s.Scalar], Callable[[Any], str]] = {
    s.ColumnRef: lambda x: f"#{x.index}:{x.name}" if x.name else f"#{x.index}",
    s.OuterRef: lambda x: f"outer{x.scope}#{x.index}:{x.name}",
    s.Literal: lambda x: _value(x.value, x.type),
    s.Call: _function,
    s.Cast: lambda x: f"{text(x.operand)}::{x.type}",
    s.Compare: lambda x: f"({text(x.left)} {x.op} {text(x.right)})",
    s.IsDistinct: lambda x: f"({text(x.left)} is distinct from {text(x.right)})",
    asked.Parameter: lambda x: f"${x.index}",
    asked.Now: lambda _: "mz_now()",
    asked.Ask: lambda x: f"{x.entry.name}({', '.join(map(text, x.arguments))})",
    s.And: lambda x: "(" + " and ".join(map(text, x.parts)) + ")",
    s.Or: lambda x: "(" + " or ".join(map(text, x.parts)) + ")",
    s.Not: lambda x: f"not {text(x.operand)}",
    s.Is: _is,
    s.InList: lambda x: f"({text(x.operand)} in ({_list(map(text, x.items))}))",
    s.Case: _case,
    s.Coalesce: lambda x: f"coalesce({_list(map(text, x.arguments))})",
    s.MakeArray: lambda x: f"array[{_list(map(text, x.elements))}]",
    s.MakeRecord: lambda x: f"row({_list(map(text, x.values))})",
    s.FieldRef: lambda x: f"{text(x.record)}.{x.index}",
}
