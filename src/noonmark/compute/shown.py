"""What a view shows of its accumulators: the part of its plan that each group decides alone.

Most views that aggregate are filters and projections of one linear aggregation. Of those the
accumulators are all that has to be computed over the inputs: the task that stores them makes the
rows of the view of them, with the kernels of walks.

Law: ``shown.of(accumulators(A))`` are the rows and the errors of the view's plan, where A is the
aggregation that the plan is over.

Where it runs: `of_plan` on the driver, the rest on executors; pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from noonmark.compute import aggregates
from noonmark.compute.foreign import stored
from noonmark.compute.walk.finish import finished
from noonmark.compute.walk.rows import Error, Errors, from_table
from noonmark.compute.walk.scalar import kept, projected
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.temporal import temporal


@dataclass(frozen=True)
class Shown:
    """See the module.

    Attributes:
        plan: of the view.
        aggregation: the one that it is over.
    """

    plan: r.Relation
    aggregation: r.Aggregate

    @classmethod
    def of_plan(cls, plan: r.Relation) -> Shown | None:
        """How the rows of a plan follow from accumulators; None if they do not so simply."""
        node = plan
        while isinstance(node, r.Project | r.Filter) and temporal(node) is None:
            node = node.input
        if isinstance(node, r.Aggregate) and aggregates.is_linear(node):
            return cls(plan, node)
        return None

    def of(self, accumulators: pa.Table) -> tuple[pa.Table, tuple[Error, ...]]:
        """The rows of the view for those groups, and its errors; both with times and diffs."""
        rows, errors = from_table(accumulators), Errors()
        kinds = [each.type for each in aggregates.accumulator_schema(self.aggregation)]
        columns = zip(rows.columns, kinds, strict=True)
        given = [None if column is None else stored(column, kind) for column, kind in columns]
        rows, _ = finished(self.aggregation, rows.with_columns(given), errors)
        for node in self._above():
            if isinstance(node, r.Filter):
                rows = rows.take(kept(node.predicate, rows, errors))
            else:
                arrays, fine = projected(node.scalars, rows, errors)
                rows = fine.with_columns(arrays)
        return rows.table(self.plan.schema.names), tuple(errors.found)

    def _above(self) -> list[r.Project | r.Filter]:
        """The operators over the aggregation, from the lowest up."""
        found: list[r.Project | r.Filter] = []
        node = self.plan
        while node is not self.aggregation:
            assert isinstance(node, r.Project | r.Filter), "a plan that `of_plan` took"
            found.insert(0, node)
            node = node.input
        return found
