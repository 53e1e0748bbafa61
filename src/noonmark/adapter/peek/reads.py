"""Reads of one database: the time is chosen, waited for, registered; then the answer is given.

    choose      oracle, frontiers and the query's own wishes -> one time (`timestamp`)
    complete    every input becomes complete there: tables are sealed, views ticked, sources awaited
    ask         the answer at that time (`answer`)

Law (strict): under strict serializable a read that began after another one ended is at the same
time or later, in whatever session: the oracle never gives a smaller time, and a time beyond the
oracle's is registered with it before the read is answered. Two kinds of reads are not bound by it:
AS OF names its time itself, and AS OF AT LEAST a time that nobody has come to yet is answered there
only by what is complete for ever.

Where it runs: the adapter's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from noonmark.adapter.contract import Chunks, Row
from noonmark.adapter.peek.answer import Answers, Path, Peek, SystemRows
from noonmark.adapter.peek.chunks import CHUNK_ROWS, Streamed
from noonmark.adapter.peek.errors import error_of
from noonmark.adapter.peek.gather import Gatherer, Multiset
from noonmark.adapter.peek.mirrors import Mirrors
from noonmark.adapter.session.holds import Held, Holds
from noonmark.adapter.subscribe.changes import Changes
from noonmark.adapter.subscribe.pulse import Pulse
from noonmark.adapter.timestamp.choice import STRICT, Choice, Input, Question, select_timestamp
from noonmark.compute.plan.naming import VIEW, errors_name
from noonmark.errors import BeforeSince
from noonmark.persist.log.definite import error_at
from noonmark.persist.log.state import Collection, State
from noonmark.persist.read.plan import check_answers
from noonmark.sql.ir import relation as r
from noonmark.storage.description import description_of

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.peek.spark import SparkJob

T = TypeVar("T")
#: How often a statement chooses its time, where the history of the first ones is gone.
CHOICES_MAX = 5


@dataclass(frozen=True)
class Wish:
    """What a statement and its session say about the time of a read.

    Attributes:
        isolation: `timestamp.STRICT` or `SERIALIZABLE`.
        as_of: AS OF this time.
        at_least: AS OF AT LEAST.
        recency: the time by which all that upstream had is in.
        now: the clock when the query arrived, if rows come and go with the time.
    """

    isolation: str = STRICT
    as_of: int | None = None
    at_least: bool = False
    recency: int | None = None
    now: int | None = None


NO_WISH = Wish()


class Reads:
    """See the module."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._client = database.client
        limits = database.workers.limits
        self.mirrors = Mirrors(database.client, bytes_max=limits.mirror_memory_mb << 20)
        self.gatherer = Gatherer(database.client, self.mirrors, limits.memory_mb << 20)
        self.answers = Answers(self.gatherer, lambda: self.state, database.workers)
        self.changes = Changes(database.client, lambda: database.workers.limits)
        self.pulse = Pulse(database)
        self.holds = Holds(database.client, database.retain_ms)
        self._is_view: dict[int, bool] = {}
        #: Names of a state that have never had an error: what a look-up asks again and again.
        self._sound: tuple[State | None, set[tuple[str, ...]]] = (None, set())

    @property
    def state(self) -> State:
        """The newest state of the location."""
        return self._client.state

    # -- the time --------------------------------------------------------------------------------

    async def question(self, names: Iterable[str], wish: Wish = NO_WISH) -> Question:
        """All that decides about the time of a read of these collections."""
        names = tuple(names)
        names_its_time = wish.as_of is not None and not wish.at_least
        strict = wish.isolation == STRICT and bool(names) and not names_its_time
        oracle = await self._database.oracle.bound(strict=strict)
        return self._question(names, wish, oracle)

    def _question(self, names: Iterable[str], wish: Wish, oracle: int) -> Question:
        state = self.state
        inputs = tuple(Input.of(state.collection(name)) for name in names)
        return Question(
            inputs, oracle, wish.isolation, wish.as_of, wish.at_least, wish.recency, wish.now
        )

    async def choose(self, names: Iterable[str], wish: Wish = NO_WISH) -> Choice:
        """The time of a read, registered so that no later strict read is before it."""
        names = tuple(names)
        if wish.as_of is None:
            await self._database.work.begun(names)
        question = await self.question(names, wish)
        choice = select_timestamp(question)
        if question.isolation == STRICT and not question.names_its_time:
            await self._register(question, choice.time)
        return choice

    async def choose_held(
        self,
        names: Iterable[str],
        wish: Wish = NO_WISH,
        domain: Callable[[int], Iterable[str]] | None = None,
    ) -> tuple[Choice, Held]:
        """The time of a read, and what keeps it readable; chosen again where history went between.

        Args:
            names: the collections that are read.
            wish: what the query asks for.
            domain: what else is held at the time that was chosen; only these without one.

        Raises:
            BeforeSince: the time that the query names is gone.
        """
        names = tuple(names)
        for left in reversed(range(CHOICES_MAX)):
            choice = await self.choose(names, wish)
            held = names if domain is None else domain(choice.time)
            try:
                return choice, await self.holds.take(held, choice.time)
            except BeforeSince:
                if not left or (wish.as_of is not None and not wish.at_least):
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _register(self, question: Question, time: int) -> None:
        """From now on strict reads are at `time` or later.

        A time that AS OF AT LEAST asks for may be far ahead: it is waited for first, so that nobody
        else has to, and registered only when somebody has come to it.
        """
        if time <= question.oracle:
            return
        if question.at_least and time == question.as_of:
            await self.complete([each.name for each in question.inputs], time)
            is_open = any(each.upper is not None for each in question.inputs)
            if not is_open and time > self._client.clock.now_ms():
                return
        await self._database.oracle.apply_write(time)

    async def complete(self, names: Iterable[str], time: int) -> None:
        """Make the collections complete at a time, as soon as that can be."""
        pending = [name for name in names if not self._is_complete(name, time)]
        if pending:
            await self._database.work.bring(pending, time)

    def _is_complete(self, name: str, time: int) -> bool:
        return not self.state.collection(name).upper.less_equal(time)

    # -- the answer ------------------------------------------------------------------------------

    def fast_path(self, peek: Peek, values: Sequence[Any]) -> list[Row] | None:
        """A strict read now, of a peek that is not bound yet, when nothing must be waited for."""
        time = self.strict_time()
        if time is None or peek.system or not self.is_readable(peek.collections, time):
            return None
        return self.answers.fast_path(peek, values, time)

    def strict_time(self) -> int | None:
        """The time of a strict read that begins now, where it need not be waited for."""
        return self._database.oracle.read_without_waiting()

    def is_readable(self, names: tuple[str, ...], time: int) -> bool:
        """Whether a strict read at the oracle's time is at that time, and has an answer there."""
        state = self.state
        for name in names:
            # Where the oracle's time is allowed and complete, it is what `timestamp` chooses.
            found = state.collection(name)
            if not found.since.less_equal(time) or found.upper.less_equal(time):
                return False
        return self._has_no_errors(names, time)

    async def ask(self, peek: Peek, time: int, system: SystemRows) -> Chunks:
        """The rows of a peek at a time that was chosen; waits until its inputs are complete.

        What is read while the client takes it is held until it is taken. The writer collects no
        garbage that a read of its own process needs; a job of a replica is held from its beginning.
        """
        with self._reading(peek, time):
            return await self._ask(peek, time, system)

    def _reading(self, peek: Peek, time: int) -> AbstractContextManager[None]:
        """What is read stays: what completes it might advance its since past the time."""
        found = [self.state.collection(name).id for name in peek.collections]
        return self._client.local_holds.reading(found, time)

    async def _ask(self, peek: Peek, time: int, system: SystemRows) -> Chunks:
        await self.complete(peek.collections, time)
        await self.check_errors(peek.collections, time)
        held: Held | None = None
        if self._database.read_only and self.path(peek).kind == "spark":
            held = await self.holds.take(peek.collections, time, non_blocking=True)
        try:
            chunks = await self.answers.ask(peek, time, system, self._stream_spark)
        except BaseException:
            await self._let_go(held)
            raise
        if not isinstance(chunks, Streamed) or chunks.is_whole:
            await self._let_go(held)
            return chunks
        held = held or await self.holds.take(peek.collections, time)
        return chunks.then(partial(self.holds.release, held))

    async def _let_go(self, held: Held | None) -> None:
        if held is not None:
            await self.holds.release(held)

    async def multiset(self, peek: Peek, time: int, system: SystemRows) -> Multiset:
        """Like `ask`, as a multiset of the relation's rows."""
        with self._reading(peek, time):
            await self.complete(peek.collections, time)
            await self.check_errors(peek.collections, time)
            return await self.answers.multiset(peek, time, system, self._ask_spark)

    async def table(self, peek: Peek, time: int) -> pa.Table | None:
        """Like `multiset`, as columns, each row as often as it is there; None: by rows alone."""
        with self._reading(peek, time):
            await self.complete(peek.collections, time)
            await self.check_errors(peek.collections, time)
            return await self.answers.table(peek, time)

    def path(self, peek: Peek) -> Path:
        """Which way a peek would go now."""
        return self.answers.path(peek)

    async def _job(self, relation: r.Relation, time: int) -> SparkJob:
        spark = await self._database.spark()
        from noonmark.adapter.peek.spark import SparkJob  # door: only who needs Spark does

        return SparkJob(spark, self._client, relation, time, self._client.clock.fresh_id())

    async def _ask_spark(self, relation: r.Relation, time: int) -> Multiset:
        job = await self._job(relation, time)
        return await _unless_cancelled(job, job.multiset)

    async def _stream_spark(self, peek: Peek, time: int) -> Chunks:
        job = await self._job(peek.whole, time)
        # door: Spark's modules: a server starts without them
        from noonmark.adapter.peek.spark import can_order

        if not can_order(peek.order):
            rows = await _unless_cancelled(job, job.multiset)
            return await self.answers.finished(peek, rows)
        pieces = await _unless_cancelled(job, partial(job.pieces, peek.order))
        # What fails at once fails before the first row.
        first = await _unless_cancelled(job, partial(next, pieces, None))

        async def chunks() -> AsyncGenerator[Sequence[Row], None]:
            piece = first
            while piece is not None:
                rows = peek.finish(piece)  # more than a chunk only where rows are there often
                for start in range(0, len(rows), CHUNK_ROWS):
                    yield rows[start : start + CHUNK_ROWS]
                piece = await _unless_cancelled(job, partial(next, pieces, None))

        return Streamed(chunks(), partial(asyncio.to_thread, job.give_up))

    # -- what has no answer --------------------------------------------------------------------

    def error_collections(self, names: Sequence[str]) -> list[Collection]:
        """The collections of the errors of the views among these."""
        state = self.state
        found = []
        for name in names:
            collection = state.collection(name)
            if collection.id not in self._is_view:
                self._is_view[collection.id] = (
                    bool(collection.annotation) and description_of(collection).kind == VIEW
                )
            if self._is_view[collection.id] and errors_name(name) in state.names:
                found.append(state.collection(errors_name(name)))
        return found

    def _has_no_errors(self, names: tuple[str, ...], time: int) -> bool:
        state = self.state
        known, sound = self._sound
        if known is not state:
            sound = set()
            self._sound = (state, sound)
        elif names in sound:
            return True
        errors = self.error_collections(names)
        if not any(each.batches for each in errors) and not any(
            state.collection(name).errors for name in names
        ):
            sound.add(names)
            return True
        if any(error_at(state.collection(name).errors, time) is not None for name in names):
            return False
        for collection in errors:
            if collection.batches:
                mirror = self.mirrors.now(collection, time)
                if mirror is None or mirror.rows:
                    return False
        return True

    async def check_errors(self, names: Sequence[str], time: int) -> None:
        """Raise the error of one of these that has no answer at the time.

        Raises:
            DefiniteError: a collection has no rows from some time on, or reads one that has none.
            EvaluationError: a view cannot be computed on the rows of that time.
        """
        for name in names:
            check_answers(self.state.collection(name), time)
        for collection in self.error_collections(names):
            if not collection.batches:
                continue
            mirror = await self.mirrors.at(collection, time)
            if mirror is None:
                found = await self._first_error(collection, time)
            else:
                found = next(iter(sorted(mirror.rows)), None)
            if found is not None:
                raise error_of(found[0], found[1], collection.name.removesuffix("_errors"))

    async def _first_error(self, collection: Collection, time: int) -> Row | None:
        read = self._client.create_or_load(collection.name)[1]
        snapshot = await asyncio.wrap_future(read.snapshot(time))
        counts = await asyncio.to_thread(snapshot.counts)
        return next(iter(sorted(counts)), None)


async def _unless_cancelled(job: SparkJob, act: Callable[[], T]) -> T:
    """Do a part of a job in a thread; if nobody waits any more, its tasks make room for others."""
    try:
        return await asyncio.to_thread(act)
    except asyncio.CancelledError:
        await asyncio.shield(asyncio.to_thread(job.give_up))
        raise
