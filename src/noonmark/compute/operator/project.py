"""Project: [Project(R, f)](s) = the sum of [R](r) over all r with f(r) = s.

Law (linear): d(Project(R)) = Project(dR). A projection of an inner join that leaves out an input of
one row is a join of many inputs itself: only then is it known that the row is not shown
(`noonmark.compute.plan.range_delta`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from noonmark.compute.incremental.binding import Found
from noonmark.compute.kernel.scalar import ask as values_of
from noonmark.compute.kernel.scalar import projected
from noonmark.compute.kernel.updates import Changes, Errors, Ints, Rows, empty_rows
from noonmark.compute.operator.base import Key, Operator, Wanted, columns_in
from noonmark.compute.plan.multiway import (
    Keys,
    MultiwayJoin,
    flat,
    is_one_row,
    multiway_at,
    unique,
    with_outputs,
    without_row,
)
from noonmark.compute.plan.operators import Way, operator_of
from noonmark.compute.plan.pushdown import can_push_down, is_whole, under
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import Scalar, may_fail

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation


class Project(Operator[r.Project]):
    """See the module."""

    def name(self, node: r.Project) -> str:
        """What it is of."""
        return operator_of(node.input).name(node.input)

    def way(self, node: r.Project) -> Way:
        """Linear, or by the paths of the join that it is."""
        return Way.LINEAR if multiway_at(node) is None else Way.PATHS

    def multiway(self, node: r.Project) -> MultiwayJoin | None:
        """The join that leaves out a row."""
        return without_row(node)

    def inputs(self, node: r.Project) -> tuple[r.Relation, ...]:
        """Those of the join that it is, or its own."""
        group = multiway_at(node)
        return (node.input,) if group is None else group.leaves

    def flat(self, node: r.Project) -> MultiwayJoin | None:
        """What it is of, if that is a join; not if it may fail."""
        if any(map(may_fail, node.scalars)):
            return None
        below = flat(node.input)
        return with_outputs(below, node.scalars) if len(below.leaves) > 1 else None

    def can_push_down(self, node: r.Project, key: Scalar) -> bool:
        """By what the key is over its input."""
        return can_push_down(node.input, under(node.scalars, key))

    def is_whole(self, node: r.Project) -> bool:
        """As its input."""
        return is_whole(node.input)

    def row_by_row(self, node: r.Project) -> r.Relation | None:
        """Its input."""
        return node.input

    def each_row(self, node: r.Project, rows: Rows) -> tuple[Rows, Ints]:
        """Those that have values."""
        arrays, failed = values_of(node.scalars, rows)
        made, everything = rows.with_columns(arrays), np.arange(len(rows))
        if failed is None:
            return made, everything
        fine = np.flatnonzero([text is None for text in failed])
        return made.take(fine), fine

    def is_one_row(self, node: r.Project, *, exactly: bool) -> bool:
        """As its input."""
        return is_one_row(node.input, exactly=exactly)

    def is_narrow(self, node: r.Project) -> bool:
        """As its input."""
        return operator_of(node.input).is_narrow(node.input)

    def is_unique(self, node: r.Project, key: Sequence[Scalar], keys: Keys) -> bool:
        """By what the key is over its input."""
        return unique(node.input, [under(node.scalars, part) for part in key], keys)

    def is_monotone(self, node: r.Project) -> bool:
        """Always."""
        del node
        return True

    def used(self, node: r.Project, wanted: Wanted) -> Iterable[tuple[r.Relation, Wanted]]:
        """What its scalars look at."""
        del wanted
        return [(node.input, columns_in(*node.scalars))]

    def delta(self, node: r.Project, tick: Evaluation) -> Changes:
        """Its changes; of aggregates that are not shown, no change is one."""
        group = multiway_at(node)
        if group is not None:
            return tick.joined(node, group)
        source = tick.delta(node.input)
        if not len(source.rows):
            return Changes(empty_rows(node.schema), source.errors)
        errors = Errors(list(source.errors))
        arrays, rows = projected(node.scalars, source.rows, errors)
        made = rows.with_columns(arrays)
        if operator_of(node.input).way(node.input) is Way.SUMS:
            made = made.consolidated()
        return Changes(made, tuple(errors.found))

    def whole(self, node: r.Project, old: Old) -> Rows:
        """Of all rows of its input."""
        arrays, fine = projected(node.scalars, old.whole(node.input), Errors())
        return fine.with_columns(arrays)

    def ask(
        self, node: r.Project, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """Of the rows of its input with the key; only what is wanted is computed."""
        scalars = [node.scalars[at] for at in sorted(wanted)]
        below = tuple(under(node.scalars, part) for part in key)
        places, rows = old.find(node.input, below, probes, columns_in(*scalars))
        arrays, failed = values_of(scalars, rows)
        columns: list[pa.Array | None] = [None] * len(node.scalars)
        for at, array in zip(sorted(wanted), arrays, strict=True):
            columns[at] = array
        made = rows.with_columns(columns)
        if failed is None:
            return places, made
        fine = np.flatnonzero([text is None for text in failed])
        return places[fine], made.take(fine)

    def counts(
        self, node: r.Project, old: Old, key: Key, probes: Sequence[pa.Array]
    ) -> Ints | None:
        """As its input."""
        return old.counts(node.input, tuple(under(node.scalars, part) for part in key), probes)

    def can(self, node: r.Project) -> bool:
        """Always: scalars without a kernel are asked of their meaning."""
        del node
        return True

    def linear_in(self, node: r.Project) -> tuple[r.Relation, ...]:
        """Its input."""
        return (node.input,)

    def contents(self, node: r.Project, asked: ContentsEvaluation) -> Rows:
        """Of all rows of its input."""
        arrays, rows = projected(node.scalars, asked.rows(node.input), asked.errors)
        return rows.with_columns(arrays)
