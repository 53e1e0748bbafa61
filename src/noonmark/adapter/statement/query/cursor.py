"""DECLARE, FETCH and CLOSE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Done, Outcome, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.session.cursor import Cursor
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.statement.query.select import TypedSelect
from noonmark.adapter.statement.query.subscribe import TypedSubscribe
from noonmark.errors import NoActiveTransaction, PortalTaken, UnknownPortal, Unsupported
from noonmark.rows.types import SqlType
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_READS = (st.Select, st.Subscribe, TypedSelect, TypedSubscribe)


async def run_declare(session: AdapterSession, statement: st.Declare, _: Sequence[Any]) -> Outcome:
    """A cursor inside of the transaction, whose time and holds it shares."""
    if not isinstance(statement.statement, _READS):
        raise Unsupported("DECLARE CURSOR takes a SELECT or a SUBSCRIBE")
    waits = isinstance(statement.statement, st.Subscribe | TypedSubscribe)
    if statement.hold and waits:
        raise Unsupported("DECLARE CURSOR ... WITH HOLD FOR SUBSCRIBE is not supported")
    alone = session.transaction is None and not session.grouped
    if alone and not statement.hold:
        raise NoActiveTransaction(
            "DECLARE CURSOR can only be used in transaction blocks",
            hint="BEGIN first: a cursor ends with its transaction.",
        )
    if statement.name in session.cursors:
        raise PortalTaken(f'cursor "{statement.name}" already exists')
    outcome = await session.run(statement.statement)
    assert isinstance(outcome, Rows), "a read gives rows"
    clock, account = session.database.clock, session.account
    try:
        cursor = Cursor(outcome, clock, account, waits=waits, hold=statement.hold)
    except BaseException:
        await outcome.chunks.aclose()
        raise
    if alone:
        try:
            await cursor.keep()
        except BaseException:
            await cursor.close()
            raise
    session.cursors[statement.name] = cursor
    return Done("DECLARE CURSOR")


def _cursor(session: AdapterSession, name: str) -> Cursor:
    cursor = session.cursors.get(name)
    if cursor is None:
        raise UnknownPortal(f'cursor "{name}" does not exist')
    assert isinstance(cursor, Cursor)
    return cursor


async def describe_fetch(
    session: AdapterSession, statement: st.Fetch, _: Sequence[SqlType | None]
) -> Described:
    """The columns of the cursor."""
    return Described(fields=_cursor(session, statement.name).fields)


async def run_fetch(session: AdapterSession, statement: st.Fetch, _: Sequence[Any]) -> Outcome:
    """The next rows of a cursor."""
    cursor = _cursor(session, statement.name)
    rows = await cursor.fetch(statement.count, statement.timeout_ms)
    return Rows(cursor.fields, Listed(rows), "FETCH")


async def run_close(
    session: AdapterSession, statement: st.CloseCursor, _: Sequence[Any]
) -> Outcome:
    """End a cursor, or all."""
    if statement.name is None:
        cursors, session.cursors = list(session.cursors.values()), {}
        tag = "CLOSE CURSOR ALL"
    else:
        cursors, tag = [_cursor(session, statement.name)], "CLOSE CURSOR"
        del session.cursors[statement.name]
    for cursor in cursors:
        await cursor.close()
    return Done(tag)


HANDLERS: Handlers = {
    st.Declare: run_declare,
    st.Fetch: run_fetch,
    st.CloseCursor: run_close,
}
DESCRIBERS: Describers = {st.Fetch: describe_fetch}
