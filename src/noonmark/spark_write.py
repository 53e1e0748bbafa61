"""Writing a DataFrame to a table: ``df.write.format("noonmark")``, in one commit.

    df.write.format("noonmark").option("location", url).mode("append").save("s.t")

| option | meaning |
|---|---|
| location | the URL of the location; the table is what is saved to, with or without its schema |
| consensus | the URL of its log, when that is not beside the data |
| server | ``postgresql://...`` of the server that writes to the location, while there is one |
| upsert | ``true``: a row replaces the one of its primary key; otherwise that is an error |

``mode("append")`` adds rows, ``mode("overwrite")`` replaces all of them. Columns are found by their
names; those of the table that are not there have their default. Keys, constraints and types are
checked as they are for INSERT.

Law (one commit): the rows are there at one time, all of them, or, where anything fails, none.

A location has one writer. Where a server is, it commits, over its protocol; where none is, the
process that commits opens the location for as long as that takes. The rows travel to that process
through the driver, compressed: Spark's `spark.driver.maxResultSize` bounds how many.

Where it runs: `write` on executors, the rest in a Python process beside the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyspark.sql import datasource as ds

from noonmark.errors import ConfigError, LockHeld, TooManyRows, UsageError
from noonmark.persist.spark.target import flag, place_options
from noonmark.rows.types import quote_name

if TYPE_CHECKING:
    from noonmark.embedded.database import Embedded

_KNOWN = frozenset({"location", "consensus", "path", "server", "upsert"})
#: How many rows one INSERT of an upsert has.
_UPSERT_ROWS = 500

_KEYS = """
    select a.attname from pg_catalog.pg_index i
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
    where i.indisprimary and i.indrelid = '{}'::regclass"""


@dataclass(frozen=True)
class Destination:
    """What the options say."""

    location: str
    consensus: str | None
    server: str | None
    table: str
    upsert: bool
    overwrite: bool

    @classmethod
    def of(cls, options: dict[str, str], *, overwrite: bool) -> Destination:
        """Parse, or `ConfigError`."""
        known = place_options(options, _KNOWN)
        upsert = flag(known, "upsert", default=False)
        if upsert and overwrite:
            raise ConfigError('"upsert" changes rows by their keys, "overwrite" replaces all')
        names = known["path"].split(".")
        table = ".".join(map(quote_name, names))
        place = (known["location"], known.get("consensus"), known.get("server"))
        return cls(*place, table, upsert, overwrite)


@dataclass(frozen=True)
class Written(ds.WriterCommitMessage):
    """The rows of one task, as a compressed stream of Arrow; empty for none."""

    rows: bytes


class TableWriter(ds.DataSourceArrowWriter):
    """See the module."""

    def __init__(self, destination: Destination, names: tuple[str, ...]) -> None:
        self._destination = destination
        self._names = names

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Runs on executors: stores nothing, so a task may run twice."""
        first = next(iterator, None)
        if first is None:
            return Written(b"")
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, first.schema, options=options) as stream:
            stream.write_batch(first)
            for batch in iterator:
                stream.write_batch(batch)
        return Written(bytes(sink.getvalue()))

    def commit(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """All rows of all tasks, at one time."""
        pieces = [each.rows for each in messages if isinstance(each, Written) and each.rows]
        tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces]
        with _opened(self._destination) as target:
            _write(target, self._destination, self._names, tables)

    def abort(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Nothing was stored."""


class Table(Protocol):
    """Where rows go: a database in this process, or a server."""

    def __enter__(self) -> Table: ...

    def __exit__(self, *_: object) -> None: ...

    def execute(self, text: str) -> object:
        """Run a statement."""

    def column(self, query: str) -> list[Any]:
        """The first column of an answer."""

    def copy(self, table: str, rows: pa.Table) -> None:
        """Add rows, as part of the transaction."""

    def upsert(self, table: str, rows: pa.Table, conflict: str) -> None:
        """Add rows or change those of their keys, as `conflict` says, in the transaction."""


def _write(
    target: Table, wanted: Destination, names: tuple[str, ...], tables: list[pa.Table]
) -> None:
    keys = target.column(_KEYS.format(wanted.table.replace("'", "''"))) if wanted.upsert else []
    if wanted.upsert:
        _check_keys(wanted.table, keys, tables)
    target.execute("BEGIN")
    if wanted.overwrite:
        target.execute(f"DELETE FROM {wanted.table}")
    for rows in tables:
        if wanted.upsert:
            target.upsert(wanted.table, rows, _conflict(keys, names))
        else:
            target.copy(wanted.table, rows)
    target.execute("COMMIT")


def _conflict(keys: list[str], names: tuple[str, ...]) -> str:
    rest = [quote_name(name) for name in names if name not in keys]
    action = ", ".join(f"{name} = excluded.{name}" for name in rest)
    what = f"UPDATE SET {action}" if rest else "NOTHING"
    return f"ON CONFLICT ({', '.join(map(quote_name, keys))}) DO {what}"


def _check_keys(table: str, keys: list[str], tables: list[pa.Table]) -> None:
    """No key comes twice: which of the rows would stay is chance."""
    if not keys:
        raise UsageError(
            f"{table} has no primary key to upsert by", hint="Append, or make it with a key."
        )
    if not tables:
        return
    if missing := [key for key in keys if key not in tables[0].column_names]:
        raise UsageError(f'the DataFrame has no column "{missing[0]}", which is in the key')
    found = pa.concat_tables([each.select(keys) for each in tables])
    if found.group_by(keys).aggregate([]).num_rows < found.num_rows:
        raise TooManyRows(
            f"two rows of the DataFrame have the same key of {table}",
            hint="Drop duplicates of the key first.",
        )


def _opened(wanted: Destination) -> Table:
    if wanted.server is not None:
        return OnServer(wanted.server)
    from noonmark.embedded.database import (
        Embedded,  # door: for who commits alone: tasks start without it
    )

    try:
        return InProcess(Embedded(wanted.location, wanted.consensus, None, maintain=False))
    except LockHeld as error:
        raise LockHeld(
            error.message,
            hint='Write through it: .option("server", "postgresql://user@host:port/noonmark").',
        ) from error


class InProcess:
    """A location that this process opened."""

    def __init__(self, database: Embedded) -> None:
        self._database = database

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def execute(self, text: str) -> object:
        """See `Table`."""
        return self._database.execute(text)

    def column(self, query: str) -> list[Any]:
        """See `Table`."""
        return [row[0] for row in self._database.sql(query).rows()]

    def copy(self, table: str, rows: pa.Table) -> None:
        """See `Table`."""
        self._database.insert(table, rows)

    def upsert(self, table: str, rows: pa.Table, conflict: str) -> None:
        """See `Table`."""
        from noonmark.shown import rows_for  # door: as `_opened` says

        names = _columns(rows)
        fields = self._database.sql(f"SELECT {names} FROM {table} LIMIT 0").fields
        for batch in rows.to_batches(max_chunksize=_UPSERT_ROWS):
            width = batch.num_columns
            marks = (
                "(" + ", ".join(f"${at * width + place + 1}" for place in range(width)) + ")"
                for at in range(batch.num_rows)
            )
            text = f"INSERT INTO {table} ({names}) VALUES {', '.join(marks)} {conflict}"
            self._database.execute(text, [x for row in rows_for(batch, fields) for x in row])


class OnServer:
    """A server, over its protocol."""

    def __init__(self, url: str) -> None:
        import psycopg  # as `_opened` says

        self._connection = psycopg.connect(url, autocommit=True)

    def __enter__(self) -> OnServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def execute(self, text: str) -> object:
        """See `Table`."""
        return self._connection.execute(text.encode())

    def column(self, query: str) -> list[Any]:
        """See `Table`."""
        return [row[0] for row in self._connection.execute(query.encode()).fetchall()]

    def copy(self, table: str, rows: pa.Table) -> None:
        """See `Table`."""
        text = f"COPY {table} ({_columns(rows)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            for batch in rows.to_batches():
                for row in _rows(batch):
                    copy.write_row(row)

    def upsert(self, table: str, rows: pa.Table, conflict: str) -> None:
        """See `Table`."""
        marks = ", ".join(["%s"] * rows.num_columns)
        text = f"INSERT INTO {table} ({_columns(rows)}) VALUES (\0) {conflict}"
        query = text.replace("%", "%%").replace("\0", marks).encode()
        with self._connection.cursor() as cursor:
            for batch in rows.to_batches(max_chunksize=_UPSERT_ROWS):
                cursor.executemany(query, _rows(batch))


def _columns(rows: pa.Table) -> str:
    return ", ".join(map(quote_name, rows.column_names))


def _rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
