"""The domain method: a correlated relation computed for all rows outside at once.

`_spread(R)` is R for every value d of the domain D: its rows are d followed by the rows of R with
the outer references replaced by d. It is defined operator by operator; the columns of D come first
everywhere, and every operator that looks at more than one row does so by D.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from noonmark.errors import Unsupported
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.node import Node
from noonmark.sql.rules.inline import replace_get
from noonmark.sql.rules.outer import free, lift, outer_columns
from noonmark.sql.rules.rewrite import columns, select


@dataclass(frozen=True)
class _Domain:
    """The distinct values of the columns outside that are used, and where they stand."""

    relation: r.Relation
    scope: int
    places: dict[int, int]
    done: dict[int, tuple[r.Relation, r.Relation]] = field(default_factory=dict)  # what is shared
    bound: dict[str, r.Get] = field(default_factory=dict)  # names of recursions that are spread

    @property
    def width(self) -> int:
        return len(self.places)

    def lift(self, part: Any, source: r.Relation, skip: int = 0) -> Any:
        """A part over a relation as one over the same relation spread out."""
        row = columns(source.schema)
        outside = {at: row[place] for at, place in self.places.items()}
        filled = [outside.get(at, s.TRUE) for at in range(max(outside) + 1)]
        return lift(part, self.scope, filled, row[self.width + skip :])

    def keys(self, left: r.Relation, right: r.Relation) -> tuple[r.JoinKey, ...]:
        """Both sides belong to the same value of the domain."""
        a, b = columns(left.schema), columns(right.schema)
        return tuple(
            r.JoinKey(a[at], b[at], a[at].nullable or b[at].nullable) for at in range(self.width)
        )


def by_domain(apply: r.Apply) -> r.Relation:
    """The lateral join through the domain of what its right side uses."""
    used = sorted(outer_columns(apply.right, apply.scope))
    names = [apply.left.schema.names[at] for at in used]
    outside = r.Distinct(select(apply.left, used, names))
    domain = _Domain(outside, apply.scope, {at: n for n, at in enumerate(used)})
    spread = _spread(apply.right, domain)
    width, count = len(apply.left.schema), domain.width
    left, right = columns(apply.left.schema), columns(spread.schema)
    keys = tuple(r.JoinKey(left[at], right[n], left[at].nullable) for n, at in enumerate(used))
    pairs = columns(r.Join(r.JoinKind.INNER, apply.left, spread).schema)
    seen = [*pairs[:width], *pairs[width + count :]]
    join = r.Join(apply.kind, apply.left, spread, keys, lift(apply.on, -1, [], seen))
    if apply.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI):
        return join
    kept = [*range(width), *range(width + count, len(join.schema))]
    return select(join, kept, apply.schema.names)


def _spread(relation: r.Relation, domain: _Domain) -> r.Relation:
    if id(relation) not in domain.done:
        domain.done[id(relation)] = (relation, _spread_anew(relation, domain))
    return domain.done[id(relation)][1]


def _spread_anew(relation: r.Relation, domain: _Domain) -> r.Relation:
    if isinstance(relation, r.Get) and relation.name in domain.bound:
        return domain.bound[relation.name]
    recurs = any(get.name in domain.bound for get in r.gets(relation))
    if not recurs and free(relation, domain.scope):
        return r.Join(r.JoinKind.INNER, domain.relation, relation)
    act = _SPREAD.get(type(relation))
    if act is None:
        raise Unsupported(f"a correlated {type(relation).__name__} is not supported")
    return act(relation, domain)


def _names(relation: r.Relation, domain: _Domain, *own: str) -> tuple[str, ...]:
    outside = relation.schema.names[: domain.width]
    return tuple(r.distinct_names([*outside, *own]))


def _filter(relation: r.Filter, domain: _Domain) -> r.Relation:
    source = _spread(relation.input, domain)
    return r.Filter(source, domain.lift(relation.predicate, source))


def _project(relation: r.Project, domain: _Domain) -> r.Relation:
    source = _spread(relation.input, domain)
    outside = columns(source.schema)[: domain.width]
    scalars = [domain.lift(each, source) for each in relation.scalars]
    return r.Project(source, (*outside, *scalars), _names(source, domain, *relation.names))


def _join(relation: r.Join, domain: _Domain) -> r.Relation:
    if relation.kind is r.JoinKind.RIGHT:
        return _mirrored(relation, domain)
    if relation.kind is r.JoinKind.FULL:
        raise Unsupported("a correlated subquery with a FULL JOIN is not supported")
    left, right = _spread(relation.left, domain), _spread(relation.right, domain)
    own = tuple(
        r.JoinKey(domain.lift(k.left, left), domain.lift(k.right, right), k.null_equal)
        for k in relation.keys
    )
    pairs = r.Join(r.JoinKind.INNER, left, right)
    row, width, split = columns(pairs.schema), domain.width, len(left.schema)
    seen = [*row[width:split], *row[split + width :]]
    outside = {at: row[place] for at, place in domain.places.items()}
    filled = [outside.get(at, s.TRUE) for at in range(max(outside) + 1)]
    on = lift(relation.on, domain.scope, filled, seen)
    join = r.Join(relation.kind, left, right, (*domain.keys(left, right), *own), on)
    if relation.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI):
        return join
    kept = [*range(split), *range(split + width, len(join.schema))]
    return select(join, kept, [join.schema.names[at] for at in kept])


def _mirrored(relation: r.Join, domain: _Domain) -> r.Relation:
    """A right join as a left one, its columns put back in order."""
    left, right = len(relation.left.schema), len(relation.right.schema)
    keys = tuple(r.JoinKey(k.right, k.left, k.null_equal) for k in relation.keys)
    turned = r.Join(r.JoinKind.INNER, relation.right, relation.left)
    row = columns(turned.schema)
    on = lift(relation.on, -1, [], [*row[right:], *row[:right]])
    join = r.Join(r.JoinKind.LEFT, relation.right, relation.left, keys, on)
    order = [*range(right, right + left), *range(right)]
    return _spread(select(join, order, relation.schema.names), domain)


def _aggregate(relation: r.Aggregate, domain: _Domain) -> r.Relation:
    source = _spread(relation.input, domain)
    if not relation.keys:
        return _total(relation, source, domain)
    outside = columns(source.schema)[: domain.width]
    keys = [domain.lift(each, source) for each in relation.keys]
    calls = tuple(domain.lift(each, source) for each in relation.aggregates)
    names = _names(source, domain, *relation.names)
    return r.Aggregate(source, (*outside, *keys), calls, names)


def _total(relation: r.Aggregate, source: r.Relation, domain: _Domain) -> r.Relation:
    """One group for every value of the domain, also where there are no rows.

    The domain is left-joined to the rows, and the aggregates do not see the rows of NULLs.
    """
    marked = r.Project(
        source,
        (*columns(source.schema), s.TRUE),
        tuple(r.distinct_names([*source.schema.names, "present"])),
    )
    join = r.Join(r.JoinKind.LEFT, domain.relation, marked, domain.keys(domain.relation, marked))
    row = columns(join.schema)
    present = s.Not(s.Is(row[-1], None))
    calls = []
    for call in relation.aggregates:
        moved = domain.lift(call, join, skip=domain.width)
        assert isinstance(moved, AggregateCall)
        test = present if moved.filter is None else s.And((present, moved.filter))
        calls.append(
            AggregateCall(moved.function, moved.arguments, moved.distinct, test, moved.order)
        )
    names = _names(join, domain, *relation.names)
    return r.Aggregate(join, tuple(row[: domain.width]), tuple(calls), names)


def _distinct(relation: r.Distinct, domain: _Domain) -> r.Relation:
    return r.Distinct(_spread(relation.input, domain))


def _same_names(relations: list[r.Relation]) -> tuple[r.Relation, ...]:
    names = relations[0].schema.names
    return tuple(select(each, range(len(names)), names) for each in relations)


def _union(relation: r.Union, domain: _Domain) -> r.Relation:
    return r.Union(_same_names([_spread(each, domain) for each in relation.inputs]))


def _intersect(relation: r.Intersect, domain: _Domain) -> r.Relation:
    left, right = _same_names([_spread(x, domain) for x in (relation.left, relation.right)])
    return r.Intersect(left, right, relation.all)


def _except(relation: r.Except, domain: _Domain) -> r.Relation:
    left, right = _same_names([_spread(x, domain) for x in (relation.left, relation.right)])
    return r.Except(left, right, relation.all)


def _top_k(relation: r.TopK, domain: _Domain) -> r.Relation:
    source = _spread(relation.input, domain)
    outside = columns(source.schema)[: domain.width]
    partition = tuple(domain.lift(each, source) for each in relation.partition)
    order = tuple(domain.lift(each, source) for each in relation.order)
    return r.TopK(source, (*outside, *partition), order, relation.limit, relation.offset)


def _window(relation: r.Window, domain: _Domain) -> r.Relation:
    source = _spread(relation.input, domain)
    outside = columns(source.schema)[: domain.width]
    partition = tuple(domain.lift(each, source) for each in relation.partition)
    order = tuple(domain.lift(each, source) for each in relation.order)
    calls = tuple(domain.lift(each, source) for each in relation.calls)
    return r.Window(source, (*outside, *partition), order, calls, relation.names)


def _flat_map(relation: r.FlatMap, domain: _Domain) -> r.Relation:
    source = _spread(relation.input, domain)
    return r.FlatMap(source, domain.lift(relation.call, source), relation.names)


def _let(relation: r.Let, domain: _Domain) -> r.Relation:
    if free(relation.value, domain.scope):
        return r.Let(relation.name, relation.value, _spread(relation.body, domain))
    return _spread(replace_get(relation.body, relation.name, relation.value), domain)


def _recursive(relation: r.Recursive, domain: _Domain) -> r.Relation:
    """Every name is kept for every value of the domain: the values go on side by side."""
    parts = (*relation.values, relation.body)
    known = {get.name: get.columns for part in parts for get in r.gets(part)}
    names: list[str] = []
    for name in relation.names:
        columns_ = [*domain.relation.schema.columns, *known.get(name, Schema(()))]
        shown = r.distinct_names([column.name for column in columns_])
        schema = Schema(
            tuple(Column(n, column.type) for n, column in zip(shown, columns_, strict=True))
        )
        names.append(f"{name}/{domain.scope}")
        domain.bound[name] = r.Get(names[-1], schema)
    values = tuple(_spread(each, domain) for each in relation.values)
    body = _spread(relation.body, domain)
    return replace(relation, names=tuple(names), values=values, body=body)


_SPREAD: dict[type[Node], Callable[[Any, _Domain], r.Relation]] = {
    r.Filter: _filter,
    r.Project: _project,
    r.Join: _join,
    r.Aggregate: _aggregate,
    r.Distinct: _distinct,
    r.Union: _union,
    r.Intersect: _intersect,
    r.Except: _except,
    r.TopK: _top_k,
    r.Window: _window,
    r.FlatMap: _flat_map,
    r.Let: _let,
    r.Recursive: _recursive,
}
