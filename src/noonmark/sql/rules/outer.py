"""References to the row outside: finding them, and putting columns in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from noonmark.sql.ir.node import Node, rebuild, walk_once
from noonmark.sql.ir.scalar import ColumnRef, OuterRef, Scalar

N = TypeVar("N", bound=Node)


def outer_columns(node: Node, scope: int) -> set[int]:
    """The columns of the row of that scope that are used anywhere inside."""
    return {
        each.index for each in walk_once(node) if isinstance(each, OuterRef) and each.scope == scope
    }


def free(node: Node, scope: int) -> bool:
    """Whether nothing inside refers to the row of that scope."""
    return not outer_columns(node, scope)


def lift(part: N, scope: int, outside: Sequence[Scalar], inside: Sequence[Scalar]) -> N:
    """The part over a row that has both: columns of the row outside, and its own, as given."""

    def act(node: Any) -> Any:
        if isinstance(node, OuterRef) and node.scope == scope:
            return outside[node.index]
        if isinstance(node, ColumnRef):
            return inside[node.index]
        return rebuild(node, act)

    return cast(N, act(part))
