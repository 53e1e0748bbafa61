"""One client's conversation, from login to goodbye: a state machine over a `Link` and a `Session`.

    start ── login ──> ready ── Query ───────────────> run all ──> ready
                         │ ╰─── Parse, Bind, Execute ─> run ──error──> skip ── Sync ──> ready
                         ╰── Terminate, lost, stopped ──> the session is closed

Laws, as in PostgreSQL:

- Every Query and every Sync is answered by exactly one ReadyForQuery, after everything else.
- After an error in the extended protocol nothing is run until the next Sync.
- The statements of one Query, and those between two Syncs, are one transaction unless the client
  opens one itself. A statement alone in its Query, or directly followed by Sync, needs none.
- A portal lives as long as its transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from noonmark import defect
from noonmark.adapter.contract import (
    Answer,
    CopyOut,
    Done,
    Notice,
    Outcome,
    Prepared,
    Rows,
    Session,
    TransactionStatus,
)
from noonmark.clock import Clock
from noonmark.errors import NoonmarkError, PortalTaken, ProtocolViolation, Stopped, Unsupported
from noonmark.serve.beside import beside
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire import message as m
from noonmark.serve.pgwire import reply
from noonmark.serve.pgwire.batch import SYNC_BYTES, Batches, Execution, Values
from noonmark.serve.pgwire.codec import (
    TEXT,
    are_long,
    decode_parameters,
    parameter_type,
    row_description,
    time_zone,
)
from noonmark.serve.pgwire.deliver import SLICE_ROWS, Stream, send_copy, take_copy
from noonmark.serve.pgwire.link import Link, Lost
from noonmark.serve.pgwire.statements import Names, Portal, Statement, encoder
from noonmark.serve.placed import placed

#: What a handler still has to wait for.
Waiting = Coroutine[Any, Any, None]

_QUERY, _SYNC, _TERMINATE, _EXECUTE = ord("Q"), ord("S"), ord("X"), ord("E")


class Conversation:
    """What is said after login."""

    def __init__(self, link: Link, session: Session, figures: Figures, clock: Clock) -> None:
        self._link, self._session, self._clock, self._figures = link, session, clock, figures
        self._seconds = figures.statements.labels("pgwire")
        self._names = Names(session)
        self._batches = Batches(self._names)
        self._reported: dict[str, str] = {}
        self._zone = time_zone(None)
        self._skipping = False  # an error came: nothing is run until Sync
        self._implicit = False  # the session was told that several statements are one transaction
        self._held: bytes | None = None  # what the last statement is told when all is committed
        self._began: float | None = None
        self._over = False  # the client said goodbye
        self._broken: Exception | None = None  # what ends the conversation
        #: What the frame of that kind still has to wait for.
        self._rest: tuple[int, Waiting] | None = None
        self._handlers: dict[int, Callable[[Any], Waiting | None]] = {
            ord("P"): self._parse,
            ord("B"): self._bind,
            ord("D"): self._describe,
            ord("E"): self._execute,
            ord("C"): self._close,
            ord("H"): self._flush,
            ord("S"): self._sync,
            ord("F"): self._function_call,
            ord("Q"): self._query,
        }

    async def run(self) -> None:
        """Answer until the client goes; the session is closed in any case."""
        self._session.inbox.wake, self._session.inbox.end = self._woken, self._link.end
        self._link.drained = self._woken
        try:
            self._greet()
            await self._listen()
        finally:
            self._session.inbox.wake = self._session.inbox.end = self._link.drained = None
            if self._rest is not None:
                self._rest[1].close()  # the client went before it began
            await self._names.close_all()
            await self._session.close()

    def _greet(self) -> None:
        session = self._session
        self._link.send(reply.AUTHENTICATION_OK)
        self._report()
        self._link.send(reply.backend_key_data(session.id, session.secret))
        self._link.send(reply.ready_for_query(session.status))
        self._link.flush()

    async def _listen(self) -> None:
        """Answer until the client says goodbye."""
        while not self._over:
            if self._answer():
                await self._link.more(self._fast_path)
            if self._broken is not None:
                raise self._broken
            if self._rest is not None:
                await self._finish(*self._rest)
                self._rest = None

    async def _finish(self, kind: int, rest: Waiting) -> None:
        """Wait for the rest of what a frame asks for."""
        try:
            await rest
        except Exception as error:
            ending = self._failed(kind, error)
            if ending is not None:
                await ending

    def _fast_path(self) -> bool:
        """`_answer` where bytes just came; an error is for the task of the conversation."""
        if self._over or self._rest is not None or self._broken is not None:
            return False  # the task is about to see to that
        try:
            return self._answer()
        except Exception as error:
            self._broken = error
            return False

    def _answer(self) -> bool:
        """Answer frame by frame; whether all were. False where something has to be waited for.

        A handler that need not wait is done when it returns: most messages cost no task, and no
        turn of the event loop.
        """
        link, frames, handlers = self._link, self._link.frames, self._handlers
        while not link.congested:
            if self._began is None and self._answer_batch():
                if self._rest is not None:
                    return False
                continue
            frame = frames.next()
            if frame is None:
                link.flush()
                return True
            kind, body = frame
            if kind == _TERMINATE:
                self._over = True
                return False
            if kind != _SYNC:
                if self._skipping:
                    continue
                if self._held is not None:
                    self._let_go()
            if self._began is None:
                self._began = self._clock.monotonic()
            handle = handlers.get(kind)
            if handle is None:
                continue  # the rest of a COPY that has failed already: the client did not know
            try:
                rest = handle(m.parse(kind, body))
            except Exception as error:
                rest = self._failed(kind, error)
            if rest is not None:
                self._rest = (kind, rest)
                return False
        self._rest = (_SYNC, link.drain())
        return False

    def _failed(self, kind: int, error: Exception) -> Waiting | None:
        """Tell of an error; what is left to be done then."""
        self._fail(_told(error))
        self._skipping = True
        return self._ready() if kind == _QUERY else None

    def _fail(self, error: NoonmarkError, offset: int = 0) -> None:
        position = None if error.position is None else error.position + offset
        self._figures.errors.labels("pgwire", error.sqlstate).inc()
        self._link.send(reply.error_response(error, position=position))
        self._session.fail()

    # Simple queries.

    async def _query(self, message: m.Query) -> None:
        text = message.text
        self._names.forget("")  # a simple query ends the unnamed statement and portal
        await self._names.close("")
        statements = await self._session.split(text)
        if not statements:
            self._link.send(reply.EMPTY_QUERY)
        if len(statements) > 1:
            self._begin_implicit()
        for at, statement in placed(text, statements):
            self._let_go()
            try:
                await self._run(statement)
            except Exception as error:
                self._fail(_told(error), offset=at)
                self._skipping = True
                break
        await self._ready()

    async def _run(self, text: str) -> None:
        outcome = await self._session.ask(text)
        if not isinstance(outcome, Rows):
            return await self._tell(outcome)
        stream = Stream(outcome)
        try:
            formats = (TEXT,) * len(outcome.fields)
            self._notices(outcome.notices)
            self._link.send(row_description(outcome.fields, formats))
            encode = encoder(outcome.fields, formats, self._zone)
            count = await stream.send(self._link, encode, 0)
        finally:
            await stream.close()
        return self._complete(reply.command_complete(stream.tag(count)))

    async def _tell(self, outcome: Outcome) -> None:
        """Tell the client of an outcome that is no rows."""
        if isinstance(outcome, Done):
            done = outcome
        elif isinstance(outcome, CopyOut):
            done = Done(await send_copy(self._link, outcome, self._zone))
        else:
            assert not isinstance(outcome, Rows)
            done = await take_copy(self._link, outcome, self._zone)
        self._notices(done.notices)
        self._complete(reply.command_complete(done.tag) if done.tag else reply.EMPTY_QUERY)

    def _complete(self, message: bytes) -> None:
        """A statement ended well; the last of an implicit transaction only once that is committed.

        So that an error of the commit is an error of that statement: clients expect none later.
        """
        if self._implicit:
            self._held = message
        else:
            self._link.send(message)

    def _notices(self, notices: tuple[Notice, ...]) -> None:
        for notice in notices:
            self._link.send(reply.notice_response(notice))

    # The extended protocol.

    async def _parse(self, message: m.Parse) -> None:
        self._names.check_new(message.name)
        types = [parameter_type(number) for number in message.oids]
        prepared = await self._session.prepare(message.text, types)
        self._names.add(message.name, prepared)
        self._link.send(reply.PARSE_COMPLETE)

    def _bind(self, message: m.Bind) -> Waiting | None:
        statement = self._names.statement(message.statement)
        types, values = statement.prepared.parameters, message.values
        given = values, types, message.formats, self._zone, message.statement
        if are_long(values, types):
            return self._bind_long(message, statement, partial(decode_parameters, *given))
        self._bound(message, statement, decode_parameters(*given))
        return None

    async def _bind_long(self, message: m.Bind, to: Statement, read: Callable[[], Values]) -> None:
        self._bound(message, to, await beside(read))

    def _bound(self, message: m.Bind, statement: Statement, values: Values) -> None:
        formats = statement.formats(message.result_formats)
        if message.portal and self._session.cursor_fields(message.portal) is not None:
            raise PortalTaken(f'cursor "{message.portal}" already exists')
        self._names.open(message.portal, Portal(statement, values, formats, message))
        self._link.send(reply.BIND_COMPLETE)

    def _describe(self, message: m.Describe) -> None:
        if message.what == "P":
            fields = self._session.cursor_fields(message.name)
            if fields is not None:
                self._link.send(row_description(fields, (TEXT,) * len(fields)))
                return
            portal = self._names.portal(message.name)
            self._link.send(portal.statement.description(portal.formats))
            return
        statement = self._names.statement(message.name)
        self._link.send(statement.parameter_description)
        self._link.send(statement.description(statement.formats(())))

    def _execute(self, message: m.Execute) -> Waiting | None:
        portal = self._names.portal(message.portal)
        if portal.ran:
            return self._go_on(message, portal)
        if self._link.frames.peek() != _SYNC:
            self._begin_implicit()
        portal.ran = True
        statement = portal.statement
        answer = self._session.fast_path(statement.prepared, portal.values)
        if answer is None:
            return self._run_portal(portal, message.rows_max)
        _check_same(statement.prepared, answer)
        rows = answer.rows
        encode = statement.encoder(portal.formats, self._zone)
        if len(rows) > SLICE_ROWS or 0 < message.rows_max <= len(rows) or encode.is_long(rows):
            portal.stream = Stream.of(answer)
            return self._send(portal, portal.stream, message.rows_max)
        portal.answered = True
        if not (message.portal or message.rows_max or self._implicit):
            self._batches.learn(portal.bind, statement, self._zone)
        self._link.send(encode.encode(rows))
        self._complete(reply.command_complete(f"SELECT {len(rows)}"))
        return None

    def _answer_batch(self) -> bool:
        """Answer a whole execution that came as one; whether there was one that is known.

        It is the first that the client says since it was told that the session is ready: there are
        no portals, and what was to be reported was, by the Sync behind the execution it is like.
        """
        came = self._link.frames.bound()
        if came is None or self._session.status != "idle":
            return False
        found = self._batches.find(*came, self._zone)
        if found is None:
            return False
        execution, values, described = found
        statement, began = execution.statement, self._clock.monotonic()
        try:
            answer = self._session.fast_path(statement.prepared, values)
            if answer is None:
                return False
            _check_same(statement.prepared, answer)
        except Exception as error:
            self._link.send(execution.bound[described])
            self._fail(_told(error))
        else:
            self._link.send(execution.bound[described])
            if len(answer.rows) > SLICE_ROWS or execution.is_long(answer.rows):
                self._send_slices(execution, values, answer)
                self._began = began
                return True
            self._link.send(execution.encode(answer.rows))
            self._link.send(reply.command_complete(f"SELECT {len(answer.rows)}"))
        self._link.frames.leave(0)
        self._began = began
        self._end_batch("idle")
        return True

    def _send_slices(self, execution: Execution, values: Values, answer: Answer) -> None:
        """Begin to send many rows, as those of a portal; the Sync behind them is taken then."""
        portal = Portal(execution.statement, values, execution.formats, execution.bind)
        portal.ran, portal.stream = True, Stream.of(answer)
        self._names.open("", portal)
        self._link.frames.leave(SYNC_BYTES)
        self._rest = (_EXECUTE, self._send(portal, portal.stream, 0))

    def _go_on(self, message: m.Execute, portal: Portal) -> Waiting | None:
        """Execute a portal that was executed before: what is left of its rows."""
        if portal.answered:
            self._complete(reply.command_complete("SELECT 0"))
            return None
        if portal.stream is None:
            raise ProtocolViolation(f'portal "{message.portal}" cannot be run again')
        return self._send(portal, portal.stream, message.rows_max)

    async def _run_portal(self, portal: Portal, rows_max: int) -> None:
        prepared = portal.statement.prepared
        outcome = await self._session.execute(prepared, portal.values, fixed=True)
        if not isinstance(outcome, Rows):
            await self._tell(outcome)
            return
        portal.stream = Stream(outcome)
        _check_same(prepared, outcome)
        self._notices(outcome.notices)
        await self._send(portal, portal.stream, rows_max)

    async def _send(self, portal: Portal, stream: Stream, rows_max: int) -> None:
        """Send rows of a portal; it is suspended where more are left than were asked for."""
        count = 0
        if not stream.ended:
            encode = portal.statement.encoder(portal.formats, self._zone)
            count = await stream.send(self._link, encode, max(rows_max, 0))
        if stream.ended:
            self._complete(reply.command_complete(stream.tag(count)))
        else:
            self._names.suspended(portal)
            self._link.send(reply.PORTAL_SUSPENDED)

    async def _close(self, message: m.Close) -> None:
        if message.what == "P":
            await self._names.close(message.name)
        else:
            self._names.forget(message.name)
        self._link.send(reply.CLOSE_COMPLETE)

    def _flush(self, message: m.Flush) -> None:  # noqa: ARG002 - it says all by its kind
        self._link.flush()

    def _function_call(self, message: m.FunctionCall) -> None:  # noqa: ARG002 - likewise
        raise Unsupported("calling a function by its oid is not supported", hint="Use SELECT.")

    # The end of a Query and of a pipeline.

    def _let_go(self) -> None:
        """Send what was held back: the transaction goes on, or is committed."""
        if self._held is not None:
            self._link.send(self._held)
            self._held = None

    def _begin_implicit(self) -> None:
        if not self._implicit:
            self._implicit = True
            self._session.begin_implicit()

    def _sync(self, message: m.Sync) -> Waiting | None:  # noqa: ARG002 - likewise
        if self._implicit or self._names.unfinished:
            return self._ready()
        self._say_ready()
        return None

    async def _ready(self) -> None:
        """The end of a Query or a pipeline: its transaction ends, unless the client opened it."""
        if self._implicit:
            self._implicit = False
            try:
                await self._session.end_implicit(not self._skipping)
            except Exception as error:
                self._held = None
                self._fail(_told(error))
            self._let_go()
        if self._session.status != "open":
            await self._names.close_all()
        self._say_ready()

    def _say_ready(self) -> None:
        status = self._session.status
        if status != "open":
            self._names.forget_portals()
        self._report()
        self._end_batch(status)

    def _end_batch(self, status: TransactionStatus) -> None:
        self._skipping = False
        self._notify()
        self._link.send(reply.ready_for_query(status))
        self._link.flush()
        if self._began is not None:
            self._seconds.observe(self._clock.monotonic() - self._began)
            self._began = None

    def _woken(self) -> None:
        """A notification came: the client is told now, unless it is in the middle of something.

        One that does not take what it was sent is told when it does: it waits in the inbox, which
        has an end, and not behind the socket.
        """
        if self._began is None and not self._link.congested:
            self._notify()
            self._link.flush()

    def _notify(self) -> None:
        """Tell the client what was notified; it hears nothing of it inside of a transaction."""
        if self._session.status == "idle":
            for each in self._session.inbox.take():
                said = reply.notification_response(each.sender, each.channel, each.payload)
                self._link.send(said)

    def _report(self) -> None:
        """Tell the client of settings that are not what it knows."""
        settings = self._session.settings
        if settings == self._reported:
            return
        for name, value in settings.items():
            if self._reported.get(name) != value:
                self._link.send(reply.parameter_status(name, value))
        self._reported = dict(settings)
        self._zone = time_zone(self._reported.get("TimeZone"))


def _told(error: Exception) -> NoonmarkError:
    """What the client is told of an error; one that ends the conversation is raised again."""
    if isinstance(error, Lost | Stopped):
        raise error
    if isinstance(error, NoonmarkError):
        return error
    return defect.report(error, "a statement")


def _check_same(prepared: Prepared, outcome: Rows | Answer) -> None:
    """The client was told of columns when it asked; it cannot be sent others."""
    if outcome.fields is not prepared.fields and outcome.fields != prepared.fields:
        raise Unsupported("cached plan must not change result type")
