"""Which reads go through an index.

An index is a maintained copy of a relation, sorted by its columns. It is read

    instead of a view    that is not materialized: its rows are there already
    instead of a large   table, source or materialized view, by columns with which the index's key
    collection           begins and the collection's own does not

A collection that is small is in memory, under every key that is asked for: it needs no index. An
index that has no contents yet is not used; it will be, when the query is planned again.

Law: a relation and its index have the same contents at every time at which both are complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.type_names import TypeNames
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.gather import prefix_of
from noonmark.adapter.peek.mirrors import ROWS_MAX, row_count
from noonmark.adapter.peek.shape import Leaf
from noonmark.adapter.table.expressions import unqualified
from noonmark.adapter.table.keyed import element, predicate
from noonmark.persist.log.state import State
from noonmark.rows.schema import Schema
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.ir.relation import Filter, Project, Relation, Scan
from noonmark.sql.ir.scalar import (
    ColumnRef,
    Compare,
    Scalar,
    column,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
)
from noonmark.sql.plan.row import Statement
from noonmark.sql.rules import simplify
from noonmark.sql.rules.rewrite import bottom_up


@dataclass(frozen=True)
class Filled:
    """Which indexes of a catalog have contents.

    Attributes:
        numbers: theirs.
        settled: whether all have: what is planned now is as good as it will be.
    """

    numbers: frozenset[int]
    settled: bool

    @classmethod
    def of(cls, catalog: Catalog, state: State) -> Filled:
        """Those of a catalog."""
        items = list(catalog.items("index"))
        filled = frozenset(item.number for item in items if _has_contents(state, item))
        return cls(filled, len(filled) == len(items))


def _has_contents(state: State, item: Item) -> bool:
    if item.collection not in state.names:
        return False
    found = state.collection(item.collection)
    return found.upper != found.since


class Indexes:
    """The indexes of one catalog, as far as they can be read."""

    def __init__(self, catalog: Catalog, filled: Filled) -> None:
        self._catalog = catalog
        self.settled = filled.settled
        self._on: dict[int, list[Item]] = {}
        self._computed: dict[int, list[Item]] = {}
        for number in sorted(filled.numbers):
            item = catalog.by_number[number]
            if "elements" in item.definition:
                self._computed.setdefault(item.definition["on"], []).append(item)
                continue  # it has other rows, or more columns
            self._on.setdefault(item.definition["on"], []).append(item)

    def keeping(self, view: Item) -> Item | None:
        """An index that keeps all rows of a view."""
        return next(iter(self._on.get(view.number, ())), None)

    def used(self, peek: Peek, state: State, rows_max: int = ROWS_MAX) -> Peek:
        """The peek, its leaves through indexes where that is better."""
        if self._computed:
            relation = bottom_up(partial(self._through, state, rows_max))(peek.relation)
            if relation != peek.relation:
                peek = Peek.of(simplify(relation), peek.order, peek.width, peek.system)
        if not self._on:
            return peek
        leaves = tuple([self._better(leaf, state, rows_max) for leaf in peek.shape.leaves])
        return replace(peek, shape=replace(peek.shape, leaves=leaves))

    def _better(self, leaf: Leaf, state: State, rows_max: int) -> Leaf:
        if not leaf.keys or leaf.collection not in state.names:
            return leaf
        own = state.collection(leaf.collection)
        item = self._catalog.of_collection(leaf.collection)
        if item is None or prefix_of(leaf, own) or row_count(own) <= rows_max:
            return leaf
        for index in self._on.get(item.number, ()):
            found = state.collection(index.collection)
            has_all = set(leaf.scan.columns.names) <= set(found.schema.names)
            if has_all and prefix_of(leaf, found):
                return replace(leaf, scan=Scan(index.collection, leaf.scan.columns))
        return leaf

    def _through(self, state: State, rows_max: int, node: Relation) -> Relation:
        """A filter of a large relation through an index of expressions, or of some rows."""
        if not isinstance(node, Filter) or not isinstance(node.input, Scan):
            return node
        item = self._catalog.of_collection(node.input.collection)
        found = () if item is None else self._computed.get(item.number, ())
        if not found or row_count(state.collection(node.input.collection)) <= rows_max:
            return node
        for index in found:
            made = _Computed.of(index).through(node.input, node.predicate)
            if made is not None:
                return made
        return node


@dataclass(frozen=True)
class _Computed:
    """An index of expressions, or of some rows, as filters of its relation are read through it.

    Attributes:
        item: the index; its key are columns of its own, also where they are those of a relation.
        width: how many columns the relation has.
        scalars: what each of its other columns is, over the relation's.
        demanded: what is true of all its rows.
    """

    item: Item
    width: int
    scalars: tuple[Scalar, ...]
    demanded: frozenset[Scalar]

    @classmethod
    def of(cls, item: Item) -> _Computed:
        """An index of the catalog."""
        has = item.definition
        ((table, (_, width)),) = has["names"].items()
        schema = Schema(item.schema.columns[:width])
        known = Statement({}, types=TypeNames(None, item.types))
        texts = [unqualified(text) for name, text in has["elements"] if name is None]
        scalars = tuple(element(table, schema, parse_scalar(text), known) for text in texts)
        demanded: frozenset[Scalar] = frozenset()
        if has["where"] is not None:
            where = parse_scalar(unqualified(has["where"]))
            demanded = frozenset(conjuncts(predicate(table, schema, where, known)))
        return cls(item, width, scalars, demanded)

    def through(self, scan: Scan, condition: Scalar) -> Relation | None:
        """The rows of a scan that a condition is true of, if a look-up in the index finds them."""
        schema, names = self.item.schema, scan.columns.names
        if not set(names) <= set(schema.names[: self.width]):
            return None
        places = [schema.index(name) for name in names]

        def own(ref: ColumnRef) -> Scalar:
            return column(places[ref.index], schema.columns[places[ref.index]])

        parts = [map_columns(part, own) for part in conjuncts(condition)]
        if not self.demanded <= set(parts):
            return None
        left = [self._looked_up(part) for part in parts if part not in self.demanded]
        made = Filter(Scan(self.item.collection, schema), conjunction(left)) if left else None
        if made is None or not self._finds(left):
            return None
        return Project(made, tuple(column(at, schema.columns[at]) for at in places), names)

    def _looked_up(self, part: Scalar) -> Scalar:
        """A comparison with an expression of the index, as one with its column."""
        if isinstance(part, Compare) and part.op == "=":
            for one, other in ((part.left, part.right), (part.right, part.left)):
                if one in self.scalars and not columns_of(other):
                    at = self.width + self.scalars.index(one)
                    return Compare("=", column(at, self.item.schema.columns[at]), other)
        return part

    def _finds(self, parts: Sequence[Scalar]) -> bool:
        """Whether the first column of the index's key is equal to something known."""
        first = self.item.schema.index(self.item.key[0])
        return any(
            isinstance(part, Compare)
            and part.op == "="
            and any(isinstance(side, ColumnRef) and side.index == first
                    for side in (part.left, part.right))
            for part in parts
        )  # fmt: skip
