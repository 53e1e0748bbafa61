"""What the simulation found in persist, each as the shortest story that shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from noonmark.errors import Determinate, Indeterminate
from noonmark.persist.client import Client
from noonmark.persist.codec import RowCodec
from noonmark.persist.config import Config
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.seqno import truncated
from noonmark.persist.location import Blob
from noonmark.persist.log import command as c
from noonmark.persist.log.state import State, schema_to_wire
from noonmark.persist.write import WriteHandle
from noonmark.tvc import Antichain, Update
from simulation.model import time_of
from simulation.reads import read_handle
from simulation.story import QUIET, opened, play
from simulation.world import World
from simulation.writes import SCHEMA

ORDERS = c.Create("orders", ("k",), schema_to_wire(SCHEMA))


async def done(client: Client, *commands: c.AnyCommand) -> State:
    return await asyncio.wrap_future(client.submit(commands))


async def add(client: Client, time: int, *keys: int) -> None:
    """Add rows at `time`, and seal it."""
    handle = WriteHandle(client, 1, RowCodec(SCHEMA))
    updates = [Update((key, "a"), time, 1) for key in keys]
    await asyncio.wrap_future(handle.compare_and_append(updates, time, time + 1))


class LosesAnAnswer(BlobConsensus):
    """A log that appends, lets something else happen, and then does not answer."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def append(self, seqno: int, entry: bytes) -> bool:
        meanwhile, self.meanwhile = self.meanwhile, None
        appended = await super().append(seqno, entry)
        if meanwhile is None:
            return appended
        await meanwhile()
        raise Indeterminate("the answer was lost")


def replace_log(client: Client, blob: Blob) -> LosesAnAnswer:
    log = LosesAnAnswer(blob)
    client.consensus = client.journal.consensus = log
    return log


async def truncate_beyond(client: Client) -> None:
    """Write so much and so many rollups that every entry so far is truncated."""
    for _ in range(3):
        await done(client, c.Annotate(1, b"more"))
        await client.journal.write_rollup()


def test_a_listen_that_fails_to_move_its_hold_loses_no_update() -> None:
    async def story(world: World) -> None:
        _, client = await opened(world, "write")
        await done(client, ORDERS)
        await add(client, 0, 1)
        listen = await read_handle(client, client.state.collection("orders")).open_listen(0, True)
        assert listen.hold is not None
        heard = []
        failures = [Determinate("storage is away"), None, Determinate("and again"), None, None]

        async def downgrade_soon(_: Any) -> None:
            failure = failures.pop(0)
            if failure is not None:
                raise failure

        listen.hold.downgrade_soon = downgrade_soon  # type: ignore[method-assign]
        for time in (1, 2, 3):
            await add(client, time, time)
            while True:
                try:
                    step = await listen.next()
                except Determinate:
                    continue
                assert step is not None
                heard += step.updates
                break
        assert heard == [Update((time, "a"), time, 1) for time in (1, 2, 3)]

    play(story)


def test_a_state_never_goes_back_when_a_commit_is_settled_late() -> None:
    async def story(world: World) -> None:
        _, first = await opened(world, "write")
        await done(first, ORDERS)
        log = replace_log(first, world.blob)

        async def meanwhile() -> None:
            _, second = await opened(world, "write")
            await truncate_beyond(second)

        log.meanwhile = meanwhile
        state = await done(first, c.Annotate(1, b"first"))
        assert state.collection(1).annotation == b"first"
        assert state.seqno < first.state.seqno == world.blob.head

    play(story)


def test_a_hold_whose_entry_was_truncated_before_the_answer_is_taken_once() -> None:
    async def story(world: World) -> None:
        _, writer = await opened(world, "write")
        await done(writer, ORDERS)
        _, reader = await opened(world, "polling")
        replace_log(reader, world.blob).meanwhile = lambda: truncate_beyond(writer)
        hold = await reader.acquire(1)
        await writer.journal.refresh()
        assert list(writer.state.holds) == [hold.id]

    play(story)


@pytest.mark.parametrize("seed", range(12))
def test_a_hold_handle_does_not_fall_behind_its_hold(seed: int) -> None:
    async def story(world: World) -> None:
        world.loop._random = __import__("random").Random(seed).random
        _, client = await opened(world, "write")
        await done(client, ORDERS)
        hold = await client.acquire(1)
        await asyncio.gather(hold.renew(), hold.downgrade(Antichain.of(5)))
        assert hold.frontier == client.state.holds[hold.id].frontier == Antichain.of(5)
        await hold.renew()

    play(story)


def test_a_lost_answer_to_a_downgrade_does_not_end_renewal() -> None:
    async def story(world: World) -> None:
        _, client = await opened(world, "write")
        await done(client, ORDERS)
        hold = await client.acquire(1)
        # As if the answer to this had been lost: the handle does not know.
        lease = client.lease_end()
        await done(client, c.Downgrade(hold.id, Antichain.of(5), lease, client.state.seqno))
        await hold.renew()
        assert hold.frontier == Antichain.of(5)

    play(story)


def test_a_clock_that_is_behind_gives_leases_that_last() -> None:
    async def story(world: World) -> None:
        ahead, writer = await opened(world, "write")
        ahead.clock.skew_ms = 10**9
        await done(writer, ORDERS)
        _, reader = await opened(world, "polling")
        hold = await reader.acquire(1)
        await hold.renew()
        ahead.clock.skew_ms = 0
        await writer.upkeep._leases()
        assert writer.state.lock is not None
        assert writer.state.lock.expires_ms > writer.state.now_ms

    play(story)


def test_a_clock_that_went_back_does_not_shorten_a_lease() -> None:
    async def story(world: World) -> None:
        process, client = await opened(world, "write")
        await done(client, ORDERS)
        hold = await client.acquire(1)
        before = client.state.holds[hold.id].expires_ms
        process.clock.skew_ms = -(10**6)
        await hold.renew()
        assert client.state.holds[hold.id].expires_ms >= before

    play(story)


def test_garbage_that_a_reader_holds_stays_although_the_writer_has_not_heard_of_it() -> None:
    async def story(world: World) -> None:
        _, writer = await opened(world, "write", Config(inline_bytes_max=0, poll_s=1e6))
        await done(writer, ORDERS)
        await add(writer, 0, 1)
        _, reader = await opened(world, "polling")
        old = reader.state.collection(1).batches[0].parts[0].key
        await asyncio.wrap_future(writer.compact("orders"))
        await reader.acquire(1)  # as of the state before the compaction
        writer.clock.skew_ms = 10**6  # type: ignore[attr-defined]
        await writer.upkeep._garbage()
        assert await world.blob.get(old) is not None

    play(story)


def test_renewing_a_hold_keeps_what_a_read_under_way_needs() -> None:
    async def story(world: World) -> None:
        _, writer = await opened(world, "write", Config(inline_bytes_max=0, part_rows_max=1))
        await done(writer, ORDERS)
        await add(writer, 0, 1, 2, 3)
        _, reader = await opened(world, "polling")
        hold = await reader.acquire(1)
        handle = read_handle(reader, reader.state.collection(1))
        snapshot = await asyncio.wrap_future(handle.snapshot(0))
        tables = aiter(snapshot)
        rows = (await anext(tables)).num_rows
        await asyncio.wrap_future(writer.compact("orders"))
        await reader.journal.refresh()
        await hold.renew()
        writer.clock.skew_ms = 40_000  # type: ignore[attr-defined]
        await writer.upkeep._garbage()
        rows += sum([table.num_rows async for table in tables])
        assert rows == 3
        assert time_of(hold.frontier) == 0

    play(story)


def test_a_writer_opens_although_storage_fails_at_first() -> None:
    async def story(world: World) -> None:
        process = world.start("write")
        put, failures = process._blob.put_if_absent, [Determinate("away"), Indeterminate("maybe")]

        async def put_if_absent(key: str, value: bytes) -> bool:
            if key.startswith("probe/") and failures:
                raise failures.pop()
            return await put(key, value)

        process._blob.put_if_absent = put_if_absent  # type: ignore[method-assign]
        await process.run(process.open(QUIET, None))
        assert process.client is not None
        assert not failures

    play(story)


def test_what_cannot_be_settled_is_in_doubt() -> None:
    """An entry that landed and was truncated while its writer stood still, and storage fails."""

    async def story(world: World) -> None:
        _, writer = await opened(world, "write", QUIET)
        await done(writer, ORDERS)
        consensus = writer.journal.consensus
        append = consensus.append

        async def appended(seqno: int, entry: bytes) -> bool:
            assert await append(seqno, entry)
            return False

        async def read(start: int, limit: int) -> list[bytes]:
            if limit == 1:
                raise truncated(start, start + 9, "memory")
            raise Determinate("away")

        consensus.append, consensus.read = appended, read  # type: ignore[method-assign]
        with pytest.raises(Indeterminate, match="cannot be known"):
            await add(writer, 0, 1)

    play(story)
