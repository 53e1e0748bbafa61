"""What a view shows of what it keeps: the part of its plan that follows from one arrangement.

Most views that aggregate are filters and projections of one linear aggregation, or the first rows
of such. Of those the accumulators are all that has to be computed over the inputs: the task that
stores them makes the rows of the view of them, with the kernels of walks. So it does with the first
rows of any other relation, which is kept as a whole.

    aggregation -> filters and projections [-> top-k -> filters and projections]
                   each group alone           over everything
    relation                                -> top-k -> filters and projections

Law: ``last(fewer(of(a)) + fewer(of(b)) + ...)`` are the rows and the errors of the view's plan,
where a, b, ... are what is kept, in pieces.

Where it runs: `of_plan` and `last` on the driver, the rest on executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from noonmark.compute.contents.evaluation import by_kernel
from noonmark.compute.incremental import by_key
from noonmark.compute.kernel.accumulator import accumulator_schema, is_linear
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.scalar import kept, projected
from noonmark.compute.kernel.updates import Error, Errors, Rows, from_table
from noonmark.compute.plan.arrangement import ArrangementSpec
from noonmark.compute.plan.first import is_short
from noonmark.rows.arrow import stored
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import may_fail
from noonmark.sql.ir.temporal import temporal

Linear: TypeAlias = "r.Project | r.Filter"
#: The first rows of each task go to the driver: a top-k of more rows is left to Spark.
FIRST_MAX = 10_000


@dataclass(frozen=True)
class ViewOutput:
    """See the module.

    Attributes:
        spec: the accumulators of the aggregation that the plan is over, or the relation.
        below: the filters and projections of each group, from the lowest up.
        top: the top-k over all of them, if there is one.
        above: the filters and projections of that.
    """

    spec: ArrangementSpec
    below: tuple[Linear, ...]
    top: r.TopK | None
    above: tuple[Linear, ...]

    @classmethod
    def of_plan(cls, plan: r.Relation) -> ViewOutput | None:
        """How the rows of a plan follow from what is kept; None if they do not so simply."""
        below, node = _linear(plan)
        above: tuple[Linear, ...] = ()
        top = node if isinstance(node, r.TopK) and _is_simple(node) else None
        if top is not None:
            above = below
            below, node = _linear(top.input)
        if isinstance(node, r.Aggregate) and is_linear(node):
            return cls(ArrangementSpec(node, sums=True), below, top, above)
        return None if top is None else cls(ArrangementSpec(top.input), (), top, above)

    def of(self, kept: pa.Table) -> tuple[pa.Table, tuple[Error, ...]]:
        """The rows for what is kept, and the errors; both with times and diffs."""
        rows, errors = from_table(kept), Errors()
        node = self.spec.relation
        aggregation = node if self.spec.sums and isinstance(node, r.Aggregate) else None
        schema = accumulator_schema(aggregation) if aggregation else node.schema
        columns = zip(rows.columns, schema, strict=True)
        given = [None if column is None else stored(column, each.type) for column, each in columns]
        rows = rows.with_columns(given)
        if aggregation is not None:
            rows, _ = finished(aggregation, rows, errors)
        return _table(_passed(self.below, rows, errors)), tuple(errors.found)

    def fewer(self, rows: pa.Table) -> pa.Table:
        """Of those rows the ones that may be among the first."""
        assert self.top is not None and self.top.limit is not None  # noqa: PT018 - for mypy
        ahead = replace(self.top, offset=0, limit=self.top.offset + self.top.limit)
        return _table(_first(ahead, from_table(rows)))

    def last(self, pieces: pa.Table) -> tuple[pa.Table, tuple[Error, ...]]:
        """The rows of the view, and its errors, of everything that may be among the first."""
        assert self.top is not None
        errors = Errors()
        rows = _first(self.top, from_table(pieces))
        return _table(_passed(self.above, rows, errors)), tuple(errors.found)


def _is_simple(node: r.TopK) -> bool:
    """Whether the first rows of every task are few, and to be found without errors."""
    few = node.limit is not None and node.offset + node.limit <= FIRST_MAX
    return few and is_short(node) and not any(may_fail(each.scalar) for each in node.order)


def _linear(node: r.Relation) -> tuple[tuple[Linear, ...], r.Relation]:
    """The filters and projections on top of a plan, from the lowest up, and what is below."""
    found: list[Linear] = []
    while isinstance(node, r.Project | r.Filter) and temporal(node) is None:
        found.insert(0, node)
        node = node.input
    return tuple(found), node


def _passed(nodes: Sequence[Linear], rows: Rows, errors: Errors) -> Rows:
    for node in nodes:
        if isinstance(node, r.Filter):
            rows = rows.take(kept(node.predicate, rows, errors))
        else:
            arrays, fine = projected(node.scalars, rows, errors)
            rows = fine.with_columns(arrays)
    return rows


def _first(node: r.TopK, rows: Rows) -> Rows:
    """A top-k of contents at one time."""
    made = by_kernel(node, [rows])
    time = int(rows.time[0]) if len(rows) else 0
    return (by_key.contents(node, [rows]) if made is None else made).at(time)


def _table(rows: Rows) -> pa.Table:
    return rows.table([f"c{at}" for at in range(len(rows.columns))])
