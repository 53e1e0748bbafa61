"""A Consensus in PostgreSQL: two tables, one statement a call.

``noonmark_log_head (location, head, floor)`` has one row for each log: the number of its newest
entry and of its oldest one (``floor``; the next number when everything is truncated).
``noonmark_log (location, seqno, entry)`` has the entries.

Law (one history): `append` moves ``head`` from ``seqno - 1`` to ``seqno`` and inserts the entry, in
one statement. The update locks the row of the log and tests ``head`` on its newest version, also
when it had to wait for another append, so each number is given once; ``head`` never goes back, so a
writer that was paused for however long finds its number taken. Truncation does not touch ``head``.

Every read is one statement and so one snapshot: entries and floor fit together.

Errors. What the server answers with an error has not happened (`Determinate`), unless the server
was ending the session. No answer to an append or a truncation is `Indeterminate`; a read is tried
once more on a new connection. Full disk, read-only server, missing rights: `StorageUnfit`. A handle
survives restarts of the server: it connects again at the next call.

The URL is ``postgres://user@host/database?location=NAME`` with libpq's own options beside it; what
it leaves out comes from the environment (``PGPASSWORD``, ``PGHOST``, a password file).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg

from noonmark.errors import (
    ConfigError,
    Determinate,
    Indeterminate,
    StorageError,
    StorageUnfit,
)
from noonmark.persist.impl.redact import redact
from noonmark.persist.impl.seqno import check_append, check_read, check_truncate, truncated

CONNECT_TIMEOUT_S = 10

_TABLES = """
create table if not exists noonmark_log_head (
    location text primary key, head bigint not null, floor bigint not null);
create table if not exists noonmark_log (
    location text, seqno bigint, entry bytea not null, primary key (location, seqno));
"""
# Of two sessions that make a table at once one fails, also with "if not exists".
_MAKE_ALONE = "select pg_advisory_xact_lock(hashtext('noonmark_log'))"
_ENROL = "insert into noonmark_log_head values (%s, 0, 1) on conflict do nothing"
_HEAD = "select head from noonmark_log_head where location = %s"
_APPEND = """
with moved as (
    update noonmark_log_head set head = %(seqno)s::bigint
    where location = %(location)s and head = %(seqno)s::bigint - 1 returning 1)
insert into noonmark_log
select %(location)s::text, %(seqno)s::bigint, %(entry)s::bytea from moved
"""
_READ = """
select h.floor, e.entry from noonmark_log_head h left join noonmark_log e
on e.location = h.location and e.seqno >= %(start)s::bigint
and e.seqno < %(start)s::bigint + %(limit)s::bigint
where h.location = %(location)s order by e.seqno
"""
_TRUNCATE = """
with raised as (
    update noonmark_log_head set floor = greatest(floor, %(below)s::bigint)
    where location = %(location)s and head + 1 >= %(below)s::bigint returning floor)
delete from noonmark_log using raised where location = %(location)s and seqno < raised.floor
"""
# SQLSTATE classes: the session was ending, so no word on the statement; and what no retry mends.
_UNKNOWN = ("08", "57", "58", "XX")
_UNFIT = {
    "53100": "The disk of the PostgreSQL server is full.",
    "25006": "The PostgreSQL server is read-only: connect to the primary.",
    "42501": "Give this role the right to make and change tables in its schema.",
}
# A refused connection has no SQLSTATE in libpq, only words.
_REFUSED = re.compile(
    "does not exist|authentication failed|no password supplied|no pg_hba.conf entry"
)


class PostgresConsensus:
    """See `noonmark.persist.location.Consensus`. Opening one does not connect."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._dsn, self._location = _split(url)
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"PostgresConsensus({redact(self._url)!r})"

    @property
    def url(self) -> str:
        """See `Consensus.url`. Has the secrets it was opened with: show it as `redact(url)`."""
        return self._url

    async def head(self) -> int:
        """See `Consensus.head`."""
        return int((await self._read(_HEAD, (self._location,)))[0][0])

    async def append(self, seqno: int, entry: bytes) -> bool:
        """See `Consensus.append`."""
        check_append(seqno)
        values = {"location": self._location, "seqno": seqno, "entry": entry}
        if await self._change(_APPEND, values) == 1:
            return True
        check_append(seqno, await self.head())
        return False

    async def read(self, start: int, limit: int) -> list[bytes]:
        """See `Consensus.read`."""
        check_read(start)
        values = {"location": self._location, "start": start, "limit": max(0, limit)}
        rows = await self._read(_READ, values)
        floor = rows[0][0]
        if start < floor:
            raise truncated(start, floor, redact(self._url))
        return [bytes(entry) for _, entry in rows if entry is not None]

    async def note(self, seqno: int) -> None:
        """See `Consensus.note`: the head is a row of its own, and moves with every entry."""

    async def noted(self) -> int:
        """See `Consensus.noted`."""
        return await self.head()

    async def truncate(self, below: int) -> None:
        """See `Consensus.truncate`."""
        check_truncate(below, await self.head())
        await self._change(_TRUNCATE, {"location": self._location, "below": below})

    async def close(self) -> None:
        """See `Consensus.close`."""
        async with self._lock:
            await self._disconnect()

    async def _read(self, sql: str, values: Any) -> Sequence[tuple[Any, ...]]:
        """Rows of a query, on a second connection when the first is found dead."""
        async with self._lock:
            try:
                return await self._fetch(sql, values)
            except psycopg.Error:
                if self._connection is not None and not self._connection.closed:
                    await self._disconnect()
            try:
                return await self._fetch(sql, values)
            except psycopg.Error as error:
                raise self._failed("read", error) from error

    async def _fetch(self, sql: str, values: Any) -> Sequence[tuple[Any, ...]]:
        connection = await self._connected()
        cursor = await connection.execute(sql, values, prepare=True, binary=True)
        return await cursor.fetchall()

    async def _change(self, sql: str, values: Any) -> int:
        """How many rows a statement changed. Never sent twice."""
        async with self._lock:
            try:
                connection = await self._connected()
            except psycopg.Error as error:
                raise self._failed("connect to", error) from error
            try:
                return (await connection.execute(sql, values, prepare=True)).rowcount
            except psycopg.Error as error:
                raise self._failed("change", error, sent=True) from error

    async def _connected(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        try:
            async with connection.transaction():
                await connection.execute(_MAKE_ALONE)
                await connection.execute(_TABLES)
                await connection.execute(_ENROL, (self._location,))
            # A server may default to answering before the commit is on disk; an entry may not.
            row = await (await connection.execute("show synchronous_commit")).fetchone()
            if row == ("off",):
                await connection.execute("set synchronous_commit = on")
        except BaseException:
            await connection.close()
            raise
        self._connection = connection
        return connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def _failed(self, what: str, error: psycopg.Error, sent: bool = False) -> StorageError:
        state = error.sqlstate
        hint = None if state is None else _UNFIT.get(state) or _UNFIT.get(state[:2])
        if state is None and _REFUSED.search(str(error)):
            hint = "Check the user name, the password and the name of the database."
        kind: type[StorageError] = Determinate
        if hint is not None:
            kind = StorageUnfit
        elif sent and (state is None or state[:2] in _UNKNOWN):
            kind = Indeterminate
        return kind(
            f"cannot {what} the log in {redact(self._url)}",
            detail=str(error).strip(),
            hint=hint,
            url=redact(self._url),
        )


def _split(url: str) -> tuple[str, str]:
    """The connection string and the name of the log."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    location = options.pop("location", "")
    if not location:
        raise ConfigError(
            f"{redact(url)} names no location", hint="Add ?location=NAME: the name of the log."
        )
    options.setdefault("connect_timeout", str(CONNECT_TIMEOUT_S))
    dsn = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(options, quote_via=quote)))
    try:
        psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise ConfigError(f"cannot use {redact(url)}", detail=str(error).strip()) from error
    return dsn, location
