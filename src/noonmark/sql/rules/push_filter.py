"""Push filters down: a row that will be dropped is dropped before it costs anything.

A part of a condition moves below an operator when it uses only columns that the operator passes on
unchanged, and when it cannot fail: below, it is asked of rows that the operator might have dropped.
What has another value every time it is asked for (random, nextval) stays where it is.

    Project, Distinct, Union, Let   always
    FlatMap                         parts that use only the input's columns
    Aggregate, Window, TopK         parts that use only keys (of the group, of the partition)
    Join, inner                     by side; what uses both becomes part of the join's condition
    Join, left (right: mirrored)    left parts of the filter; right parts of the condition
    Join, semi                      the filter; parts of the condition by side
    Join, anti                      the filter; right parts of the condition

A left join above which a filter refuses NULL on the right is an inner join.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import is_volatile
from noonmark.sql.rules.rewrite import bottom_up, filtered, onto, substitute

Parts = list[s.Scalar]


def _push(relation: r.Relation) -> r.Relation:
    if isinstance(relation, r.Join):
        return _push_condition(relation)
    if not isinstance(relation, r.Filter):
        return relation
    act = _BELOW.get(type(relation.input))
    if act is None:
        return relation
    parts = list(s.conjuncts(relation.predicate))
    return act(relation.input, parts)


def _split(parts: Parts, allowed: set[int]) -> tuple[Parts, Parts]:
    """Those that may move below an operator that passes on these columns, and the rest."""
    moving = [p for p in parts if s.columns_of(p) <= allowed and not _stays(p)]
    return moving, [p for p in parts if p not in moving]


def _stays(part: s.Scalar) -> bool:
    return s.may_fail(part) or is_volatile(part)


def _below(relation: r.Relation, parts: Parts) -> r.Relation:
    """The filter on the relation, pushed on at once."""
    return _push(filtered(relation, parts)) if parts else relation


def _project(inner: r.Project, parts: Parts) -> r.Relation:
    fresh = {at for at, each in enumerate(inner.scalars) if is_volatile(each)}
    rest = [part for part in parts if is_volatile(part) or s.columns_of(part) & fresh]
    moved = [substitute(part, inner.scalars) for part in parts if part not in rest]
    return filtered(r.Project(_below(inner.input, moved), inner.scalars, inner.names), rest)


def _distinct(inner: r.Distinct, parts: Parts) -> r.Relation:
    rest = [part for part in parts if is_volatile(part)]
    moved = [part for part in parts if part not in rest]
    return filtered(r.Distinct(_below(inner.input, moved)), rest)


def _union(inner: r.Union, parts: Parts) -> r.Relation:
    pushed = []
    for each in inner.inputs:
        moved = [onto(part, each.schema, lambda at: at) for part in parts]
        pushed.append(_below(each, moved))
    return r.Union(tuple(pushed))


def _let(inner: r.Let, parts: Parts) -> r.Relation:
    return r.Let(inner.name, inner.value, _below(inner.body, parts))


def _flat_map(inner: r.FlatMap, parts: Parts) -> r.Relation:
    moving, rest = _split(parts, set(range(len(inner.input.schema))))
    return filtered(r.FlatMap(_below(inner.input, moving), inner.call, inner.names), rest)


def _aggregate(inner: r.Aggregate, parts: Parts) -> r.Relation:
    moving, rest = _split(parts, set(range(len(inner.keys))))
    # Without keys there is a group also over no rows: a filter below would not remove it.
    moving, rest = (moving, rest) if inner.keys else ([], parts)
    moving, rest = (
        [p for p in moving if s.columns_of(p)],
        [p for p in parts if p in rest or not s.columns_of(p)],
    )
    moved = [substitute(part, inner.keys) for part in moving]
    if any(s.may_fail(part) for part in moved):
        return filtered(inner, parts)
    below = _below(inner.input, moved)
    return filtered(r.Aggregate(below, inner.keys, inner.aggregates, inner.names), rest)


def _partition_columns(partition: tuple[s.Scalar, ...]) -> set[int]:
    return {each.index for each in partition if isinstance(each, s.ColumnRef)}


def _window(inner: r.Window, parts: Parts) -> r.Relation:
    moving, rest = _split(parts, _partition_columns(inner.partition))
    below = _below(inner.input, moving)
    window = r.Window(below, inner.partition, inner.order, inner.calls, inner.names)
    return filtered(window, rest)


def _top_k(inner: r.TopK, parts: Parts) -> r.Relation:
    moving, rest = _split(parts, _partition_columns(inner.partition))
    moving, rest = (
        [p for p in moving if s.columns_of(p)],
        [p for p in parts if p in rest or not s.columns_of(p)],
    )
    below = _below(inner.input, moving)
    return filtered(r.TopK(below, inner.partition, inner.order, inner.limit, inner.offset), rest)


# --- joins


def _sides(join: r.Join) -> tuple[set[int], set[int]]:
    width = len(join.left.schema)
    return set(range(width)), set(range(width, width + len(join.right.schema)))


def _filter_join(join: r.Join, parts: Parts) -> r.Relation:
    join = _without_outer(join, parts)
    left, right = _sides(join)
    rest = parts
    to_left: Parts = []
    to_right: Parts = []
    if join.kind in (r.JoinKind.INNER, r.JoinKind.LEFT, r.JoinKind.SEMI, r.JoinKind.ANTI):
        to_left, rest = _split(rest, left)
    if join.kind in (r.JoinKind.INNER, r.JoinKind.RIGHT):
        to_right, rest = _split(rest, right)
    on = join.on
    if join.kind is r.JoinKind.INNER and rest:
        # Asked of the pairs that match, as the filter was.
        on, rest = s.conjunction([*s.conjuncts(on), *rest]), []
    width = len(join.left.schema)
    moved = [onto(part, join.right.schema, lambda at: at - width) for part in to_right]
    low = [onto(part, join.left.schema, lambda at: at) for part in to_left]
    below = _below(join.left, low), _below(join.right, moved)
    return filtered(_push_condition(r.Join(join.kind, *below, join.keys, on)), rest)


_NULL_SIDES = {
    r.JoinKind.LEFT: (r.JoinKind.INNER, False, True),
    r.JoinKind.RIGHT: (r.JoinKind.INNER, True, False),
}


def _without_outer(join: r.Join, parts: Parts) -> r.Join:
    """An outer join whose rows without a partner the filter drops anyway, as an inner one."""
    found = _NULL_SIDES.get(join.kind)
    if found is None:
        return join
    left, right = _sides(join)
    missing = (left if found[1] else set()) | (right if found[2] else set())
    if any(_refuses_null(part, missing) for part in parts):
        return r.Join(found[0], join.left, join.right, join.keys, join.on)
    return join


def _refuses_null(part: s.Scalar, missing: set[int]) -> bool:
    """Whether the part is not TRUE when these columns are NULL."""
    if isinstance(part, s.Or):
        return all(_refuses_null(each, missing) for each in part.parts)
    if isinstance(part, s.And):
        return any(_refuses_null(each, missing) for each in part.parts)
    return _is_null(part, missing) or part == s.FALSE or _asks_for_value(part, missing)


def _asks_for_value(part: s.Scalar, missing: set[int]) -> bool:
    """IS NOT NULL, IS TRUE, IS FALSE of what is NULL."""
    match part:
        case s.Is(operand=inner, value=bool()):
            return _is_null(inner, missing)
        case s.Not(operand=s.Is(operand=inner, value=None)):
            return _is_null(inner, missing)
    return False


def _is_null(scalar: s.Scalar, missing: set[int]) -> bool:
    """Whether the scalar is surely NULL when these columns are."""
    match scalar:
        case s.ColumnRef(index=at):
            return at in missing
        case s.Call(arguments=arguments):
            return scalar.entry.strict and any(_is_null(each, missing) for each in arguments)
        case s.Cast(operand=inner) | s.Not(operand=inner) | s.FieldRef(record=inner):
            return _is_null(inner, missing)
        case s.Compare(left=a, right=b):
            return _is_null(a, missing) or _is_null(b, missing)
        case s.InList(operand=inner):
            return _is_null(inner, missing)
    return False


def _push_condition(join: r.Join) -> r.Relation:
    """Parts of a join's own condition, to the side that they speak of."""
    if join.on == s.TRUE:
        return join
    left, right = _sides(join)
    rest = list(s.conjuncts(join.on))
    to_left: Parts = []
    to_right: Parts = []
    if join.kind in (r.JoinKind.INNER, r.JoinKind.RIGHT, r.JoinKind.SEMI):
        to_left, rest = _split(rest, left)
    if join.kind in (r.JoinKind.INNER, r.JoinKind.LEFT, r.JoinKind.SEMI, r.JoinKind.ANTI):
        to_right, rest = _split(rest, right)
    # A part without columns (a literal) stays: it says whether there are pairs at all.
    constant = [part for part in (*to_left, *to_right) if not s.columns_of(part)]
    to_left = [part for part in to_left if part not in constant]
    to_right = [part for part in to_right if part not in constant]
    if not to_left and not to_right:
        return join
    width = len(join.left.schema)
    moved = [onto(part, join.right.schema, lambda at: at - width) for part in to_right]
    below = _below(join.left, to_left), _below(join.right, moved)
    return r.Join(join.kind, *below, join.keys, s.conjunction([*rest, *constant]))


_BELOW: dict[type[r.Relation], Callable[[Any, Parts], r.Relation]] = {
    r.Project: _project,
    r.Distinct: _distinct,
    r.Union: _union,
    r.Let: _let,
    r.FlatMap: _flat_map,
    r.Aggregate: _aggregate,
    r.Window: _window,
    r.TopK: _top_k,
    r.Join: _filter_join,
}

push_filter = bottom_up(_push)
