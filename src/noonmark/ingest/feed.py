"""A feed: how one output of a source becomes one collection.

    typed output   the source made updates itself: they are taken as they are
    raw output     bytes; a `Decoding` (formats, columns, INCLUDE) makes rows of them, and an
                   `Envelope` (NONE, UPSERT, DEBEZIUM) makes updates of the rows

A feed is a description: frozen, and it pickles. The law of what it computes is that of
`source.format.decode` and `source.envelope`.

Keys. Under UPSERT the key is what the record's key decodes to, or columns of the value that the
feed names. In the second case a record whose value cannot be read has no key either: its error
stands by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.errors import ConfigError
from noonmark.rows import types as t
from noonmark.rows.schema import Schema
from noonmark.source.contract import REASON, Source
from noonmark.source.envelope import Envelope, Kind, debezium_schema
from noonmark.source.format.decode import KEYED, TOMBSTONE, Decoding, Format
from noonmark.source.format.include import Include
from noonmark.source.format.json import Json

if TYPE_CHECKING:
    from noonmark.source.impl.postgres import Postgres

_NO_KEY = "neither key nor value"


@dataclass(frozen=True)
class Feed:
    """See the module; made by `typed` or `raw`."""

    collection: str
    output: int
    schema: Schema
    key: tuple[str, ...] = ()
    decoding: Decoding | None = None
    envelope: Envelope | None = None

    @property
    def is_upsert(self) -> bool:
        """Whether it needs all records of a key together, and what the key had before."""
        return self.envelope is not None and self.envelope.kind == "UPSERT"

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The decoded records of a raw batch. On executors."""
        assert self.decoding is not None
        decoded = self.decoding.decode(batch)
        if self.is_upsert and self.decoding.key is None:
            return _keyed_by_value(decoded)
        return decoded


def typed(source: Source, output: int, collection: str | None = None) -> Feed:
    """The feed of an output that has a schema."""
    found = source.outputs[output]
    if found.schema is None:
        raise ConfigError(
            f'output "{found.name}" is raw: it needs a format',
            hint="Say FORMAT JSON, CSV, TEXT or BYTES.",
        )
    return Feed(collection or found.name, output, found.schema, found.key)


def raw(
    source: Source,
    output: int,
    collection: str,
    value: Format,
    *,
    key_format: Format | None = None,
    include: tuple[Include, ...] = (),
    envelope: Kind = "NONE",
    key: tuple[str, ...] = (),
) -> Feed:
    """The feed of an output without a schema.

    Args:
        source: what has the output.
        output: its place in `Source.outputs`.
        collection: the name of the collection.
        value: the format of the value; under DEBEZIUM, with the columns of a row image.
        key_format: the format of the key, whose columns come first.
        include: the INCLUDE columns, which come last.
        envelope: NONE, UPSERT or DEBEZIUM.
        key: the columns of the collection's key; by default those of `key_format`.
    """
    found = source.outputs[output]
    if found.schema is not None:
        raise ConfigError(f'output "{found.name}" has columns of its own, and takes no format')
    schema = value.schema
    if envelope == "DEBEZIUM":
        from noonmark.source.format.avro import Avro  # door: Avro: only who reads or writes it

        if not isinstance(value, Json | Avro) or include or key_format is not None:
            raise ConfigError(
                "ENVELOPE DEBEZIUM takes FORMAT JSON or AVRO, without INCLUDE and KEY FORMAT"
            )
        value = replace(value, schema=debezium_schema(schema))
    decoding = Decoding(value, key_format, include, source.partition_kind, source.offset_unit)
    if envelope != "DEBEZIUM":
        schema = decoding.schema
    if not key and key_format is not None:
        key = key_format.schema.names
    for name in key:
        if isinstance(schema[name].type, t.Array | t.Record):
            raise ConfigError(f'column "{name}" of type {schema[name].type} cannot be in a key')
    # Only UPSERT has keys that records are told apart by; a key of NONE just sorts.
    told_apart = key if envelope == "UPSERT" else ()
    made = Envelope(envelope, schema, told_apart, collection, source.offset_unit)
    return Feed(collection, output, schema, key, decoding, made)


def postgres(source: Postgres, collections: Sequence[str] = ()) -> tuple[Feed, ...]:
    """The feeds of all tables of a PostgreSQL source, under their own names or others."""
    names = collections or [table.name for table in source.tables]
    return tuple(postgres_table(source, at, name) for at, name in enumerate(names))


def postgres_table(source: Postgres, output: int, collection: str) -> Feed:
    """The feed of one table of a PostgreSQL source."""
    table, decoding = source.tables[output], source.decoding(output)
    if decoding is None:
        return typed(source, output, collection)
    made = Envelope("UPSERT", table.schema, table.key, collection)
    return Feed(collection, output, table.schema, table.key, decoding, made)


def _keyed_by_value(decoded: pa.RecordBatch) -> pa.RecordBatch:
    """A row has a key; what is no row has none, and is an error."""
    reason, tombstone = decoded.column(REASON), decoded.column(TOMBSTONE)
    names = decoded.schema.names
    if tombstone.true_count:
        reason = pc.if_else(tombstone, pc.fill_null(reason, _NO_KEY), reason)
        decoded = decoded.set_column(names.index(REASON), REASON, reason)
    return decoded.set_column(names.index(KEYED), KEYED, pc.is_null(reason))
