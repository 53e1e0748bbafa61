"""A session: the conversation that `contract.Session` promises, over one `Database`.

It understands a text (parse, describe), finds the handler of the statement's kind, and watches over
it: one statement at a time, ended early by `cancel` or by `statement_timeout`. Chunks of rows are
watched over in the same way, for as long as they come.

Law (failed): after an error inside an explicit transaction every statement is refused with
`InFailedTransaction`, until the transaction ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from noonmark.adapter.catalog import Catalog
from noonmark.adapter.catalog.audit import ACTING
from noonmark.adapter.catalog.privilege import is_superuser
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.staging import Staging, Store
from noonmark.adapter.contract import (
    Answer,
    CopyOut,
    Done,
    Field,
    Outcome,
    Prepared,
    Row,
    Rows,
    TransactionStatus,
)
from noonmark.adapter.peek.chunks import Listed, Watched
from noonmark.adapter.peek.remote import read
from noonmark.adapter.planner import HERE_MAX, PLANNER
from noonmark.adapter.sequence.taken import Taken
from noonmark.adapter.session.alike import Alike, ask
from noonmark.adapter.session.channels import Announcement, Inbox, statement_ended
from noonmark.adapter.session.memory import Account, Cache, Counted, value_bytes
from noonmark.adapter.session.ready import Ready
from noonmark.adapter.session.recorded import recorded, without_rows, without_secrets
from noonmark.adapter.session.temporary import end_temporary
from noonmark.adapter.session.texts import prepared_bytes, remember, remembered
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.handler import Described
from noonmark.adapter.statement.handlers import DESCRIBERS, FAST_PATHS, HANDLERS
from noonmark.adapter.system import system_rows
from noonmark.adapter.system.functions import session_functions
from noonmark.adapter.system.settings import REPORTED, at_start, path_of, span_of, wanted_notices
from noonmark.adapter.weight import text_weight
from noonmark.errors import (
    BeforeSince,
    InFailedTransaction,
    InvalidSyntax,
    NoonmarkError,
    Overtaken,
    QueryCanceled,
    TooComplex,
    UnknownCollection,
    Unsupported,
)
from noonmark.rows.types import SqlType
from noonmark.sql.functions.function import Function, Table
from noonmark.sql.statement import parse_statements, split_statements
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database

T = TypeVar("T")

#: How often a statement is run again because DDL overtook it.
_OVERTAKEN_MAX = 3
#: Statements that end a transaction: the only ones that a failed one takes.
_ENDS = (st.Commit, st.Rollback, st.RollbackTo)


class Transaction(Protocol):
    """What a session knows of its transaction."""

    failed: bool
    #: Several statements that were sent as one: nobody said BEGIN.
    implicit: bool
    #: The catalog with the transaction's own changes, if it made any.
    staging: Staging | None

    async def commit(self) -> None:
        """Make what it wrote durable."""

    async def rollback(self) -> None:
        """Let go of everything."""


class AdapterSession:
    """See the module."""

    def __init__(
        self,
        database: Database,
        id: int,
        secret: int,
        *,
        user: str,
        database_name: str,
        settings: Mapping[str, str],
        peer: str,
    ) -> None:
        self.database = database
        self.id = id
        self.secret = secret
        #: Who came in; who SET SESSION AUTHORIZATION made them; whose rights count now.
        self.login_user = self.session_user = self.user = user
        self.database_name = database_name
        self.peer = peer
        #: What RESET goes back to.
        self.started_with: dict[str, str] = {
            **REPORTED,
            **database.workers.limits.shown(),
            **database.session_defaults,
            **at_start(settings),
        }
        self.account = account = Account(database.memory)
        self.variables = Counted(account, "settings", value_bytes)
        self.variables.update(self.started_with)
        self.transaction: Transaction | None = None
        #: Whether the statements that come now were sent as one.
        self.grouped = False
        self.statements = Counted(account, "prepared statements", prepared_bytes)
        self.cursors: dict[str, Any] = {}
        #: Planned queries, by the query and the types of its parameters.
        self.plans: Cache[Any, Any] = Cache("plans", 8 << 20, 256, account)
        self.alike = Alike(account)
        self.ready = Ready(account)
        self.taken = Taken()
        self.inbox = Inbox(account)
        #: What a statement outside of a transaction announces when it has ended well.
        self.said: list[Announcement] = []
        self._watched: asyncio.Task[Any] | None = None
        self._busy = False
        self._ended: NoonmarkError | None = None
        self._deadline: float | None = None
        #: What reading and planning took of the time of the statement that comes next.
        self._split_s = self._spent_s = 0.0
        self.closed = False
        self.connected_ms = database.clock.now_ms()
        self.text, self.length = "", 0  # of the statement under way: as recorded, and as written
        #: What now() is: when the statement began, or the transaction that it is part of.
        self.moment_ms = database.clock.now_ms()

    # -- what front ends see ---------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """The newest catalog: ask once per statement, and plan against that."""
        staging = None if self.transaction is None else self.transaction.staging
        return self.database.catalog if staging is None else staging.catalog

    @property
    def store(self) -> Store:
        """Where a statement of this session changes the catalog now."""
        transaction = current(self)
        return self.database.store if transaction is None else transaction.stage()

    @property
    def status(self) -> TransactionStatus:
        """See `contract.Session.status`."""
        if self.transaction is None or self.transaction.implicit:
            return "idle"
        return "failed" if self.transaction.failed else "open"

    @property
    def settings(self) -> Mapping[str, str]:
        """See `contract.Session.settings`."""
        shown = {name: self.variables.get(name, value) for name, value in REPORTED.items()}
        shown["is_superuser"] = "on" if is_superuser(self.catalog, self.user) else "off"
        return shown

    @property
    def shown_variables(self) -> Mapping[str, str]:
        """The variables as SHOW has them: also those that say who the session is."""
        return {
            **self.variables,
            "is_superuser": "on" if is_superuser(self.catalog, self.user) else "off",
            "role": "none" if self.user == self.session_user else self.user,
            "session_authorization": self.session_user,
        }

    async def split(self, text: str) -> Sequence[str]:
        """See `contract.Session.split`."""
        weight = text_weight(text)
        if weight <= HERE_MAX:
            return split_statements(text)
        begun = self._begin_watch()
        found = await self._watch(PLANNER.run(weight, split_statements, text))
        self._busy = False
        self._split_s = self.database.clock.monotonic() - begun
        return found

    async def prepare(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared:
        """See `contract.Session.prepare`."""
        weight = text_weight(text)
        self._spent_s, self._split_s = self._split_s, 0.0
        begun = self.database.clock.monotonic() - self._spent_s
        try:
            parsed = remembered(text)
            if parsed is None and weight <= HERE_MAX:
                remember(text, parsed := parse_statements(text))
            elif parsed is None:
                self._begin_watch(begun)
                parsed = await self._watch(read(self, weight, text, parse_statements))
                remember(text, parsed)
                self._busy = False
        except NoonmarkError as error:
            raise await without_secrets(error, text, parsed=False) from None
        if not parsed:
            return Prepared("", (), None, st.Empty())
        if len(parsed) > 1:
            raise InvalidSyntax(
                "cannot insert multiple commands into a prepared statement",
                position=parsed[1].position,
            )
        (one,) = parsed
        self._check_alive(one.statement)
        self._begin_watch(begun)
        described = await self._watch(self.describe(one.statement, types))
        self._busy = False
        self._spent_s = self.database.clock.monotonic() - begun
        statement = described.statement or one.statement
        return Prepared(text, described.parameters, described.fields, statement)

    async def describe(
        self, statement: st.Statement, types: Sequence[SqlType | None] = ()
    ) -> Described:
        """Which parameters a statement takes and which columns it gives."""
        await self.database.admit(self, statement)
        describer = DESCRIBERS.get(type(statement))
        return Described() if describer is None else await describer(self, statement, types)

    async def ask(self, text: str) -> Outcome:
        """See `contract.Session.ask`."""
        return await ask(self, text)

    def fast_path(self, prepared: Prepared, values: Sequence[Any] = ()) -> Answer | None:
        """See `contract.Session.fast_path`.

        Without a task and a deadline: it does not wait, so nothing can end it early.
        """
        fast_path = FAST_PATHS.get(type(prepared.statement))
        if fast_path is None:
            return None
        self._begin(prepared)
        try:
            answer = fast_path(self, prepared.statement, values)
            if answer is not None:
                self.database.ended(self, prepared, self._spent_s, None)
                self._spent_s = 0.0
            return answer
        except UnknownCollection:
            return None  # dropped or renamed this moment: `run` finds out which
        except NoonmarkError as error:
            self.database.ended(self, prepared, self._spent_s, None, error)
            self.fail()
            raise
        except RecursionError:
            self.fail()
            raise TooComplex.of_statement() from None

    async def execute(
        self, prepared: Prepared, values: Sequence[Any] = (), *, fixed: bool = False
    ) -> Outcome:
        """See `contract.Session.execute`."""
        answer = self.fast_path(prepared, values)
        if answer is not None:
            return Rows(answer.fields, Listed(answer.rows))
        self._begin(prepared)
        begun = self._begin_watch(self.database.clock.monotonic() - self._spent_s)
        spent_s, self._spent_s = self._spent_s, 0.0
        told = prepared if fixed else None
        try:
            outcome = await self._watch(self.run(prepared.statement, values, told))
            await self.database.sequences.settle()  # a number is shown once it cannot come again
            statement_ended(self)
        except Exception as error:
            statement_ended(self, well=False)
            took_s = self.database.clock.monotonic() - begun
            self.database.ended(self, prepared, spent_s, took_s, error)
            raise without_rows(self, await without_secrets(error, prepared.text)) from None
        self.database.ended(self, prepared, spent_s, begun)
        if isinstance(outcome, Done | Rows) and outcome.notices:
            outcome = replace(outcome, notices=wanted_notices(self.variables, outcome.notices))
        if isinstance(outcome, Rows | CopyOut):
            return replace(outcome, chunks=Watched(outcome.chunks, self._watch, self._over))
        self._busy = False
        return outcome

    def _begin(self, prepared: Prepared) -> None:
        self._check_alive(prepared.statement)
        if self.inbox.missed is not None:
            missed, self.inbox.missed = self.inbox.missed, None
            raise missed
        self.text, self.length = recorded(prepared.text), len(prepared.text)
        if self.transaction is None or self.transaction.implicit:
            self.moment_ms = self.database.clock.now_ms()

    async def run(
        self, statement: st.Statement, values: Sequence[Any] = (), told: Prepared | None = None
    ) -> Outcome:
        """Run a statement, without watching over it: for statements inside of others.

        Where `told` is given, the client knows the columns of the result from there: the statement
        is refused, before it did anything, if it would give others now.
        """
        if isinstance(statement, st.Empty):
            return Done("")
        handler = HANDLERS.get(type(statement))
        if handler is None:
            raise Unsupported(f"{type(statement).__name__} is not supported")
        await self.database.admit(self, statement)
        ACTING.set(self.session_user)
        for _ in range(_OVERTAKEN_MAX):
            catalog = self.catalog
            try:
                if told is not None:
                    await self._check_told(told)
                return await handler(self, statement, values)
            except (UnknownCollection, BeforeSince, Overtaken) as error:
                if self.status != "idle" and not isinstance(error, Overtaken):
                    raise
                await self.database.store.settled()
                if self.catalog is catalog:
                    raise
                # What it was planned over has been renamed or replaced meanwhile: once more.
        return await handler(self, statement, values)

    async def _check_told(self, told: Prepared) -> None:
        """Refuse a prepared statement whose result has other columns by now.

        A plan that is still good is only looked up, so nobody comes between this and the run.
        """
        if told.fields is not None:
            described = await self.describe(told.statement, told.parameters)
            if described.fields != told.fields:
                raise Unsupported("cached plan must not change result type")

    def set_variable(self, name: str, value: str) -> None:
        """Change a setting, which was checked."""
        if name == "search_path":
            self.forget_plans()  # names mean something else now
        self.variables[name] = value

    def cursor_fields(self, name: str) -> tuple[Field, ...] | None:
        """See `contract.Session.cursor_fields`."""
        cursor = self.cursors.get(name)
        return None if cursor is None else cursor.fields

    def begin_implicit(self) -> None:
        """See `contract.Session.begin_implicit`."""
        self.grouped = True

    async def end_implicit(self, commit: bool) -> None:
        """See `contract.Session.end_implicit`."""
        self.grouped = False
        transaction = self.transaction
        if transaction is None or not transaction.implicit:
            return
        self.transaction = None
        if commit and not transaction.failed:
            await transaction.commit()
        else:
            await transaction.rollback()

    def fail(self) -> None:
        """See `contract.Session.fail`."""
        if self.transaction is not None:
            self.transaction.failed = True

    def cancel(self, why: NoonmarkError | None = None) -> None:
        """See `contract.Session.cancel`."""
        self._end(why or QueryCanceled("canceling statement due to user request"))

    async def close(self) -> None:
        """See `contract.Session.close`."""
        if self.closed:
            return
        self.closed = True
        self.cancel()
        cursors, self.cursors = self.cursors, {}
        for cursor in cursors.values():
            await cursor.close()
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            await transaction.rollback()
        await end_temporary(self)
        self.database.channels.forget(self)
        self.database.locks.forget(self)
        self.account.close()
        self.database.forget(self)

    # -- what the session itself answers ---------------------------------------------------------

    @cached_property
    def functions(self) -> Table[Function]:
        """The functions that ask this session: who, where, what the catalog says."""
        return session_functions(self)

    def system_rows(self, name: str) -> Sequence[Row]:
        """The rows of a system relation, at this moment."""
        return system_rows(self, name)

    # -- rights ----------------------------------------------------------------------------------

    def access(self, statement: str, catalog: Catalog | None = None) -> Access:
        """How a statement of this session looks names up: with the rights of its role."""
        found = self.catalog if catalog is None else catalog
        return Access(found, self.user, statement, path_of(self))

    def become(self, role: str, *, session: bool = False) -> None:
        """Have the rights of another role from now on: the caller has checked that it may be."""
        self.user = role
        if session:
            self.session_user = role
        self.forget_plans()  # the rights of the role before were checked

    def forget_plans(self) -> None:
        """Plan everything anew: names or rights are others now."""
        self.plans.clear()
        self.alike.clear()
        self.ready.clear()

    # -- watching over ---------------------------------------------------------------------------

    def _check_alive(self, statement: st.Statement) -> None:
        if self.transaction is not None and self.transaction.failed:
            if isinstance(statement, _ENDS):
                return
            raise InFailedTransaction(
                "current transaction is aborted, commands ignored until end of transaction block"
            )

    def _begin_watch(self, begun: float | None = None) -> float:
        """Watch over a step of a statement; returns when the statement began.

        Its timeout is for all of its steps: reading the text, planning it, and running it.
        """
        self._busy, self._ended = True, None
        if begun is None:
            begun = self.database.clock.monotonic()
        timeout_ms = self.statement_timeout_ms
        self._deadline = begun + timeout_ms / 1000 if timeout_ms else None
        return begun

    @property
    def statement_timeout_ms(self) -> int:
        """How long a statement may take; 0 for ever."""
        return span_of(self.variables.get("statement_timeout", "0"))

    async def _watch(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it, unless it is ended first; an error inside fails the transaction."""
        task = asyncio.ensure_future(work)
        self._watched = task
        try:
            if self._ended is not None:
                task.cancel()
            await asyncio.wait({task}, timeout=self._left_s())
            if not task.done():
                self._end(QueryCanceled("canceling statement due to statement timeout"))
                await asyncio.wait({task})
            if task.cancelled() and self._ended is not None:
                raise self._ended
            return task.result()
        except asyncio.CancelledError:
            task.cancel()  # the client is gone: nobody wants the rest
            raise
        except NoonmarkError:
            self.fail()
            self._busy = False
            raise
        except RecursionError:
            self.fail()
            self._busy = False
            raise TooComplex.of_statement() from None
        finally:
            self._watched = None

    def _left_s(self) -> float | None:
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - self.database.clock.monotonic())

    def _end(self, why: NoonmarkError) -> None:
        if not self._busy:
            return
        self._ended = self._ended or why
        if self._watched is not None:
            self._watched.cancel()

    def _over(self) -> None:
        self._busy = False
