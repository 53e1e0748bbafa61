"""BEGIN, COMMIT, ROLLBACK, SET TRANSACTION and LOCK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.session.transaction import OpenTransaction, current, isolation_of
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.statement.session.settings_local import (
    current_settings,
    end_local_settings,
    undo_settings,
)
from noonmark.adapter.system.settings import path_of
from noonmark.adapter.table.constraints import Deferral, Foreign, foreigns_of
from noonmark.adapter.timestamp.choice import ISOLATION
from noonmark.errors import InvalidValue, NoActiveTransaction, UndefinedObject, WrongObjectType
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


def _isolation(session: AdapterSession, asked: str | None) -> str:
    if asked is None:
        return isolation_of(session)
    if asked not in ISOLATION:
        raise InvalidValue(
            f'invalid value for "transaction_isolation": "{asked}"',
            hint=f"It is one of {', '.join(ISOLATION)}.",
        )
    return ISOLATION[asked]


async def run_begin(session: AdapterSession, statement: st.Begin, _: Sequence[Any]) -> Outcome:
    """BEGIN; inside a transaction a warning, as in PostgreSQL."""
    isolation = _isolation(session, statement.isolation)
    read_only = bool(statement.read_only)
    transaction = current(session)
    if transaction is not None and not transaction.implicit:
        warning = Notice("there is already a transaction in progress", "WARNING", "25001")
        return Done("BEGIN", (warning,))
    if transaction is not None:  # what was sent with it is part of it
        transaction.implicit = False
        transaction.isolation, transaction.read_only = isolation, read_only
    else:
        session.transaction = OpenTransaction(
            session, isolation, implicit=False, read_only=read_only
        )
    current_settings(session)
    return Done("START TRANSACTION" if statement.start else "BEGIN")


async def run_commit(session: AdapterSession, _: st.Commit, __: Sequence[Any]) -> Outcome:
    """COMMIT; of a failed transaction it is a ROLLBACK, and says so."""
    transaction, session.transaction = session.transaction, None
    try:
        await _close_cursors(session, keep=transaction is not None and not transaction.failed)
    except BaseException:
        if transaction is not None:
            undo_settings(session, transaction)
            await transaction.rollback()
        raise
    if transaction is None or transaction.implicit:
        warning = Notice("there is no transaction in progress", "WARNING", "25P01")
        if transaction is not None:
            await transaction.commit()
        return Done("COMMIT", (warning,))
    if transaction.failed:
        undo_settings(session, transaction)
        await transaction.rollback()
        return Done("ROLLBACK")
    try:
        await transaction.commit()
    except BaseException:
        undo_settings(session, transaction)
        raise
    end_local_settings(session, transaction)
    return Done("COMMIT")


async def run_rollback(session: AdapterSession, _: st.Rollback, __: Sequence[Any]) -> Outcome:
    """ROLLBACK."""
    transaction, session.transaction = session.transaction, None
    await _close_cursors(session)
    if transaction is None:
        warning = Notice("there is no transaction in progress", "WARNING", "25P01")
        return Done("ROLLBACK", (warning,))
    undo_settings(session, transaction)
    await transaction.rollback()
    return Done("ROLLBACK")


async def run_set_transaction(
    session: AdapterSession, statement: st.SetTransaction, _: Sequence[Any]
) -> Outcome:
    """SET TRANSACTION of this one, or of all that follow."""
    isolation = _isolation(session, statement.isolation)
    if statement.session:
        if statement.isolation is not None:
            session.variables["transaction_isolation"] = isolation
        return Done("SET")
    transaction = current(session)
    if transaction is None:
        warning = Notice(
            "SET TRANSACTION can only be used in transaction blocks", "WARNING", "25P01"
        )
        return Done("SET", (warning,))
    if statement.isolation is not None:
        transaction.isolation = isolation
    if statement.read_only is not None:
        transaction.read_only = statement.read_only
    return Done("SET")


async def run_set_constraints(
    session: AdapterSession, statement: st.SetConstraints, _: Sequence[Any]
) -> Outcome:
    """SET CONSTRAINTS: which foreign keys wait for COMMIT, in this transaction."""
    transaction = current(session)
    if transaction is None:
        warning = Notice(
            "SET CONSTRAINTS can only be used in transaction blocks", "WARNING", "25P01"
        )
        return Done("SET CONSTRAINTS", (warning,))
    deferred = statement.deferred
    if not statement.names:
        deferral = Deferral(deferred)
    else:
        found = [each for name in statement.names for each in _foreign_keys(session, name)]
        some = tuple((number, foreign.name, deferred) for number, foreign in found)
        deferral = replace(transaction.constraints, some=(*transaction.constraints.some, *some))
    await transaction.set_constraints(deferral)
    return Done("SET CONSTRAINTS")


def _foreign_keys(session: AdapterSession, name: st.Name) -> list[tuple[int, Foreign]]:
    """The foreign keys of that name: those of the first schema of the path that has one.

    Raises:
        UndefinedObject: there is none.
        WrongObjectType: it cannot be deferred.
    """
    schemas = name.parts[:-1][-1:] or path_of(session)
    for schema in schemas:
        found = [
            (item.number, foreign)
            for item in session.catalog.items("table")
            if item.schema_name == schema
            for foreign in foreigns_of(item)
            if foreign.name == name.last
        ]
        if any(not foreign.deferrable for _, foreign in found):
            raise WrongObjectType(f'constraint "{name.last}" is not deferrable')
        if found:
            return found
    raise UndefinedObject(f'constraint "{name.last}" does not exist')


async def _close_cursors(session: AdapterSession, *, keep: bool = False) -> None:
    """A cursor lives as long as its transaction; one WITH HOLD longer, where that commits."""
    cursors, session.cursors = session.cursors, {}
    try:
        for name, cursor in list(cursors.items()):
            if cursor.hold and keep and not cursor.kept:
                await cursor.keep()
            if cursor.kept:
                session.cursors[name] = cursors.pop(name)
    finally:
        for cursor in cursors.values():
            await cursor.close()


def _explicit(session: AdapterSession, what: str) -> OpenTransaction:
    transaction = current(session)
    if transaction is None:
        raise NoActiveTransaction(f"{what} can only be used in transaction blocks")
    return transaction


async def run_savepoint(
    session: AdapterSession, statement: st.Savepoint, _: Sequence[Any]
) -> Outcome:
    """SAVEPOINT name."""
    _explicit(session, "SAVEPOINT").save(statement.name)
    return Done("SAVEPOINT")


async def run_release(session: AdapterSession, statement: st.Release, _: Sequence[Any]) -> Outcome:
    """RELEASE name."""
    _explicit(session, "RELEASE SAVEPOINT").release(statement.name)
    return Done("RELEASE")


async def run_rollback_to(
    session: AdapterSession, statement: st.RollbackTo, _: Sequence[Any]
) -> Outcome:
    """ROLLBACK TO name: also the way out of a transaction that failed after it."""
    _explicit(session, "ROLLBACK TO SAVEPOINT").back_to(statement.name)
    return Done("ROLLBACK")


async def run_lock(session: AdapterSession, statement: st.Lock, _: Sequence[Any]) -> Outcome:
    """LOCK ... IN ACCESS SHARE MODE: whoever reads a table reads it as of one time anyway."""
    transaction = current(session)
    if transaction is None or transaction.implicit:
        raise NoActiveTransaction("LOCK TABLE can only be used in transaction blocks")
    access = session.access("LOCK TABLE")
    for name in statement.tables:
        item = session.catalog.resolve(name.parts, name.position, path=path_of(session))
        access.check("relation", item)
    return Done("LOCK TABLE")


HANDLERS: Handlers = {
    st.Savepoint: run_savepoint,
    st.Release: run_release,
    st.RollbackTo: run_rollback_to,
    st.Begin: run_begin,
    st.Commit: run_commit,
    st.Rollback: run_rollback,
    st.SetTransaction: run_set_transaction,
    st.SetConstraints: run_set_constraints,
    st.Lock: run_lock,
}
