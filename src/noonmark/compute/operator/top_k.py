"""TopK: the first rows of each partition, in an order. Law: its key is the partition.

Of n rows, while changes take away d, only the first n + d that were there can come into sight: so
much is read, where the input is stored (`noonmark.compute.incremental.first`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from noonmark.compute.contents import order
from noonmark.compute.contents.reduction import Kept, Reduction
from noonmark.compute.kernel import keyed
from noonmark.compute.kernel.updates import Rows, concat
from noonmark.compute.operator.base import Key, Keyed
from noonmark.compute.plan.first import Order, with_extremes
from noonmark.compute.plan.growing import can_be_asked, keeps_itself
from noonmark.compute.plan.operators import Way
from noonmark.compute.plan.pushdown import can_push_down
from noonmark.rows.exact import is_exact
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation


class TopK(Keyed[r.TopK]):
    """See the module."""

    def way(self, node: r.TopK) -> Way:
        """By its own rows, or by the first ones of its input."""
        return Way.KEPT if keeps_itself(node) else super().way(node)

    def is_whole(self, node: r.TopK) -> bool:
        """If it is kept."""
        return keeps_itself(node)

    def of_growing(self, node: r.TopK) -> r.TopK:
        """Marked."""
        return replace(node, growing=True)

    def keeps_itself(self, node: r.TopK) -> bool:
        """The first rows of what only grows."""
        exact = all(is_exact(part.type) for part in node.partition)
        first = node.limit is not None and not node.offset and keyed.can_top_k(node)
        return node.growing and exact and first and can_be_asked(node.input, node.partition)

    def group_key(self, node: r.TopK) -> Key:
        """Its partition: its rows are rows of its input."""
        return node.partition

    def sides(self, node: r.TopK) -> Sequence[tuple[r.Relation, Key]]:
        """The partition."""
        return [(node.input, node.partition)]

    def over_scans(self, node: r.TopK) -> r.Relation:
        """Over one collection."""
        return replace(node, input=r.Scan("0", node.input.schema))

    def orders(self, node: r.TopK) -> tuple[Order, ...]:
        """Its order, if it has a limit."""
        return () if node.limit is None else with_extremes(node, (node.order,))

    def can_push_down(self, node: r.TopK, key: Scalar) -> bool:
        """By its partition."""
        return key in node.partition and can_push_down(node.input, key)

    def has_kernel(self, node: r.TopK) -> bool:
        """If partition and order are those of stored values."""
        return keyed.can_top_k(node)

    def kernel(self, node: r.TopK, *sides: Rows) -> Rows:
        """The first rows of each partition."""
        return keyed.top_k(node, *sides)

    def with_more(self, node: r.TopK, rows: Rows, more: Rows) -> Rows | None:
        """The first rows of both; of those that come, few are as near as those that are there."""
        near = more if node.partition else keyed.ahead(node, rows, more)
        return keyed.top_k(node, concat([rows, near], node.schema).consolidated())

    def can(self, node: r.TopK) -> bool:
        """If rows can be put in order."""
        return order.can_top(node)

    def reduction(self, node: r.TopK) -> Reduction[Any] | None:
        """The rows of a part that may be among the first of all."""
        if node.limit is None:
            return None
        first = replace(node, limit=node.limit + node.offset, offset=0)
        return Kept(node.schema, partial(order.top, first), partial(order.top, node))

    def contents(self, node: r.TopK, asked: ContentsEvaluation) -> Rows:
        """The first rows of each partition."""
        return order.top(node, asked.rows(node.input))
