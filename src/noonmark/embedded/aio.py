"""The embedded database for programs that run on a loop of their own.

    db = noonmark.open("data")
    await db.aio.execute("insert into t values ($1)", [1])
    answer = await db.aio.sql("select * from v")
    async with db.aio.transaction() as tx:
        await tx.execute("update t set a = a + 1")
    async for step in db.aio.subscribe("v", resume=progress):
        ...

Every statement has a session of its own unless it is in a transaction, so that many can be awaited
at once. Nothing here blocks the caller's loop; a call that is cancelled is cancelled in the
database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from noonmark import shown
from noonmark.adapter.session.session import AdapterSession
from noonmark.compute.jvm.session import Session
from noonmark.embedded import statements as st
from noonmark.embedded.answer import Answer, Step
from noonmark.embedded.bridge import Bridge


@dataclass(frozen=True)
class AsyncConnection:
    """The statements of one session: await one before the next."""

    _bridge: Bridge
    _session: AdapterSession
    _spark: Callable[[], Session]

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> str:
        """Run a statement, or several; returns the last one's tag, such as ``INSERT 0 1``."""
        return await self._bridge.reach(st.execute(self._session, sql, values))

    async def sql(self, query: str, values: Sequence[Any] = ()) -> Answer:
        """Ask a query; $1, $2, ... stand for `values`."""
        fields, rows = await self._bridge.reach(st.ask(self._session, query, values))
        return Answer(fields, rows, self._spark)

    async def insert(self, table: str, rows: Any) -> int:
        """Write the rows of a DataFrame to a table, in one commit; how many they were."""
        found = await asyncio.to_thread(shown.as_arrow, rows)
        return await self._bridge.reach(st.copy_table(self._session, table, found))


@dataclass(frozen=True)
class AsyncDatabase:
    """See the module."""

    _bridge: Bridge
    _new_session: Callable[[], Coroutine[Any, Any, AdapterSession]]
    _spark: Callable[[], Session]

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> str:
        """See `AsyncConnection.execute`; SET and BEGIN would end with it."""
        async with self.connect() as connection:
            return await connection.execute(sql, values)

    async def sql(self, query: str, values: Sequence[Any] = ()) -> Answer:
        """See `AsyncConnection.sql`."""
        async with self.connect() as connection:
            return await connection.sql(query, values)

    async def insert(self, table: str, rows: Any) -> int:
        """See `AsyncConnection.insert`."""
        async with self.connect() as connection:
            return await connection.insert(table, rows)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """A session for the length of a block, with settings and transactions of its own."""
        session = await self._bridge.reach(self._new_session())
        try:
            yield AsyncConnection(self._bridge, session, self._spark)
        finally:
            await self._end(session.close())

    @asynccontextmanager
    async def transaction(
        self, isolation: str | None = None, *, read_only: bool = False
    ) -> AsyncIterator[AsyncConnection]:
        """A transaction for the length of a block: committed at its end, undone by an exception."""
        async with self.connect() as connection:
            await connection.execute(st.begin_text(isolation, read_only=read_only))
            try:
                yield connection
            except BaseException:
                await connection.execute("ROLLBACK")
                raise
            await connection.execute("COMMIT")

    async def subscribe(
        self,
        query: str,
        *,
        snapshot: bool = True,
        as_of: int | None = None,
        resume: int | None = None,
    ) -> AsyncIterator[Step]:
        """What happens to a relation or a query; with the arguments of `Embedded.subscribe`."""
        text = st.subscribe_text(query, snapshot=snapshot, as_of=as_of, resume=resume)
        session = await self._bridge.reach(self._new_session())
        following = st.steps(session, text)
        try:
            while (step := await self._bridge.reach(st.next_step(following))) is not None:
                yield step
        finally:
            await self._end(st.end(session, following))

    async def _end(self, ending: Coroutine[Any, Any, None]) -> None:
        """End a session, also when the caller is being cancelled."""
        if self._bridge.closed:
            ending.close()
        else:
            await asyncio.shield(self._bridge.reach(ending))
