"""FlatMap: a table function, any number of rows for each row (`compute.incremental.flat_map`).

Law (linear): d(FlatMap(R)) = FlatMap(dR).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from noonmark.compute.incremental import by_key
from noonmark.compute.incremental.binding import Found
from noonmark.compute.incremental.matching import matching
from noonmark.compute.kernel.updates import Changes, Errors, Rows, empty_rows
from noonmark.compute.operator.base import Key, Operator, inside
from noonmark.compute.plan.operators import Way
from noonmark.compute.plan.pushdown import can_push_down, is_whole
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation


class FlatMap(Operator[r.FlatMap]):
    """See the module."""

    may_fail = True

    def way(self, node: r.FlatMap) -> Way:
        """Row by row."""
        del node
        return Way.LINEAR

    def over_scans(self, node: r.FlatMap) -> r.Relation:
        """Over one collection."""
        return replace(node, input=r.Scan("0", node.input.schema))

    def can_push_down(self, node: r.FlatMap, key: Scalar) -> bool:
        """By what its input has."""
        return inside(key, node.input) and can_push_down(node.input, key)

    def is_whole(self, node: r.FlatMap) -> bool:
        """As its input."""
        return is_whole(node.input)

    def is_monotone(self, node: r.FlatMap) -> bool:
        """Always."""
        del node
        return True

    def delta(self, node: r.FlatMap, tick: Evaluation) -> Changes:
        """Of the changes of its input."""
        source = tick.delta(node.input)
        errors = Errors(list(source.errors))
        if not len(source.rows):
            return Changes(empty_rows(node.schema), source.errors)
        return Changes(by_key.flat_mapped(node, source.rows, errors), tuple(errors.found))

    def whole(self, node: r.FlatMap, old: Old) -> Rows:
        """Of all rows of its input."""
        return by_key.flat_mapped(node, old.whole(node.input), Errors())

    def ask(
        self, node: r.FlatMap, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """Of the rows of its input with the key."""
        del wanted
        rows = old.contents(node.input, key, probes)
        return matching(by_key.flat_mapped(node, rows, Errors()), key, probes)

    def can(self, node: r.FlatMap) -> bool:
        """Always: the function is asked row by row."""
        del node
        return True

    def linear_in(self, node: r.FlatMap) -> tuple[r.Relation, ...]:
        """Its input."""
        return (node.input,)

    def contents(self, node: r.FlatMap, asked: ContentsEvaluation) -> Rows:
        """Of all rows of its input."""
        rows = asked.rows(node.input)
        if not len(rows):
            return empty_rows(node.schema)
        return by_key.flat_mapped(node, rows, asked.errors)
