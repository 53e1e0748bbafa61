"""Envelopes of sinks: from the updates of one time to messages.

- UPSERT: for each key that changed its new row, or nothing where it has none any more.
- DEBEZIUM: what was before and what is after; of one key together, else one by one.

Law (state): whoever applies all messages up to a time, in order, has the collection at that time.
Law (key): under UPSERT a key has at most one row at a time; a second one is an error of the sink
(`sink.keys`).

Pure, but for the keys that follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from noonmark.rows.schema import Schema
from noonmark.sink.encode import Encoding, key_of
from noonmark.sink.keys import Keys, several

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
        before: dict[Row, Counter[Row]] = {}
        after: dict[Row, Counter[Row]] = {}
        for row, diff in changes.items():
            key = key_of(row, self.schema, self.key)
            (after if diff > 0 else before).setdefault(key, Counter())[row] = abs(diff)
        for key in sorted({*before, *after}, key=repr):
            name = self.encoding.key(key)
            old, new = _only(before.get(key), key), _only(after.get(key), key)
            if self.kind == "UPSERT":
                keys.change(key, had=old is not None, has=new is not None)
                yield Message(name, None if new is None else self.encoding.value(new), time)
            else:
                yield Message(name, self._change(old, new), time)

    def _one_by_one(self, changes: dict[Row, int], time: int) -> Iterator[Message]:
        for row, diff in sorted(changes.items(), key=lambda each: each[1]):
            gone, come = (row, None) if diff < 0 else (None, row)
            for _ in range(abs(diff)):
                yield Message(None, self._change(gone, come), time)

    def _change(self, old: Row | None, new: Row | None) -> bytes:
        op = "c" if old is None else "d" if new is None else "u"
        return self.encoding.change(old, new, op)


def _only(rows: Counter[Row] | None, key: Row) -> Row | None:
    if rows is None:
        return None
    if rows.total() > 1:
        raise several(key)
    return next(iter(rows))
