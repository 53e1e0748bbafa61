"""A relation at one time, as one Spark query: for hydration, audits and recomputation.

Law: ``batch(r, inputs)`` is the multiset that `ir.relation` says r is, of the inputs at one time;
its errors are those of the rows on which a scalar has no value.

It shares no code with the delta rules except scalars and the recomputation of one key, so that an
audit is a second opinion. An operator with a key is Spark's own where Spark has it (`whole`).

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from noonmark.compute.kernel.accumulator import argument, is_linear
from noonmark.compute.plan.arrangement import Arrangement
from noonmark.compute.plan.infallible import may_have_errors
from noonmark.compute.plan.keys import keyed_inputs
from noonmark.compute.plan.operators import Way, operator_of
from noonmark.compute.spark import aggregates, keyed, whole
from noonmark.compute.spark.column import col
from noonmark.compute.spark.flatmap import flat_mapped
from noonmark.compute.spark.frame import (
    columns,
    empty_frame,
    errors_of,
    grouped,
    local_frame,
    names,
    rows_of,
    union,
)
from noonmark.compute.spark.linear import filtered, projected
from noonmark.compute.spark.match import joined
from noonmark.compute.spark.pending import waiting, with_turns
from noonmark.errors import Unsupported
from noonmark.persist.part.run import DIFF
from noonmark.rows.arrow import to_table
from noonmark.rows.exact import is_exact
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import bind
from noonmark.sql.ir.node import Node, children
from noonmark.sql.ir.temporal import temporal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[r.Scan], "DataFrame"]


class BatchQuery:
    """Compiles relations over the inputs that `read` gives. Equal subplans become one frame."""

    def __init__(
        self,
        spark: SparkSession,
        read: Read,
        *,
        inputs_fail: bool,
        now: int | None = None,
        shared: Collection[r.Relation] = (),
    ) -> None:
        self.spark = spark
        self.read = read
        self.inputs_fail = inputs_fail
        #: What mz_now() is; None for plans that do not ask.
        self.now = now
        #: What is asked for more than once, and so computed once: until `release`.
        self.shared = shared
        self._made: dict[r.Relation, DataFrame] = {}
        self._sums: dict[r.Aggregate, DataFrame] = {}
        self._held: list[DataFrame] = []

    def release(self) -> None:
        """Let go of what was computed once."""
        for frame in self._held:
            frame.unpersist()

    def _once(self, node: r.Relation, frame: DataFrame) -> DataFrame:
        if node not in self.shared:
            return frame
        self._held.append(frame.persist())
        return self._held[-1]

    def frame(self, node: r.Relation) -> DataFrame:
        """The rows and errors of a relation, in the layout, without times."""
        if node not in self._made:
            made = FORMS[type(node)].frame(self, node)
            linear = operator_of(node).way(node) is Way.SUMS  # of it the accumulators are shared
            self._made[node] = made if linear else self._once(node, made)
        return self._made[node]

    def kept_rows(self, arrangement: Arrangement) -> DataFrame:
        """All that an arrangement holds."""
        relation = arrangement.spec.relation
        if arrangement.spec.turns:
            assert isinstance(relation, r.Filter)
            return self.waiting(relation)
        return rows_of(*self.kept(arrangement))

    def kept(self, arrangement: Arrangement) -> tuple[DataFrame, bool]:
        """The same with the errors, and whether there may be any; not of what waits."""
        relation = arrangement.spec.relation
        if arrangement.spec.sums:
            assert isinstance(relation, r.Aggregate)
            return self.sums(relation), self.sums_fail(relation)
        return self.frame(relation), self.fails(relation)

    def waiting(self, node: r.Filter) -> DataFrame:
        """What waits in a temporal filter: rows, each with its turn."""
        assert self.now is not None, "a plan that follows the time is asked at one"
        frame = rows_of(self.frame(node.input), self.fails(node.input))
        fails = self.fails(*children(node))
        return waiting(node, rows_of(with_turns(node, frame), fails), self.now + 1)

    def _constant(self, node: r.Constant) -> DataFrame:
        if not node.rows:
            return empty_frame(self.spark, node.schema)
        table = to_table(list(node.rows), node.columns)
        table = table.rename_columns(names(len(node.schema)))
        rows = keyed.as_updates(table, len(node.rows))
        return local_frame(self.spark, rows, node.schema)

    def _scan(self, node: r.Scan) -> DataFrame:
        return self.read(node)

    def _filter(self, node: r.Filter) -> DataFrame:
        bound = node if temporal(node) is None else bind(node, (), self.now)
        return filtered(bound, self.frame(node.input))

    def _project(self, node: r.Project) -> DataFrame:
        return projected(node, self.frame(node.input))

    def _flat_map(self, node: r.FlatMap) -> DataFrame:
        return flat_mapped(node, self.frame(node.input))

    def _union(self, node: r.Union) -> DataFrame:
        return union([self.frame(each) for each in node.inputs])

    def _join(self, node: r.Join) -> DataFrame:
        sides, fails = (self.frame(node.left), self.frame(node.right)), self._sides_fail(node)
        if node.kind is r.JoinKind.INNER:
            return joined(node, *sides, fails=fails)
        if whole.is_native_join(node):
            return whole.joined(node, *sides, fails=fails)
        return self._by_key(node)

    def _sides_fail(self, node: r.Join) -> tuple[bool, bool]:
        """Whether the left side of a join, and the right one, may have errors, or their keys."""
        left = self.fails(node.left, *(key.left for key in node.keys))
        return left, self.fails(node.right, *(key.right for key in node.keys))

    def sums(self, node: r.Aggregate) -> DataFrame:
        """The accumulators of a linear aggregation, and the errors of its input."""
        if node not in self._sums:
            sums = aggregates.accumulated(
                node,
                self.frame(node.input),
                fails=self.sums_fail(node),
                once=is_once(node.input),
            )
            self._sums[node] = self._once(node, sums)
        return self._sums[node]

    def sums_fail(self, node: r.Aggregate) -> bool:
        """Whether there may be errors among the accumulators."""
        given = [argument(call) for call in node.aggregates]
        return self.fails(node.input, *node.keys, *given)

    def _aggregate(self, node: r.Aggregate) -> DataFrame:
        if not is_linear(node) and not whole.is_native_aggregate(node):
            return self._by_key(node)
        if not is_linear(node):
            fails, once = self.sums_fail(node), is_once(node.input)
            return whole.aggregated(node, self.frame(node.input), fails=fails, once=once)
        sums, fails = self.sums(node), self.sums_fail(node)
        rows = aggregates.finished(node, rows_of(sums, fails))
        return union([rows, errors_of(sums, node.schema)]) if fails else rows

    def fails(self, *nodes: Node) -> bool:
        """Whether there may be errors in the frames of these relations, or of these scalars."""
        return self.inputs_fail or any(map(may_have_errors, nodes))

    def _distinct(self, node: r.Distinct) -> DataFrame:
        if not _is_exact(node.schema):
            return self._by_key(node)
        width = len(node.schema)
        source, count = self.frame(node.input), f.sum(DIFF).alias("_count")
        fails = self.fails(node.input)
        made, error, diff = grouped(source, columns(width), [count], fails=fails)
        present = made.where(col("_count") > 0)
        return present.select(*columns(width), error, diff)

    def _top_k(self, node: r.TopK) -> DataFrame:
        if not whole.is_native_top_k(node):
            return self._by_key(node)
        return whole.top_k(node, self.frame(node.input), fails=self.fails(node.input))

    def _by_key(self, node: r.Relation) -> DataFrame:
        """By the meaning, key by key, in tasks."""
        parts = keyed_inputs(node)
        frames = [self.frame(part.relation) for part in parts]
        fails = self.fails(*(part.relation for part in parts), *(k for p in parts for k in p.key))
        return keyed.recomputed(node, parts, frames, fails=fails)

    def _refused(self, node: r.Relation) -> DataFrame:
        raise Unsupported(f"a view with {type(node).__name__} is not supported yet")


def is_once(node: r.Relation) -> bool:
    """Whether every diff in the contents of the relation is 1: a row that is there twice is two."""
    return FORMS[type(node)].once(node)


def _inputs_once(node: r.Relation) -> bool:
    return all(map(is_once, r.relations_below(node)))


def _always(_: Any) -> bool:
    return True


def _never(_: Any) -> bool:
    return False


@dataclass(frozen=True)
class Form:
    """How Spark computes an operator, and whether every diff of that is 1."""

    frame: Callable[[BatchQuery, Any], DataFrame]
    once: Callable[[Any], bool] = _never


#: Spark's forms of the operators (`noonmark.compute.operator.table`).
FORMS: dict[type[r.Relation], Form] = {
    r.Scan: Form(BatchQuery._scan, _always),
    r.Constant: Form(BatchQuery._constant, _always),
    r.Get: Form(BatchQuery._refused),
    r.Let: Form(BatchQuery._refused),
    r.Filter: Form(BatchQuery._filter, _inputs_once),
    r.Project: Form(BatchQuery._project, _inputs_once),
    r.FlatMap: Form(BatchQuery._flat_map),
    r.Union: Form(BatchQuery._union, _inputs_once),
    r.Join: Form(
        BatchQuery._join,
        lambda node: (
            (node.kind is r.JoinKind.INNER or whole.is_native_join(node)) and _inputs_once(node)
        ),
    ),
    r.Aggregate: Form(BatchQuery._aggregate, _always),
    r.Distinct: Form(BatchQuery._distinct, _always),
    r.Intersect: Form(BatchQuery._by_key),
    r.Except: Form(BatchQuery._by_key),
    r.TopK: Form(
        BatchQuery._top_k, lambda node: whole.is_native_top_k(node) and _inputs_once(node)
    ),
    r.Window: Form(BatchQuery._by_key),
    r.Recursive: Form(BatchQuery._by_key),
    r.Apply: Form(BatchQuery._refused),
}


def _is_exact(schema: Schema) -> bool:
    """Whether there are columns, and Spark tells apart what SQL does."""
    return bool(schema.columns) and all(is_exact(each.type) for each in schema)
