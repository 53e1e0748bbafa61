"""Sessions with upstream, and what their errors mean for a source.

Law (errors): what may pass (no answer, a busy slot, missing rights, a restart) is `SourceStalled`;
what will never be (a slot that is gone or lost its log, a publication that is gone) is
`SourceBroken`. No message has a password in it: libpq's own do not.

Law (settings): whatever the defaults of the server and of the role, every session speaks one
dialect (UTF-8, ISO dates, hex bytes), is ended by no timeout of theirs, and is refused what
row-level security would leave out in silence.

Law (silence): no call waits for a server for ever. What is answered at once elsewhere has
`SILENT_S`; what may take its time there (a slot waits for the transactions that are open, moving
one for the log between) has `PATIENT_S`. Then the session is closed: what comes later is nobody's.

Where it runs: driver and executors; a session is opened where it is used, and closed there.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo, pq
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn

from noonmark.clock import SYSTEM
from noonmark.errors import SourceBroken, SourceError, SourceStalled
from noonmark.source.impl.postgres.certificates import with_files
from noonmark.source.outgoing import policy_of

RV = TypeVar("RV")

CONNECT_TIMEOUT_S = 10
#: How long a session waits for a server that says nothing: see the module.
SILENT_S, PATIENT_S = 30.0, 600.0
_LOOK_S = 0.1
#: Below the socket, TLS may hold what poll does not see: up to two reads of it.
_DRAINS = 3
_OPTIONS = " ".join(
    f"-c {setting}"
    for setting in (
        "DateStyle=ISO",
        "IntervalStyle=postgres",
        "bytea_output=hex",
        "extra_float_digits=1",
        "TimeZone=UTC",
        "statement_timeout=0",
        "lock_timeout=0",
        "idle_in_transaction_session_timeout=0",
        "row_security=off",
    )
)
#: What not every version lets a session say when it starts; said first of all.
_NEWER = """
select set_config(name, value, false) from (values
    ('idle_session_timeout', '0'), ('transaction_timeout', '0'), ('wal_sender_timeout', '60s')
) wanted (name, value) join pg_settings s using (name) where s.context = 'user'
"""
#: Who described a connection, where nothing else is said: libpq passes it over, `pinned` reads it.
MARK, BY_ROLE = "fallback_application_name", "noonmark: described by a role"
#: Where libpq looks for a server that has no host.
_SOCKETS = "/tmp"
#: libpq would look for passwords of the server's own user; it passes over what is not there.
_NO_FILE = os.path.join(os.sep, "nonexistent", "pgpass")
# Undefined object, a slot past its log, a file of the log that is gone.
_GONE = {"42704", "55000", "58P01"}


def dsn_of(url: str, **more: str) -> str:
    """The connection string that sessions are opened with."""
    options = {
        "connect_timeout": str(CONNECT_TIMEOUT_S),
        "application_name": "noonmark",
        "client_encoding": "UTF8",
        "keepalives_idle": "30",
        "options": _OPTIONS,
        **more,
    }
    return conninfo.make_conninfo(with_files(url), **options)


def pinned(dsn: str) -> str:
    """The connection string with the addresses that its hosts have now, all of them allowed.

    libpq connects to these, and proves certificates by the names. What the server's own user keeps
    for libpq (.pgpass) is nobody else's. A host that is empty is a socket of this machine.
    """
    given = conninfo.conninfo_to_dict(dsn)
    ports = str(given.get("port") or "5432").split(",")
    allowed = policy_of(given.get(MARK) == BY_ROLE)
    if given.get("hostaddr"):
        for address in str(given["hostaddr"]).split(","):
            allowed.check_host(address)
        return dsn
    found: list[tuple[str, str, str]] = []
    for at, named in enumerate(str(given.get("host") or "").split(",")):
        host = named or _SOCKETS
        port = ports[at] if len(ports) > 1 else ports[0]
        if host.startswith(("/", "@")):
            allowed.check_host(host)
            found.append((host, "", port))
        else:
            found += [(host, each, port) for each in allowed.addresses(host, int(port))]
    hosts, addresses, numbers = (",".join(each) for each in zip(*found, strict=True))
    where = {"hostaddr": addresses} if addresses.strip(",") else {}
    return conninfo.make_conninfo(dsn, host=hosts, port=numbers, passfile=_NO_FILE, **where)


class SqlSession(psycopg.Connection[tuple[Any, ...]]):
    """A session for SQL; see "silence" in the module."""

    limit_s = SILENT_S

    def wait(self, gen: PQGen[RV], interval: float = _LOOK_S, timeout: float | None = None) -> RV:
        """See psycopg: what nobody answers in time ends the session."""
        try:
            return super().wait(gen, interval, timeout or self.limit_s)
        except psycopg.OperationalError as error:
            if not self.closed and self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                self.pgconn.finish()
                raise psycopg.OperationalError(_silent(self.limit_s)) from error
            raise


def _silent(seconds: float) -> str:
    return f"no answer within {seconds:.0f} s"


@contextmanager
def patient(session: SqlSession) -> Iterator[SqlSession]:
    """The session, for what may take its time."""
    session.limit_s = PATIENT_S
    try:
        yield session
    finally:
        session.limit_s = SILENT_S


def connect(url: str) -> SqlSession:
    """A session for SQL, in autocommit."""
    try:
        made = SqlSession.connect(pinned(dsn_of(url)), autocommit=True)
        made.execute(_NEWER)
    except psycopg.Error as error:
        raise stalled(error) from None
    return made


@contextmanager
def session(url: str) -> Iterator[SqlSession]:
    """A session for SQL, whose errors are a source's."""
    with connect(url) as connection:
        try:
            yield connection
        except psycopg.Error as error:
            raise meaning(error) from error


def replication(url: str) -> PGconn:
    """A session for replication commands."""
    made = pq.PGconn.connect(pinned(dsn_of(url, replication="database")).encode())
    if made.status != pq.ConnStatus.OK:
        message = made.get_error_message()
        made.finish()
        raise SourceStalled(f"PostgreSQL does not answer: {message}")
    try:
        command(made, _NEWER)
    except BaseException:
        made.finish()
        raise
    return made


def ready(connection: PGconn, seconds: float) -> bool:
    """Wait for something to read. `select` knows no descriptor beyond 1,023; this does."""
    waiting = select.poll()
    waiting.register(connection.socket, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def answered(connection: PGconn, text: str, seconds: float = SILENT_S) -> Any:
    """The result of one command.

    Raises:
        SourceStalled: there was none in time, or the session is over.
    """
    try:
        connection.send_query(text.encode())
        connection.flush()
        found = _result(connection, seconds)
        streams = (pq.ExecStatus.COPY_BOTH, pq.ExecStatus.COPY_OUT)
        while found is not None and found.status not in streams:
            more = _result(connection, seconds)
            if more is None:
                break
            found = more
    except psycopg.Error as error:
        raise stalled(error) from None
    if found is None:
        raise SourceStalled("PostgreSQL does not answer: the session ended")
    return found


def _result(connection: PGconn, seconds: float) -> Any:
    def look() -> tuple[Any] | None:
        return None if connection.is_busy() else (connection.get_result(),)

    return taken(connection, look, seconds)[0]


def taken(connection: PGconn, look: Callable[[], RV | None], seconds: float) -> RV:
    """What a look finds in what has come, or comes yet.

    Raises:
        SourceStalled: nothing came for so long.
    """
    heard_s = SYSTEM.monotonic()
    while True:
        for _ in range(_DRAINS):
            if (found := look()) is not None:
                return found
            connection.consume_input()
        if ready(connection, _LOOK_S):
            heard_s = SYSTEM.monotonic()
        elif SYSTEM.monotonic() - heard_s > seconds:
            raise SourceStalled(f"PostgreSQL does not answer: {_silent(seconds)}")


def command(connection: PGconn, text: str, seconds: float = SILENT_S) -> Any:
    """Run one replication command; its result must be rows, or the start of a stream."""
    result = answered(connection, text, seconds)
    if result.status in (
        pq.ExecStatus.TUPLES_OK,
        pq.ExecStatus.COMMAND_OK,
        pq.ExecStatus.COPY_BOTH,
    ):
        return result
    raise of_result(result)


def of_result(result: Any) -> SourceError:
    """The source's error of a failed result."""
    raw = result.error_field(pq.DiagnosticField.SQLSTATE)
    message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"the session ended"
    return _error((raw or b"").decode(), message.decode(errors="replace"))


def meaning(error: psycopg.Error) -> SourceError:
    """The source's error of an error of the driver."""
    message = error.diag.message_primary or str(error).strip() or type(error).__name__
    return _error(error.sqlstate or "", message)


def stalled(error: psycopg.Error) -> SourceStalled:
    """An error that says nothing about the data, whatever it is."""
    return SourceStalled(f"PostgreSQL does not answer: {str(error).strip()}")


def _error(sqlstate: str, message: str) -> SourceError:
    if sqlstate in _GONE:
        return SourceBroken(f"PostgreSQL has lost what the source needs: {message}")
    return SourceStalled(f"PostgreSQL does not answer as it should: {message}")


def identifier(name: str) -> str:
    """A name, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text, quoted."""
    return "'" + text.replace("'", "''") + "'"


def lsn_text(lsn: int) -> str:
    """A position in the log as PostgreSQL writes it.

    >>> lsn_text(0x16B3748)
    '0/16B3748'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: str) -> int:
    """The number of such a position.

    >>> lsn_number("0/16B3748") == 0x16B3748
    True
    """
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
