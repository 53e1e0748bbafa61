"""One object of the catalog.

An item is a value. Its `number` is given by the system, once, and never again: names may come
back, numbers do not. What only its kind has (the text of a view, the options of a source, the
verifier of a role) is in `definition`, as plain data.

    relations   table, source, subsource, progress, errors, view, materialized-view, system,
                sequence
    the rest    index, connection, secret, sink, type, role, schema, database

A relation that is stored has a `collection` of persist, which carries the item's own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from noonmark.rows.pg.oid import FIRST_OID
from noonmark.rows.schema import Schema
from noonmark.rows.types import SqlType, quote_name

Kind = Literal[
    "table",
    "source",
    "subsource",
    "progress",
    "errors",
    "view",
    "materialized-view",
    "index",
    "connection",
    "secret",
    "sink",
    "role",
    "schema",
    "database",
    "system",
    "sequence",
    "type",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
RELATIONS: frozenset[Kind] = frozenset(
    (
        "table",
        "source",
        "subsource",
        "progress",
        "errors",
        "view",
        "materialized-view",
        "system",
        "sequence",
    )
)
#: Kinds whose names stand beside no schema, and do not clash with those of relations.
GLOBAL: frozenset[Kind] = frozenset(("role", "schema", "database"))

PUBLIC = "public"
#: Where the views of subscriptions are: nobody can make anything there.
TEMPORARY = "noonmark_temporary"
#: The superuser that is always there.
BUILT_IN = "noonmark"
#: What stands for every role.
EVERYBODY = "public"
#: Roles that are always there, for membership alone, with PostgreSQL's numbers.
PREDEFINED = {"pg_read_server_files": 4569}
#: The schemas of temporary objects: one a session.
TEMPORARY_PREFIX = "pg_temp_"
#: The one database of a location.
DATABASE = "noonmark"
NO_COLUMNS = Schema(())


@dataclass(frozen=True)
class Item:
    """See the module.

    Attributes:
        number: the system's own name for it; below 0 for what Noonmark brings itself.
        kind: what it is.
        schema_name: the schema that it is in; "" for roles, schemas and the database.
        name: how users call it.
        schema: the columns of its rows; none for what has no rows.
        key: the columns of its primary key, or those that its rows are told apart by.
        definition: what only its kind knows.
        needs: the numbers of the items that it cannot be without.
        part_of: the number of the source that it belongs to and goes with; 0 for none.
        owner: the role that made it.
        retain_ms: how much history it keeps; None for the default.
        comments: COMMENT ON it ("") and on its columns.
        grants: privileges by role.
        stored_as: in a transaction that renamed it, or made it under a name that was not free yet:
            what its collection is called until COMMIT. Never stored.
        types: the types of users that its texts name, as they are now, by what is written. Never
            stored: the catalog knows them (`catalog.user_types`).
    """

    number: int
    kind: Kind
    schema_name: str
    name: str
    schema: Schema = NO_COLUMNS
    key: tuple[str, ...] = ()
    definition: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[int, ...] = ()
    part_of: int = 0
    owner: str = ""
    retain_ms: int | None = None
    comments: Mapping[str, str] = field(default_factory=dict)
    grants: Mapping[str, frozenset[str]] = field(default_factory=dict)
    stored_as: str = ""
    types: Mapping[str, SqlType] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The number as users see it."""
        return f"s{-self.number}" if self.kind == "system" else f"u{self.number}"

    @property
    def oid(self) -> int:
        """Its number in pg_catalog."""
        return -self.number if self.kind == "system" else FIRST_OID + self.number

    @property
    def is_relation(self) -> bool:
        """Whether it can stand in FROM."""
        return self.kind in RELATIONS

    @property
    def is_written(self) -> bool:
        """Whether its rows are written here, by sessions or by posts, and not read from outside."""
        return self.kind == "table" or self.definition.get("upstream") == "webhook"

    @property
    def is_virtual(self) -> bool:
        """Whether its rows are made up when they are read: there is no time that they are of."""
        return self.kind in ("system", "sequence")

    @property
    def is_stored(self) -> bool:
        """Whether it has a collection of its own."""
        return bool(self.collection)

    @property
    def collection(self) -> str:
        """The collection of persist that has its rows; "" when there is none."""
        if self.kind == "view" or self.is_virtual:
            return ""
        if not self.is_relation and self.kind != "index":
            return ""
        if self.kind == "source" and not self.schema.columns:
            return ""  # all its rows are in its subsources
        return self.stored_as or collection_name(self.schema_name, self.name)

    @property
    def scan_name(self) -> str:
        """What a plan's `Scan` of it says: the collection, or the name of a system relation."""
        return self.collection or self.full_name

    @property
    def full_name(self) -> str:
        """The name with its schema."""
        return f"{self.schema_name}.{self.name}" if self.schema_name else self.name

    def __str__(self) -> str:
        """As PostgreSQL says it where objects depend on each other."""
        place = "" if self.schema_name in ("", PUBLIC) else f"{quote_name(self.schema_name)}."
        return f"{self.kind.replace('-', ' ')} {place}{quote_name(self.name)}"


def collection_name(schema_name: str, name: str) -> str:
    """What the collection of an item is called in the location."""
    return name if schema_name == PUBLIC else f"{schema_name}.{name}"
