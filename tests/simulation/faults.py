"""Storage that fails in every way that its contract allows, and counts how often.

A call of a store has an effect and an answer, and the network may lose, delay or repeat either:

    lost          no effect; the caller is told that nothing happened (`Determinate`)
    in doubt      no effect; the caller is told that something may have happened (`Indeterminate`)
    answer lost   the effect happens; the caller is not told (`Indeterminate`)
    late          the caller is told `Indeterminate`; the effect happens afterwards
    delayed       the effect, or the answer, takes long
    repeated      the effect happens, and once more afterwards
    half done     a listing of two instants; a truncation of a part

A call that only reads is never in doubt (`noonmark.persist.location`). Effects that are on their
way outlive the process that asked for them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from noonmark.errors import Determinate, Indeterminate
from noonmark.persist.location import Blob, BlobEntry, Consensus

from .loop import Gate, VirtualLoop, pause
from .trace import Trace

T = TypeVar("T")

READ_FAULTS = ("lost", "lost", "delayed", "answer lost")
WRITE_FAULTS = ("lost", "in doubt", "answer lost", "late", "delayed", "repeated")

#: How long a late effect, a repetition or a delayed call may take at most.
LATE_S = 20.0
DELAY_S = 1.5


class Weather:
    """How bad storage is at the moment, for everybody; and what was injected so far."""

    def __init__(self, loop: VirtualLoop, random: Random, trace: Trace, rate: float) -> None:
        self.loop = loop
        self.random = random
        self.trace = trace
        self.usual_rate = self.rate = rate
        self.injected: Counter[str] = Counter()
        self.pending: list[asyncio.Task[None]] = []
        self.calls = 0

    def draw(self, faults: tuple[str, ...]) -> str | None:
        """The fault of the next call, if it has one."""
        self.calls += 1
        if self.random.random() >= self.rate:
            return None
        fault = faults[int(self.random.random() * len(faults))]
        self.injected[fault] += 1
        return fault

    def some(self, most_s: float) -> float:
        """A duration: mostly short, sometimes almost `most_s`."""
        return most_s * self.random.random() ** 3

    def heal(self) -> None:
        """No more faults."""
        self.usual_rate = self.rate = 0.0


class Line:
    """One process's line to its stores."""

    def __init__(self, weather: Weather, gate: Gate, process: str) -> None:
        self.weather = weather
        self.gate = gate
        self.process = process

    async def reading(self, what: str, effect: Callable[[], Awaitable[T]]) -> T:
        """A call that changes nothing."""
        await self.gate.passed()
        weather = self.weather
        fault = weather.draw(READ_FAULTS)
        weather.trace.note("read", self.process, what, fault)
        if fault is None:
            answer = await effect()
            await pause(weather.loop, 0.0005)
            await self.gate.passed()
            return answer
        if fault == "lost":
            raise Determinate(f"{what} was lost")
        if fault == "delayed":
            await pause(weather.loop, weather.some(DELAY_S))
        answer = await effect()
        await pause(weather.loop, weather.some(DELAY_S))
        await self.gate.passed()
        if fault == "answer lost":
            raise Determinate(f"the answer to {what} was lost")
        return answer

    async def writing(self, what: str, effect: Callable[[], Awaitable[T]]) -> T:
        """A call that changes something."""
        await self.gate.passed()
        weather = self.weather
        fault = weather.draw(WRITE_FAULTS)
        weather.trace.note("write", self.process, what, fault)
        if fault == "lost":
            raise Determinate(f"{what} was lost")
        if fault == "in doubt":
            raise Indeterminate(f"{what} may have happened")
        if fault == "late":
            self._afterwards(what, effect)
            await pause(weather.loop, weather.some(DELAY_S))
            await self.gate.passed()
            raise Indeterminate(f"{what} may have happened")
        await pause(weather.loop, weather.some(DELAY_S) if fault == "delayed" else 0.0005)
        answer = await effect()
        if fault == "repeated":
            self._afterwards(what, effect)
        await pause(weather.loop, weather.some(DELAY_S) if fault == "delayed" else 0.0005)
        await self.gate.passed()
        if fault == "answer lost":
            raise Indeterminate(f"{what} happened, but its answer was lost")
        return answer

    def _afterwards(self, what: str, effect: Callable[[], Awaitable[Any]]) -> None:
        """Let the effect happen (again) in a while, whoever is still alive then."""
        weather = self.weather

        async def happen() -> None:
            await pause(weather.loop, weather.some(LATE_S))
            weather.trace.note("late", self.process, what)
            await effect()

        weather.pending.append(weather.loop.create_task(happen(), context=Context()))


class UnreliableBlob:
    """A Blob that fails; see the module."""

    def __init__(self, blob: Blob, line: Line) -> None:
        self._blob = blob
        self.line = line

    @property
    def url(self) -> str:
        """See `Blob.url`."""
        return self._blob.url

    async def get(self, key: str) -> bytes | None:
        """See `Blob.get`."""
        return await self.line.reading(f"get {key}", lambda: self._blob.get(key))

    async def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """See `Blob.get_range`."""
        what = f"get {key} from {start}"
        return await self.line.reading(what, lambda: self._blob.get_range(key, start, length))

    async def put(self, key: str, value: bytes) -> None:
        """See `Blob.put`."""
        await self.line.writing(f"put {key} {len(value)}", lambda: self._blob.put(key, value))

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        """See `Blob.put_if_absent`."""
        what = f"put {key} {len(value)} if absent"
        return await self.line.writing(what, lambda: self._blob.put_if_absent(key, value))

    async def list(self, prefix: str) -> list[BlobEntry]:
        """See `Blob.list`."""
        return await self.line.reading(f"list {prefix}", lambda: self._listing(prefix))

    async def _listing(self, prefix: str) -> list[BlobEntry]:
        """Every object; sometimes the later keys are looked at later, as real listings do."""
        first = await self._blob.list(prefix)
        weather = self.line.weather
        if len(first) < 2 or weather.random.random() >= weather.rate:
            return first
        weather.injected["half done"] += 1
        pivot = first[int(weather.random.random() * len(first))].key
        await pause(weather.loop, weather.some(DELAY_S))
        second = await self._blob.list(prefix)
        return [e for e in first if e.key < pivot] + [e for e in second if e.key >= pivot]

    async def delete(self, key: str) -> None:
        """See `Blob.delete`."""
        await self.line.writing(f"delete {key}", lambda: self._blob.delete(key))

    def native_url(self, key: str) -> str | None:
        """See `Blob.native_url`."""
        return self._blob.native_url(key)

    async def close(self) -> None:
        """See `Blob.close`."""


class UnreliableConsensus:
    """A Consensus that fails; see the module."""

    def __init__(self, consensus: Consensus, line: Line) -> None:
        self._consensus = consensus
        self.line = line

    @property
    def url(self) -> str:
        """See `Consensus.url`."""
        return self._consensus.url

    async def head(self) -> int:
        """See `Consensus.head`."""
        return await self.line.reading("head", self._consensus.head)

    async def append(self, seqno: int, entry: bytes) -> bool:
        """See `Consensus.append`."""
        what = f"append {seqno} {len(entry)}"
        return await self.line.writing(what, lambda: self._consensus.append(seqno, entry))

    async def read(self, start: int, limit: int) -> list[bytes]:
        """See `Consensus.read`."""
        what = f"read {start}"
        return await self.line.reading(what, lambda: self._consensus.read(start, limit))

    async def note(self, seqno: int) -> None:
        """See `Consensus.note`."""
        await self.line.writing(f"note {seqno}", lambda: self._consensus.note(seqno))

    async def noted(self) -> int:
        """See `Consensus.noted`."""
        return await self.line.reading("noted", self._consensus.noted)

    async def truncate(self, below: int) -> None:
        """See `Consensus.truncate`."""
        weather = self.line.weather
        if below > 2 and weather.random.random() < weather.rate:
            weather.injected["half done"] += 1
            await self.line.writing(f"truncate half of {below}", lambda: self._truncate(below // 2))
            raise Indeterminate(f"truncating below {below} may have happened")
        await self.line.writing(f"truncate {below}", lambda: self._truncate(below))

    async def _truncate(self, below: int) -> None:
        await self._consensus.truncate(below)

    async def close(self) -> None:
        """See `Consensus.close`."""
