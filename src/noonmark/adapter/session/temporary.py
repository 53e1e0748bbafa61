"""Temporary objects: in a schema of their session's own, which goes with the session.

The schema is made by the first CREATE TEMPORARY, and is the first that the session looks names up
in. It is an ordinary schema of its role, so that whatever holds of objects holds of temporary ones;
only that it is dropped, with all that is in it, when the session ends. What a process that was
killed left is dropped when the next one starts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from noonmark.adapter.aside import to_its_end
from noonmark.adapter.catalog import Item
from noonmark.adapter.catalog.item import TEMPORARY_PREFIX
from noonmark.adapter.system.settings import temporary_schema
from noonmark.errors import NoonmarkError
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.database import Database
    from noonmark.adapter.session.session import AdapterSession

Made = TypeVar("Made", st.CreateTable, st.CreateTableAs, st.CreateView, st.CreateSequence)


async def placed(session: AdapterSession, statement: Made) -> Made:
    """The statement with its name in the session's own schema, if it makes a temporary object."""
    name = statement.name
    in_temporary = name.parts[-2:-1] == ("pg_temp",)
    if not (statement.temporary or in_temporary):
        return statement
    own, store = temporary_schema(session), session.store
    async with store.turn:
        catalog = store.catalog
        session.access("CREATE TEMPORARY", catalog).check("database", catalog.database)
        if not catalog.has_schema(own):
            item = Item(catalog.next_number, "schema", "", own, owner=session.user)
            await store.change([item])
    return replace(statement, name=st.Name((own, name.last), name.position))


async def end_temporary(session: AdapterSession) -> None:
    """Drop what is temporary of a session that is over."""
    schema = session.database.catalog.schema(temporary_schema(session))
    if schema is not None:
        await to_its_end(_end(session.database, [schema]))


async def end_leftovers(database: Database) -> None:
    """Drop what sessions left that ended with their process."""
    catalog = database.catalog
    left = [item for item in catalog.items("schema") if item.name.startswith(TEMPORARY_PREFIX)]
    if left:
        try:
            await _end(database, left)
        except NoonmarkError:  # the next start tries again
            return


async def _end(database: Database, schemas: list[Item]) -> None:
    from noonmark.adapter.statement.ddl.drop import (  # door: they are about statements
        doomed,
        removal_of,
    )

    async with database.store.turn:
        found = database.catalog.by_number
        going = doomed(
            database.catalog, [found[s.number] for s in schemas if s.number in found], cascade=True
        )
        numbers = [item.number for item in going]
        commands = await removal_of(database, going)
        await database.work.remove(numbers)
        await database.store.change(removed=numbers, beside=lambda _: commands)
