"""Other sessions: who waits for whom, what is heard, and the end of one."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING

from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.system.described import record
from noonmark.adapter.system.facts import DATABASE_OID
from noonmark.adapter.system.objects import Objects, ask
from noonmark.errors import InsufficientPrivilege, OutOfRange, Stopped
from noonmark.rows import types as t
from noonmark.rows.coded.network import Inet
from noonmark.sql.functions.function import Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_POLL_S = 0.01
_TABLESPACE = 1663
#: Ends of sessions that are under way.
_CLOSING: set[asyncio.Future[None]] = set()


def allowed(session: AdapterSession, number: int, what: str, detail: str) -> AdapterSession | None:
    """The session of a number, which the asking one may do something to; None: there is none.

    Raises:
        InsufficientPrivilege: it may not.
    """
    other = session.database.sessions.get(number)
    if other is None:
        return None
    asks = session.user, session.session_user
    if not is_superuser(session.catalog, session.user) and other.session_user not in asks:
        raise InsufficientPrivilege(f"permission denied to {what}", detail=detail)
    return other


def _end(other: AdapterSession) -> None:
    """End a session: its statement is given up, and its connection is told why and closed."""
    why = Stopped("terminating connection due to administrator command")
    other.cancel(why)
    if other.inbox.end is not None:
        other.inbox.end(why)
    else:
        closing = asyncio.ensure_future(other.close())
        _CLOSING.add(closing)
        closing.add_done_callback(_CLOSING.discard)


def about_backends(session: AdapterSession) -> list[Function]:
    """The functions, for one session."""

    def cancel(number: int) -> bool:
        detail = "Only superusers and the role whose query it is may cancel it."
        other = allowed(session, number, "cancel query", detail)
        if other is not None:
            # Soon: a session that cancels itself is told so when it next waits.
            session.database.loop.call_soon_threadsafe(other.cancel)
        return other is not None

    def terminate(number: int) -> bool:
        detail = "Only superusers and the role whose session it is may end it."
        other = allowed(session, number, "terminate process", detail)
        if other is not None:
            session.database.loop.call_soon_threadsafe(_end, other)
        return other is not None

    async def terminate_within(number: int, timeout_ms: int) -> bool:
        if timeout_ms < 0:
            raise OutOfRange('"timeout" must not be negative')
        database = session.database
        if not terminate(number):
            return False
        until = database.clock.monotonic() + timeout_ms / 1000
        while timeout_ms and number in database.sessions and number != session.id:
            if database.clock.monotonic() >= until:
                return False
            await database.clock.sleep(_POLL_S)
        return True

    boolean = t.Boolean()
    return [
        ask("pg_cancel_backend", (t.Integer,), boolean, cancel, fallible=True, volatile=True),
        ask("pg_terminate_backend", (t.Integer,), boolean, terminate, fallible=True, volatile=True),
        ask("pg_terminate_backend", (t.Integer, t.BigInt), boolean, terminate_within,
            fallible=True, volatile=True, waits=True),
        *_about_others(session),
        *_about_itself(session),
    ]  # fmt: skip


def _about_others(session: AdapterSession) -> list[Function]:
    database = session.database

    def fullness() -> float:
        return database.channels.fullness()

    def parts(relation: int | str) -> tuple[int, ...]:
        """The parts of a table that are tables: there are none. A name must be of a relation."""
        if isinstance(relation, str):
            Objects(session).regclass(relation)
        return ()

    numbers, texts = t.Array(t.Integer()), t.Array(t.Text())
    return [
        ask("pg_blocking_pids", (t.Integer,), numbers,
            lambda number: tuple(database.locks.blocking(number))),
        ask("rows of pg_listening_channels", (), texts,
            lambda: tuple(database.channels.heard_by(session))),
        ask("pg_notification_queue_usage", (), t.Double(), fullness),
        ask("rows of pg_tablespace_databases", (t.Integer,), t.Array(t.Integer("oid")),
            lambda number: (DATABASE_OID,) if number == _TABLESPACE else ()),
        *(ask("rows of pg_partition_tree", (kind,),
              record(relid=t.Integer("regclass"), parentrelid=t.Integer("regclass"),
              isleaf=t.Boolean(),
                     level=t.Integer()),
              parts, fallible=True)
          for kind in (t.Integer, t.Text)),
        *(ask("rows of pg_partition_ancestors", (kind,), t.Array(t.Integer("regclass")), parts,
              fallible=True)
          for kind in (t.Integer, t.Text)),
        *(ask("pg_partition_root", (kind,), t.Integer("regclass"),
              lambda relation: next(iter(parts(relation)), None), fallible=True)
          for kind in (t.Integer, t.Text)),
    ]  # fmt: skip


def _about_itself(session: AdapterSession) -> list[Function]:
    def started() -> dt.datetime:
        return dt.datetime.fromtimestamp(session.database.started_ms / 1000, dt.UTC)

    def time_of_day() -> str:
        now = dt.datetime.fromtimestamp(session.database.clock.now_ms() / 1000, dt.UTC)
        return now.strftime("%a %b %d %H:%M:%S.%f %Y UTC")

    def address() -> bytes | None:
        host, _, port = session.peer.rpartition(":")
        return Inet().parse(host.strip("[]")) if port.isdigit() else None

    def port() -> int | None:
        found = session.peer.rpartition(":")[2]
        return int(found) if found.isdigit() else None

    stamp = t.TimestampTz()
    return [
        ask("pg_postmaster_start_time", (), stamp, started),
        ask("pg_conf_load_time", (), stamp, started),
        ask("timeofday", (), t.Text(), time_of_day, volatile=True),
        ask("current_query", (), t.Text(), lambda: session.text),
        ask("inet_client_addr", (), Inet(), address),
        ask("inet_client_port", (), t.Integer(), port),
        ask("inet_server_addr", (), Inet(), lambda: None),
    ]
