"""Subscriptions of the simulation: a snapshot, then updates, each step against the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from noonmark.errors import BeforeSince, CapabilityInvalid, Stopped, StorageError, WriterError
from noonmark.persist.read.snapshot import Step
from noonmark.storage import AsyncStorage, AsyncSubscription, ReadCapability

from .capabilities import able, choose
from .model import Row, Violation, time_of
from .process import Process
from .reads import changes_of, trim
from .verdicts import Call, begin, conclude
from .world import World


class Subscriber:
    """A subscription that is compared with the model at every step."""

    def __init__(
        self, world: World, process: Process, capability: ReadCapability, *, snapshot: bool
    ) -> None:
        self._world = world
        self.process = process
        self._id = capability.id
        self._at = time_of(capability.frontier)
        self._owed = snapshot
        self._heard = self._at if snapshot else self._at + 1
        self._steps: AsyncSubscription | None = None
        self._stopped = False
        self.ended = False

    async def run(self, call: Call, capability: ReadCapability) -> None:
        """Subscribe, and follow until the end or until a reason to stop that the model accepts."""
        client = self.process.client
        assert client is not None
        storage = AsyncStorage(client, lease_ms=self._world.lease_ms)
        try:
            answered, self._steps = await conclude(
                self._world,
                self.process,
                call,
                lambda: storage.subscribe_at(capability, snapshot=self._owed),
            )
            if answered:
                await self._follow()
        except BeforeSince as error:
            if not self._world.model.since_may_exceed(self._id, self._heard - 1):
                raise Violation(f"{self.process.name} cannot go on: {error}") from error
        except (Stopped, WriterError, CapabilityInvalid) as error:
            self._world.trace.note("deaf", self.process.name, self._id, type(error).__name__)
        finally:
            self.ended = True

    async def _follow(self) -> None:
        assert self._steps is not None
        while not self._stopped:
            try:
                step = await self._steps.next()
            except StorageError:
                continue  # ask again: nothing may be lost by that
            if step is None:
                return
            self._check(step)

    def _check(self, step: Step) -> None:
        model, name, progress = self._world.model, self.process.name, time_of(step.progress)
        self._world.trace.note("step", name, self._id, self._heard, progress, step.table.num_rows)
        if self._owed:
            self._owed = False
            self._check_snapshot(step)
        else:
            if progress <= self._heard:
                raise Violation(f"{name} heard no progress on {self._id} from {self._heard}")
            found = changes_of(step.table)
            model.check_changes(name, self._id, self._heard, progress, found)
        self._heard = progress

    def _check_snapshot(self, step: Step) -> None:
        """The contents at the capability's frontier; a row may come in several updates."""
        contents: Counter[Row] = Counter()
        for update in step.updates:
            if update.time != self._at:
                raise Violation(f"a snapshot of {self._id} at {self._at} has {update}")
            contents[trim(list(update.data))] += update.diff
        contents = Counter({row: count for row, count in contents.items() if count})
        if time_of(step.progress) != self._at + 1:
            raise Violation(f"a snapshot of {self._id} at {self._at} went to {step.progress}")
        self._world.model.check_contents(self.process.name, self._id, self._at, contents)

    def cancel(self) -> None:
        """End it, without waiting."""
        self._world.spawn(self.process, self.stop())

    async def stop(self) -> None:
        """End it."""
        self._stopped = True
        if self._steps is not None:
            try:
                await self._steps.close()
            except (StorageError, WriterError, Stopped) as error:
                self._world.trace.note("not unsubscribed", self._id, type(error).__name__)


def subscribe(world: World) -> Awaitable[object] | None:
    """Follow a collection from a capability on, which may be void."""
    capability = choose(world, ReadCapability)
    chosen = None if capability is None else able(world, writer=False)
    if capability is None or chosen is None or len(world.listeners) > 5:
        return None
    process, client = chosen
    if capability.id not in client.state.names and process.mode == "write":
        return None
    subscriber = Subscriber(world, process, capability, snapshot=world.random.random() < 0.8)
    world.listeners.append(subscriber)
    world.note("storage subscribe")
    call = begin(world, client, "subscribe", capability)
    world.spawn(process, subscriber.run(call, capability))
    return None
