"""The types of columns of DDL, as the catalog has them: a name becomes what somebody made of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.user_types import made_types, type_of
from noonmark.errors import UndefinedObject, Unsupported
from noonmark.rows import types as t
from noonmark.rows.domain import Domain, value_type
from noonmark.sql.plan.form import SYSTEM_TYPES
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: What the table of rights calls the statements that have columns.
_USES: dict[type[Any], str] = {
    st.CreateTable: "CREATE TABLE",
    st.CreateSource: "CREATE SOURCE",
    st.AddColumn: "ALTER TABLE ADD COLUMN",
    st.AlterTable: "ALTER TABLE",
}


def typed(session: AdapterSession, statement: Any) -> Any:
    """The statement with the types of its columns.

    Raises:
        UndefinedObject: there is no such type.
        InsufficientPrivilege: the role may not use it.
    """
    use = _USES.get(type(statement))
    if use is None:
        return statement
    access = session.access(use)
    match statement:
        case st.CreateTable(columns=columns):
            return replace(statement, columns=tuple(_column(access, each) for each in columns))
        case st.CreateSource(columns=columns) if columns is not None:
            made = tuple(_column(access, each) for each in columns)
            for each in made:
                if any(made_types(each.type)) or each.domain is not None:
                    raise Unsupported(
                        f'column "{each.name}" of a source cannot be of type '
                        f"{each.domain or each.type}",
                        hint="Make it text, and cast it in a view.",
                        position=each.position,
                    )
        case st.AddColumn(column=column):
            return replace(statement, column=_column(access, column))
        case st.AlterTable(actions=actions):
            return replace(statement, actions=tuple(_action(access, each) for each in actions))
    return statement


def _action(access: Access, action: st.TableAction) -> st.TableAction:
    if isinstance(action, st.AddColumnAction):
        return replace(action, column=_column(access, action.column))
    if isinstance(action, st.AlterType):
        return _split(replace(action, type=resolved(access, action.type, check=True)))
    return action


Typed = TypeVar("Typed", st.ColumnSpec, st.AlterType)


def _split(written: Typed) -> Typed:
    """What is of a domain is of its base, and declared as the domain."""
    kind = written.type
    if not isinstance(kind, Domain):
        return written
    return replace(written, type=value_type(kind), domain=kind)


def _column(access: Access, spec: st.ColumnSpec) -> st.ColumnSpec:
    found = resolved(access, spec.type, check=True)
    return spec if found is spec.type else _split(replace(spec, type=found))


def resolved(access: Access, kind: t.SqlType, *, check: bool = False, end: str = "") -> t.SqlType:
    """The type that was written; `check` asks for the right to have columns of it."""
    if isinstance(kind, t.Array):
        element = resolved(access, kind.element, check=check, end="[]")
        if isinstance(element, Domain):
            raise Unsupported(f"an array of domain {element} is not supported")
        return kind if element is kind.element else t.Array(element)
    if not isinstance(kind, st.NamedType):
        return kind
    *schema, last = kind.name.parts
    if schema == ["pg_catalog"] or (not schema and not check):
        if not check and last in SYSTEM_TYPES:
            return SYSTEM_TYPES[last]
        if schema:
            return t.parse_type(last)
    item = access.find(kind.name.parts)
    if item is None or item.kind != "type":
        raise UndefinedObject(f'type "{kind}{end}" does not exist', position=kind.name.position)
    if check:
        access.check("type", item)
    return type_of(item)
