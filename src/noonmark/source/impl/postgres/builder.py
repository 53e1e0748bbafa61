"""Changes of the log to record batches, one builder per table.

A builder takes changes as they come and gives them the offset of their transaction when that
commits; a transaction larger than a batch is kept as Arrow until then, never as Python values.

- A table with whole old rows: an update is -1 of the old row and +1 of the new one.
- A keyed table: an upsert of the new row, behind a tombstone of the old key if that differs.
- TRUNCATE: a truncation, between what the transaction did before it and what it did after.

Law (definite): a change that the description cannot hold (a column that is gone, a value that its
type does not take) is an error record at the same offset, and nothing else is.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa

from noonmark.rows.arrow import arrow_schema
from noonmark.rows.schema import Schema
from noonmark.source.contract import (
    DIFF,
    OFFSET,
    OUTPUT,
    PARTITION,
    error_batch,
    points,
    truncation_batch,
)
from noonmark.source.format.convert import Reasons, as_text, decode_each, from_texts, merge_reasons
from noonmark.source.impl.postgres import copytext
from noonmark.source.impl.postgres.describe import Table
from noonmark.source.impl.postgres.pgoutput import (
    UNCHANGED,
    Change,
    Relation,
    Tuple,
    Value,
)

BATCH_ROWS = 16_384
WAL = 0
_POINT = [(PARTITION, pa.int64()), (OFFSET, pa.int64()), (OUTPUT, pa.int32())]
_RAW = pa.schema([*_POINT, ("key", pa.binary()), ("value", pa.binary())])

#: (offset, key, value, reason), as `error_batch` takes them.
Error = tuple[int, str | None, bytes | None, str]


@dataclass(frozen=True)
class Layout:
    """Where the described columns stand in the tuples of a relation, or why they do not.

    A column that is gone upstream, and NULL here, stands behind all others: `Builder` puts a NULL
    there when there `is_short`.
    """

    places: tuple[int, ...]
    key: tuple[int, ...]
    others: tuple[int, ...]
    problem: str | None = None
    is_short: bool = False

    @classmethod
    def of(cls, table: Table, relation: Relation) -> Layout:
        """The layout of a relation as the log has it now."""
        found = {column.name: at for at, column in enumerate(relation.columns)}
        absent = [column.name for column in table.columns if not column.number]
        found |= dict.fromkeys(absent, len(relation.columns))
        for column in table.columns:
            at = found.get(column.name)
            if not column.number:
                continue
            if at is None:
                return cls((), (), (), f'column "{column.name}" was dropped upstream')
            now = relation.columns[at]
            if (now.oid, now.typmod) != (column.oid, column.typmod):
                return cls((), (), (), f'column "{column.name}" has another type upstream')
        places = tuple(found[column.name] for column in table.columns)
        key = tuple(found[name] for name in table.key)
        others = tuple(found[name] for name in table.others)
        return cls(places, key, others, is_short=bool(absent))


@dataclass
class Builder:
    """The changes of one table. `add` them, then `commit` with their offset, then take batches."""

    table: Table
    output: int
    layout: Layout | None = None
    _diffs: list[int] = field(default_factory=list)
    _rows: list[list[Value]] = field(default_factory=list)
    _keys: list[bytes] = field(default_factory=list)
    _values: list[bytes | None] = field(default_factory=list)
    _sealed: list[_Chunk] = field(default_factory=list)
    _problems: list[tuple[bytes | None, str]] = field(default_factory=list)
    _errors: list[Error] = field(default_factory=list)
    _offsets: list[int] = field(default_factory=list)

    def add(self, change: Change) -> None:
        """One change of the transaction that is being read."""
        layout = self.layout
        assert layout is not None, "the log describes a relation before it uses it"
        if layout.is_short:
            change = _lengthened(change)
        if layout.problem is not None:
            self._problem(change, layout.problem)
        elif self.table.full:
            self._add_full(change, layout)
        else:
            self._add_keyed(change, layout)
        if len(self._diffs) + len(self._keys) - len(self._offsets) >= BATCH_ROWS:
            self._seal()

    def truncate(self) -> None:
        """The table is emptied here, in the transaction that is being read."""
        self._seal()
        self._sealed.append(_Chunk())

    def commit(self, offset: int) -> None:
        """All changes since the last commit happened at `offset`."""
        for chunk in self._sealed:
            if chunk.offset is None:
                chunk.offset = offset
        offsets = self._offsets
        offsets += [offset] * (len(self._diffs) + len(self._keys) - len(offsets))
        if self._problems:
            self._errors += [(offset, None, value, why) for value, why in self._problems]
            self._problems.clear()

    @property
    def is_full(self) -> bool:
        """Whether enough is committed to be worth a batch."""
        return len(self._offsets) >= BATCH_ROWS or bool(self._sealed or self._errors)

    def discard(self) -> None:
        """Forget what was added since the last commit."""
        known = len(self._offsets)
        for each in (self._diffs, self._rows, self._keys, self._values):
            del each[known:]
        self._sealed = [chunk for chunk in self._sealed if chunk.offset is not None]
        self._problems.clear()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What is committed."""
        if self._errors:
            yield error_batch("number", WAL, self._errors, self.output, ends=True)
            self._errors = []
        if self._sealed or self._offsets:
            self._seal()
        for chunk in self._sealed:
            yield from self._finish(chunk)
        self._sealed.clear()

    def _add_full(self, change: Change, layout: Layout) -> None:
        old, new = change.old, change.new
        if change.old_is_key or (old is None and not change.is_insert):
            self._problem(change, "the log has no old row: REPLICA IDENTITY is not FULL any more")
            return
        if old is not None:
            self._diffs.append(-1)
            self._rows.append([old[at] for at in layout.places])
        if new is not None:
            if old is not None and UNCHANGED in new:
                new = [o if n is UNCHANGED else n for o, n in zip(old, new, strict=True)]
            self._diffs.append(1)
            self._rows.append([new[at] for at in layout.places])

    def _add_keyed(self, change: Change, layout: Layout) -> None:
        old, new = change.old, change.new
        gone = None if old is None else _line(old, layout.key)
        if new is None:
            assert gone is not None, "a delete has an old key"
            self._keys.append(gone)
            self._values.append(None)
            return
        if old is not None and UNCHANGED in new:
            new = [
                n if n is not UNCHANGED or (change.old_is_key and at not in layout.key) else o
                for at, (o, n) in enumerate(zip(old, new, strict=True))
            ]
        key = _line(new, layout.key)
        if gone is not None and gone != key:
            self._keys.append(gone)
            self._values.append(None)
        self._keys.append(key)
        self._values.append(_line(new, layout.others))

    def _problem(self, change: Change, why: str) -> None:
        shown = change.new or change.old or []
        self._problems.append((copytext.line(shown), why))

    def _seal(self) -> None:
        """Turn what was gathered into Arrow; rows of an open transaction get their offset later."""
        known = len(self._offsets)
        total = len(self._diffs) + len(self._keys)
        for start, stop in ((0, known), (known, total)):
            if start < stop:
                chunk = self._chunk(start, stop)
                chunk.offset = self._offsets[start] if start < known else None
                chunk.offsets = self._offsets[start:stop] if start < known else []
                self._sealed.append(chunk)
        for each in (self._diffs, self._rows, self._keys, self._values, self._offsets):
            each.clear()

    def _chunk(self, start: int, stop: int) -> _Chunk:
        if not self.table.full:
            arrays = [
                pa.array(self._keys[start:stop], pa.binary()),
                pa.array(self._values[start:stop], pa.binary()),
            ]
            return _Chunk(arrays)
        rows = self._rows[start:stop]
        columns, reasons = typed_columns(self.table.schema, list(zip(*rows, strict=True)))
        lines = [(at, copytext.line(rows[at])) for at in sorted(reasons)]
        arrays = [pa.array(self._diffs[start:stop], pa.int64()), *columns]
        return _Chunk(arrays, reasons, lines)

    def _finish(self, chunk: _Chunk) -> Iterator[pa.RecordBatch]:
        assert chunk.offset is not None, "a batch is taken between transactions"
        if not chunk.arrays:
            yield truncation_batch("number", WAL, chunk.offset, self.output)
            return
        count = len(chunk.arrays[0])
        offsets = pa.array(chunk.offsets or np.full(count, chunk.offset), pa.int64())
        good, errors = split_errors(chunk.arrays, offsets, chunk.reasons, dict(chunk.lines))
        # Nothing was there for what cannot be read: its retraction is no error.
        if self.table.full and errors:
            diffs = chunk.arrays[0].to_pylist()
            errors = [(at, row) for at, row in errors if diffs[at] > 0]
        if errors:
            yield error_batch("number", WAL, [row for _, row in errors], self.output)
        offsets, arrays = good
        if len(offsets):
            if self.table.full:
                yield typed_batch(self.table, self.output, offsets, arrays)
            else:
                yield raw_batch(self.output, offsets, arrays)


@dataclass
class _Chunk:
    """Rows in Arrow: columns, the reasons of those that have none, and their lines.

    One without columns is a truncation.
    """

    arrays: list[pa.Array] = field(default_factory=list)
    reasons: Reasons = field(default_factory=Reasons)
    lines: list[tuple[int, bytes]] = field(default_factory=list)
    offset: int | None = None
    offsets: list[int] = field(default_factory=list)


def _lengthened(change: Change) -> Change:
    """A change with a NULL behind the columns that upstream has."""
    old = None if change.old is None else [*change.old, None]
    new = None if change.new is None else [*change.new, None]
    return msgspec.structs.replace(change, old=old, new=new)


def _line(values: Tuple, places: tuple[int, ...]) -> bytes:
    if len(places) == 1:  # as most keys are
        return copytext.field(values[places[0]])
    return copytext.line([values[at] for at in places])


def typed_columns(
    schema: Schema, columns: list[tuple[Value, ...]]
) -> tuple[list[pa.Array], Reasons]:
    """Columns of texts, as bytes, as columns of a schema."""
    made, reasons = [], Reasons()
    for column, values in zip(schema.columns, columns, strict=True):
        raw = pa.array([None if v is UNCHANGED else v for v in values], pa.binary())
        texts, bad = as_text(raw), Reasons()
        if texts is None:
            decoded, bad = decode_each(raw)
            texts = pa.array(decoded, pa.string())
        array, more = from_texts(texts, column.type)
        merge_reasons(reasons, {**more, **bad}, column.name)
        made.append(array)
    check_nulls(schema, made, reasons)
    return made, reasons


def check_nulls(schema: Schema, columns: list[pa.Array], reasons: Reasons) -> None:
    """A NULL where the description has none is a reason."""
    for column, array in zip(schema.columns, columns, strict=True):
        if not column.nullable and array.null_count:
            for at in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
                reasons.setdefault(at, f'column "{column.name}": NULL, and it was NOT NULL')


def split_errors(
    arrays: list[pa.Array], offsets: pa.Array, reasons: Reasons, lines: dict[int, bytes]
) -> tuple[
    tuple[pa.Array, list[pa.Array]],
    list[tuple[int, Error]],
]:
    """Rows without a reason, and the error of each that has one, by place."""
    if not reasons:
        return (offsets, arrays), []
    errors: list[tuple[int, Error]] = [
        (at, (offsets[at].as_py(), None, lines.get(at), reasons[at])) for at in sorted(reasons)
    ]
    good = np.ones(len(offsets), np.bool_)
    good[list(reasons)] = False
    mask = pa.array(good)
    return (offsets.filter(mask), [array.filter(mask) for array in arrays]), errors


def typed_batch(
    table: Table, output: int, offsets: pa.Array, arrays: list[pa.Array]
) -> pa.RecordBatch:
    """A batch of typed records: diff, and the columns of the table."""
    schema = pa.schema([*_POINT, (DIFF, pa.int64()), *arrow_schema(table.schema)])
    return _batch(output, offsets, arrays, schema)


def raw_batch(output: int, offsets: pa.Array, arrays: list[pa.Array]) -> pa.RecordBatch:
    """A batch of raw records: key and value."""
    return _batch(output, offsets, arrays, _RAW)


def _batch(
    output: int, offsets: pa.Array, arrays: list[pa.Array], schema: pa.Schema
) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [*points("number", WAL, offsets, output), *arrays], schema=schema
    )
