"""What becomes of rows that refer to others: ON DELETE and ON UPDATE of foreign keys.

Law (action): when a statement takes a row out of a table, or changes a key of it, each row that
refers to that key is taken out as well (CASCADE), or refers to the key's new value (CASCADE of an
update), to nothing (SET NULL) or to its default (SET DEFAULT); and so on for who refers to those.

All of it is part of the statement: it is computed from the same read, and committed with it, so
tables that may be acted on are among those that the statement needs (`acted_on`). NO ACTION and
RESTRICT do nothing here; what they forbid is seen where rows are committed, by
`adapter.table.enforce`.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.statement.dml.default import default_value
from noonmark.adapter.statement.dml.fitting import fitted_rows
from noonmark.adapter.statement.dml.read import Reading, Write, Writes
from noonmark.adapter.statement.dml.target import Row
from noonmark.adapter.table.constraints import Foreign, referencing
from noonmark.adapter.table.enforce import Columns
from noonmark.sql.ir.relation import Filter, Scan
from noonmark.sql.ir.scalar import And, Compare, InList, Literal, Or, Scalar, column, conjunction
from noonmark.sql.rules import simplify

#: A row, what became of it (None: it is gone), and how many of it.
Move = tuple[Row, Row | None, int]
_PASSIVE = ("no action", "restrict")


def acted_on(catalog: Catalog, item: Item) -> frozenset[str]:
    """The collections that a change of a table may change too."""
    found: dict[int, Item] = {}
    waiting = [item]
    while waiting:
        for child, foreign in referencing(catalog, waiting.pop()):
            active = foreign.on_delete not in _PASSIVE or foreign.on_update not in _PASSIVE
            if active and child.number not in found:
                found[child.number] = child
                waiting.append(child)
    return frozenset(each.collection for each in found.values())


async def with_actions(
    reading: Reading, catalog: Catalog, item: Item, writes: Sequence[Write], moves: Iterable[Move]
) -> Writes:
    """What a statement writes to a table and, by it, to others.

    Args:
        reading: what the statement reads.
        catalog: the catalog of its plan.
        item: the table.
        writes: what it writes there.
        moves: the rows among it that go or change.
    """
    if not acted_on(catalog, item):
        return {item.collection: writes}
    actions = _Actions(reading, catalog)
    for row, diff in writes:
        actions.changed[item.collection][row] += diff
    await actions.follow(item, list(moves))
    return {
        name: [(row, diff) for row, diff in rows.items() if diff]
        for name, rows in actions.changed.items()
    }


class _Actions:
    """The actions of one statement; `changed` is what it writes so far, by collection."""

    def __init__(self, reading: Reading, catalog: Catalog) -> None:
        self._reading = reading
        self._catalog = catalog
        self.changed: dict[str, Counter[Row]] = defaultdict(Counter)

    async def follow(self, item: Item, moves: list[Move]) -> None:
        """Act on everything that refers to these rows."""
        waiting = deque([(item, moves)])
        while waiting:
            parent, moves = waiting.popleft()
            for child, foreign in list(referencing(self._catalog, parent)):
                found = await self._act(parent, child, foreign, moves)
                for old, new, count in found:
                    self.changed[child.collection][old] -= count
                    if new is not None:
                        self.changed[child.collection][new] += count
                if found:
                    waiting.append((child, found))

    async def _act(
        self, parent: Item, child: Item, foreign: Foreign, moves: list[Move]
    ) -> list[Move]:
        others = Columns(parent.schema, foreign.others)
        own = Columns(child.schema, foreign.columns)
        wanted: dict[Row, tuple[str, Row | None]] = {}
        keys: list[Row] = []
        for old, new, _ in moves:
            key = others.key(old)
            after = None if new is None else others.key(new)
            action = foreign.on_delete if after is None else foreign.on_update
            kept = after is not None and others.form(after) == others.form(key)
            if None not in key and not kept and action not in _PASSIVE:
                wanted[others.form(key)] = (action, after)
                keys.append(key)
        found: list[tuple[Row, int]] = []
        wholes: list[list[Any] | None] = []
        for row, count in (await self._rows(child, own, keys)).items() if keys else ():
            action, after = wanted.get(own.form(own.key(row)), ("", None))
            if action and count > 0:
                found.append((row, count))
                wholes.append(self._became(child, own, row, action, after))
        rows = [whole for whole in wholes if whole is not None]
        made = iter(await fitted_rows(self._reading.session.database.workers, child, rows))
        news = [None if whole is None else next(made) for whole in wholes]
        return [(row, new, count) for (row, count), new in zip(found, news, strict=True)]

    def _became(
        self, child: Item, own: Columns, row: Row, action: str, after: Row | None
    ) -> list[Any] | None:
        if action == "cascade" and after is None:
            return None
        whole = list(row)
        for at, place in enumerate(own.places):
            if action == "cascade":
                assert after is not None
                whole[place] = after[at]
            elif action == "set null":
                whole[place] = None
            else:
                whole[place] = default_value(self._reading.session, child, place)
        return whole

    async def _rows(self, child: Item, own: Columns, keys: Sequence[Row]) -> Counter[Row]:
        """The rows that have these keys, as the statement left them so far."""
        scan = Scan(child.collection, child.schema)
        peek = Peek.of(simplify(Filter(scan, has_key(child, own.places, set(keys)))))
        found = Counter(await self._reading.multiset(peek))
        found.update(self.changed[child.collection])
        return found


def has_key(item: Item, places: tuple[int, ...], keys: set[Row]) -> Scalar:
    """Whether a row of a table has one of these keys."""
    return with_keys([column(place, item.schema.columns[place]) for place in places], keys)


def with_keys(refs: Sequence[Scalar], keys: set[Row]) -> Scalar:
    """Whether these scalars are those of one of the keys."""
    if len(refs) == 1:
        return InList(refs[0], tuple(Literal(refs[0].type, key[0]) for key in keys))
    each = [
        And(
            tuple(
                Compare("=", ref, Literal(ref.type, value))
                for ref, value in zip(refs, key, strict=True)
            )
        )
        for key in keys
    ]
    return Or(tuple(each)) if len(each) > 1 else conjunction(each)
