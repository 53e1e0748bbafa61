"""The constraints of CREATE TABLE, ALTER TABLE and CREATE UNIQUE INDEX, as tables keep them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.statement.ddl.columns import DuplicateColumn, check_key
from noonmark.adapter.table.constraints import (
    Foreign,
    Unique,
    key_name,
    names_of,
    uniques_of,
)
from noonmark.errors import (
    DatatypeMismatch,
    DuplicateObject,
    NameTaken,
    UndefinedColumn,
    UndefinedObject,
    UsageError,
    WrongObjectType,
)
from noonmark.rows import types as t
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

_NAME_LENGTH_MAX = 63
_INTEGERS = (t.SmallInt, t.Integer, t.BigInt)
_TEXTS = (t.Text, t.Varchar, t.Char)


class InvalidForeignKey(UsageError, id="invalid_foreign_key", sqlstate="42830"):
    """A foreign key that refers to no key."""


def constrained(
    session: AdapterSession,
    catalog: Catalog,
    item: Item,
    uniques: Sequence[st.UniqueText],
    foreigns: Sequence[st.ForeignText],
) -> Item:
    """The table with these constraints besides its own; a primary key is only named."""
    for each in sorted(uniques, key=lambda one: not one.primary):
        item = with_unique(catalog, item, each)
    for foreign in foreigns:
        item = with_foreign(session, catalog, item, foreign)
    return item


def with_unique(
    catalog: Catalog, item: Item, written: st.UniqueText, *, is_constraint: bool = True
) -> Item:
    """The table with a unique constraint, or index."""
    _check_columns(item, written.columns, written.position)
    for each in written.columns:
        check_key(each, item.schema[each].type)
    if len(set(written.columns)) < len(written.columns):
        twice = next(c for c in written.columns if written.columns.count(c) > 1)
        kind = "primary key" if written.primary else "unique"
        raise DuplicateColumn(
            f'column "{twice}" appears twice in {kind} constraint', position=written.position
        )
    if written.primary:
        if written.name is None:
            return item
        _check_free(catalog, item, written.name)
        return _with(item, key_name=written.name)
    name = written.name
    if name is None:
        end = "key" if is_constraint else "idx"
        name = free_name(catalog, item, [*written.columns, end])
    else:
        _check_free(catalog, item, name)
    made = Unique(name, written.columns, written.nulls_distinct, is_constraint)
    return _with(item, uniques=[*item.definition.get("uniques", ()), made.stored()])


def unique_name(catalog: Catalog, item: Item, name: st.Name | None, labels: Sequence[str]) -> str:
    """The name of a unique index: a free one, where it was given none."""
    if name is None:
        return free_name(catalog, item, [*labels, "idx"])
    _check_free(catalog, item, name.last)
    return name.last


def _with(item: Item, **parts: object) -> Item:
    return replace(item, definition={**item.definition, **parts})


def _check_columns(item: Item, names: Iterable[str], position: int | None) -> None:
    for name in names:
        if name not in item.schema:
            raise UndefinedColumn(f'column "{name}" named in key does not exist', position=position)


def _check_free(catalog: Catalog, item: Item, name: str) -> None:
    """Refuse the name of an index that is there, which is a relation's name."""
    keys = {each.name for each in uniques_of(item)} | ({key_name(item)} if item.key else set())
    if name in names_of(item) - keys:
        raise DuplicateObject(f'constraint "{name}" for relation "{item.name}" already exists')
    if name in _taken(catalog, item) | (keys - {f"{item.name}_pkey"}):
        raise NameTaken(f'relation "{name}" already exists', name=name)


def _taken(catalog: Catalog, item: Item) -> set[str]:
    """The names of relations, and of what PostgreSQL has indexes for, in the schema of a table."""
    found = {item.name}
    for each in catalog.items():
        if each.schema_name == item.schema_name and each.number != item.number:
            found.add(each.name)
            if each.kind == "table":
                found |= {unique.name for unique in uniques_of(each)}
                found |= {key_name(each)} if each.key else set()
    return found


def free_name(catalog: Catalog, item: Item, ends: Sequence[str], *, foreign: bool = False) -> str:
    """A name as PostgreSQL chooses it: table_columns_end, with a number where it is taken."""
    taken = names_of(item) | (set() if foreign else _taken(catalog, item))
    number = 0
    while True:
        last = f"_{ends[-1]}{number or ''}"
        middle = "_".join(ends[:-1])
        room = _NAME_LENGTH_MAX - len(last) - 1
        table = item.name
        while len(table) + len(middle) > room:
            if len(table) > len(middle):
                table = table[:-1]
            else:
                middle = middle[:-1]
        name = f"{table}_{middle}{last}"
        if name not in taken:
            return name
        number += 1


# --- foreign keys


def with_foreign(
    session: AdapterSession, catalog: Catalog, item: Item, written: st.ForeignText
) -> Item:
    """The table with a foreign key."""
    for name in written.columns:
        if name not in item.schema:
            raise UndefinedColumn(
                f'column "{name}" referenced in foreign key constraint does not exist',
                position=written.position,
            )
    parent = _parent(session, catalog, item, written)
    others = written.others or parent.key
    if not others:
        raise UndefinedObject(f'there is no primary key for referenced table "{parent.name}"')
    for name in others:
        if name not in parent.schema:
            raise UndefinedColumn(
                f'column "{name}" referenced in foreign key constraint does not exist'
            )
    if len(others) != len(written.columns):
        raise InvalidForeignKey(
            "number of referencing and referenced columns for foreign key disagree"
        )
    keys = [parent.key, *(each.columns for each in uniques_of(parent) if each.is_plain)]
    if not any(set(key) == set(others) and key for key in keys):
        raise InvalidForeignKey(
            "there is no unique constraint matching given keys for referenced table "
            f'"{parent.name}"'
        )
    name = written.name or free_name(catalog, item, [*written.columns, "fkey"], foreign=True)
    if name in names_of(item):
        raise DuplicateObject(f'constraint "{name}" for relation "{item.name}" already exists')
    _check_types(item, parent, written.columns, others, name)
    number = parent.number
    made = Foreign(
        name, written.columns, number, others, written.deferrable, written.deferred,
        written.on_delete, written.on_update,
    )  # fmt: skip
    return _with(item, foreigns=[*item.definition.get("foreigns", ()), made.stored()])


def _parent(session: AdapterSession, catalog: Catalog, item: Item, written: st.ForeignText) -> Item:
    own = written.table.parts[-1] == item.name and written.table.parts[:-1] in (
        (),
        (item.schema_name,),
    )
    if own:
        return item
    access = session.access("SHOW", catalog)
    found = access.named(written.table.parts, written.table.position)
    if found.kind != "table":
        raise WrongObjectType(f'referenced relation "{found.name}" is not a table')
    return found


def _check_types(
    item: Item, parent: Item, columns: Sequence[str], others: Sequence[str], name: str
) -> None:
    for own, other in zip(columns, others, strict=True):
        one, two = item.schema[own].type, parent.schema[other].type
        alike = any(isinstance(one, k) and isinstance(two, k) for k in (_INTEGERS, _TEXTS))
        if type(one) is not type(two) and not alike:
            raise DatatypeMismatch(
                f'foreign key constraint "{name}" cannot be implemented',
                detail=f'Key columns "{own}" and "{other}" are of incompatible types: '
                f"{one} and {two}.",
            )


# --- what goes


def without_constraint(item: Item, name: str) -> Item | None:
    """The table without a constraint of that name; None where it has none, or it is its key."""
    definition = dict(item.definition)
    for part in ("checks", "uniques", "foreigns"):
        left = [each for each in definition.get(part, ()) if each[0] != name]
        if len(left) < len(definition.get(part, ())):
            definition[part] = left
            if part == "checks" and not left:
                del definition[part]
            return replace(item, definition=definition)
    return None
