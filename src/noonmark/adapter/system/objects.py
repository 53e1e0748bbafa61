"""What the catalog says of an object: its name, its definition, whether a name finds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.privilege import BUILT_IN
from noonmark.adapter.sequence.default import remembered
from noonmark.adapter.system.facts import SUPERUSER_OID, Facts
from noonmark.adapter.system.pg_catalog import KEY_OID_BASE, schema_oids
from noonmark.adapter.system.pg_index import (
    Index,
    constraint_definition,
    index_definition,
    indexes,
)
from noonmark.adapter.system.qualify import query_now
from noonmark.adapter.system.settings import path_of
from noonmark.adapter.system.types import TYPE_NAMES, TYPE_OIDS, format_type
from noonmark.errors import NoonmarkError, UndefinedObject, UndefinedTable
from noonmark.rows import types as t
from noonmark.rows.pg.oid import oid
from noonmark.rows.types import parse_type, quote_name
from noonmark.sql.functions.function import Function, Parameter
from noonmark.sql.lexer import tokens_of

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_INT, _TEXT, _BOOL = t.Integer, t.Text, t.Boolean
#: Whether an object is visible of which the catalog has none: NULL, as of any unknown oid.
_NEVER_THERE = tuple(
    f"pg_{what}_is_visible"
    for what in (
        *("function", "opclass", "opfamily", "operator", "conversion"),
        *("ts_config", "ts_dict", "ts_parser", "ts_template"),
        "statistics_obj",
    )
)


def ask(
    name: str,
    parameters: tuple[Parameter, ...],
    result: t.SqlType,
    meaning: Callable[..., Any],
    *,
    strict: bool = True,
    fallible: bool = False,
    volatile: bool = False,
    waits: bool = False,
) -> Function:
    """A function that the session answers."""
    return Function(
        name,
        parameters,
        result,
        meaning,
        strict,
        gives_null=True,
        fallible=fallible,
        volatile=volatile,
        waits=waits,
    )


class Objects:
    """The objects of a session's catalog, as it is when it is asked."""

    def __init__(self, session: AdapterSession) -> None:
        self._session = session
        self._catalog: Catalog | None = None
        self._items: dict[int, Item] = {}
        self._keys_of: Catalog | None = None
        self._key_items: dict[int, Index] = {}

    @property
    def facts(self) -> Facts:
        """The facts now."""
        return Facts.of(self._session)

    def item(self, number: int) -> Item | None:
        """By oid: kept for as long as the catalog is the same, because it is asked per row."""
        catalog = self._session.catalog
        if self._catalog is not catalog:
            self._catalog, self._items = catalog, {each.oid: each for each in catalog.items()}
        return self._items.get(number)

    def _find(self, parts: Sequence[str]) -> Item | None:
        """The item that a name means to the session now."""
        return self._session.catalog.find(parts, path_of(self._session))

    # -- names ---------------------------------------------------------------------------------

    def regclass(self, name: str) -> int:
        """The oid of a relation; raises `UndefinedTable`."""
        if name.isdigit():
            return int(name)
        item = remembered(self._session.catalog, name) or self._find(parts_of(name))
        if item is None or not (item.is_relation or item.kind == "index"):
            number = self._key_oid(parts_of(name))
            if number is None:
                raise UndefinedTable(f'relation "{name}" does not exist')
            return number
        return item.oid

    def _key_oid(self, parts: Sequence[str]) -> int | None:
        """The oid of the index of a key, which is no item."""
        schemas = [parts[-2]] if len(parts) > 1 else list(path_of(self._session))
        found = {(each.on.schema_name, each.name): each.oid for each in self._keys().values()}
        return next((found[s, parts[-1]] for s in schemas if (s, parts[-1]) in found), None)

    def _keys(self) -> dict[int, Index]:
        """The indexes of keys, by oid."""
        if self._keys_of is not self._session.catalog:
            self._keys_of = self._session.catalog
            found = (each for each in indexes(self.facts) if each.oid > KEY_OID_BASE)
            self._key_items = {each.oid: each for each in found}
        return self._key_items

    def to_regclass(self, name: str) -> int | None:
        """The oid of a relation, if there is one of that name."""
        try:
            return self.regclass(name)
        except UndefinedTable:
            return None

    def class_name(self, number: int) -> str:
        """A relation's name, with its schema where that is needed to find it."""
        item = self.item(number)
        if item is None and number > KEY_OID_BASE and number in self._keys():
            key = self._keys()[number]
            near = key.on.schema_name in path_of(self._session)
            return (
                quote_name(key.name)
                if near
                else (f"{quote_name(key.on.schema_name)}.{quote_name(key.name)}")
            )
        if item is None:
            return "-" if number == 0 else str(number)
        shown = quote_name(item.name)
        in_path = self._find((item.name,)) == item
        return shown if in_path else f"{quote_name(item.schema_name)}.{shown}"

    # -- types ---------------------------------------------------------------------------------

    def type_oid(self, name: str) -> int:
        """The oid of a type; raises `UndefinedObject`."""
        found = int(name) if name.isdigit() else _own_type(name)
        if found is not None:
            return found
        is_array = name.rstrip().endswith("[]")
        item = self._find(parts_of(name.rstrip().removesuffix("[]")))
        if item is None or item.kind != "type":
            raise UndefinedObject(f'type "{name}" does not exist')
        return item.oid + is_array

    def to_type_oid(self, name: str) -> int | None:
        """The oid of a type, if there is one of that name."""
        try:
            return self.type_oid(name)
        except UndefinedObject:
            return None

    def format_type(self, number: int | None, modifier: int | None) -> str | None:
        """The type's name as SQL writes it, with its schema where that is needed to find it."""
        made = self._made_type(number)
        if made is None:
            return format_type(number, modifier)
        name = self.class_name(made.oid)
        return name if made.oid == number else f"{name}[]"

    def type_visible(self, number: int) -> bool | None:
        """Whether an unqualified name finds a type; None where there is no such type."""
        made = self._made_type(number)
        if made is None:
            return True if number in TYPE_OIDS else None
        return self._find((made.name,)) == made

    def _made_type(self, number: int | None) -> Item | None:
        """The type that somebody made of that number, or the one whose array has it."""
        for each in (number, None if number is None else number - 1):
            item = None if each is None else self.item(each)
            if item is not None and item.kind == "type":
                return item
        return None

    def visible(self, number: int) -> bool | None:
        """Whether an unqualified name finds it; None where there is no such object."""
        key = self._keys().get(number) if number > KEY_OID_BASE else None
        if key is not None:
            return key.on.schema_name in path_of(self._session)
        item = self.item(number)
        if item is None:
            return None
        # Noonmark's own schemas are in the path of names, and would be all that \d shows.
        own = item.kind == "system" and item.schema_name != "pg_catalog"
        return not own and self._find((item.name,)) == item

    def collation_visible(self, number: int) -> bool | None:
        """Whether there is a collation of that oid: all are visible."""
        rows = self._session.system_rows("pg_catalog.pg_collation")
        return True if any(row[0] == number for row in rows) else None

    def role_name(self, number: int) -> str:
        """A role's name."""
        roles = self._session.catalog.items("role")
        found = next((role.name for role in roles if role.oid == number), None)
        if found is None:
            return BUILT_IN if number == SUPERUSER_OID else f"unknown (OID={number})"
        return found

    def role(self, name: str) -> int:
        """A role's oid."""
        return self.facts.role_oid(name)

    def to_role(self, name: str) -> int | None:
        """A role's oid, if there is one of that name."""
        return self.role(name) if name in self.facts.catalog.all_roles() else None

    def to_namespace(self, name: str) -> int | None:
        """A schema's oid, if there is one of that name."""
        return self.namespace(name) or None

    def namespace(self, name: str) -> int:
        """A schema's oid."""
        return int(name) if name.isdigit() else self.facts.schema_oid(name)

    def namespace_name(self, number: int) -> str:
        """A schema's name."""
        names = {own: name for name, own in schema_oids(self.facts)}
        return names.get(number, str(number))

    # -- definitions ---------------------------------------------------------------------------

    def viewdef(self, number: int, *_: Any) -> str | None:
        """A view's query."""
        item = self.item(number)
        if item is None or item.kind not in ("view", "materialized-view"):
            return None
        return f" {query_now(self._session.catalog, item, self._find)};"

    def comment(self, number: int, *_: Any) -> str | None:
        """COMMENT ON an object."""
        item = self.item(number)
        return None if item is None else item.comments.get("")

    def column_comment(self, number: int, at: int) -> str | None:
        """COMMENT ON a column."""
        item = self.item(number)
        if item is None or not 1 <= at <= len(item.schema):
            return None
        return item.comments.get(item.schema.names[at - 1])

    def indexdef(self, number: int, at: int = 0, *_: Any) -> str | None:
        """CREATE INDEX."""
        return index_definition(self.facts, number, at)

    def constraintdef(self, number: int, *_: Any) -> str | None:
        """PRIMARY KEY (...)."""
        return constraint_definition(self.facts, number)


def about_objects(session: AdapterSession) -> list[Function]:
    """The functions that ask about objects."""
    objects = Objects(session)
    return [*_names(objects), *_definitions(objects)]


def _names(objects: Objects) -> list[Function]:
    text = t.Text()
    return [
        ask("regclass", (_TEXT,), t.Integer("regclass"), objects.regclass, fallible=True),
        ask("regclass", (_INT,), t.Text("regclass"), objects.class_name),
        ask("to_regclass", (_TEXT,), t.Integer("regclass"), objects.to_regclass),
        ask("regtype", (_TEXT,), t.Integer("regtype"), objects.type_oid, fallible=True),
        ask(
            "regtype", (_INT,), t.Text("regtype"), lambda number: objects.format_type(number, None)
        ),
        ask("to_regtype", (_TEXT,), t.Integer("regtype"), objects.to_type_oid),
        ask(
            "regproc",
            (_INT,),
            t.Text("regproc"),
            lambda number: "-" if number == 0 else str(number),
        ),
        # Functions have no oid here: pg_type names them, and a name stands for itself.
        ask("regproc", (_TEXT,), t.Text("regproc"), lambda name: parts_of(name)[-1]),
        ask(
            "regprocedure",
            (_INT,),
            t.Text("regprocedure"),
            lambda number: "-" if number == 0 else str(number),
        ),
        ask("regnamespace", (_TEXT,), t.Integer("regnamespace"), objects.namespace),
        ask("regnamespace", (_INT,), t.Text("regnamespace"), objects.namespace_name),
        ask("regrole", (_INT,), t.Text("regrole"), objects.role_name),
        ask("regrole", (_TEXT,), t.Integer("regrole"), objects.role),
        ask("to_regnamespace", (_TEXT,), t.Integer("regnamespace"), objects.to_namespace),
        ask("to_regrole", (_TEXT,), t.Integer("regrole"), objects.to_role),
        ask("pg_get_userbyid", (_INT,), t.Text("name"), objects.role_name),
        ask("pg_table_is_visible", (_INT,), t.Boolean(), objects.visible),
        ask("pg_type_is_visible", (_INT,), t.Boolean(), objects.type_visible),
        ask("pg_collation_is_visible", (_INT,), t.Boolean(), objects.collation_visible),
        *(ask(name, (_INT,), t.Boolean(), lambda _: None) for name in _NEVER_THERE),
        ask("format_type", (_INT, _INT), text, objects.format_type, strict=False),
    ]


def _definitions(objects: Objects) -> list[Function]:
    text, viewdef = t.Text(), objects.viewdef

    def viewdef_by_name(name: str) -> str | None:
        return viewdef(objects.regclass(name))

    return [
        *(ask("pg_get_viewdef", (_INT, *more), text, viewdef) for more in ((), (_BOOL,), (_INT,))),
        ask("pg_get_viewdef", (_TEXT,), text, viewdef_by_name, fallible=True),
        ask("obj_description", (_INT,), text, objects.comment),
        ask("obj_description", (_INT, _TEXT), text, objects.comment),
        # A function has no comment: pg_operator names it.
        ask("obj_description", (_TEXT, _TEXT), text, lambda *_: None),
        ask("col_description", (_INT, _INT), text, objects.column_comment),
        ask("shobj_description", (_INT, _TEXT), text, lambda *_: None),
        ask("pg_get_indexdef", (_INT,), text, objects.indexdef),
        ask("pg_get_indexdef", (_INT, _INT, _BOOL), text, objects.indexdef),
        ask("pg_get_constraintdef", (_INT,), text, objects.constraintdef),
        ask("pg_get_constraintdef", (_INT, _BOOL), text, objects.constraintdef),
        *(
            ask("pg_get_expr", (_TEXT, _INT, *more), text, lambda value, *_: value)
            for more in ((), (_BOOL,))
        ),
    ]


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name as it is written in a string."""
    words = [token.value for token in tokens_of(name) if token.kind in ("word", "quoted")]
    return tuple(words) or (name,)


def _own_type(name: str) -> int | None:
    """The oid of a type of PostgreSQL's own."""
    schema, *rest = parts_of(name)
    plain = rest[0] if schema == "pg_catalog" and len(rest) == 1 else name.strip('"')
    if plain in TYPE_NAMES:
        return TYPE_NAMES[plain]
    try:
        return oid(parse_type(plain))
    except NoonmarkError:
        return None
