"""What each kind of statement does: one table, from the statement's class to its handler.

A module of this folder runs some kinds. It has `HANDLERS`, and where its statements take
parameters or give rows also `DESCRIBERS`; here they are put together. What can often be answered
without waiting is also in `FAST_PATHS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Outcome
from noonmark.adapter.planner import SHORT_MAX
from noonmark.adapter.statement.ddl import (
    alter,
    alter_table,
    connection,
    domain,
    drop,
    grant,
    index,
    role,
    rotate,
    sequence,
    source,
    source_tables,
    table,
    table_as,
    types,
    view,
)
from noonmark.adapter.statement.ddl.column_types import typed
from noonmark.adapter.statement.ddl.path import in_path
from noonmark.adapter.statement.dml import copy, truncate, within, write
from noonmark.adapter.statement.handler import (
    Describers,
    FastPaths,
    Handler,
    Handlers,
    alone,
    awaited,
    to_the_end,
)
from noonmark.adapter.statement.query import (
    audit,
    cursor,
    explain,
    refresh,
    select,
    show,
    subscribe,
)
from noonmark.adapter.statement.session import block, notify, settings, transaction
from noonmark.adapter.weight import statement_weight
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.domains import CreateDomain

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: Statements that change the catalog: once begun they go to their end.
_OF_THE_CATALOG = (
    table,
    alter,
    alter_table,
    connection,
    domain,
    drop,
    grant,
    role,
    rotate,
    sequence,
    source,
    source_tables,
    view,
    index,
    types,
)
#: Those that reach outside, or change what others read: COMMIT could not make them one.
_ALONE = (
    st.CreateSource,
    st.AlterSource,
    st.AlterSourceTables,
    st.CreateConnection,
    st.CreateSink,
    st.CreateSecret,
    st.AlterSecret,
    st.AlterConnection,
)
#: Those that are much to plan where they are long.
_PLANNED = (
    st.CreateTable,
    st.CreateView,
    st.CreateMaterializedView,
    st.CreateIndex,
    CreateDomain,
    st.CreateEnum,
)
_MODULES = (
    *_OF_THE_CATALOG,
    select,
    transaction,
    audit,
    cursor,
    explain,
    subscribe,
    write,
    within,
    truncate,
    table_as,
    refresh,
    copy,
    notify,
    settings,
    show,
    block,
)


def _guarded(kind: type[st.Statement], handler: Handler) -> Handler:
    """The handler of a statement that changes the catalog.

    What is long to plan is planned while others change the catalog, and can be ended until it has
    been: who plans inside of the catalog's turn keeps everybody else's DDL waiting.
    """

    async def run(session: AdapterSession, statement: Any, values: Sequence[Any]) -> Outcome:
        statement = typed(session, in_path(session, statement))
        if kind in _PLANNED and statement_weight(session) > SHORT_MAX:
            return await alter_table.retried(
                session, lambda: awaited(handler(session, statement, values))
            )
        return await handler(session, statement, values)

    return to_the_end(alone(run) if kind in _ALONE else run)


HANDLERS: Handlers = {
    kind: _guarded(kind, handler) if module in _OF_THE_CATALOG else handler
    for module in _MODULES
    for kind, handler in module.HANDLERS.items()
} | role.SESSION_HANDLERS
#: The kinds that change nothing but their session; of COPY, those that go TO the client.
READS = frozenset(
    kind
    for module in (select, transaction, cursor, explain, subscribe, copy, notify, settings, show)
    for kind in module.HANDLERS
) | frozenset(role.SESSION_HANDLERS)
DESCRIBERS: Describers = {
    kind: describer
    for module in _MODULES
    for kind, describer in getattr(module, "DESCRIBERS", {}).items()
}
FAST_PATHS: FastPaths = {
    kind: quick for module in _MODULES for kind, quick in getattr(module, "FAST_PATHS", {}).items()
}
