"""Inline: a name of WITH that is used once, or costs nothing to compute twice, is replaced.

What stays a `Let` is a subplan with several users: it is computed once.
"""

from __future__ import annotations

from typing import Any

from noonmark.sql.ir.node import Node, rebuild, walk
from noonmark.sql.ir.relation import Constant, Get, Let, Project, Relation, Scan
from noonmark.sql.ir.scalar import ColumnRef, OuterRef
from noonmark.sql.rules.rewrite import bottom_up


def _inline(relation: Relation) -> Relation:
    if not isinstance(relation, Let):
        return relation
    uses = sum(isinstance(x, Get) and x.name == relation.name for x in walk(relation.body))
    # A correlated value belongs to one row outside: it is inlined so that decorrelation sees it.
    correlated = any(isinstance(node, OuterRef) for node in walk(relation.value))
    if uses > 1 and not correlated and not _costs_nothing(relation.value):
        return relation
    return replace_get(relation.body, relation.name, relation.value)


def _costs_nothing(relation: Relation) -> bool:
    if isinstance(relation, Project) and all(isinstance(x, ColumnRef) for x in relation.scalars):
        return _costs_nothing(relation.input)
    return isinstance(relation, Scan | Constant | Get)


def replace_get(relation: Relation, name: str, value: Relation) -> Relation:
    """The relation with the value in place of the name."""

    def act(node: Any) -> Node:
        return value if isinstance(node, Get) and node.name == name else rebuild(node, act)

    result = act(relation)
    assert isinstance(result, Relation)
    return result


inline = bottom_up(_inline)
