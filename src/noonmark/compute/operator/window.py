"""Window: for each row, functions of the rows of its partition. Law: its key is the partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from noonmark.compute.kernel import keyed
from noonmark.compute.kernel.updates import Rows
from noonmark.compute.kernel.windows import window
from noonmark.compute.operator.base import Key, Keyed
from noonmark.compute.plan.pushdown import can_push_down
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation


class Window(Keyed[r.Window]):
    """See the module."""

    may_fail = True

    def sides(self, node: r.Window) -> Sequence[tuple[r.Relation, Key]]:
        """The partition."""
        return [(node.input, node.partition)]

    def over_scans(self, node: r.Window) -> r.Relation:
        """Over one collection."""
        return replace(node, input=r.Scan("0", node.input.schema))

    def can_push_down(self, node: r.Window, key: Scalar) -> bool:
        """By its partition."""
        return key in node.partition and can_push_down(node.input, key)

    def has_kernel(self, node: r.Window) -> bool:
        """If its functions have kernels, and its order is that of stored values."""
        return keyed.can_window(node)

    def kernel(self, node: r.Window, *sides: Rows) -> Rows:
        """The rows with their values."""
        return window(node, *sides)

    def can(self, node: r.Window) -> bool:
        """By the same kernel."""
        return keyed.can_window(node)

    def contents(self, node: r.Window, asked: ContentsEvaluation) -> Rows:
        """The rows with their values."""
        return window(node, asked.rows(node.input))
