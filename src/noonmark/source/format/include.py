"""INCLUDE: columns of the record itself, beside those of its key and value.

    PARTITION, OFFSET           where it stands; never NULL
    TIMESTAMP                   when it was made, as upstream says
    HEADERS                     all of them in their order, names may repeat: an array of
                                (key text, value bytea), empty where there is none
    HEADER 'k' AS n [BYTES]     the last one of that name as text or bytea; NULL without one

Law (total): a header whose bytes are no text, where text is asked for, is a reason of its record.

Where it runs: executors; pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from noonmark.errors import SchemaMismatch
from noonmark.rows import types as t
from noonmark.rows.schema import Column
from noonmark.source.contract import (
    HEADERS,
    OFFSET,
    PARTITION,
    PartitionKind,
    shown_partitions,
)
from noonmark.source.format.convert import Reasons

IncludeKind = Literal["partition", "offset", "timestamp", "headers", "header", "header bytes"]

_HEADERS = t.Array(t.Record((t.Field("key", t.Text()), t.Field("value", t.Bytea()))))


@dataclass(frozen=True)
class Include:
    """One included column; `header` is the one that is wanted of many."""

    kind: IncludeKind
    name: str
    header: str = ""

    def column(self, partition_kind: PartitionKind) -> Column:
        """What it looks like."""
        match self.kind:
            case "partition":
                kind = t.BigInt() if partition_kind == "number" else t.Text()
                return Column(self.name, kind, nullable=False)
            case "offset":
                return Column(self.name, t.BigInt(), nullable=False)
            case "timestamp":
                return Column(self.name, t.TimestampTz())
            case "headers":
                return Column(self.name, _HEADERS, nullable=False)
            case "header":
                return Column(self.name, t.Text())
        return Column(self.name, t.Bytea())

    def array(self, batch: pa.RecordBatch, offset_unit: int, reasons: Reasons) -> pa.Array:
        """Its values for raw records; adds a reason where there is none."""
        match self.kind:
            case "partition":
                return shown_partitions(batch.column(PARTITION))
            case "offset":
                return pa.array(batch.column(OFFSET).to_numpy() // offset_unit)
            case "timestamp":
                return _metadata(batch, "timestamp")
        found = _metadata(batch, "headers").to_pylist()
        if self.kind == "headers":
            return pa.array([each or [] for each in found], HEADERS)
        values = [_last(each or (), self.header) for each in found]
        if self.kind == "header bytes":
            return pa.array(values, pa.binary())
        return pa.array([self._text(at, v, reasons) for at, v in enumerate(values)], pa.string())

    def _text(self, at: int, value: bytes | None, reasons: Reasons) -> str | None:
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            reasons.setdefault(at, f'header "{self.header}": not text in UTF-8')
            return None


def _last(headers: Any, name: str) -> bytes | None:
    return next((each["value"] for each in reversed(headers) if each["key"] == name), None)


def _metadata(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name not in batch.schema.names:
        raise SchemaMismatch(f"this source has no {name} to include")
    return batch.column(name)
