"""Which relations can be asked by key, and what has to be kept for those that cannot.

To ask a relation by key is to compute its rows with some values of the key, from what its inputs
hold for these values: ``op(R) where key = k`` is ``op(R where key' = k)`` for every operator whose
rows with that key come from input rows with a key of their own. Nothing has to be stored for that.

What has to be stored: the accumulators of linear aggregates, because a group may have very many
rows; and a relation that is asked for as a whole and is more than what filters and projections
make of a collection.

Law: ``can_push_down(r, k)`` says that r can be asked by the scalar k over its rows. It is a
function of the plan alone, so every process finds the same arrangements.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.memo import once
from noonmark.compute.plan.multiway import (
    Equality,
    Keys,
    MultiwayJoin,
    multiway_at,
    path,
)
from noonmark.compute.plan.operators import operator_of
from noonmark.rows.exact import is_exact
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import (
    Scalar,
    column,
    map_columns,
    may_fail,
    shift,
)


@once
def can_push_down(node: r.Relation, key: Scalar) -> bool:
    """Whether the rows of a relation with given values of the scalar can be asked for."""
    fits = is_exact(key.type) and not may_fail(key)
    return fits and operator_of(node).can_push_down(node, key)


@once
def key_leaf(group: MultiwayJoin, key: Scalar) -> tuple[int, Scalar] | None:
    """The leaf of a group that can be asked by a key of its outputs, and that key over the leaf."""
    over = under(group.outputs, key)
    leaf = group.leaf_of(over)
    if leaf is None:
        return None
    own = shift(over, -group.starts[leaf])
    return (leaf, own) if can_push_down(group.leaves[leaf], own) else None


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


def is_whole(node: r.Relation) -> bool:
    """Whether all of a relation is there to be read, without an arrangement of its own."""
    return operator_of(node).is_whole(node)


def asked_whole(node: r.Relation, keys: Keys) -> Iterator[r.Relation]:
    """The relations that the delta rule of one operator asks for without a key."""
    group = multiway_at(node)
    if group is not None:
        for first in range(len(group.leaves)):
            for step in path(group, first, keys, can_push_down):
                if not step.key:
                    yield group.leaves[step.leaf]
        return
    if operator_of(node).way(node).by_key:
        for part in keyed_inputs(node):
            if not any(can_push_down(part.relation, key) for key in part.key):
                yield part.relation


def inputs_of(node: r.Relation) -> tuple[r.Relation, ...]:
    """The relations whose changes the delta rule of an operator needs: a group's are its leaves."""
    return operator_of(node).inputs(node)


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
