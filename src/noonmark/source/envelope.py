"""Envelopes: from decoded records with times to updates.

A decoded record (`noonmark.source.format.decode`) that was reclocked has a `_time`. Its envelope
says what it does to the collection:

- NONE: it is a row; +1 at its time.
- UPSERT: it is the new value of its key. What the key had before is retracted at its time; a
  tombstone only does that. Of several records with one key and time the last one counts, in the
  order of (partition, offset, place). A record may name columns that it leaves as they were
  (`KEPT`, where the source has such records): they are those of the state before it.
- DEBEZIUM: it says what was `before` (-1) and what is `after` (+1).

Errors are updates too, to the collection of errors (`ERRORS_SCHEMA`). Under UPSERT a value that
cannot be read is the new state of its key as any other value is: the old row is retracted, an error
stands in its place, and the next record with that key retracts the error. An error without a key,
and every error under NONE and DEBEZIUM, stays: nothing later speaks of the same thing.

Law (upsert): let S(k, t) be the last record of key k at a time <= t, or what the collection held
for k before. The contents at t are the rows of all S(k, t), the errors at t those of all S(k, t)
that have one. The updates are the differences, time by time.
Law (key): keys are one iff they are stored as the same bits, so that a topic whose records brokers
have compacted, which compare bytes, gives the same contents.
Law (total): no record raises, and none is without effect except a tombstone.

Where it runs: executors; pure. UPSERT needs all records of a key in one call, and what the
collection and its errors hold for those keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import ConfigError
from noonmark.persist.part.order import adjacent_equal, argsort, plain_columns
from noonmark.persist.part.run import DIFF, TIME, consolidate
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_schema, from_array
from noonmark.rows.pg.nested import join_record
from noonmark.rows.pg.text import format_value
from noonmark.rows.schema import Column, Schema
from noonmark.source.contract import ERRORS_SCHEMA, OFFSET, PARTITION, REASON, shown_partitions
from noonmark.source.format.decode import KEYED, RAW, TOMBSTONE

Kind = Literal["NONE", "UPSERT", "DEBEZIUM"]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

KEPT = "_kept"
"""Under UPSERT: the names of the columns whose value is that of the state before; NULL for none."""

_NO_VALUE = "the record has no value"
_NO_STATE = "it leaves out what it did not change, and nothing is known from before"
_NO_IMAGE = "neither before nor after"
_NO_BEFORE = "an update or delete without before: the table needs REPLICA IDENTITY FULL"


class Updates(NamedTuple):
    """Two update tables: data columns, `_time` and `_diff`."""

    rows: pa.Table
    errors: pa.Table


@dataclass(frozen=True)
class Envelope:
    """What is common to all records of one output; `schema` is that of its collection."""

    kind: Kind
    schema: Schema
    key: tuple[str, ...] = ()
    output: str = ""
    offset_unit: int = 1

    def __post_init__(self) -> None:
        if self.kind == "UPSERT" and not self.key:
            raise ConfigError("ENVELOPE UPSERT needs a key")
        for name in self.key:
            self.schema.index(name)

    def apply(self, records: pa.Table, previous: Updates | None = None) -> Updates:
        """The updates of decoded records; `previous` is for UPSERT, see `upsert`."""
        if self.kind == "NONE":
            return none(self, records)
        if self.kind == "DEBEZIUM":
            return debezium(self, records)
        return upsert(self, records, previous or self.nothing())

    def nothing(self) -> Updates:
        """No updates, in the right schemas."""
        return Updates(_update_schema(self.schema).empty_table(), ERRORS.empty_table())

    def errors(self, records: pa.Table, reasons: pa.ChunkedArray | None = None) -> pa.Table:
        """An error, +1, for each of the records; `reasons` stand in for their own."""
        keys: list[str | None] | None = None
        if self.key:
            known = records.column(KEYED).to_pylist()
            texts = self.key_texts(records)
            keys = [text if ok else None for text, ok in zip(texts, known, strict=True)]
        return _errors(
            records, self.output, records.column(RAW), reasons, keys=keys, unit=self.offset_unit
        )

    def key_texts(self, table: pa.Table) -> list[str]:
        """The key of each row as a record literal: what `<source>_errors` shows."""
        types = [self.schema[name].type for name in self.key]
        columns = [
            from_array(table.column(name), kind) for name, kind in zip(self.key, types, strict=True)
        ]
        return [
            join_record(
                None if value is None else format_value(value, kind)
                for value, kind in zip(row, types, strict=True)
            )
            for row in zip(*columns, strict=True)
        ]


def _update_schema(schema: Schema) -> pa.Schema:
    return pa.schema([*arrow_schema(schema), (TIME, pa.int64()), (DIFF, pa.int64())])


ERRORS = _update_schema(ERRORS_SCHEMA)


def source_errors(records: pa.Table, output: str | None, offset_unit: int = 1) -> pa.Table:
    """The error updates of error records that the source itself made, once they have times."""
    return _errors(records, output, records.column("value"), unit=offset_unit)


def _errors(
    records: pa.Table,
    output: str | None,
    raw: pa.ChunkedArray,
    reasons: pa.ChunkedArray | None = None,
    *,
    keys: list[str | None] | None = None,
    unit: int = 1,
) -> pa.Table:
    count = records.num_rows
    columns = [
        pa.repeat(pa.scalar(output, pa.string()), count),
        shown_partitions(records.column(PARTITION)).cast(pa.string()),
        _floor(records.column(OFFSET), unit),
        pa.nulls(count, pa.string()) if keys is None else pa.array(keys, pa.string()),
        raw,
        records.column(REASON) if reasons is None else reasons,
        records.column(TIME),
        pa.repeat(pa.scalar(1, pa.int64()), count),
    ]
    return pa.Table.from_arrays(columns, schema=ERRORS)


def typed(schema: Schema, records: pa.Table) -> pa.Table:
    """The updates of typed records, whose diffs are the source's, once they have times."""
    return records.select([*schema.names, TIME, DIFF])


def none(envelope: Envelope, records: pa.Table) -> Updates:
    """ENVELOPE NONE."""
    empty = pc.and_(pc.is_null(records.column(REASON)), records.column(TOMBSTONE))
    good = pc.and_not(pc.is_null(records.column(REASON)), records.column(TOMBSTONE))
    bad = envelope.errors(records.filter(pc.is_valid(records.column(REASON))))
    void = records.filter(empty)
    reasons = pa.chunked_array([pa.repeat(pa.scalar(_NO_VALUE), void.num_rows)])
    rows = records if pc.all(good).as_py() else records.filter(good)
    return Updates(
        _rows(envelope.schema, rows, 1), pa.concat_tables([bad, envelope.errors(void, reasons)])
    )


def _rows(schema: Schema, records: pa.Table, diff: int) -> pa.Table:
    columns = [records.column(name) for name in (*schema.names, TIME)]
    columns.append(pa.repeat(pa.scalar(diff, pa.int64()), records.num_rows))
    return pa.Table.from_arrays(columns, schema=_update_schema(schema))


def upsert(envelope: Envelope, records: pa.Table, previous: Updates) -> Updates:
    """ENVELOPE UPSERT.

    Args:
        envelope: the output.
        records: decoded records with times; all of each key that they have.
        previous: what the collection and its errors held, for those keys, before these records.
    """
    keyed = records.filter(records.column(KEYED))
    lost = records.filter(pc.invert(records.column(KEYED)))
    chain = _Chain.of(envelope, keyed, previous)
    diffs = chain.updates(envelope, previous.errors)
    errors = pa.concat_tables([envelope.errors(lost), diffs.errors])
    return Updates(consolidate(diffs.rows), consolidate(errors))


@dataclass(frozen=True)
class _Chain:
    """The states of all keys, one after another: first what was there, then one per time.

    `table` holds them; `time` is -1 for what was there; `follows` says that a state replaces the
    one before it.
    """

    table: pa.Table
    time: Longs
    follows: Bools

    @classmethod
    def of(cls, envelope: Envelope, keyed: pa.Table, previous: Updates) -> _Chain:
        held = previous.rows.select(list(envelope.schema.names))
        table = pa.concat_tables([_as_states(held, keyed.schema), keyed]).combine_chunks()
        place = pa.array(np.arange(table.num_rows))
        order_by = [*envelope.key, TIME, PARTITION, OFFSET]
        table = table.take(pa.array(argsort([*plain_columns(table, order_by), place])))
        same_key = adjacent_equal(plain_columns(table, envelope.key), table.num_rows)
        table = _filled(table, same_key)
        time = table.column(TIME).to_numpy()
        # The last of a key at a time is its state; the others never were to be seen.
        last = np.append(~(same_key & (time[:-1] == time[1:])), [True])[: len(time)]
        group = np.concatenate([[0], np.cumsum(~same_key)])[: len(time)][last]
        follows = np.concatenate([[False], group[1:] == group[:-1]])[: len(group)]
        return cls(table.filter(pa.array(last)), time[last], follows)

    def updates(self, envelope: Envelope, errors: pa.Table) -> Updates:
        """Each state that is new retracts the one it follows and asserts itself."""
        new = self.time >= 0
        replaced = np.flatnonzero(new & self.follows)
        asserted = np.flatnonzero(new)
        rows, bad = [], []
        for places, times, diff in (
            (replaced - 1, self.time[replaced], -1),
            (asserted, self.time[asserted], 1),
        ):
            states = self.table.take(pa.array(places))
            states = states.set_column(
                states.column_names.index(TIME), TIME, pa.array(times, pa.int64())
            )
            is_error = pc.is_valid(states.column(REASON))
            is_row = pc.and_not(pc.invert(is_error), states.column(TOMBSTONE))
            rows.append(_rows(envelope.schema, states.filter(is_row), diff))
            bad.append(_signed(envelope.errors(states.filter(is_error)), diff))
        first = np.flatnonzero(new & ~self.follows)
        bad.append(self._retract_errors(envelope, errors, first))
        return Updates(pa.concat_tables(rows), pa.concat_tables(bad))

    def _retract_errors(self, envelope: Envelope, errors: pa.Table, first: Longs) -> pa.Table:
        """A key that held no row may have held an error: its first new state retracts it."""
        held = errors.filter(pc.equal(errors.column("output"), envelope.output))
        if not held.num_rows or not len(first):
            return ERRORS.empty_table()
        states = self.table.take(pa.array(first))
        when = dict(zip(envelope.key_texts(states), self.time[first].tolist(), strict=True))
        times = [when.get(key) for key in held.column("key").to_pylist()]
        gone = held.set_column(
            held.column_names.index(TIME), ERRORS.field(TIME), pa.array(times, pa.int64())
        )
        return _signed(gone.filter(pc.is_valid(gone.column(TIME))), -1)


def _filled(table: pa.Table, same_key: Bools) -> pa.Table:
    """States in order, each with the columns that it left out; a state without them is an error."""
    if KEPT not in table.column_names or table.column(KEPT).null_count == table.num_rows:
        return table
    kept = table.column(KEPT).combine_chunks()
    parents = pc.list_parent_indices(kept).to_numpy()
    names = pc.list_flatten(kept)
    count = table.num_rows
    first = np.concatenate([[True], ~same_key])[:count]
    begin = np.maximum.accumulate(np.where(first, np.arange(count), 0))
    rowless = pc.or_(table.column(TOMBSTONE), pc.is_valid(table.column(REASON))).to_numpy()
    unknown = np.zeros(count, np.bool_)
    for name in pc.unique(names).to_pylist():
        left_out = np.zeros(count, np.bool_)
        left_out[parents[pc.equal(names, name).to_numpy(zero_copy_only=False)]] = True
        origin = np.maximum.accumulate(np.where(left_out, 0, np.arange(count)))
        unknown |= left_out & ((origin < begin) | rowless[np.maximum(origin, 0)])
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), table.column(at).take(origin))
    if unknown.any():
        at = table.column_names.index(REASON)
        reasons = pc.if_else(pa.array(unknown), _NO_STATE, table.column(REASON))
        table = table.set_column(at, table.schema.field(at), reasons)
    return table


def _as_states(held: pa.Table, schema: pa.Schema) -> pa.Table:
    """What a collection held, in the schema of decoded records, before all times."""
    fixed = {TIME: -1, TOMBSTONE: False, KEYED: True}
    count = held.num_rows
    columns = []
    for field in schema:
        if field.name in held.column_names:
            columns.append(held.column(field.name))
        elif field.name in fixed:
            columns.append(pa.repeat(pa.scalar(fixed[field.name], field.type), count))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _signed(updates: pa.Table, diff: int) -> pa.Table:
    at = updates.column_names.index(DIFF)
    column = pa.repeat(pa.scalar(diff, pa.int64()), updates.num_rows)
    return updates.set_column(at, updates.schema.field(at), column)


def _floor(offsets: pa.ChunkedArray, unit: int) -> pa.ChunkedArray:
    return offsets if unit == 1 else pc.divide(offsets, pa.scalar(unit, pa.int64()))


def debezium_schema(schema: Schema) -> Schema:
    """The columns that a Debezium record is decoded to, bare or inside a `payload`."""
    image = t.Record(tuple(t.Field(column.name, column.type) for column in schema.columns))
    fields = (t.Field("before", image), t.Field("after", image), t.Field("op", t.Text()))
    bare = tuple(Column(field.name, field.type) for field in fields)
    return Schema((*bare, Column("payload", t.Record(fields))))


def debezium(envelope: Envelope, records: pa.Table) -> Updates:
    """ENVELOPE DEBEZIUM, over records that were decoded to `debezium_schema`."""
    records = records.combine_chunks()
    bad = [envelope.errors(records.filter(pc.is_valid(records.column(REASON))))]
    good = pc.and_not(pc.is_null(records.column(REASON)), records.column(TOMBSTONE))
    records = _unwrap(records.filter(good))
    before, after = records.column("before"), records.column("after")
    changes = pc.is_in(records.column("op"), pa.array(["u", "d"]))
    neither = pc.and_(pc.is_null(before), pc.is_null(after))
    blind = pc.and_(pc.and_(pc.is_null(before), pc.invert(neither)), pc.fill_null(changes, False))
    reasons = pc.if_else(
        neither, _NO_IMAGE, pc.if_else(blind, _NO_BEFORE, _broken_image(envelope, records))
    )
    records = records.append_column("_why", reasons)
    wrong = records.filter(pc.is_valid(records.column("_why")))
    bad.append(envelope.errors(wrong, wrong.column("_why")))
    right = records.filter(pc.is_null(records.column("_why")))
    rows = [_image(envelope, right, "before", -1), _image(envelope, right, "after", 1)]
    return Updates(pa.concat_tables(rows), pa.concat_tables(bad))


def _unwrap(records: pa.Table) -> pa.Table:
    """Take the images out of the payload where there is one."""
    payload = records.column("payload").combine_chunks()
    inside = payload.flatten()
    for at, name in enumerate(("before", "after", "op")):
        own = records.column(name).combine_chunks()
        found = pc.if_else(payload.is_valid(), inside[at], own)
        records = records.set_column(records.column_names.index(name), name, found)
    return records


def _broken_image(envelope: Envelope, records: pa.Table) -> pa.Array:
    """A reason where an image has NULL in a column that is NOT NULL."""
    reasons = pa.nulls(records.num_rows, pa.string())
    for name in ("before", "after"):
        image = records.column(name).combine_chunks()
        for column, values in zip(envelope.schema.columns, image.flatten(), strict=True):
            if not column.nullable:
                missing = pc.and_(image.is_valid(), values.is_null())
                reason = f'column "{column.name}": NULL in {name}, and it is NOT NULL'
                reasons = pc.if_else(missing, reason, reasons)
    return reasons


def _image(envelope: Envelope, records: pa.Table, name: str, diff: int) -> pa.Table:
    there = records.filter(pc.is_valid(records.column(name)))
    image = there.column(name).combine_chunks()
    columns = dict(zip(envelope.schema.names, image.flatten(), strict=True))
    columns[TIME] = there.column(TIME)
    return _rows(envelope.schema, pa.table(columns), diff)
