"""What each kind of statement does: one table, from the statement's class to its handler.

A module of this folder runs some kinds. It has `HANDLERS`, and where its statements take
parameters or give rows also `DESCRIBERS`; here they are put together. What can often be answered
without waiting is also in `QUICK`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.contract import Outcome
from noonmark.adapter.run import (
    audit,
    copy,
    cursor,
    ddl,
    ddl_alter,
    ddl_connection,
    ddl_drop,
    ddl_grant,
    ddl_role,
    ddl_rotate,
    ddl_table_as,
    dml,
    explain,
    refresh,
    select,
    settings,
    show,
    source,
    source_tables,
    subscribe,
    transaction,
    view,
    view_index,
)
from noonmark.adapter.run.ddl_path import in_path
from noonmark.adapter.run.handler import (
    Describers,
    Handler,
    Handlers,
    Quicks,
    alone,
    to_the_end,
)
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session import AdapterSession

#: Statements that change the catalog: once begun they go to their end.
_OF_THE_CATALOG = (
    ddl,
    ddl_alter,
    ddl_connection,
    ddl_drop,
    ddl_grant,
    ddl_role,
    ddl_rotate,
    source,
    source_tables,
    view,
    view_index,
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
    st.AddColumn,
)
_MODULES = (
    *_OF_THE_CATALOG,
    select,
    transaction,
    audit,
    cursor,
    explain,
    subscribe,
    dml,
    ddl_table_as,
    refresh,
    copy,
    settings,
    show,
)


def _guarded(kind: type[st.Statement], handler: Handler) -> Handler:
    """The handler of a statement that changes the catalog."""

    async def run(session: AdapterSession, statement: Any, values: Sequence[Any]) -> Outcome:
        return await handler(session, in_path(session, statement), values)

    return to_the_end(alone(run) if kind in _ALONE else run)


HANDLERS: Handlers = {
    kind: _guarded(kind, handler) if module in _OF_THE_CATALOG else handler
    for module in _MODULES
    for kind, handler in module.HANDLERS.items()
} | ddl_role.SESSION_HANDLERS
#: The kinds that change nothing but their session; of COPY, those that go TO the client.
READS = frozenset(
    kind
    for module in (select, transaction, cursor, explain, subscribe, copy, settings, show)
    for kind in module.HANDLERS
) | frozenset(ddl_role.SESSION_HANDLERS)
DESCRIBERS: Describers = {
    kind: describer
    for module in _MODULES
    for kind, describer in getattr(module, "DESCRIBERS", {}).items()
}
QUICK: Quicks = {
    kind: quick for module in _MODULES for kind, quick in getattr(module, "QUICK", {}).items()
}
