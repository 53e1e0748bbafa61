"""What a read gives back: a `Snapshot` of one time, or a `Listen` to all that follows.

    snapshot(as_of)   the contents at as_of, once they are complete
    listen(as_of)     updates at times after as_of, with statements of progress

Law: contents at t = snapshot(as_of) + every update of listen(as_of) at times up to t, for each t
that a progress statement has passed.

Where the collection is in a definite error (`definite`), a listen gives all that was before, with
progress up to the error's time, and then raises it. One that was opened with `over_errors` goes on
when the error has been retracted: what happened meanwhile comes as one step, at that time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.errors import IntegrityError, UsageError
from noonmark.persist.codec import TIME_MAX, Codec, updates_of
from noonmark.persist.log.definite import answered_from, first_error, refusal
from noonmark.persist.log.state import Frontier, State
from noonmark.persist.part.run import DIFF, TIME, consolidate
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.read.updates import shape, stored_schema
from noonmark.rows.identity import hashable
from noonmark.tvc import Antichain, Update

if TYPE_CHECKING:
    from noonmark.persist.client import Client
    from noonmark.persist.hold import HoldHandle


class Snapshot:
    """The contents of a collection at one time: rows with their multiplicities in `_diff`.

    A row may come in several entries whose multiplicities add up. Reads as it is iterated, in
    bounded memory, from parts that stay until the snapshot is let go.
    """

    def __init__(self, client: Client, plan: Plan, codec: Codec) -> None:
        self._client = client
        self._plan = plan
        self._codec = codec
        self.as_of = plan.query.as_of

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the tables."""
        newest = len(self._plan.collection.schemas) - 1
        return shape(stored_schema(self._plan.collection, newest).empty_table(), self._plan).schema

    def __aiter__(self) -> AsyncIterator[pa.Table]:
        return self._client.reader.contents(self._plan)

    def tables(self) -> Iterator[pa.Table]:
        """The contents, table by table, for a thread."""
        yield from self._client.iterate(self._client.reader.contents(self._plan))

    def to_arrow(self) -> pa.Table:
        """The contents as one table."""
        return pa.concat_tables([self.schema.empty_table(), *self.tables()])

    def counts(self) -> Counter[Any]:
        """The contents as a multiset of the codec's values."""
        return counts_of(self.to_arrow(), self._codec)

    def rows(self) -> list[Any]:
        """The contents as the codec's values, each as often as it is there."""
        counts = self.counts()
        if any(count < 0 for count in counts.values()):
            raise IntegrityError(
                f'"{self._plan.collection.name}" has rows with negative multiplicity',
                detail="More copies of a row were retracted than written.",
            )
        return list(counts.elements())


def counts_of(table: pa.Table, codec: Codec) -> Counter[Any]:
    """Rows with `_diff` as a multiset of `hashable` values, zeros dropped."""
    counts: Counter[Any] = Counter()
    diffs = table.column(DIFF).to_pylist()
    values = codec.decode(table.drop_columns([DIFF]))
    if any(pa.types.is_nested(each) or pa.types.is_floating(each) for each in table.schema.types):
        values = [hashable(value) for value in values]
    for value, diff in zip(values, diffs, strict=True):
        counts[value] += diff
    return Counter({value: count for value, count in counts.items() if count})


@dataclass(frozen=True)
class Step:
    """One step of a listen: what happened, and how far everything is known now."""

    table: pa.Table
    progress: Frontier
    codec: Codec

    @property
    def updates(self) -> list[Update[Any, int]]:
        """The updates as values of the codec."""
        return updates_of(self.table, self.codec)


class Listen:
    """Updates at times after `as_of`, as they become complete; ends when the collection does."""

    def __init__(
        self,
        client: Client,
        collection: int,
        codec: Codec,
        as_of: int,
        *,
        over_errors: bool = False,
    ) -> None:
        self._client = client
        self._collection = collection
        self._codec = codec
        self._over_errors = over_errors
        self._cancelled = asyncio.Event()
        self.progress: Frontier = Antichain.of(as_of + 1)
        self.hold: HoldHandle | None = None

    async def next(self) -> Step | None:
        """Wait for upper to pass what was delivered; None at the end.

        Raises:
            DefiniteError: the collection is in error at the time that is next. What was before it
                has been given; called again, it says the same until the error is retracted, and
                with `over_errors` goes on then.
        """
        seen = self.progress.only()
        if seen is None or self._cancelled.is_set():
            return None
        if self.hold is not None:
            # Only now, when the caller has what came before: were it to fail after a read, the
            # updates just read would be lost.
            await self.hold.downgrade_soon(Antichain.of(seen - 1))
        upper = await self._advance(seen)
        if upper is None:
            return None
        upper, again = self._answered(seen, upper)
        last = upper.only()
        as_of = TIME_MAX if last is None else last - 1
        query = Query(as_of=as_of, after=seen - 1, despite_error=again is not None)
        plan = self._client.reader.plan(self._collection, query)
        tables = [table async for table in self._client.reader.contents(plan)]
        newest = len(plan.collection.schemas) - 1
        empty = stored_schema(plan.collection, newest).empty_table()
        table = pa.concat_tables([empty, *tables])
        if again is not None:
            times = pa.repeat(pa.scalar(again, pa.int64()), table.num_rows)
            table = consolidate(table.set_column(table.column_names.index(TIME), TIME, times))
        self.progress = upper
        return Step(table, upper, self._codec)

    def _answered(self, seen: int, upper: Frontier) -> tuple[Frontier, int | None]:
        """How far there are rows, up to `upper`; and the time that an error between ends at."""
        found = self._client.journal.state.collection(self._collection)
        last = upper.only()
        error = first_error(found.errors, seen, None if last is None else last - 1)
        if error is None:
            return upper, None
        if error.time > seen:
            return Antichain.of(error.time), None
        again = answered_from(found.errors, seen) if self._over_errors else None
        if again is None or upper.less_equal(again):
            raise refusal(found.name, error)
        return Antichain.of(again + 1), again

    async def _advance(self, seen: int) -> Frontier | None:
        """The upper, once it is beyond `seen`; None when cancelled first."""

        def ready(state: State) -> bool:
            return not state.collection(self._collection).upper.less_equal(seen)

        journal = self._client.journal
        waits = [
            asyncio.ensure_future(journal.wait_for(ready)),
            asyncio.ensure_future(self._cancelled.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._cancelled.is_set():
            return None
        if waits[0].done() and not waits[0].cancelled():
            waits[0].result()
        return journal.state.collection(self._collection).upper

    def cancel(self) -> None:
        """End the listen, from any thread; a waiting `next` returns None."""
        self._client.runtime.call_soon(self._cancelled.set)

    async def close(self) -> None:
        """End the listen and release its hold."""
        self._cancelled.set()
        hold, self.hold = self.hold, None
        if hold is not None:
            await hold.release()

    def __aiter__(self) -> Listen:
        return self

    async def __anext__(self) -> Step:
        step = await self.next()
        if step is None:
            await self.close()
            raise StopAsyncIteration
        return step

    def __iter__(self) -> Iterator[Step]:
        """Steps for a thread."""
        if self._client.runtime.on_loop():
            raise UsageError("use `async for` on the persist loop")
        try:
            while (step := self._client.runtime.submit(self.next()).result()) is not None:
                yield step
        finally:
            self._client.runtime.submit(self.close()).result()
