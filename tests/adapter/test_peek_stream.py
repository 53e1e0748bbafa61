"""Large answers come piece by piece, and what is large is not kept."""

from __future__ import annotations

import sys

import pytest

from noonmark.adapter.database import Database
from noonmark.adapter.peek import gather
from noonmark.adapter.peek.chunks import CHUNK_ROWS
from support.serve.reading import connect, insert, with_database

ROWS = 30_000


def by_stream(opened: Database) -> None:
    """From a thousand rows on, and not by kernels."""
    opened.reads.answers.in_process_rows_max = 1_000
    opened.reads.answers.columns_rows_min = sys.maxsize


@with_database
async def test_a_large_answer_is_never_whole_in_memory(opened: Database) -> None:
    with pytest.MonkeyPatch.context() as patched:
        pieces = 0
        decode = gather._rows_of

        def counting(*given: object) -> object:
            nonlocal pieces
            pieces += 1
            return decode(*given)  # type: ignore[arg-type]

        patched.setattr(gather, "_rows_of", counting)
        by_stream(opened)
        client = await connect(opened)
        await client.ask("create table t (n int, half int)")
        await insert(opened, "t", *((n, n // 2) for n in range(ROWS)))
        lines = [line for (line,) in await client.ask("explain select n from t where half > 5")]
        assert "Answered: stream" in lines
        stream = await client.stream("select n from t where half > 5")
        chunks = aiter(stream.chunks)
        first = await anext(chunks)
        assert 0 < len(first) <= CHUNK_ROWS
        assert pieces == 1, "the rest was not touched yet"
        seen = len(first)
        async for chunk in chunks:
            assert len(chunk) <= CHUNK_ROWS
            seen += len(chunk)
        assert seen == ROWS - 12
        assert pieces == ROWS // gather.PIECE_ROWS
        assert len(opened.reads.mirrors) == 0, "a stream keeps nothing"


@with_database
async def test_a_stream_that_is_let_go_ends(opened: Database) -> None:
    by_stream(opened)
    client = await connect(opened)
    await client.ask("create table t (n int)")
    await insert(opened, "t", *((n,) for n in range(20_000)))
    stream = await client.stream("select n from t")
    await anext(aiter(stream.chunks))
    await stream.chunks.aclose()
    assert await client.ask("select 1") == [(1,)]


@with_database
async def test_few_rows_that_are_long_are_read_piece_by_piece(opened: Database) -> None:
    opened.reads.gatherer._memory_bytes = 1 << 20
    opened.reads.mirrors._bytes_max = 1 << 20
    client = await connect(opened)
    await client.ask("create table long (a int, b text)")
    for n in range(5):
        await client.ask(f"insert into long select {n}, repeat('{n}', 500000)")
    found = await client.ask("select a, length(b) from long where b <> 'x'")
    assert sorted(found) == [(n, 500_000) for n in range(5)]
    assert not len(opened.reads.mirrors)
