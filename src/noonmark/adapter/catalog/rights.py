"""Which right a statement needs on what it names: one table, asked where a name is resolved.

A row of `NEEDS` says: to name an object of one of `kinds` as a `part` of a `statement`, a role must
have `right` on it. A right is a privilege (SELECT, USAGE, ...), or

    OWN      to be its owner, a member of its owner, or a superuser; for DROP also of its schema
    NAME     to have nothing but what every name needs

Every name needs USAGE on the schema that it is in, except that of what is made, which needs CREATE.
Law (closed): a kind that has no row for a part
is refused: there is no statement without a row.

Law (views): who reads a view needs SELECT on the view; its owner needs SELECT on what the view
names, and so on below it, when it is read. A materialized view and an index are read as they are
kept: their owner's rights count when they are made.

`Access` is how statements look names up. What this table says of roles themselves (CREATE ROLE,
GRANT role, SET ROLE, FROM FILES) is in `ROLE_NEEDS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from noonmark.adapter.catalog.catalog import SEARCH_PATH, Catalog
from noonmark.adapter.catalog.item import RELATIONS, Item, Kind
from noonmark.adapter.catalog.privilege import (
    GRANTED_BY_KIND,
    READ_FILES,
    has,
    is_superuser,
    may_become,
    memberships,
    owner_of,
    owns,
)
from noonmark.errors import InsufficientPrivilege, UndefinedTable, WrongObjectType

#: The rights that cannot be granted.
OWN, NAME = "OWN", "NAME"


@dataclass(frozen=True)
class Need:
    """One row; see the module."""

    statement: str
    part: str
    kinds: tuple[Kind, ...]
    right: str


READ: tuple[Kind, ...] = tuple(sorted(RELATIONS))
KEPT: tuple[Kind, ...] = ("table", "source", "subsource", "progress", "errors",
                          "materialized-view")  # fmt: skip
_INDEXED: tuple[Kind, ...] = (*KEPT, "view")
#: What DDL can name; the errors of a source go with it.
_OWNED: tuple[Kind, ...] = (
    *("table", "source", "subsource", "progress", "view", "materialized-view", "index"),
    *("connection", "secret", "sink", "sequence", "type"),
)
_GRANTED: tuple[Kind, ...] = (*_INDEXED, "sequence", "type", "connection", "secret", "schema",
                            "database")  # fmt: skip
_MADE = (
    "TABLE",
    "VIEW",
    "MATERIALIZED VIEW",
    "SOURCE",
    "SINK",
    "CONNECTION",
    "SECRET",
    "INDEX",
    "SEQUENCE",
    "TYPE",
    "DOMAIN",
)


def _rows(statement: str, *parts: tuple[str, Sequence[Kind], str]) -> list[Need]:
    return [Need(statement, part, tuple(kinds), right) for part, kinds, right in parts]


NEEDS: tuple[Need, ...] = (
    # -- reading
    *_rows("SELECT", ("relation", READ, "SELECT")),
    *_rows("SUBSCRIBE", ("relation", READ, "SELECT")),
    *_rows(
        "EXPLAIN MATERIALIZED VIEW",
        ("view", ("materialized-view",), "SELECT"),
        ("view", ("index",), OWN),
    ),
    *_rows(
        "AUDIT MATERIALIZED VIEW",
        ("view", ("materialized-view",), "SELECT"),
        ("view", ("index",), OWN),
    ),
    *_rows("SHOW", ("object", (*_OWNED, "errors", "system"), NAME)),
    # -- writing
    *_rows(
        "INSERT",
        ("target", ("table",), "INSERT"),
        ("conflicting target", ("table",), "UPDATE"),
        ("read target", ("table",), "SELECT"),
        ("relation", READ, "SELECT"),
    ),
    *_rows(
        "UPDATE",
        ("target", ("table",), "UPDATE"),
        ("read target", ("table",), "SELECT"),
        ("relation", READ, "SELECT"),
    ),
    *_rows(
        "DELETE",
        ("target", ("table",), "DELETE"),
        ("read target", ("table",), "SELECT"),
        ("relation", READ, "SELECT"),
    ),
    *_rows("MERGE", ("read target", ("table",), "SELECT"), ("relation", READ, "SELECT")),
    *_rows("LOCK TABLE", ("relation", READ, "SELECT")),
    *_rows("TRUNCATE", ("target", ("table",), "TRUNCATE")),
    *_rows("COPY FROM", ("target", ("table",), "INSERT")),
    # -- making
    *(Need(f"CREATE {what}", "schema", ("schema",), "CREATE") for what in _MADE),
    *_rows("CREATE TABLE", ("type", ("type",), "USAGE"), ("relation", READ, "SELECT")),
    *_rows("CREATE SOURCE", ("type", ("type",), "USAGE")),
    *_rows("CREATE DOMAIN", ("type", ("type",), "USAGE")),
    *_rows("CREATE TEMPORARY", ("database", ("database",), "TEMPORARY")),
    *_rows("REFRESH MATERIALIZED VIEW", ("view", ("materialized-view",), OWN)),
    *_rows("CREATE SCHEMA", ("database", ("database",), "CREATE")),
    *_rows("CREATE VIEW", ("relation", READ, NAME), ("replaced", ("view",), OWN)),
    *_rows(
        "CREATE MATERIALIZED VIEW",
        ("relation", READ, "SELECT"),
        ("replaced", ("materialized-view",), OWN),
    ),
    *_rows("CREATE INDEX", ("relation", _INDEXED, OWN)),
    *_rows(
        "CREATE SOURCE", ("connection", ("connection",), "USAGE"), ("secret", ("secret",), "USAGE")
    ),
    *_rows("CREATE SINK", ("relation", KEPT, "SELECT"), ("connection", ("connection",), "USAGE")),
    *_rows("CREATE CONNECTION", ("secret", ("secret",), "USAGE")),
    # -- changing
    *_rows("VALIDATE CONNECTION", ("connection", ("connection",), "USAGE")),
    *_rows("ALTER SECRET", ("object", ("secret",), OWN)),
    *_rows("ALTER CONNECTION", ("object", ("connection",), OWN), ("secret", ("secret",), "USAGE")),
    *_rows("ALTER SET", ("object", ("table", "source", "materialized-view", "index"), OWN)),
    *_rows("ALTER SEQUENCE", ("object", ("sequence",), OWN), ("table", ("table",), OWN)),
    *_rows("ALTER TABLE", ("object", ("table",), OWN), ("type", ("type",), "USAGE")),
    *_rows("ALTER TABLE ADD COLUMN", ("object", ("table",), OWN), ("type", ("type",), "USAGE")),
    *_rows("ALTER TYPE", ("object", ("type",), OWN)),
    *_rows("ALTER DOMAIN", ("object", ("type",), OWN)),
    *_rows(
        "ALTER SET SCHEMA",
        ("object", tuple(each for each in _OWNED if each != "index"), OWN),
        ("schema", ("schema",), "CREATE"),
    ),
    *_rows("ALTER RENAME", ("object", _OWNED, OWN), ("schema", ("schema",), "CREATE")),
    *_rows(
        "ALTER OWNER",
        ("object", (*_OWNED, "schema", "database"), OWN),
        ("schema", ("schema",), "CREATE"),
        ("database", ("database",), "CREATE"),
    ),
    *_rows("COMMENT", ("object", (*_OWNED, "errors", "schema", "database"), OWN)),
    *_rows("DROP", ("object", (*_OWNED, "schema", "database"), OWN)),
    *_rows("GRANT", ("object", _GRANTED, OWN)),
)

#: What statements need that name no object: a superuser, or a member of a role.
ROLE_NEEDS: dict[str, str] = {
    "CREATE ROLE": "SUPERUSER",
    "ALTER ROLE": "SUPERUSER",
    "DROP ROLE": "SUPERUSER",
    "COMMENT ON ROLE": "SUPERUSER",
    "GRANT ROLE": "SUPERUSER",
    "SET SESSION AUTHORIZATION": "SUPERUSER",
    "ALTER DEFAULT PRIVILEGES": "MEMBER",
    "REASSIGN OWNED": "MEMBER",
    "SET ROLE": "MEMBER",
    "CREATE SOURCE FROM FILES": READ_FILES,
}

_BY_PLACE = {(n.statement, n.part, kind): n.right for n in NEEDS for kind in n.kinds}
_PLACES = frozenset((n.statement, n.part) for n in NEEDS)
#: The schemas that Noonmark brings, which everybody may name.
_SYSTEM = frozenset(SEARCH_PATH) - {"public"}


@dataclass(frozen=True)
class Access:
    """The names of one statement, as one role may use them."""

    catalog: Catalog
    role: str
    statement: str
    path: Sequence[str] = SEARCH_PATH

    def find(self, parts: Sequence[str]) -> Item | None:
        """The item of that name, if there is one.

        Raises:
            InsufficientPrivilege: the role may not name what is in that schema.
        """
        if len(parts) > 1:
            self.enter(parts[-2])
            return self.catalog.find(parts, self.path)
        usable = [name for name in self.path if self._may_enter(name)]
        found = self.catalog.find(parts, usable)
        if found is None and (hidden := self.catalog.find(parts, self.path)) is not None:
            self.enter(hidden.schema_name)
        return found

    def resolve(self, part: str, parts: Sequence[str], position: int | None = None) -> Item:
        """The relation or other object of that name, as a part of the statement.

        Raises:
            UndefinedTable: there is none.
            InsufficientPrivilege: the role does not have the right that it takes.
        """
        item = self.named(parts, position)
        self.check(part, item)
        return item

    def named(self, parts: Sequence[str], position: int | None = None) -> Item:
        """As `resolve`, for who checks the right once it is known what the object is."""
        item = self.find(parts)
        if item is None:
            raise UndefinedTable(f'relation "{".".join(parts)}" does not exist', position=position)
        return item

    def enter(self, schema_name: str) -> None:
        """Refuse who may not name anything in a schema."""
        if not self._may_enter(schema_name):
            schema = self.catalog.schema(schema_name)
            assert schema is not None
            raise _denied(schema, "USAGE", self.role)

    def _may_enter(self, name: str) -> bool:
        schema = self.catalog.schema(name)
        return schema is None or has(self.catalog, self.role, "USAGE", schema)

    def check(self, part: str, *items: Item) -> None:
        """Refuse with `InsufficientPrivilege` unless the role may use items as a part."""
        for item in items:
            self._check(part, item)

    def _check(self, part: str, item: Item) -> None:
        assert (self.statement, part) in _PLACES, f"no row for {part} of {self.statement}"
        right = _BY_PLACE.get((self.statement, part, item.kind))
        if right is None:
            raise WrongObjectType(f"{self.statement} does not take {item}")
        # What is replaced is found by where it is made: that takes CREATE, and not USAGE.
        if item.schema_name and item.schema_name not in _SYSTEM and part != "replaced":
            self.enter(item.schema_name)
        if right == OWN:
            self._check_owner(item)
            if self.statement == "CREATE INDEX":
                _check_view(self.catalog, item)  # what it keeps is read now, and not when asked
        elif right != NAME:
            if not has(self.catalog, self.role, right, item):
                raise _denied(item, right, self.role)
            if right == "SELECT":
                _check_view(self.catalog, item)

    def _check_owner(self, item: Item) -> None:
        if owns(self.catalog, self.role, item):
            return
        schema = self.catalog.schema(item.schema_name)
        drops = self.statement == "DROP" and schema is not None
        if drops and owns(self.catalog, self.role, schema or item):
            return
        raise InsufficientPrivilege(f"must be owner of {_shown(item)} {item.name}")


def may_read(catalog: Catalog, role: str, item: Item) -> bool:
    """Whether a role may read a relation, by the law of views."""
    try:
        Access(catalog, role, "SELECT").check("relation", item)
    except InsufficientPrivilege:
        return False
    return True


def _check_view(catalog: Catalog, item: Item) -> None:
    """The law of views, for one view and those below it, each once."""
    waiting, seen = [item], {item.number}
    while waiting:
        view = waiting.pop()
        if view.kind == "view":
            _check_named(catalog, view)
            fresh = [number for number in reversed(view.needs) if number not in seen]
            seen.update(fresh)
            waiting += [catalog.by_number[number] for number in fresh]


def _check_named(catalog: Catalog, item: Item) -> None:
    """The law of views, for what one view names itself."""
    owner = owner_of(catalog, item)
    for number in item.needs:
        below = catalog.by_number[number]
        if below.kind != "type" and not has(catalog, owner, "SELECT", below):
            raise InsufficientPrivilege(
                f"permission denied for {_shown(below)} {below.name}",
                detail=f'View "{item.name}" reads it with the rights of its owner, "{owner}".',
                hint=f"Its owner may GRANT SELECT ON {below.name} TO {owner}.",
            )


def _denied(item: Item, right: str, role: str) -> InsufficientPrivilege:
    kind = f"{_shown(item).upper()} " if item.kind in GRANTED_BY_KIND else ""
    return InsufficientPrivilege(
        f"permission denied for {_shown(item)} {item.name}",
        hint=f"Its owner may GRANT {right} ON {kind}{item.name} TO {role}.",
    )


def _shown(item: Item) -> str:
    return item.kind.replace("-", " ")


def require_role(catalog: Catalog, role: str, statement: str, other: str = "") -> None:
    """Refuse with `InsufficientPrivilege` what `ROLE_NEEDS` does not let a role do.

    Args:
        catalog: who is a member of what.
        role: who runs the statement.
        statement: a key of `ROLE_NEEDS`.
        other: the role that it is about, where it is about one.
    """
    need = ROLE_NEEDS[statement]
    if is_superuser(catalog, role):
        return
    if need == "MEMBER":
        if not may_become(catalog, role, other):
            raise InsufficientPrivilege(f'permission denied to set role "{other}"')
    elif need == "SUPERUSER":
        raise InsufficientPrivilege(
            f"permission denied: {statement} is for superusers", hint="Ask a superuser."
        )
    elif need not in memberships(catalog, role):
        raise InsufficientPrivilege(
            f"permission denied: {statement} is for members of {need}",
            hint=f"A superuser may GRANT {need} TO {role}.",
        )
