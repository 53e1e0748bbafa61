"""Prune: columns that nothing above uses are not carried.

`_Pruning.narrow` gives, for a relation and the columns that are needed of it, a relation that has
at least those, in their order, and says where each stands. Rows keep their counts: only Distinct,
the set operations, windows and TopK without all of their columns would change them, or the order of
ties, so they need all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.asked import is_volatile
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.rules.rewrite import onto, select

Places = dict[int, int]
Narrowed = tuple[r.Relation, Places]


def prune(relation: r.Relation) -> r.Relation:
    """The plan without columns that it does not use; its own columns stay."""
    return _Pruning().all(relation)


class _Pruning:
    """One run of the rule; what is shared, and needed alike, is pruned once."""

    def __init__(self) -> None:
        self.done: dict[tuple[int, frozenset[int]], tuple[r.Relation, Narrowed]] = {}

    def all(self, relation: r.Relation) -> r.Relation:
        """The relation with all of its columns."""
        needed = set(range(len(relation.schema)))
        narrowed, places = self.narrow(relation, needed)
        return select(narrowed, [places[at] for at in sorted(needed)], relation.schema.names)

    def narrow_join(self, relation: r.Relation, needed: set[int]) -> Narrowed:
        """As `narrow`; of a join, without the columns that only its own conditions need.

        An inner join above would be joined with it as one. Any other takes it as it is.
        """
        narrowed, places = self.narrow(relation, needed)
        if not isinstance(narrowed, r.Join) or not needed or len(narrowed.schema) == len(needed):
            return narrowed, places
        kept = sorted(needed)
        names = [narrowed.schema.names[places[at]] for at in kept]
        made = select(narrowed, [places[at] for at in kept], names)
        return made, {at: number for number, at in enumerate(kept)}

    def narrow(self, relation: r.Relation, needed: set[int]) -> Narrowed:
        """The relation with the needed columns at least, and where they stand."""
        key = (id(relation), frozenset(needed))
        if key not in self.done:
            act = _NARROW.get(type(relation), _keep)
            self.done[key] = (relation, act(relation, needed, self))
        return self.done[key][1]


def _keep(relation: r.Relation, _: set[int], run: _Pruning) -> Narrowed:
    """All columns of the relation, its inputs pruned for what it uses of them: all."""

    def act(node: Any) -> Node:
        if isinstance(node, r.Relation):
            return run.all(node)
        return node if isinstance(node, s.Scalar) else rebuild(node, act)

    return rebuild(relation, act), {at: at for at in range(len(relation.schema))}


def _used(parts: Iterable[Node]) -> set[int]:
    return {at for part in parts for at in s.columns_of(part)}


def _moved(part: Any, source: r.Relation, places: Places) -> Any:
    """A scalar, or a part that holds scalars, over the narrowed input."""

    def act(node: Any) -> Any:
        if isinstance(node, s.Scalar):
            return onto(node, source.schema, places.__getitem__)
        return rebuild(node, act)

    return act(part)


def _at_least_one(relation: r.Relation, needed: set[int]) -> list[int]:
    """The columns to keep: engines count rows by a column."""
    return sorted(needed) or list(range(len(relation.schema)))[:1]


def _scan(relation: r.Relation, needed: set[int], _: _Pruning) -> Narrowed:
    kept = _at_least_one(relation, needed)
    names = [relation.schema.names[at] for at in kept]
    return select(relation, kept, names), {at: n for n, at in enumerate(kept)}


def _filter(relation: r.Filter, needed: set[int], run: _Pruning) -> Narrowed:
    source, places = run.narrow(relation.input, needed | s.columns_of(relation.predicate))
    return r.Filter(source, _moved(relation.predicate, source, places)), places


def _project(relation: r.Project, needed: set[int], run: _Pruning) -> Narrowed:
    # What is different every time is asked for, whoever looks at it: nextval does something.
    asked = {at for at, each in enumerate(relation.scalars) if is_volatile(each)}
    kept = _at_least_one(relation, needed | asked)
    source, places = run.narrow(relation.input, _used(relation.scalars[at] for at in kept))
    scalars = tuple(_moved(relation.scalars[at], source, places) for at in kept)
    names = tuple(relation.names[at] for at in kept)
    return r.Project(source, scalars, names), {at: n for n, at in enumerate(kept)}


def _join(relation: r.Join, needed: set[int], run: _Pruning) -> Narrowed:
    width = len(relation.left.schema)
    wanted = needed | s.columns_of(relation.on)
    lefts = {at for at in wanted if at < width} | _used(key.left for key in relation.keys)
    rights = {at - width for at in wanted if at >= width}
    rights |= _used(key.right for key in relation.keys)
    inner = relation.kind is r.JoinKind.INNER
    side = run.narrow if inner else run.narrow_join
    (left, of_left), (right, of_right) = side(relation.left, lefts), side(relation.right, rights)
    keys = tuple(
        r.JoinKey(
            _moved(key.left, left, of_left), _moved(key.right, right, of_right), key.null_equal
        )
        for key in relation.keys
    )
    shift = len(left.schema)
    places = {**of_left, **{at + width: n + shift for at, n in of_right.items()}}
    pairs = r.Join(r.JoinKind.INNER, left, right)
    on = _moved(relation.on, pairs, places)
    return r.Join(relation.kind, left, right, keys, on), places


def _aggregate(relation: r.Aggregate, needed: set[int], run: _Pruning) -> Narrowed:
    count = len(relation.keys)
    kept = [at for at in range(len(relation.aggregates)) if at + count in needed]
    calls = [relation.aggregates[at] for at in kept]
    source, places = run.narrow(relation.input, _used((*relation.keys, *calls)))
    names = (*relation.names[:count], *(relation.names[at + count] for at in kept))
    narrowed = r.Aggregate(
        source,
        tuple(_moved(key, source, places) for key in relation.keys),
        tuple(_moved(call, source, places) for call in calls),
        names,
    )
    after = {at + count: count + n for n, at in enumerate(kept)}
    return narrowed, {**{at: at for at in range(count)}, **after}


def _flat_map(relation: r.FlatMap, needed: set[int], run: _Pruning) -> Narrowed:
    width = len(relation.input.schema)
    wanted = {at for at in needed if at < width} | _used([relation.call])
    source, places = run.narrow(relation.input, wanted)
    made = range(len(relation.names))
    narrowed = r.FlatMap(source, _moved(relation.call, source, places), relation.names)
    return narrowed, {**places, **{width + n: len(source.schema) + n for n in made}}


def _union(relation: r.Union, needed: set[int], run: _Pruning) -> Narrowed:
    kept = _at_least_one(relation, needed)
    inputs = []
    for each in relation.inputs:
        source, places = run.narrow(each, set(kept))
        names = [relation.schema.names[at] for at in kept]
        inputs.append(select(source, [places[at] for at in kept], names))
    return r.Union(tuple(inputs)), {at: n for n, at in enumerate(kept)}


def _let(relation: r.Let, needed: set[int], run: _Pruning) -> Narrowed:
    body, places = run.narrow(relation.body, needed)
    return r.Let(relation.name, run.all(relation.value), body), places


_NARROW: dict[type[r.Relation], Callable[[Any, set[int], _Pruning], Narrowed]] = {
    r.Scan: _scan,
    r.Get: _scan,
    r.Filter: _filter,
    r.Project: _project,
    r.Join: _join,
    r.Aggregate: _aggregate,
    r.FlatMap: _flat_map,
    r.Union: _union,
    r.Let: _let,
}
