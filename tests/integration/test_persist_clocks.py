"""Clocks that differ and jump: whose time ends a lease, and whose does not."""

from __future__ import annotations

import pytest

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import LockHeld
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain
from support.kill.clocks_apart import ShiftedClock
from support.store.clocks import SetClock

SCHEMA = Schema.of(a="bigint")
DAY_MS = 86_400_000
POLLING = persist.Options(mode="polling", notify_host=None)


@pytest.mark.parametrize("ahead_ms", [DAY_MS, -DAY_MS])
def test_the_clock_of_a_reader_ends_nobodys_lease(ahead_ms: int) -> None:
    url = f"memory:{SYSTEM.fresh_id()}"
    writer_clock = SetClock(now_ms=SYSTEM.now_ms())
    reader_clock = SetClock(now_ms=writer_clock.wall_ms + ahead_ms)
    options = persist.Options(notify_host=None)
    with (
        persist.open(url, options=options, clock=writer_clock) as writer,
        persist.open(url, options=POLLING, clock=reader_clock) as reader,
    ):
        write, _ = writer.create_or_load("t", SCHEMA)
        write.seal(10).result()
        held = writer.runtime.submit(writer.acquire(write.collection, Antichain.of(2))).result()
        reader.runtime.submit(reader.journal.refresh()).result()
        taken = reader.runtime.submit(reader.acquire(write.collection, Antichain.of(5))).result()
        reader.runtime.submit(taken.downgrade(Antichain.of(6))).result()
        writer.runtime.submit(writer.journal.refresh()).result()
        writer.runtime.submit(writer.upkeep._leases()).result()
        write.allow_compaction(9).result()
        state = writer.state
        assert {held.id, taken.id} <= state.holds.keys()
        assert abs(state.now_ms - writer_clock.wall_ms) < 1000
        assert state.collection("t").since == Antichain.of(2)


@pytest.mark.parametrize("lives", [False, True])
def test_a_clock_that_was_a_day_ahead_does_not_keep_the_lock_for_a_day(lives: bool) -> None:
    """The writer dies after its clock was set right: its lease runs out all the same."""
    name, clock = SYSTEM.fresh_id(), ShiftedClock()
    options = persist.Options(notify_host=None, config=persist.Config(lock_lease_ms=600))

    def start() -> persist.Client:
        runtime = Runtime.start(clock)
        try:
            blob, log = MemoryBlob(name), BlobConsensus(MemoryBlob(name))
            return runtime.submit(persist.Client.start(runtime, blob, log, options)).result()
        except BaseException:
            runtime.stop()
            raise

    first = start()
    clock.ahead_ms = DAY_MS
    first.create_or_load("t", SCHEMA)
    first.runtime.submit(first.upkeep._leases()).result()
    clock.ahead_ms = 0
    if lives:
        with pytest.raises(LockHeld):
            start()
        first.stop()
        return
    first.runtime.stop()  # killed: it releases nothing
    second = start()
    assert second.state.epoch == 2
    second.stop()
