"""Types that somebody made, as items of the catalog.

What a type is called and what its labels are is in its item alone. Columns are stored with the uid
of their type (`rows.types.Enum`); in a catalog they have the type as it is now, and so has what a
view, a default or a CHECK names.

Law (bound): in every catalog each column of a type of users has the name and the labels of the
type's item. Law (names): a text that was kept means the types that it meant when it was written,
whatever they are called later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from noonmark.adapter.catalog.item import PUBLIC, TEMPORARY_PREFIX, Item
from noonmark.rows import types as t
from noonmark.rows.label import Label
from noonmark.rows.schema import Schema
from noonmark.sql.ir.node import walk_once
from noonmark.sql.ir.relation import Relation
from noonmark.sql.ir.scalar import Scalar

Types = Mapping[str, t.SqlType]


def type_of(item: Item) -> t.Enum:
    """The type that an item is."""
    own = t.quote_name(item.name)
    near = item.schema_name == PUBLIC or item.schema_name.startswith(TEMPORARY_PREFIX)
    name = own if near else f"{t.quote_name(item.schema_name)}.{own}"
    return t.Enum(item.definition["uid"], item.number, name, labels_of(item))


def labels_of(item: Item) -> tuple[Label, ...]:
    """The labels of an enum in their order."""
    return tuple(Label(text, bytes.fromhex(place)) for text, place, *_ in item.definition["labels"])


def made_types(sql_type: t.SqlType) -> Iterator[t.Enum]:
    """The types of users that a type is, or is made of."""
    match sql_type:
        case t.Enum():
            yield sql_type
        case t.Array(element):
            yield from made_types(element)
        case t.Record(fields):
            for field in fields:
                yield from made_types(field.type)


def named_by(item: Item) -> Iterator[t.Enum]:
    """The types of users that the texts of an item name."""
    for kind in item.types.values():
        yield from made_types(kind)


def uids_in(relation: Relation) -> set[str]:
    """The types of users that a plan has a value of, anywhere."""
    found: set[t.SqlType] = set()
    for node in walk_once(relation):
        if isinstance(node, Relation):
            found |= {column.type for column in node.schema.columns}
        elif isinstance(node, Scalar):
            found.add(node.type)
    return {made.uid for kind in found for made in made_types(kind)}


def now(sql_type: t.SqlType, types: Types) -> t.SqlType:
    """The type with those of users as they are now; itself where nothing changed."""
    match sql_type:
        case t.Enum(uid):
            return types.get(uid, sql_type)
        case t.Array(element) if not isinstance(sql_type, t.Vector):
            return t.Array(now(element, types))
        case t.Record(fields):
            return t.Record(tuple(t.Field(f.name, now(f.type, types)) for f in fields))
    return sql_type


def bound(item: Item, types: Types) -> Item:
    """The item with the types of users as they are now; the same object where nothing changed."""
    named: Mapping[str, str] = item.definition.get("types", {})
    given = {written: types[uid] for written, uid in named.items() if uid in types}
    columns = item.schema.columns
    own = [at for at, column in enumerate(columns) if any(made_types(column.type))]
    fresh = {at: now(columns[at].type, types) for at in own}
    pairs = [
        *((item.types.get(written), found) for written, found in given.items()),
        *((columns[at].type, found) for at, found in fresh.items()),
    ]
    if all(_is_same(old, new) for old, new in pairs):
        return item
    schema = Schema(tuple(replace(c, type=fresh.get(at, c.type)) for at, c in enumerate(columns)))
    return replace(item, schema=schema, types=given)


def _is_same(old: t.SqlType | None, new: t.SqlType) -> bool:
    """Whether also what is no part of the types is the same."""
    if old != new or old is None:
        return False
    pairs = zip(made_types(old), made_types(new), strict=True)
    return all((a.number, a.name, a.labels) == (b.number, b.name, b.labels) for a, b in pairs)
