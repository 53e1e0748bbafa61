"""SUBSCRIBE: snapshot and changes add up to the contents at every time, and can be resumed."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.worker.errors import ProgramLimitExceeded
from noonmark.adapter.worker.limits import Limits
from noonmark.errors import QueryCanceled, UndefinedColumn, Unsupported
from support.serve.reading import Conversation, connect, insert, with_database


async def rows_until(chunks: AsyncIterator[Any], count: int) -> list[Any]:
    """The first rows of a stream; progress is left out."""
    found: list[Any] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += await anext(chunks)
    return found


def contents(rows: list[Any], time: int, *, progress: bool = False) -> Counter[Any]:
    """What the rows of a subscription say of a time."""
    total: Counter[Any] = Counter()
    for row in rows:
        if progress and row[1]:
            continue
        at, diff, *columns = (row[0], *row[2:]) if progress else row
        if at <= time:
            total[tuple(columns)] += diff
    return Counter({row: count for row, count in total.items() if count})


async def people(opened: Database) -> Conversation:
    client = await connect(opened)
    await client.ask("create table people (id int, name text, age int)")
    return client


@with_database
async def test_a_subscription_is_the_contents_at_every_time(opened: Database) -> None:
    client = await people(opened)
    first = await insert(opened, "people", (1, "ann", 30), (2, "bob", 40))
    stream = await client.stream("subscribe people")
    names = [field.name for field in stream.fields]
    assert names == ["mz_timestamp", "mz_diff", "id", "name", "age"]
    chunks = aiter(stream.chunks)
    rows = await rows_until(chunks, 2)
    other = await connect(opened)
    second = await insert(opened, "people", (3, "cyd", 50))
    third = await insert(opened, "people", (1, "ann", 30), diff=-1)
    rows += await rows_until(chunks, 2)
    await stream.chunks.aclose()
    for time in (first, second, third):
        asked = await other.ask(f"select * from people as of {time}")
        assert contents(rows, time) == Counter(asked)
    assert not opened.reads.holds.living


@with_database
async def test_what_follows_progress_is_what_a_resumed_one_gives(opened: Database) -> None:
    client = await people(opened)
    await insert(opened, "people", (1, "ann", 30))
    stream = await client.stream("subscribe people with (progress)")
    chunks = aiter(stream.chunks)
    before: list[Any] = []
    while not before or not before[-1][1]:
        before += await rows_until(chunks, 1)
    progress = int(before[-1][0])
    await stream.chunks.aclose()
    await insert(opened, "people", (2, "bob", 40))
    last = await insert(opened, "people", (1, "ann", 30), diff=-1)
    resumed = await client.stream(
        f"subscribe people with (progress, snapshot = false) as of {progress - 1} up to {last + 1}"
    )
    after = [row async for chunk in resumed.chunks for row in chunk]
    told = [row for row in after if row[1]]
    assert int(told[-1][0]) == last + 1, "it ends where it was told to"
    assert all(int(row[0]) >= progress for row in after)
    assert contents(before + after, last, progress=True) == {(2, "bob", 40): 1}


@with_database
async def test_queries_are_followed_exactly(opened: Database) -> None:
    client = await people(opened)
    await client.ask("create table town (name text, of text)")
    queries = {
        "filter": "select name, age + 1 from people where age > 35",
        "group": "select age / 10, count(*) from people group by 1",
        "join": "select p.id, t.of from people p join town t using (name)",
        "first": "select * from people order by age desc limit 1",
    }
    await insert(opened, "people", (1, "ann", 30), (2, "bob", 40))
    streams = {}
    for name, query in queries.items():
        streams[name] = await (await connect(opened)).stream(f"subscribe ({query})")
    times = [
        await insert(opened, "town", ("ann", "york"), ("bob", "bath")),
        await insert(opened, "people", (3, "cyd", 45)),
        await insert(opened, "people", (2, "bob", 40), diff=-1),
        await insert(opened, "town", ("cyd", "ely")),
    ]
    for name, query in queries.items():
        stream, rows = streams[name], []
        chunks = aiter(stream.chunks)
        wanted = {time: Counter(await client.ask(f"{query} as of {time}")) for time in times}
        async with asyncio.timeout(20):
            while any(contents(rows, time) != wanted[time] for time in times):
                rows += await anext(chunks)
        await stream.chunks.aclose()


@with_database
async def test_envelopes(opened: Database) -> None:
    client = await people(opened)
    start = await insert(opened, "people", (1, "ann", 30))
    moved = await opened.tables.commit(
        {"people": [((1, "ann", 30), -1), ((1, "ann", 31), 1), ((2, "bob", 40), 1)]}
    )
    gone = await insert(opened, "people", (2, "bob", 40), diff=-1)
    twice = await insert(opened, "people", (3, "cyd", 1), (3, "cyd", 2))
    window = f"as of {start} up to {twice + 1}"

    async def shown(envelope: str) -> tuple[list[str], set[Any]]:
        stream = await client.stream(f"subscribe people {window} envelope {envelope}")
        rows = [row async for chunk in stream.chunks for row in chunk]
        return [field.name for field in stream.fields], {(int(row[0]), *row[1:]) for row in rows}

    names, rows = await shown("upsert (key (id))")
    assert names == ["mz_timestamp", "mz_state", "id", "name", "age"]
    assert rows == {
        (start, "upsert", 1, "ann", 30),
        (moved, "upsert", 1, "ann", 31),
        (moved, "upsert", 2, "bob", 40),
        (gone, "delete", 2, None, None),
        (twice, "key_violation", 3, None, None),
    }
    names, rows = await shown("debezium (key (id))")
    assert names[2:] == ["id", "before_name", "before_age", "after_name", "after_age"]
    assert (start, "insert", 1, None, None, "ann", 30) in rows
    assert (moved, "upsert", 1, "ann", 30, "ann", 31) in rows
    assert (gone, "delete", 2, "bob", 40, None, None) in rows
    with pytest.raises(UndefinedColumn):
        await shown("upsert (key (shoe))")


@with_database
async def test_many_subscribers_share_each_read(opened: Database) -> None:
    client = await people(opened)
    await insert(opened, "people", (0, "ann", 30))
    streams = [
        await (await connect(opened)).stream("subscribe people with (snapshot = false)")
        for _ in range(20)
    ]
    waiting = [asyncio.ensure_future(anext(aiter(stream.chunks))) for stream in streams]
    await asyncio.sleep(0.1)
    before = opened.reads.changes.reads
    await insert(opened, "people", (1, "bob", 40))
    heard = await asyncio.gather(*waiting)
    assert all([row[2:] for row in chunk] == [(1, "bob", 40)] for chunk in heard)
    assert opened.reads.changes.reads - before <= 2
    for stream in streams:
        await stream.chunks.aclose()
    assert (await client.ask("select count(*) from people")) == [(2,)]


@with_database
async def test_progress_is_told_also_when_nothing_happens(opened: Database) -> None:
    client = await people(opened)
    stream = await client.stream("subscribe people with (progress)")
    chunks = aiter(stream.chunks)
    told = [int(row[0]) for row in await rows_until(chunks, 3)]
    await stream.chunks.aclose()
    assert told == sorted(set(told))


@with_database
async def test_cursors(opened: Database) -> None:
    client = await people(opened)
    await insert(opened, "people", *((n, "x", n) for n in range(5)))
    await client.ask("begin")
    await client.ask("declare c cursor for select id from people order by id")
    assert await client.ask("fetch 2 c") == [(0,), (1,)]
    assert await client.ask("fetch all c") == [(2,), (3,), (4,)]
    assert await client.ask("fetch 1 c") == []
    await client.ask("commit")
    await client.ask("begin")
    await client.ask("declare s cursor for subscribe people")
    assert len(await client.ask("fetch 3 s")) == 3
    assert len(await client.ask("fetch all s")) == 2
    assert await client.ask("fetch all s with (timeout = '50ms')") == []
    await insert(opened, "people", (9, "y", 9))
    assert [row[2:] for row in await client.ask("fetch all s")] == [(9, "y", 9)]
    await client.ask("close s")
    await client.ask("commit")
    assert not opened.reads.holds.living


@with_database
async def test_a_conversation_that_ends_lets_go_of_its_cursors(opened: Database) -> None:
    client = await people(opened)
    await client.ask("begin")
    await client.ask("declare s cursor for subscribe people")
    await client.ask("fetch all s with (timeout = '10ms')")
    assert opened.reads.holds.living
    await client.session.close()
    assert not opened.reads.holds.living


@with_database
async def test_a_subscription_can_be_cancelled(opened: Database) -> None:
    client = await people(opened)
    stream = await client.stream("subscribe people")
    waiting = asyncio.ensure_future(anext(aiter(stream.chunks)))
    await asyncio.sleep(0.05)
    client.session.cancel()
    with pytest.raises(QueryCanceled):
        await waiting
    await stream.chunks.aclose()
    assert not opened.reads.holds.living


@with_database
async def test_what_cannot_be_followed_is_refused_by_name(opened: Database) -> None:
    client = await people(opened)
    with pytest.raises(Unsupported, match="pg_class"):
        await client.stream("subscribe pg_catalog.pg_class as of 5")
    sql = "subscribe (select * from people where age = 1 or age > mz_now())"
    with pytest.raises(Unsupported, match="mz_now") as refused:
        await client.stream(sql)
    assert refused.value.position == sql.index("mz_now") + 1


@with_database
async def test_rows_come_and_go_at_their_turn_though_nothing_is_written(opened: Database) -> None:
    client = await people(opened)
    await client.ask("create table visit (name text, until timestamptz)")
    await client.ask(
        "insert into visit values ('a', now() + interval '1.2 s'), ('b', now()), (null, null)"
    )
    query = "select name from visit where mz_now() < until"
    stream = await client.stream(f"subscribe ({query})")
    rows: list[tuple[int, int, str]] = []
    async for chunk in stream.chunks:
        rows += [(row[0], row[1], row[2]) for row in chunk]
        if len(rows) > 1:
            break
    await stream.chunks.aclose()
    ((until,),) = await client.ask("select mz_timestamp(until) from visit where name = 'a'")
    assert [row[1:] for row in rows] == [(1, "a"), (-1, "a")]
    assert rows[1][0] == until
    assert await client.ask(query) == []


@with_database
async def test_system_relations_are_looked_at_again(opened: Database) -> None:
    client, other = await connect(opened), await connect(opened)
    stream = await client.stream("subscribe (select name from noonmark.frontiers) with (progress)")
    chunks = aiter(stream.chunks)
    await other.ask("create table seen (a int)")
    found: list[tuple[Any, ...]] = []
    async with asyncio.timeout(20):
        while not any(row[3] == "seen" for row in found):
            found += await anext(chunks)
    times = [int(row[0]) for row in found]
    assert times == sorted(times)
    (seen,) = (row for row in found if row[3] == "seen")
    assert seen[1:3] == (False, 1)
    await other.ask("drop table seen")
    async with asyncio.timeout(20):
        while not any(row[2:] == (-1, "seen") for row in found):
            found += await anext(chunks)
    await stream.chunks.aclose()


@pytest.mark.parametrize("query", ["people", "(select count(*) as n from people)"])
def test_what_a_slow_reader_missed_is_had_piece_by_piece(query: str) -> None:
    @with_database
    async def run(opened: Database) -> None:
        opened.workers.limits = Limits(subscribe_rows=10, write_rows=25)
        client = await people(opened)
        await insert(opened, "people", (0, "ann", 30))
        stream = await client.stream(f"subscribe {query} with (progress)")
        chunks = aiter(stream.chunks)
        rows: list[Any] = []
        while len(rows) < 2:  # the snapshot and its progress
            rows += await anext(chunks)
        times = [await insert(opened, "people", *[(n, "bob", n) for n in range(4)] * 2)]
        for _ in range(9):
            times.append(await insert(opened, "people", *[(n, "bob", n) for n in range(7)]))
        longest, segments = 0, opened.reads.changes._kept
        async with asyncio.timeout(20):
            while not any(row[1] and row[0] > times[-1] for row in rows):
                rows += await anext(chunks)
                longest = max([longest, *(len(each.changes) for each in segments.values())])
        assert longest <= 10
        other = await connect(opened)
        asked = await other.ask(f"select * from {query} as q as of {times[-1]}")
        assert contents(rows, times[-1], progress=True) == Counter(asked)
        # More than there is room for at one time: it ends, and says where to go on.
        last = await insert(opened, "people", *[(n, "cyd", n) for n in range(26)])
        with pytest.raises(ProgramLimitExceeded, match=f"25 rows, .* changed at {last}") as found:
            await rows_until(chunks, 1_000)
        assert f"AS OF {last} WITH" in str(found.value.hint)
        again = await client.stream(f"subscribe people as of {last} with (snapshot = false)")
        new = await insert(opened, "people", (99, "dan", 9))
        assert await rows_until(aiter(again.chunks), 1) == [(new, 1, 99, "dan", 9)]

    run()


@with_database
async def test_what_a_slow_reader_missed_has_bounded_memory(opened: Database) -> None:
    opened.workers.limits = Limits(subscribe_memory_mb=1)
    client = await people(opened)
    stream = await client.stream("subscribe people with (progress)")
    chunks = aiter(stream.chunks)
    await anext(chunks)
    times = [await insert(opened, "people", (n, "x" * 200_000, n)) for n in range(30)]
    reads, rows = opened.reads.changes.reads, []
    async with asyncio.timeout(20):
        while not any(row[1] and row[0] > times[-1] for row in rows):
            rows += await anext(chunks)
    assert [row[3] for row in rows if not row[1]] == list(range(30))
    assert opened.reads.changes.reads - reads >= 6, "a megabyte at a time"
    kept = opened.reads.changes._kept.values()
    assert max(each.size_bytes for each in kept) <= 1 << 20


@with_database
async def test_many_slow_readers_share_what_was_read(opened: Database) -> None:
    """Each holds what its client is reading; the rest is one for all, and goes when it must."""
    opened.workers.limits = Limits(subscribe_memory_mb=8)
    client = await connect(opened)
    await client.ask("create table wide (id int not null, word text)")
    streams = []
    for _ in range(8):
        # At paces of their own: each begins with another time.
        await insert(opened, "wide", (-1, "x"))
        stream = await (await connect(opened)).stream("subscribe wide with (progress)")
        streams.append(aiter(stream.chunks))
        await anext(streams[-1])
    for start in range(0, 16_000, 400):
        rows = [(start + n, f"{start + n:06}" * 200) for n in range(400)]
        last = await insert(opened, "wide", *rows)
    tracemalloc.start()
    try:
        for chunks in streams:
            for _ in range(5):
                await anext(chunks)
        gc.collect()
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert opened.reads.changes.kept_bytes <= 8 << 20
    assert held_bytes < 40 << 20
    found, told = 0, 0
    while told <= last:
        for row in await anext(streams[0]):
            found, told = found + (not row[1]), max(told, int(row[0]))
    assert found >= 15_000, "what it did not read is there"
