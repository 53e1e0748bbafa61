"""What every Consensus promises (`noonmark.persist.location.Consensus`), on every kind of store."""

from __future__ import annotations

import asyncio

import pytest

from noonmark.errors import MissingObject, UsageError
from noonmark.persist.impl.open import open_consensus
from noonmark.persist.location import Consensus
from support.kill.racers import Race, append_all, entry_of
from support.store.places import Place


async def append_many(consensus: Consensus, first: int, last: int) -> None:
    for seqno in range(first, last + 1):
        assert await consensus.append(seqno, b"entry %d" % seqno)


def entries(first: int, last: int) -> list[bytes]:
    return [b"entry %d" % seqno for seqno in range(first, last + 1)]


def test_an_empty_log(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        assert await consensus.head() == 0
        assert await consensus.read(1, 10) == []
        await consensus.truncate(1)
        assert await consensus.head() == 0
        assert await consensus.append(1, b"")
        assert await consensus.head() == 1
        assert await consensus.read(1, 10) == [b""]

    consensus_place.with_consensus(body)


def test_entries_are_read_in_order_from_anywhere(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        await append_many(consensus, 1, 40)
        assert await consensus.head() == 40
        fresh = open_consensus(consensus.url)
        for start, limit in ((1, 100), (1, 40), (1, 1), (7, 3), (40, 5), (41, 5), (60, 5), (3, 0)):
            want = entries(start, min(40, start + limit - 1))
            assert await consensus.read(start, limit) == want
            assert await fresh.read(start, limit) == want
        await fresh.close()

    consensus_place.with_consensus(body)


def test_a_taken_number_is_refused_and_nothing_changes(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        await append_many(consensus, 1, 3)
        other = open_consensus(consensus.url)
        for seqno in (1, 2, 3):
            assert not await consensus.append(seqno, b"other")
            assert not await other.append(seqno, b"other")
        assert await other.head() == 3
        assert await other.read(1, 10) == entries(1, 3)
        assert await other.append(4, b"entry 4")
        assert not await consensus.append(4, b"other")
        assert await consensus.read(4, 1) == [b"entry 4"]
        await other.close()

    consensus_place.with_consensus(body)


def test_a_hole_is_refused(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        for seqno in (-1, 0, 2, 3):
            with pytest.raises(UsageError):
                await consensus.append(seqno, b"")
        await append_many(consensus, 1, 2)
        with pytest.raises(UsageError):
            await consensus.append(4, b"")
        with pytest.raises(UsageError):
            await consensus.read(0, 1)
        with pytest.raises(UsageError):
            await consensus.truncate(4)
        assert await consensus.head() == 2
        assert await consensus.read(1, 9) == entries(1, 2)

    consensus_place.with_consensus(body)


def test_large_and_binary_entries(consensus_place: Place) -> None:
    large = bytes(range(256)) * 4096

    async def body(consensus: Consensus) -> None:
        assert await consensus.append(1, large)
        assert await consensus.append(2, b"\x00\xff")
        assert await consensus.read(1, 2) == [large, b"\x00\xff"]

    consensus_place.with_consensus(body)


def test_truncation_forgets_what_is_below_and_nothing_else(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        await append_many(consensus, 1, 9)
        fresh = open_consensus(consensus.url)
        for below, floor in ((4, 4), (4, 4), (2, 4), (1, 4), (7, 7)):
            await consensus.truncate(below)
            for handle in (consensus, fresh):
                assert await handle.head() == 9
                assert await handle.read(floor, 99) == entries(floor, 9)
                for gone in range(1, floor):
                    with pytest.raises(MissingObject):
                        await handle.read(gone, 99)
        await append_many(consensus, 10, 12)
        assert await fresh.read(7, 99) == entries(7, 12)
        await fresh.close()

    consensus_place.with_consensus(body)


def test_head_after_truncating_everything_and_opening_again(consensus_place: Place) -> None:
    async def write(consensus: Consensus) -> None:
        await append_many(consensus, 1, 5)
        await consensus.truncate(6)
        assert await consensus.head() == 5
        assert await consensus.read(6, 9) == []

    async def again(consensus: Consensus) -> None:
        assert await consensus.head() == 5
        assert await consensus.read(6, 9) == []
        with pytest.raises(MissingObject):
            await consensus.read(5, 1)
        await append_many(consensus, 6, 7)

    async def last(consensus: Consensus) -> None:
        assert await consensus.append(8, b"entry 8")
        assert await consensus.head() == 8
        assert await consensus.read(6, 9) == entries(6, 8)

    consensus_place.with_consensus(write)
    consensus_place.with_consensus(again)
    consensus_place.with_consensus(last)


def test_a_truncated_number_is_never_given_again(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        paused = open_consensus(consensus.url)
        await append_many(consensus, 1, 2)
        assert await paused.head() == 2
        await append_many(consensus, 3, 6)
        await consensus.truncate(7)
        for seqno in (3, 1, 6):
            assert not await paused.append(seqno, b"zombie")
        for handle in (paused, consensus, open_consensus(consensus.url)):
            assert await handle.head() == 6
            with pytest.raises(MissingObject):
                await handle.read(3, 1)
            assert await handle.read(7, 1) == []
            await handle.close()

    consensus_place.with_consensus(body)


def test_a_reader_that_was_left_behind_learns_it(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        await append_many(consensus, 1, 3)
        reader = open_consensus(consensus.url)
        assert await reader.read(1, 2) == entries(1, 2)
        await append_many(consensus, 4, 30)
        await consensus.truncate(31)
        assert await reader.head() == 30
        with pytest.raises(MissingObject) as caught:
            await reader.read(3, 9)
        assert "secret_access_key=n" not in str(caught.value)
        await reader.close()

    consensus_place.with_consensus(body)


def test_of_racing_tasks_one_wins_each_number(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        handles = [open_consensus(consensus.url) for _ in range(consensus_place.racers)]
        for seqno in range(1, consensus_place.rounds + 1):
            values = [f"{seqno} {index}".encode() for index in range(consensus_place.racers)]
            tries = zip(handles, values, strict=True)
            wins = await asyncio.gather(*(h.append(seqno, value) for h, value in tries))
            assert sum(wins) == 1
            assert await consensus.read(seqno, 5) == [values[wins.index(True)]]
        for handle in handles:
            await handle.close()

    consensus_place.with_consensus(body)


def test_of_racing_processes_one_wins_each_number(
    shared_consensus_place: Place, race: Race
) -> None:
    rounds = shared_consensus_place.rounds
    won = race(append_all, shared_consensus_place.url, rounds)
    owner = {seqno: name for name, numbers in won.items() for seqno in numbers}
    assert sum(map(len, won.values())) == len(owner) == rounds

    async def body(consensus: Consensus) -> None:
        assert await consensus.head() == rounds
        want = [entry_of(owner[seqno], seqno) for seqno in range(1, rounds + 1)]
        assert await consensus.read(1, rounds * 2) == want

    shared_consensus_place.with_consensus(body)


def test_heads_and_reads_hold_while_the_log_is_truncated(consensus_place: Place) -> None:
    """Laws (head) and (one history), seen by a reader beside a writer that keeps few entries."""

    async def body(consensus: Consensus) -> None:
        reader = open_consensus(consensus.url)
        done = asyncio.Event()

        async def write() -> None:
            for seqno in range(1, 41):
                await append_many(consensus, seqno, seqno)
                await consensus.truncate(max(1, seqno - 5))
                await asyncio.sleep(0)
            done.set()

        async def watch() -> int:
            head = answers = 0
            while not done.is_set():
                newer = await reader.head()
                assert newer >= head
                head = newer
                try:
                    found = await reader.read(max(1, head), 5)
                    assert found == entries(max(1, head), max(1, head) + len(found) - 1)
                    answers += len(found)
                except MissingObject:
                    continue
                finally:
                    await asyncio.sleep(0)
            return answers

        _, answers = await asyncio.gather(write(), watch())
        assert answers > 0
        assert await reader.head() == 40
        await reader.close()

    consensus_place.with_consensus(body)


def test_what_was_noted_is_kept_apart_from_the_entries(consensus_place: Place) -> None:
    async def body(consensus: Consensus) -> None:
        assert await consensus.noted() == 0
        await append_many(consensus, 1, 12)
        for seqno in (3, 9, 12):
            await consensus.note(seqno)
        other = open_consensus(consensus.url)
        assert await other.noted() == 12
        await append_many(consensus, 13, 14)
        await other.note(14)
        assert await consensus.noted() == 14
        await consensus.truncate(15)
        assert await consensus.noted() == 14 == await consensus.head()
        await other.close()

    consensus_place.with_consensus(body)
