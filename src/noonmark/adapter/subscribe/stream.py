"""A subscription as chunks of rows: the snapshot, then changes and progress as they happen.

Its inputs are held from its time on, and let go as far as it has told what happened. It ends when
everything before UP TO was given, when its inputs have ended, when it is closed, or with the error
of one of its inputs, at the time at which that has no answer any more; all before it was given.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from noonmark.adapter.contract import Row
from noonmark.adapter.peek.answer import Peek, SystemRows
from noonmark.adapter.peek.chunks import CHUNK_ROWS, Streamed
from noonmark.adapter.peek.errors import error_of
from noonmark.adapter.peek.gather import Multiset
from noonmark.adapter.peek.mirrors import row_count
from noonmark.adapter.peek.rows import Change, finisher
from noonmark.adapter.session.holds import Held
from noonmark.adapter.subscribe.envelope import Envelope
from noonmark.adapter.subscribe.follow import (
    ROWS_MAX,
    Linear,
    Recomputed,
    difference,
    is_linear,
    too_large,
)
from noonmark.adapter.subscribe.pulse import INTERVAL_S
from noonmark.errors import EvaluationError, NoonmarkError, UnknownCollection
from noonmark.persist.log.definite import first_error, refusal
from noonmark.persist.log.state import Collection
from noonmark.sql.ir.asked import Now

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

Step = tuple[list[Change], int | None]


@dataclass(frozen=True)
class Subscribed:
    """What is subscribed to.

    Attributes:
        peek: the query.
        envelope: how its changes are shown.
        as_of: the time of the snapshot; changes are those after it.
        snapshot: whether the snapshot is given.
        up_to: the time at which it ends; None for never.
        system: the rows of system relations, for a query over them.
    """

    peek: Peek
    envelope: Envelope
    as_of: int
    snapshot: bool = True
    up_to: int | None = None
    system: SystemRows | None = None


class Stream:
    """One subscription under way."""

    def __init__(self, database: Database, what: Subscribed, held: Held) -> None:
        self._reads = database.reads
        self._work = database.work
        self._clock = database.clock
        self._what = what
        self._held = held
        self._names = what.peek.collections
        state = database.reads.state
        self._numbers = [state.collection(name).id for name in self._names]
        columns = what.peek.relation.schema.columns[: what.peek.width]
        self._finish = finisher([column.type for column in columns])

    def chunks(self) -> Streamed:
        """The rows, as they happen."""
        return Streamed(self._until_dropped(), lambda: self._reads.holds.release(self._held))

    async def _until_dropped(self) -> AsyncGenerator[Sequence[Row], None]:
        """A name that is used again is another relation: this one is followed to its end."""
        try:
            async for chunk in self._chunks():
                yield chunk
        except UnknownCollection:
            there = self._reads.state.collections
            known = zip(self._names, self._numbers, strict=True)
            gone = [name for name, number in known if number not in there]
            if not gone:
                raise
            raise UnknownCollection(
                f'relation "{gone[0]}" was dropped while it was followed',
                detail="All changes before were given.",
                hint="SUBSCRIBE to a relation that exists.",
            ) from None

    @property
    def _followed(self) -> list[Collection]:
        """What it follows, whatever that is called now; in the order of the plan's names."""
        return [self._reads.state.collection(number) for number in self._numbers]

    @property
    def _called(self) -> list[str]:
        return [each.name for each in self._followed]

    async def _chunks(self) -> AsyncGenerator[Sequence[Row], None]:
        what = self._what
        follows_time = Now in what.peek.asks
        beats = what.envelope.progress or what.up_to is not None or follows_time
        with self._reads.pulse.following(self._called) if beats else nullcontext():
            async for changes, upper in self._steps():
                rows = what.envelope.rows(self._cut(changes))
                for start in range(0, len(rows), CHUNK_ROWS):
                    yield rows[start : start + CHUNK_ROWS]
                if upper is None:
                    continue
                if what.envelope.progress:
                    yield [what.envelope.told(upper)]
                await self._held.advance(upper - 1)

    def _cut(self, changes: Iterable[Change]) -> list[Change]:
        """Only the columns of the query, in the form that clients get."""
        taken = list(changes)
        width = self._what.peek.width
        rows = self._finish(row[:width] for row, _, _ in taken)
        return [(row, time, diff) for row, (_, time, diff) in zip(rows, taken, strict=True)]

    async def _steps(self) -> AsyncIterator[Step]:
        """Changes, and how far they are all of them; None while more of that time may follow."""
        what = self._what
        if what.up_to is not None and what.up_to <= what.as_of:
            return
        if what.system is not None:
            steps = self._looked_at(what.system)
        else:
            steps = self._linear() if is_linear(what.peek) else self._recomputed()
        async for changes, upper in steps:
            if what.up_to is None or (upper is not None and upper <= what.up_to):
                yield changes, upper
            elif upper is None:
                yield changes, None
            else:
                yield [change for change in changes if change[1] < what.up_to], what.up_to
                return
            if upper == what.up_to and upper is not None:
                return

    # -- a filter and a projection of one collection ---------------------------------------------

    async def _linear(self) -> AsyncIterator[Step]:
        what = self._what
        (number,) = self._numbers
        linear = Linear(what.peek, self._reads.answers.computed)
        async for step in self._first(self._linear_snapshot()):
            yield step
        seen = what.as_of
        while True:
            segment = await self._reads.changes.following(number, seen)
            good, error = await self._good(segment.upper, seen, segment.changes)
            until = segment.upper if error is None else error.fields["time"]
            upper, made = segment.upper, await linear.changes(good, segment.schema)
            del segment, good  # nothing else is held while the client does not read
            yield made, until
            if error is not None:
                raise error
            if upper is None:
                return
            seen = upper - 1

    async def _linear_snapshot(self) -> AsyncIterator[Multiset]:
        peek = self._what.peek
        (leaf,) = peek.shape.leaves
        async for piece in self._reads.gatherer.stream(leaf, self._what.as_of, *self._followed):
            yield await self._reads.answers.computed(peek, {leaf.name: piece})

    async def _first(self, pieces: AsyncIterator[Multiset]) -> AsyncIterator[Step]:
        """The snapshot, as changes at its time."""
        what = self._what
        await self._reads.complete(self._called, what.as_of)
        await self._reads.check_errors(self._called, what.as_of)
        whole: list[Change] = []
        async for piece in pieces:
            changes = [(row, what.as_of, count) for row, count in piece.items()]
            if not what.snapshot:
                continue
            if what.envelope.kind is None:
                yield changes, None
            else:
                whole += changes  # a key is shown once: all of its rows must be known
        yield whole, what.as_of + 1

    # -- system relations, which have no history ---------------------------------------------------

    async def _looked_at(self, system: SystemRows) -> AsyncIterator[Step]:
        """What is different whenever it is looked again: each look is at the time of its moment."""
        what, reads = self._what, self._reads
        contents = await reads.multiset(what.peek, what.as_of, system)
        async for step in self._first(_one(contents)):
            yield step
        seen = what.as_of
        while True:
            await self._clock.sleep(INTERVAL_S)
            seen = max(seen + 1, self._clock.now_ms())
            before, contents = contents, await reads.multiset(what.peek, seen, system)
            yield difference(contents, before, seen), seen + 1

    # -- any other query -------------------------------------------------------------------------

    async def _recomputed(self) -> AsyncIterator[Step]:
        what, reads = self._what, self._reads
        collections = self._followed
        if (total := sum(map(row_count, collections))) > ROWS_MAX:
            raise too_large(total)
        await reads.complete(self._called, what.as_of)
        known = dict(zip(self._names, collections, strict=True))
        inputs = {name: await self._contents(each) for name, each in known.items()}
        schemas = {name: each.schema for name, each in known.items()}
        ask = reads.answers.computed
        query = await Recomputed(what.peek, schemas, inputs, ask, what.as_of).begun()
        async for step in self._first(_one(query.contents)):
            yield step
        if not collections:  # nothing will ever be written
            yield await query.changes({}), None
            return
        seen, numbers = what.as_of, tuple(each.id for each in collections)
        while True:
            upper = await self._move(numbers, seen)
            # With the columns that the collections had when the subscription began.
            pieces = (reads.changes.piece(each, seen, upper) for each in collections)
            parts = await asyncio.gather(*pieces)
            upper = min((part.upper for part in parts if part.upper is not None), default=None)
            parts = [part.before(upper) for part in parts]
            every = sorted((c for part in parts for c in part.changes), key=lambda c: c[1])
            _, error = await self._good(upper, seen, every)
            end = None if error is None else error.fields["time"]
            happened = {
                name: [c for c in part.changes if end is None or c[1] < end]
                for name, part in zip(self._names, parts, strict=True)
            }
            until = upper if end is None else end
            made = await query.changes(happened, until)
            del parts, every, happened
            yield made, until
            if error is not None:
                raise error
            if upper is None:
                return
            seen = upper - 1

    async def _contents(self, begun: Collection) -> Multiset:
        """The rows, with the columns that the collection had when the subscription began."""
        collection = self._reads.state.collection(begun.id)
        mirror = await self._reads.mirrors.at(collection, self._what.as_of)
        if mirror is None:
            return await self._reads.gatherer.whole(begun, self._what.as_of)
        width = len(begun.schema)
        if width == len(mirror.schema):
            return dict(mirror.rows)
        cut: Counter[Row] = Counter()
        for row, count in mirror.rows.items():
            cut[row[:width]] += count
        return cut

    async def _move(self, numbers: tuple[int, ...], seen: int) -> int | None:
        """The frontier that all inputs have passed, once it is beyond `seen`."""
        while True:
            await self._reads.changes.moved(numbers, seen + 1)
            uppers = self._uppers(numbers)
            if not uppers:
                return None
            if max(uppers) > min(uppers):  # one of them moved: the others follow
                await self._work.bring(self._called, max(uppers) - 1)
                uppers = self._uppers(numbers)
            if not uppers or min(uppers) > seen + 1:
                return min(uppers, default=None)

    def _uppers(self, numbers: tuple[int, ...]) -> list[int]:
        state = self._reads.state
        found = (state.collection(number).upper.only() for number in numbers)
        return [upper for upper in found if upper is not None]

    # -- views without an answer -----------------------------------------------------------------

    async def _good(
        self, upper: int | None, seen: int, changes: Sequence[Change]
    ) -> tuple[Sequence[Change], NoonmarkError | None]:
        """The changes before the first time at which one of the inputs has no answer."""
        errors = self._definite(upper, seen)
        for collection in self._reads.error_collections(self._called):
            error = await self._first_error(collection, seen, upper)
            errors += [] if error is None else [error]
        if not errors:
            return changes, None
        first = min(errors, key=lambda each: each.fields["time"])
        return [change for change in changes if change[1] < first.fields["time"]], first

    def _definite(self, upper: int | None, seen: int) -> list[NoonmarkError]:
        """The definite errors of the inputs after `seen`, each with the time at which it is met."""
        met: list[NoonmarkError] = []
        for collection in self._followed:
            last = None if upper is None else upper - 1
            change = first_error(collection.errors, seen + 1, last)
            if change is not None:
                error = refusal(collection.name, change)
                error.fields["time"] = max(change.time, seen + 1)
                met.append(error)
        return met

    async def _first_error(
        self, collection: Collection, seen: int, upper: int | None
    ) -> EvaluationError | None:
        if not collection.batches:
            return None
        segment = await self._reads.changes.between(collection, seen, upper)
        for row, time, diff in segment.changes:
            if diff > 0:
                view = collection.name.removesuffix("_errors")
                error = error_of(row[0], row[1], view)
                error.fields["time"] = time
                return error
        return None


async def _one(contents: Multiset) -> AsyncIterator[Multiset]:
    yield contents
