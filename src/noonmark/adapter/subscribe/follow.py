"""The changes of a query, exact at every time, in process.

A linear plan over one collection (filter, project) is applied to the changes themselves. Any other
plan keeps its inputs in memory, and is asked again at every time at which one of them changed, or
at which one of their rows has its turn in a temporal filter: what it gives more or less than before
are the changes. That is cheap for small inputs only; larger ones
are refused, with the advice to subscribe to a materialized view: that is maintained by its changes.

Law: the changes at t are the query's contents at t minus its contents just before t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.gather import Multiset, narrowed
from noonmark.adapter.peek.rows import Change, Row
from noonmark.adapter.peek.shape import Leaf
from noonmark.adapter.subscribe.turns import Turns
from noonmark.compute.reference import evaluate
from noonmark.errors import Unsupported
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import Now

#: Inputs of a plan that is not linear may have so many rows.
ROWS_MAX = 50_000


def is_linear(peek: Peek) -> bool:
    """Whether the plan's changes are the plan of the changes."""
    return peek.shape.linear and not peek.system and Now not in peek.asks


def by_time(changes: Iterable[Change]) -> Iterator[tuple[int, list[Change]]]:
    """Changes that are sorted by time, one time after the other."""
    for time, group in groupby(changes, key=lambda change: change[1]):
        yield time, list(group)


class Linear:
    """The changes of a linear plan over its one leaf."""

    def __init__(self, peek: Peek) -> None:
        (self._leaf,) = peek.shape.leaves
        self._rest = peek.shape.rest

    def changes(self, happened: Sequence[Change], schema: Schema) -> list[Change]:
        """What the plan makes of the collection's changes, which are sorted by time."""
        made: list[Change] = []
        for time, group in by_time(happened):
            more = self._asked(((row, diff) for row, _, diff in group if diff > 0), schema)
            less = self._asked(((row, -diff) for row, _, diff in group if diff < 0), schema)
            made += difference(more, less, time)
        return made

    def _asked(self, rows: Iterable[tuple[Row, int]], schema: Schema) -> Multiset:
        given = narrowed(self._leaf, schema, rows)
        if not given or isinstance(self._rest, r.Scan):
            return given
        return evaluate(self._rest, {self._leaf.name: given})


class Recomputed:
    """The changes of any plan over small inputs, which are kept by collection."""

    def __init__(
        self,
        peek: Peek,
        schemas: Mapping[str, Schema],
        inputs: Mapping[str, Multiset],
        now: int = 0,
    ) -> None:
        self._peek = peek
        self._schemas = schemas
        self._now = now
        self._turns = Turns(peek.whole) if Now in peek.asks else None
        self._inputs: dict[str, Counter[Row]] = {name: Counter() for name in inputs}
        for name, rows in inputs.items():
            self._inputs[name].update(rows)
        self.contents = self._asked()

    def changes(
        self, happened: Mapping[str, Sequence[Change]], until: int | None = None
    ) -> list[Change]:
        """What the plan makes of the collections' changes before a time; None for all there are."""
        every: dict[int, list[tuple[str, Row, int]]] = {}
        for name, changes in happened.items():
            for row, time, diff in changes:
                every.setdefault(time, []).append((name, row, diff))
        made: list[Change] = []
        for time in self._times(sorted(every), until):
            for name, row, diff in every.get(time, ()):
                own = self._inputs[name]
                own[row] += diff
                if not own[row]:
                    del own[row]
            check_size(self._inputs)
            before, self.contents = self.contents, self._asked()
            made += difference(self.contents, before, time)
        return made

    def _times(self, changes: list[int], until: int | None) -> Iterator[int]:
        """The times at which the contents may change, one after the other."""
        if self._turns is None:
            yield from changes
            return
        left = iter(changes)
        change = next(left, None)
        while True:
            turn = self._turns.after(self._now, self._leaf)
            coming = [t for t in (turn, change) if t is not None and (until is None or t < until)]
            if not coming:
                return
            self._now = min(coming)
            if change == self._now:
                change = next(left, None)
                self._turns.changed()
            yield self._now

    def _asked(self) -> Multiset:
        shape = self._peek.shape
        if self._turns is not None:
            shape = shape.bound(self._peek.values, self._now)
        return evaluate(shape.rest, {leaf.name: self._leaf(leaf) for leaf in shape.leaves})

    def _leaf(self, leaf: Leaf) -> Multiset:
        name = leaf.collection
        return narrowed(leaf, self._schemas[name], self._inputs[name].items())


def check_size(inputs: Mapping[str, Mapping[Row, int]]) -> None:
    """Raise `Unsupported` when the inputs are too large to be kept."""
    total = sum(map(len, inputs.values()))
    if total > ROWS_MAX:
        raise too_large(total)


def too_large(rows: int) -> Unsupported:
    """The refusal of a query whose inputs are not kept in memory."""
    return Unsupported(
        f"SUBSCRIBE to this query would keep {rows} rows in memory",
        detail=f"A query that is more than a filter and a projection is followed up to {ROWS_MAX} "
        "rows of input.",
        hint="CREATE MATERIALIZED VIEW of the query, and SUBSCRIBE to that.",
    )


def difference(more: Multiset, less: Multiset, time: int) -> list[Change]:
    """One multiset minus another, as changes at a time; what goes comes first."""
    gone = [(row, time, more.get(row, 0) - n) for row, n in less.items() if more.get(row, 0) < n]
    come = [(row, time, n - less.get(row, 0)) for row, n in more.items() if less.get(row, 0) < n]
    return gone + come
