"""Filter: [Filter(R, p)](r) = [R](r) if p(r) is TRUE, else 0.

Law (linear): d(Filter(R)) = Filter(dR). One that follows the time has for each row a turn, at which
the row comes or goes (`noonmark.compute.incremental.temporal`): it keeps the rows whose turn is to
come, and its changes are not those of its input alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from noonmark.compute.incremental.binding import Found
from noonmark.compute.incremental.temporal import follow
from noonmark.compute.kernel.scalar import kept
from noonmark.compute.kernel.updates import Changes, Errors, Ints, Rows, empty_rows
from noonmark.compute.operator.base import Key, Operator, Wanted, columns_in
from noonmark.compute.plan.multiway import Keys, MultiwayJoin, filtered, flat, is_one_row, unique
from noonmark.compute.plan.operators import Way, operator_of
from noonmark.compute.plan.pushdown import can_push_down, is_whole
from noonmark.compute.trace.pending import turns_schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import bind
from noonmark.sql.ir.scalar import Scalar, may_fail
from noonmark.sql.ir.temporal import temporal

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation
    from noonmark.compute.incremental.old import Old
    from noonmark.compute.incremental.rules import Evaluation


class Filter(Operator[r.Filter]):
    """See the module."""

    def name(self, node: r.Filter) -> str:
        """What it filters."""
        return operator_of(node.input).name(node.input)

    def way(self, node: r.Filter) -> Way:
        """Linear, or by turns."""
        return Way.LINEAR if temporal(node) is None else Way.TURNS

    def flat(self, node: r.Filter) -> MultiwayJoin | None:
        """What it filters, if that is a join; not if it may fail or follows the time."""
        if temporal(node) is not None or may_fail(node.predicate):
            return None
        below = flat(node.input)
        return filtered(below, node.predicate) if len(below.leaves) > 1 else None

    def can_push_down(self, node: r.Filter, key: Scalar) -> bool:
        """As its input."""
        return can_push_down(node.input, key)

    def is_whole(self, node: r.Filter) -> bool:
        """As its input."""
        return is_whole(node.input)

    def row_by_row(self, node: r.Filter) -> r.Relation | None:
        """Its input, unless it follows the time."""
        return node.input if temporal(node) is None else None

    def each_row(self, node: r.Filter, rows: Rows) -> tuple[Rows, Ints]:
        """Those that pass."""
        passed = kept(node.predicate, rows, Errors())
        return rows.take(passed), passed

    def is_one_row(self, node: r.Filter, *, exactly: bool) -> bool:
        """At most, as its input."""
        return not exactly and is_one_row(node.input)

    def is_unique(self, node: r.Filter, key: Sequence[Scalar], keys: Keys) -> bool:
        """As its input."""
        return unique(node.input, key, keys)

    def is_monotone(self, node: r.Filter) -> bool:
        """Unless rows leave it with the time."""
        return temporal(node) is None

    def used(self, node: r.Filter, wanted: Wanted) -> Iterable[tuple[r.Relation, Wanted]]:
        """What is wanted, and what it looks at; one that follows the time keeps whole rows."""
        if wanted is None or temporal(node) is not None:
            return [(node.input, None)]
        return [(node.input, wanted | columns_in(node.predicate))]

    def delta(self, node: r.Filter, tick: Evaluation) -> Changes:
        """Its changes."""
        source = tick.delta(node.input)
        if temporal(node) is not None:
            due = tick.due.get(node) or empty_rows(turns_schema(node))
            made, tick.turns[node] = follow(node, source, due, tick.upper)
            return made
        if not len(source.rows):
            return source
        errors = Errors(list(source.errors))
        rows = source.rows.take(kept(node.predicate, source.rows, errors))
        return Changes(rows, tuple(errors.found))

    def whole(self, node: r.Filter, old: Old) -> Rows:
        """The rows that pass; those without an answer are errors, and not here."""
        rows = old.whole(node.input)
        return rows.take(kept(self._before(node, old), rows, Errors()))

    def ask(
        self, node: r.Filter, old: Old, key: Key, probes: Sequence[pa.Array], wanted: set[int]
    ) -> Found:
        """Of the rows of its input with the key, those that pass."""
        used = wanted | columns_in(node.predicate)
        places, rows = old.find(node.input, key, probes, used)
        passed = kept(self._before(node, old), rows, Errors())
        return places[passed], rows.take(passed)

    def counts(self, node: r.Filter, old: Old, key: Key, probes: Sequence[pa.Array]) -> Ints | None:
        """As its input."""
        return old.counts(node.input, key, probes)

    def _before(self, node: r.Filter, old: Old) -> Scalar:
        """The predicate as it was before the tick, also if it follows the time."""
        return (node if temporal(node) is None else bind(node, (), old.as_of)).predicate

    def can(self, node: r.Filter) -> bool:
        """Always: scalars without a kernel are asked of their meaning."""
        del node
        return True

    def linear_in(self, node: r.Filter) -> tuple[r.Relation, ...]:
        """Its input."""
        return (node.input,)

    def contents(self, node: r.Filter, asked: ContentsEvaluation) -> Rows:
        """The rows that pass."""
        rows = asked.rows(node.input)
        return rows.take(kept(node.predicate, rows, asked.errors))
