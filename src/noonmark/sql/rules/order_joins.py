"""Order joins: inner joins in an order in which each one has an equality to join by.

A tree of inner joins is a set of relations and a set of conditions. They are joined from the left
in the order in which they are written, except that a relation without an equality to those before
it waits until it has one; only when none has is there a cross join. Conditions that may fail stay
on top, where they are asked of the rows they were asked of. The columns keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.relation import Join, JoinKind, Relation
from noonmark.sql.rules.rewrite import columns, filtered, onto, select


@dataclass(frozen=True)
class _Leaf:
    """A relation and where its columns stand in the whole row."""

    relation: Relation
    start: int

    @property
    def columns(self) -> set[int]:
        return set(range(self.start, self.start + len(self.relation.schema)))


def order_joins(relation: Relation) -> Relation:
    """The plan with every tree of inner joins in order."""
    done: dict[int, tuple[Node, Node]] = {}

    def visit(node: Node) -> Node:
        if isinstance(node, s.Scalar):
            return node
        if id(node) not in done:
            done[id(node)] = (node, ordered(node))
        return done[id(node)][1]

    def ordered(node: Node) -> Node:
        if isinstance(node, Join) and node.kind is JoinKind.INNER:
            leaves: list[_Leaf] = []
            conditions: list[s.Scalar] = []
            _flatten(node, 0, leaves, conditions)
            inner = [_Leaf(_relation(visit(leaf.relation)), leaf.start) for leaf in leaves]
            return _rebuild(node, inner, conditions)
        return rebuild(node, visit)

    return _relation(visit(relation))


def _relation(node: Node) -> Relation:
    assert isinstance(node, Relation)
    return node


def _flatten(join: Relation, start: int, leaves: list[_Leaf], conditions: list[s.Scalar]) -> None:
    """The relations of a tree of inner joins, and its conditions over the whole row."""
    if not isinstance(join, Join) or join.kind is not JoinKind.INNER:
        leaves.append(_Leaf(join, start))
        return
    width = len(join.left.schema)
    _flatten(join.left, start, leaves, conditions)
    _flatten(join.right, start + width, leaves, conditions)
    for key in join.keys:
        left, right = s.shift(key.left, start), s.shift(key.right, start + width)
        equal = s.Not(s.IsDistinct(left, right)) if key.null_equal else s.Compare("=", left, right)
        conditions.append(equal)
    conditions += [s.shift(part, start) for part in s.conjuncts(join.on)]


def _rebuild(join: Join, leaves: list[_Leaf], conditions: list[s.Scalar]) -> Relation:
    waiting, early = list(leaves), [c for c in conditions if not s.may_fail(c)]
    late = [c for c in conditions if s.may_fail(c)]
    first = waiting.pop(0)
    current, places = first.relation, {at: n for n, at in enumerate(sorted(first.columns))}
    while waiting:
        leaf = next((each for each in waiting if _is_joined(each, places, early)), waiting[0])
        waiting.remove(leaf)
        width = len(current.schema)
        places |= {at: width + n for n, at in enumerate(sorted(leaf.columns))}
        ready = [c for c in early if s.columns_of(c) <= set(places)]
        early = [c for c in early if c not in ready]
        crossed = Join(JoinKind.INNER, current, leaf.relation)
        on = [onto(c, crossed.schema, places.__getitem__) for c in ready]
        current = Join(JoinKind.INNER, current, leaf.relation, on=s.conjunction(on))
    on_top = [onto(c, current.schema, places.__getitem__) for c in late + early]
    order = [places[at] for at in range(len(columns(join.schema)))]
    return select(filtered(current, on_top), order, join.schema.names)


def _is_joined(leaf: _Leaf, places: dict[int, int], conditions: list[s.Scalar]) -> bool:
    """Whether an equality ties the relation to those that are joined already."""
    for part in conditions:
        inner = part.operand if isinstance(part, s.Not) else part
        if not isinstance(inner, s.Compare | s.IsDistinct):
            continue
        if isinstance(inner, s.Compare) and inner.op != "=":
            continue
        sides = [s.columns_of(inner.left), s.columns_of(inner.right)]
        for own, other in (sides, sides[::-1]):
            if own and other and own <= leaf.columns and other <= set(places):
                return True
    return False
