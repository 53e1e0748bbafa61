"""CREATE SEQUENCE and ALTER SEQUENCE; the sequences that columns make for themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.type_names import TypeNames
from noonmark.adapter.contract import Done, Notice, Outcome
from noonmark.adapter.sequence.default import default_text, kept
from noonmark.adapter.sequence.options import SCHEMA, altered, defined
from noonmark.adapter.session.temporary import placed
from noonmark.adapter.statement.ddl.common import Created, create, place
from noonmark.adapter.statement.ddl.find import find
from noonmark.adapter.statement.handler import Handlers
from noonmark.adapter.system.objects import parts_of
from noonmark.errors import (
    InvalidSyntax,
    NoonmarkError,
    UndefinedColumn,
    UndefinedTable,
    UsageError,
    WrongObjectType,
)
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan
from noonmark.sql.scope import Scope
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.base import ScalarText

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_NAME_LENGTH_MAX = 63
#: The types of columns that may take from a sequence of their own.
_TYPES = ("smallint", "integer", "bigint")


class SequenceOwner(UsageError, id="sequence_owner", sqlstate="55000"):
    """A sequence and a table that cannot belong together."""


async def run_create_sequence(
    session: AdapterSession, statement: st.CreateSequence, _: Sequence[Any]
) -> Outcome:
    """CREATE SEQUENCE."""
    made = await placed(session, statement)

    async def make(catalog: Catalog, number: int) -> Created:
        schema_name, name = place(catalog, made.name)
        fresh = session.database.clock.fresh_id()
        item = Item(number, "sequence", schema_name, name, SCHEMA, (),
                    defined(statement.options, fresh), owner=session.user)  # fmt: skip
        return Created((_owned(session, catalog, item, statement.options),), lambda _: ())

    done, _made = await create(session, "CREATE SEQUENCE", made.name, statement.if_not_exists, make)
    return done


def _owned(
    session: AdapterSession, catalog: Catalog, item: Item, options: Mapping[str, Any]
) -> Item:
    """The sequence as OWNED BY says."""
    if "owned_by" not in options:
        return item
    name: st.Name = options["owned_by"]
    definition = {k: v for k, v in item.definition.items() if k != "column"}
    if len(name.parts) == 1:
        if name.last != "none":
            raise InvalidSyntax(
                "invalid OWNED BY option",
                hint="Specify OWNED BY table.column or OWNED BY NONE.",
                position=name.position,
            )
        return replace(item, part_of=0, definition=definition)
    access = session.access("ALTER SEQUENCE", catalog)
    table = access.named(name.parts[:-1], name.position)
    if table.kind != "table":
        raise WrongObjectType(f'sequence cannot be owned by relation "{table.name}"')
    access.check("table", table)
    if table.schema_name != item.schema_name:
        raise SequenceOwner("sequence must be in same schema as table it is linked to")
    if name.last not in table.schema:
        raise UndefinedColumn(
            f'column "{name.last}" of relation "{table.name}" does not exist',
            position=name.position,
        )
    return replace(item, part_of=table.number, definition={**definition, "column": name.last})


async def run_alter_sequence(
    session: AdapterSession, statement: st.AlterSequence, _: Sequence[Any]
) -> Outcome:
    """ALTER SEQUENCE."""
    store = session.store
    async with store.turn:
        access = session.access("ALTER SEQUENCE", store.catalog)
        item = find(access, "sequence", statement.name)
        if item is None:
            if not statement.if_exists:
                raise UndefinedTable(
                    f'relation "{statement.name}" does not exist', position=statement.name.position
                )
            told = f'relation "{statement.name}" does not exist, skipping'
            return Done("ALTER SEQUENCE", (Notice(told),))
        access.check("object", item)
        if item.definition.get("identity") and "owned_by" in statement.options:
            raise SequenceOwner("cannot change ownership of identity sequence")
        last = session.database.sequences.last(item)
        fresh = session.database.clock.fresh_id()
        definition = altered(dict(item.definition), statement.options, last, fresh)
        changed = replace(item, definition=definition)
        await store.change([_owned(session, store.catalog, changed, statement.options)])
    return Done("ALTER SEQUENCE")


# --- columns that take from sequences


def serials(
    session: AdapterSession,
    catalog: Catalog,
    table: Item,
    specs: Sequence[st.ColumnSpec],
    first: int,
) -> tuple[Item, list[Item]]:
    """The table with its defaults and identities, and the sequences that its columns make.

    Args:
        session: who makes it.
        catalog: where names must be free.
        table: the table without them.
        specs: its columns as they are written.
        first: the number of the first sequence.
    """
    defaults, identity = dict(table.definition["defaults"]), {}
    made: list[Item] = []
    for spec in specs:
        if spec.default is not None:
            defaults[spec.name] = kept_default(session, catalog, spec.default)
        if not spec.serial and spec.identity is None:
            continue
        kind = str(spec.type)
        if kind not in _TYPES:
            raise WrongType("identity column type must be smallint, integer, or bigint")
        fresh = session.database.clock.fresh_id()
        options = {} if spec.identity is None else spec.identity.options
        definition = defined({"type": kind, **options}, fresh)
        definition["column"] = spec.name
        if spec.identity is None:
            defaults[spec.name] = default_text(fresh)
        else:
            definition["identity"] = True
            identity[spec.name] = ["a" if spec.identity.always else "d", fresh]
        name = free_name(catalog, table, f"{spec.name}_seq", {each.name for each in made})
        made.append(
            Item(first + len(made), "sequence", table.schema_name, name, SCHEMA, (), definition,
                 part_of=table.number, owner=table.owner)
        )  # fmt: skip
    whole = {**table.definition, "defaults": defaults}
    if identity:
        whole["identity"] = identity
    return replace(table, definition=whole), made


class WrongType(UsageError, id="identity_type", sqlstate="22023"):
    """An identity column of a type that no sequence has."""


def kept_default(session: AdapterSession, catalog: Catalog, default: ScalarText) -> str:
    """A default as the catalog keeps it: sequences by what they are, not by their names.

    Raises:
        SqlError: it means nothing, or more than a default may: no subquery, no column.
    """
    types = TypeNames(session.access("SHOW", catalog))
    statement = Statement({}, session=session.functions, types=types)
    plan(default.tree, Frame(statement).row("DEFAULT expressions", Scope()))

    def sequence(name: str) -> Item:
        access = session.access("SHOW", catalog)
        item = access.find(parts_of(name))
        if item is None:
            raise UndefinedTable(f'relation "{name}" does not exist')
        if item.kind != "sequence":
            raise WrongObjectType(f'"{item.name}" is not a sequence')
        return item

    try:
        return kept(default.text, sequence)
    except NoonmarkError as error:
        error.position = None
        raise


def free_name(catalog: Catalog, table: Item, end: str, taken: set[str]) -> str:
    """A name as PostgreSQL chooses it: of the table and an end, with a number where it is taken."""
    number = 0
    while True:
        last = f"_{end}{number or ''}"
        name = table.name[: max(1, _NAME_LENGTH_MAX - len(last))] + last
        if (table.schema_name, name) not in catalog.by_name and name not in taken:
            return name
        number += 1


HANDLERS: Handlers = {
    st.CreateSequence: run_create_sequence,
    st.AlterSequence: run_alter_sequence,
}
