"""Types that somebody made, as items of the catalog: enums and domains.

What a type is called, its labels and its constraints are in its item alone. Columns are stored with
the uid of their type (`rows.types.Enum`) or domain (`rows.domain`); in a catalog they have the type
as it is now, and so has what a view, a default or a CHECK names.

Law (bound): in every catalog each column of a type of users has the name and the labels, or the
constraints, of the type's item. Law (names): a text that was kept means the types that it meant
when it was written, whatever they are called later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from noonmark.adapter.catalog.item import PUBLIC, TEMPORARY_PREFIX, Item
from noonmark.rows import types as t
from noonmark.rows.domain import Domain
from noonmark.rows.label import Label
from noonmark.rows.schema import Column, Schema
from noonmark.sql.ir.node import walk_once
from noonmark.sql.ir.relation import Relation
from noonmark.sql.ir.scalar import Scalar

Types = Mapping[str, t.SqlType]


Made = t.Enum | Domain


def is_domain(item: Item) -> bool:
    """Whether an item is a domain."""
    return item.kind == "type" and "base" in item.definition


def type_of(item: Item) -> Made:
    """The type that an item is, of a catalog that has bound it."""
    own = t.quote_name(item.name)
    near = item.schema_name == PUBLIC or item.schema_name.startswith(TEMPORARY_PREFIX)
    name = own if near else f"{t.quote_name(item.schema_name)}.{own}"
    if not is_domain(item):
        return t.Enum(item.definition["uid"], item.number, name, labels_of(item))
    has, named = item.definition, item.types
    over = named.get(has.get("over", ""))
    types = {each.uid: each for each in named.values() if isinstance(each, t.Enum)}
    return Domain(
        has["uid"],
        item.number,
        name,
        now(t.parse_stored(has["base"]), types),
        over if isinstance(over, Domain) else None,
        bool(has.get("not_null")),
        has.get("default"),
        tuple((check, text) for check, text, *_ in has.get("checks", ())),
        tuple(sorted(named.items())),
    )


def types_of(items: Iterable[Item]) -> Iterator[tuple[Item, Made]]:
    """The types among items, each bound to those that it is made of; those have lower numbers."""
    known: dict[str, t.SqlType] = {}
    for item in items:
        if item.kind == "type":
            fresh = bound(item, known) if is_domain(item) else item
            made = type_of(fresh)
            known[made.uid] = made
            yield fresh, made


def labels_of(item: Item) -> tuple[Label, ...]:
    """The labels of an enum in their order."""
    return tuple(Label(text, bytes.fromhex(place)) for text, place, *_ in item.definition["labels"])


def made_types(sql_type: t.SqlType) -> Iterator[Made]:
    """The types of users that a type is, or is made of."""
    match sql_type:
        case t.Enum():
            yield sql_type
        case Domain():
            for each in sql_type.chain():
                yield from made_types(each.base)
                yield each
        case t.Array(element):
            yield from made_types(element)
        case t.Record(fields):
            for field in fields:
                yield from made_types(field.type)


def types_in(column: Column) -> Iterator[Made]:
    """The types of users that a column is declared as, or made of."""
    yield from made_types(column.type)
    if column.domain is not None:
        yield from column.domain.chain()


def state_of(made: t.SqlType) -> tuple[object, ...]:
    """What may change of a type that somebody made; of others nothing."""
    match made:
        case t.Enum():
            return made.number, made.name, made.labels
        case Domain():
            return made.state
    return ()


def named_by(item: Item) -> Iterator[Made]:
    """The types of users that the texts of an item name."""
    for kind in item.types.values():
        yield from made_types(kind)


def uids_in(relation: Relation) -> set[str]:
    """The types of users that a plan has a value of, anywhere."""
    found: set[t.SqlType] = set()
    for node in walk_once(relation):
        if isinstance(node, Relation):
            found |= {made for column in node.schema.columns for made in types_in(column)}
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
    own = [at for at, column in enumerate(columns) if any(types_in(column))]
    fresh = {at: _column_now(columns[at], types) for at in own}
    pairs = [
        *((item.types.get(written), found) for written, found in given.items()),
        *((columns[at].declared, found.declared) for at, found in fresh.items()),
        *((columns[at].type, found.type) for at, found in fresh.items()),
    ]
    if all(_is_same(old, new) for old, new in pairs):
        return item
    schema = Schema(tuple(fresh.get(at, column) for at, column in enumerate(columns)))
    return replace(item, schema=schema, types=given)


def _column_now(column: Column, types: Types) -> Column:
    domain = None if column.domain is None else types.get(column.domain.uid, column.domain)
    assert domain is None or isinstance(domain, Domain)
    return replace(column, type=now(column.type, types), domain=domain)


def _is_same(old: t.SqlType | None, new: t.SqlType) -> bool:
    """Whether also what is no part of the types is the same."""
    if old != new or old is None:
        return False
    pairs = zip(made_types(old), made_types(new), strict=False)
    return all(state_of(a) == state_of(b) for a, b in pairs)
