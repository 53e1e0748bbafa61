"""Constant: rows that are the same at every time. Law: it has no changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.binding import Found
from noonmark.compute.incremental.matching import matching
from noonmark.compute.kernel.updates import BEFORE, Changes, Rows, empty_rows, from_table
from noonmark.compute.operator.base import Key, Operator, Wanted, columns_in
from noonmark.compute.plan.operators import Way
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import to_array, to_table
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation


class Constant(Operator[r.Constant]):
    """See the module."""

    def way(self, node: r.Constant) -> Way:
        """It has no changes."""
        del node
        return Way.CONSTANT

    def can_push_down(self, node: r.Constant, key: Scalar) -> bool:
        """Its rows are at hand."""
        del node
        return bool(columns_in(key))

    def is_whole(self, node: r.Constant) -> bool:
        """Its rows are at hand."""
        del node
        return True

    def is_monotone(self, node: r.Constant) -> bool:
        """It never changes."""
        del node
        return True

    def used(self, node: r.Constant, wanted: Wanted) -> Iterable[tuple[r.Relation, Wanted]]:
        """It has no inputs."""
        del node, wanted
        return ()

    def delta(self, node: r.Constant, tick: Evaluation) -> Changes:
        """None."""
        del tick
        return Changes(empty_rows(node.schema))

    def whole(self, node: r.Constant, old: Old) -> Rows:
        """Its rows; if it is asked for changes, none."""
        ones = np.ones(0 if old.changes else len(node.rows), np.int64)
        if not len(node.schema):  # a table without columns would not know how many rows it has
            return Rows((), ones * BEFORE, ones)
        if old.changes:
            return empty_rows(node.schema)
        table = to_table(list(node.rows), node.columns).append_column(TIME, pa.array(ones * BEFORE))
        return from_table(table.append_column(DIFF, pa.array(ones))).consolidated()

    def ask(
        self, node: r.Constant, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """Of its rows."""
        del wanted
        return matching(self.whole(node, old), key, probes)

    def can(self, node: r.Constant) -> bool:
        """Always."""
        del node
        return True

    def contents(self, node: r.Constant, asked: ContentsEvaluation) -> Rows:
        """Its rows."""
        del asked
        columns = tuple(
            to_array([row[at] for row in node.rows], column.type)
            for at, column in enumerate(node.schema)
        )
        count = len(node.rows)
        return Rows(columns, np.zeros(count, np.int64), np.ones(count, np.int64))
