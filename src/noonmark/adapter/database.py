"""One open location as a database: everything that sessions share.

    client, storage    the writer of the location
    oracle             the timeline, durable on the location
    catalog            every object, durable in the location
    tables             writes of sessions, committed together
    work               sources and views, ticking in the background
    workers            processes that evaluate what is much work
    spark()            the engine, which starts behind all that: what needs it waits

A database is the only writer of its location. Everything acknowledged is in the location: a process
that is killed loses nothing, and the next one takes up where it was.

Where it runs: one asyncio loop, the adapter's; persist has a loop of its own in a thread.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from noonmark.adapter.catalog import Catalog
from noonmark.adapter.catalog.item import DATABASE
from noonmark.adapter.catalog.privilege import BUILT_IN, has, is_open
from noonmark.adapter.catalog.store import CatalogStore
from noonmark.adapter.contract import Prepared
from noonmark.adapter.location import oracle_log
from noonmark.adapter.peek.reads import Reads
from noonmark.adapter.planner import LIGHT_MAX
from noonmark.adapter.replica.questions import answerer
from noonmark.adapter.schedule.engine import Engine, starting
from noonmark.adapter.schedule.schedule import Schedule
from noonmark.adapter.sequence.sequences import Sequences
from noonmark.adapter.session import temporary
from noonmark.adapter.session.channels import Channels
from noonmark.adapter.session.locks import Locks
from noonmark.adapter.session.memory import Memory
from noonmark.adapter.session.numbers import Numbers
from noonmark.adapter.session.session import AdapterSession
from noonmark.adapter.statement.query.subscribe_view import end_leftovers
from noonmark.adapter.statement_totals import StatementTotals, kind_of
from noonmark.adapter.system import system_items
from noonmark.adapter.table.committer import Tables
from noonmark.adapter.table.copy_memory import CopyMemory
from noonmark.adapter.timestamp.oracle import Times
from noonmark.adapter.upstream.secret import key_file
from noonmark.adapter.upstream.webhook import receive
from noonmark.adapter.worker.limits import Limits
from noonmark.adapter.worker.pool import Pool
from noonmark.clock import SYSTEM, Clock
from noonmark.compute.jvm.session import OpenSession, Session, spark_session
from noonmark.errors import ConfigError, InsufficientPrivilege, NotAuthorized
from noonmark.oracle import ReservedOracle
from noonmark.persist.client import Client, Options, open_location
from noonmark.source.impl.file_guard import Guard
from noonmark.sql.statement import statement as st
from noonmark.storage.transaction import RETAIN_MS
from noonmark.telemetry import Telemetry

DEFAULT_MASTER = "local[*]"
#: Processes that plan, for light texts and for heavy ones.
PLANNING_WORKERS = 2
#: A secret is a signed integer on the wire.
_SECRET_BITS = (1 << 31) - 1


def _places(*urls: str | None) -> list[str]:
    """Those of a location's URLs that a source of files could be pointed at."""
    stores = ("file", "s3", "gs", "az")
    return [
        url
        for url in urls
        if url
        and not url.startswith("memory:")
        and ("://" not in url or url.partition("://")[0] in stores)
    ]


class Database:
    """See the module; made by `open`."""

    #: Whether it leaves writing to another process (`replica`).
    read_only = False
    #: What the variables of its sessions are, where that is not the usual.
    session_defaults: Mapping[str, str] = {}

    def __init__(  # noqa: PLR0917 - what a database is made of
        self,
        client: Client,
        oracle: ReservedOracle | None,
        start_spark: OpenSession,
        clock: Clock,
        files: Guard,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self.client = client
        planning = replace(limits, workers=PLANNING_WORKERS)
        self.workers = Pool(limits)
        #: Those that plan long queries: light ones never wait for heavy ones.
        self._planning = Pool(planning), Pool(planning)
        self.memory = Memory(limits)
        self.copies = CopyMemory(limits.copy_memory_mb)
        self.clock = clock
        self.supervisor = client.supervisor
        self._next_session = 1
        self._make_parts(oracle)
        self.tables = Tables(
            client,
            self.oracle,
            catalog=lambda: self.catalog,
            names=self.table_collections,
            together=self.work.together,
            retain_ms=self.retain_ms,
            mirrors=lambda: self.reads.mirrors,
            workers=lambda: self.workers,
            supervisor=self.supervisor,
        )
        self.sequences = Sequences(client, self.oracle, read_only=self.read_only)
        self.tables.before_commit = self.sequences.settle
        self.reads = Reads(self)
        self.sessions: dict[int, AdapterSession] = {}
        self.channels = Channels()
        self.locks = Locks()
        self.numbers = Numbers(self.clock)
        self.started_ms = clock.now_ms()
        self.loop = asyncio.get_running_loop()
        self.statements = StatementTotals()
        self.telemetry = Telemetry()
        self.engine = Engine(start_spark, self.supervisor, clock)
        self._leftovers: asyncio.Future[None] | None = None
        #: Which files sources may read, and which are the server's own.
        self.files = files
        self._closed = False

    def _make_parts(self, oracle: ReservedOracle | None) -> None:
        """What a database that only reads has others of."""
        assert oracle is not None, "a writer has the oracle"
        self.oracle = Times(oracle)
        self.store = CatalogStore(self.client, oracle, system_items())
        self.work = Schedule(self)

    @classmethod
    async def open(
        cls,
        data_url: str,
        consensus_url: str | None = None,
        *,
        spark_master: str | None = None,
        session: Session | None = None,
        clock: Clock = SYSTEM,
        options: Options = Options(),  # noqa: B008 - frozen
        files_roots: str = "",
        own_files: tuple[str, ...] = (),
        limits: Limits = Limits(),  # noqa: B008 - frozen
        maintain: bool = True,
    ) -> Database:
        """Open a location to write.

        Args:
            data_url: where the location is.
            consensus_url: where its log is; beside the data by default.
            spark_master: where Spark is started, unless there is a session.
            session: a Spark session to use instead of an own one.
            clock: the door to time.
            options: how persist opens the location.
            files_roots: what sources may read, with commas between; everything if there is none.
            own_files: what no source may read, besides the location and the key of secrets.
            limits: what statements, views and Spark may use.
            maintain: whether sources and views go on, which needs Spark; otherwise tables are
                written and read, and the next who opens the location takes up the rest.

        Raises:
            LockHeld: another process writes to it; says who.
        """
        log = oracle_log(data_url, consensus_url)  # nothing is opened before it is used
        client = await asyncio.to_thread(
            open_location, data_url, consensus=consensus_url, options=options, clock=clock
        )
        try:
            alone = client.lock is not None and not client.lock.lease_is_needed
            oracle = await asyncio.to_thread(
                ReservedOracle.open, client.runtime, log, alone=alone, config=client.config
            )

            own = (*own_files, str(key_file()), *_places(data_url, consensus_url))
            guard = Guard.of(files_roots, own)
            master, more = spark_master or DEFAULT_MASTER, limits.spark_options()
            start_spark = partial(spark_session, master, options=more)
            database = cls(client, oracle, starting(session, start_spark), clock, guard, limits)
            await database._start(maintain)
        except BaseException:
            await asyncio.wrap_future(client.runtime.submit(log.close()))
            await asyncio.to_thread(client.stop)
            raise
        return database

    async def _start(self, maintain: bool) -> None:
        await asyncio.to_thread(self.store.load)
        await asyncio.to_thread(self._catch_up_oracle)
        await asyncio.to_thread(self.sequences.load)
        self.tables.start()
        self.client.answerer = answerer(self)
        if not maintain:
            return
        self.engine.on_back = self.work.retry
        self.engine.open()
        await self.work.start()
        await temporary.end_leftovers(self)

        self._leftovers = asyncio.ensure_future(end_leftovers(self))

    def _catch_up_oracle(self) -> None:
        """A location may be older than its oracle: times go on behind all that is complete."""
        state = self.client.state
        names = [item.collection for item in self.catalog.items() if item.is_stored]
        uppers = [state.collection(name).upper.only() for name in names if name in state.names]
        last = max((upper - 1 for upper in uppers if upper is not None), default=0)
        if last > self.oracle.blocking.read_ts():
            self.oracle.blocking.apply_write(last)

    def planning_workers(self, weight: int) -> Pool:
        """Who plans a query of a weight that is not short."""
        return self._planning[weight > LIGHT_MAX]

    # -- what sessions share ---------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The newest catalog."""
        return self.store.catalog

    async def spark(self) -> Session:
        """The Spark session, once it has started.

        Raises:
            ConfigError: it does not start; says why.
        """
        return await self.engine.session()

    def started_spark(self) -> Session:
        """The Spark session, for threads: waits for its start."""
        return self.engine.started()

    @property
    def spark_has_started(self) -> bool:
        """Whether `spark` answers at once."""
        return self.engine.has_started

    def troubles(self) -> list[str]:
        """See `contract.Sessions.troubles`."""
        found = [self.engine.trouble, self.client.trouble, *self.supervisor.failing()]
        return [each for each in found if each is not None]

    def table_collections(self) -> list[str]:
        """The collections of all tables."""
        return [item.collection for item in self.catalog.items() if item.is_written]

    def retain_ms(self, collection: str) -> int:
        """How much history a collection keeps."""
        item = self.catalog.of_collection(collection)
        return RETAIN_MS if item is None or item.retain_ms is None else item.retain_ms

    async def receive(self, name: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Take a post to a webhook; done when it is durable."""
        await receive(self, name, body, headers)

    async def admit(self, session: AdapterSession, statement: st.Statement) -> None:
        """Called before a statement is planned or run: raises where it cannot be here."""

    # -- sessions: `contract.Sessions` -----------------------------------------------------------

    async def connect(
        self, user: str, database: str, settings: Mapping[str, str], peer: str
    ) -> AdapterSession:
        """See `contract.Sessions.connect`."""
        if self._closed:
            raise ConfigError("the database is closed")
        self._check_user(user)
        number, self._next_session = self._next_session, self._next_session + 1
        secret = int(self.clock.fresh_id()[-6:], 36) & _SECRET_BITS
        session = AdapterSession(
            self, number, secret, user=user, database_name=database, settings=settings, peer=peer
        )
        self.sessions[number] = session
        return session

    def _check_user(self, user: str) -> None:
        roles = self.catalog.roles()
        if is_open(self.catalog) or user == BUILT_IN:
            return
        if user not in roles:
            raise NotAuthorized(f'role "{user}" does not exist')
        if not roles[user].definition.get("login", True):
            raise NotAuthorized(f'role "{user}" is not permitted to log in')
        if not has(self.catalog, user, "CONNECT", self.catalog.database):
            raise InsufficientPrivilege(
                f"permission denied for database {DATABASE}",
                hint=f"Its owner may GRANT CONNECT ON DATABASE {DATABASE} TO {user}.",
            )

    async def verifier(self, user: str) -> str | None:
        """See `contract.Sessions.verifier`."""
        role = self.catalog.roles().get(user)
        return None if role is None else role.definition.get("verifier")

    def cancel(self, id: int, secret: int) -> None:
        """See `contract.Sessions.cancel`."""
        session = self.sessions.get(id)
        if session is not None and hmac.compare_digest(str(session.secret), str(secret)):
            session.cancel()

    def forget(self, session: AdapterSession) -> None:
        """A session has ended."""
        self.sessions.pop(session.id, None)

    def ended(
        self,
        session: AdapterSession,
        prepared: Prepared,
        prepared_s: float,
        begun_s: float | None,
        error: object = None,
    ) -> None:
        """A statement has ended: counted, and traced where that is wanted.

        Args:
            session: whose it was.
            prepared: the statement.
            prepared_s: how long it was read and planned.
            begun_s: when it arrived; None if the rest took no time.
            error: how it failed.
        """
        self.statements.end(prepared.statement, ok=error is None)
        if self.telemetry.is_on:
            self.telemetry.statement(
                kind_of(prepared.statement),
                session.text,
                prepared_s=prepared_s,
                took_s=prepared_s if begun_s is None else self.clock.monotonic() - begun_s,
                ended_ms=self.clock.now_ms(),
                error=error,
            )

    # -- the end ---------------------------------------------------------------------------------

    async def close(self) -> None:
        """End every session and all work, finish what is queued, and let the location go."""
        if self._closed:
            return
        self._closed = True
        await self.engine.stop()
        for session in list(self.sessions.values()):
            await session.close()
        if self._leftovers is not None:
            await asyncio.wait({self._leftovers})
        for pool in (self.workers, *self._planning):
            await pool.close()
        self.reads.answers.files.close()
        await self.work.stop()
        await self.tables.stop()
        await self.sequences.close()
        await self.oracle.close()
        await asyncio.to_thread(self.client.stop)
        await asyncio.to_thread(self.telemetry.close)
