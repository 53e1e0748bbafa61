"""Sessions of a small language: the contract of `adapter.contract`, in memory.

echo int, text           one row of the parameters, which have these types
quick 10                 as ``rows 10``, without waiting
rows 10 by 3             the integers 1 to 10 with a text each, in chunks of 3
insert 7 / table         a durable value, in transactions / all of them, in order
copy in csv / copy out   rows (integer, text) in a format / those of ``rows 10``
subscribe                a row each time that `Scripted.tick` is called
wait                     until it is cancelled
fail / crash             an error with every field / an error that nobody foresaw
set name value, notice text, begin, commit, rollback, deallocate name
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, MutableMapping, Sequence
from typing import Any

import pyarrow as pa

from noonmark.adapter.contract import (
    Answer,
    CopyFormat,
    CopyIn,
    CopyOut,
    Done,
    Field,
    Notice,
    Outcome,
    Prepared,
    Row,
    Rows,
    TransactionStatus,
)
from noonmark.adapter.password import make_verifier
from noonmark.adapter.session.channels import Inbox
from noonmark.adapter.session.memory import Account, Memory
from noonmark.adapter.worker.limits import Limits
from noonmark.errors import (
    DivisionByZero,
    InFailedTransaction,
    InvalidSyntax,
    NotAuthorized,
    ProtocolViolation,
    QueryCanceled,
    UniqueViolation,
    UnknownStatement,
)
from noonmark.rows import types as t

ROW_FIELDS = (Field("n", t.Integer()), Field("s", t.Text()))
SETTINGS = {
    "server_version": "16.0",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "application_name": "",
}
FORMATS = {
    "text": CopyFormat(),
    "csv": CopyFormat("csv", ",", "", header=False),
    "header": CopyFormat("csv", ",", "", header=True),
    "binary": CopyFormat("binary"),
}


class Chunked:
    """Chunks that say whether they were let go."""

    def __init__(self, chunks: AsyncIterator[Sequence[Row]]) -> None:
        self._chunks = chunks
        self.closed = False

    def __aiter__(self) -> AsyncIterator[Sequence[Row]]:
        return self._chunks

    async def aclose(self) -> None:
        self.closed = True


class ScriptedCopy:
    """COPY FROM STDIN into the session's values."""

    fields = ROW_FIELDS
    takes_tables = False

    def __init__(self, session: ScriptedSession, form: CopyFormat) -> None:
        self._session, self.format = session, form
        self._rows: list[Row] = []

    async def write(self, rows: Sequence[Row]) -> None:
        self._rows.extend(rows)

    def write_table(self, table: pa.Table) -> bool:
        raise AssertionError(f"it takes no tables, and gets {table.num_rows} rows")

    async def finish(self) -> Done:
        self._session.owner.copied.extend(self._rows)
        return Done(f"COPY {len(self._rows)}")

    async def fail(self) -> None:
        self._session.owner.failed_copies += 1


class ScriptedSession:
    """One conversation."""

    def __init__(self, owner: Scripted, id: int, settings: Mapping[str, str]) -> None:
        self.owner, self.id, self.secret = owner, id, 7_000 + id
        self.account = Account(Memory(Limits()))
        self.inbox = Inbox(self.account)
        self._settings = SETTINGS | {k: v for k, v in settings.items() if k in SETTINGS}
        self._statements: dict[str, Prepared] = {}
        self._status: TransactionStatus = "idle"
        self._implicit = False
        self._pending: list[int] = []
        self._canceled = asyncio.Event()
        self.closed = False

    @property
    def status(self) -> TransactionStatus:
        return self._status

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings

    @property
    def statements(self) -> MutableMapping[str, Prepared]:
        return self._statements

    async def split(self, text: str) -> Sequence[str]:
        if "syntax error" in text:
            position = text.index("syntax error") + 1
            raise InvalidSyntax("this is not SQL", position=position)
        return [part for part in text.split(";") if part.strip()]

    async def ask(self, text: str) -> Outcome:
        prepared = await self.prepare(text)
        if prepared.parameters:
            raise ProtocolViolation("there is no parameter $1 in a simple query")
        return await self.execute(prepared)

    async def prepare(self, text: str, types: Sequence[t.SqlType | None] = ()) -> Prepared:
        await asyncio.sleep(0)
        words = text.split()
        if self._status == "failed" and words[:1] not in (["ROLLBACK"], ["COMMIT"]):
            raise InFailedTransaction("current transaction is aborted")
        self._canceled.clear()
        match words[:1]:
            case ["echo"]:
                own = [t.parse_type(name) for name in _types(text)]
                given = [*types, *[None] * len(own)][: len(own)]
                chosen = tuple(stated or kind for stated, kind in zip(given, own, strict=True))
                fields = tuple(Field(f"c{n}", kind) for n, kind in enumerate(chosen, 1))
                return Prepared(text, chosen, fields, ("echo",))
            case ["rows" | "quick" | "subscribe"]:
                return Prepared(text, (), ROW_FIELDS, tuple(words))
            case ["table"]:
                return Prepared(text, (), (Field("v", t.Integer()),), tuple(words))
        return Prepared(text, (), None, tuple(words))

    def fast_path(
        self,
        prepared: Prepared,
        values: Sequence[Any] = (),  # noqa: ARG002 - it takes none
    ) -> Answer | None:
        if prepared.statement[:1] != ("quick",):
            return None
        self.owner.executed.append(prepared.text.strip())
        return Answer(ROW_FIELDS, _numbered(1, int(prepared.statement[1]) + 1))

    async def execute(
        self,
        prepared: Prepared,
        values: Sequence[Any] = (),
        *,
        fixed: bool = False,  # noqa: ARG002
    ) -> Outcome:
        await asyncio.sleep(0)
        self.owner.executed.append(prepared.text.strip())
        words = prepared.statement
        if words[:1] == ("echo",):
            return Rows(prepared.fields or (), Chunked(_once([tuple(values)])))
        runner = getattr(self, f"_{words[0].lower()}" if words else "_empty", None)
        if runner is None:
            raise InvalidSyntax(f"unknown: {words[0]}", position=prepared.text.index(words[0]) + 1)
        outcome: Outcome = await runner(*words[1:])
        return outcome

    async def _empty(self) -> Outcome:
        return Done("")

    async def _rows(self, count: str, by: str = "by", size: str = "1000") -> Outcome:
        assert by == "by"
        return Rows(ROW_FIELDS, self.owner.chunked(_counting(int(count), int(size))))

    async def _subscribe(self) -> Outcome:
        return Rows(ROW_FIELDS, self.owner.chunked(self._ticks()), verb="SUBSCRIBE")

    async def _ticks(self) -> AsyncIterator[Sequence[Row]]:
        number = 0
        while True:
            await self._cancelable(self.owner.ticked())
            number += 1
            yield [(number, f"tick {number}")]

    async def _wait(self) -> Outcome:
        await self._cancelable(asyncio.Event().wait())
        return Done("WAIT")

    async def _cancelable(self, work: Any) -> None:
        waits = [asyncio.ensure_future(work), asyncio.ensure_future(self._canceled.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if self._canceled.is_set():
            self._canceled.clear()
            raise QueryCanceled("canceling statement due to user request")

    async def _fail(self) -> Outcome:
        raise UniqueViolation(
            "duplicate key", detail="Key (n)=(1) exists.", hint="Choose another.", position=2,
            table="t", constraint="t_pkey",
        )  # fmt: skip

    async def _crash(self) -> Outcome:
        raise RuntimeError("nobody foresaw this")

    async def _late(self) -> Outcome:
        return Rows(ROW_FIELDS, self.owner.chunked(_breaking()))

    async def _notice(self, *words: str) -> Outcome:
        return Done("NOTICE", (Notice(" ".join(words), hint="Read it."),))

    async def _set(self, name: str, value: str) -> Outcome:
        self._settings[name] = value
        return Done("SET")

    async def _deallocate(self, name: str) -> Outcome:
        if self._statements.pop(name, None) is None:
            raise UnknownStatement(f'prepared statement "{name}" does not exist')
        return Done("DEALLOCATE")

    async def _copy(self, way: str, form: str = "text") -> Outcome | CopyIn:
        if way == "in":
            return ScriptedCopy(self, FORMATS[form])
        return CopyOut(ROW_FIELDS, self.owner.chunked(_counting(10, 4)), FORMATS[form])

    async def _insert(self, value: str) -> Outcome:
        if self._status == "idle" and not self._implicit:
            self.owner.values.append(int(value))
        else:
            self._pending.append(int(value))
        return Done("INSERT 0 1")

    async def _table(self) -> Outcome:
        found = [*self.owner.values, *self._pending]
        return Rows((Field("v", t.Integer()),), Chunked(_once([(value,) for value in found])))

    async def _begin(self) -> Outcome:
        self._status = "open"
        return Done("BEGIN")

    async def _commit(self) -> Outcome:
        done = Done("ROLLBACK" if self._status == "failed" else "COMMIT")
        self._end(self._status != "failed")
        return done

    async def _rollback(self) -> Outcome:
        self._end(False)
        return Done("ROLLBACK")

    def _end(self, commit: bool) -> None:
        if commit:
            self.owner.values.extend(self._pending)
        self._pending.clear()
        self._status = "idle"

    def cursor_fields(self, name: str) -> tuple[Field, ...] | None:
        return ROW_FIELDS if name == "declared" else None

    def begin_implicit(self) -> None:
        self._implicit = True

    async def end_implicit(self, commit: bool) -> None:
        implicit, self._implicit = self._implicit, False
        if implicit and self._status == "idle":
            if commit and 13 in self._pending:
                self._end(False)
                raise UniqueViolation("13 cannot be committed")
            self._end(commit)

    def fail(self) -> None:
        if self._status == "open":
            self._status = "failed"

    def cancel(self) -> None:
        self._canceled.set()

    async def close(self) -> None:
        assert not self.closed, "a session is closed once"
        self.closed = True


class Scripted:
    """The sessions: ``ada`` has the password ``s3cret``, others none; ``nobody`` is refused."""

    def __init__(self) -> None:
        self.sessions: list[ScriptedSession] = []
        self.values: list[int] = []
        self.copied: list[Row] = []
        self.executed: list[str] = []
        self.streams: list[Chunked] = []
        self.failed_copies = 0
        self.listeners = 0
        self.trouble: list[str] = []
        self._tick = asyncio.Condition()
        self._ada = str(make_verifier("s3cret", b"salt of 16 bytes"))

    def chunked(self, chunks: AsyncIterator[Sequence[Row]]) -> Chunked:
        self.streams.append(Chunked(chunks))
        return self.streams[-1]

    async def ticked(self) -> None:
        async with self._tick:
            self.listeners += 1
            try:
                await self._tick.wait()
            finally:
                self.listeners -= 1

    async def tick(self) -> None:
        async with self._tick:
            self._tick.notify_all()

    async def connect(
        self, user: str, database: str, settings: Mapping[str, str], peer: str
    ) -> ScriptedSession:
        assert database
        assert peer
        if user == "nobody":
            raise NotAuthorized('role "nobody" does not exist')
        self.sessions.append(ScriptedSession(self, len(self.sessions) + 1, settings))
        return self.sessions[-1]

    def troubles(self) -> list[str]:
        return self.trouble

    async def verifier(self, user: str) -> str | None:
        return self._ada if user == "ada" else None

    def cancel(self, id: int, secret: int) -> None:
        for session in self.sessions:
            if (session.id, session.secret) == (id, secret):
                session.cancel()


async def _once(rows: list[Row]) -> AsyncIterator[Sequence[Row]]:
    yield rows


async def _counting(count: int, size: int) -> AsyncIterator[Sequence[Row]]:
    for first in range(1, count + 1, size):
        yield _numbered(first, min(first + size, count + 1))


def _numbered(first: int, end: int) -> list[Row]:
    return [(n, f"row {n}") for n in range(first, end)]


async def _breaking() -> AsyncIterator[Sequence[Row]]:
    yield [(1, "row 1")]
    raise DivisionByZero("division by zero")


def _types(text: str) -> list[str]:
    """The types of an ``echo``: between commas that are not inside parentheses."""
    listed = text.removeprefix("echo").partition(";")[0]
    return re.split(r",(?![^(]*\))", listed)
