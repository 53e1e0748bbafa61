"""A collection in memory: its rows at one time, by key, brought forward by its updates.

A mirror knows the contents at `as_of`, and that nothing changed after `changed`: so it answers for
every time in ``[changed, as_of]``, all of which have the same contents.

Law: ``rows`` is the collection's contents at every time t with ``changed <= t <= as_of``. `advance`
with exactly the updates after `as_of` up to t keeps it so.

Columns are only ever added, at the end, and rows that are there have NULL in them. So a mirror
follows a schema that grew by filling its rows up (`widen`), and a row that was decoded under an
older schema is filled up when it is taken in.

Law (width): every row of ``rows`` has exactly the columns of ``schema``.

An index maps the values of some columns to the rows that have them. It is only made of columns
whose Python equality is SQL's, in the form of `order.equal_form` (`can_index`); NULL equals nothing
and is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable

from noonmark.adapter.peek.rows import Change, Row
from noonmark.errors import IntegrityError
from noonmark.rows import types as t
from noonmark.rows.order import equal_form
from noonmark.rows.schema import Schema

_EQUAL_AS_THEY_ARE = (
    t.Boolean, t.SmallInt, t.Integer, t.BigInt, t.Text, t.Varchar, t.Bytea, t.Uuid, t.Date,
    t.Timestamp, t.TimestampTz, t.Numeric, t.Enum,
)  # fmt: skip

#: By the values of some columns: the one row that has them, or the rows.
Index = dict[Row, Row | dict[Row, None]]


def can_index(kind: t.SqlType) -> bool:
    """Whether values of the type are equal in SQL exactly when they are in Python."""
    if isinstance(kind, t.Coded):
        return kind.one_form
    return isinstance(kind, _EQUAL_AS_THEY_ARE)


class Mirror:
    """See the module. Used by one thread."""

    def __init__(
        self, name: str, schema: Schema, rows: Iterable[tuple[Row, int]], as_of: int
    ) -> None:
        self.name = name
        self.schema = schema
        self.rows: dict[Row, int] = {}
        self.as_of = self.changed = as_of
        self._negative = 0
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._add(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def covers(self, time: int) -> bool:
        """Whether the contents are known to be those of `time`."""
        return self.changed <= time <= self.as_of

    def advance(self, updates: Iterable[Change], as_of: int) -> None:
        """Take in every update at a time after `as_of` up to the new one."""
        taken = list(updates)
        if taken:
            times = [time for _, time, _ in taken]
            assert self.as_of < min(times) <= max(times) <= as_of, "each update is taken in once"
            self.changed = max(times)
            fill = self.schema.fill
            self._add((fill(row), diff) for row, _, diff in taken)
        self.as_of = max(self.as_of, as_of)

    def widen(self, schema: Schema) -> None:
        """Follow a schema that has more columns than this one's; nothing for any other."""
        if len(schema) <= len(self.schema):
            return
        assert schema.extends(self.schema), "columns are only added"
        self.schema = schema
        self.rows = {schema.fill(row): count for row, count in self.rows.items()}
        self._indexes.clear()

    def find(self, columns: tuple[int, ...], key: Row) -> list[tuple[Row, int]]:
        """The rows whose `columns` have the values `key`, with their multiplicities."""
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = self._index(columns)
        found = index.get(tuple(map(equal_form, key)))
        if found is None:
            return []
        if isinstance(found, dict):
            return [(row, self.rows[row]) for row in found]
        return [(found, self.rows[found])]

    def _index(self, columns: tuple[int, ...]) -> Index:
        index: Index = {}
        for row in self.rows:
            _put(index, columns, row)
        return index

    def _add(self, changes: Iterable[tuple[Row, int]]) -> None:
        rows = self.rows
        for row, diff in changes:
            before = rows.get(row, 0)
            after = before + diff
            if after:
                rows[row] = after
            elif before:
                del rows[row]
            self._negative += (after < 0) - (before < 0)
            if bool(before) != bool(after):
                change = _put if after else _take
                for columns, index in self._indexes.items():
                    change(index, columns, row)
        if self._negative:
            raise IntegrityError(
                f'"{self.name}" has rows with negative multiplicity',
                detail="More copies of a row were retracted than written.",
            )


def _key(columns: tuple[int, ...], row: Row) -> Row | None:
    key = tuple([equal_form(row[at]) for at in columns])
    return None if None in key else key


def _put(index: Index, columns: tuple[int, ...], row: Row) -> None:
    key = _key(columns, row)
    if key is None:
        return
    found = index.get(key)
    if found is None:
        index[key] = row
    elif isinstance(found, dict):
        found[row] = None
    else:
        index[key] = {found: None, row: None}


def _take(index: Index, columns: tuple[int, ...], row: Row) -> None:
    key = _key(columns, row)
    if key is None:
        return
    found = index[key]
    if isinstance(found, dict):
        del found[row]
        if not found:
            del index[key]
    else:
        del index[key]
