"""Behind a failure: what relies on it fails, too; what was in doubt is decided before going on.

The laws are those of `noonmark.persist.log.dependence` and `noonmark.persist.log.queue`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from threading import Event
from typing import Any

import pytest

from noonmark import persist
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.store import CatalogStore
from noonmark.clock import SYSTEM
from noonmark.errors import BehindFailure, Determinate, Indeterminate, NoonmarkError
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine
from noonmark.oracle import MemoryOracle
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.runtime import Runtime
from noonmark.persist.write import MultiWriteHandle
from noonmark.rows.schema import Schema
from noonmark.source.impl.counter import Counter
from noonmark.tvc import Antichain
from support.ingest.loop import IngestLoop
from support.store.doubles import HookedBlob

SCHEMA = Schema.of(a="bigint", b="text")
CONFIG = persist.Config(retry_deadline_s=0.0, inline_bytes_max=1000)


class Faults:
    """What storage does to the next calls: lose them, or lose their answers."""

    def __init__(self) -> None:
        self.parts_fail = False
        self.lost_answers = 0
        self.landed = Event()

    async def before(self, method: str, key: str) -> None:
        if self.parts_fail and method == "put" and key.startswith("part/"):
            raise Determinate("the disk is away")


class LosingLog(BlobConsensus):
    """A log that appends, and loses the answer."""

    def __init__(self, blob: Any, faults: Faults) -> None:
        super().__init__(blob)
        self._faults = faults
        self._silent = False

    async def append(self, seqno: int, entry: bytes) -> bool:
        if self._faults.lost_answers:
            self._faults.lost_answers -= 1
            if not self._silent:
                assert await super().append(seqno, entry)
            self._silent = self._faults.lost_answers > 0
            self._faults.landed.set()
            raise Indeterminate("the answer was lost")
        return await super().append(seqno, entry)


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def client(faults: Faults) -> Iterator[persist.Client]:
    name, runtime = SYSTEM.fresh_id(), Runtime.start()
    blob = HookedBlob(MemoryBlob(name), before=faults.before)
    log = LosingLog(MemoryBlob(name), faults)
    options = persist.Options(config=CONFIG, notify_host=None)
    opened = runtime.submit(persist.Client.start(runtime, blob, log, options)).result()
    yield opened
    faults.parts_fail, faults.lost_answers = False, 0
    opened.stop()


def rows(time: int, count: int = 40) -> list[persist.Update[Any, int]]:
    return [persist.Update((n, f"{n:020d}"), time, 1) for n in range(count)]


def test_a_seal_behind_a_write_that_failed_fails(client: persist.Client, faults: Faults) -> None:
    write, read = client.create_or_load("t", SCHEMA)
    other, _ = client.create_or_load("u", SCHEMA)
    faults.parts_fail = True
    calls = [
        client.atomic().write(write, rows(3)),
        client.atomic().seal(write, 5),
        client.atomic().write(write, rows(5, 1)),
        client.atomic().seal(write, 6),
        client.atomic().seal(other, 4),
    ]
    answers = client.runtime.submit(_together(*calls)).result()
    faults.parts_fail = False
    failed = [type(each) for each in answers[:-1]]
    assert failed == [Determinate, BehindFailure, BehindFailure, BehindFailure]
    assert answers[-1] is None, "another collection goes on"
    assert read.upper == Antichain.of(0)
    write.write(rows(3)).result()
    write.seal(5).result()
    assert len(read.snapshot(4).result().rows()) == 40


def test_what_is_refused_takes_those_behind_it(client: persist.Client) -> None:
    """Of one group: nothing is sealed without what was to be sealed."""
    write, read = client.create_or_load("t", SCHEMA)
    write.seal(5).result()
    calls = [client.atomic().write(write, rows(3, 1)), client.atomic().seal(write, 9)]
    first, second = client.runtime.submit(_together(*calls)).result()
    assert isinstance(first, NoonmarkError)
    assert isinstance(second, BehindFailure)
    assert read.upper == Antichain.of(5)


async def _together(*calls: MultiWriteHandle) -> list[BaseException | None]:
    """Commit in order, all called before any is answered."""
    futures = [asyncio.wrap_future(call.commit()) for call in calls]
    found = await asyncio.gather(*futures, return_exceptions=True)
    return [each if isinstance(each, BaseException) else None for each in found]


def test_who_states_where_the_collection_is_relies_on_nobody(client: persist.Client) -> None:
    write, read = client.create_or_load("t", SCHEMA)
    wrong = client.atomic().append(write, rows(7, 1), 4, 8)
    right = client.atomic().append(write, rows(2, 1), 0, 3)
    first, second = client.runtime.submit(_together(wrong, right)).result()
    assert isinstance(first, NoonmarkError)
    assert second is None
    assert read.upper == Antichain.of(3)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_answer_is_decided_before_the_next(
    client: persist.Client, faults: Faults, lost: int
) -> None:
    write, read = client.create_or_load("t", SCHEMA)
    faults.lost_answers = lost
    with pytest.raises(Indeterminate):
        write.compare_and_append(rows(3, 1), 0, 5).result()
    assert read.upper == Antichain.of(0), "nobody knows yet"
    for _ in range(lost - 1):
        with pytest.raises(Indeterminate):
            client.runtime.submit(client.settle()).result()
    client.runtime.submit(client.settle()).result()
    assert read.upper == Antichain.of(5)
    write.compare_and_append(rows(6, 1), 5, 8).result()


def test_a_source_whose_answers_are_lost_goes_on(client: persist.Client, faults: Faults) -> None:
    oracle, random = MemoryOracle(SYSTEM), Random(1)
    source = Counter(start_ms=SYSTEM.now_ms() - 1000, tick_ms=1)
    faults.lost_answers = 1  # of the very first commit, which makes its collections
    loop = IngestLoop(
        {"s": lambda: Ingestion(client, oracle, source, "s", InPlaceEngine()).start()},
        interval_s=0.01,
    )
    loop.start()
    try:
        for _ in range(6):
            before = loop.status["s"].ticks
            pause, deadline = Event(), SYSTEM.monotonic() + 30
            while loop.status["s"].ticks <= before + 1:
                assert loop.status["s"].state != "failed", loop.status["s"].error
                assert SYSTEM.monotonic() < deadline
                pause.wait(0.01)
            faults.lost_answers = random.choice((1, 1, 2))
    finally:
        faults.lost_answers = 0
        loop.stop()
    found = client.create_or_load("counter")[1]
    last = (found.upper.only() or 1) - 1
    numbers = sorted(row[0] for row in found.snapshot(last).result().rows())
    assert numbers == list(range(len(numbers))), "each once"


@pytest.mark.parametrize("lost", [1, 2])
def test_the_catalog_is_the_stored_one_after_a_lost_answer(
    client: persist.Client, faults: Faults, lost: int
) -> None:
    def item(number: int) -> Item:
        return Item(number, "schema", "", f"s{number}", owner="noonmark")

    async def go() -> None:
        oracle = MemoryOracle(SYSTEM)
        store = CatalogStore(client, oracle, ())
        await asyncio.to_thread(store.load)
        for number in range(1, 5):
            faults.lost_answers = lost
            await store.change([item(number)])
        again = CatalogStore(client, oracle, ())
        await asyncio.to_thread(again.load)
        assert again.catalog.by_number.keys() == store.catalog.by_number.keys() == {1, 2, 3, 4}

    asyncio.run(go())
