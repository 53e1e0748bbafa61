"""Envelopes of sinks: from the updates of one time to messages.

- UPSERT: for each key that changed its new row, or nothing where it has none any more.
- DEBEZIUM: what was before and what is after; of one key together, else one by one.

Law (state): whoever applies all messages up to a time, in order, has the collection at that time.
Law (key): the keys of two rows are the same bytes iff they are equal in SQL: 0 and -0, 1.0 and
1.00, a day and 24 hours are one key, which is shown in one form (`rows.canonical`). The value has
the row as it is.
Law (one row): under UPSERT a key has at most one row at a time; a second one is an error of the
sink (`sink.keys`).

Pure, but for the keys that follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from noonmark.errors import UniqueViolation
from noonmark.rows.canonical import Canonical, canonical, or_null
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Schema
from noonmark.sink.encode import Encoding, key_columns
from noonmark.sink.keys import Keys

Kind = Literal["UPSERT", "DEBEZIUM"]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Message:
    """What one record says; `time` is that of the change."""

    key: bytes | None
    value: bytes | None
    time: int


@dataclass(frozen=True)
class Envelope:
    """What all messages of a sink have in common."""

    kind: Kind
    schema: Schema
    key: tuple[str, ...]
    encoding: Encoding

    @cached_property
    def _canonical(self) -> tuple[Canonical, ...]:
        columns = key_columns(self.schema, self.key)
        return tuple(or_null(canonical(column.type)) for column in columns)

    @cached_property
    def _places(self) -> tuple[int, ...]:
        return tuple(map(self.schema.index, self.key))

    def key_bytes(self, values: Iterable[Any]) -> bytes:
        """The key of a message, of the values of the key's columns."""
        pairs = zip(self._canonical, values, strict=True)
        return self.encoding.key(tuple(of(value) for of, value in pairs))

    def messages(self, updates: Iterable[tuple[Row, int, int]], keys: Keys) -> Iterator[Message]:
        """The messages of updates (row, time, diff), time by time.

        `keys` are those that have a row before them, and follow; only UPSERT asks.
        """
        by_time: dict[int, Counter[Row]] = {}
        for row, time, diff in updates:
            by_time.setdefault(time, Counter())[row] += diff
        for time in sorted(by_time):
            changes = {row: diff for row, diff in by_time[time].items() if diff}
            if self.key:
                yield from self._by_key(changes, time, keys)
            else:
                yield from self._one_by_one(changes, time)

    def _by_key(self, changes: dict[Row, int], time: int, keys: Keys) -> Iterator[Message]:
        before: dict[bytes, Counter[Row]] = {}
        after: dict[bytes, Counter[Row]] = {}
        for row, diff in changes.items():
            key = self.key_bytes(row[place] for place in self._places)
            (after if diff > 0 else before).setdefault(key, Counter())[row] = abs(diff)
        for key in sorted({*before, *after}):
            old, new = self._only(before.get(key)), self._only(after.get(key))
            if self.kind == "UPSERT":
                if not keys.change(key, had=old is not None, has=new is not None):
                    assert new is not None, "a second row is one that came"
                    raise self._several(new)
                yield Message(key, None if new is None else self.encoding.value(new), time)
            else:
                yield Message(key, self._change(old, new), time)

    def _one_by_one(self, changes: dict[Row, int], time: int) -> Iterator[Message]:
        for row, diff in sorted(changes.items(), key=lambda each: each[1]):
            gone, come = (row, None) if diff < 0 else (None, row)
            for _ in range(abs(diff)):
                yield Message(None, self._change(gone, come), time)

    def _change(self, old: Row | None, new: Row | None) -> bytes:
        op = "c" if old is None else "d" if new is None else "u"
        return self.encoding.change(old, new, op)

    def _only(self, rows: Counter[Row] | None) -> Row | None:
        if rows is None:
            return None
        row = next(iter(rows))
        if rows.total() > 1:
            raise self._several(row)
        return row

    def _several(self, row: Row) -> UniqueViolation:
        columns = key_columns(self.schema, self.key)
        pairs = zip(columns, (row[place] for place in self._places), strict=True)
        shown = ("NULL" if x is None else format_value(x, column.type) for column, x in pairs)
        return UniqueViolation(
            f"the key ({', '.join(self.key)})=({', '.join(shown)}) has several rows",
            detail="Under ENVELOPE UPSERT a key has one row at most.",
            hint="Choose a key that tells rows apart, or ENVELOPE DEBEZIUM.",
        )
