"""Window functions: calls with OVER, planned after aggregation and before the select list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from noonmark.errors import UndefinedFunction, UndefinedObject, WindowingError
from noonmark.sql.choose import require_star, require_within, resolve
from noonmark.sql.dialect import position_of
from noonmark.sql.functions import AGGREGATES, WINDOWS
from noonmark.sql.functions.statistics import HYPOTHETICAL, ORDERED_SETS
from noonmark.sql.ir.call import Frame, SortKey, WindowCall
from noonmark.sql.ir.relation import Window
from noonmark.sql.ir.scalar import Scalar
from noonmark.sql.plan.group import aggregated, arguments_of, sort_key
from noonmark.sql.plan.row import Row, name_of, unsupported
from noonmark.sql.plan.scalar import check_equality, plan, plan_boolean, plan_value
from noonmark.sql.plan.window_frame import plan_frame

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
        call = _call(tree, plan_frame(window, keys, row), row)
        check_equality((each.type for each in partition), tree)
        groups.setdefault((partition, keys), []).append((tree, call))
    for (partition, keys), calls in groups.items():
        assert row.relation is not None
        names = tuple(f"{call.entry.name}_{at}" for at, (_, call) in enumerate(calls))
        width = len(row.relation.schema)
        row.relation = Window(row.relation, partition, keys, tuple(c for _, c in calls), names)
        for at, (tree, _) in enumerate(calls):
            row.computed[tree] = row.column_at(width + at)


def named_windows(tree: exp.Select) -> dict[str, exp.Window]:
    """The windows of the clause WINDOW, each with what it takes from one before it."""
    named: dict[str, exp.Window] = {}
    for each in tree.args.get("windows") or ():
        name = name_of(each.this)
        if name in named:
            raise WindowingError(
                f'window "{name}" is already defined', position=position_of(each.this)
            )
        named[name] = _definition(each, named)
    return named


def _definition(tree: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    """The window of a call, with the partition and the order of the named one that it adds to."""
    alias = tree.args.get("alias")
    if alias is None:
        return tree
    name, position = name_of(alias), position_of(alias)
    found = named.get(name)
    if found is None:
        raise UndefinedObject(f'window "{name}" does not exist', position=position)
    if not any(tree.args.get(part) for part in ("partition_by", "order", "spec")):
        return found
    for part, words in (("partition_by", "PARTITION BY"), ("order", "ORDER BY")):
        if tree.args.get(part) and (part == "partition_by" or found.args.get(part)):
            message = f'cannot override {words} clause of window "{name}"'
            raise WindowingError(message, position=position)
    if found.args.get("spec"):
        raise WindowingError(
            f'cannot copy window "{name}" because it has a frame clause', position=position
        )
    whole = tree.copy()
    for part in ("partition_by", "order"):
        whole.set(part, tree.args.get(part) or found.args.get(part))
    return whole


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
