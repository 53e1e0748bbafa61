"""UNIQUE and FOREIGN KEY, enforced where rows are committed.

Law (unique): no table ever has two rows that are equal in the columns of a unique constraint, where
NULL is equal to nothing, or to NULL if the constraint says so.
Law (foreign): at every time, the values of a foreign key, where none is NULL, are those of a row
that the other table has at that time.

The committer is the only writer of tables. So what columns hold can be counted once, by reading
them, and then kept in step with every commit: an `Index` is how often each key is there. It lives
in memory, is made by the first write that needs it, and is forgotten where a commit's fate is in
doubt; what is stored is the table alone, so there is nothing that could differ from it.

Where it runs: the adapter's loop; reading on persist's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item
from noonmark.adapter.table.constraints import (
    Foreign,
    Unique,
    foreigns_of,
    referencing,
    uniques_of,
)
from noonmark.adapter.table.keyed import Keyed, keyed
from noonmark.adapter.table.requests import Row, Write
from noonmark.adapter.worker.pool import Pool
from noonmark.errors import UniqueViolation, UsageError
from noonmark.persist.log.state import Collection, State
from noonmark.rows.order import row_key
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Schema

#: Reads some columns of a collection, whole, as they are now.
ReadColumns = Callable[[Collection, tuple[str, ...]], Awaitable[Iterable[tuple[Row, int]]]]
#: A table by the number of its item, and columns of it.
Place = tuple[int, tuple[str, ...]]
#: The keys of rows in indexes of expressions, by collection and place: None for a row that is in no
#: such index.
Computed = Mapping[tuple[str, Place], Sequence[Row | None]]
_SHOWN_MAX = 200


class ForeignKeyViolation(UsageError, id="foreign_key_violation", sqlstate="23503"):
    """A row without the row that it refers to."""


class RestrictViolation(UsageError, id="restrict_violation", sqlstate="23001"):
    """A row that others refer to with RESTRICT."""


class Columns:
    """Some columns of a schema: the key that a row has in them."""

    def __init__(self, schema: Schema, names: tuple[str, ...]) -> None:
        self.names = names
        self.places = tuple(schema.index(name) for name in names)
        self.types = tuple(schema.columns[place].type for place in self.places)
        self._equal = row_key(self.types)

    def key(self, row: Row) -> Row:
        """The values, as they are."""
        return tuple([row[place] for place in self.places])

    def form(self, key: Row) -> Row:
        """What keys have in common iff they are equal; NULL is equal to NULL here."""
        form: Row = self._equal(key)
        return form

    def shown(self, key: Row) -> str:
        """``(a, b)=(1, x)``, as PostgreSQL writes it."""
        texts = ["null" if each is None else format_value(each, kind)
                 for each, kind in zip(key, self.types, strict=True)]  # fmt: skip
        return f"({', '.join(self.names)})=({', '.join(texts)[:_SHOWN_MAX]})"


@dataclass
class Trial:
    """What requests add to the counts, before they are committed; `below` are those before them."""

    added: dict[Place, Counter[Row]] = field(default_factory=dict)
    below: Trial | None = None

    def count(self, place: Place) -> Counter[Row]:
        """The changes of one index."""
        return self.added.setdefault(place, Counter())

    def total(self, place: Place, form: Row) -> int:
        """What a key has more than is stored."""
        found = self.added.get(place)
        own = 0 if found is None else found[form]
        return own if self.below is None else own + self.below.total(place, form)

    def add(self, group: Group, writes: Mapping[str, Sequence[Write]], computed: Computed) -> Trial:
        """Count rows."""
        for name, rows in writes.items():
            item = group.named(name)
            if item is None:
                continue
            for place in group.places_of(item):
                columns, counts = Columns(item.schema, place[1]), self.count(place)
                for row, diff in rows:
                    counts[columns.form(columns.key(item.schema.fill(row)))] += diff
            for place, index in group.keyed_of(item).items():
                counts = self.count(place)
                for key, (_, diff) in zip(computed[name, place], rows, strict=True):
                    if key is not None:
                        counts[index.form(key)] += diff
        return self

    def take(self, other: Trial) -> None:
        """What stood on this one is part of it."""
        for place, counts in other.added.items():
            self.count(place).update(counts)


class Constraints:
    """See the module."""

    def __init__(self, read: ReadColumns, pool: Callable[[], Pool]) -> None:
        self._read = read
        self._pool = pool
        #: By the id of a collection, and columns.
        self._indexes: dict[tuple[int, tuple[str, ...]], Counter[Row]] = {}

    def forget(self, collections: Iterable[int]) -> None:
        """What these hold is in doubt: it is read again."""
        gone = set(collections)
        self._indexes = {at: each for at, each in self._indexes.items() if at[0] not in gone}

    async def prepare(self, group: Group, names: Iterable[str]) -> None:
        """Have every index that writes to these tables are checked by."""
        for place in group.places(names):
            collection = group.collection(place[0])
            if collection is None:
                continue  # it is made by this commit, and empty
            at = (collection.id, place[1])
            if at not in self._indexes:
                columns = Columns(group.item(place[0]).schema, place[1])
                counts: Counter[Row] = Counter()
                for key, count in await self._read(collection, place[1]):
                    counts[columns.form(key)] += count
                self._indexes[at] = counts
        for item in map(group.named, names):
            if item is not None:
                await self._prepare_keyed(group, item)

    async def _prepare_keyed(self, group: Group, item: Item) -> None:
        collection = group.collection(item.number)
        for place, index in () if collection is None else group.keyed_of(item).items():
            assert collection is not None
            at = (collection.id, place[1])
            if at not in self._indexes:
                counts: Counter[Row] = Counter()
                found = [*await self._read(collection, item.schema.names)]
                keys = await index.keys(self._pool(), [row for row, _ in found])
                for key, (_, count) in zip(keys, found, strict=True):
                    if key is not None:
                        counts[index.form(key)] += count
                self._indexes[at] = counts

    async def computed(self, group: Group, writes: Mapping[str, Sequence[Write]]) -> Computed:
        """The keys that rows have in indexes of expressions."""
        found: dict[tuple[str, Place], Sequence[Row | None]] = {}
        for name, rows in writes.items():
            item = group.named(name)
            for place, index in () if item is None else group.keyed_of(item).items():
                assert item is not None
                whole = [item.schema.fill(row) for row, _ in rows]
                found[name, place] = await index.keys(self._pool(), whole)
        return found

    def check(
        self,
        group: Group,
        writes: Mapping[str, Sequence[Write]],
        trial: Trial,
        computed: Computed,
        waits: Callable[[Item, Foreign], bool] = lambda *_: False,
    ) -> Trial:
        """A trial of a request's writes on top of another one; raises where one would not hold.

        Args:
            group: what holds.
            writes: (row, diff) by collection.
            trial: what comes before them.
            computed: the keys of the writes (`computed`).
            waits: whether a foreign key is not checked yet.

        Raises:
            UniqueViolation, ForeignKeyViolation: then nothing of the request may happen.
        """
        made = Trial(below=trial).add(group, writes, computed)
        for name, rows in writes.items():
            item = group.named(name)
            if item is not None:
                self._check_uniques(group, item, rows, made, computed)
                self._check_foreigns(group, item, rows, made, waits)
        return made

    def committed(self, group: Group, trial: Trial) -> None:
        """What was tried has happened."""
        for (number, columns), added in trial.added.items():
            collection = group.collection(number)
            found = None if collection is None else self._indexes.get((collection.id, columns))
            if found is not None:
                for form, count in added.items():
                    found[form] += count
                    if not found[form]:
                        del found[form]

    def _total(self, group: Group, place: Place, form: Row, trial: Trial) -> int:
        collection = group.collection(place[0])
        base = 0 if collection is None else self._indexes[collection.id, place[1]][form]
        return base + trial.total(place, form)

    def _check_uniques(
        self,
        group: Group,
        item: Item,
        rows: Sequence[Write],
        trial: Trial,
        computed: Computed,
    ) -> None:
        for unique in uniques_of(item):
            place = (item.number, unique.place)
            columns: Columns | Keyed
            if unique.is_plain:
                columns = Columns(item.schema, unique.columns)
                keys: Iterable[Row | None] = (columns.key(item.schema.fill(row)) for row, _ in rows)
            else:
                columns, keys = keyed(item, unique), computed[item.collection, place]
            for key, (_, diff) in zip(keys, rows, strict=True):
                if key is None or diff <= 0 or (unique.nulls_distinct and None in key):
                    continue
                if self._total(group, place, columns.form(key), trial) > 1:
                    raise duplicate(item, unique, columns.shown(key))

    def _check_foreigns(
        self,
        group: Group,
        item: Item,
        rows: Sequence[Write],
        trial: Trial,
        waits: Callable[[Item, Foreign], bool],
    ) -> None:
        for foreign in foreigns_of(item):
            if waits(item, foreign):
                continue
            columns = Columns(item.schema, foreign.columns)
            own, there = (item.number, foreign.columns), (foreign.parent, foreign.others)
            for row, diff in rows:
                key = columns.key(item.schema.fill(row))
                if diff <= 0 or None in key:
                    continue
                form = columns.form(key)
                # A transaction may have taken the row back.
                if (self._total(group, there, form, trial) < 1
                        and self._total(group, own, form, trial) > 0):  # fmt: skip
                    raise absent(item, foreign, group.item(foreign.parent), columns.shown(key))
        updates = any(diff > 0 for _, diff in rows)
        for child, foreign in referencing(group.catalog, item):
            strict = (foreign.on_update if updates else foreign.on_delete) == "restrict"
            if waits(child, foreign) and not strict:
                continue
            columns = Columns(item.schema, foreign.others)
            for row, diff in rows:
                key = columns.key(item.schema.fill(row))
                if diff >= 0 or None in key:
                    continue
                form = columns.form(key)
                left = self._total(group, (item.number, foreign.others), form, trial)
                if left < 1 and self._total(group, (child.number, foreign.columns), form, trial):
                    raise referenced(item, child, foreign, columns.shown(key), strict=strict)


@dataclass
class Group:
    """What requests are checked against: a catalog, and the collections of its tables."""

    catalog: Catalog
    state: State
    #: What a transaction made: nothing of it is stored.
    made: frozenset[str] = frozenset()

    def named(self, name: str) -> Item | None:
        """The table of a collection, if it has constraints of this kind."""
        item = self.catalog.of_collection(name)
        if item is None or item.kind != "table":
            return None
        return item if self.places_of(item) or self.keyed_of(item) else None

    def item(self, number: int) -> Item:
        """A table."""
        return self.catalog.by_number[number]

    def collection(self, number: int) -> Collection | None:
        """What stores a table; None where nothing does yet."""
        return self.stored(self.item(number).collection)

    def stored(self, name: str) -> Collection | None:
        """The collection of that name; None where there is none yet."""
        found = None if name in self.made else self.state.names.get(name)
        return None if found is None else self.state.collections[found]

    def places_of(self, item: Item) -> set[Place]:
        """The columns of a table that are counted."""
        own = {(item.number, each.columns) for each in uniques_of(item) if each.is_plain}
        own |= {(item.number, foreign.columns) for foreign in foreigns_of(item)}
        return own | {(item.number, each.others) for _, each in referencing(self.catalog, item)}

    def keyed_of(self, item: Item) -> Mapping[Place, Keyed]:
        """The indexes of expressions of a table, that are unique."""
        own = (each for each in uniques_of(item) if not each.is_plain)
        return {(item.number, each.place): keyed(item, each) for each in own}

    def places(self, names: Iterable[str]) -> set[Place]:
        """All that writes to these tables are checked by."""
        found: set[Place] = set()
        for name in names:
            item = self.named(name)
            if item is None:
                continue
            found |= self.places_of(item)
            found |= {(each.parent, each.others) for each in foreigns_of(item)}
            found |= {(c.number, each.columns) for c, each in referencing(self.catalog, item)}
        return found


def duplicate(item: Item, unique: Unique, shown: str) -> UniqueViolation:
    """Two rows of one key."""
    return UniqueViolation(
        f'duplicate key value violates unique constraint "{unique.name}"',
        detail=f"Key {shown} already exists.",
        schema=item.schema_name,
        table=item.name,
        constraint=unique.name,
        shows=item.collection,
    )


def absent(item: Item, foreign: Foreign, parent: Item, shown: str) -> ForeignKeyViolation:
    """A row that refers to nothing."""
    return ForeignKeyViolation(
        f'insert or update on table "{item.name}" violates foreign key constraint "{foreign.name}"',
        detail=f'Key {shown} is not present in table "{parent.name}".',
        schema=item.schema_name,
        table=item.name,
        constraint=foreign.name,
        shows=item.collection,
        unshown=f'Key is not present in table "{parent.name}".',
    )


def referenced(
    item: Item, child: Item, foreign: Foreign, shown: str, *, strict: bool
) -> UsageError:
    """A row that others refer to is gone; `strict` where RESTRICT says that it may not go."""
    where = f'foreign key constraint "{foreign.name}" on table "{child.name}"'
    kind, what, how = (
        (RestrictViolation, "RESTRICT setting of ", "is")
        if strict
        else (ForeignKeyViolation, "", "is still")
    )
    return kind(
        f'update or delete on table "{item.name}" violates {what}{where}',
        detail=f'Key {shown} {how} referenced from table "{child.name}".',
        schema=child.schema_name,
        table=child.name,
        constraint=foreign.name,
        shows=item.collection,
        unshown=f'Key {how} referenced from table "{child.name}".',
    )
