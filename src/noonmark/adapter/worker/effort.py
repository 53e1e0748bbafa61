"""How much work a job is at most: what is little is done on the adapter's loop.

The unit is that of `noonmark.sql.ir.effort`. It is a bound, not a guess: a join may give every pair
of rows, a recursion any number of rounds. What has no bound here, or a large one, goes to a worker,
where it is stopped by what it really takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from noonmark.rows.value import weight
from noonmark.sql.ir import relation as r
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.call import SortKey, TableCall
from noonmark.sql.ir.effort import LITTLE, NEVER, scalar_effort
from noonmark.sql.ir.node import Node

#: Sorting a row among others.
_SORT = 10


class _Estimate:
    """The rows of a relation at most, and the work up to there."""

    def __init__(self, sizes: Mapping[str, int], longest: int) -> None:
        self._sizes, self._longest = sizes, longest
        self._names: dict[str, float] = {}
        self._done: dict[int, float] = {}
        self.work = 0.0

    def rows(self, relation: r.Relation) -> float:
        """How many rows it has at most; what they take is added to the work, once."""
        if id(relation) not in self._done:
            if self.work > LITTLE:
                return NEVER
            self._done[id(relation)] = self._rows(relation)
        return self._done[id(relation)]

    def _rows(self, relation: r.Relation) -> float:
        match relation:
            case r.Scan():
                return self._sizes.get(relation.collection, NEVER)
            case r.Constant():
                return self.each(len(relation.rows))
            case r.Get():
                return self._names.get(relation.name, NEVER)
            case r.Filter():
                return self.each(self.rows(relation.input), relation.predicate)
            case r.Project():
                return self.each(self.rows(relation.input), *relation.scalars)
            case r.Join():
                return self._join(relation)
            case r.Aggregate():
                found = self.each(self.rows(relation.input), *relation.keys, *relation.aggregates)
                return found if relation.keys else 1
            case r.Distinct():
                return self.sort(self.rows(relation.input))
            case r.TopK():
                parts = (*relation.partition, *relation.order)
                return self.sort(self.rows(relation.input), *parts)
            case r.Union():
                return sum(map(self.rows, relation.inputs))
            case r.Intersect() | r.Except():
                return self.sort(self.rows(relation.left) + self.rows(relation.right))
            case r.Window():
                count = self.rows(relation.input)
                self.sort(count, *relation.partition, *relation.order)
                self.each(count * count, *relation.calls)
                return count
            case r.FlatMap():
                return self._flat(relation)
            case r.Let():
                self._names[relation.name] = self.rows(relation.value)
                return self.rows(relation.body)
        self.work = NEVER  # a recursion, or something new
        return NEVER

    def each(self, count: float, *scalars: Node) -> float:
        """Ask scalars of so many rows."""
        self.work += count * (1 + scalar_effort(*scalars, longest=self._longest)) if count else 0
        return count

    def sort(self, count: float, *parts: Node) -> float:
        """Sort so many rows by what the parts are."""
        return self.each(count * _SORT, *parts) / _SORT

    def _join(self, relation: r.Join) -> float:
        left, right = self.rows(relation.left), self.rows(relation.right)
        self.each(left + right, *relation.keys)
        pairs = 0 if 0 in (left, right) else left * right
        self.each(pairs, relation.on)
        return pairs + left + right

    def _flat(self, relation: r.FlatMap) -> float:
        count = self.rows(relation.input)
        return self.each(count * _table_rows(relation.call) if count else 0, relation.call)


def _table_rows(call: TableCall) -> float:
    """How many rows a table function gives at most."""
    values: list[Any] = [each.value for each in call.arguments if isinstance(each, s.Literal)]
    measured = call.entry.steps is not None or call.entry.size is not None
    if measured or len(values) < len(call.arguments):
        return NEVER
    if None in values:
        return 0
    if call.entry.name == "generate_series":
        if not all(isinstance(value, int) for value in values):
            return NEVER
        first, last, step = (*values, 1)[:3]
        return max(0, (last - first) // step + 1) if step else 1
    return sum(len(value) for value in values if isinstance(value, str | tuple | bytes)) + 100


def is_little(
    relation: r.Relation,
    sizes: Mapping[str, int],
    tests: Iterable[tuple[str, s.Scalar]] = (),
    order: tuple[SortKey, ...] = (),
    longest: int = 0,
) -> bool:
    """Whether a plan over inputs of these sizes is little work.

    Args:
        relation: the plan.
        sizes: the rows of each input.
        tests: what the rows of an input are asked first.
        order: what its rows are sorted by.
        longest: the length of the longest value among the rows.
    """
    estimate = _Estimate(sizes, longest)
    for name, test in tests:
        estimate.each(sizes[name], test)
    count = estimate.rows(relation)
    if order:
        estimate.sort(count, *order)
    return (estimate.work + count) * (1 + longest / 1_000) <= LITTLE


def longest_value(rows: Iterable[Sequence[Any]]) -> int:
    """The length of the longest value among rows."""
    longest = 0
    for row in rows:
        for value in row:
            if isinstance(value, str | bytes):
                longest = max(longest, len(value))
            elif isinstance(value, Decimal | tuple):
                longest = max(longest, weight(value))
    return longest
