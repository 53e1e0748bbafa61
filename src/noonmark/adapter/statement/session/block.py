"""DO: a block is one transaction, or a part of the one that is open.

Law (let go): an error that a block has a handler for undoes what the block did, and nothing else;
one that it has none for undoes all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Done, Notice, Outcome, Rows
from noonmark.adapter.session.transaction import current
from noonmark.adapter.statement.handler import Handlers
from noonmark.errors import (
    EvaluationError,
    InTransaction,
    InvalidSyntax,
    NoonmarkError,
    Unsupported,
)
from noonmark.rows.pg.text import format_value
from noonmark.sql.statement import block as b
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.conditions import is_of

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: What cannot stand in a block: it begins or ends a transaction, or talks with the client.
_ALONE = (
    *(st.Begin, st.Commit, st.Rollback, st.Savepoint, st.Release, st.RollbackTo),
    *(st.Copy, st.Subscribe, st.Declare, st.Fetch, st.CloseCursor, st.Show, st.ShowVariable),
    *(st.Explain, st.Audit, st.PrepareStatement, st.ExecutePrepared, st.Deallocate, st.Discard),
    *(st.CreateSource, st.AlterSource, st.AlterSourceTables, st.CreateConnection),
    *(st.CreateSink, st.CreateSecret, st.AlterSecret, st.AlterConnection),
)
#: The end of a statement, which OTHERS does not mean.
_CANCELED = "57014"
#: A savepoint that no client can name.
_SAVED = "\0block"


class RaisedException(EvaluationError, id="raised_exception", sqlstate="P0001"):
    """RAISE EXCEPTION in DO."""


async def run_do(session: AdapterSession, statement: b.Do, _: Sequence[Any]) -> Outcome:
    """DO 'body'."""
    own = session.transaction is None and not session.grouped
    if own:
        session.begin_implicit()
    run = _Running(session)
    try:
        await run.block(statement.block, None)
    except BaseException as error:
        if own:
            await session.end_implicit(commit=False)
        if isinstance(error, NoonmarkError):
            error.position = None  # it was one of the body
        raise
    if own:
        await session.end_implicit(commit=True)
    return Done("DO", tuple(run.notices))


class _Running:
    """One DO."""

    def __init__(self, session: AdapterSession) -> None:
        self.session = session
        self.notices: list[Notice] = []

    async def block(self, block: b.Block, error: NoonmarkError | None) -> None:
        if not block.handlers:
            await self.actions(block.actions, error)
            return
        transaction = current(self.session)
        assert transaction is not None, "a block is inside of a transaction"
        transaction.save(_SAVED)
        try:
            await self.actions(block.actions, error)
        except NoonmarkError as found:
            handler = _handler(block, found)
            if handler is None:
                raise
            transaction.back_to(_SAVED)
            transaction.release(_SAVED)
            await self.actions(handler.actions, found)
        else:
            transaction.release(_SAVED)

    async def actions(self, actions: Sequence[b.Action], error: NoonmarkError | None) -> None:
        for action in actions:
            match action:
                case b.Block():
                    await self.block(action, error)
                case b.If(branches):
                    for condition, then in branches:
                        if condition is None or await self.value(condition) is True:
                            await self.actions(then, error)
                            break
                case b.Raise():
                    await self.raise_(action, error)
                case b.Run(statement, is_query):
                    await self.statement(statement, is_query=is_query)

    async def statement(self, statement: st.Statement, *, is_query: bool) -> None:
        if isinstance(statement, _ALONE):
            raise InTransaction(f"{type(statement).__name__} cannot run inside a DO block")
        if isinstance(statement, st.Select) and not is_query:
            raise InvalidSyntax(
                "query has no destination for result data",
                hint="If you want to discard the results of a SELECT, use PERFORM instead.",
            )
        outcome = await self.session.run(statement)
        if isinstance(outcome, Rows):
            async for _ in outcome.chunks:
                pass
        if isinstance(outcome, Done | Rows):
            self.notices += outcome.notices

    async def row(self, statement: st.Statement) -> tuple[Rows, Sequence[Any]]:
        outcome = await self.session.run(statement)
        if not isinstance(outcome, Rows):
            raise Unsupported("a condition that is no query is not supported")
        found = [row async for chunk in outcome.chunks for row in chunk]
        return outcome, found[0] if found else (None,)

    async def value(self, statement: st.Statement) -> Any:
        return (await self.row(statement))[1][0]

    async def raise_(self, raised: b.Raise, error: NoonmarkError | None) -> None:
        if raised.text is None:
            if error is None:
                raise InvalidSyntax("RAISE without parameters cannot be used outside a handler")
            raise error
        texts = [await self.text(each) for each in raised.values]
        pieces = raised.text.replace("%%", "\0").split("%")
        shown = "".join(x for pair in zip(pieces, [*texts, ""], strict=True) for x in pair)
        shown = shown.replace("\0", "%")
        match raised.level:
            case "exception":
                raise RaisedException(shown)
            case "notice" | "warning" | "info":
                self.notices.append(Notice(shown, raised.level.upper()))  # type: ignore[arg-type]

    async def text(self, statement: st.Statement) -> str:
        outcome, row = await self.row(statement)
        return "<NULL>" if row[0] is None else format_value(row[0], outcome.fields[0].type)


def _handler(block: b.Block, error: NoonmarkError) -> b.OnError | None:
    """The first handler that means the error."""
    for handler in block.handlers:
        for state in handler.states:
            if is_of(error.sqlstate, state) if state else error.sqlstate != _CANCELED:
                return handler
    return None


HANDLERS: Handlers = {b.Do: run_do}
