"""What system relations are made of: the catalog, the state of the location, the work behind it.

A system relation is a function of these facts to rows of a stated schema, taken at the moment at
which a query reads it.

An oid is an integer here, a ``name`` or ``"char"`` is text: see `sql.plan.form`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import BUILT_IN, PREDEFINED, TEMPORARY, Item
from noonmark.adapter.catalog.privilege import owns
from noonmark.adapter.catalog.rights import may_read
from noonmark.persist.log.state import State
from noonmark.rows import types as t
from noonmark.rows.schema import Column, Schema
from noonmark.sql.scope import SYSTEM_COLUMN

if TYPE_CHECKING:
    from noonmark.adapter.schedule.schedule import Schedule
    from noonmark.adapter.session.session import AdapterSession

Row = tuple[Any, ...]

DATABASE_OID = 16_384
#: PostgreSQL's numbers for its schemas; ours are above all that it uses.
SCHEMA_OIDS = {
    "pg_catalog": 11,
    "public": 2200,
    "information_schema": 13_000,
    "noonmark": 13_001,
    "mz_catalog": 13_002,
    "mz_internal": 13_003,
}
SUPERUSER_OID = 10


@dataclass(frozen=True)
class Facts:
    """One moment of a database, as one session sees it."""

    catalog: Catalog
    state: State
    work: Schedule
    session: AdapterSession
    now_ms: int

    @classmethod
    def of(cls, session: AdapterSession) -> Facts:
        """The facts now."""
        database = session.database
        return cls(
            _shown(session.catalog),
            database.client.state,
            database.work,
            session,
            database.clock.now_ms(),
        )

    @property
    def path(self) -> tuple[str, ...]:
        """The schemas whose relations need no schema in front of their names."""
        from noonmark.adapter.system.settings import path_of  # door: it is about sessions

        return tuple(path_of(self.session))

    def schema_oid(self, name: str) -> int:
        """The number of a schema."""
        if name in SCHEMA_OIDS:
            return SCHEMA_OIDS[name]
        found = next((item for item in self.catalog.items("schema") if item.name == name), None)
        return 0 if found is None else found.oid

    def role_oid(self, name: str) -> int:
        """The number of a role; whoever is no role of the catalog is the superuser."""
        role = self.catalog.roles().get(name)
        if name in PREDEFINED:
            return PREDEFINED[name]
        return SUPERUSER_OID if role is None or name == BUILT_IN else role.oid

    def role_name(self, oid: int) -> str | None:
        """The role of a number."""
        return next((n for n in self.catalog.all_roles() if self.role_oid(n) == oid), None)

    def by_oid(self, oid: int | None) -> Item | None:
        """The item of a number in pg_catalog."""
        return next((item for item in self.catalog.items() if item.oid == oid), None)

    def is_told(self, item: Item) -> bool:
        """Whether the session's role is told what stops an item: that may have rows in it.

        It is its owner's, and who may read it finds out by reading it.
        """
        catalog, user = self.session.catalog, self.session.user
        return owns(catalog, user, item) or (item.is_relation and may_read(catalog, user, item))

    def frontiers(self, item: Item) -> tuple[int | None, int | None] | None:
        """Since and upper of an item's collection, None for an empty one; None without one."""
        if not item.is_stored or item.collection not in self.state.names:
            return None
        collection = self.state.collection(item.collection)
        return collection.since.only(), collection.upper.only()


def _shown(catalog: Catalog) -> Catalog:
    """The catalog without the views of subscriptions, which are nobody's objects."""
    hidden = [item.number for item in catalog.items() if item.schema_name == TEMPORARY]
    return catalog.changed(removed=hidden) if hidden else catalog


@dataclass(frozen=True)
class SystemRelation:
    """A relation that Noonmark brings: `number` is PostgreSQL's oid where it has one."""

    schema_name: str
    name: str
    schema: Schema
    rows: Callable[[Facts], Iterable[Row]]
    number: int = 0

    @property
    def full_name(self) -> str:
        """The name with its schema, as a plan's `Scan` says it."""
        return f"{self.schema_name}.{self.name}"


#: Types that only PostgreSQL's catalog has.
_TEXTS = ("name", "char", "regproc", "regtype", "pg_node_tree", "aclitem", "anyarray")
_CATALOG_TYPES: dict[str, t.SqlType] = {
    "int2vector": t.Vector(t.SmallInt()),
    "oidvector": t.Vector(t.Integer("oid")),
    **{name: t.Text(name) for name in _TEXTS},
    **{f"{name}[]": t.Array(t.Text(name)) for name in _TEXTS},
    **{name: t.Integer(name) for name in ("oid", "xid")},
    "oid[]": t.Array(t.Integer("oid")),
}


def relation(
    full_name: str, rows: Callable[[Facts], Iterable[Row]], number: int = 0, /, **columns: str
) -> SystemRelation:
    """A system relation by the types of its columns; those of PostgreSQL have `tableoid`, too."""
    schema_name, name = full_name.split(".", 1)
    if schema_name == "pg_catalog":
        columns[SYSTEM_COLUMN] = "oid not null"
    schema = Schema(tuple(_column(*each) for each in columns.items()))
    return SystemRelation(schema_name, name, schema, rows, number)


def _column(name: str, spec: str) -> Column:
    kind = spec.removesuffix(" not null")
    made = _CATALOG_TYPES.get(kind) or t.parse_type(kind)
    return Column(name, made, nullable=kind == spec)


def nothing(_: Facts) -> Iterable[Row]:
    """The rows of a relation for what Noonmark does not have."""
    return ()
