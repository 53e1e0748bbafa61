"""One history of an ingestion: an upstream that grows, ticks at random moments, crashes anywhere.

The process may die at any call: of the source, of the engine, of the blob store, before it takes
effect or after (then the answer is lost). It is opened again, perhaps to die while opening. What
must hold is checked against the upstream itself:

- while it runs: nothing durable is read again, nothing is released before it is durable, no
  frontier goes back, no answer ever changes;
- at the end: everything is there, at every time, as the definition of reclocking says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyarrow as pa

from noonmark.clock import SYSTEM
from noonmark.errors import InternalError, Stopped
from noonmark.ingest.ingestion import Engine, Ingestion, InPlaceEngine
from noonmark.ingest.task import RESULT, GatherTask, IngestTask, Row
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client, Options
from noonmark.persist.config import Config
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.read.handle import ReadHandle
from noonmark.persist.runtime import Runtime
from noonmark.source.contract import Frontier, Split
from noonmark.source.splits import read_splits
from noonmark.tvc import Partition, known_partitions
from support.ingest.model import Known, Model
from support.ingest.upstream import Crash, Fuse, TestedSource, Upstream
from support.store.doubles import HookedBlob


class Violation(AssertionError):
    """A guarantee did not hold."""


#: Later than every time: the end of what is complete for ever.
NEVER = 1 << 60


@dataclass
class HistoryClock:
    """A wall clock that a history moves, also backwards; everything else is the system's."""

    now: int = 1_000

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return SYSTEM.monotonic()

    async def sleep(self, seconds: float) -> None:
        await SYSTEM.sleep(seconds)

    def random(self) -> float:
        return 0.5

    def fresh_id(self) -> str:
        return SYSTEM.fresh_id()


@dataclass
class ScatteringEngine:
    """What Spark does, without Spark: several tasks, a shuffle by bucket, several tasks behind it.

    Which task reads which split, and in which order the shuffle delivers, is left to chance.
    """

    random: Random

    def run(self, source: Any, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        groups: list[list[Split]] = [[] for _ in range(self.random.randrange(1, 4))]
        for split in splits:
            self.random.choice(groups).append(split)
        scattering = replace(work, buckets=self.random.randrange(1, 5))
        made = [b for group in groups for b in scattering(read_splits(source, group))]
        rows = [row for batch in made for row in batch.to_pylist()]
        self.random.shuffle(rows)
        width = self.random.randrange(1, 3)
        behind: list[Row] = []
        for at in range(width):
            mine = [row for row in rows if row["bucket"] % width == at]
            batches = [pa.RecordBatch.from_pylist([row], RESULT) for row in mine]
            behind += [row for batch in GatherTask(work)(batches) for row in batch.to_pylist()]
        return behind


@dataclass
class DyingEngine:
    """An engine in a process that may die before and after its parts are written."""

    fuse: Fuse
    inner: Engine

    def run(self, *work: Any) -> Any:
        self.fuse.burn("before the engine")
        rows = self.inner.run(*work)
        self.fuse.burn("after the engine")
        return rows


class World:
    """See the module. `run` raises `Violation`, or AssertionError from the product itself."""

    def __init__(self, seed: int, name: str = "memory-of-histories") -> None:
        self.random = Random(f"ingest/{seed}")
        self.seed = seed
        self.blob = MemoryBlob(name)
        for entry in self.blob._store.list(""):
            self.blob._store.delete(entry.key)
        kind: Any = self.random.choice(("number", "name"))
        kinds: Any = self.random.choices(("typed", "NONE", "UPSERT"), k=self.random.randrange(1, 4))
        self.upstream = Upstream(self.random, kind, tuple(kinds))
        self.fuse = Fuse()
        self.source = TestedSource(
            self.upstream, self.fuse, self.note_read, self.note_release, seed
        )
        self.engine: Engine = self.random.choice(
            (InPlaceEngine(), ScatteringEngine(Random(f"engine/{seed}")))
        )
        self.clock = HistoryClock()
        self.config = Config(
            inline_bytes_max=self.random.choice((0, 1 << 16, 1 << 16)),
            part_rows_max=self.random.choice((3, 1000)),
            rollup_entries=self.random.choice((4, 512)),
            merge_fan_in=self.random.choice((2, 4)),
        )
        self.retain_ms = self.random.choice((0, 5, 10**9, 10**9))
        self.client: Client | None = None
        self.runtime: Runtime | None = None
        self._handles: dict[str, ReadHandle] = {}
        self.released: Frontier | None = None
        self.answers: dict[tuple[str, int], Counter[Any]] = {}
        self.bindings: dict[int, Known] = {}
        self.uppers: dict[str, int] = {}
        self.releases: list[tuple[Frontier, int]] = []
        self.reads = 0
        self.ticks = 0

    # -- life -------------------------------------------------------------------------------

    def run(self) -> World:
        try:
            for _ in range(self.random.randrange(3, 8)):
                self.upstream.grow()
                self.clock.now += self.random.choice((0, 1, 10, 1000, -50))
                self.fuse.left = self._chance_of_death(0.4)
                self._step(asks=self.random.random() < 0.75)
            if self.fuse.dead:
                self._die()  # of upkeep, beside the last tick
            self.fuse.renew(None)
            self._step()
            self._check_all()
        finally:
            self._die()
        return self

    def _step(self, *, asks: bool = True) -> None:
        """One tick, or the death of the process in it."""
        try:
            if self.client is None:
                self._open()
            tick = self.ingestion.tick(asks=asks)
            self.ticks += 1
            self._note_binding(tick.time, self.bound_at(tick.time))
            self._check_releases()
            self._note_answers(tick.time)
        except (Crash, Stopped, InternalError):
            if not self.fuse.dead:
                raise
            self._die()
            self.fuse.renew(self._chance_of_death(0.3))

    def _chance_of_death(self, chance: float) -> int | None:
        """At which call from now: an idle tick makes some ten, an opening some thirty."""
        if self.random.random() >= chance:
            return None
        return self.random.randrange(self.random.choice((12, 60)))

    def _open(self) -> None:
        self.runtime = Runtime.start(self.clock)
        self.runtime.loop.set_exception_handler(lambda *_: None)  # the dead say nothing
        blob = HookedBlob(self.blob, self._before, self._after)
        options = Options(reentrance_id="history", notify_host=None, config=self.config)
        start = Client.start(self.runtime, blob, BlobConsensus(blob), options)
        client = self.runtime.submit(start).result()
        known = client.state.collections.values()
        uppers = [each.upper.only() or each.since.only() or 0 for each in known]
        oracle = MemoryOracle(self.clock, floor=max(uppers, default=0))
        self.client = client
        self.ingestion = Ingestion(
            client,
            oracle,
            self.source,
            "history",
            DyingEngine(self.fuse, self.engine),
            self.retain_ms,
            self.source.feeds(),
        ).start()
        self._note_bindings()
        self._check_releases()

    def _die(self) -> None:
        if self.runtime is not None:
            self.runtime.stop()
        self.client = self.runtime = None
        self._handles.clear()

    async def _before(self, method: str, key: str) -> None:
        self.fuse.burn(f"before {method} of {key.partition('/')[0]}")

    async def _after(self, method: str, key: str) -> None:
        self.fuse.burn(f"after {method} of {key.partition('/')[0]}")

    # -- what is checked while it runs ---------------------------------------------------------

    def handle(self, name: str) -> ReadHandle:
        assert self.client is not None
        if name not in self._handles:
            self._handles[name] = self.client.create_or_load(name)[1]
        return self._handles[name]

    @property
    def collections(self) -> list[str]:
        return [*(o.name for o in self.source.outputs), "history_errors", "history_remap"]

    def durable(self) -> Known:
        """Up to which offset everything is durable, by what is stored and nothing else."""
        return self._noted(self._complete())

    def _complete(self) -> int:
        """The last time that is complete in every collection of the source."""
        upper = min(_end(self.handle(name)) for name in self.collections)
        return max(upper - 1, self.handle("history_remap").since.only() or 0)

    def _noted(self, time: int) -> Known:
        """What the remap says as of a time: for ever the same, and that too is checked."""
        if time not in self.bindings:
            self.bindings[time] = self.bound_at(time)
        return self.bindings[time]

    def bound_at(self, time: int) -> Known:
        """The remap as of a time."""
        rows = self.handle("history_remap").snapshot(time).result().counts()
        return known_of(rows)

    def note_read(self, partition: Partition, offset: int) -> None:
        self.reads += 1
        durable = self.durable()
        if durable is None or offset < durable.get(partition, 0):
            raise Violation(f"{partition!r} {offset} is durable and was read again: {durable}")

    def note_release(self, frontier: Frontier) -> None:
        """On the loop, where nothing can be waited for: what it was is looked at afterwards."""
        self.releases.append((frontier, self._complete()))

    def _check_releases(self) -> None:
        """What was released was durable, by what was stored at that moment."""
        for frontier, time in self.releases:
            durable, known = self._noted(time), _known(frontier)
            if durable is not None and (
                known is None or any(offset > durable.get(p, 0) for p, offset in known.items())
            ):
                raise Violation(f"{known} was released, but only {durable} is durable")
            if self.released is not None and not frontier.at_or_beyond(self.released):
                raise Violation(f"{frontier!r} was released after {self.released!r}")
            self.released = frontier
        self.releases.clear()

    def _note_bindings(self) -> None:
        """What the remap says; a tick may let it forget, but never say something else."""
        remap = History.of(self.handle("history_remap"))
        for time in remap.times:
            self._note_binding(time, known_of(remap.at(time)))

    def _note_binding(self, time: int, known: Known) -> None:
        if self.bindings.setdefault(time, known) != known:
            raise Violation(f"the remap at {time} was {self.bindings[time]}, and is {known}")

    def _note_answers(self, time: int) -> None:
        """Every collection can be read as of the tick; what it says then is final."""
        for name in self.collections:
            read = self.handle(name)
            upper = _end(read)
            expected = NEVER if self.ingestion.is_finished else time + 1
            if upper != expected or upper < self.uppers.get(name, 0):
                raise Violation(f"after a tick at {time}, the upper of {name} is {upper}")
            self.uppers[name] = upper
            if self.random.random() < 0.15:
                self.answers[name, time] = read.snapshot(time).result().counts()

    # -- what is checked at the end ---------------------------------------------------------

    def _check_all(self) -> None:
        probes = {_frozen(_known(probe)) for probe in self.source.probes}
        for time, known in self.bindings.items():
            if _frozen(known) not in probes:
                raise Violation(f"at {time} the remap says {known}, which upstream never said")
        last = max(self.bindings)
        if _frozen(self.bound_at(last)) != _frozen(_known(self.source.probes[-1])):
            raise Violation("the last tick did not bind all that there is")
        outputs = [History.of(self.handle(o.name)) for o in self.source.outputs]
        errors = History.of(self.handle("history_errors"))
        start = max(history.start for history in (*outputs, errors))
        times = {time for history in (*outputs, errors) for time in history.times}
        model = Model(self.upstream, self.bindings)
        for time in sorted({start, *(t for t in {*times, *self.bindings} if t > start)}):
            model.advance(time)
            for number, history in enumerate(outputs):
                _compare(f"out{number}", time, history.at(time), model.rows[number])
            found = Counter({row[:5]: count for row, count in errors.at(time).items()})
            _compare("history_errors", time, found, model.errors)
        self._check_times(outputs)
        self._check_answers()

    def _check_times(self, outputs: list[History]) -> None:
        """Each update has one time; offsets in order have times in order; equal ones, equal."""
        times: dict[tuple[int, Any, int], list[int]] = {}
        for number, history in enumerate(outputs):
            for row, time, diff in history.updates:
                times.setdefault((number, row, diff), []).append(time)
        for partition, log in self.upstream.messages.items():
            last = 0
            for offset, messages in sorted(log.items()):
                rows = [m for m in messages if m.row is not None]
                own = [times.get((m.output, m.row, m.diff), []) for m in rows]
                if any(len(each) > 1 for each in own):
                    raise Violation(f"{partition!r} {offset} has a message with two times: {own}")
                # A row that came and went at one time leaves nothing to see.
                seen = {each[0] for each in own if each}
                if len(seen) > 1:
                    raise Violation(f"the transaction {partition!r} {offset} was split: {seen}")
                if seen and min(seen) < last:
                    raise Violation(f"{partition!r} {offset} comes at {seen}, before {last}")
                last = max(seen, default=last)

    def _check_answers(self) -> None:
        for (name, time), answer in self.answers.items():
            read = self.handle(name)
            if read.since.less_equal(time):
                found = read.snapshot(time).result().counts()
                if found != answer:
                    raise Violation(f"{name} at {time} was {answer} and is {found}")


@dataclass
class History:
    """Everything that a collection can still say: its first contents, and its updates since."""

    first: Counter[Any]
    start: int
    updates: list[Any]

    @classmethod
    def of(cls, read: ReadHandle) -> History:
        start, upper = read.since.only() or 0, _end(read)
        first = read.snapshot(start).result().counts()
        updates: list[Any] = []
        if upper > start + 1:
            step = read._client.runtime.submit(_next_step(read, start)).result()
            updates = step.updates
        return cls(first, start, updates)

    @property
    def times(self) -> list[int]:
        return sorted({self.start, *(time for _, time, _ in self.updates)})

    def at(self, time: int) -> Counter[Any]:
        count = Counter(self.first)
        for row, at, diff in self.updates:
            if at <= time:
                count[row] += diff
        return Counter({row: there for row, there in count.items() if there})


def _end(read: ReadHandle) -> int:
    upper = read.upper.only()
    return NEVER if upper is None else upper


async def _next_step(read: ReadHandle, after: int) -> Any:
    listen = await read.open_listen(after, hold=False)
    return await listen.next()


def _compare(name: str, time: int, found: Counter[Any], wanted: Counter[Any]) -> None:
    if found != wanted:
        raise Violation(f"{name} at {time}: {found - wanted} too much, {wanted - found} missing")


def known_of(rows: Counter[Any]) -> Known:
    """The offsets that the rows of a remap stand for; no rows: the source has finished."""
    if not rows:
        return None
    ranged = ("(", "[")
    return {json.loads(p): offset for p, offset in rows if not p.startswith(ranged)}


def _known(frontier: Frontier) -> Known:
    return None if frontier.is_empty() else known_partitions(frontier)


def _frozen(known: Known) -> frozenset[Any] | None:
    return None if known is None else frozenset((p, o) for p, o in known.items() if o)
