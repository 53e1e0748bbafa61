"""What an object is, in words and as parts of a name: pg_describe_object and its kin.

An object is a row of a catalog: the number of the catalog, its own, and that of a column, or 0.
Known are relations and their columns, schemas, roles, types and the database; of a catalog that has
no rows here nothing is known, as of a number that nothing has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog.item import DATABASE
from noonmark.adapter.system.facts import DATABASE_OID, SUPERUSER_OID
from noonmark.adapter.system.objects import Objects, ask
from noonmark.adapter.system.settings import path_of
from noonmark.errors import (
    InvalidArgument,
    UndefinedColumn,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from noonmark.rows import types as t
from noonmark.rows.types import quote_name
from noonmark.sql.functions.function import Function

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_RELATION, _SCHEMA, _ROLE, _TYPE, _DATABASE = 1259, 2615, 1260, 1247, 1262
#: What pg_class.relkind says.
_RELATIONS = {
    "r": "table", "i": "index", "S": "sequence", "v": "view", "m": "materialized view",
    "f": "foreign table",
}  # fmt: skip
_GENERIC = {_RELATION: "relation", _SCHEMA: "schema", _ROLE: "role", _TYPE: "type",
            _DATABASE: "database"}  # fmt: skip
#: In pg_class, pg_attribute and pg_type: columns by their places.
_OID, _NAME, _PLACE, _KIND = 0, 1, 2, 16


@dataclass(frozen=True)
class Described:
    """One object: its kind, the schema that it is in, the parts of its name, and that as text."""

    kind: str
    schema: str | None
    name: str | None
    parts: tuple[str, ...]
    identity: str
    visible: bool = False


class Descriptions:
    """The objects that a session may ask about."""

    def __init__(self, session: AdapterSession) -> None:
        self._session, self._objects = session, Objects(session)

    def _classes(self) -> Iterator[tuple[int, str, str, str]]:
        """Number, schema, name and kind of every relation and index."""
        schemas = {row[_OID]: row[_NAME] for row in self._rows("pg_namespace")}
        for row in self._rows("pg_class"):
            yield row[_OID], schemas.get(row[_PLACE], ""), row[_NAME], row[_KIND]

    def _rows(self, name: str) -> Sequence[tuple[Any, ...]]:
        return self._session.system_rows(f"pg_catalog.{name}")

    def find(self, catalog: int, number: int, column: int) -> Described | None:
        """The object; None where there is none.

        Raises:
            InvalidArgument: there is no such catalog.
        """
        finders = {
            _RELATION: self._relation,
            _SCHEMA: self._schema,
            _ROLE: self._role,
            _TYPE: self._type,
            _DATABASE: self._database,
        }
        if catalog == number == 0:
            return None
        if catalog in finders:
            return finders[catalog](number, column)
        if not any(
            row[_OID] == catalog and row[_NAME][:3] == "pg_" for row in self._rows("pg_class")
        ):
            raise InvalidArgument(f"unsupported object class: {catalog}")
        return None

    def _relation(self, number: int, column: int) -> Described | None:
        for own, schema, name, kind in self._classes():
            if own != number:
                continue
            parts: tuple[str, ...] = (schema, name)
            if column:
                named = self._column_name(number, column)
                if named is None:
                    return None
                parts = (*parts, named)
            what = _RELATIONS.get(kind, "relation") + (" column" if column else "")
            shown = ".".join(map(quote_name, parts))
            seen = schema in (*path_of(self._session), "pg_catalog")
            return Described(what, schema, name, parts, shown, seen)
        return None

    def _column_name(self, number: int, column: int) -> str | None:
        rows = self._rows("pg_attribute")
        return next((row[1] for row in rows if row[0] == number and row[5] == column), None)

    def _schema(self, number: int, _: int) -> Described | None:
        found = next(
            (row[_NAME] for row in self._rows("pg_namespace") if row[_OID] == number), None
        )
        return None if found is None else _alone("schema", found)

    def _role(self, number: int, _: int) -> Described | None:
        found = self._objects.facts.role_name(number)
        return None if found is None else _alone("role", found)

    def _database(self, number: int, _: int) -> Described | None:
        return _alone("database", DATABASE) if number == DATABASE_OID else None

    def _type(self, number: int, _: int) -> Described | None:
        rows = [row for row in self._rows("pg_type") if row[_OID] == number]
        if not rows:
            return None
        schemas = {row[_OID]: row[_NAME] for row in self._rows("pg_namespace")}
        name, schema = rows[0][_NAME], schemas.get(rows[0][_PLACE], "")
        shown = self._objects.format_type(number, None) or name
        if schema != "pg_catalog":
            shown = f"{quote_name(schema)}.{shown.rpartition('.')[2]}"
        seen = schema in (*path_of(self._session), "pg_catalog")
        return Described("type", schema, name, (shown,), shown, seen)

    # -- what is asked -------------------------------------------------------------------------

    def describe(self, catalog: int, number: int, column: int) -> str | None:
        """``column a of table samples``: its schema is said where a name alone does not find it."""
        found = self.find(catalog, number, column)
        if found is None:
            return None
        shown = found.identity
        if found.schema is not None and found.visible and shown.count(".") > 0:
            shown = shown.split(".", 1)[1]
        if column and catalog == _RELATION:
            table = shown.removesuffix("." + quote_name(found.parts[-1]))
            kind = found.kind.removesuffix(" column")
            return f"column {quote_name(found.parts[-1])} of {kind} {table}"
        return f"{found.kind} {shown}"

    def identify(self, catalog: int, number: int, column: int) -> Any:
        """Kind, schema, name and identity, in one row."""
        found = self.find(catalog, number, column)
        if found is None:
            return (self._kind(catalog, number, column), None, None, None)
        return (found.kind, found.schema, found.name, found.identity)

    def address(self, catalog: int, number: int, column: int) -> Any:
        """Kind, parts of the name, and of arguments: there are none."""
        found = self.find(catalog, number, column)
        if found is None:
            return (self._kind(catalog, number, column), None, None)
        return (found.kind, found.parts, ())

    def _kind(self, catalog: int, number: int, column: int) -> str | None:
        kinds = {own: kind for own, _, _, kind in self._classes()} if column else {}
        if catalog == _RELATION and number in kinds:
            return f"{_RELATIONS.get(kinds[number], 'relation')} column"
        return _GENERIC.get(catalog)

    def numbered(self, kind: str, names: tuple[str | None, ...], _: object) -> Any:
        """The catalog, the number and the column of what an address names.

        Raises:
            InvalidArgument: an address that can be none.
            SqlError: there is no such object.
        """
        if any(each is None for each in names):
            raise InvalidArgument("name or argument lists may not contain nulls")
        parts = [each for each in names if each is not None]
        what = kind.removesuffix(" column")
        finders: dict[str, Callable[[str], tuple[int, int]]] = {
            "schema": lambda name: (_SCHEMA, self._schema_number(name)),
            "role": lambda name: (_ROLE, self._role_number(name)),
            "type": lambda name: (_TYPE, self._objects.type_oid(name)),
            "database": lambda name: (_DATABASE, _database_number(name)),
        }
        if kind in finders:
            if len(parts) != 1:
                raise InvalidArgument("name list length must be exactly 1")
            return (*finders[kind](parts[0]), 0)
        if what not in _RELATIONS.values():
            raise InvalidArgument(f'unrecognized object type "{kind}"')
        least = 1 + (kind != what)
        if len(parts) < least:
            raise InvalidArgument(f"name list length must be at least {least}")
        column = parts.pop() if kind != what else None
        return self._numbered_relation(what, parts, column)

    def _numbered_relation(self, what: str, parts: list[str], column: str | None) -> Any:
        path = (parts[-2],) if len(parts) > 1 else (*path_of(self._session), "pg_catalog")
        classes = [each for each in self._classes() if each[2] == parts[-1]]
        found = next((e for place in path for e in classes if e[1] == place), None)
        shown = ".".join(parts)
        if found is None:
            raise UndefinedTable(f'relation "{shown}" does not exist')
        if _RELATIONS.get(found[3]) != what:
            article = "an" if what == "index" else "a"
            raise WrongObjectType(f'"{shown}" is not {article} {what}')
        if column is None:
            return (_RELATION, found[0], 0)
        rows = self._rows("pg_attribute")
        at = next((row[5] for row in rows if row[0] == found[0] and row[1] == column), None)
        if at is None:
            raise UndefinedColumn(f'column "{column}" of relation "{shown}" does not exist')
        return (_RELATION, found[0], at)

    def _schema_number(self, name: str) -> int:
        found = self._objects.facts.schema_oid(name)
        if not found:
            raise UndefinedSchema(f'schema "{name}" does not exist')
        return found

    def _role_number(self, name: str) -> int:
        facts = self._objects.facts
        number = facts.role_oid(name)
        if number == SUPERUSER_OID and facts.role_name(number) != name:
            raise UndefinedObject(f'role "{name}" does not exist')
        return number


def _alone(kind: str, name: str) -> Described:
    return Described(kind, None, name, (name,), quote_name(name))


def _database_number(name: str) -> int:
    if name != DATABASE:
        raise UndefinedObject(f'database "{name}" does not exist')
    return DATABASE_OID


def record(**fields: t.SqlType) -> t.Array:
    """The type of rows that a function of the session gives: see `sql.plan.rowset`."""
    return t.Array(t.Record(tuple(t.Field(name, kind) for name, kind in fields.items())))


def about_descriptions(session: AdapterSession) -> list[Function]:
    """The functions; those of rows are named as `sql.plan.rowset` says."""
    made = Descriptions(session)
    text, texts, number = t.Text(), t.Array(t.Text()), t.Integer()
    three = (t.Integer,) * 3
    return [
        ask("pg_describe_object", three, text, made.describe, fallible=True),
        ask(
            "rows of pg_identify_object",
            three,
            record(type=text, schema=text, name=text, identity=text),
            lambda *of: (made.identify(*of),),
            fallible=True,
        ),
        ask(
            "rows of pg_identify_object_as_address",
            three,
            record(type=text, object_names=texts, object_args=texts),
            lambda *of: (made.address(*of),),
            fallible=True,
        ),
        ask(
            "rows of pg_get_object_address",
            (t.Text, t.Array, t.Array),
            record(classid=number, objid=number, objsubid=number),
            lambda *of: (made.numbered(*of),),
            fallible=True,
        ),
    ]
