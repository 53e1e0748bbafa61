"""Planted bugs: the simulation finds each within a few seeds, so it can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from noonmark.persist.log import command as c
from noonmark.persist.log import journal, machine, on_collection, on_hold, queue
from noonmark.persist.log.dependence import NOTHING
from noonmark.persist.log.draft import Draft
from noonmark.persist.log.journal import Journal
from noonmark.persist.log.state import Batch, Collection, Garbage, State
from noonmark.persist.read.plan import Plan, Query
from noonmark.persist.read.updates import Reader
from noonmark.persist.upkeep import compact, gc
from simulation.run import run_seed

SEEDS_MAX = 25

Patch = pytest.MonkeyPatch


def every_append_is_ours(patch: Patch) -> None:
    """An append whose answer was lost is taken for a success, whoever's entry is there."""

    async def is_ours(*_: Any) -> bool:
        return True

    patch.setattr(Journal, "_is_ours", is_ours)


def no_append_is_ours(patch: Patch) -> None:
    """An append whose answer was lost is done again."""

    async def is_ours(*_: Any) -> bool:
        return False

    patch.setattr(Journal, "_is_ours", is_ours)


def nothing_relies_on_anything(patch: Patch) -> None:
    """What is queued behind a failure happens without it."""
    patch.setattr(queue, "_doom", lambda *_: None)
    patch.setattr(journal, "dependence", lambda _: NOTHING)


def writes_below_upper(patch: Patch) -> None:
    """A write is accepted at a time that is complete."""
    append = on_collection._append

    def unchecked(draft: Draft, command: c.Append) -> None:
        collection = draft.collection(command.collection)
        draft.update(collection, upper=on_hold.Antichain.of(0))
        append(draft, command)
        draft.update(draft.collection(command.collection), upper=collection.upper)

    patch.setitem(machine._HANDLERS, c.Append, unchecked)


def seals_that_do_nothing(patch: Patch) -> None:
    """A seal is acknowledged but does not advance upper."""
    patch.setitem(machine._HANDLERS, c.Seal, lambda *_: None)


def since_that_ignores_holds(patch: Patch) -> None:
    """since follows what is allowed and nothing else."""

    def follow(draft: Draft, ref: int) -> None:
        collection = draft.changed.get(ref)
        if collection is not None:
            since = collection.allowed.meet(collection.upper)
            if since.at_or_beyond(collection.since):
                draft.update(collection, since=since)

    patch.setattr(on_hold, "follow_holds", follow)


def garbage_that_is_needed(patch: Patch) -> None:
    """Parts are deleted although a read of this process, or a hold, needs them."""

    def collectable(state: State, *_: Any) -> list[Garbage]:
        return list(state.garbage)

    patch.setattr(gc, "collectable", collectable)


def compaction_that_drops_a_batch(patch: Patch) -> None:
    """A rewrite leaves the last batch out; the invariant that would find it is off."""
    rewrite = compact.rewrite

    async def dropping(collection: Collection, batches: tuple[Batch, ...], *rest: Any) -> c.Swap:
        swap = await rewrite(collection, batches[:-1] or batches, *rest)
        return msgspec.structs.replace(swap, removed=tuple(batch.id for batch in batches))

    patch.setattr(compact, "rewrite", dropping)
    patch.setattr(machine, "check", lambda *_: None)


def compaction_beyond_since(patch: Patch) -> None:
    """A rewrite advances times to upper, not to since."""
    rewrite = compact.rewrite

    async def hasty(collection: Collection, batches: tuple[Batch, ...], *rest: Any) -> c.Swap:
        ahead = msgspec.structs.replace(collection, since=collection.upper)
        swap = await rewrite(ahead, batches, *rest)
        return msgspec.structs.replace(swap, since=collection.since)

    patch.setattr(compact, "rewrite", hasty)


def writers_that_are_not_fenced(patch: Patch) -> None:
    """Whoever held the lock once may commit."""
    patch.setattr(machine, "check_epoch", lambda *_: None)


def snapshots_off_by_one(patch: Patch) -> None:
    """A snapshot leaves out the last time."""
    plan = Reader.plan

    def earlier(self: Reader, collection: int, query: Query) -> Plan:
        if query.after is None and query.as_of:
            found = self.journal.state.collection(collection)
            if found.since.less_equal(query.as_of - 1):
                query = Query(query.as_of - 1, None, query.columns, query.where, query.keys)
        return plan(self, collection, query)

    patch.setattr(Reader, "plan", earlier)


def transactions_in_pieces(patch: Patch) -> None:
    """Every command of a transaction is an entry of its own."""
    commit = Journal.commit

    async def piecewise(self: Journal, epoch: int, transactions: Any) -> Any:
        if len(transactions) != 1 or len(transactions[0]) == 1:
            return await commit(self, epoch, transactions)
        for command in transactions[0]:
            outcomes = await commit(self, epoch, [(command,)])
        return outcomes

    patch.setattr(Journal, "commit", piecewise)


def acknowledged_before_durable(patch: Patch) -> None:
    """A storage error is swallowed: the caller is told that all is well."""
    commit = Journal.commit

    async def careless(self: Journal, epoch: int, transactions: Any) -> Any:
        state = self.state
        try:
            return await commit(self, epoch, transactions)
        except queue.NoonmarkError as error:
            if isinstance(error, queue.WriterError):
                raise
            return [_Outcome(state) for _ in transactions]

    patch.setattr(Journal, "commit", careless)


class _Outcome(msgspec.Struct):
    state: State
    error: None = None


def a_log_cut_before_its_rollup(patch: Patch) -> None:
    """The log is truncated although the state was not written down."""

    async def write_rollup(self: Journal) -> None:
        self.entries_since_rollup = 0
        await self.retries.run("truncate", lambda: self.consensus.truncate(self.state.seqno))

    patch.setattr(Journal, "write_rollup", write_rollup)


def orphans_that_are_not(patch: Patch) -> None:
    """A new writer deletes every part of earlier writers."""
    sweep = gc.sweep_orphans

    async def sweep_all(blob: Any, retries: Any, state: State) -> int:
        forgetful = msgspec.structs.replace(state, collections={}, garbage=())
        return await sweep(blob, retries, forgetful)

    from noonmark.persist import client

    patch.setattr(client, "sweep_orphans", sweep_all)


def listens_that_skip(patch: Patch) -> None:
    """A listen leaves out the first time of each step."""
    plan = Reader.plan

    def later(self: Reader, collection: int, query: Query) -> Plan:
        if query.after is not None:
            query = Query(query.as_of, query.after + 1)
        return plan(self, collection, query)

    patch.setattr(Reader, "plan", later)


MUTANTS: tuple[Callable[[Patch], None], ...] = (
    every_append_is_ours,
    no_append_is_ours,
    nothing_relies_on_anything,
    writes_below_upper,
    seals_that_do_nothing,
    since_that_ignores_holds,
    garbage_that_is_needed,
    compaction_that_drops_a_batch,
    compaction_beyond_since,
    writers_that_are_not_fenced,
    snapshots_off_by_one,
    transactions_in_pieces,
    acknowledged_before_durable,
    a_log_cut_before_its_rollup,
    orphans_that_are_not,
    listens_that_skip,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_bug_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    assert any(run_seed(seed).violation for seed in range(SEEDS_MAX)), mutant.__doc__
