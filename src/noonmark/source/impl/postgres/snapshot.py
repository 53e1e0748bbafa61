"""Reading tables as of one moment, in parallel: COPY of ranges of pages under a shared snapshot.

The moment is that of a slot's making: exactly the transactions that the slot will never send are in
it. The session that made the slot keeps the snapshot alive; any other session may read under it, as
long as that one lives (`Held`).

A snapshot sees what a table held only while the table stays where it lies: TRUNCATE, and an ALTER
TABLE that rewrites, leave nothing there for snapshots that are older. So every piece is read under
a lock that makes such statements wait, once it is sure that none came before: the table's file is
the one that the snapshot knows.

Law (cover): the pieces of a table hold each of its rows at that moment exactly once. A row has one
place under a snapshot; the last piece has no end, so that pages added meanwhile are in it.

Rows are typed records. Those of a keyed table only where no change of a key is read with them:
else they are raw, as the changes are, and so is a row that cannot be read: its error has a key,
which the next change of that key takes back.

Where it runs: `Held` on the driver; `read_piece` and `records` on executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import pq
from psycopg.pq.abc import PGconn

from noonmark.errors import SourceStalled
from noonmark.source.contract import error_batch
from noonmark.source.format.convert import Reasons
from noonmark.source.impl.postgres import copytext
from noonmark.source.impl.postgres.builder import (
    WAL,
    check_nulls,
    raw_batch,
    split_errors,
    typed_batch,
)
from noonmark.source.impl.postgres.describe import Table
from noonmark.source.impl.postgres.position import Position, of_slot
from noonmark.source.impl.postgres.session import (
    PATIENT_S,
    answered,
    command,
    connect,
    identifier,
    literal,
    meaning,
    replication,
    taken,
)

PIECE_PAGES = 4096
_BLOCK_BYTES = 4 << 20
_BLOCK_ROWS = 65_536


@dataclass(frozen=True)
class Held:
    """A snapshot that is kept alive: where in the log it stands, and its name."""

    position: Position
    name: str
    connection: PGconn
    locks: psycopg.Connection[tuple[Any, ...]] | None = None

    @classmethod
    def with_slot(cls, url: str, slot: str, *, temporary: bool = False) -> Held:
        """Make a slot, and keep the snapshot that it starts from."""
        kind = "TEMPORARY " if temporary else ""
        connection = replication(url)
        try:
            result = command(
                connection,
                f"CREATE_REPLICATION_SLOT {identifier(slot)} {kind}LOGICAL pgoutput"
                " EXPORT_SNAPSHOT",
                PATIENT_S,
            )
            point, name = result.get_value(0, 1), result.get_value(0, 2)
        except BaseException:
            connection.finish()
            raise
        return cls(of_slot(point.decode()), name.decode(), connection)

    @classmethod
    def locked(cls, url: str, slot: str, tables: Sequence[Table]) -> Held:
        """A snapshot of a temporary slot, whose tables stay as they are for as long as it is held.

        Raises:
            SourceStalled: a table was rewritten at that moment, or is locked.
        """
        held = cls.with_slot(url, slot, temporary=True)
        try:
            locks = _enter(url, held.name)
            held = replace(held, locks=locks)
            locks.execute("set local lock_timeout = '10s'")
            # A process that is stopped and not killed keeps nobody waiting for longer.
            locks.execute("set local idle_in_transaction_session_timeout = '10min'")
            for table in tables:
                _lock(locks, table)
        except BaseException as error:
            held.close()
            if isinstance(error, psycopg.Error):
                raise SourceStalled(meaning(error).message) from error
            raise
        return held

    def is_whole(self, url: str, tables: Sequence[Table]) -> bool:
        """Whether everything can still be read under it."""
        if not self.is_alive():
            return False
        try:
            with _enter(url, self.name) as connection:
                for table in tables:
                    _check(connection, table)
        except (psycopg.Error, SourceStalled):
            return False
        return True

    def is_alive(self) -> bool:
        """Whether the session that keeps the snapshot is still there."""
        try:
            self.connection.consume_input()
        except psycopg.OperationalError:
            return False
        return self.connection.status == pq.ConnStatus.OK

    def close(self) -> None:
        """Let the snapshot go."""
        self.connection.finish()
        if self.locks is not None:
            self.locks.close()


def pieces(table: Table) -> list[tuple[int, int]]:
    """Ranges of pages that cover the table; the end of the last is -1."""
    starts = list(range(0, max(1, table.pages), PIECE_PAGES))
    return list(zip(starts, [*starts[1:], -1], strict=True))


def read_piece(
    url: str, table: Table, first: int, last: int, name: str
) -> Iterator[list[pa.Array]]:
    """The rows of some pages as columns of escaped fields (`copytext`), block by block."""
    # Not a `with`: that would commit, and a session is just closed, also in the middle of a COPY.
    connection = _enter(url, name)
    try:
        _lock(connection, table)
        yield from _blocks(connection.pgconn, _copy(table, first, last), len(table.columns))
    except psycopg.Error as error:
        raise _of_table(table, error) from None
    finally:
        connection.close()


def _enter(url: str, name: str) -> psycopg.Connection[tuple[Any, ...]]:
    """A session in a transaction that sees the snapshot."""
    connection = connect(url)
    try:
        connection.execute("begin isolation level repeatable read read only")
        connection.execute(f"set transaction snapshot {literal(name)}".encode())
    except psycopg.Error as error:
        connection.close()
        raise SourceStalled(f"the snapshot is gone, and will be taken again: {error}") from None
    return connection


def _lock(connection: psycopg.Connection[tuple[Any, ...]], table: Table) -> None:
    """Keep a table as it is to the end of the transaction, if it is as the snapshot knows it."""
    connection.execute(f"lock table only {table.sql_name} in access share mode".encode())
    _check(connection, table)


def _check(connection: psycopg.Connection[tuple[Any, ...]], table: Table) -> None:
    # The query sees the catalog as of the snapshot; the function sees it as it is.
    known = "select relfilenode::bigint, pg_relation_filenode(oid)::bigint from pg_class"
    row = connection.execute(f"{known} where oid = %s".encode(), (table.oid,)).fetchone()
    if row is not None and (row[1] or 0) != row[0]:
        raise SourceStalled(
            f"table {table.full_name} was truncated or rewritten before it was read: another"
            " snapshot will be taken"
        )


def _of_table(table: Table, error: psycopg.Error) -> SourceStalled:
    """Whatever it is: what has ended a table for good, the next probe says."""
    return SourceStalled(f"table {table.full_name} could not be read: {meaning(error).message}")


def _copy(table: Table, first: int, last: int) -> str:
    names = ", ".join(
        identifier(column.name) if column.number else f"NULL AS {identifier(column.name)}"
        for column in table.columns
    )
    where = [f"ctid >= '({first},0)'::tid"]
    if last >= 0:
        where.append(f"ctid < '({last},0)'::tid")
    if table.row_filter:
        where.append(f"({table.row_filter})")
    # As in the log, rows of tables that inherit from it are not its own.
    source = f"only {table.sql_name}"
    return f"copy (select {names} from {source} where {' and '.join(where)}) to stdout"


def _blocks(connection: PGconn, text: str, width: int) -> Iterator[list[pa.Array]]:
    result = answered(connection, text, PATIENT_S)
    if result.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result)
    lines: list[bytes] = []
    size = 0
    while True:
        count, data = connection.get_copy_data(1)
        if count == 0:
            count, data = taken(connection, partial(_some, connection), PATIENT_S)
        if count < 0:
            break
        lines.append(bytes(data))
        size += count
        if size >= _BLOCK_BYTES or len(lines) >= _BLOCK_ROWS:
            yield copytext.columns(b"".join(lines), width)
            lines, size = [], 0
    ended = connection.get_result()
    if ended is not None and ended.status == pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(ended)
    if lines:
        yield copytext.columns(b"".join(lines), width)


def _some(connection: PGconn) -> tuple[int, memoryview] | None:
    found = connection.get_copy_data(1)
    return found if found[0] else None


def records(
    table: Table, output: int, offset: int, fields: list[pa.Array], *, is_typed: bool
) -> Iterator[pa.RecordBatch]:
    """The records of rows that are given as columns of escaped fields; see the module."""
    count = len(fields[0]) if fields else 0
    offsets = pa.array(np.full(count, offset), pa.int64())
    if not is_typed:
        yield raw_batch(output, offsets, _raw(table, fields))
        return
    columns, reasons = copytext.typed(fields, table.schema)
    check_nulls(table.schema, columns, reasons)
    if reasons:
        yield _unreadable(table, output, offsets, fields, reasons)
    arrays = [pa.repeat(pa.scalar(1, pa.int64()), count), *columns]
    (offsets, arrays), _ = split_errors(arrays, offsets, reasons, {})
    if len(offsets):
        yield typed_batch(table, output, offsets, arrays)


def _raw(table: Table, fields: list[pa.Array]) -> list[pa.Array]:
    by_name = dict(zip(table.schema.names, fields, strict=True))
    count = len(fields[0]) if fields else 0
    return [
        copytext.join([by_name[name] for name in names], count)
        for names in (table.key, table.others)
    ]


def _unreadable(
    table: Table, output: int, offsets: pa.Array, fields: list[pa.Array], reasons: Reasons
) -> pa.RecordBatch:
    """The rows that have a reason: as errors, or raw where a decoding finds it again."""
    places = pa.array(sorted(reasons))
    fields, offsets = [each.take(places) for each in fields], offsets.take(places)
    if not table.full:
        return raw_batch(output, offsets, _raw(table, fields))
    lines = copytext.join(fields, len(places)).to_pylist()
    errors = [
        (offset, None, line, reasons[at])
        for at, offset, line in zip(sorted(reasons), offsets.to_pylist(), lines, strict=True)
    ]
    return error_batch("number", WAL, errors, output)
