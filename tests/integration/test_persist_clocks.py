"""Clocks that differ and jump: whose time ends a lease, and whose does not."""

from __future__ import annotations

import pytest

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain
from support.clocks import SetClock

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
