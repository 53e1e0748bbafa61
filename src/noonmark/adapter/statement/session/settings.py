"""SET, RESET and SHOW; PREPARE, EXECUTE, DEALLOCATE and DISCARD; VACUUM and its kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.type_names import TypeNames
from noonmark.adapter.contract import Done, Field, Notice, Outcome, Prepared, Rows
from noonmark.adapter.peek.chunks import Listed
from noonmark.adapter.session.temporary import end_temporary
from noonmark.adapter.session.transaction import OpenTransaction, current
from noonmark.adapter.statement.ddl.column_types import resolved
from noonmark.adapter.statement.handler import Described, Describers, Handlers
from noonmark.adapter.statement.session.settings_local import set_local
from noonmark.adapter.system.settings import VARIABLES, checked, known, path_of, value_of
from noonmark.adapter.timestamp.choice import ISOLATION
from noonmark.adapter.worker.values import little_value
from noonmark.errors import (
    DatatypeMismatch,
    InTransaction,
    InvalidSyntax,
    NoonmarkError,
    StatementTaken,
    UnknownStatement,
)
from noonmark.rows import types as t
from noonmark.rows.domain import value_type
from noonmark.rows.types import SqlType
from noonmark.sql.assign import is_assignable
from noonmark.sql.coerce import UNKNOWN, coerce
from noonmark.sql.ir.asked import bind
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan
from noonmark.sql.scope import Scope
from noonmark.sql.statement import parse_statements
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.merge import Merge
from noonmark.sql.statement.within import WithWrites

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


async def run_set(session: AdapterSession, statement: st.SetVariable, _: Sequence[Any]) -> Outcome:
    """SET; DEFAULT is what it was at the start."""
    transaction = current(session)
    passing = statement.local and (transaction is None or transaction.implicit)
    try:
        if statement.value is None:
            if not passing:
                _reset(session, statement.name)
        else:
            name, value = checked(statement.name, statement.value)
            if passing:
                told = "SET LOCAL can only be used in transaction blocks"
                return Done("SET", (Notice(told, "WARNING", "25P01"),))
            if statement.local:
                set_local(session, name, value)
            else:
                session.set_variable(name, value)
            if name == "transaction_isolation" and isinstance(session.transaction, OpenTransaction):
                session.transaction.isolation = ISOLATION[value]
    except NoonmarkError as error:
        error.position = error.position or statement.position
        raise
    return Done("SET")


def _reset(session: AdapterSession, name: str) -> None:
    variable = known(name)
    if variable.check is not None:
        kept = session.started_with.get(variable.name, variable.default)
        session.set_variable(variable.name, kept)


async def run_reset(
    session: AdapterSession, statement: st.ResetVariable, _: Sequence[Any]
) -> Outcome:
    """RESET name, or ALL."""
    if statement.name.lower() == "all":
        _reset_all(session)
    else:
        _reset(session, statement.name)
    return Done("RESET")


def _reset_all(session: AdapterSession) -> None:
    for variable in VARIABLES.values():
        _reset(session, variable.name)
    for name in [name for name in session.variables if "." in name]:
        del session.variables[name]


# --- SHOW variable

_ALL = (Field("name", t.Text()), Field("setting", t.Text()), Field("description", t.Text()))


def _fields(statement: st.ShowVariable) -> tuple[Field, ...]:
    if statement.name.lower() == "all":
        return _ALL
    return (Field(known(statement.name).name, t.Text()),)


async def describe_show(
    _: AdapterSession, statement: st.ShowVariable, __: Sequence[SqlType | None]
) -> Described:
    """One column under the variable's name."""
    return Described(fields=_fields(statement))


async def run_show(
    session: AdapterSession, statement: st.ShowVariable, _: Sequence[Any]
) -> Outcome:
    """SHOW name, or ALL."""
    fields = _fields(statement)
    rows: list[tuple[Any, ...]] = [(value_of(session.shown_variables, statement.name, True),)]
    if fields is _ALL:
        rows = [
            (each.name, value_of(session.shown_variables, each.name), each.about)
            for each in VARIABLES.values()
        ]
    return Rows(fields, Listed(rows), "SHOW", counted=False)


# --- prepared statements


async def run_prepare(
    session: AdapterSession, statement: st.PrepareStatement, _: Sequence[Any]
) -> Outcome:
    """PREPARE name AS statement."""
    if statement.name in session.statements:
        raise StatementTaken(f'prepared statement "{statement.name}" already exists')
    try:
        (one,) = parse_statements(statement.text)
        if not isinstance(one.statement, _PREPARABLE):
            raise InvalidSyntax("PREPARE takes SELECT, INSERT, UPDATE, DELETE, MERGE or VALUES")
        access = session.access("SELECT")
        types = [value_type(resolved(access, each)) for each in statement.types]
        described = await session.describe(one.statement, types)
    except NoonmarkError as error:
        error.position = statement.position + (error.position or 1) - 1
        raise
    session.statements[statement.name] = Prepared(
        statement.text,
        described.parameters,
        described.fields,
        described.statement or one.statement,
    )
    return Done("PREPARE")


_PREPARABLE = (st.Select, st.Insert, st.Update, st.Delete, Merge, WithWrites, st.Subscribe)


def _named(session: AdapterSession, name: str) -> Prepared:
    found = session.statements.get(name)
    if found is None:
        raise UnknownStatement(f'prepared statement "{name}" does not exist')
    return found


async def describe_execute(
    session: AdapterSession, statement: st.ExecutePrepared, _: Sequence[SqlType | None]
) -> Described:
    """The columns of what is executed."""
    return Described(fields=_named(session, statement.name).fields)


async def run_execute(
    session: AdapterSession, statement: st.ExecutePrepared, _: Sequence[Any]
) -> Outcome:
    """EXECUTE name (values)."""
    prepared = _named(session, statement.name)
    wanted, given = len(prepared.parameters), len(statement.values)
    if wanted != given:
        raise InvalidSyntax(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {wanted} parameters but got {given}.",
        )
    pairs = zip(statement.values, prepared.parameters, strict=True)
    values = [_value(session, text, kind) for text, kind in pairs]
    return await session.run(prepared.statement, values, prepared)


def _value(session: AdapterSession, text: st.ScalarText, kind: SqlType) -> Any:
    types = TypeNames(session.access("SELECT"))
    row = Frame(Statement({}, session=session.functions, types=types)).row("EXECUTE", Scope())
    scalar = plan(text.tree, row)
    if scalar.type != UNKNOWN and not is_assignable(scalar.type, kind):
        raise DatatypeMismatch(
            f"a parameter of type {kind} cannot be of type {scalar.type}", position=text.position
        )
    return little_value(bind(coerce(scalar, kind, text.position), ()))


async def run_deallocate(
    session: AdapterSession, statement: st.Deallocate, _: Sequence[Any]
) -> Outcome:
    """DEALLOCATE name, or ALL."""
    if statement.name is None:
        session.statements.clear()
        return Done("DEALLOCATE ALL")
    _named(session, statement.name)
    del session.statements[statement.name]
    return Done("DEALLOCATE")


async def run_discard(session: AdapterSession, statement: st.Discard, _: Sequence[Any]) -> Outcome:
    """DISCARD: forget what the session keeps."""
    if statement.what == "all":
        _reset_all(session)
        session.statements.clear()
        session.database.channels.forget(session)
        session.database.locks.release_all(session, transaction=False)
        session.become(session.login_user, session=True)  # whoever has the connection next
    if statement.what in ("all", "temp", "temporary"):
        await end_temporary(session)
    if statement.what in ("all", "plans"):
        session.forget_plans()
    return Done(f"DISCARD {statement.what.upper()}")


async def run_maintain(
    session: AdapterSession, statement: st.Maintain, _: Sequence[Any]
) -> Outcome:
    """VACUUM, ANALYZE, CHECKPOINT: tools say them; what they are for is done all the time."""
    transaction = current(session)
    if statement.what == "VACUUM" and transaction is not None and not transaction.implicit:
        raise InTransaction("VACUUM cannot run inside a transaction block")
    for name in statement.tables:
        session.catalog.resolve(name.parts, name.position, path=path_of(session))
    told = Notice(
        f"{statement.what} has nothing to do",
        detail="Compaction, statistics and durability are kept by the server itself.",
    )
    return Done(statement.what, (told,))


HANDLERS: Handlers = {
    st.Maintain: run_maintain,
    st.SetVariable: run_set,
    st.ResetVariable: run_reset,
    st.ShowVariable: run_show,
    st.PrepareStatement: run_prepare,
    st.ExecutePrepared: run_execute,
    st.Deallocate: run_deallocate,
    st.Discard: run_discard,
}
DESCRIBERS: Describers = {st.ShowVariable: describe_show, st.ExecutePrepared: describe_execute}
