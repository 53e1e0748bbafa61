"""Hypothetical sets: where a row would stand in a group if it were there.

``rank(h) WITHIN GROUP (ORDER BY e)`` asks that of a row whose e is h. Law, over the rows of the
group, where "before" goes by the order that is written, with its directions and its place of NULL:

    rank          1 + how many are before h
    dense_rank    1 + how many different ones are before h
    percent_rank  how many are before h, of all; 0 of none
    cume_dist     1 + how many are before h or equal to it, of 1 + all

So each follows from counts, which a view keeps up to date by what changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from noonmark.errors import GroupingError, InvalidSyntax, UndefinedFunction
from noonmark.rows import types as t
from noonmark.sql.coerce import common_type_of
from noonmark.sql.dialect import position_of
from noonmark.sql.ir.call import AggregateCall, SortKey
from noonmark.sql.ir.node import walk
from noonmark.sql.ir.scalar import (
    And,
    Case,
    Cast,
    ColumnRef,
    Compare,
    Is,
    IsDistinct,
    Literal,
    Not,
    Or,
    Scalar,
    When,
)
from noonmark.sql.plan.form import record
from noonmark.sql.plan.row import Row, unsupported
from noonmark.sql.plan.scalar import as_kind_of, call, plan

_BIG, _DOUBLE, _BOOL = t.BigInt(), t.Double(), t.Boolean()


@dataclass(frozen=True)
class Hypothetical:
    """The counts that a call needs, and what it is, given their columns."""

    calls: tuple[AggregateCall, ...]
    result: Callable[[Sequence[Scalar]], Scalar]


def plan_hypothetical(
    name: str,
    tree: exp.Expr,
    within: exp.WithinGroup,
    test: Scalar | None,
    *,
    row: Row,
    keys: Sequence[Scalar],
) -> Hypothetical:
    """The counts of a call; `test` is its FILTER, `keys` are those of the group."""
    direct, order = within.this.expressions, within.expression.expressions
    if any(isinstance(each, exp.Distinct) for each in direct):
        message = "cannot use DISTINCT with WITHIN GROUP"
        raise InvalidSyntax(message, position=position_of(tree))
    if any(isinstance(each, exp.Order | exp.Star) for each in direct):
        raise unsupported(f"{type(direct[-1]).__name__} in the arguments of {name}", tree)
    if len(direct) != len(order):
        given = [plan(each, row) for each in direct]
        raise _unlike(name, given, [plan(each.this, row) for each in order], tree)
    columns: list[Scalar] = []
    before: Scalar = Literal(_BOOL, False)
    equal: list[Scalar] = []
    for wanted, ordered in reversed(list(zip(direct, order, strict=True))):
        pair = [plan(wanted, row), plan(ordered.this, row)]
        target = common_type_of(pair, "WITHIN GROUP", position_of(tree))
        _check_direct(wanted, pair[0], keys, tree)
        mine, each = (as_kind_of(x, target, position_of(tree)) for x in pair)
        key = SortKey(each, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))
        same = Not(IsDistinct(each, mine))
        before = Or((_before(key, mine), And((same, before))))
        columns.insert(0, each)
        equal.append(same)
    return _made(name, before, And(tuple(equal)), columns, test=test, tree=tree)


def _made(
    name: str,
    before: Scalar,
    equal: Scalar,
    columns: list[Scalar],
    *,
    test: Scalar | None,
    tree: exp.Expr,
) -> Hypothetical:
    one = Literal(_BIG, 1)

    def plus_one(count: Scalar) -> Scalar:
        return call("+", [count, one], tree, operator=True)

    def share(part: Scalar, whole: Scalar) -> Scalar:
        return call("/", [Cast(_DOUBLE, part), Cast(_DOUBLE, whole)], tree, operator=True)

    def of_all(counts: Sequence[Scalar]) -> Scalar:
        empty = Compare("=", counts[1], Literal(_BIG, 0))
        return Case((When(empty, Literal(_DOUBLE, 0.0)),), share(counts[0], counts[1]))

    if name == "dense_rank":
        different = AggregateCall("count(any)", (record(columns),), True, _both(test, before), ())
        return Hypothetical((different,), lambda counts: plus_one(counts[0]))
    reached = Or((before, equal)) if name == "cume_dist" else before
    counts = (_count(_both(test, reached)), _count(test))
    if name == "rank":
        return Hypothetical(counts[:1], lambda found: plus_one(found[0]))
    if name == "percent_rank":
        return Hypothetical(counts, of_all)
    return Hypothetical(counts, lambda found: share(plus_one(found[0]), plus_one(found[1])))


def _count(test: Scalar | None) -> AggregateCall:
    return AggregateCall("count()", (), False, test, ())


def _both(test: Scalar | None, other: Scalar) -> Scalar:
    return other if test is None else And((test, other))


def _before(key: SortKey, mine: Scalar) -> Scalar:
    """Whether a row stands before the one that is thought of, by one key of the order."""
    each = key.scalar
    compared = Compare(">" if key.descending else "<", each, mine)
    first, known = Literal(_BOOL, key.nulls_first), Not(Is(mine, None))
    is_null = When(Is(each, None), And((first, known)))
    return Case((is_null, When(Is(mine, None), Literal(_BOOL, not key.nulls_first))), compared)


def _check_direct(
    written: exp.Expr, wanted: Scalar, keys: Sequence[Scalar], tree: exp.Expr
) -> None:
    """A direct argument is one of the whole group."""
    if wanted in keys:
        return
    if written.find(exp.Query):
        raise unsupported("a subquery in the direct argument of an aggregate", tree)
    if any(isinstance(node, ColumnRef) and node not in keys for node in walk(wanted)):
        raise GroupingError(
            "a direct argument of an ordered-set aggregate must use only grouped columns",
            position=position_of(tree),
        )


def _unlike(
    name: str, direct: Sequence[Scalar], order: Sequence[Scalar], tree: exp.Expr
) -> UndefinedFunction:
    kinds, count = [*direct, *order], len(direct)
    return UndefinedFunction(
        f"function {name}({', '.join(str(each.type) for each in kinds)}) does not exist",
        hint=f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct "
        f"arguments (here {count}) must match the number of ordering columns "
        f"(here {len(order)}).",
        position=position_of(tree),
    )
