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

from dataclasses import dataclass, replace

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.gather import prefix_of
from noonmark.adapter.peek.mirrors import ROWS_MAX, row_count
from noonmark.adapter.peek.shape import Leaf
from noonmark.persist.log.state import State
from noonmark.sql.ir.relation import Scan


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
        for number in sorted(filled.numbers):
            item = catalog.by_number[number]
            self._on.setdefault(item.definition["on"], []).append(item)

    def keeping(self, view: Item) -> Item | None:
        """An index that keeps all rows of a view."""
        return next(iter(self._on.get(view.number, ())), None)

    def used(self, peek: Peek, state: State, rows_max: int = ROWS_MAX) -> Peek:
        """The peek, its leaves through indexes where that is better."""
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
