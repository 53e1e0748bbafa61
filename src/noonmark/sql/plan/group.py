"""Aggregation: GROUP BY, grouping sets and the aggregates of a SELECT.

Before it an expression sees the rows of FROM; after it, the groups. An expression after it may use
group keys (any expression equal to one), aggregates, and what is constant inside a group.

Grouping sets are a union: one aggregation per set, with NULL for the keys that the set leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import NoReturn

from sqlglot import exp

from noonmark.errors import (
    AmbiguousColumn,
    GroupingError,
    InvalidReference,
    InvalidSyntax,
    SqlError,
    UndefinedFunction,
    Unsupported,
    WrongObjectType,
)
from noonmark.rows import types as t
from noonmark.rows.coded.network import Cidr, Inet
from noonmark.rows.order import has_equality, is_ordered
from noonmark.sql.choose import require_star, require_within, resolve
from noonmark.sql.coerce import coerce, fixed_scale
from noonmark.sql.dialect import position_of
from noonmark.sql.evaluate import constant
from noonmark.sql.functions import AGGREGATES
from noonmark.sql.functions.statistics import HYPOTHETICAL, ORDERED_SETS, check_fractions
from noonmark.sql.ir.call import AggregateCall, SortKey
from noonmark.sql.ir.node import walk
from noonmark.sql.ir.relation import Aggregate, Project, Relation, Union, distinct_names
from noonmark.sql.ir.scalar import ColumnRef, Literal, OuterRef, Scalar, column
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.hypothetical import Hypothetical, plan_hypothetical
from noonmark.sql.plan.row import POSITION, Row, name_of, unsupported
from noonmark.sql.plan.scalar import call, check_equality, plan, plan_boolean, plan_value
from noonmark.sql.scope import Entry

_SETS_MAX = 64


def aggregates_in(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregate calls of an expression that belong to its own query, FILTER included."""
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Window):
        for part in (*_call_of(tree.this).expressions, *_window_parts(tree)):
            yield from aggregates_in(part)
        return
    if is_aggregate(tree):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from aggregates_in(child)


def _window_parts(tree: exp.Window) -> list[exp.Expr]:
    order = tree.args.get("order")
    return [*(tree.args.get("partition_by") or ()), *([order] if order is not None else [])]


def _call_of(tree: exp.Expr) -> exp.Expr:
    call = tree.this if isinstance(tree, exp.Filter) else tree
    return call.this if isinstance(call, exp.WithinGroup) else call


def _within_of(tree: exp.Expr) -> exp.WithinGroup | None:
    """WITHIN GROUP, where the call has it."""
    call = tree.this if isinstance(tree, exp.Filter) else tree
    return call if isinstance(call, exp.WithinGroup) else None


def is_aggregate(tree: exp.Expr) -> bool:
    """Whether the node is a call of an aggregate."""
    call = _call_of(tree)
    if not isinstance(call, exp.Anonymous):
        return False
    name = name_of(call.this)
    return name in AGGREGATES.by_name or (name in HYPOTHETICAL and _within_of(tree) is not None)


@dataclass(frozen=True)
class Arguments:
    """The arguments of an aggregate, taken apart."""

    trees: tuple[exp.Expr, ...]
    distinct: bool
    order: tuple[exp.Ordered, ...]


def arguments_of(tree: exp.Anonymous) -> Arguments:
    """What stands between the parentheses of an aggregate."""
    trees: list[exp.Expr] = list(tree.expressions)
    order: tuple[exp.Ordered, ...] = ()
    if trees and isinstance(trees[-1], exp.Order):
        last = trees.pop()
        order = tuple(last.expressions)
        trees += [last.this] if last.this is not None else []
    distinct = bool(trees) and isinstance(trees[0], exp.Distinct)
    if distinct:
        trees = [*trees[0].expressions, *trees[1:]]
    if len(trees) == 1 and isinstance(trees[0], exp.Star):
        if distinct:
            raise InvalidSyntax("DISTINCT * is no argument", position=position_of(trees[0]))
        trees = []
    return Arguments(tuple(trees), distinct, order)


def aggregated(name: str, scalars: Sequence[Scalar]) -> list[Scalar]:
    """The arguments of an aggregate in the types that it takes them in.

    Text is the one string that has extremes. A sum of numerics with several scales has the largest:
    its terms may as well have it, which is quick.
    """
    if name in ("min", "max"):
        wide = {t.Varchar: t.Text(), Cidr: Inet()}
        return [coerce(x, wide.get(type(x.type), x.type)) for x in scalars]
    return [fixed_scale(x) for x in scalars] if name in ("sum", "avg") else list(scalars)


def _has_extremes(kind: t.SqlType) -> bool:
    return kind.extremes if isinstance(kind, t.Coded) else is_ordered(kind)


def plan_aggregate(tree: exp.Expr, row: Row) -> AggregateCall:
    """An aggregate call over the rows before aggregation."""
    call = _call_of(tree)
    assert isinstance(call, exp.Anonymous)
    name, parts = name_of(call.this), arguments_of(call)
    within = _within_of(tree)
    if within is None and name in ORDERED_SETS:
        require_within(name, [plan(each, row) for each in parts.trees], position_of(tree))
    if within is not None and name not in ORDERED_SETS:
        message = f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
        # What the set is ordered by is an argument, too: of those that exist few have one more.
        wrong = UndefinedFunction if parts.trees else WrongObjectType
        raise wrong(message, position=position_of(tree))
    if within is not None:
        parts = _ordered_set(parts, within)
    require_star(name, call)
    scalars = [plan(each, row) for each in parts.trees]
    entry, arguments = resolve(AGGREGATES, name, aggregated(name, scalars), position_of(tree))
    if name in ("min", "max") and not _has_extremes(arguments[0].type):
        raise UndefinedFunction(
            f"function {name}({arguments[0].type}) does not exist", position=position_of(tree)
        )
    if parts.distinct:
        check_equality((each.type for each in arguments), tree)
    where = tree.expression if isinstance(tree, exp.Filter) else None
    test = None if where is None else plan_boolean(where.this, row, "FILTER")
    keys = tuple(sort_key(each, plan_value(each.this, row)) for each in parts.order)
    if entry.name in _IN_ORDER and not keys and not parts.distinct:
        keys = row.order
    if within is not None:
        keys = (replace(keys[0], scalar=arguments[-1]),)
        if any(isinstance(x, ColumnRef) for each in arguments[:-1] for x in walk(each)):
            raise unsupported(f"{name} of a fraction that is not constant", tree)
        place = position_of(tree)
        check_fractions(tuple(constant(each, name, place) for each in arguments[:-1]))
    result = AggregateCall(entry.id, arguments, parts.distinct, test, keys)
    refs = [node for node in walk(result) if isinstance(node, ColumnRef | OuterRef)]
    if refs and not any(isinstance(node, ColumnRef) for node in refs):
        raise unsupported("an aggregate of the columns of an outer query", tree)
    return result


#: Aggregates whose result depends on the order of the rows.
_IN_ORDER = frozenset(
    ("array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg")
)


def _ordered_set(parts: Arguments, within: exp.WithinGroup) -> Arguments:
    """The direct arguments, then what the set is ordered by."""
    order = tuple(within.expression.expressions)
    if len(order) != 1 or parts.distinct or parts.order:
        raise unsupported("WITHIN GROUP of other than one expression", within)
    return Arguments((*parts.trees, order[0].this), False, order)


def sort_key(tree: exp.Ordered, scalar: Scalar) -> SortKey:
    """One key of an ORDER BY."""
    if tree.args.get("with_fill"):
        raise unsupported("WITH FILL", tree)
    return SortKey(scalar, bool(tree.args.get("desc")), bool(tree.args.get("nulls_first")))


@dataclass
class _Keys:
    """The group keys, each once, the sets of them, and those that are asked of a query.

    What a query gives is a new column each time that it is planned: it is known by its tree.
    """

    scalars: list[Scalar]
    sets: list[tuple[int, ...]]
    asked: dict[exp.Expr, int] = field(default_factory=dict)


def plan_group(
    tree: exp.Select, trees: Sequence[exp.Expr], row: Row, frame: Frame, items: Items
) -> Row | None:
    """The row after aggregation; None if the SELECT has none.

    `trees` are the expressions that may hold aggregates; `items` finds what a position or an output
    name in GROUP BY stands for.
    """
    group, having = tree.args.get("group"), tree.args.get("having")
    found = list(dict.fromkeys(call for each in trees for call in aggregates_in(each)))
    if group is None and having is None and not found:
        return None
    keys = _keys(group, row, items)
    _add_dependent(keys, trees, row)
    row.place = "aggregate arguments"
    planned = [_planned(each, row, keys.scalars) for each in found]
    calls = _paired([each for one in planned for each in one.calls])
    assert row.relation is not None
    relation = _aggregate(row.relation, keys, calls)
    after = frame.row("SELECT", row.scope, relation)
    at = len(keys.scalars)
    for tree_, one in zip(found, planned, strict=True):
        columns = [after.column_at(at + place) for place in range(len(one.calls))]
        after.computed[tree_] = one.result(columns)
        at += len(columns)
    after.computed.update({each: after.column_at(key) for each, key in keys.asked.items()})
    masks = at
    _find_grouping(trees, keys, row, after, masks)
    after.match = _matcher(keys, row, after)
    after.refuse = _refuse
    return after


def _paired(calls: list[AggregateCall]) -> list[AggregateCall]:
    """The aggregates of one SELECT that depend on an order and have none: they have one together.

    So item by item they are of the same row: ``array_agg(id), array_agg(name)``.
    """

    def is_open(call: AggregateCall) -> bool:
        return call.entry.name in _IN_ORDER and not call.order and not call.distinct

    open_ = [each for each in calls if is_open(each)]
    if len(open_) < 2:
        return calls
    scalars = dict.fromkeys(x for each in open_ for x in each.arguments if is_ordered(x.type))
    keys = tuple(SortKey(each) for each in scalars if not isinstance(each, Literal))
    return [replace(each, order=keys) if is_open(each) else each for each in calls]


def _planned(tree: exp.Expr, row: Row, keys: Sequence[Scalar]) -> Hypothetical:
    """An aggregate call, or the counts that one of a hypothetical set follows from."""
    within, call_ = _within_of(tree), _call_of(tree)
    name = name_of(call_.this)
    if within is None or name not in HYPOTHETICAL:
        return Hypothetical((plan_aggregate(tree, row),), lambda columns: columns[0])
    where = tree.expression if isinstance(tree, exp.Filter) else None
    test = None if where is None else plan_boolean(where.this, row, "FILTER")
    return plan_hypothetical(name, tree, within, test, row=row, keys=keys)


def _add_dependent(keys: _Keys, trees: Sequence[exp.Expr], row: Row) -> None:
    """Group also by the columns that are named and follow from the keys.

    A column of a table follows from the table's primary key: where all of this is in every set, the
    groups are the same with it and without.
    """
    in_every = set.intersection(*map(set, keys.sets)) if keys.sets else set()
    fixed = {keys.scalars[at] for at in in_every}
    tables = []
    for table in row.scope.tables:
        key = [each for each in row.scope.entries if each.table == table and each.key]
        if key and all(row.column_at(each.index) in fixed for each in key):
            tables.append(table)
    if not tables:
        return
    for named in (each for tree in trees for each in tree.find_all(exp.Column)):
        qualified = named.args.get("table")
        entry = _entry(named, None if qualified is None else name_of(qualified), row)
        scalar = None if entry is None or entry.table not in tables else row.column_at(entry.index)
        if scalar is None or scalar in keys.scalars or not has_equality(scalar.type):
            continue
        keys.scalars.append(scalar)
        keys.sets[:] = [(*each, len(keys.scalars) - 1) for each in keys.sets]


def _entry(named: exp.Column, table: str | None, row: Row) -> Entry | None:
    if isinstance(named.this, exp.Star):
        return None
    name = name_of(named.this)
    if name.startswith(POSITION):
        return row.scope.at(int(name.removeprefix(POSITION)))
    try:
        return row.scope.find(name, table, None)
    except AmbiguousColumn:
        return None  # whoever names it is told


Items = Callable[[exp.Expr], exp.Expr]


def _keys(group: exp.Group | None, row: Row, items: Items) -> _Keys:
    if group is None:
        return _Keys([], [()])
    if group.args.get("all") and not group.expressions:
        raise unsupported("GROUP BY ALL", group)
    keys = _Keys([], [])
    row.place = "GROUP BY"
    parts = [_sets(each, keys, row, items) for each in group.expressions]
    if math.prod(map(len, parts)) > _SETS_MAX:
        raise _too_many(group)
    for choice in product(*parts):
        keys.sets.append(tuple(dict.fromkeys(key for chosen in choice for key in chosen)))
    if group.args.get("all") is False:  # GROUP BY DISTINCT: of sets of the same keys, one
        keys.sets[:] = {frozenset(each): each for each in reversed(keys.sets)}.values()
    return keys


def _too_many(tree: exp.Expr) -> Unsupported:
    return unsupported(f"more than {_SETS_MAX} grouping sets", tree)


def _sets(tree: exp.Expr, keys: _Keys, row: Row, items: Items) -> list[tuple[int, ...]]:
    """The grouping sets of one element of GROUP BY."""
    if isinstance(tree, exp.Rollup | exp.Cube):
        parts = [_sets(each, keys, row, items)[0] for each in tree.expressions]
        sizes = range(len(parts), -1, -1)
        if isinstance(tree, exp.Rollup):
            chosen = [tuple(parts[:size]) for size in sizes]
        elif 1 << len(parts) > _SETS_MAX:  # asked before they are there: they may be billions
            raise _too_many(tree)
        else:
            chosen = [each for size in sizes for each in combinations(parts, size)]
        return [tuple(key for part in each for key in part) for each in chosen]
    if isinstance(tree, exp.GroupingSets):
        return [each for part in tree.expressions for each in _sets(part, keys, row, items)]
    if isinstance(tree, exp.Tuple):
        return [tuple(_key(each, keys, row, items) for each in tree.expressions)]
    return [(_key(tree, keys, row, items),)]


def _key(tree: exp.Expr, keys: _Keys, row: Row, items: Items) -> int:
    meant = items(tree)
    if meant in keys.asked:
        return keys.asked[meant]
    scalar = plan_value(meant, row)
    check_equality((scalar.type,), tree)
    if scalar not in keys.scalars:
        keys.scalars.append(scalar)
    at = keys.scalars.index(scalar)
    if meant.find(exp.Query):
        keys.asked[meant] = at
    return at


def _aggregate(source: Relation, keys: _Keys, calls: Sequence[AggregateCall]) -> Relation:
    names = distinct_names([*map(_name, keys.scalars), *map(_name, calls)])
    whole = tuple(range(len(keys.scalars)))
    if keys.sets == [whole]:
        return Aggregate(source, tuple(keys.scalars), tuple(calls), tuple(names))
    parts = [_one_set(source, keys, each, calls, names) for each in keys.sets]
    return Union(tuple(parts))


def _one_set(
    source: Relation,
    keys: _Keys,
    chosen: tuple[int, ...],
    calls: Sequence[AggregateCall],
    names: list[str],
) -> Relation:
    """One grouping set, with all keys, the aggregates, and the mask of the keys it leaves out."""
    own = tuple(keys.scalars[key] for key in chosen)
    width = len(keys.scalars)
    own_names = tuple([names[key] for key in chosen] + names[width:])
    grouped = Aggregate(source, own, tuple(calls), own_names)
    columns = [column(at, each) for at, each in enumerate(grouped.schema)]
    scalars: list[Scalar] = []
    for key, scalar in enumerate(keys.scalars):
        inside = key in chosen
        scalars.append(columns[chosen.index(key)] if inside else Literal(scalar.type, None))
    mask = sum(1 << key for key in range(width) if key not in chosen)
    scalars += [*columns[len(chosen) :], Literal(t.Integer(), mask)]
    return Project(grouped, tuple(scalars), tuple(distinct_names([*names, "grouping"])))


def _name(part: Scalar | AggregateCall) -> str:
    if isinstance(part, AggregateCall):
        return part.entry.name
    return getattr(part, "name", "") or "key"


def _find_grouping(
    trees: Sequence[exp.Expr], keys: _Keys, row: Row, after: Row, masks: int
) -> None:
    """GROUPING(a, b): one bit per argument, set where the row's set leaves it out."""
    for tree in trees:
        for node in tree.find_all(exp.Anonymous):
            if name_of(node.this) != "grouping":
                continue
            result: Scalar = Literal(t.Integer(), 0)
            for argument in node.expressions:
                scalar = plan_value(argument, row)
                if scalar not in keys.scalars:
                    raise GroupingError(
                        "arguments to GROUPING must be grouping expressions of the query",
                        position=position_of(node),
                    )
                bit: Scalar = Literal(t.Integer(), 0)
                if len(keys.sets) > 1 or keys.sets[0] != tuple(range(len(keys.scalars))):
                    at = Literal(t.Integer(), keys.scalars.index(scalar))
                    moved = call(">>", [after.column_at(masks), at], node, True)
                    one = Literal(t.Integer(), 1)
                    bit = call("&", [moved, one], node, operator=True)
                two = Literal(t.Integer(), 2)
                doubled = call("*", [result, two], node, operator=True)
                result = call("+", [doubled, bit], node, operator=True)
            after.computed[node] = result


def _matcher(keys: _Keys, before: Row, after: Row) -> Callable[[exp.Expr], Scalar | None]:
    """Finds the group key that an expression is."""

    def match(tree: exp.Expr) -> Scalar | None:
        if isinstance(tree, exp.Literal | exp.Boolean | exp.Null) or tree.find(exp.Query):
            return None
        if any(True for _ in aggregates_in(tree)) or tree.find(exp.Window):
            return None
        try:
            scalar = plan_value(tree, before)
        except SqlError:
            return None
        return after.column_at(keys.scalars.index(scalar)) if scalar in keys.scalars else None

    return match


def _refuse(name: str, table: str | None, position: int | None) -> NoReturn:
    shown = f"{table}.{name}" if table else name
    raise GroupingError(
        f'column "{shown}" must appear in the GROUP BY clause or be used in an aggregate function',
        position=position,
    )


def check_position(tree: exp.Expr, clause: str) -> None:
    """A constant in ORDER BY and its kin is the number of a column."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
        shown = f"-{tree.this.this}"
        message = f"{clause} position {shown} is not in select list"
        if tree.this.this.isdigit() and not tree.this.is_string:
            raise InvalidReference(message, position=position_of(tree))
        tree = tree.this
    is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.this.isdigit()
    if isinstance(tree, exp.Literal | exp.Null | exp.Boolean) and not is_number:
        raise InvalidSyntax(f"non-integer constant in {clause}", position=position_of(tree))


def group_items(names: Sequence[str], trees: Sequence[exp.Expr], row: Row) -> Items:
    """What an element of GROUP BY stands for: a position, a column, or else an output name."""

    def find(tree: exp.Expr) -> exp.Expr:
        if isinstance(tree, exp.Paren):
            return find(tree.this)
        check_position(tree, "GROUP BY")
        if isinstance(tree, exp.Literal):
            at = int(tree.this)
            if not 1 <= at <= len(trees):
                raise InvalidReference(
                    f"GROUP BY position {tree.this} is not in select list",
                    position=position_of(tree),
                )
            return trees[at - 1]
        if isinstance(tree, exp.Column) and tree.args.get("table") is None:
            name = name_of(tree.this)
            if row.scope.find(name, None, position_of(tree)) is None and name in names:
                return trees[list(names).index(name)]
        return tree

    return find
