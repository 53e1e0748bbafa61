"""The changes of a query, exact at every time, in process.

A linear plan over one collection (filter, project) is applied to the changes themselves. Any other
plan keeps its inputs in memory, and is asked again at every time at which one of them changed, or
at which one of their rows has its turn in a temporal filter: what it gives more or less than before
are the changes. That is cheap for small inputs only; larger ones
are refused, with the advice to subscribe to a materialized view: that is maintained by its changes.

Law: the changes at t are the query's contents at t minus its contents just before t.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import groupby
from typing import Self

from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.gather import Given, Multiset, columns_of, narrowed, own_rows
from noonmark.adapter.peek.rows import Change, Row
from noonmark.adapter.peek.shape import Leaf
from noonmark.adapter.subscribe.turns import Turns
from noonmark.errors import Unsupported
from noonmark.rows.schema import Schema
from noonmark.sql.ir.asked import Now

#: Computes a peek from the rows of its leaves: `peek.answer.Answers.computed`.
Compute = Callable[[Peek, Mapping[str, Given]], Awaitable[Multiset]]
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

    def __init__(self, peek: Peek, ask: Compute) -> None:
        self._peek = peek
        self._ask = ask
        (leaf,) = peek.shape.leaves
        #: The columns that are taken, where nothing else is done: that needs no worker.
        self._picked = peek.shape.picks if leaf.predicate is None else None

    async def changes(self, happened: Sequence[Change], schema: Schema) -> list[Change]:
        """What the plan makes of the collection's changes, which are sorted by time."""
        made: list[Change] = []
        if self._picked is not None:
            taken = self._taken(self._picked, happened, schema)
            for time, group in by_time(taken):
                counts: dict[Row, int] = {}
                for row, _, diff in group:
                    counts[row] = counts.get(row, 0) + diff
                made += [(row, time, diff) for row, diff in counts.items() if diff < 0]
                made += [(row, time, diff) for row, diff in counts.items() if diff > 0]
            return made
        for time, group in by_time(happened):
            more = await self._asked([(row, diff) for row, _, diff in group if diff > 0], schema)
            less = await self._asked([(row, -diff) for row, _, diff in group if diff < 0], schema)
            made += difference(more, less, time)
        return made

    def _taken(
        self, picked: tuple[int, ...], happened: Sequence[Change], schema: Schema
    ) -> Sequence[Change]:
        """The changes, of which only some columns are there."""
        (leaf,) = self._peek.shape.leaves
        at = [schema.index(leaf.scan.columns.names[place]) for place in picked]
        if at == list(range(len(schema))):
            return happened
        return [(tuple([row[place] for place in at]), time, diff) for row, time, diff in happened]

    async def _asked(self, rows: Given, schema: Schema) -> Multiset:
        (leaf,) = self._peek.shape.leaves
        own = own_rows(leaf, columns_of(leaf, schema, rows))
        return await self._ask(self._peek, {leaf.name: own}) if own else {}


class Recomputed:
    """The changes of any plan over small inputs, which are kept by collection; see `begun`."""

    contents: Multiset

    def __init__(
        self,
        peek: Peek,
        schemas: Mapping[str, Schema],
        inputs: Mapping[str, Multiset],
        ask: Compute,
        now: int = 0,
    ) -> None:
        self._peek = peek
        self._ask = ask
        self._schemas = schemas
        self._now = now
        self._turns = Turns(peek.whole) if Now in peek.asks else None
        self._inputs: dict[str, Counter[Row]] = {name: Counter() for name in inputs}
        for name, rows in inputs.items():
            self._inputs[name].update(rows)

    async def begun(self) -> Self:
        """The same, once its first contents are known."""
        self.contents = await self._asked()
        return self

    async def changes(
        self, happened: Mapping[str, Sequence[Change]], until: int | None = None
    ) -> list[Change]:
        """What the plan makes of the collections' changes before a time; None for all there are."""
        every: dict[int, list[tuple[str, Row, int]]] = {}
        for name, changes in happened.items():
            for row, time, diff in changes:
                every.setdefault(time, []).append((name, row, diff))
        made: list[Change] = []
        async for time in self._times(sorted(every), until):
            for name, row, diff in every.get(time, ()):
                own = self._inputs[name]
                own[row] += diff
                if not own[row]:
                    del own[row]
            check_size(self._inputs)
            before, self.contents = self.contents, await self._asked()
            made += difference(self.contents, before, time)
        return made

    async def _times(self, changes: list[int], until: int | None) -> AsyncIterator[int]:
        """The times at which the contents may change, one after the other."""
        if self._turns is None:
            for time in changes:
                yield time
            return
        left = iter(changes)
        change = next(left, None)
        while True:
            turn = await asyncio.to_thread(self._turns.after, self._now, self._leaf)
            coming = [t for t in (turn, change) if t is not None and (until is None or t < until)]
            if not coming:
                return
            self._now = min(coming)
            if change == self._now:
                change = next(left, None)
                self._turns.changed()
            yield self._now

    async def _asked(self) -> Multiset:
        peek = self._peek
        if self._turns is not None:
            peek = peek.bound(peek.values, self._now)
        given: dict[str, Given] = {}
        for leaf in peek.shape.leaves:
            schema, rows = self._schemas[leaf.collection], self._inputs[leaf.collection]
            given[leaf.name] = own_rows(leaf, columns_of(leaf, schema, list(rows.items())))
        return await self._ask(peek, given)

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
