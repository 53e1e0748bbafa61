"""Storage: the four calls, and capabilities from their creation to their end.

The location is in memory and the wall clock is set by the test, so leases run out when it says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from noonmark import persist
from noonmark.errors import (
    BeforeSince,
    BelowUpper,
    CapabilityInvalid,
    FrontierRegression,
    NameTaken,
    NotBelowFrontier,
    UnknownCollection,
)
from noonmark.persist.client import Options
from noonmark.persist.log import command as c
from noonmark.persist.read.snapshot import Step
from noonmark.rows.schema import Schema
from noonmark.storage import (
    NO_LEASE_MS,
    Capability,
    CollectionDescription,
    ReadCapability,
    Storage,
    Subscription,
    WriteCapability,
)
from noonmark.storage.transaction import Transaction, creation, own_capability
from noonmark.tvc import EMPTY, Antichain, Update
from support.store.clocks import SetClock

SCHEMA = Schema.of(id="bigint", name="text")
ORDERS = CollectionDescription(SCHEMA, ("id",), "source", {"partitions": 3})
LEASE_MS = 1_000


def at(time: int) -> Antichain[int]:
    return Antichain.of(time)


def row(time: int, diff: int = 1, number: int = 1) -> Update:
    return Update((number, f"row {number}"), time, diff)


def take(subscription: Subscription, count: int) -> list[Step]:
    steps = list(itertools.islice(subscription, count))
    subscription.cancel()
    return steps


class World:
    """A location that can be closed and opened again, its clock, and Storage on it."""

    def __init__(self, name: str) -> None:
        self.clock = SetClock()
        self._name = name
        self.open()

    def open(self) -> None:
        self.client = persist.open(
            f"memory:{self._name}", options=Options(notify_host=None), clock=self.clock
        )
        self.storage = Storage(self.client, lease_ms=LEASE_MS)

    def restart(self) -> None:
        self.client.stop()
        self.open()

    def expire(self, *capabilities: Capability) -> None:
        """As the writer's upkeep does, when it comes to it."""
        self.client.submit((c.Expire(tuple(each.token for each in capabilities)),)).result(10)

    def frontiers(self, id: str) -> tuple[Antichain[int], Antichain[int]]:
        return self.storage.frontiers()[id]

    def contents(self, id: str, time: int) -> dict[tuple[object, ...], int]:
        _, read = self.client.create_or_load(id)
        return dict(read.snapshot(time, wait=False).result(10).counts())


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(request.node.name)
    yield world
    world.client.stop()


def test_a_new_collection_has_nothing_readable_yet(world: World) -> None:
    read, write = world.storage.create("orders", ORDERS, 5)
    assert (read.id, write.id) == ("orders", "orders")
    assert read.frontier == write.frontier == at(5)
    assert world.frontiers("orders") == (at(5), at(5))
    assert world.storage.description("orders") == ORDERS
    world.restart()
    assert world.frontiers("orders") == (at(5), at(5))
    assert world.storage.description("orders") == ORDERS


def test_an_update_is_durable_when_the_call_returns(world: World) -> None:
    _, write = world.storage.create("orders", ORDERS)
    write = world.storage.update_and_downgrade(write, [row(3), row(4, 2)], 10)
    assert write.frontier == at(10)
    world.restart()
    assert world.frontiers("orders") == (at(0), at(10))
    assert world.contents("orders", 9) == {(1, "row 1"): 3}
    assert world.contents("orders", 3) == {(1, "row 1"): 1}
    world.storage.update_and_downgrade(write, [row(10, -3)], 11)  # the capability survived, too
    assert world.contents("orders", 10) == {}


def test_updates_outside_of_the_step_are_refused_and_change_nothing(world: World) -> None:
    _, write = world.storage.create("orders", ORDERS, 5)
    before = world.client.state
    for updates, frontier, refusal in (
        ([row(4)], 10, BelowUpper),
        ([row(5), row(10)], 10, NotBelowFrontier),
        ([], 4, FrontierRegression),
    ):
        with pytest.raises(refusal):
            world.storage.update_and_downgrade(write, updates, frontier)
    assert world.client.state is before
    assert world.storage.update_and_downgrade(write, [row(5)], EMPTY).frontier == EMPTY
    assert world.frontiers("orders") == (at(5), EMPTY)


def test_a_seal_does_not_pass_another_s_write_capability(world: World) -> None:
    _, write = world.storage.create("orders", ORDERS)
    handle, _ = world.client.create_or_load("orders")
    with pytest.raises(CapabilityInvalid, match="may still be written at 0"):
        handle.seal(7).result(10)
    assert world.frontiers("orders")[1] == at(0)
    write = world.storage.update_and_downgrade(write, [row(3)], 7)
    assert world.contents("orders", 6) == {(1, "row 1"): 1}
    with pytest.raises(CapabilityInvalid, match="may still be written at 7"):
        handle.seal(8).result(10)
    world.storage.drop(write)
    handle.seal(8).result(10)
    assert world.frontiers("orders")[1] == at(8)


def test_what_the_system_writes_nobody_else_does(world: World) -> None:
    """Law (owner) of `noonmark.storage.transaction`."""
    client = world.client
    client.submit((creation("t", ORDERS, 0),)).result(10)
    for time in (0, 5):  # the first write takes the capability, the next one has it
        txn = Transaction(client)
        after = txn.update_and_downgrade(own_capability(client.state, "t"), [row(time)], time + 5)
        txn.commit().result(10)
        assert after == own_capability(client.state, "t")
    assert world.frontiers("t") == (at(0), at(10))
    (hold,) = world.storage.capabilities("t")
    assert (hold.writes, hold.frontier, hold.expires_ms) == (True, at(10), NO_LEASE_MS)
    with pytest.raises(CapabilityInvalid, match="written by the system alone"):
        world.storage.acquire_capabilities("t")
    with pytest.raises(CapabilityInvalid, match="may still be written"):
        client.create_or_load("t")[0].seal(11).result(10)
    stale = Transaction(client)
    stale.update_and_downgrade(own_capability(client.state, "t", 5), [row(7)], 9)
    with pytest.raises(CapabilityInvalid, match="not where it is said to be"):
        stale.commit().result(10)
    read = world.storage.acquire_read("t")
    assert [step.progress for step in take(world.storage.subscribe_at(read), 1)] == [at(1)]
    world.restart()
    txn = Transaction(world.client)
    own = own_capability(world.client.state, "t")
    txn.update_and_downgrade(own, [row(10, -2)], 11)
    txn.commit().result(10)
    assert world.contents("t", 10) == {}


def test_upper_is_the_meet_of_the_write_capabilities(world: World) -> None:
    storage = world.storage
    _, one = storage.create("orders", ORDERS)
    two = storage.clone(one)
    assert two.token != one.token
    one = storage.update_and_downgrade(one, [row(7)], 10)
    assert world.frontiers("orders")[1] == at(0)
    two = storage.update_and_downgrade(two, [row(2, number=2)], 6)
    assert world.frontiers("orders")[1] == at(6)
    storage.drop(two)
    assert world.frontiers("orders")[1] == at(10)
    assert world.contents("orders", 9) == {(1, "row 1"): 1, (2, "row 2"): 1}
    storage.drop(one)
    assert world.frontiers("orders")[1] == at(10), "losing the last writer closes nothing"
    _, again = storage.acquire_capabilities("orders")
    assert again.frontier == at(10)


def test_since_is_the_meet_of_the_read_capabilities_and_not_beyond_upper(world: World) -> None:
    storage = world.storage
    one, write = storage.create("orders", ORDERS)
    two = storage.clone(one)
    write = storage.update_and_downgrade(write, [row(1)], 10)
    one = storage.downgrade(one, 8)
    assert world.frontiers("orders")[0] == at(0)
    two = storage.downgrade(two, 20)
    assert world.frontiers("orders")[0] == at(8)
    storage.drop(one)
    assert world.frontiers("orders")[0] == at(10), "nothing is readable beyond upper"
    storage.update_and_downgrade(write, [], 30)
    assert world.frontiers("orders")[0] == at(20)
    with pytest.raises(FrontierRegression):
        storage.downgrade(two, 19)


def test_a_capability_that_was_downgraded_is_not_the_old_one_any_more(world: World) -> None:
    storage = world.storage
    read, write = storage.create("orders", ORDERS)
    storage.update_and_downgrade(write, [row(1)], 5)
    storage.downgrade(read, 3)
    for stale in (
        lambda: storage.update_and_downgrade(write, [row(6)], 9),
        lambda: storage.subscribe_at(read),
        lambda: storage.clone(read),
        lambda: storage.downgrade(read, 4),
    ):
        with pytest.raises(CapabilityInvalid):
            stale()


def test_a_capability_is_for_its_collection_and_its_kind_alone(world: World) -> None:
    storage = world.storage
    read, write = storage.create("orders", ORDERS)
    storage.create("other", ORDERS)
    for forged in (
        ReadCapability("other", read.frontier, read.token),
        ReadCapability("orders", write.frontier, write.token),
        ReadCapability("orders", read.frontier, "no such token"),
    ):
        with pytest.raises(CapabilityInvalid):
            storage.subscribe_at(forged)
    wrong = WriteCapability("other", write.frontier, write.token)
    with pytest.raises(CapabilityInvalid):
        storage.update_and_downgrade(wrong, [row(1)], 5)
    with pytest.raises(CapabilityInvalid):
        Capability.from_bytes(b"\x93nothing of ours")
    assert Capability.from_bytes(read.to_bytes()) == read
    assert Capability.from_bytes(write.to_bytes()) == write


def test_an_expired_capability_is_an_error_in_every_use(world: World) -> None:
    storage = world.storage
    read, write = storage.create("orders", ORDERS)
    world.clock.wall_ms += LEASE_MS - 1
    read, write = storage.renew(read), storage.renew(write)
    world.clock.wall_ms += LEASE_MS - 1
    write = storage.update_and_downgrade(write, [row(1)], 5)  # exercising renews as well
    world.clock.wall_ms += 1
    uses = [
        lambda: storage.subscribe_at(read),
        lambda: storage.clone(read),
        lambda: storage.renew(read),
        lambda: storage.downgrade(read, 3),
    ]
    for use in uses:
        with pytest.raises(CapabilityInvalid):
            use()
    world.clock.wall_ms += LEASE_MS
    with pytest.raises(CapabilityInvalid):
        storage.update_and_downgrade(write, [row(5)], 9)
    storage.drop(read, write)
    assert world.frontiers("orders") == (at(0), at(5)), "expiry moves nothing by itself"
    world.expire(read, write)
    assert world.frontiers("orders") == (at(5), at(5)), "what it kept is free now"
    with pytest.raises(BeforeSince):
        world.contents("orders", 4)


def test_a_lease_does_not_come_back_with_a_clock_that_goes_back(world: World) -> None:
    read, write = world.storage.create("orders", ORDERS)
    world.clock.wall_ms += LEASE_MS
    world.storage.create("other", ORDERS)  # an entry of that time
    world.clock.wall_ms -= LEASE_MS
    for use in (
        lambda: world.storage.subscribe_at(read),
        lambda: world.storage.update_and_downgrade(write, [], 3),
    ):
        with pytest.raises(CapabilityInvalid):
            use()


def test_no_clock_ends_a_capability_without_a_lease(world: World) -> None:
    storage = Storage(world.client, lease_ms=NO_LEASE_MS)
    read, _ = storage.create("orders", ORDERS)
    world.clock.wall_ms += 10**12
    assert storage.clone(read).frontier == at(0)


def test_deferred_actions_are_one_commit_or_none(world: World) -> None:
    storage = world.storage
    reads, writes = zip(*(storage.create(name, ORDERS) for name in "abc"), strict=True)
    writes = storage.update_many([(each, [row(1)], 10) for each in writes]).result(10)
    seqno = world.client.state.seqno
    reads = storage.apply([(each, at(5)) for each in reads])
    assert world.client.state.seqno == seqno + 1
    assert {since for since, _ in storage.frontiers().values()} == {at(5)}
    with pytest.raises(FrontierRegression):
        storage.apply([(reads[0], at(7)), (reads[1], at(4)), (reads[2], at(7))])
    assert {since for since, _ in storage.frontiers().values()} == {at(5)}
    late = [(writes[0], [row(12)], 20), (writes[1], [row(12)], 13), (writes[2], [row(9)], 13)]
    with pytest.raises(BelowUpper):
        storage.update_many(late)
    assert {upper for _, upper in storage.frontiers().values()} == {at(10)}
    seqno = world.client.state.seqno
    storage.update_many([(each, [row(12)], 13) for each in writes]).result(10)
    assert world.client.state.seqno == seqno + 1


def test_the_life_of_a_global_id(world: World) -> None:
    storage = world.storage
    read, write = storage.create("orders", ORDERS)
    number = world.client.state.collection("orders").id
    storage.update_and_downgrade(write, [row(1)], 5)
    storage.clone(read)
    storage.close("orders")
    assert world.frontiers("orders") == (EMPTY, EMPTY)
    assert storage.capabilities("orders") == []
    assert world.client.state.collection("orders").batches == ()
    with pytest.raises(CapabilityInvalid):
        storage.subscribe_at(read)
    late_read, late_write = storage.acquire_capabilities("orders")
    assert late_read.frontier == late_write.frontier == EMPTY
    assert list(storage.subscribe_at(late_read)) == []
    storage.close("orders")  # closing what is closed is no error
    for _ in range(2):
        with pytest.raises(NameTaken):
            world.storage.create("orders", ORDERS)
        world.storage.create(f"other {world.client.state.seqno}", ORDERS)
        world.restart()
    numbers = [each.id for each in world.client.state.collections.values()]
    assert min(numbers) == number
    assert len(numbers) == len(set(numbers)) == 3


def test_closing_does_not_wait_for_capabilities_that_expired(world: World) -> None:
    read, _ = world.storage.create("orders", ORDERS)
    world.storage.drop(read)
    world.storage.acquire_capabilities("orders")
    world.clock.wall_ms += LEASE_MS
    world.storage.acquire_capabilities("orders")
    world.storage.close("orders")
    assert world.frontiers("orders") == (EMPTY, EMPTY)
    assert world.storage.capabilities("orders") == []


def test_what_storage_did_not_create_is_not_described(world: World) -> None:
    with pytest.raises(UnknownCollection):
        world.storage.acquire_capabilities("nothing")
    world.client.create_or_load("plain", SCHEMA)
    with pytest.raises(UnknownCollection):
        world.storage.description("plain")


def test_many_threads_create_and_one_of_equals_wins(world: World) -> None:
    def create(number: int) -> bool:
        world.storage.create(f"own {number}", ORDERS)
        try:
            world.storage.create("same", ORDERS)
        except NameTaken:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(create, range(24)))
    assert won.count(True) == 1
    names = world.client.state.names
    assert len(names) == len(set(names.values())) == 25
    assert all(len(world.storage.capabilities(name)) == 2 for name in names)


def test_capabilities_are_acquired_while_frontiers_move(world: World) -> None:
    _, write = world.storage.create("orders", ORDERS)
    last = 150

    def advance(write: WriteCapability) -> None:
        for time in range(last):
            write = world.storage.update_and_downgrade(write, [row(time)], time + 1)

    with ThreadPoolExecutor(1) as threads:
        advancing = threads.submit(advance, write)
        seen = []
        while not advancing.done():
            both = world.storage.acquire_capabilities("orders")
            seen.append(both[1].frontier.only() or 0)
            world.storage.drop(*both)
        advancing.result(10)
    assert seen == sorted(seen)
    assert world.frontiers("orders")[1] == at(last)
    assert world.contents("orders", last - 1) == {(1, "row 1"): last}
