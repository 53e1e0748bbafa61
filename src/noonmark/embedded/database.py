"""A database inside of this process: no server, the same SQL, blocking calls.

    import noonmark

    with noonmark.open("data") as db:
        db.execute("create table t (a int, b text)")
        db.execute("insert into t values ($1, $2)", [1, "one"])
        db.sql("select * from t").rows()                # .to_arrow() .to_pandas() .to_spark()
        with db.transaction() as tx:
            tx.execute("update t set a = a + 1")
        for step in db.subscribe("t"):
            step.updates, step.progress
        db.aio                                          # the same, to be awaited

The database runs on a loop of its own, in a thread; every call waits for its answer there. Spark is
the caller's session where there is one, and is started otherwise; only in that case it is stopped
with the database.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from noonmark import shown
from noonmark.adapter.database import Database
from noonmark.adapter.session.session import AdapterSession
from noonmark.compute.jvm.session import Session, active_session
from noonmark.embedded import statements as st
from noonmark.embedded.aio import AsyncDatabase
from noonmark.embedded.answer import Answer, Step
from noonmark.embedded.bridge import Bridge

_USER = "noonmark"


class Connection:
    """The statements of one session, one after the other. Any thread may call."""

    def __init__(self, database: Embedded, session: AdapterSession) -> None:
        self._database = database
        self._session = session
        self._mutex = threading.Lock()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> str:
        """Run a statement, or several; returns the last one's tag, such as ``INSERT 0 1``."""
        with self._mutex:
            return self._database.bridge.wait(st.execute(self._session, sql, values))

    def sql(self, query: str, values: Sequence[Any] = ()) -> Answer:
        """Ask a query; $1, $2, ... stand for `values`."""
        with self._mutex:
            fields, rows = self._database.bridge.wait(st.ask(self._session, query, values))
        return Answer(fields, rows, self._database.spark)

    def insert(self, table: str, rows: Any) -> int:
        """Write the rows of a DataFrame (pandas, polars, Arrow) to a table, in one commit.

        Columns are found by their names; those of the table that are not there have their default.

        Args:
            table: the table's name, as SQL writes it.
            rows: a `pandas.DataFrame`, a `polars.DataFrame`, a `pyarrow.Table`, or whatever has
                Arrow's C stream.

        Returns:
            How many rows were written.
        """
        found = shown.as_arrow(rows)
        with self._mutex:
            return self._database.bridge.wait(st.copy_table(self._session, table, found))

    def close(self) -> None:
        """End the session; what it has not committed is not there."""
        if not self._database.bridge.closed:
            self._database.bridge.wait(self._session.close())

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Embedded:
    """See the module; made by `noonmark.open`. Any thread may call."""

    def __init__(
        self, url: str, consensus: str | None, master: str | None, *, maintain: bool = True
    ) -> None:
        self.bridge = Bridge()
        session = _session_of_caller() if maintain else None
        self._owns_spark = session is None
        opening = Database.open(
            url, consensus, spark_master=master, session=session, maintain=maintain
        )
        try:
            self._database: Database = self.bridge.wait(opening)
            self._connection = self.connect()
        except BaseException:
            self.bridge.end()
            raise

    # -- statements ------------------------------------------------------------------------------

    def execute(self, sql: str, values: Sequence[Any] = ()) -> str:
        """See `Connection.execute`."""
        return self._connection.execute(sql, values)

    def sql(self, query: str, values: Sequence[Any] = ()) -> Answer:
        """See `Connection.sql`."""
        return self._connection.sql(query, values)

    def insert(self, table: str, rows: Any) -> int:
        """See `Connection.insert`."""
        return self._connection.insert(table, rows)

    def connect(self) -> Connection:
        """Another session, with settings and transactions of its own."""
        return Connection(self, self.bridge.wait(self._new_session()))

    @contextmanager
    def transaction(
        self, isolation: str | None = None, *, read_only: bool = False
    ) -> Iterator[Connection]:
        """A transaction for the length of a block: committed at its end, undone by an exception.

        It has a session of its own: what others do meanwhile is no part of it.

        Args:
            isolation: such as ``"serializable"``; strict serializable by default.
            read_only: whether it writes nothing.
        """
        with self.connect() as connection:
            connection.execute(st.begin_text(isolation, read_only=read_only))
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def subscribe(
        self,
        query: str,
        *,
        snapshot: bool = True,
        as_of: int | None = None,
        resume: int | None = None,
    ) -> Iterator[Step]:
        """What happens to a relation or a query, step by step, for as long as it is asked.

        Args:
            query: a name or a SELECT.
            snapshot: whether to begin with the contents, or with what changes after them.
            as_of: the time of the contents; now by default.
            resume: the `progress` of the last step that was taken in: go on behind it.
        """
        text = st.subscribe_text(query, snapshot=snapshot, as_of=as_of, resume=resume)
        session = self.bridge.wait(self._new_session())
        following = st.steps(session, text)
        try:
            while (step := self.bridge.wait(st.next_step(following))) is not None:
                yield step
        finally:
            if not self.bridge.closed:
                self.bridge.wait(st.end(session, following))

    @cached_property
    def aio(self) -> AsyncDatabase:
        """The same database, for who awaits."""
        return AsyncDatabase(self.bridge, self._new_session, self.spark)

    def spark(self) -> Session:
        """The Spark session that the database computes on, once it has started."""
        return self.bridge.wait(self._database.spark())

    # -- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish what is queued and let the location go. Idempotent."""
        if self.bridge.closed:
            return
        try:
            self.bridge.wait(self._database.close())
            if self._owns_spark and self._database.spark_has_started:
                self.bridge.wait(self._database.spark()).stop()
        finally:
            self.bridge.end()

    def __enter__(self) -> Embedded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _new_session(self) -> AdapterSession:
        """A session of the database, on its loop."""
        return await self._database.connect(_USER, _USER, {}, "embedded")


def _session_of_caller() -> Session | None:
    """The Spark session that this process has already; none is started to find out."""
    if "pyspark" not in sys.modules:
        return None
    return active_session()
