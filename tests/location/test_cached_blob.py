"""The cache answers as the Blob below would, with fewer calls and in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.clock import SYSTEM
from noonmark.errors import Determinate
from noonmark.persist.cache import CachedBlob
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.location import BlobEntry
from support.store.doubles import HookedBlob


async def tick(method: str, key: str) -> None:  # noqa: ARG001 - a hook: every call takes a turn
    await asyncio.sleep(0)


def run(body: Callable[[HookedBlob], Awaitable[None]]) -> None:
    asyncio.run(body(HookedBlob(MemoryBlob(SYSTEM.fresh_id()), before=tick)))  # type: ignore[arg-type]


def gets(blob: HookedBlob) -> int:
    return sum(method in {"get", "get_range"} for method, _ in blob.calls)


def test_the_second_read_costs_nothing() -> None:
    async def body(below: HookedBlob) -> None:
        cache = CachedBlob(below, 1000)
        await cache.put("part/a", b"0123456789")
        assert await cache.get_range("part/a", 2, 3) == b"234"
        assert await cache.get_range("part/a", 2, 3) == b"234"
        assert await cache.get("part/a") == b"0123456789"
        assert await cache.get("part/a") == b"0123456789"
        assert await cache.get_range("part/a", 8, 9) == b"89"
        assert gets(below) == 2
        assert (cache.statistics.hits, cache.statistics.misses) == (3, 2)
        assert await cache.list("part/") == [BlobEntry("part/a", 10)]
        assert cache.url == below.url

    run(body)


def test_requests_at_the_same_time_are_one() -> None:
    async def body(below: HookedBlob) -> None:
        cache = CachedBlob(below, 1000)
        await cache.put("part/a", b"a")
        assert await asyncio.gather(*(cache.get("part/a") for _ in range(9))) == [b"a"] * 9
        assert gets(below) == 1
        assert cache.statistics.coalesced == 8

    run(body)


def test_one_that_gives_up_does_not_take_the_others_along() -> None:
    async def body(below: HookedBlob) -> None:
        cache = CachedBlob(below, 1000)
        await cache.put("part/a", b"a")
        first = asyncio.create_task(cache.get("part/a"))
        second = asyncio.create_task(cache.get("part/a"))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == b"a"
        assert gets(below) == 1

    run(body)


def test_an_error_goes_to_all_who_asked_and_is_forgotten() -> None:
    async def body(below: HookedBlob) -> None:
        async def fail(method: str, key: str) -> None:
            await asyncio.sleep(0)
            raise Determinate(f"{method} {key}")

        cache = CachedBlob(below, 1000)
        await cache.put("part/a", b"a")
        below.before = fail
        asked = [cache.get("part/a") for _ in range(3)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Determinate] * 3
        below.before = tick
        assert await cache.get("part/a") == b"a"

    run(body)


def test_absence_and_other_keys_are_not_remembered() -> None:
    async def body(below: HookedBlob) -> None:
        cache = CachedBlob(below, 1000)
        assert await cache.get("part/a") is None
        assert await cache.put_if_absent("part/a", b"a")
        assert await cache.get("part/a") == b"a"
        await cache.put("log/1", b"1")
        for _ in range(2):
            assert await cache.get("log/1") == b"1"
            assert await cache.get_range("log/1", 0, 1) == b"1"
        assert cache.statistics.bytes == 1
        assert gets(below) == 6

    run(body)


def test_what_is_deleted_is_gone_also_while_it_is_read() -> None:
    async def body(below: HookedBlob) -> None:
        cache = CachedBlob(below, 1000)
        await cache.put("part/a", b"a")
        await cache.get("part/a")
        await cache.get_range("part/a", 0, 1)
        await cache.delete("part/a")
        assert await cache.get("part/a") is None
        await cache.put("part/b", b"b")

        async def late(method: str, key: str) -> None:  # noqa: ARG001 - a hook
            if method == "get":
                await asyncio.sleep(0.01)

        below.after = late
        read = asyncio.create_task(cache.get("part/b"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await cache.delete("part/b")
        assert await read == b"b"
        assert await cache.get("part/b") is None
        assert cache.statistics.bytes == 0

    run(body)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12), st.integers(1, 12)), max_size=60),
    st.integers(1, 60),
)
def test_any_reads_equal_the_blob_and_stay_in_bounds(
    reads: list[tuple[int, int, int]], bytes_max: int
) -> None:
    async def body(below: HookedBlob) -> None:
        cache = CachedBlob(below, bytes_max)
        values = {f"part/{n}": bytes(range(n, n + 4 * n)) for n in range(5)}
        for key, value in values.items():
            await cache.put(key, value)
        for number, start, length in reads:
            key = f"part/{number}"
            want = values.get(key)
            if length > 10:
                assert await cache.get(key) == want
            else:
                cut = None if want is None else want[start : start + length]
                assert await cache.get_range(key, start, length) == cut
            assert 0 <= cache.statistics.bytes <= bytes_max
        asked = cache.statistics
        assert asked.hits + asked.misses == len(reads)

    run(body)


def test_closing_ends_what_is_on_its_way() -> None:
    async def body(below: HookedBlob) -> None:
        async def hang(method: str, key: str) -> None:  # noqa: ARG001 - a hook
            if method == "get":
                await asyncio.Event().wait()

        cache = CachedBlob(below, 1000)
        below.before = hang
        read = asyncio.create_task(cache.get("part/a"))
        await asyncio.sleep(0)
        await cache.close()
        with pytest.raises(asyncio.CancelledError):
            await read

    run(body)
