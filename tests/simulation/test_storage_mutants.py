"""Planted bugs of Storage and of the oracle: the simulation finds each within a few seeds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from noonmark.oracle.reserved import LIFE_S, AsyncReservedOracle, Reservation
from noonmark.persist.log import command as c
from noonmark.persist.log import machine, on_collection, on_hold
from noonmark.persist.log.draft import Draft
from noonmark.persist.log.state import Collection, Hold
from noonmark.storage import (
    AsyncStorage,
    AsyncSubscription,
    Capability,
    WriteCapability,
    transaction,
)
from noonmark.tvc import Antichain
from simulation.loop import VirtualClock
from simulation.run import run_seed

SEEDS_MAX = 200
#: Seeds that are known to find a bug that few find: they are tried first.
FIRST = {"writers_judged_by_memory": 136}

Patch = pytest.MonkeyPatch


def upper_of_the_fastest_writer(patch: Patch) -> None:
    """upper follows the join of the write capabilities, not their meet."""
    follow = on_hold.follow_holds

    def hasty(draft: Draft, ref: int) -> None:
        collection = draft.changed.get(ref)
        holds = [hold for hold in draft.get("holds").values() if hold.collection == ref]
        writers = [hold.frontier for hold in holds if hold.writes]
        if collection is not None and writers:
            joined = functools.reduce(Antichain.join, writers)
            draft.update(collection, upper=collection.upper.join(joined))
        follow(draft, ref)

    patch.setattr(on_hold, "follow_holds", hasty)


def leases_that_never_end(patch: Patch) -> None:
    """A capability works after its lease has run out."""

    def held(draft: Draft, ref: str) -> Hold:
        hold = draft.get("holds").get(ref)
        if hold is None:
            raise on_hold.CapabilityInvalid("gone")
        return hold  # type: ignore[no-any-return]

    patch.setattr(on_hold, "_hold", held)


def ids_that_are_used_again(patch: Patch) -> None:
    """The id of a closed collection is free."""

    def reuse(draft: Draft, command: c.Create) -> None:
        names = draft.own("names")
        ref = names.get(command.name)
        if ref is not None and draft.collection(ref).since.is_empty():
            del names[command.name]
        on_collection._create(draft, command)

    patch.setitem(machine._HANDLERS, c.Create, reuse)


def statements_that_are_not_checked(patch: Patch) -> None:
    """A capability may be stated to be where it is not."""

    def trusting(draft: Draft, command: c.Downgrade) -> None:
        on_hold._downgrade(draft, msgspec.structs.replace(command, stated=None))

    patch.setitem(machine._HANDLERS, c.Downgrade, trusting)


def clones_of_what_is_gone(patch: Patch) -> None:
    """A clone is made by what this process remembers of the original."""

    async def clone(self: AsyncStorage, capability: Any) -> Any:
        ref = self.client.state.collection(capability.id).id
        token = self.client.clock.fresh_id()
        fresh = type(capability)(capability.id, capability.frontier, token)
        await self._commit(self._acquire(fresh, ref))
        return fresh

    patch.setattr(AsyncStorage, "clone", clone)


def capabilities_that_nobody_looks_at(patch: Patch) -> None:
    """Whoever knows the id may subscribe."""

    async def validate(self: AsyncStorage, capability: Capability) -> Collection:
        return self.client.state.collection(capability.id)

    patch.setattr(AsyncStorage, "_validate", validate)


def writers_judged_by_memory(patch: Patch) -> None:
    """A write capability is refused by what this process knows, not by the log."""

    def target(self: AsyncStorage, capability: WriteCapability) -> Collection:
        return self._check(capability, self._known(capability))

    patch.setattr(AsyncStorage, "_target", target)


def drops_that_drop_nothing(patch: Patch) -> None:
    """Dropping is acknowledged and not done."""

    async def drop(*_: Any) -> None:
        return None

    patch.setattr(AsyncStorage, "drop", drop)


def renewals_that_renew_nothing(patch: Patch) -> None:
    """Renewing is acknowledged and not done."""

    async def renew(_: AsyncStorage, capability: Any) -> Any:
        return capability

    patch.setattr(AsyncStorage, "renew", renew)


def updates_at_any_time(patch: Patch) -> None:
    """Times of updates are not compared with the capability."""
    patch.setattr(transaction, "_check_times", lambda *_: None)


def subscriptions_without_their_contents(patch: Patch) -> None:
    """The snapshot of a subscription is empty."""
    contents = AsyncSubscription._contents

    async def empty(self: AsyncSubscription, at: int) -> Any:
        table = await contents(self, at)
        return None if table is None else table.slice(0, 0)

    patch.setattr(AsyncSubscription, "_contents", empty)


def takeovers_without_waiting(patch: Patch) -> None:
    """A new owner answers while the range of the old one lives."""
    take = AsyncReservedOracle._take
    patch.setattr(AsyncReservedOracle, "_take", lambda self, _: take(self, True))


def ranges_that_never_die(patch: Patch) -> None:
    """An owner gives the rest of its range whenever it likes."""

    def covers(self: AsyncReservedOracle, time: int) -> bool:
        self._wanted = max(self._wanted, time)
        return time <= self._high

    patch.setattr(AsyncReservedOracle, "_covers", covers)


def ranges_that_live_from_their_answer(patch: Patch) -> None:
    """The life of a range begins when its append is answered, however long that took."""
    reserve = AsyncReservedOracle._reserve

    async def late(self: AsyncReservedOracle, at_least: int) -> bool:
        reserved = await reserve(self, at_least)
        if reserved:
            self._dies_at = self._clock.monotonic() + LIFE_S
        return reserved

    patch.setattr(AsyncReservedOracle, "_reserve", late)


def leases_that_stop_while_suspended(patch: Patch) -> None:
    """The monotonic clock stands still while its machine sleeps, as CLOCK_MONOTONIC does."""

    def monotonic(self: VirtualClock) -> float:
        return (self._loop.time() - self._gate.slept_s) * self.rate

    patch.setattr(VirtualClock, "monotonic", monotonic)


def owners_that_forget(patch: Patch) -> None:
    """A new owner begins at its own wall clock."""
    last = AsyncReservedOracle._last

    async def forgotten(self: AsyncReservedOracle) -> Reservation | None:
        found = await last(self)
        return None if found is None else msgspec.structs.replace(found, high=0)

    patch.setattr(AsyncReservedOracle, "_last", forgotten)


def applied_writes_that_are_not_read(patch: Patch) -> None:
    """Reads do not follow what was applied."""
    patch.setattr(AsyncReservedOracle, "give_apply", lambda self, _: self._read)


MUTANTS: tuple[Callable[[Patch], None], ...] = (
    upper_of_the_fastest_writer,
    leases_that_never_end,
    ids_that_are_used_again,
    statements_that_are_not_checked,
    clones_of_what_is_gone,
    capabilities_that_nobody_looks_at,
    writers_judged_by_memory,
    drops_that_drop_nothing,
    renewals_that_renew_nothing,
    updates_at_any_time,
    subscriptions_without_their_contents,
    takeovers_without_waiting,
    ranges_that_never_die,
    ranges_that_live_from_their_answer,
    leases_that_stop_while_suspended,
    owners_that_forget,
    applied_writes_that_are_not_read,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_bug_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    seeds = (FIRST.get(mutant.__name__, 0), *range(SEEDS_MAX))
    assert any(run_seed(seed).violation for seed in seeds), mutant.__doc__
