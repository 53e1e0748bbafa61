"""Names of DDL as the session's search_path has them.

What is made goes into the first schema of the path that exists; what is changed or dropped is the
first that the path finds. The statement that leaves here has both written out, so that nothing
behind it knows of paths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.item import GLOBAL, PUBLIC
from noonmark.adapter.system.settings import path_of, search_path
from noonmark.sql.statement import domains as sd
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_MAKES = (
    st.CreateTable,
    st.CreateTableAs,
    st.CreateView,
    st.CreateMaterializedView,
    st.CreateSource,
    st.CreateSink,
    st.CreateConnection,
    st.CreateSecret,
    st.CreateSequence,
    st.CreateEnum,
    sd.CreateDomain,
)


_CHANGES = (
    st.Rename,
    st.SetSchema,
    st.Swap,
    st.Comment,
    st.AddColumn,
    st.AlterSource,
    st.AlterSourceTables,
    st.AlterOwner,
    st.AlterSecret,
    st.AlterConnection,
    st.Refresh,
    st.AlterSequence,
    st.AlterTable,
    st.AddLabel,
    st.RenameLabel,
    sd.AlterDomain,
)


def in_path(session: AdapterSession, statement: Any) -> Any:
    """The statement with its names written out, where the session has set a path."""
    if "search_path" not in session.variables or getattr(statement, "kind", "") in GLOBAL:
        return statement
    if isinstance(statement, _MAKES):
        if getattr(statement, "temporary", False):
            return statement
        return replace(statement, name=_made(session, statement.name))
    if isinstance(statement, st.Drop):
        return replace(statement, names=tuple(_found(session, name) for name in statement.names))
    if isinstance(statement, st.Grant | st.Revoke) and statement.kind == "table":
        names = tuple(_found(session, name) for name in statement.objects)
        return replace(statement, objects=names)
    if isinstance(statement, st.CreateIndex):
        return replace(statement, on=_found(session, statement.on))
    if isinstance(statement, _CHANGES):
        return replace(statement, name=_found(session, statement.name))
    return statement


def _made(session: AdapterSession, name: st.Name) -> st.Name:
    if len(name.parts) > 1:
        return name
    path = search_path(session.variables)
    schema = next((each for each in path if session.catalog.has_schema(each)), PUBLIC)
    return st.Name((schema, *name.parts), name.position)


def _found(session: AdapterSession, name: st.Name) -> st.Name:
    item = session.catalog.find(name.parts, path_of(session))
    if len(name.parts) > 1 or item is None:
        return name
    return st.Name((item.schema_name, item.name), name.position)
