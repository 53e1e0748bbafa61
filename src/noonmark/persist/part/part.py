"""Parts: one immutable Parquet object of a batch, and what the state knows of it.

The object is plain Parquet, for any reader: zstd, rows sorted by the collection's key, pages of at
most `PAGE_ROWS` rows so that `noonmark.persist.part.pages` can read a few of them, no dictionaries
so that a page can be read alone, statistics and column index for the first key column alone.
Between the page index and the footer, where no Parquet reader looks, lie the checksums of all pages
(`noonmark.persist.part.tail` has the drawing).

Law (integrity): `decode_part` returns the rows that `encode_part` was given, or raises `Corrupt`
naming the object. It compares length and checksum before it looks at anything else.
Law (pruning): when `Part.may_match` or `Part.may_hold` is False, no row of the part matches.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from noonmark.errors import Corrupt
from noonmark.persist.part.run import DIFF, TIME
from noonmark.persist.part.statistics import ColumnStatistics, column_statistics, combine
from noonmark.persist.part.tail import append_checksums

PAGE_ROWS = 1024
ROW_GROUP_ROWS = 256 * PAGE_ROWS
#: Decimals up to so many digits fit 64 bits.
_SHORT_DIGITS = 18


class Part(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One object of a batch, as the state of a location keeps it."""

    #: The key of the object in the Blob.
    key: str
    rows: int
    bytes: int
    #: xxh3 (64 bits) of the whole object.
    checksum: int
    #: The last bytes of the object: page index, page checksums, footer.
    tail_bytes: int
    #: xxh3 (64 bits) of those.
    tail_checksum: int
    time_min: int
    time_max: int
    schema_id: int = 0
    #: No two updates have the same row and time.
    consolidated: bool = False
    #: The smallest diff: when it is positive the part retracts nothing.
    diff_min: int = 1
    #: The sum of all diffs, which no rewriting may change.
    diff_sum: int = 0
    #: (low, high, nulls) of every data column, by its place in the schema `schema_id`.
    columns: tuple[ColumnStatistics, ...] = ()

    def may_match(
        self,
        *,
        times: tuple[int | None, int | None] = (None, None),
        ranges: Mapping[int, tuple[Any, Any]] | None = None,
    ) -> bool:
        """Whether some row can lie in the ranges; both ends are inclusive, None is open.

        Args:
            times: the range of times.
            ranges: by the place of a data column, the range of its physical values. NULL lies in
                no range that has an end.
        """
        if not _overlaps((self.time_min, self.time_max), times):
            return False
        return all(self._may_lie(at, low, high) for at, (low, high) in (ranges or {}).items())

    def may_hold(self, column: int, probes: Sequence[Any]) -> bool:
        """Whether some row can have one of `probes` in the data column.

        Args:
            column: the place of the data column in the schema.
            probes: physical values in ascending order, None (which means NULL) last.
        """
        if column >= len(self.columns):
            return True
        low, high, nulls = self.columns[column]
        values = len(probes) - (1 if probes and probes[-1] is None else 0)
        if values < len(probes) and nulls:
            return True
        if nulls == self.rows or not values:
            return False
        at = 0 if low is None else bisect_left(probes, low, 0, values)
        return at < values and (high is None or bool(probes[at] <= high))

    def _may_lie(self, column: int, low: Any, high: Any) -> bool:
        if column >= len(self.columns) or (low is None and high is None):
            return True
        known_low, known_high, nulls = self.columns[column]
        return nulls < self.rows and _overlaps((known_low, known_high), (low, high))


class EncodedPart(NamedTuple):
    """An object to put, and what the state will say of it."""

    part: Part
    data: bytes


def encode_part(
    updates: pa.Table | Iterator[pa.Table],
    *,
    blob_key: str,
    key_columns: Sequence[str],
    schema_id: int = 0,
    consolidated: bool = False,
) -> EncodedPart:
    """Write a run as one part.

    A column without NULLs is written as required, which is faster to write and to read: of a
    table all columns without NULLs, of an iterator those that its schema says have none.

    Args:
        updates: the run, at least one row.
        blob_key: where the object will be put.
        key_columns: the key of the collection; empty means all data columns.
        schema_id: which of the collection's schemas the run has.
        consolidated: whether no two updates have the same row and time.
    """
    tables = iter([updates]) if isinstance(updates, pa.Table) else updates
    first = next((table for table in tables if table.num_rows), None)
    if first is None:
        raise ValueError("a part has at least one row")
    schema = _part_schema(first, whole=first is updates)
    sink = pa.BufferOutputStream()
    summaries = []
    with _writer(sink, schema, key_columns) as writer:
        for table in _row_groups(chain([first], tables)):
            summaries.append(_summary(table))
            writer.write_table(table.cast(schema), row_group_size=ROW_GROUP_ROWS)
    pieces, tail_bytes = append_checksums(memoryview(sink.getvalue()).cast("B"))
    data = b"".join(pieces)
    part = Part(
        key=blob_key,
        rows=sum(summary.rows for summary in summaries),
        bytes=len(data),
        checksum=xxhash.xxh3_64_intdigest(data),
        tail_bytes=tail_bytes,
        tail_checksum=xxhash.xxh3_64_intdigest(memoryview(data)[-tail_bytes:]),
        time_min=min(summary.time_min for summary in summaries),
        time_max=max(summary.time_max for summary in summaries),
        schema_id=schema_id,
        consolidated=consolidated,
        diff_min=min(summary.diff_min for summary in summaries),
        diff_sum=sum(summary.diff_sum for summary in summaries),
        columns=tuple(
            combine([(summary.columns[at], summary.rows) for summary in summaries])
            for at in range(len(summaries[0].columns))
        ),
    )
    return EncodedPart(part, data)


def decode_part(data: bytes, part: Part, columns: Sequence[str] | None = None) -> pa.Table:
    """The updates of a part, or some of its columns; `Corrupt` when the object was changed."""
    if len(data) != part.bytes or xxhash.xxh3_64_intdigest(data) != part.checksum:
        raise corrupt(part, f"It has {len(data)} bytes; {part.bytes} were written.")
    return read_parquet(data, columns)


def corrupt(part: Part, detail: str) -> Corrupt:
    """The error for an object that is not what was written."""
    return Corrupt(
        f'the part "{part.key}" does not match its checksum',
        detail=detail,
        hint="Restore the object from a copy.",
        object=part.key,
    )


def read_parquet(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Decode Parquet in memory. Every column of the result may hold NULLs, by its schema.

    Of `columns`, those that the object has are returned, in that order: a part of an older schema
    lacks the newer columns.
    """
    table = pq.ParquetFile(pa.BufferReader(data)).read(columns)
    if columns is not None:
        # Parquet takes the name "a" to mean every path below it too, also a column named "a.b".
        table = table.select([name for name in columns if name in table.column_names])
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


def _overlaps(known: tuple[Any, Any], asked: tuple[Any, Any]) -> bool:
    """Whether two inclusive ranges meet; None is open."""
    below = known[1] is not None and asked[0] is not None and known[1] < asked[0]
    above = known[0] is not None and asked[1] is not None and known[0] > asked[1]
    return not below and not above


def _part_schema(first: pa.Table, *, whole: bool) -> pa.Schema:
    """The schema with NOT NULL where it holds; `whole` when there are no more rows than these."""
    fields = []
    for field, column in zip(first.schema, first.columns, strict=True):
        nullable = column.null_count > 0 if whole else field.nullable
        fields.append(field.with_nullable(nullable and field.name not in (TIME, DIFF)))
    return pa.schema(fields)


def _writer(sink: pa.BufferOutputStream, schema: pa.Schema, key: Sequence[str]) -> pq.ParquetWriter:
    """Integers are stored as differences: smaller, faster to write and to read than plain ones.

    So are dates, times and short decimals, which are integers below: Spark scans such decimals half
    again as fast. Times and diffs are so regular that nothing is left to compress.
    """
    first_key = key[0] if key else schema.names[0]
    return pq.ParquetWriter(
        sink,
        schema,
        compression={
            name: "none" if name in (TIME, DIFF) else "zstd" for name in _leaf_paths(schema)
        },
        use_dictionary=False,
        column_encoding={
            field.name: "DELTA_BINARY_PACKED" for field in schema if _is_integer(field.type)
        },
        store_decimal_as_integer=True,
        write_statistics=[first_key],
        store_schema=False,
        write_page_index=True,
        write_page_checksum=True,
        max_rows_per_page=PAGE_ROWS,
    )


def _leaf_paths(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """The columns as Parquet stores them: the leaves of nested ones, by path."""
    for field in fields:
        path = above + field.name
        if pa.types.is_struct(field.type):
            yield from _leaf_paths(field.type.fields, f"{path}.")
        elif pa.types.is_list(field.type):
            yield from _leaf_paths([pa.field("element", field.type.value_type)], f"{path}.list.")
        else:
            yield path


def _is_integer(kind: pa.DataType) -> bool:
    """Whether Parquet stores the type as INT32 or INT64."""
    types = pa.types
    is_time = types.is_date32(kind) or types.is_time64(kind) or types.is_timestamp(kind)
    is_short = types.is_decimal128(kind) and kind.precision <= _SHORT_DIGITS
    return bool(is_time or is_short or types.is_signed_integer(kind))


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables large enough to be row groups, except the last."""
    gathered: list[pa.Table] = []
    rows = 0
    for table in tables:
        gathered.append(table)
        rows += table.num_rows
        if rows >= ROW_GROUP_ROWS:
            yield pa.concat_tables(gathered).combine_chunks()
            gathered, rows = [], 0
    if rows:
        yield pa.concat_tables(gathered).combine_chunks()


class _Summary(NamedTuple):
    """What is known of one row group of a part."""

    rows: int
    time_min: int
    time_max: int
    diff_min: int
    diff_sum: int
    columns: list[ColumnStatistics]


def _summary(table: pa.Table) -> _Summary:
    times = pc.min_max(table.column(TIME))
    return _Summary(
        rows=table.num_rows,
        time_min=times["min"].as_py(),
        time_max=times["max"].as_py(),
        diff_min=pc.min(table.column(DIFF)).as_py(),
        diff_sum=pc.sum(table.column(DIFF)).as_py(),
        columns=[
            column_statistics(table.column(name))
            for name in table.column_names
            if name not in (TIME, DIFF)
        ],
    )
