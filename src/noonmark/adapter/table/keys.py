"""Keys of tables: no two rows of one key.

Where it runs: the adapter's loop, of many rows a thread; pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.adapter.table.inserted import InsertedRows
from noonmark.adapter.table.requests import Encoded, Row, Write, updates_at
from noonmark.errors import UniqueViolation
from noonmark.persist.log.state import Collection
from noonmark.persist.read.plan import Query
from noonmark.rows import types as t
from noonmark.rows.arrow import to_table
from noonmark.rows.order import row_key
from noonmark.rows.pg.text import format_value

_ROWS_SHOWN = 200
#: What it takes to look at the key of a row, as characters of a text are counted (`aside`).
ROW_WEIGHT = 20
#: Types whose values are equal in SQL exactly when they are stored as the same bits.
_SAME_BITS = (t.SmallInt, t.Integer, t.BigInt, t.Text, t.Varchar, t.Date, t.Uuid, t.Boolean,
              t.Timestamp, t.TimestampTz, t.Bytea, t.Enum)  # fmt: skip
_COUNTED = (t.SmallInt, t.Integer, t.BigInt)


def _has_same_bits(kind: t.SqlType) -> bool:
    return kind.one_form if isinstance(kind, t.Coded) else isinstance(kind, _SAME_BITS)


@dataclass(frozen=True)
class Keys:
    """The rows of some keys of a table. Keys are one when they are equal in SQL: 0 and -0 are.

    No table has two rows of one key, so none has after a write that takes as many rows of a key as
    it adds: an UPDATE of other columns, a DELETE. Only keys that some write adds are looked at.
    """

    collection: Collection
    places: tuple[int, ...]
    equal: Callable[[Row], Row] | None  # None: equal keys are the same
    rows: Counter[Row]
    #: The keys that are looked at, by their form; None for all of them.
    wanted: Mapping[Row, Row] | None = None

    @classmethod
    def of(cls, collection: Collection) -> Keys:
        """No rows yet."""
        places = tuple(collection.schema.index(column) for column in collection.key)
        types = tuple(collection.schema.columns[place].type for place in places)
        equal = None if have_same_bits(collection) else row_key(types)
        return cls(collection, places, equal, Counter())

    def key(self, row: Row) -> Row:
        """The values of the key, as they are."""
        return tuple([row[place] for place in self.places])

    def form(self, row: Row) -> Row:
        """What rows have in common iff their keys are equal."""
        key = self.key(row)
        return key if self.equal is None else self.equal(key)

    def added_by(self, each: Iterable[Sequence[Write]]) -> Keys:
        """No rows yet, of the keys of which one of these writes adds more rows than it takes."""
        wanted: dict[Row, Row] = {}
        for writes in each:
            net: Counter[Row] = Counter()
            keys: dict[Row, Row] = {}
            for row, diff in writes:
                key = self.key(row)
                form = key if self.equal is None else self.equal(key)
                net[form] += diff
                keys[form] = key
            wanted |= {form: keys[form] for form, count in net.items() if count > 0}
        return replace(self, rows=Counter(), wanted=wanted)

    def take(self, rows: Mapping[Row, int]) -> None:
        """Those of the rows whose keys are wanted."""
        wanted = self.wanted
        assert wanted is not None, "rows are looked up for keys that are known"
        self.rows.update({row: n for row, n in rows.items() if self.form(row) in wanted})

    def tried(self, writes: Sequence[Write], constraint: str = "") -> Keys:
        """These rows after the writes; raises `UniqueViolation`, by the name of the key."""
        rows, fill, wanted = Counter(self.rows), self.collection.schema.fill, self.wanted
        counts: Counter[Row] = Counter()
        for row, count in rows.items():
            counts[self.form(row)] += count
        for row, diff in writes:
            form = self.form(row)
            if wanted is None or form in wanted:
                counts[form] += diff
                rows[fill(row)] += diff
        if any(count > 1 for count in counts.values()):
            for row, _ in writes:
                if counts[self.form(row)] > 1:
                    raise self._violated(self.key(row), constraint)
        return replace(self, rows=rows)

    def _violated(self, key: Row, constraint: str) -> UniqueViolation:
        name, columns = self.collection.name, self.collection.key
        constraint = constraint or f"{name}_pkey"
        types = [self.collection.schema[column].type for column in columns]
        shown = ", ".join(
            format_value(value, type_) for value, type_ in zip(key, types, strict=True)
        )
        return UniqueViolation(
            f'duplicate key value violates unique constraint "{constraint}"',
            detail=f"Key ({', '.join(columns)})=({shown[:_ROWS_SHOWN]}) already exists.",
            table=name,
            constraint=constraint,
            shows=name,
        )


def have_same_bits(collection: Collection) -> bool:
    """Whether Arrow knows what SQL calls equal keys."""
    return all(_has_same_bits(collection.schema[each].type) for each in collection.key)


def are_distinct(keys: pa.Table) -> bool:
    """Whether no key is there twice, of keys that `have_same_bits`."""
    return bool(keys.group_by(keys.column_names).aggregate([]).num_rows == keys.num_rows)


def meet(stored: pa.Table, keys: pa.Table) -> bool:
    """Whether two tables of such keys have one in common."""
    names = keys.column_names
    if len(names) == 1:
        values = keys.column(0).combine_chunks()
        return bool(pc.any(pc.is_in(stored.column(0), value_set=values)).as_py())
    return bool(stored.join(keys, names, join_type="left semi", use_threads=False).num_rows)


def query_of_range(collection: Collection, keys: pa.Table, time: int) -> Query:
    """The query for the keys at a time that may be among these: those of parts of their range."""
    first = collection.key[0]
    where = {}
    if isinstance(collection.schema[first].type, _COUNTED) and keys.num_rows:
        ends = pc.min_max(keys.column(first)).as_py()
        where = {first: (ends["min"], ends["max"])}
    return Query(time, columns=collection.key, where=where)


def first_rows(found: Collection, writes: Sequence[Write]) -> Callable[[int], pa.Table]:
    """The rows that a table is made with, as updates at the time of that.

    Raises:
        UniqueViolation: a key would be there twice.
    """
    if not found.key and isinstance(writes, InsertedRows) and _is_of(writes.table, found):
        return partial(_updates, [Encoded.inserted(found.id, writes.table)])
    if found.key:
        Keys.of(found).tried(writes)
    data = to_table([row for row, _ in writes], found.schema)
    return partial(_updates, [Encoded.of(found.id, data, writes)])


def _is_of(table: pa.Table | None, found: Collection) -> bool:
    return table is not None and tuple(table.column_names) == found.schema.names


def _updates(parts: list[Encoded], time: int) -> pa.Table:
    return updates_at(time, parts)
