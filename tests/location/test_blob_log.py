"""Zombies, pauses and lost answers in the log over a Blob (`noonmark.persist.impl.log`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.clock import SYSTEM
from noonmark.errors import Determinate, Indeterminate, MissingObject
from noonmark.persist.impl.log import BlobConsensus, entry_key, floor_key
from noonmark.persist.impl.memory import MemoryBlob
from support.store.doubles import HookedBlob


class Pause:
    """A hook that holds the first call of one kind until it is let go."""

    def __init__(self, method: str, key: str) -> None:
        self._want = (method, key)
        self._reached = asyncio.Event()
        self._release = asyncio.Event()

    async def __call__(self, method: str, key: str) -> None:
        if (method, key) == self._want and not self._reached.is_set():
            self._reached.set()
            await self._release.wait()

    async def reached(self) -> None:
        await asyncio.wait_for(self._reached.wait(), 5)

    def release(self) -> None:
        self._release.set()


async def log_of(name: str, entries: int) -> BlobConsensus:
    consensus = BlobConsensus(MemoryBlob(name))
    for seqno in range(1, entries + 1):
        assert await consensus.append(seqno, b"entry %d" % seqno)
    return consensus


def run(body: Callable[[str], Awaitable[None]]) -> None:
    asyncio.run(body(SYSTEM.fresh_id()))  # type: ignore[arg-type]


def test_a_writer_that_slept_through_a_truncation_has_not_committed() -> None:
    async def body(name: str) -> None:
        log = await log_of(name, 2)
        blob = MemoryBlob(name)
        pause = Pause("put_if_absent", entry_key(3))
        writer = BlobConsensus(HookedBlob(blob, before=pause))
        append = asyncio.create_task(writer.append(3, b"zombie"))
        await pause.reached()
        assert await log.append(3, b"entry 3")
        assert await log.append(4, b"entry 4")
        await log.truncate(5)
        pause.release()
        assert await append is False
        assert await blob.get(entry_key(3)) is None
        assert await log.head() == await writer.head() == 4
        with pytest.raises(MissingObject):
            await writer.read(3, 1)

    run(body)


def test_a_reader_does_not_believe_a_zombie() -> None:
    """The zombie's writer died before it looked at the floor; the reader was paused meanwhile."""

    async def body(name: str) -> None:
        log = await log_of(name, 4)
        blob = MemoryBlob(name)
        pause = Pause("get", entry_key(3))
        reader = BlobConsensus(HookedBlob(blob, before=pause))
        read = asyncio.create_task(reader.read(3, 1))
        await pause.reached()
        await log.truncate(5)
        assert await blob.put_if_absent(entry_key(3), b"zombie")
        pause.release()
        with pytest.raises(MissingObject):
            await read
        assert await BlobConsensus(MemoryBlob(name)).head() == 4
        assert await log.append(5, b"entry 5")
        await log.truncate(6)
        assert await blob.list("log/") == []

    run(body)


def test_the_floor_is_looked_at_after_the_entries() -> None:
    """A reader paused between its last get and its look at the floor must learn of it."""

    async def body(name: str) -> None:
        log = await log_of(name, 4)
        pause = Pause("list", "floor/")
        hooked = HookedBlob(MemoryBlob(name), before=pause)
        read = asyncio.create_task(BlobConsensus(hooked).read(2, 2))
        await pause.reached()
        assert ("get", entry_key(2)) in hooked.calls
        await log.truncate(4)
        pause.release()
        with pytest.raises(MissingObject):
            await read

    run(body)


def test_head_is_right_when_the_log_moves_on_while_it_looks() -> None:
    async def body(name: str) -> None:
        log = await log_of(name, 9)
        pause = Pause("get_range", entry_key(7))
        reader = BlobConsensus(HookedBlob(MemoryBlob(name), before=pause))
        head = asyncio.create_task(reader.head())
        await pause.reached()
        await log.truncate(10)
        pause.release()
        assert await head == 9

    run(body)


def test_the_marker_is_durable_before_an_entry_goes() -> None:
    async def body(name: str) -> None:
        await log_of(name, 4)
        hooked = HookedBlob(MemoryBlob(name))
        await BlobConsensus(hooked).truncate(3)
        await BlobConsensus(hooked).truncate(5)
        writes = [call for call in hooked.calls if call[0] in {"put", "delete"}]
        assert writes == [
            ("put", floor_key(3)),
            ("delete", entry_key(1)),
            ("delete", entry_key(2)),
            ("put", floor_key(5)),
            ("delete", entry_key(3)),
            ("delete", entry_key(4)),
            ("delete", floor_key(3)),
        ]

    run(body)


def test_a_truncation_that_died_half_way_is_finished_by_the_next() -> None:
    async def body(name: str) -> None:
        log = await log_of(name, 6)
        hooked = HookedBlob(MemoryBlob(name))

        async def die(method: str, key: str) -> None:
            if (method, key) == ("delete", entry_key(2)):
                raise Indeterminate("gone")

        hooked.before = die
        with pytest.raises(Indeterminate):
            await BlobConsensus(hooked).truncate(5)
        assert await log.head() == 6
        with pytest.raises(MissingObject):
            await log.read(4, 1)
        assert await log.read(5, 9) == [b"entry 5", b"entry 6"]
        await log.truncate(5)
        keys = [entry.key for entry in await MemoryBlob(name).list("")]
        assert keys == [floor_key(5), entry_key(5), entry_key(6)]

    run(body)


def test_an_append_that_cannot_see_the_floor_may_have_happened() -> None:
    async def body(name: str) -> None:
        await log_of(name, 1)

        async def fail(method: str, key: str) -> None:
            if (method, key) == ("list", "floor/"):
                raise Determinate("no answer")

        hooked = HookedBlob(MemoryBlob(name))
        writer = BlobConsensus(hooked)
        assert await writer.head() == 1
        hooked.before = fail
        with pytest.raises(Indeterminate):
            await writer.append(2, b"entry 2")

    run(body)


def test_the_cost_in_calls() -> None:
    async def body(name: str) -> None:
        log = await log_of(name, 1000)
        await log.truncate(200)
        hooked = HookedBlob(MemoryBlob(name))
        fresh = BlobConsensus(hooked)

        async def calls(call: Awaitable[object]) -> int:
            before = len(hooked.calls)
            await call
            return len(hooked.calls) - before

        assert await calls(fresh.head()) <= 24
        assert await calls(fresh.head()) == 2
        assert await calls(fresh.read(1001, 100)) == 2
        assert await calls(fresh.append(1001, b"")) == 2
        assert ("list", "log/") not in hooked.calls

    run(body)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=60), st.integers(0, 8))
def test_any_sequence_of_calls_equals_a_list(calls: list[tuple[int, int]], zombies: int) -> None:
    """Against the model: a list of entries and a floor, with zombies put behind the log's back."""

    async def body(name: str) -> None:
        blob = MemoryBlob(name)
        handles = [BlobConsensus(MemoryBlob(name)) for _ in range(3)]
        model: list[bytes] = []
        floor = 1
        for index, (kind, amount) in enumerate(calls):
            log = handles[index % 3]
            if kind == 0:
                seqno = max(1, len(model) + 1 - amount // 4)
                entry = b"%d" % index
                took = seqno == len(model) + 1
                assert await log.append(seqno, entry) is took
                model += [entry] if took else []
            elif kind == 1:
                below = max(1, len(model) + 1 - amount)
                await log.truncate(below)
                floor = max(floor, below)
                for zombie in range(max(1, floor - zombies), floor):
                    await blob.put_if_absent(entry_key(zombie), b"zombie")
            assert await log.head() == len(model)
            for start in range(max(1, floor - 2), len(model) + 3):
                if start < floor:
                    with pytest.raises(MissingObject):
                        await log.read(start, 3)
                else:
                    assert await log.read(start, 3) == model[start - 1 : start + 2]

    run(body)
