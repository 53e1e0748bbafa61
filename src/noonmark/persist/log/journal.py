"""The journal: one location's log, followed and appended to.

A `Journal` knows the newest state that this process has seen and moves it forward in two ways:
`refresh` applies what others appended, `commit` appends one entry. Both end in `publish`, which
wakes everybody who waits for a state.

Commit is compare-and-set: the entry is put at ``state.seqno + 1`` and nowhere else. If that
number is taken the state was not the newest: the journal refreshes, evaluates the transactions
again and tries the next number. So an accepted transaction was checked against exactly the state
that it follows.

Time. Leases and garbage are judged by the time that the writer's entries carry. It follows the
writer's wall clock and never goes back; where the clock is behind (it stepped back, or that of an
earlier writer was ahead), it goes on from the newest entry at the pace of the monotonic clock. So
it never stands still: a lease ends after its length at the latest.

An append whose answer was lost is settled by its token: the entry found at that number either
carries it or does not. A writer never moves to another number before that is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from noonmark import defect
from noonmark.clock import Clock
from noonmark.durations import Durations
from noonmark.errors import (
    Determinate,
    Indeterminate,
    IntegrityError,
    MissingObject,
    NoonmarkError,
    StorageError,
    StorageUnfit,
)
from noonmark.persist.config import Config
from noonmark.persist.location import Blob, BlobEntry, Consensus
from noonmark.persist.log import machine
from noonmark.persist.log.command import Entry, Transaction, decode_entry, encode_entry
from noonmark.persist.log.dependence import NOTHING, behind, dependence
from noonmark.persist.log.frame import ENTRY, ROLLUP, open_frame, seal_frame
from noonmark.persist.log.head import Head, check_tail
from noonmark.persist.log.state import EMPTY, State, encoder, state_decoder
from noonmark.persist.retry import Retries

ROLLUP_PREFIX = "rollup/"
_READ_AHEAD = 256


@dataclass(frozen=True)
class Outcome:
    """What became of one transaction: refused with an error, or in the log as part of `state`."""

    state: State
    error: NoonmarkError | None = None


class Journal:
    """See the module. Runs on one event loop."""

    def __init__(
        self, blob: Blob, consensus: Consensus, clock: Clock, config: Config, retries: Retries
    ) -> None:
        self.blob = blob
        self.consensus = consensus
        self.clock = clock
        self.config = config
        self.retries = retries
        self.state: State = EMPTY
        #: How long this process's entries took to be durable.
        self.commits = Durations()
        self.entries_since_rollup = 0
        self.bytes_since_rollup = 0
        self._rollup_bytes = 0
        self._rollup_seqno = 0
        self.head = Head(consensus, clock)
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()
        self._damage: IntegrityError | None = None
        #: The newest time of an entry, and when this process learned of it.
        self._time = 0, 0.0

    async def load(self) -> State:
        """Find the newest state: the newest rollup and the entries after it."""
        async with self._turn:
            noted = await self.retries.run("read count", self.consensus.noted)
            await self._load_rollup()
            await self._follow()
            check_tail("log", noted, self.state.seqno)
        return self.state

    async def refresh(self) -> State:
        """Apply what others have appended since.

        When the log is damaged, everybody who waits for a state is told, too: it will not come.
        """
        async with self._turn:
            try:
                await self._follow()
            except IntegrityError as error:
                self._damage = error
                self._wake()
                raise
            self._damage = None
        return self.state

    def now_ms(self) -> int:
        """The time of this location; see the module."""
        newest_ms, learned = self._time
        elapsed_ms = int((self.clock.monotonic() - learned) * 1000)
        return max(self.clock.now_ms(), newest_ms + elapsed_ms)

    def publish(self, state: State) -> None:
        """Make `state` the newest and wake who waits for one."""
        if state is not self.state:
            if state.now_ms > self._time[0]:
                self._time = state.now_ms, self.clock.monotonic()
            self.state = state
            self._wake()

    def _wake(self) -> None:
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    async def wait_for(self, ready: Callable[[State], bool]) -> State:
        """The first published state that is `ready`; `IntegrityError` when the log is damaged."""
        while not ready(self.state):
            if self._damage is not None:
                raise self._damage
            await self._changed.wait()
        return self.state

    async def commit(self, epoch: int, transactions: Sequence[Transaction]) -> list[Outcome]:
        """Append the transactions that the newest state accepts, as one entry.

        Args:
            epoch: the writer's epoch; 0 for a reader managing its holds.
            transactions: each is accepted or refused by itself, in order, except that what relies
                on a refused one is refused, too. An exception that nobody foresaw refuses the one
                that raised it, as a defect.

        Raises:
            WriterError: the lock is not (or no longer) ours; nothing was committed.
            Determinate: storage failed until the deadline; nothing was committed.
            Indeterminate: likewise, and it is not known whether the entry is in the log.
        """
        async with self._turn:
            token = self.clock.fresh_id()
            unfit: dict[int, NoonmarkError] = {}
            while True:
                outcomes, entry, after = self._evaluate(epoch, transactions, token, unfit)
                if entry is None:
                    # Nothing will be put, so nothing shows yet that the state was the newest.
                    judged = self.state
                    await self._follow()
                    if self.state is judged:
                        return outcomes
                    continue
                try:
                    payload = encode_entry(entry)
                except Exception:
                    more = _not_encodable(entry, transactions, unfit)
                    if not more:
                        raise
                    unfit |= more
                    continue
                data = seal_frame(f"log/{entry.seqno}", ENTRY, payload)
                began = self.clock.monotonic()
                if await self._put(entry, data):
                    self.commits.add(self.clock.monotonic() - began)
                    if epoch:
                        self.head.reached(entry.seqno)
                    state = machine.advance(after, entry)
                    if self.state.seqno < entry.seqno:  # else settled late: we followed beyond it
                        self._note(len(data))
                        self.publish(state)
                    return [Outcome(state, outcome.error) for outcome in outcomes]
                await self._follow()

    def _evaluate(
        self,
        epoch: int,
        transactions: Sequence[Transaction],
        token: str,
        unfit: Mapping[int, NoonmarkError],
    ) -> tuple[list[Outcome], Entry | None, State]:
        state = self.state
        # A reader's clock ends nobody's lease: only the writer's entries carry time.
        now_ms = self.now_ms() if epoch else 0
        entry = Entry(state.seqno + 1, epoch, token, now_ms, tuple(transactions))
        machine.check_epoch(state, entry)
        outcomes: list[Outcome] = []
        accepted: list[Transaction] = []
        failed: list[tuple[frozenset[int], NoonmarkError]] = []
        for at, transaction in enumerate(transactions):
            own = NOTHING
            try:
                own = dependence(transaction)
                if at in unfit:
                    raise unfit[at]
                for changed, failure in failed:
                    if own.is_behind(changed, failure):
                        raise behind(failure)
                state = machine.apply(state, transaction, now_ms)
            except Exception as error:
                told = _told(error)
                outcomes.append(Outcome(state, told))
                failed.append((own.changes, told))
            else:
                accepted.append(transaction)
                outcomes.append(Outcome(state))
        if not accepted:
            return outcomes, None, state
        return outcomes, msgspec.structs.replace(entry, transactions=tuple(accepted)), state

    async def _put(self, entry: Entry, data: bytes) -> bool:
        """Whether `entry` is in the log at its number; only returns when that is certain."""
        pause = self.retries.backoff("append")
        in_doubt: Indeterminate | None = None
        while True:
            try:
                if await self.consensus.append(entry.seqno, data):
                    return True
                break
            except Determinate as error:
                await pause(in_doubt or error)
            except Indeterminate as error:
                in_doubt = error
                await pause(error)
            except StorageUnfit as error:
                if in_doubt is None:
                    raise
                raise in_doubt from error
        return await self._is_ours(entry)

    async def _is_ours(self, entry: Entry) -> bool:
        """Settle: is the entry at that number the one with our token?"""
        try:
            found = await self.retries.run("settle", partial(self.consensus.read, entry.seqno, 1))
        except MissingObject:
            # Truncated: a later writer went on without us. Its state remembers our last commit.
            try:
                await self._follow()
            except StorageError as error:
                raise _unsettled(entry, str(error)) from error
            eras = {era.epoch: era.token for era in self.state.eras}
            if entry.epoch == 0:
                return False  # a reader may say the same again: taking a hold twice is one hold
            if entry.epoch not in eras:
                raise _unsettled(entry, f"The log remembers {len(eras)} later writers.") from None
            return eras[entry.epoch] == entry.token
        except Determinate as error:
            raise _unsettled(entry, str(error)) from error
        return bool(found) and self._decode(entry.seqno, found[0]).token == entry.token

    async def _follow(self) -> None:
        while True:
            start = self.state.seqno + 1
            try:
                batch = await self.retries.run(
                    "read log",
                    lambda: self.consensus.read(start, _READ_AHEAD),  # noqa: B023
                )
            except MissingObject as error:
                before = self.state.seqno
                await self._load_rollup()
                if self.state.seqno == before:
                    raise MissingObject(
                        f"log entry {start} is gone and no rollup is newer",
                        detail=f"The newest state that can be read is entry {before}.",
                        hint="Restore the location from a copy.",
                        object=f"log/{start}",
                    ) from error
                continue
            state = self.state
            for seqno, data in enumerate(batch, start):
                state = machine.apply_entry(state, self._decode(seqno, data))
                self._note(len(data))
            self.publish(state)
            if len(batch) < _READ_AHEAD:
                return

    @staticmethod
    def _decode(seqno: int, data: bytes) -> Entry:
        return decode_entry(open_frame(f"log/{seqno}", ENTRY, data))

    def _note(self, size: int) -> None:
        self.entries_since_rollup += 1
        self.bytes_since_rollup += size

    async def _load_rollup(self) -> None:
        """Move to the newest rollup, if it is newer than what is known."""
        while True:
            names = [e.key for e in await self._list_rollups()]
            if not names or _seqno_of(names[-1]) <= self.state.seqno:
                return
            name = names[-1]
            data = await self.retries.run("read rollup", lambda: self.blob.get(name))  # noqa: B023
            if data is None:
                continue  # a newer rollup replaced it between listing and reading
            self._rollup_seqno = _seqno_of(name)
            self._rollup_bytes = len(data)
            self.entries_since_rollup = self.bytes_since_rollup = 0
            self.publish(state_decoder.decode(open_frame(name, ROLLUP, data)))
            return

    async def _list_rollups(self) -> list[BlobEntry]:
        return await self.retries.run("list rollups", lambda: self.blob.list(ROLLUP_PREFIX))

    def rollup_is_due(self) -> bool:
        """Whether recovery has become long enough that a rollup is worth writing."""
        config = self.config
        return self.entries_since_rollup >= config.rollup_entries or (
            self.bytes_since_rollup >= max(config.rollup_bytes_min, self._rollup_bytes)
        )

    async def write_rollup(self) -> None:
        """Write the newest state down, then forget the log before the rollup before it.

        One older rollup and the entries after it stay, so that readers who follow the log entry by
        entry are not overtaken, and a start that chose it can go on.
        """
        state = self.state
        if state.seqno == self._rollup_seqno:
            return
        name = f"{ROLLUP_PREFIX}{state.seqno:020d}"
        data = seal_frame(name, ROLLUP, encoder.encode(state))
        await self.retries.run("write rollup", lambda: self.blob.put(name, data))
        previous = self._rollup_seqno
        self._rollup_seqno, self._rollup_bytes = state.seqno, len(data)
        self.entries_since_rollup = self.bytes_since_rollup = 0
        if previous:
            await self.retries.run("truncate log", lambda: self.consensus.truncate(previous + 1))
            for rollup in await self._list_rollups():
                if _seqno_of(rollup.key) < previous:
                    delete = partial(self.blob.delete, rollup.key)
                    await self.retries.run("delete rollup", delete)


def _not_encodable(
    entry: Entry, transactions: Sequence[Transaction], unfit: Mapping[int, NoonmarkError]
) -> dict[int, NoonmarkError]:
    """Which of the transactions no entry can hold, and why."""
    found: dict[int, NoonmarkError] = {}
    for at, transaction in enumerate(transactions):
        if at in unfit:
            continue
        try:
            encode_entry(msgspec.structs.replace(entry, transactions=(transaction,)))
        except Exception as error:
            found[at] = _told(error)
    return found


def _told(error: Exception) -> NoonmarkError:
    return error if isinstance(error, NoonmarkError) else defect.report(error, "a transaction")


def _unsettled(entry: Entry, detail: str) -> Indeterminate:
    return Indeterminate(
        f"whether log entry {entry.seqno} is ours cannot be known",
        detail=detail,
        hint="Read back what was written before writing it again.",
        seqno=entry.seqno,
    )


def _seqno_of(rollup: str) -> int:
    return int(rollup.removeprefix(ROLLUP_PREFIX))
