"""Which relations can be asked by key, and what has to be kept for those that cannot.

To ask a relation by key is to compute its rows with some values of the key, from what its inputs
hold for these values: ``op(R) where key = k`` is ``op(R where key' = k)`` for every operator whose
rows with that key come from input rows with a key of their own. Nothing has to be stored for that.

What has to be stored: the accumulators of linear aggregates, because a group may have very many
rows; and a relation that is asked for as a whole and is more than what filters and projections
make of a collection.

Law: ``usable(r, k)`` says that r can be asked by the scalar k over its rows. It is a function of
the plan alone, so every process finds the same arrangements.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from noonmark.compute.kernel.accumulator import is_linear
from noonmark.compute.plan.keys import is_keyed, keyed_inputs, reads_of
from noonmark.compute.plan.memo import once
from noonmark.compute.plan.multiway import (
    Equality,
    Keys,
    MultiwayJoin,
    multiway_at,
    multiway_of,
    path,
)
from noonmark.rows.exact import is_exact
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import (
    ColumnRef,
    Scalar,
    column,
    columns_of,
    map_columns,
    may_fail,
    shift,
)

_FROM_LEFT = (r.JoinKind.SEMI, r.JoinKind.ANTI, r.JoinKind.LEFT)


@once
def usable(node: r.Relation, key: Scalar) -> bool:
    """Whether the rows of a relation with given values of the scalar can be asked for."""
    return is_exact(key.type) and not may_fail(key) and _usable(node, key)


def _usable(node: r.Relation, key: Scalar) -> bool:
    match node:
        case r.Scan() | r.Constant():
            return bool(columns_of(key))
        case r.Filter() | r.Distinct():
            return usable(node.input, key)
        case r.Project():
            return usable(node.input, under(node.scalars, key))
        case r.Union():
            return all(usable(each, key) for each in node.inputs)
        case r.Intersect() | r.Except():
            return usable(node.left, key) and usable(node.right, key)
        case r.FlatMap():
            return _within(key, node.input) and usable(node.input, key)
        case r.TopK() | r.Window():
            return key in node.partition and usable(node.input, key)
        case r.Aggregate():
            if not isinstance(key, ColumnRef) or key.index >= len(node.keys):
                return False
            return is_linear(node) or usable(node.input, node.keys[key.index])
        case r.Join(kind=r.JoinKind.INNER):
            return key_leaf(multiway_of(node), key) is not None
        case r.Join() if node.kind in _FROM_LEFT:
            inside = _within(key, node.left) and usable(node.left, key)
            return inside and any(usable(node.right, each.right) for each in node.keys)
    return False


@once
def key_leaf(group: MultiwayJoin, key: Scalar) -> tuple[int, Scalar] | None:
    """The leaf of a group that can be asked by a key of its outputs, and that key over the leaf."""
    over = under(group.outputs, key)
    leaf = group.leaf_of(over)
    if leaf is None:
        return None
    own = shift(over, -group.starts[leaf])
    return (leaf, own) if usable(group.leaves[leaf], own) else None


def asked_by(group: MultiwayJoin, key: tuple[Scalar, ...]) -> MultiwayJoin:
    """The group with one leaf more: the values of a key of its outputs, each equal to its own.

    To ask a group by key is to walk it from that leaf. Every part of the key narrows every leaf
    that it reaches, also by way of others, as soon as it is looked into.
    """
    if key not in group.asked:
        columns = Schema(tuple(Column(f"k{at}", part.type) for at, part in enumerate(key)))
        place = len(group.leaves)
        equal = []
        for at, part in enumerate(key):
            end = key_leaf(group, part)
            assert end is not None, "a group is asked by what one of its leaves is asked by"
            equal.append(Equality((place, column(at, columns.columns[at])), end, null_equal=True))
        group.asked[key] = replace(
            group,
            leaves=(*group.leaves, r.Constant(columns, ())),
            equalities=(*group.equalities, *equal),
        )
    return group.asked[key]


def under(scalars: Sequence[Scalar], key: Scalar) -> Scalar:
    """The key over the input of a projection."""
    return map_columns(key, lambda ref: scalars[ref.index])


def _within(key: Scalar, relation: r.Relation) -> bool:
    return all(at < len(relation.schema) for at in columns_of(key))


def is_whole(node: r.Relation) -> bool:
    """Whether all of a relation is there to be read, without an arrangement of its own."""
    match node:
        case r.Scan() | r.Constant():
            return True
        case r.Filter() | r.Project() | r.FlatMap():
            return is_whole(node.input)
        case r.Union():
            return all(map(is_whole, node.inputs))
        case r.Aggregate():
            return is_linear(node)
    return False


def asked_whole(node: r.Relation, keys: Keys) -> Iterator[r.Relation]:
    """The relations that the delta rule of one operator asks for without a key."""
    group = multiway_at(node)
    if group is not None:
        for first in range(len(group.leaves)):
            for step in path(group, first, keys, usable):
                if not step.key:
                    yield group.leaves[step.leaf]
        return
    if isinstance(node, r.Aggregate) and is_linear(node):
        return
    if is_keyed(node):
        for part in keyed_inputs(node):
            if not any(usable(part.relation, key) for key in part.key):
                yield part.relation


def inputs_of(node: r.Relation) -> tuple[r.Relation, ...]:
    """The relations whose changes the delta rule of an operator needs: a group's are its leaves."""
    group = multiway_at(node)
    if group is not None:
        return group.leaves
    if isinstance(node, r.Recursive):
        return tuple(reads_of(node))
    return tuple(r.relations_below(node))


def operators(plan: r.Relation) -> Iterator[r.Relation]:
    """The operators of a plan as the delta rules see them, each once, from the bottom."""
    seen: set[r.Relation] = set()

    def visit(node: r.Relation) -> Iterator[r.Relation]:
        if node in seen:
            return
        seen.add(node)
        for below in inputs_of(node):
            yield from visit(below)
        yield node

    return visit(plan)
