"""Queries over the catalog: names become collections, views become what they stand for.

A plan that leaves here has `Scan`s of collections (and of system relations) only. A view is planned
from its own text again, against what its names meant when it was made: renaming a relation, or
adding a column to it, changes no view.

Law (pinned): the relation of a view has the same columns at every time of its life.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.catalog.type_names import TypeNames
from noonmark.adapter.catalog.user_types import Types
from noonmark.errors import InvalidSyntax, NameTaken
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.sql.coerce import coerce
from noonmark.sql.dialect import parse
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import unplaced
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import column
from noonmark.sql.parse import Query, plan_query
from noonmark.sql.plan.row import Statement

#: As a view remembers a name: the number of the item, and how many columns it had.
Pin = tuple[int, int]


class Names(Mapping[str, Schema]):
    """The relations of a catalog as the planner asks for them; remembers what it was asked.

    A name is looked up and its right checked by an `Access`; what a view pinned was checked when
    the view was named. `granted` is an item whose rights the statement checks itself: the target of
    UPDATE and DELETE.
    """

    def __init__(
        self,
        catalog: Catalog,
        access: Access | None,
        pins: Mapping[str, Sequence[int]] | None = None,
        types: Types | None = None,
    ) -> None:
        assert (access is None) != (pins is None), "a name is looked up, or it is pinned"
        self._catalog = catalog
        self._access = access
        self._pins = pins
        self.granted: Item | None = None
        self.used: dict[str, Item] = {}
        self.types = TypeNames(access, types)

    def __getitem__(self, name: str) -> Schema:
        if self._pins is not None:
            number, width = self._pins[name]
            item = self._catalog.by_number[number]
            self.used[name] = item
            return Schema(item.schema.columns[:width])
        assert self._access is not None
        # A quoted name may have a dot in it: whole names go first.
        item_or_none = self._access.find((name,))
        if item_or_none is None and "." in name:
            item_or_none = self._access.find(tuple(name.split(".", 1)))
        if item_or_none is None or not item_or_none.is_relation or _has_no_rows(item_or_none):
            raise KeyError(name)
        if item_or_none is not self.granted:
            self._access.check("relation", item_or_none)
        self.used[name] = item_or_none
        return item_or_none.schema

    def key_of(self, name: str) -> tuple[str, ...]:
        """The columns of the primary key of a relation that was asked for."""
        item = self.used.get(name)
        return item.key if item is not None and item.kind == "table" else ()

    def __iter__(self) -> Iterator[str]:
        return iter([item.full_name for item in self._catalog.items() if item.is_relation])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def pins(self) -> dict[str, Pin]:
        """What every name that was asked for stands for, to be remembered."""
        return {name: (item.number, len(item.schema)) for name, item in self.used.items()}


def _has_no_rows(item: Item) -> bool:
    return item.kind == "source" and not item.is_stored


@dataclass(frozen=True)
class Planned:
    """A query over collections.

    Attributes:
        query: its plan, as `sql.parse.Query`; every `Scan` is of a collection or system relation.
        items: the relations that it names itself.
        leaves: the relations whose rows it reads: those, with views replaced by what they read.
        pins: what its names stand for, to be remembered by a view.
        types: what the names of types in it stand for, likewise.
    """

    query: Query
    items: tuple[Item, ...]
    leaves: tuple[Item, ...]
    pins: Mapping[str, Pin] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)


def plan_tree(
    catalog: Catalog,
    tree: exp.Expr,
    *,
    access: Access | None = None,
    pins: Mapping[str, Sequence[int]] | None = None,
    types: Types | None = None,
) -> Planned:
    """The plan of a query's tree, its names looked up with `access` or pinned.

    Raises:
        SqlError, Unsupported: it means nothing, or something that is not built; says where.
    """
    names = Names(catalog, access, pins, types)
    statement = Statement(names, types=names.types, key_of=names.key_of)
    return over_collections(catalog, plan_query(tree, statement), names)


def over_collections(
    catalog: Catalog,
    query: Query,
    names: Names,
    kept: Callable[[Item], Item | None] = lambda _: None,
) -> Planned:
    """The plan with every name replaced by what it stands for.

    Args:
        catalog: what names stand for.
        query: the plan over names.
        names: the names that it asked for.
        kept: an index that keeps the rows of a view, to be read instead of computing the view.
    """
    leaves: dict[int, Item] = {}
    change = _Replacing(catalog, names.used, leaves, kept)
    done = Query(change(query.relation), query.names, change(query.ordered), query.order)
    items = {item.number: item for item in names.used.values()}
    own = tuple(items.values())
    return Planned(done, own, tuple(leaves.values()), names.pins(), names.types.pins())


class _Replacing:
    """Scans of names become scans of collections, or the relations of views."""

    def __init__(
        self,
        catalog: Catalog,
        used: Mapping[str, Item],
        leaves: dict[int, Item],
        kept: Callable[[Item], Item | None],
    ) -> None:
        self._kept = kept
        self._catalog = catalog
        self._used = used
        self._leaves = leaves
        self._done: dict[int, tuple[Node, Any]] = {}

    def __call__(self, node: Any) -> Any:
        if id(node) not in self._done:
            # The node is kept with its replacement: an id is only good while its object lives.
            self._done[id(node)] = (node, self._replaced(node))
        return self._done[id(node)][1]

    def _replaced(self, node: Any) -> Any:
        if not isinstance(node, r.Scan):
            return rebuild(node, self)
        if node.collection.startswith("\0"):
            return node  # the rows of a part of the statement (`statement.dml.within`)
        item = self._used[node.collection]
        index = self._kept(item) if item.kind == "view" else None
        if index is not None:
            self._leaves[index.number] = index
            return r.Scan(index.scan_name, node.columns)
        if item.kind == "view":
            inner = view_relation(self._catalog, item)
            self._leaves.update({leaf.number: leaf for leaf in inner.leaves})
            return _first(unplaced(inner.query.relation), len(node.columns))
        self._leaves[item.number] = item
        return replace(node, collection=item.scan_name)


def _first(relation: r.Relation, width: int) -> r.Relation:
    if len(relation.schema) == width:
        return relation
    kept = relation.schema.columns[:width]
    columns = tuple(column(at, each) for at, each in enumerate(kept))
    return r.Project(relation, columns, tuple(each.name for each in kept))


def view_relation(catalog: Catalog, item: Item) -> Planned:
    """What a view, or a materialized view, stands for."""
    definition = item.definition
    tree = parse(definition["query"])
    planned = plan_tree(catalog, tree, pins=definition["names"], types=item.types)
    # By the names that its columns were given when it was made, whatever they would be named now.
    named = with_columns(planned.query, item.schema.names or tuple(definition.get("columns", ())))
    return replace(planned, query=_as_made(named, item.schema))


def _as_made(query: Query, schema: Schema) -> Query:
    """The query with columns of the types that they had when the view was made.

    Of before json was a type they may be jsonb; literals of no type once took the size of what
    stands beside them.
    """
    found = query.relation.schema.columns
    pairs = enumerate(zip(found, schema.columns, strict=False))
    made = {at: b.type for at, (a, b) in pairs if _was(a.type, b.type)}
    if not made:
        return query
    scalars = tuple(coerce(column(at, a), made.get(at, a.type)) for at, a in enumerate(found))
    relation = r.Project(query.relation, scalars, query.relation.schema.names)
    return Query(relation, query.names, relation, ())


def _was(now: t.SqlType, made: t.SqlType) -> bool:
    """Whether an earlier version gave one type where this one gives the other."""
    if isinstance(now, t.Json):
        return isinstance(made, t.Jsonb)
    sized = (t.Numeric, t.Text, t.Varchar, t.Char)
    return isinstance(now, sized) and isinstance(made, sized) and now != made


def with_columns(query: Query, columns: tuple[str, ...]) -> Query:
    """The query under the names that CREATE VIEW v (a, b) gives its first columns.

    Raises:
        NameTaken: two columns would have one name.
    """
    if len(columns) > len(query.names):
        raise InvalidSyntax("CREATE VIEW specifies more column names than columns")
    names = (*columns, *query.names[len(columns) :])
    for at, name in enumerate(names):
        if name in names[:at]:
            raise NameTaken(
                f'column "{name}" specified more than once',
                hint="Give one of them another name with AS.",
            )
    schema = query.relation.schema
    if names == schema.names:
        return query
    kept = tuple(column(at, each) for at, each in enumerate(schema))
    relation = r.Project(query.relation, kept, names)
    return Query(relation, names, relation, ())
