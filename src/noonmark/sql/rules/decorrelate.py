"""Decorrelate: a lateral join whose right side asks for the left row becomes joins.

For Apply(kind, L, R), where R refers to columns of L, in this order:

1. R refers to nothing of L: it is a join.
2. R is a table function of columns of L: it is a FlatMap of L.
3. R refers to L only in conditions that can be pulled up to its top (`pull`): they are the
   condition of a join. This is EXISTS, IN, and most lateral subqueries.
4. R is an aggregate without keys over such a relation, tied by equalities ``inner = outer``: it is
   grouped by the inner sides, and L is left-joined to the groups. A group that does not exist gives
   what the aggregate gives over no rows (`count`: 0). This is the scalar subquery.
5. Otherwise (`domain`): D is the distinct values of L's columns that R uses; R is computed for all
   of D at once, with the columns of D carried through every operator, and joined back to L.

Law: for every l in L the rows beside it are those of R with the columns of l. In 5 that is the law
of each operator restricted to one value of D: groups, partitions and joins are by D as well.
"""

from __future__ import annotations

from noonmark.errors import Unsupported
from noonmark.sql.functions.number.fit import fit
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.rules.domain import by_domain
from noonmark.sql.rules.outer import free, lift, outer_columns
from noonmark.sql.rules.pull import pull
from noonmark.sql.rules.rewrite import bottom_up, columns, filtered, onto, select


def _decorrelate(relation: r.Relation) -> r.Relation:
    if not isinstance(relation, r.Apply):
        return relation
    for way in (_independent, _function, _pulled, _grouped, _by_domain):
        found = way(relation)
        if found is not None:
            same = [c.type for c in found.schema] == [c.type for c in relation.schema]
            assert same, f"{way.__name__} changed the columns"
            return select(found, range(len(relation.schema)), relation.schema.names)
    raise Unsupported("this correlated subquery is not supported")


def _independent(apply: r.Apply) -> r.Relation | None:
    if not free(apply.right, apply.scope):
        return None
    return r.Join(apply.kind, apply.left, apply.right, on=apply.on)


def _function(apply: r.Apply) -> r.Relation | None:
    right = apply.right
    if not isinstance(right, r.FlatMap) or right.input != r.ONE_ROW:
        return None
    if apply.kind is not r.JoinKind.INNER:
        return None
    call = lift(right.call, apply.scope, columns(apply.left.schema), [])
    return filtered(r.FlatMap(apply.left, call, right.names), list(s.conjuncts(apply.on)))


def _pulled(apply: r.Apply) -> r.Relation | None:
    found = pull(apply.right, apply.scope)
    if found is None:
        return None
    width = len(apply.left.schema)
    pairs = r.Join(r.JoinKind.INNER, apply.left, found.relation)
    row = columns(pairs.schema)
    parts = [lift(each, apply.scope, row[:width], row[width:]) for each in found.conditions]
    place = [*range(width), *(at + width for at in found.places)]
    on = [onto(part, pairs.schema, place.__getitem__) for part in s.conjuncts(apply.on)]
    join = r.Join(apply.kind, apply.left, found.relation, on=s.conjunction([*parts, *on]))
    if apply.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI):
        return join
    return select(join, place, apply.schema.names)


def _grouped(apply: r.Apply) -> r.Relation | None:
    right = apply.right
    if apply.kind is not r.JoinKind.INNER:
        return None
    if isinstance(right, r.Project):
        return _projected(apply, right)
    if not isinstance(right, r.Aggregate) or right.keys:
        return None
    found = pull(right.input, apply.scope)
    if found is None or not all(free(call, apply.scope) for call in right.aggregates):
        return None
    ties = [_tie(each, apply) for each in found.conditions]
    if any(tie is None for tie in ties):
        return None
    keys = [tie for tie in ties if tie is not None]
    source = found.relation
    calls = tuple(_over(call, source, found.places) for call in right.aggregates)
    if any(_fails(call) for call in calls):
        # Only the groups that are asked for may fail.
        back = tuple(r.JoinKey(key.right, key.left, key.null_equal) for key in keys)
        source = r.Join(r.JoinKind.SEMI, source, apply.left, back)
    names = r.distinct_names([*(f"key_{at}" for at in range(len(keys))), *right.names])
    grouped = r.Aggregate(source, tuple(key.right for key in keys), calls, tuple(names))
    to_group = tuple(
        r.JoinKey(key.left, column, key.null_equal)
        for key, column in zip(keys, columns(grouped.schema), strict=False)
    )
    join = r.Join(r.JoinKind.LEFT, apply.left, grouped, to_group)
    return _with_defaults(apply, join, calls, len(keys))


def _with_defaults(
    apply: r.Apply, join: r.Join, calls: tuple[AggregateCall, ...], keys: int
) -> r.Relation:
    """The left row and the aggregates, with their value over no rows where there is no group."""
    width = len(apply.left.schema)
    row = columns(join.schema)
    made: list[s.Scalar] = []
    for at, call in enumerate(calls):
        types = tuple(each.type for each in call.arguments)
        empty = fit(call.entry.meaning(types, []), call.type)
        value = row[width + keys + at]
        made.append(value if empty is None else s.Coalesce((value, s.Literal(call.type, empty))))
    project = r.Project(join, (*row[:width], *made), apply.schema.names)
    return filtered(project, list(s.conjuncts(apply.on)))


def _projected(apply: r.Apply, right: r.Project) -> r.Relation | None:
    """A projection above the aggregate is one above the join."""
    inner = _decorrelate(r.Apply(apply.kind, apply.left, right.input, apply.scope))
    width = len(apply.left.schema)
    row = columns(inner.schema)
    scalars = [lift(each, apply.scope, row[:width], row[width:]) for each in right.scalars]
    project = r.Project(inner, (*row[:width], *scalars), apply.schema.names)
    return filtered(project, list(s.conjuncts(apply.on)))


def _tie(condition: s.Scalar, apply: r.Apply) -> r.JoinKey | None:
    """``inner = outer`` as a key: its left over the row outside, its right over the one inside."""
    match condition:
        case s.Compare(op="=", left=a, right=b):
            null_equal = False
        case s.Not(operand=s.IsDistinct(left=a, right=b)):
            null_equal = True
        case _:
            return None
    for inner, outer in ((a, b), (b, a)):
        inside = free(inner, apply.scope) and s.columns_of(inner)
        outside = outer_columns(outer, apply.scope) and not s.columns_of(outer)
        if inside and outside and not s.may_fail(outer):
            lifted = lift(outer, apply.scope, columns(apply.left.schema), [])
            return r.JoinKey(lifted, inner, null_equal)
    return None


def _over(call: AggregateCall, source: r.Relation, places: list[int]) -> AggregateCall:
    moved = lift(call, -1, [], [columns(source.schema)[at] for at in places])
    assert isinstance(moved, AggregateCall)
    return moved


def _fails(call: AggregateCall) -> bool:
    types = tuple(each.type for each in call.arguments)
    return call.entry.fails(types) or s.may_fail(call)


def _by_domain(apply: r.Apply) -> r.Relation | None:
    return by_domain(apply)


decorrelate = bottom_up(_decorrelate)
