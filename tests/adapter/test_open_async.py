"""The embedded database's transactions, and the calls that are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from noonmark.embedded.database import Embedded
from noonmark.errors import DivisionByZero, Stopped, UsageError


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Embedded]:
    with Embedded(str(tmp_path / "location"), None, None, maintain=False) as opened:
        opened.execute("create table t (a int primary key, b text)")
        yield opened


def test_a_transaction_is_committed_or_undone(db: Embedded) -> None:
    with db.transaction() as tx:
        tx.execute("insert into t values (1, 'one')")
        assert db.sql("select * from t").rows() == []
        assert tx.sql("select * from t").rows() == [(1, "one")]
    assert db.sql("select * from t").rows() == [(1, "one")]
    with pytest.raises(DivisionByZero), db.transaction() as tx:
        tx.execute("insert into t values (2, 'two'); select 1 / 0")
    assert db.sql("select a from t").rows() == [(1,)]


def test_a_transaction_may_read_alone(db: Embedded) -> None:
    with (
        pytest.raises(Exception, match="read-only transaction"),
        db.transaction("serializable", read_only=True) as tx,
    ):
        tx.execute("insert into t values (1, 'one')")


def test_sessions_are_apart(db: Embedded) -> None:
    with db.connect() as other:
        other.execute("set statement_timeout = '5s'")
        assert other.sql("show statement_timeout").rows() == [("5s",)]
        assert db.sql("show statement_timeout").rows() == [("0",)]


def test_a_subscription_goes_on_behind_what_was_seen(db: Embedded) -> None:
    db.execute("insert into t values (1, 'one')")
    seen = []
    for step in db.subscribe("t"):
        seen += [update.data for update in step.updates]
        if seen:
            break
    progress = step.progress
    db.execute("insert into t values (2, 'two')")
    for step in db.subscribe("t", resume=progress):
        seen += [update.data for update in step.updates]
        if len(seen) > 1:
            break
    assert seen == [(1, "one"), (2, "two")]
    with pytest.raises(UsageError, match="give one of them"):
        next(iter(db.subscribe("t", resume=progress, as_of=progress)))


async def _fail_in_transaction(db: Embedded) -> None:
    async with db.aio.transaction() as tx:
        await tx.execute("delete from t; select 1 / 0")


def test_calls_are_awaited_side_by_side(db: Embedded) -> None:
    async def run() -> None:
        aio = db.aio
        tags = await asyncio.gather(
            *(aio.execute("insert into t values ($1, $2)", [n, str(n)]) for n in range(20))
        )
        assert tags == ["INSERT 0 1"] * 20
        assert (await aio.sql("select count(*) from t")).rows() == [(20,)]
        assert await aio.insert("t", pd.DataFrame({"a": [100], "b": ["x"]})) == 1
        async with aio.transaction() as tx:
            await tx.execute("delete from t where a < $1", [100])
            assert (await aio.sql("select count(*) from t")).rows() == [(21,)]
        assert (await aio.sql("select a from t")).rows() == [(100,)]
        with pytest.raises(DivisionByZero):
            await _fail_in_transaction(db)
        assert (await aio.sql("select a from t")).rows() == [(100,)]

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_subscription_is_an_async_iterator(db: Embedded) -> None:
    async def take(wanted: int, resume: int | None) -> tuple[list[tuple[object, ...]], int]:
        seen: list[tuple[object, ...]] = []
        progress = 0
        async for step in db.aio.subscribe("select a from t", resume=resume):
            seen += [update.data for update in step.updates]
            progress = step.progress
            if len(seen) >= wanted:
                break
        return seen, progress

    async def run() -> None:
        first = asyncio.create_task(take(2, None))
        await db.aio.execute("insert into t values (1), (2)")
        seen, progress = await first
        assert sorted(seen) == [(1,), (2,)]
        await db.aio.execute("insert into t values (3)")
        assert (await take(1, progress))[0] == [(3,)]

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_call_that_is_cancelled_ends_in_the_database(db: Embedded) -> None:
    async def run() -> None:
        endless = "select count(*) from generate_series(1, 99999) a, generate_series(1, 99999) b"
        waiting = asyncio.create_task(db.aio.sql(endless))
        await asyncio.sleep(0.5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await db.aio.sql("select 1")).rows() == [(1,)]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_closed_database_says_so(db: Embedded) -> None:
    db.close()
    with pytest.raises(Stopped):
        asyncio.run(db.aio.sql("select 1"))
