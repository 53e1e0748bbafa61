"""Decoding: a batch of raw records to a batch of decoded ones, each with its row or its reason.

A *decoded* batch has the records of the raw one, in their order: the three columns of the point,

- `_tombstone`: the record has no value;
- `_reason` and `_raw`: why there is no row, and the bytes that could not be read; else NULL (with
  `keep_raw`, for an envelope that finds fault later, the bytes of every record);
- the columns of `Decoding.schema`: of the key, of the value, and what INCLUDE asked for.

Law (total): every record of the batch comes out, with a row, as a tombstone or with a reason; a
header, which is no record, only when it is wrong. No input raises.
Law (local): what becomes of a record depends on the record alone, not on its neighbours.

A column that is NOT NULL and would be NULL makes a reason. A key that cannot be read does too, and
then the record has no key: `_keyed` is false where an envelope must not look at the key columns.

Where it runs: executors; pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.rows.arrow import arrow_schema
from noonmark.rows.schema import Schema
from noonmark.source.contract import OFFSET, OUTPUT, PARTITION, REASON, PartitionKind
from noonmark.source.format.convert import Parsed, Reasons
from noonmark.source.format.include import Include

TOMBSTONE, RAW, KEYED = "_tombstone", "_raw", "_keyed"


class Format(Protocol):
    """How the bytes of a key or value are read. Pure, and it pickles."""

    @property
    def schema(self) -> Schema:
        """The columns that it makes."""

    @property
    def header(self) -> bool:
        """Whether the first record of every partition names the columns."""

    def parse(self, values: pa.Array) -> Parsed:
        """One row, or one reason, for each of the values, none of which is NULL."""


@dataclass(frozen=True)
class Decoding:
    """What to read, how, and what else to put in a row."""

    value: Format
    key: Format | None = None
    include: tuple[Include, ...] = ()
    partition_kind: PartitionKind = "number"
    offset_unit: int = 1
    keep_raw: bool = False

    @cached_property
    def schema(self) -> Schema:
        """The columns of a row: key, value, included; names must differ."""
        key = self.key.schema.columns if self.key else ()
        included = (each.column(self.partition_kind) for each in self.include)
        return Schema((*key, *self.value.schema.columns, *included))

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of decoded batches."""
        partition = pa.int64() if self.partition_kind == "number" else pa.string()
        fields = [
            (PARTITION, partition),
            (OFFSET, pa.int64()),
            (OUTPUT, pa.int32()),
            (TOMBSTONE, pa.bool_()),
            (KEYED, pa.bool_()),
            (REASON, pa.string()),
            (RAW, pa.binary()),
        ]
        # A record without a row may have NULL in any column, whatever the schema says.
        return pa.schema([*fields, *(f.with_nullable(True) for f in arrow_schema(self.schema))])

    def __getstate__(self) -> dict[str, object]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """See the module."""
        batch, reasons = self._without_header(batch)
        count = batch.num_rows
        values, keys = batch.column("value"), batch.column("key")
        tombstone = pc.is_null(values).to_numpy(zero_copy_only=False)
        keyed = np.full(count, self.key is not None)
        columns: list[pa.Array] = []
        if self.key is not None:
            key_reasons: Reasons = {}
            columns += _parse(self.key, keys, key_reasons, "key: ", required=True)
            keyed[list(key_reasons)] = False
            _first(reasons, key_reasons)
        value_reasons: Reasons = {}
        columns += _parse(self.value, values, value_reasons)
        _first(reasons, value_reasons)
        for include in self.include:
            columns.append(include.array(batch, self.offset_unit, reasons))
        reason, raw = _reasons(reasons, values)
        if self.keep_raw:
            raw = values
        arrays = [
            *(batch.column(name) for name in (PARTITION, OFFSET, OUTPUT)),
            pa.array(tombstone),
            pa.array(keyed),
            reason,
            raw,
            *columns,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def _without_header(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Reasons]:
        """A header that is right is no record; one that is wrong is a record with a reason."""
        names = getattr(self.value, "names", None)
        if not self.value.header or names is None:
            return batch, {}
        first = pc.less(batch.column(OFFSET), self.offset_unit)
        if not pc.any(first).as_py():
            return batch, {}
        values = batch.column("value").to_pylist()
        places = np.flatnonzero(first.to_numpy(zero_copy_only=False)).tolist()
        wrong = {at: names(values[at] or b"") for at in places}
        keep = np.ones(batch.num_rows, np.bool_)
        keep[[at for at in places if wrong[at] is None]] = False
        moved = np.cumsum(keep) - 1
        reasons = {int(moved[at]): reason for at, reason in wrong.items() if reason is not None}
        return batch.filter(pa.array(keep)), reasons


def _parse(
    form: Format, values: pa.Array, reasons: Reasons, prefix: str = "", *, required: bool = False
) -> list[pa.Array]:
    """The columns of a format over values that may be NULL; a NULL gives NULLs."""
    there = values
    places = None
    if values.null_count:
        places = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        there = values.take(pa.array(places))
        if required:
            for at in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                reasons[at] = f"{prefix}the record has none"
    parsed = form.parse(there)
    found = dict(parsed.reasons)
    _check_nulls(form.schema, parsed.columns, found)
    for at, reason in found.items():
        reasons[at if places is None else int(places[at])] = prefix + reason
    if places is None:
        return parsed.columns
    back = np.full(len(values), -1, np.int64)
    back[places] = np.arange(len(places))
    indices = pa.array(back, mask=back < 0)
    return [column.take(indices) for column in parsed.columns]


def _check_nulls(schema: Schema, columns: list[pa.Array], reasons: Reasons) -> None:
    for column, array in zip(schema.columns, columns, strict=True):
        if not column.nullable and array.null_count:
            nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
            for at in nulls.tolist():
                reasons.setdefault(at, f'column "{column.name}": NULL, and it is NOT NULL')


def _first(reasons: Reasons, more: Reasons) -> None:
    for at, reason in more.items():
        reasons.setdefault(at, reason)


def _reasons(reasons: Reasons, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The columns `_reason` and `_raw`."""
    count = len(values)
    if not reasons:
        return pa.nulls(count, pa.string()), pa.nulls(count, pa.binary())
    bad = np.zeros(count, np.bool_)
    bad[list(reasons)] = True
    reason = pa.array([reasons.get(at) for at in range(count)], pa.string())
    return reason, pc.if_else(pa.array(bad), values, pa.scalar(None, pa.binary()))
