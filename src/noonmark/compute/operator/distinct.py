"""Distinct: [Distinct(R)](r) = 1 if [R](r) > 0, else 0. Law: its key is the whole row.

Where rows can be counted as they are stored, views have an aggregation in its place
(`noonmark.compute.plan.reductions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.compute.contents import group
from noonmark.compute.contents.reduction import Kept, Reduction
from noonmark.compute.kernel import keyed
from noonmark.compute.kernel.updates import Ints, Rows
from noonmark.compute.operator.base import Key, Keyed
from noonmark.compute.plan.keys import whole_row
from noonmark.compute.plan.pushdown import can_push_down
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old


class Distinct(Keyed[r.Distinct]):
    """See the module."""

    def sides(self, node: r.Distinct) -> Sequence[tuple[r.Relation, Key]]:
        """The whole row."""
        return [(node.input, whole_row(node.input))]

    def over_scans(self, node: r.Distinct) -> r.Relation:
        """Over one collection."""
        return replace(node, input=r.Scan("0", node.input.schema))

    def can_push_down(self, node: r.Distinct, key: Scalar) -> bool:
        """As its input."""
        return can_push_down(node.input, key)

    def counts(
        self, node: r.Distinct, old: Old, key: Key, probes: Sequence[pa.Array]
    ) -> Ints | None:
        """As its input."""
        return old.counts(node.input, key, probes)

    def is_monotone(self, node: r.Distinct) -> bool:
        """Always."""
        del node
        return True

    def has_kernel(self, node: r.Distinct) -> bool:
        """If equal rows are the same."""
        return group.can_be_same(node)

    def kernel(self, node: r.Distinct, *sides: Rows) -> Rows:
        """Each row once."""
        return keyed.distinct(node, *sides)

    def can(self, node: r.Distinct) -> bool:
        """If equal rows are the same."""
        return group.can_be_same(node)

    def reduction(self, node: r.Distinct) -> Reduction[Any]:
        """Each row of a part once."""
        return Kept(node.schema, group.distinct, group.distinct)

    def contents(self, node: r.Distinct, asked: ContentsEvaluation) -> Rows:
        """Each row once."""
        return group.distinct(asked.rows(node.input))
