"""What the simulation found in Storage, each as the shortest story that shows it."""

from __future__ import annotations

import pytest

from noonmark.errors import CapabilityInvalid
from noonmark.storage import AsyncStorage, Capability, CollectionDescription, ReadCapability
from noonmark.tvc import Update
from simulation.story import opened, play
from simulation.world import World
from simulation.writes import SCHEMA

ORDERS = CollectionDescription(SCHEMA)


async def two_sides(world: World) -> tuple[AsyncStorage, AsyncStorage, ReadCapability]:
    """A writer, a reader that knows of the capability, and the capability."""
    _, writer = await opened(world, "write")
    storage = AsyncStorage(writer)
    read, _ = await storage.create("orders", ORDERS)
    _, reader = await opened(world, "polling")
    return storage, AsyncStorage(reader), read


def test_the_writer_takes_a_capability_that_it_has_not_heard_of_yet() -> None:
    async def story(world: World) -> None:
        writer, reader, read = await two_sides(world)
        handed = Capability.from_bytes((await reader.clone(read)).to_bytes())
        assert handed.token not in writer.client.state.holds
        assert isinstance(handed, ReadCapability)
        assert (await writer.clone(handed)).frontier == read.frontier
        handed = await reader.downgrade(handed, 7)
        assert writer.client.state.holds[handed.token].frontier != handed.frontier
        await (await writer.subscribe_at(handed)).close()
        await writer.drop(handed)
        assert handed.token not in writer.client.state.holds

    play(story)


@pytest.mark.parametrize("use", ["clone", "subscribe_at"])
@pytest.mark.parametrize("user", ["reader", "writer"])
def test_what_another_process_dropped_is_of_no_use(use: str, user: str) -> None:
    async def story(world: World) -> None:
        writer, reader, read = await two_sides(world)
        await writer.clone(read)  # so that since stays, and only the capability can be the reason
        using, dropping = (reader, writer) if user == "reader" else (writer, reader)
        await using.client.journal.refresh()
        await dropping.drop(read)
        assert read.token in using.client.state.holds, "it has not heard of that"
        with pytest.raises(CapabilityInvalid):
            await getattr(using, use)(read)

    play(story)


def test_a_capability_that_ended_is_the_reason_and_not_the_upper_that_went_on() -> None:
    async def story(world: World) -> None:
        _, client = await opened(world, "write")
        storage = AsyncStorage(client)
        _, slow = await storage.create("orders", ORDERS)
        fast = await storage.clone(slow)
        await storage.drop(slow)
        await storage.update_and_downgrade(fast, [Update((1, "a"), 0, 1)], 5)
        with pytest.raises(CapabilityInvalid):
            await storage.update_and_downgrade(slow, [Update((2, "b"), 0, 1)], 3)

    play(story)
