"""A database in memory, and conversations with it: for tests of reads that need no Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from noonmark.adapter.contract import Done, Rows
from noonmark.adapter.database import Database
from noonmark.adapter.session.session import AdapterSession
from noonmark.clock import SYSTEM
from noonmark.persist.client import Options


class _Idle:
    """Stands where a Spark context would: it lives, and that is all that it says."""

    _gateway = None

    @property
    def _jsc(self) -> _Idle:
        return self

    def sc(self) -> _Idle:
        return self

    def isStopped(self) -> bool:  # noqa: N802 - Spark's name
        return False


class NoSpark:
    """Stands where a Spark session would; whoever asks it for anything fails the test."""

    sparkContext = _Idle()  # noqa: N815 - Spark's name

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Spark was asked for {name}")


class Conversation:
    """One session, asked in SQL."""

    def __init__(self, session: AdapterSession) -> None:
        self.session = session

    async def ask(self, sql: str, *values: Any) -> Any:
        """All rows, or the tag."""
        prepared = await self.session.prepare(sql)
        outcome = await self.session.execute(prepared, values)
        if isinstance(outcome, Rows):
            return [row async for chunk in outcome.chunks for row in chunk]
        assert isinstance(outcome, Done)
        return outcome.tag

    async def stream(self, sql: str, *values: Any) -> Rows:
        """The rows as they come: the caller closes them."""
        outcome = await self.session.execute(await self.session.prepare(sql), values)
        assert isinstance(outcome, Rows)
        return outcome


@asynccontextmanager
async def database(
    url: str = "", spark: Any = None, options: Options | None = None
) -> AsyncIterator[Database]:
    """A database of its own, in memory unless it is told where."""
    place = url or f"memory:{SYSTEM.fresh_id()}"
    opened = await Database.open(
        place, session=spark or NoSpark(), options=options or Options(notify_host=None)
    )
    try:
        yield opened
    finally:
        await opened.close()


async def connect(opened: Database, **settings: str) -> Conversation:
    return Conversation(await opened.connect("noonmark", "noonmark", settings, "test"))


async def insert(opened: Database, table: str, *rows: Sequence[Any], diff: int = 1) -> int:
    """Write rows to a table as a session would, and return the time."""
    return await opened.tables.commit({table: [(tuple(row), diff) for row in rows]})


def with_database(
    test: Callable[..., Coroutine[Any, Any, None]],
) -> Callable[[], None]:
    """A test that is a coroutine over a fresh database."""

    def run() -> None:
        async def go() -> None:
            async with asyncio.timeout(60), database() as opened:
                await test(opened)

        asyncio.run(go())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run
