"""What statements that change the catalog share.

Each takes the catalog's turn, looks at the catalog, and makes one change of it; the collections
that the change names are made, renamed and dropped in the same commit. In a transaction that commit
is COMMIT's (`adapter.session.commit`): until then only its own statements see the change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.catalog import name_taken
from noonmark.adapter.catalog.item import PUBLIC
from noonmark.adapter.catalog.privilege import with_defaults
from noonmark.adapter.contract import Done, Notice
from noonmark.errors import InvalidValue, NameTaken, UndefinedSchema, UsageError
from noonmark.persist.log import command as c
from noonmark.sql.statement.base import Name, Options

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_NAME_BYTES_MAX = 255


@dataclass(frozen=True)
class Created:
    """What CREATE makes: items, the first of them the object itself; and what goes with them."""

    items: tuple[Item, ...]
    beside: Callable[[int], Iterable[c.AnyCommand]]
    removed: tuple[int, ...] = ()


Make = Callable[[Catalog, int], Awaitable[Created]]


def place(catalog: Catalog, name: Name) -> tuple[str, str]:
    """The schema and the name of something to be made."""
    if len(name.parts) > 3:
        raise UsageError(f'improper qualified name (too many dotted names): "{name}"')
    schema = name.parts[-2] if len(name.parts) > 1 else PUBLIC
    if not catalog.has_schema(schema):
        raise UndefinedSchema(f'schema "{schema}" does not exist', position=name.position)
    if len(name.last.encode()) > _NAME_BYTES_MAX or not name.last or "/" in name.last:
        raise InvalidValue(f'"{name.last}" cannot be the name of an object', position=name.position)
    return schema, name.last


async def create(
    session: AdapterSession, tag: str, name: Name, if_not_exists: bool, make: Make
) -> tuple[Done, Created | None]:
    """Make an object, unless IF NOT EXISTS finds one of that name.

    `tag` is also what `catalog.rights` calls the statement. What was made has the rights that its
    owner's default privileges say.
    """
    store = session.store
    async with store.turn:
        schema, last = place(store.catalog, name)
        require_create(session, store.catalog, schema, tag)
        found = store.catalog.by_name.get((schema, last))
        if found is not None and if_not_exists:
            notice = Notice(
                f'relation "{found.name}" already exists, skipping', sqlstate=NameTaken.sqlstate
            )
            return Done(tag, (notice,)), None
        created = await make(store.catalog, store.catalog.next_number)
        items = tuple(with_defaults(store.catalog, item) for item in created.items)
        created = replace(created, items=items)
        for other in {item.schema_name for item in items} - {schema, ""}:
            require_create(session, store.catalog, other, tag)  # FOR TABLES (t AS s.t)
        try:
            check_free(session, created)
            await store.change(created.items, created.removed, created.beside)
        except BaseException:
            await session.database.work.take_up(created.removed)  # what it was to replace goes on
            raise
    return Done(tag), created


def require_create(session: AdapterSession, catalog: Catalog, schema: str, use: str) -> None:
    """Refuse with `InsufficientPrivilege` who may not make something in a schema."""
    item = catalog.schema(schema)
    assert item is not None, "a place is in a schema"
    session.access(use, catalog).check("schema", item)


def require_place(session: AdapterSession, use: str, name: Name) -> None:
    """As `require_create`, before anything outside is asked on behalf of the statement."""
    schema, _ = place(session.catalog, name)
    require_create(session, session.catalog, schema, use)


def is_free(session: AdapterSession, use: str, name: Name) -> bool:
    """As `require_place`; whether nothing has the name, or the statement will not get that far."""
    require_place(session, use, name)
    return place(session.catalog, name) not in session.catalog.by_name


def stored(catalog: Catalog, item: Item) -> Item:
    """An item that can be changed: what is always there becomes an item of its own."""
    return item if item.number else replace(item, number=catalog.next_number)


def check_free(session: AdapterSession, created: Created) -> None:
    """Refuse names that something else has: another item, or a collection without one."""
    catalog, state = session.catalog, session.database.client.state
    for item in created.items:
        other = catalog.by_name.get((item.schema_name, item.name))
        if other is not None and other.number not in created.removed:
            raise name_taken(item, other)
        # Of an item it goes, or is renamed, in the same commit.
        name = replace(item, stored_as="").collection
        if name in state.names and session.database.catalog.of_collection(name) is None:
            raise name_taken(item)


def retain_ms(options: Options) -> int | None:
    """RETAIN HISTORY FOR, in milliseconds."""
    value = options.get("retain_history")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidValue("RETAIN HISTORY FOR takes an interval", hint="RETAIN HISTORY FOR '1h'")
    return value


#: Of PostgreSQL's tables, which tools and dumps say; they mean nothing for ours.
_STORAGE = ("fillfactor", "toast_tuple_target", "parallel_workers", "user_catalog_table")


def storage_parameters(options: Options) -> tuple[Options, tuple[Notice, ...]]:
    """The options without PostgreSQL's storage parameters, and what is told of those."""
    named = [x for x in options if x in _STORAGE or x.startswith(("autovacuum_", "toast."))]
    told = (Notice(f'storage parameter "{name}" has no effect') for name in named)
    return {name: value for name, value in options.items() if name not in named}, tuple(told)


def refuse_options(what: str, options: Options, known: Iterable[str]) -> None:
    """Refuse by name the options that an object does not have."""
    for name in sorted(set(options) - set(known)):
        raise InvalidValue(f"{what} has no option {name.replace('_', ' ').upper()}")
