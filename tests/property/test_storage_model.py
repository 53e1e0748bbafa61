"""Storage against a model that is nothing but dictionaries.

Law (upper): the meet of all write capabilities, and it never goes back.
Law (since): the meet of all read capabilities and of upper, and it never goes back.
Law (contents): at every time t in since and not in upper, the sum of the updates at times up to t.
Law (validity): a capability that was dropped, has expired, was closed over or is stated at another
frontier changes nothing and is `CapabilityInvalid`.
Law (identity): a global id that was ever bound is never bound again.

Times run from 0 to `LAST`; None is the empty frontier, beyond all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import CapabilityInvalid, FrontierRegression, NameTaken, UsageError
from noonmark.persist.log import command as c
from noonmark.rows.schema import Schema
from noonmark.storage import Capability, CollectionDescription, ReadCapability, Storage
from noonmark.tvc import EMPTY, Antichain, Update
from support.store.clocks import SetClock

LAST = 12
BEYOND = LAST + 1
LEASE_MS = 1_000
TABLE = CollectionDescription(Schema.of(id="bigint"))

picks = st.integers(0, 10**6)
steps = st.integers(0, 5)
changes = st.lists(st.tuples(st.integers(0, 3), steps, st.sampled_from([1, 1, 2, -1])), max_size=4)


def frontier_of(time: int) -> Antichain[int]:
    return EMPTY if time >= BEYOND else Antichain.of(time)


@dataclass
class Right:
    """A capability as the model knows it, and as the user last got it."""

    given: Capability
    at: int
    expires_ms: int


@dataclass
class Model:
    """One collection."""

    since: int
    upper: int
    readers: dict[str, Right] = field(default_factory=dict)
    writers: dict[str, Right] = field(default_factory=dict)
    updates: list[tuple[int, int, int]] = field(default_factory=list)

    def settle(self) -> None:
        """Have both frontiers follow the capabilities."""
        if self.writers:
            self.upper = max(self.upper, min(right.at for right in self.writers.values()))
        readers = [right.at for right in self.readers.values()]
        self.since = max(self.since, min([*readers, self.upper]))

    def contents(self, time: int) -> dict[tuple[int], int]:
        counts: Counter[tuple[int]] = Counter()
        for data, at, diff in self.updates:
            if at <= time:
                counts[data,] += diff
        return {row: count for row, count in counts.items() if count}


class StorageMachine(RuleBasedStateMachine):
    """Every call of Storage, on a few collections, with leases, restarts and invalid uses."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = SetClock()
        self.place = f"memory:storage-model-{SYSTEM.fresh_id()}"
        self.models: dict[str, Model] = {}
        self.void: list[Capability] = []
        self.open()

    def open(self) -> None:
        options = persist.Options(notify_host=None)
        self.client = persist.open(self.place, options=options, clock=self.clock)
        self.storage = Storage(self.client, lease_ms=LEASE_MS)

    def teardown(self) -> None:
        self.client.stop()

    # -- the model's side -------------------------------------------------------------------

    def give(self, given: Capability, time: int) -> None:
        model = self.models[given.id]
        rights = model.writers if given.writes else model.readers
        rights[given.token] = Right(given, time, self.clock.wall_ms + LEASE_MS)
        model.settle()

    def rights(self) -> list[Right]:
        return [
            right
            for model in self.models.values()
            for right in (*model.readers.values(), *model.writers.values())
        ]

    def pick(self, number: int, *, writes: bool | None = None) -> Right | None:
        found = [r for r in self.rights() if writes is None or r.given.writes == writes]
        return found[number % len(found)] if found else None

    def lives(self, right: Right) -> bool:
        return right.expires_ms > self.clock.wall_ms

    def forget(self, *rights: Right) -> None:
        """These rights end together: frontiers follow those that are left."""
        for right in rights:
            model = self.models[right.given.id]
            (model.writers if right.given.writes else model.readers).pop(right.given.token)
            self.void.append(right.given)
        for id_ in {right.given.id for right in rights}:
            self.models[id_].settle()

    # -- the calls --------------------------------------------------------------------------

    @precondition(lambda self: len(self.models) < 3)
    @rule(time=steps)
    def create(self, time: int) -> None:
        id_ = f"c{len(self.models)}"
        read, write = self.storage.create(id_, TABLE, time)
        self.models[id_] = Model(time, time)
        self.give(read, time)
        self.give(write, time)

    @precondition(lambda self: self.models)
    @rule(number=picks)
    def create_again(self, number: int) -> None:
        id_ = sorted(self.models)[number % len(self.models)]
        with pytest.raises(NameTaken):
            self.storage.create(id_, TABLE)

    @rule(number=picks, rows=changes, by=steps)
    def update(self, number: int, rows: list[tuple[int, int, int]], by: int) -> None:
        right = self.pick(number, writes=True)
        if right is None:
            return
        moved = min(right.at + by, BEYOND)
        times = [(data, right.at + later, diff) for data, later, diff in rows]
        updates = [Update((data,), time, diff) for data, time, diff in times if time <= LAST]
        if not self.lives(right):
            with pytest.raises(CapabilityInvalid):
                self.storage.update_and_downgrade(right.given, [], frontier_of(moved))
        elif any(update.time >= moved for update in updates):
            with pytest.raises(UsageError):
                self.storage.update_and_downgrade(right.given, updates, frontier_of(moved))
        else:
            given = self.storage.update_and_downgrade(right.given, updates, frontier_of(moved))
            written = [(update.data[0], update.time, update.diff) for update in updates]
            self.models[right.given.id].updates += written
            self.give(given, moved)

    @rule(number=picks, by=steps, back=st.booleans())
    def downgrade(self, number: int, by: int, back: bool) -> None:
        right = self.pick(number)
        if right is None:
            return
        if not self.lives(right):
            with pytest.raises(CapabilityInvalid):
                self.storage.renew(right.given)
        elif back and right.at > 0:
            with pytest.raises(FrontierRegression):
                self.storage.downgrade(right.given, frontier_of(right.at - 1))
        else:
            moved = min(right.at + by, BEYOND)
            given = self.storage.downgrade(right.given, frontier_of(moved))
            if given.frontier != right.given.frontier:
                self.void.append(right.given)
            self.give(given, moved)

    @rule(number=picks)
    def clone(self, number: int) -> None:
        right = self.pick(number)
        if right is None or len(self.rights()) > 10:
            return
        if self.lives(right):
            self.give(self.storage.clone(right.given), right.at)
        else:
            with pytest.raises(CapabilityInvalid):
                self.storage.clone(right.given)

    @rule(number=picks)
    def drop(self, number: int) -> None:
        right = self.pick(number)
        if right is None:
            return
        self.storage.drop(right.given)
        if self.lives(right):
            self.forget(right)

    @precondition(lambda self: self.models)
    @rule(number=picks)
    def acquire(self, number: int) -> None:
        id_ = sorted(self.models)[number % len(self.models)]
        model = self.models[id_]
        read, write = self.storage.acquire_capabilities(id_)
        assert (read.frontier, write.frontier) == (
            frontier_of(model.since),
            frontier_of(model.upper),
        )
        self.give(read, model.since)
        self.give(write, model.upper)

    @precondition(lambda self: self.void)
    @rule(number=picks)
    def use_what_is_void(self, number: int) -> None:
        capability = self.void[number % len(self.void)]
        with pytest.raises(CapabilityInvalid):
            self.storage.downgrade(capability, EMPTY)
        with pytest.raises(CapabilityInvalid):
            self.storage.clone(capability)
        if isinstance(capability, ReadCapability):
            with pytest.raises(CapabilityInvalid):
                self.storage.subscribe_at(capability)
            with pytest.raises(CapabilityInvalid):
                self.storage.subscribe_at(replace(capability, token="unknown"))

    @rule(number=picks)
    def subscribe(self, number: int) -> None:
        """The steps that are there already, to the upper that is known."""
        right = self.pick(number, writes=False)
        if right is None or not self.lives(right) or right.at > LAST:
            return
        model = self.models[right.given.id]
        if right.at >= model.upper:
            return  # it would wait
        subscription = self.storage.subscribe_at(right.given)
        received: list[Update] = []
        for step in subscription:
            received += step.updates
            if step.progress == frontier_of(model.upper):
                break
        for time in range(right.at, model.upper):
            counts: Counter[tuple[int]] = Counter()
            for update in received:
                if update.time <= time:
                    counts[update.data] += update.diff
            assert {row: n for row, n in counts.items() if n} == model.contents(time)
        self.client.runtime.submit(self.freed(subscription)).result(10)

    async def freed(self, subscription: object) -> None:
        """Cancelling does not wait for its hold to be released; the invariants must."""
        del subscription
        tokens = {right.given.token for right in self.rights()}
        await self.client.journal.wait_for(lambda state: set(state.holds) <= tokens)

    # -- the world --------------------------------------------------------------------------

    @rule(ms=st.sampled_from([0, 1, LEASE_MS // 2, LEASE_MS]))
    def time_passes(self, ms: int) -> None:
        self.clock.wall_ms += ms

    @rule()
    def expire(self) -> None:
        gone = [right for right in self.rights() if not self.lives(right)]
        self.client.submit((c.Expire(tuple(r.given.token for r in gone)),)).result(10)
        self.forget(*gone)

    @precondition(lambda self: self.models)
    @rule(number=picks)
    def close(self, number: int) -> None:
        id_ = sorted(self.models)[number % len(self.models)]
        self.storage.close(id_)
        model = self.models[id_]
        self.void += [r.given for r in (*model.readers.values(), *model.writers.values())]
        self.models[id_] = Model(BEYOND, BEYOND)

    @rule()
    def restart(self) -> None:
        self.client.stop()
        self.open()

    # -- what must hold ---------------------------------------------------------------------

    @invariant()
    def frontiers_are_those_of_the_model(self) -> None:
        expected = {
            id_: (frontier_of(model.since), frontier_of(model.upper))
            for id_, model in self.models.items()
        }
        assert self.storage.frontiers() == expected

    @invariant()
    def every_readable_time_is_exact(self) -> None:
        for id_, model in self.models.items():
            if model.since < min(model.upper, BEYOND):
                _, read = self.client.create_or_load(id_)
                for time in {model.since, model.upper - 1}:
                    found = read.snapshot(time, wait=False).result(10).counts()
                    assert found == model.contents(time)

    @invariant()
    def capabilities_are_those_of_the_model(self) -> None:
        for id_, model in self.models.items():
            held = {(hold.id, hold.frontier) for hold in self.storage.capabilities(id_)}
            rights = (*model.readers.values(), *model.writers.values())
            assert held == {(right.given.token, frontier_of(right.at)) for right in rights}


StorageMachine.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
test_storage_behaves_like_its_model = StorageMachine.TestCase
