"""A database inside of this process: no server, the same SQL, blocking calls.

    import noonmark

    with noonmark.open("data") as db:
        db.execute("create table t (a int, b text)")
        db.execute("insert into t values ($1, $2)", [1, "one"])
        db.sql("select * from t").rows()                # .to_arrow() .to_pandas() .to_spark()
        for step in db.subscribe("t"):
            step.updates, step.progress

The database runs on a loop of its own, in a thread; every call waits for its answer there. Spark is
the caller's session where there is one, and is started otherwise; only in that case it is stopped
with the database.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from noonmark import shown
from noonmark.adapter.contract import CopyIn, CopyOut, Done, Field, Outcome, Row, Rows
from noonmark.adapter.database import Database
from noonmark.adapter.session.session import AdapterSession
from noonmark.compute.jvm.session import Frame, Session, active_session
from noonmark.errors import Stopped, UsageError
from noonmark.rows import arrow
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import is_plain, quote_name
from noonmark.sql.ir.relation import distinct_names
from noonmark.tvc import Update

T = TypeVar("T")

_USER = "noonmark"
#: How many rows of a DataFrame are turned into Python's values at a time.
_COPY_ROWS = 10_000
#: The same, where they stay columns.
_COPY_TABLE_ROWS = 200_000


@dataclass(frozen=True)
class Answer:
    """The rows of a query, at the one time at which it was asked."""

    fields: tuple[Field, ...]
    _rows: list[Row]
    _database: Embedded

    def rows(self) -> list[Row]:
        """The rows as tuples of Python values."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; columns of one name are told apart by numbers.

        Arrow has no number of any size: numeric without a precision is text.
        """
        names = distinct_names([field.name for field in self.fields])
        columns = zip(names, self.fields, strict=True)
        schema = Schema(tuple(Column(name, field.type) for name, field in columns))
        return arrow.texts_for_numerals(arrow.to_table(self._rows, schema), schema)

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`; a numeric of any size is a Decimal."""
        frame = self.to_arrow().to_pandas()
        for at, field in enumerate(self.fields):
            if is_plain(field.type):
                frame.isetitem(at, [row[at] for row in self._rows])
        return frame

    def to_spark(self) -> Frame:
        """The rows as a DataFrame of the database's Spark session."""
        return self._database.spark().createDataFrame(self.to_arrow())

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`, where polars is installed."""
        return shown.to_polars(self.to_arrow())

    def _repr_html_(self) -> str:
        """How notebooks show it: the first rows."""
        texts = [
            [None if value is None else format_value(value, field.type)
             for value, field in zip(row, self.fields, strict=True)]
            for row in self._rows[: shown.ROWS_SHOWN]
        ]  # fmt: skip
        return shown.html([field.name for field in self.fields], texts, len(self._rows))


@dataclass(frozen=True)
class Step:
    """What happened to a query's answer, and up to where that is all.

    Attributes:
        updates: rows that came and went, with their times.
        progress: every time before it is complete.
    """

    updates: list[Update[Row, int]]
    progress: int


class Embedded:
    """See the module; made by `noonmark.open`. Any thread may call."""

    def __init__(
        self, url: str, consensus: str | None, master: str | None, *, maintain: bool = True
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="noonmark-embedded", daemon=True
        )
        self._thread.start()
        self._mutex = threading.Lock()
        self._closed = False
        session = _session_of_caller() if maintain else None
        self._owns_spark = session is None
        try:
            self._database: Database = self._wait(
                Database.open(
                    url, consensus, spark_master=master, session=session, maintain=maintain
                )
            )
            self._session = self._wait(self._connect())
        except BaseException:
            self._end_loop()
            raise

    # -- statements ------------------------------------------------------------------------------

    def execute(self, sql: str, values: Sequence[Any] = ()) -> str:
        """Run a statement, or several; returns the last one's tag, such as ``INSERT 0 1``."""
        with self._mutex:
            return self._wait(_execute(self._session, sql, values))

    def sql(self, query: str, values: Sequence[Any] = ()) -> Answer:
        """Ask a query; $1, $2, ... stand for `values`."""
        with self._mutex:
            fields, rows = self._wait(_ask(self._session, query, values))
        return Answer(fields, rows, self)

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
        columns = ", ".join(quote_name(name) for name in found.column_names)
        text = f"COPY {table} ({columns}) FROM STDIN"
        with self._mutex:
            return self._wait(_copy(self._session, text, found))

    def subscribe(
        self, query: str, *, snapshot: bool = True, as_of: int | None = None
    ) -> Iterator[Step]:
        """What happens to a relation or a query, step by step, for as long as it is asked.

        Args:
            query: a name or a SELECT.
            snapshot: whether to begin with the contents, or with what changes after them.
            as_of: the time of the contents; now by default.
        """
        what = query if " " not in query.strip() else f"({query})"
        options = f"PROGRESS, SNAPSHOT = {str(snapshot).lower()}"
        at = "" if as_of is None else f" AS OF {as_of}"
        text = f"SUBSCRIBE TO {what} WITH ({options}){at}"
        session = self._wait(self._connect())
        try:
            outcome = self._wait(_run(session, text, ()))
            assert isinstance(outcome, Rows)
            chunks = outcome.chunks.__aiter__()
            pending: list[Update[Row, int]] = []
            while (chunk := self._wait(_next(chunks))) is not None:
                for time, progressed, diff, *row in chunk:
                    if progressed:
                        yield Step(pending, int(time))
                        pending = []
                    else:
                        pending.append(Update(tuple(row), int(time), int(diff)))
        finally:
            if not self._closed:
                self._wait(session.close())

    def spark(self) -> Session:
        """The Spark session that the database computes on, once it has started."""
        return self._wait(self._database.spark())

    # -- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish what is queued and let the location go. Idempotent."""
        if self._closed:
            return
        try:
            self._wait(self._database.close())
            if self._owns_spark and self._database.spark_has_started:
                self._wait(self._database.spark()).stop()
        finally:
            self._closed = True
            self._end_loop()

    def __enter__(self) -> Embedded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _connect(self) -> AdapterSession:
        return await self._database.connect(_USER, _USER, {}, "embedded")

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        if self._closed or threading.current_thread() is self._thread:
            call.close()
            if self._closed:
                raise Stopped("the database was closed", hint="Open it again.")
            raise UsageError("the database's own loop cannot wait for itself")
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def _session_of_caller() -> Session | None:
    """The Spark session that this process has already; none is started to find out."""
    if "pyspark" not in sys.modules:
        return None
    return active_session()


async def _run(session: AdapterSession, text: str, values: Sequence[Any]) -> Outcome:
    return await session.execute(await session.prepare(text), values)


async def _execute(session: AdapterSession, text: str, values: Sequence[Any]) -> str:
    texts = await session.split(text)
    if values and len(texts) > 1:
        raise UsageError("values are for one statement, and there are several")
    tag = ""
    for each in texts:
        tag = await _finish(await _run(session, each, values))
    return tag


async def _finish(outcome: Outcome) -> str:
    if isinstance(outcome, Done):
        return outcome.tag
    if isinstance(outcome, Rows | CopyOut):
        count = sum([len(chunk) async for chunk in outcome.chunks])
        await outcome.chunks.aclose()
        return f"{outcome.verb} {count}" if isinstance(outcome, Rows) else f"COPY {count}"
    return await _refuse_copy(outcome)


async def _copy(session: AdapterSession, text: str, table: pa.Table) -> int:
    """Write the rows of a table through COPY."""
    copy = await _run(session, text, ())
    assert not isinstance(copy, Done | Rows | CopyOut), "COPY FROM takes rows"
    try:
        size = _COPY_TABLE_ROWS if copy.takes_tables else _COPY_ROWS
        for batch in table.to_batches(max_chunksize=size):
            if copy.takes_tables:
                found = await asyncio.to_thread(shown.table_for, batch, copy.fields)
                if found is not None and copy.write_table(found):
                    continue
            await copy.write(await asyncio.to_thread(shown.rows_for, batch, copy.fields))
    except BaseException:
        await copy.fail()
        raise
    await copy.finish()
    return int(table.num_rows)


async def _refuse_copy(copy: CopyIn) -> str:
    await copy.fail()
    raise UsageError("COPY FROM STDIN needs a client that sends rows", hint="Use INSERT.")


async def _ask(
    session: AdapterSession, text: str, values: Sequence[Any]
) -> tuple[tuple[Field, ...], list[Row]]:
    outcome = await _run(session, text, values)
    if not isinstance(outcome, Rows):
        await _finish(outcome)
        raise UsageError("the statement gives no rows", hint="Use execute.")
    try:
        return outcome.fields, [row async for chunk in outcome.chunks for row in chunk]
    finally:
        await outcome.chunks.aclose()


async def _next(chunks: Any) -> Sequence[Row] | None:
    chunk: Sequence[Row] | None = await anext(chunks, None)
    return chunk
