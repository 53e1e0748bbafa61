"""Reads of the simulation: through any process, at whatever state it has, against the model."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.errors import (
    BeforeSince,
    CapabilityInvalid,
    Fenced,
    NoonmarkError,
    Stopped,
    StorageError,
    UnknownCollection,
)
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.log.state import Collection, State
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.read.handle import ReadHandle
from noonmark.persist.read.snapshot import Listen

from .model import NEVER, Model, Row, Violation, time_of
from .process import Process
from .trace import Trace

if TYPE_CHECKING:
    from .world import World

#: Times are read up to this far beyond the last that was written, when upper is empty.
BEYOND = 3


def read_handle(client: Client, collection: Collection) -> ReadHandle:
    """A handle on a collection, by what the client knows of it now."""
    return ReadHandle(client, collection.id, RowCodec(collection.schema))


def choose_read(random: Random, state: State) -> tuple[Collection, int] | None:
    """A collection that has a readable time in this state, and such a time."""
    readable = [
        c for c in state.collections.values() if time_of(c.since) < min(time_of(c.upper), NEVER)
    ]
    if not readable:
        return None
    collection = random.choice(readable)
    since, upper = time_of(collection.since), time_of(collection.upper)
    if upper == NEVER:
        written = [b.time_max for b in collection.batches]
        upper = max([since, *written]) + BEYOND
    return collection, random.choice((since, upper - 1, random.randrange(since, upper)))


async def check_read(
    world: World, process: Process, collection: Collection, time: int, *, slowly: bool = False
) -> None:
    """Read once, in one of the ways that there are, and compare."""
    client, random, model, trace = process.client, world.random, world.model, world.trace
    assert client is not None
    name = collection.name
    held = [
        hold.id
        for hold in process.holds
        if hold.collection == collection.id and hold.frontier.less_equal(time)
    ]
    part = _choose_part(random, collection) if not model.undecided(name, time) else {}
    try:
        handle = read_handle(client, collection)
        snapshot = await asyncio.wrap_future(handle.snapshot(time, wait=False, **part))
        found: Counter[Row] = Counter()
        async for table in snapshot:
            _count(table, found)
            if slowly:
                await client.clock.sleep(0.4 + random.random())
            elif random.random() < 0.3:
                await client.clock.sleep(random.random() ** 3)
    except BeforeSince as error:
        if not model.since_may_exceed(name, time):
            raise Violation(f"{process.name} cannot read what is held or new: {error}") from error
        return
    except UnknownCollection as error:
        if not model.may_be_dropped(name):
            raise Violation(f"{process.name} lost a collection: {error}") from error
        return
    except CapabilityInvalid as error:
        if any(model.is_held(hold) for hold in held):
            raise Violation(f"{process.name} was overtaken where it holds: {error}") from error
        trace.note("overtaken", process.name, name, time)
        return
    except StorageError as error:
        trace.note("unread", process.name, name, time, type(error).__name__)
        return
    found = Counter({row: count for row, count in found.items() if count})
    trace.note("read", process.name, name, time, len(found), sorted(part))
    if part:
        expected = _expected_part(model.contents(name, time), collection, part)
        model.check_part(process.name, name, time, found, expected)
    else:
        model.check_contents(process.name, name, time, found)


def _choose_part(random: Random, collection: Collection) -> dict[str, Any]:
    """Sometimes not everything: some columns, some keys, or a range."""
    kind = random.random()
    if kind < 0.1:
        return {"columns": ("v",)}
    if kind < 0.2 and collection.key:
        return {"keys": [random.randrange(6) for _ in range(random.randrange(1, 4))]}
    if kind < 0.3:
        low = random.randrange(6)
        return {"where": {"k": (low, low + random.randrange(3))}}
    return {}


def _expected_part(
    contents: Counter[Row], collection: Collection, part: dict[str, Any]
) -> Counter[Row]:
    low, high = part.get("where", {}).get("k", (None, None))

    def keep(row: Row) -> bool:
        if "keys" in part:
            return row[0] in part["keys"]
        return low is None or (row[0] is not None and low <= row[0] <= high)

    at = [collection.schema.names.index(name) for name in part.get("columns", ())]
    expected: Counter[Row] = Counter()
    for row, count in contents.items():
        if keep(row):
            expected[tuple(row[i] for i in at) if at else row] += count
    return Counter({row: count for row, count in expected.items() if count})


def _count(table: pa.Table, counts: Counter[Row]) -> None:
    if table.num_rows == 0:
        raise Violation("a snapshot gave an empty table")
    columns = [column.to_pylist() for column in table.columns]
    for *values, diff in zip(*columns, strict=True):
        counts[trim(values)] += diff


def trim(values: list[Any]) -> Row:
    """A row without the NULLs at its end: the same row under every schema since."""
    end = len(values)
    while end > 1 and values[end - 1] is None:
        end -= 1
    return tuple(values[:end])


class Listener:
    """A listen that is compared with the model at every step."""

    def __init__(self, process: Process, collection: Collection, as_of: int, *, hold: bool) -> None:
        self.process = process
        self.collection = collection
        self.as_of = as_of
        self.hold = hold
        self.listen: Listen | None = None
        self.ended = False
        self._stopped = False

    async def run(self, model: Model, trace: Trace) -> None:
        """Follow until the end, or until a reason to stop that the model accepts."""
        try:
            await self._follow(model, trace)
        except BeforeSince as error:
            if not model.since_may_exceed(self.collection.name, self._read_up_to()):
                raise Violation(f"{self.process.name} cannot listen any more: {error}") from error
        except UnknownCollection as error:
            if not model.may_be_dropped(self.collection.name):
                raise Violation(f"{self.process.name} lost a collection: {error}") from error
        except (Stopped, Fenced, StorageError, CapabilityInvalid) as error:
            trace.note("deaf", self.process.name, self.collection.name, type(error).__name__)
        finally:
            self.ended = True

    def _read_up_to(self) -> int:
        return self.as_of if self.listen is None else time_of(self.listen.progress) - 1

    async def _follow(self, model: Model, trace: Trace) -> None:
        client = self.process.client
        assert client is not None
        name = self.collection.name
        handle = read_handle(client, self.collection)
        mode_holds = self.hold and self.process.mode != "independent"
        self.listen = await handle.open_listen(self.as_of, mode_holds)
        heard = self.as_of + 1
        while not self._stopped:
            try:
                step = await self.listen.next()
            except StorageError:
                continue  # ask again: nothing may be lost by that
            except CapabilityInvalid:
                if self.listen.hold is None:
                    raise
                self.listen.hold = None  # expired: go on without, for as long as since allows
                continue
            if step is None:
                return
            progress = time_of(step.progress)
            if progress <= heard:
                raise Violation(f"{self.process.name} heard no progress on {name} from {heard}")
            found = changes_of(step.table)
            trace.note("heard", self.process.name, name, heard, progress, len(found))
            model.check_changes(self.process.name, name, heard, progress, found)
            heard = progress

    def cancel(self) -> None:
        """End the listen, without waiting."""
        if self.listen is not None:
            self.listen.cancel()

    async def stop(self) -> None:
        """End the listen."""
        self._stopped = True
        if self.listen is not None:
            try:
                await self.listen.close()
            except NoonmarkError:
                self.listen.hold = None


def changes_of(table: pa.Table) -> Counter[tuple[Row, int]]:
    columns = [table.column(n).to_pylist() for n in table.column_names if n not in (TIME, DIFF)]
    times, diffs = table.column(TIME).to_pylist(), table.column(DIFF).to_pylist()
    found: Counter[tuple[Row, int]] = Counter()
    for *values, time, diff in zip(*columns, times, diffs, strict=True):
        if (trim(values), time) in found:
            raise Violation("a listen gave two updates of one row and time in one step")
        found[trim(values), time] = diff
    return found
