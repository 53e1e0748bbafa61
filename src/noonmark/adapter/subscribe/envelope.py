"""Changes as rows for a client.

    none       mz_timestamp, [mz_progressed,] mz_diff, the columns
    upsert     mz_timestamp, [mz_progressed,] mz_state, the key, the other columns
    debezium   mz_timestamp, [mz_progressed,] mz_state, the key, before_x, ..., after_x, ...

`mz_state` is "upsert" (with DEBEZIUM "insert" where nothing was there before), "delete", or
"key_violation" when at one time a key has more than one row; then all but the key is NULL.

Law (upsert): following the rows at times up to t gives, for each key without a violation, the row
of that key in the query's contents at t.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from noonmark.adapter.contract import Field
from noonmark.adapter.peek.rows import Change, Row
from noonmark.errors import InvalidReference, UndefinedColumn
from noonmark.rows import types as t
from noonmark.rows.order import row_key

TIMESTAMP = Field("mz_timestamp", t.Numeric(20, 0))
PROGRESSED = Field("mz_progressed", t.Boolean())
DIFF = Field("mz_diff", t.BigInt())
STATE = Field("mz_state", t.Text())


@dataclass(frozen=True)
class Envelope:
    """How changes are shown.

    Attributes:
        columns: those of the query.
        kind: None, "upsert" or "debezium".
        key: the positions of the key's columns.
        progress: whether progress is told.
    """

    columns: tuple[Field, ...]
    kind: str | None = None
    key: tuple[int, ...] = ()
    progress: bool = False

    @classmethod
    def of(
        cls, columns: tuple[Field, ...], kind: str | None, key: Sequence[str], progress: bool
    ) -> Envelope:
        """An envelope whose key is named."""
        names = [field.name for field in columns]
        for name in key:
            if name not in names:
                raise UndefinedColumn(f'column "{name}" in KEY does not exist')
            if names.count(name) > 1 or list(key).count(name) > 1:
                raise InvalidReference(f'column "{name}" in KEY is ambiguous')
        return cls(columns, kind, tuple(names.index(name) for name in key), progress)

    @property
    def values(self) -> tuple[int, ...]:
        """The positions of the columns that are not in the key."""
        return tuple(at for at in range(len(self.columns)) if at not in self.key)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the rows that the client gets."""
        start = (TIMESTAMP, PROGRESSED) if self.progress else (TIMESTAMP,)
        if self.kind is None:
            return (*start, DIFF, *self.columns)
        keys = tuple(self.columns[at] for at in self.key)
        rest = [self.columns[at] for at in self.values]
        if self.kind == "upsert":
            return (*start, STATE, *keys, *rest)
        before = [Field(f"before_{field.name}", field.type) for field in rest]
        after = [Field(f"after_{field.name}", field.type) for field in rest]
        return (*start, STATE, *keys, *before, *after)

    def told(self, progress: int) -> Row:
        """The row that says: everything before `progress` was given."""
        return (Decimal(progress), True, *[None] * (len(self.fields) - 2))

    def rows(self, changes: Iterable[Change]) -> list[Row]:
        """Changes of one or more times, sorted by time, as rows."""
        middle: tuple[Any, ...] = (False,) if self.progress else ()
        if self.kind is None:
            stamp = cache(Decimal)  # many changes are of one time
            return [(stamp(time), *middle, diff, *row) for row, time, diff in changes]
        made: list[Row] = []
        groups: dict[Any, tuple[int, Row, list[Row], list[Row]]] = {}
        equal = row_key(tuple(self.columns[at].type for at in self.key))
        for row, time, diff in changes:
            key = tuple(row[at] for at in self.key)
            _, _, before, after = groups.setdefault((time, equal(key)), (time, key, [], []))
            (after if diff > 0 else before).extend([row] * abs(diff))
        for time, key, before, after in groups.values():
            made.append((Decimal(time), *middle, *self._state(key, before, after)))
        return made

    def _state(self, key: Row, before: list[Row], after: list[Row]) -> Row:
        nulls = (None,) * len(self.values)
        if len(after) > 1 or len(before) > 1:
            return ("key_violation", *key, *nulls, *(nulls if self.kind == "debezium" else ()))
        old = tuple(before[0][at] for at in self.values) if before else nulls
        new = tuple(after[0][at] for at in self.values) if after else nulls
        if self.kind == "upsert":
            return ("upsert" if after else "delete", *key, *new)
        state = "delete" if not after else "upsert" if before else "insert"
        return (state, *key, *old, *new)
