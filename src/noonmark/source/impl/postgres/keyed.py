"""Decoding of keyed tables: a key and the rest of a row, or a tombstone, in the table's own order.

The raw record of a change has the key's columns as its key and all other columns as its value, both
as lines of `copytext`; a delete has no value. A column that the update left unchanged is named in
`KEPT`: the envelope takes it from what the key had before.

Where it runs: executors; pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.rows.schema import Schema
from noonmark.source.envelope import KEPT
from noonmark.source.format.decode import Decoding
from noonmark.source.impl.postgres.copytext import KEPT_MARK, CopyText
from noonmark.source.impl.postgres.describe import Table

_KEPT_TYPE = pa.list_(pa.string())


@dataclass(frozen=True)
class KeyedDecoding(Decoding):
    """See the module; made by `keyed_decoding`. `names` is the order of the table's columns."""

    names: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> Schema:
        """The table's columns, in its order."""
        found = super().schema
        return Schema(tuple(found[name] for name in self.names))

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of decoded batches: as of every `Decoding`, and `KEPT`."""
        return super().arrow_schema.append(pa.field(KEPT, _KEPT_TYPE))

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """See `Decoding.decode`."""
        plain = Decoding(self.value, self.key, (), self.partition_kind, self.offset_unit)
        decoded = plain.decode(batch)
        kept = self._kept(batch.column("value"))
        arrays = [
            kept if name == KEPT else decoded.column(name) for name in self.arrow_schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def _kept(self, values: pa.Array) -> pa.Array:
        marked = pc.fill_null(pc.match_substring(values, KEPT_MARK.decode()), False)
        places = np.flatnonzero(marked.to_numpy(zero_copy_only=False)).tolist()
        if not places:
            return pa.nulls(len(values), _KEPT_TYPE)
        names = self.value.schema.names
        kept: list[list[str] | None] = [None] * len(values)
        for at in places:
            fields = values[at].as_py().split(b"\t")
            kept[at] = [
                name for name, each in zip(names, fields, strict=True) if each == KEPT_MARK
            ] or None
        return pa.array(kept, _KEPT_TYPE)


def keyed_decoding(table: Table) -> KeyedDecoding:
    """How the raw records of a keyed table are read."""
    key = Schema(tuple(table.schema[name] for name in table.key))
    rest = Schema(tuple(table.schema[name] for name in table.others))
    return KeyedDecoding(CopyText(rest), CopyText(key), names=table.schema.names)
