"""Intersect: rows of both sides, each as often as on both, or once.

Law: its key is the whole row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from noonmark.compute.contents import group
from noonmark.compute.kernel.updates import Rows
from noonmark.compute.operator.base import Key, Keyed
from noonmark.compute.plan.keys import whole_row
from noonmark.compute.plan.pushdown import can_push_down
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation


class Intersect(Keyed[r.Intersect]):
    """See the module."""

    def sides(self, node: r.Intersect) -> Sequence[tuple[r.Relation, Key]]:
        """The whole row."""
        return [(each, whole_row(each)) for each in (node.left, node.right)]

    def over_scans(self, node: r.Intersect) -> r.Relation:
        """Over two collections."""
        left, right = r.Scan("0", node.left.schema), r.Scan("1", node.right.schema)
        return replace(node, left=left, right=right)

    def can_push_down(self, node: r.Intersect, key: Scalar) -> bool:
        """By what both sides are asked by."""
        return can_push_down(node.left, key) and can_push_down(node.right, key)

    def can(self, node: r.Intersect) -> bool:
        """If equal rows are the same."""
        return group.can_be_same(node)

    def contents(self, node: r.Intersect, asked: ContentsEvaluation) -> Rows:
        """Of both sides."""
        return group.intersect(node, asked.rows(node.left), asked.rows(node.right))
