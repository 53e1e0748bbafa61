"""The world of one seed: processes, storage, model, and the calls that are under way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Any

from noonmark.errors import (
    BehindFailure,
    BelowUpper,
    Determinate,
    FrontierRegression,
    Indeterminate,
    LockHeld,
    NameTaken,
    NoonmarkError,
    SchemaMismatch,
    Stopped,
    StorageError,
    UnknownCollection,
    UsageError,
    WriterError,
)
from noonmark.persist.client import Mode
from noonmark.persist.config import Config
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.location import Blob
from noonmark.persist.log.command import decode_entry
from noonmark.persist.log.frame import ENTRY, open_frame
from noonmark.persist.log.state import State
from noonmark.storage import Capability

from .faults import Weather
from .ledger import Ledger
from .loop import TASKS, Tasks, VirtualLoop, pause
from .model import Model, Operation, Violation
from .process import Process
from .reads import Listener, check_read, choose_read
from .timeline import Timeline
from .trace import Trace

if TYPE_CHECKING:
    from .owners import Owner
    from .subscribers import Subscriber

FAULT_RATE = 0.1


class WitnessedBlob(MemoryBlob):
    """The one true store; sees every entry that becomes part of the log."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        super().__init__(name)
        self.ledger = ledger
        self.head = 0
        self.epoch = 0
        self.broken: str | None = None
        self.counts: Counter[str] = Counter()

    async def put(self, key: str, value: bytes) -> None:
        """Store; counts rollups and parts."""
        self.counts["rollup" if key.startswith("rollup/") else "part"] += 1
        await super().put(key, value)

    async def delete(self, key: str) -> None:
        """Remove; counts parts."""
        if key.startswith("part/"):
            self.counts["deletion of a part"] += 1
        await super().delete(key)

    async def put_if_absent(self, key: str, value: bytes) -> bool:
        """Store; an entry after the newest is the log's next, and must be of its newest writer."""
        stored = await super().put_if_absent(key, value)
        if stored and key.startswith("log/") and int(key[4:]) == self.head + 1:
            self.head += 1
            entry = decode_entry(open_frame(f"log/{self.head}", ENTRY, value))
            if entry.epoch:
                if entry.epoch < self.epoch:
                    self.broken = f"a writer of epoch {entry.epoch} committed after {self.epoch}"
                self.epoch = entry.epoch
            try:
                self.ledger.enter(entry)
            except Violation as broken:  # not the product's to handle
                self.broken = self.broken or str(broken)
        return stored


def make_config(random: Random) -> Config:
    """Thresholds so small that everything happens, in proportions that the seed chooses."""
    return Config(
        inline_bytes_max=random.choice((0, 0, 700, 1 << 16)),
        part_rows_max=random.choice((2, 2, 5, 1000)),
        rollup_entries=random.choice((3, 8, 20)),
        inline_batches_max=random.choice((3, 6, 12)),
        merge_fan_in=random.choice((2, 3, 4)),
        merge_fan_in_max=random.choice((4, 8)),
        merge_rows_max=random.choice((2, 100)),
        cache_bytes_max=random.choice((0, 0, 4000, 1 << 20)),
        garbage_grace_ms=random.choice((300, 700, 2000)),
        lock_lease_ms=3000,
        hold_lease_ms=random.choice((2000, 6000, 10_000)),
        poll_s=random.choice((0.2, 0.8)),
        retry_largest_s=0.3,
        retry_deadline_s=random.choice((0.5, 3.0)),
    )


class World:
    """See the module."""

    def __init__(self, seed: int, *, print_events: bool = False) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = VirtualLoop(Random(f"{seed} order"))
        self.trace = Trace(self.loop.time, print_events=print_events)
        self.weather = Weather(self.loop, Random(f"{seed} faults"), self.trace, FAULT_RATE)
        self.ledger = Ledger()
        self.blob = WitnessedBlob("simulation", self.ledger)
        self.oracle_blob = MemoryBlob("simulated oracle")
        self.model = Model(
            self.ledger, lambda: [p.lease_ms for p in self.processes if p.keeps_leases]
        )
        self.timeline = Timeline()
        self.config = make_config(self.random)
        self.lease_ms = self.random.choice((1500, 5000, 20_000))
        self.bare_log = self.random.random() < 0.5
        #: After a leap of hours any lease may have ended: the other seeds judge leases closely.
        self.leaps = self.random.random() < 0.3
        self.processes: list[Process] = []
        self._ended = False
        self.listeners: list[Listener | Subscriber] = []
        self.capabilities: list[Capability] = []
        self.owners: list[Owner] = []
        self.writer: Process | None = None
        self.counts: Counter[str] = Counter()
        self.under_way: list[asyncio.Task[Any]] = []
        #: Calls of every kind so far, reads among them.
        self.performed = 0
        self._named = 0
        self._tasks: Tasks = {}

    def name(self, kind: str) -> str:
        """A name that was not used yet."""
        self._named += 1
        return f"{kind}{self._named}"

    # -- processes --------------------------------------------------------------------------

    def start(self, mode: Mode, blob: Blob | None = None, kind: str | None = None) -> Process:
        """A new process, not opened yet; of the location, unless another store is given."""
        if self._ended:
            raise asyncio.CancelledError  # a step that outlived the last one begins nothing new
        process = Process(
            self.name(kind or mode[0]),
            mode,
            blob or self.blob,
            self.weather,
            self.seed,
            bare_log=self.bare_log,
        )
        process.keeps_leases = blob is None and mode == "write"
        self.processes.append(process)
        return process

    async def open_reader(self, mode: Mode) -> None:
        """Start a reader."""
        process = self.start(mode)
        try:
            await process.run(process.open(self.config, None))
        except StorageError:
            process.crash()
        except asyncio.CancelledError:
            process.gate.dead = True

    async def open_writer(self, reentrance_id: str | None, attempts: int) -> bool:
        """Start a writer; it replaces the one there is when it gets the lock. Whether it did."""
        for _ in range(attempts):
            process = self.start("write")
            try:
                await process.run(process.open(self.config, reentrance_id))
            except (StorageError, LockHeld) as error:
                self.trace.note("not opened", process.name, type(error).__name__)
                process.crash()
                await pause(self.loop, 0.7)
                continue
            self.writer = process
            return True
        return False

    def tidy(self) -> None:
        """Forget processes that are gone and calls that have ended."""
        for process in self.processes:
            if process.client is not None:
                self.counts["compaction"] += process.client.upkeep.compactions
                process.client.upkeep.compactions = 0
        if self.blob.broken:
            raise Violation(self.blob.broken)
        self.processes = [p for p in self.processes if not p.gate.dead or p.unfinished]
        for task in self.under_way:
            if task.done() and not task.cancelled():
                task.result()
        self.under_way = [task for task in self.under_way if not task.done()]
        self.listeners = [x for x in self.listeners if not x.ended]

    async def wipe(self) -> None:
        """Begin with nothing."""
        for blob in (self.blob, self.oracle_blob):
            for entry in await blob.list(""):
                await MemoryBlob.delete(blob, entry.key)

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        """Run a story of this world to its end."""
        context = Context()
        context.run(TASKS.set, self._tasks)
        self.loop.run_task(self.loop.create_task(story, context=context))

    def end(self) -> None:
        """Let go of everything, so that no task of this seed outlives it."""
        self._ended = True
        for process in self.processes:
            process.crash()
        for task in [*self._tasks.values(), *self.weather.pending]:
            task.cancel()
        self.loop.drain()
        self.loop.close()

    def note(self, what: str) -> None:
        """Count something that is done."""
        self.counts[what] += 1
        self.performed += 1

    def spawn(self, process: Process, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Let something happen in a process, beside the rest."""
        task = process.run(coroutine)
        self.under_way.append(task)
        return task

    # -- operations -------------------------------------------------------------------------

    def submit(
        self, process: Process, what: str, call: Callable[[], Future[State]], **details: Any
    ) -> asyncio.Task[Any] | None:
        """Call now, in this order; learn the answer later."""
        operation = self.model.begin(process.name, what, **details)
        self.note(what)
        self.trace.note("call", operation)
        try:
            future = call()
        except UsageError as error:  # refused before it was queued
            self._refused(operation, error)
            return None
        return self.spawn(process, self._answer(operation, future))

    async def _answer(self, operation: Operation, future: Future[State]) -> None:
        try:
            state = await asyncio.wrap_future(future)
        except Indeterminate:
            self.model.doubt(operation)
            self.model.fail(operation)
        except (UsageError, WriterError, Determinate) as error:
            self._refused(operation, error)
        except asyncio.CancelledError:
            self.model.doubt(operation)
            raise
        else:
            self.observe()
            self.model.acknowledge(operation, state)
        self.trace.note("answer", operation)

    def _refused(self, operation: Operation, error: NoonmarkError) -> None:
        self.counts[f"refused: {error.id}"] += 1
        self.model.refuse(operation, error)
        self.model.fail(operation)
        self._check_reason(operation, error)

    def _check_reason(self, operation: Operation, error: NoonmarkError) -> None:
        """Whether there was a reason to refuse."""
        model = self.model
        names = {*operation.updates, *operation.seals, *operation.allows}
        match error:
            case BelowUpper():
                may = any(
                    model.upper_may_exceed(name, operation.time_min(name), operation)
                    for name in operation.updates
                )
            case FrontierRegression():
                may = operation.expects is not None or any(
                    model.upper_may_exceed(name, to, operation)
                    for name, to in operation.seals.items()
                ) or any(
                    other.allows.get(name, 0) > to
                    for name, to in operation.allows.items()
                    for other in model.by_collection[name]
                )  # fmt: skip
            case UnknownCollection():
                gone = {operation.drops, operation.evolves, *names} - {None}
                may = any(model.may_be_dropped(str(name)) for name in gone)
            case SchemaMismatch():  # two that were called at once were both made for one schema
                may = operation.evolves is not None and any(
                    other.evolves and other is not operation and other.possible
                    for other in model.by_collection[operation.evolves]
                )
            case BehindFailure():
                may = model.reason_to_give_up(operation)
            case NameTaken() | WriterError() | Determinate() | Stopped():
                may = not isinstance(error, Stopped) or "internal" not in error.message
            case _:
                may = False
        if not may:
            raise Violation(f"{operation} was refused without a reason: {error}") from error

    # -- observation ------------------------------------------------------------------------

    def observe(self) -> None:
        """Look at the state of every living process."""
        model = self.model
        for process in self.processes:
            if process.client is not None and not process.gate.dead:
                model.observe(process.name, process.client.state)

    def read_somewhere(self) -> asyncio.Task[Any] | None:
        """Begin a read through some process."""
        able = [p for p in self.processes if p.works]
        if not able:
            return None
        process = self.random.choice(able)
        assert process.client is not None
        chosen = choose_read(self.random, process.client.state)
        if chosen is None:
            return None
        collection, time = chosen
        self.performed += 1
        return self.spawn(process, check_read(self, process, collection, time))
