"""A durable oracle that writes to storage once in a while: it hands out what it has reserved.

The log of the oracle is a `Consensus` of its own, one entry per reservation: "this owner may give
times up to `high`". A time is given only when it is at or below a durable `high`; so after a
crash everything that was ever given is at or below the last one, and the next owner begins above
it. While a range lives a read costs no storage at all, and neither does a write inside of it: one
append serves every call for `LIFE_S`, or for `RANGE_MS` of the timeline when writes run ahead.

Two processes. A new owner appends its own reservation, above the old one's, and from then on the
old owner can reserve nothing: its next append finds the number taken. What remains is the rest of
its last range. So a range also has a life, `LIFE_S` from *before* its append began by the owner's
monotonic clock (which runs on while the machine is suspended), after which the owner gives out
nothing more from it; and a new owner that cannot know that the old one is gone waits that long,
from *after* its own append ended, before its first answer. In between nobody answers. Both laws of
`contract` then hold across processes, provided that two monotonic clocks run at nearly the same
rate over that second: `_MARGIN_S` is what they may differ by. A range that is known to be durable
only after its life ended gives nothing at all.

`AsyncReservedOracle` has every rule, as coroutines; `ReservedOracle` is its front for threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import msgspec

from noonmark.clock import Clock
from noonmark.errors import Determinate, Fenced, MissingObject, Stopped
from noonmark.persist.config import DEFAULT, Config
from noonmark.persist.location import Consensus
from noonmark.persist.log.frame import ENTRY, open_frame, seal_frame
from noonmark.persist.log.head import Head, check_tail
from noonmark.persist.retry import Retries
from noonmark.persist.runtime import Runtime

T = TypeVar("T")

RANGE_MS = 1000
LIFE_S = 1.0
_MARGIN_S = 0.1
_TRUNCATE_EVERY = 256


class Reservation(msgspec.Struct, frozen=True):
    """One entry of the oracle's log.

    `token` is unique to one attempt: an earlier one of the same owner, whose answer never came, may
    say just the same where the clock stands still, and yet it began earlier, so it dies earlier.
    """

    owner: str
    high: int
    released: bool = False
    token: str = ""
    #: Whether its owner notes how far the log is (`noonmark.persist.log.head`).
    noted: bool = False


class AsyncReservedOracle:
    """See the module and `contract.TimestampOracle`, as coroutines of one loop.

    The `give_...` methods answer from a living range and never wait; they return None where there
    is no such range.
    """

    def __init__(self, clock: Clock, log: Consensus, config: Config = DEFAULT) -> None:
        self._clock = clock
        self._log = log
        self._config = config
        self._retries = Retries(clock, config)
        self._owner = clock.fresh_id()
        self._turn = asyncio.Lock()
        self._head = Head(log, clock, every_s=0.0)
        self._seqno = 0
        self._high = 0
        self._wanted = 0
        self._dies_at = 0.0
        self._closed = False
        self._read = 0
        self._write = 0

    @classmethod
    async def open(
        cls, clock: Clock, log: Consensus, *, alone: bool, config: Config = DEFAULT
    ) -> AsyncReservedOracle:
        """Become the owner; see `ReservedOracle.open`."""
        oracle = cls(clock, log, config)
        await oracle._take(alone)
        return oracle

    async def _take(self, alone: bool) -> None:
        last = await self._last()
        begin = partial(self._head.begin, self._seqno)
        await self._retries.run("note oracle", begin)
        clean = last is None or last.released
        # A read may have been given at the old high, and a write above that must differ.
        floor = last.high if last is not None else 0
        while not await self._reserve(floor):
            last = await self._last()
            floor = last.high if last is not None else 0
            clean = False
        if not clean and not alone:
            await self._clock.sleep(LIFE_S + _MARGIN_S)
            # The range just reserved may be over; the next call reserves another.
        self._read = self._write = floor

    async def write_ts(self) -> int:
        """See the contract."""
        return await self._answer(self.give_write)

    async def read_ts(self) -> int:
        """See the contract."""
        return await self._answer(self.give_read)

    async def apply_write(self, time: int) -> None:
        """See the contract."""
        await self._answer(partial(self.give_apply, time))

    async def close(self) -> None:
        """Release the rest of the range, so that the next owner need not wait, and the log."""
        async with self._turn:
            if self._closed:
                return
            self._closed = True
            last = max(self._read, self._write)
            token = self._clock.fresh_id()
            try:
                await self._append(Reservation(self._owner, last, True, token, noted=True))
                await self._head.stop()
            finally:
                await self._log.close()

    def give_write(self) -> int | None:
        """A time for a write."""
        time = max(self._write + 1, self._read + 1, self._clock.now_ms())
        if not self._covers(time):
            return None
        self._write = time
        return time

    def give_read(self) -> int | None:
        """A time for a read."""
        return self._read if self._covers(self._read) else None

    def give_apply(self, time: int) -> int | None:
        """Reads are at `time` or later from now on; the time that they are at."""
        if time > self._read:
            if not self._covers(time):
                return None
            self._read = time
            self._write = max(self._write, time)
        return self._read

    def _covers(self, time: int) -> bool:
        """Whether `time` is inside a living range of ours."""
        if self._closed:
            raise Stopped("this timestamp oracle was closed", hint="Open the oracle again.")
        self._wanted = max(self._wanted, time)
        return time <= self._high and self._clock.monotonic() < self._dies_at

    async def _answer(self, give: Callable[[], int | None]) -> int:
        """What `give` answers, as soon as a range lives that it can answer from.

        A range whose append took longer than its life is over before it is known: an answer from
        it could come after one of the next owner. So it is asked for again.
        """
        async with self._turn:
            deadline = self._clock.monotonic() + self._config.retry_deadline_s
            tried = False
            while (time := give()) is None:
                if tried and self._clock.monotonic() > deadline:
                    raise _too_slow()
                await self._extend()
                tried = True
            return time

    async def _extend(self) -> None:
        if not await self._reserve(max(self._wanted, self._high)):
            raise Fenced(
                "another process hands out times now",
                detail="The timestamp oracle of this location was taken over.",
                hint="Start this process again to take it back.",
            )

    async def _reserve(self, at_least: int) -> bool:
        """Make a range durable that reaches beyond `at_least`; False when somebody else did."""
        began = self._clock.monotonic()
        high = max(at_least, self._clock.now_ms()) + RANGE_MS
        token = self._clock.fresh_id()
        if not await self._append(Reservation(self._owner, high, token=token, noted=True)):
            return False
        self._high, self._dies_at = high, began + LIFE_S
        return True

    async def _append(self, reservation: Reservation) -> bool:
        """Whether the reservation is in the log, after everything that we know of."""
        data = msgspec.msgpack.encode(reservation)
        while True:
            seqno = self._seqno + 1
            frame = seal_frame(_name(seqno), ENTRY, data)
            found = await self._retries.run("reserve times", partial(self._put, seqno, frame))
            if found is None or found.owner != self._owner:
                return False
            self._seqno = seqno
            self._head.reached(seqno)
            if seqno % _TRUNCATE_EVERY == 0:
                await self._retries.run("truncate oracle", partial(self._log.truncate, seqno))
            if found == reservation:
                return True
            # An earlier reservation of ours, whose answer never came: this one goes after it.

    async def _put(self, seqno: int, frame: bytes) -> Reservation | None:
        """Whose reservation has that number now; None when it is long gone."""
        if await self._log.append(seqno, frame):
            return decode_reservation(seqno, frame)
        try:
            found = await self._log.read(seqno, 1)
        except MissingObject:
            return None
        return decode_reservation(seqno, found[0]) if found else None

    async def _last(self) -> Reservation | None:
        """The newest reservation in the log."""
        while True:
            noted = await self._retries.run("oracle count", self._log.noted)
            head = await self._retries.run("oracle head", self._log.head)
            check_tail("oracle", noted, head)
            if head == 0:
                return None
            try:
                (data,) = await self._retries.run("read oracle", partial(self._log.read, head, 1))
            except MissingObject:
                continue  # the log went on and was truncated between the two calls
            self._seqno = head
            return decode_reservation(head, data)


class ReservedOracle:
    """See the module and `contract.TimestampOracle`. Methods block; any thread may call them."""

    def __init__(self, runtime: Runtime, times: AsyncReservedOracle) -> None:
        self._runtime = runtime
        self._times = times
        #: Whoever has it is the only one inside `times`, here or on the loop.
        self._mutex = threading.Lock()

    @classmethod
    def open(
        cls, runtime: Runtime, log: Consensus, *, alone: bool, config: Config = DEFAULT
    ) -> ReservedOracle:
        """Become the owner.

        Args:
            runtime: where storage is talked to.
            log: the oracle's own log, which is closed with it.
            alone: whether the caller knows that no other owner lives (it holds the write lock of a
                local disk, say); otherwise the life of the last range is waited out.
            config: for its retries.
        """
        taken = AsyncReservedOracle.open(runtime.clock, log, alone=alone, config=config)
        return cls(runtime, runtime.submit(taken).result())

    def write_ts(self) -> int:
        """See the contract."""
        return self._answer(self._times.give_write, self._times.write_ts)

    def read_ts(self) -> int:
        """See the contract."""
        return self._answer(self._times.give_read, self._times.read_ts)

    def apply_write(self, time: int) -> None:
        """See the contract."""
        times = self._times
        self._answer(partial(times.give_apply, time), partial(times.apply_write, time))

    def without_waiting(self, give: Callable[[AsyncReservedOracle], int | None]) -> int | None:
        """What `give` answers where it need not wait for storage or for others; else None."""
        if not self._mutex.acquire(blocking=False):
            return None
        try:
            return give(self._times)
        finally:
            self._mutex.release()

    def close(self) -> None:
        """Release the rest of the range, so that the next owner need not wait."""
        with self._mutex:
            self._runtime.submit(self._times.close()).result()

    def _answer(
        self, give: Callable[[], int | None], ask: Callable[[], Coroutine[Any, Any, T]]
    ) -> int | T:
        """At once where a living range has the answer; from the loop where storage is needed."""
        with self._mutex:
            time = give()
            return self._runtime.submit(ask()).result() if time is None else time


def _name(seqno: int) -> str:
    return f"oracle/{seqno}"


def _too_slow() -> Determinate:
    return Determinate(
        "storage is too slow to hand out times",
        detail=f"No reservation became durable within its own life of {LIFE_S} s.",
        hint="Ask again; look at the latency of the oracle's log.",
    )


def decode_reservation(seqno: int, data: bytes) -> Reservation:
    """The reservation in an entry of the oracle's log, or `Corrupt`."""
    return msgspec.msgpack.decode(open_frame(_name(seqno), ENTRY, data), type=Reservation)
