"""A database that only reads its location, and writes nothing but its own holds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from noonmark.adapter.database import DEFAULT_MASTER, Database
from noonmark.adapter.replica.catalog import FollowedCatalog
from noonmark.adapter.replica.refused import check, no_writes
from noonmark.adapter.replica.times import AskedTimes, NoOracle
from noonmark.adapter.replica.work import FollowedWork
from noonmark.adapter.session.session import AdapterSession
from noonmark.adapter.session.transaction import OpenTransaction, isolation_of
from noonmark.adapter.system import system_items
from noonmark.adapter.timestamp.choice import SERIALIZABLE, STRICT
from noonmark.adapter.worker.limits import Limits
from noonmark.clock import SYSTEM, Clock
from noonmark.compute.jvm.session import spark_session
from noonmark.errors import ConfigError
from noonmark.persist.client import Options, open_location
from noonmark.source.impl.file_guard import Guard
from noonmark.sql.statement import statement as st
from noonmark.supervise import Task

#: No session of the writer has such a number: temporary objects are found by it.
_SESSIONS_FROM = 1_000_000_000


class ReadOnlyDatabase(Database):
    """See `noonmark.adapter.replica`."""

    read_only = True
    session_defaults: Mapping[str, str] = {
        "transaction_isolation": SERIALIZABLE,
        "default_transaction_isolation": SERIALIZABLE,
        "transaction_read_only": "on",
        "default_transaction_read_only": "on",
    }
    store: FollowedCatalog
    _follower: Task | None = None

    @classmethod
    async def follow(
        cls,
        data_url: str,
        consensus_url: str | None = None,
        *,
        spark_master: str | None = None,
        clock: Clock = SYSTEM,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> ReadOnlyDatabase:
        """Open a location to read.

        Args:
            data_url: where the location is.
            consensus_url: where its log is; beside the data by default.
            spark_master: where Spark is started, for the first read that needs it.
            clock: the door to time.
            limits: what statements and Spark may use.

        Raises:
            ConfigError: there is no location.
        """
        options = Options(mode="notified")
        client = await asyncio.to_thread(
            open_location, data_url, consensus=consensus_url, options=options, clock=clock
        )
        try:
            if client.state.seqno == 0:
                raise ConfigError(
                    f'there is no storage location at "{data_url}"',
                    hint="A read-only server reads what `noonmark serve` wrote: start that first.",
                )
            master, more = spark_master or DEFAULT_MASTER, limits.spark_options()
            start_spark = partial(spark_session, master, options=more)
            database = cls(client, None, start_spark, clock, Guard.of("", ()), limits)
            await database._begin()
        except BaseException:
            await asyncio.to_thread(client.stop)
            raise
        return database

    def _make_parts(self, oracle: object) -> None:
        assert oracle is None, "the writer has it"
        self.oracle = AskedTimes(self.client)
        self.store = FollowedCatalog(self.client, NoOracle(), system_items())
        self.work = FollowedWork(self)
        self._next_session = _SESSIONS_FROM

    async def _begin(self) -> None:
        await asyncio.to_thread(self.store.load)
        self.engine.open(soon=False)
        self._follower = self.supervisor.task("catalog", "", self.store.follow)

    async def admit(self, session: AdapterSession, statement: st.Statement) -> None:
        """Let a read through, with a catalog that is as new as what it will read.

        A strict one sees every change of the catalog that was acknowledged before.
        """
        check(statement)
        begun = session.transaction
        own = begun.isolation if isinstance(begun, OpenTransaction) else isolation_of(session)
        if own == STRICT:
            client = self.client
            await asyncio.wrap_future(client.runtime.submit(client.journal.refresh()))
        await self.store.settled()

    async def connect(
        self, user: str, database: str, settings: Mapping[str, str], peer: str
    ) -> AdapterSession:
        """See `contract.Sessions.connect`."""
        await self.store.settled()
        return await super().connect(user, database, settings, peer)

    async def verifier(self, user: str) -> str | None:
        """See `contract.Sessions.verifier`."""
        await self.store.settled()
        return await super().verifier(user)

    async def receive(self, name: str, body: bytes, headers: Mapping[str, str]) -> None:  # noqa: ARG002
        """Posts to webhooks are for the writer."""
        raise no_writes(f'a post to "{name}"')

    async def close(self) -> None:
        """End every session, and let the location go."""
        if self._follower is not None:
            await self._follower.stop()
        await super().close()
