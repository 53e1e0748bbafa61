"""Window functions: calls with OVER, planned after aggregation and before the select list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from noonmark.errors import InvalidArgument, InvalidSyntax, UndefinedFunction, WindowingError
from noonmark.rows import types as t
from noonmark.rows.order import sort_key as sort_key_of
from noonmark.rows.value import Interval
from noonmark.sql.choose import require_star, require_within, resolve
from noonmark.sql.coerce import coerce
from noonmark.sql.dialect import position_of
from noonmark.sql.evaluate import constant
from noonmark.sql.functions import AGGREGATES, WINDOWS
from noonmark.sql.functions.statistics import HYPOTHETICAL, ORDERED_SETS
from noonmark.sql.ir.call import Exclusion, Frame, SortKey, Unit, WindowCall
from noonmark.sql.ir.node import walk
from noonmark.sql.ir.relation import Window
from noonmark.sql.ir.scalar import ColumnRef, Scalar
from noonmark.sql.plan.frame import only
from noonmark.sql.plan.group import aggregated, arguments_of, sort_key
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.scalar import (
    call,
    check_equality,
    comparable,
    plan,
    plan_boolean,
    plan_value,
)

_NUMBERS = (t.SmallInt, t.Integer, t.BigInt, t.Numeric, t.Real, t.Double)
Order = tuple[tuple[Scalar, ...], tuple[SortKey, ...]]


def windows_in(tree: exp.Expr) -> Iterator[exp.Window]:
    """The window calls of an expression that belong to its own query."""
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Window):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from windows_in(child)


def plan_windows(trees: Sequence[exp.Expr], named: Mapping[str, exp.Window], row: Row) -> None:
    """Compute every window call of the trees; the row then knows the column of each."""
    found = list(dict.fromkeys(call for tree in trees for call in windows_in(tree)))
    row.place = "window functions"
    groups: dict[Order, list[tuple[exp.Window, WindowCall]]] = {}
    for tree in found:
        window = _definition(tree, named)
        partition = tuple(plan_value(e, row) for e in window.args.get("partition_by") or ())
        order = window.args.get("order")
        keys = tuple(
            sort_key(e, plan_value(e.this, row)) for e in (order.expressions if order else ())
        )
        call = _call(tree, _frame(window, keys, row), row)
        check_equality((each.type for each in partition), tree)
        groups.setdefault((partition, keys), []).append((tree, call))
    for (partition, keys), calls in groups.items():
        assert row.relation is not None
        names = tuple(f"{call.entry.name}_{at}" for at, (_, call) in enumerate(calls))
        width = len(row.relation.schema)
        row.relation = Window(row.relation, partition, keys, tuple(c for _, c in calls), names)
        for at, (tree, _) in enumerate(calls):
            row.computed[tree] = row.column_at(width + at)


def _definition(tree: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    only(tree, "this", "partition_by", "order", "spec", "alias", "over")
    alias = tree.args.get("alias")
    if alias is None:
        return tree
    found = named.get(name_of(alias))
    if found is None:
        raise InvalidSyntax(f'window "{name_of(alias)}" does not exist', position=position_of(tree))
    if any(tree.args.get(part) for part in ("partition_by", "order", "spec")):
        raise unsupported("a window that adds to a named one", tree)
    return found


def _call(tree: exp.Window, frame: Frame, row: Row) -> WindowCall:
    call = tree.this.this if isinstance(tree.this, exp.Filter) else tree.this
    if not isinstance(call, exp.Anonymous):
        raise unsupported(f"{type(call).__name__} with OVER", tree)
    name, parts = name_of(call.this), arguments_of(call)
    if parts.distinct or parts.order:
        raise unsupported("DISTINCT or ORDER BY inside a window function", tree)
    arguments = [plan(each, row) for each in parts.trees]
    test = None
    if isinstance(tree.this, exp.Filter):
        test = plan_boolean(tree.this.expression.this, row, "FILTER")
    position = position_of(tree)
    if name in ORDERED_SETS or (name in HYPOTHETICAL and arguments):
        require_within(name, arguments, position)
    if name in WINDOWS.by_name:
        if test is not None:
            raise WindowingError(
                "FILTER is not implemented for non-aggregate window functions", position=position
            )
        entry, coerced = resolve(WINDOWS, name, arguments, position)
        return WindowCall(entry.id, coerced, frame)
    if name not in AGGREGATES.by_name:
        raise UndefinedFunction(
            f"function {name} is neither a window function nor an aggregate", position=position
        )
    require_star(name, call)
    aggregate, coerced = resolve(AGGREGATES, name, aggregated(name, arguments), position)
    return WindowCall(aggregate.id, coerced, frame, test)


def _frame(tree: exp.Window, keys: Sequence[SortKey], row: Row) -> Frame:
    spec = tree.args.get("spec")
    if spec is None:
        return Frame()
    only(spec, "kind", "start", "start_side", "end", "end_side", "exclude")
    unit = Unit(str(spec.args.get("kind") or "RANGE").upper())
    start = _bound(spec, "start", unit)
    end = 0 if spec.args.get("end") is None else _bound(spec, "end", unit)
    exclude = spec.args.get("exclude")
    words = "NO OTHERS" if exclude is None else str(getattr(exclude, "name", exclude)).upper()
    plain = Frame(unit, start, end, Exclusion(words))
    if unit is not Unit.RANGE:
        return plain
    edges = [_edge(spec, name, keys, row) for name in ("start", "end")]
    given = [edge for edge in edges if edge is not None]
    if not given:
        return plain
    by, *same = comparable("<=", [keys[0].scalar, *given], spec)
    first, last = (None if edge is None else same.pop(0) for edge in edges)
    return replace(plain, by=by, first=first, last=last)


def _bound(spec: exp.WindowSpec, name: str, unit: Unit) -> int | None:
    value, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if isinstance(value, str):
        return 0 if value.upper() == "CURRENT ROW" else None
    if unit is Unit.RANGE:
        return 0
    if not isinstance(value, exp.Literal) or value.is_string or not value.this.isdigit():
        raise unsupported("a frame bound that is not a whole number", spec)
    return -int(value.this) if side == "PRECEDING" else int(value.this)


def _edge(spec: exp.WindowSpec, name: str, keys: Sequence[SortKey], row: Row) -> Scalar | None:
    """What the sort key is at a distance from that of the current row; None without a distance."""
    tree, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if tree is None or isinstance(tree, str):
        return None
    if len(keys) != 1:
        raise WindowingError(
            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
            position=position_of(spec),
        )
    key, distance = keys[0].scalar, plan(tree, row)
    if isinstance(key.type, t.Date | t.Timestamp | t.TimestampTz | t.Time | t.Interval):
        distance = coerce(distance, t.Interval(), position_of(tree))
        if isinstance(key.type, t.Time):
            key = coerce(key, t.Interval(), position_of(spec))  # a day has an end, a distance none
    elif not isinstance(key.type, _NUMBERS):
        raise unsupported(f"RANGE with a distance over {key.type}", spec)
    if isinstance(key.type, t.SmallInt | t.Integer):
        key = coerce(key, t.BigInt(), position_of(spec))  # a distance from its last value is one
    if any(isinstance(node, ColumnRef) for node in walk(distance)):
        raise unsupported("a frame bound that is not the same for all rows", tree)
    if _is_negative(distance, tree):
        raise InvalidArgument(
            "invalid preceding or following size in window function", position=position_of(tree)
        )
    sign = "-" if (side == "PRECEDING") != keys[0].descending else "+"
    return call(sign, [key, distance], tree, operator=True)


def _is_negative(distance: Scalar, tree: exp.Expr) -> bool:
    value = constant(distance, "a frame of a window", position_of(tree))
    zero = Interval() if isinstance(distance.type, t.Interval) else 0
    order = sort_key_of(distance.type)
    return value is None or bool(order(value) < order(zero))
