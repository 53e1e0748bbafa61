"""Reading a few rows of a part by key: only the pages that can hold them.

One range read brings the tail (kept afterwards: an object never changes), a second round brings the
pages whose bounds admit a probe, with the pages of the other columns for the same rows. The pages
are put behind a footer of their own and decoded as the Parquet object that they then are.

Law (exact): `read_rows` returns the rows of ``decode_part`` whose key column holds a probe, in the
same order, or raises `Corrupt` naming the object. Sameness is that of
`noonmark.persist.part.order`: a NULL among the probes finds NULLs, NaN finds NaN, 0.0 does not find
-0.0.

Where it runs: driver and executors.
"""

from __future__ import annotations

import asyncio
import zlib
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from noonmark.errors import Corrupt, MissingObject
from noonmark.persist.location import Blob
from noonmark.persist.part.excerpt import Page, excerpt
from noonmark.persist.part.order import as_one_column
from noonmark.persist.part.part import Part, corrupt, decode_part, read_parquet
from noonmark.persist.part.statistics import physical
from noonmark.persist.part.tail import Chunk, Ints, RowGroup, Tail, parse_tail

#: A part as small as this is read whole: one round trip instead of two.
WHOLE_BYTES_MAX = 64 * 1024
#: Neighbours with no more than this between them are read at once.
GAP_BYTES = 2048
#: When the pages are more than this share of the part, the part is read whole.
WHOLE_SHARE = 0.5
READS_AT_ONCE = 16

Ranges = list[tuple[int, int]]


class Tails:
    """Parsed tails, the most recently used ones, up to a number of bytes of the stored form."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._tails: OrderedDict[tuple[str, str, int], Tail] = OrderedDict()
        self._lock = Lock()

    async def get(self, blob: Blob, part: Part) -> Tail:
        """The tail of a part, verified; read from the blob when it is not at hand."""
        name = (blob.url, part.key, part.tail_checksum)
        with self._lock:
            if tail := self._tails.get(name):
                self._tails.move_to_end(name)
                return tail
        tail = await _read_tail(blob, part)
        with self._lock:
            if name not in self._tails:
                self._tails[name] = tail
                self._bytes += tail.bytes
            while self._bytes > self._bytes_max and len(self._tails) > 1:
                self._bytes -= self._tails.popitem(last=False)[1].bytes
        return tail


#: One for the process: tasks of one executor share what they have learned of the parts.
TAILS = Tails(bytes_max=64 << 20)


async def read_rows(
    blob: Blob,
    part: Part,
    key_column: str,
    probes: pa.Array,
    columns: Sequence[str] | None = None,
    *,
    tails: Tails = TAILS,
    whole_bytes_max: int = WHOLE_BYTES_MAX,
) -> pa.Table:
    """The rows of a part whose `key_column` holds one of `probes`.

    Cheap when `key_column` is the first column of the key; exact for every column.

    Args:
        blob: where the part is.
        part: as the state describes it.
        key_column: a top-level column of the part.
        probes: values of that column's type, in any order.
        columns: the columns to return, those of them that the part has; all when None.
        tails: where parsed tails are kept.
        whole_bytes_max: a part no larger than this is read whole.
    """
    names = None if columns is None else list(dict.fromkeys([*columns, key_column]))
    table = None
    if part.bytes > whole_bytes_max:
        tail = await tails.get(blob, part)
        table = await _read_pages(blob, part, tail, key_column, probes, names=names)
    if table is None:
        table = decode_part(await _get(blob, part, 0, part.bytes), part, names)
    found = pc.is_in(as_one_column(table.column(key_column)), as_one_column(probes))
    rows = table.filter(found)
    return rows if columns is None else rows.select([c for c in columns if c in rows.column_names])


async def _read_pages(
    blob: Blob,
    part: Part,
    tail: Tail,
    key_column: str,
    probes: pa.Array,
    *,
    names: Sequence[str] | None,
) -> pa.Table | None:
    """The rows of all pages that can hold a probe; None when reading the whole part is cheaper."""
    sorted_probes = _Probes(probes)
    pages: dict[tuple[str, ...], list[Page]] = {}
    rows = 0
    for group in tail.row_groups:
        wanted = sorted_probes.rows_in(group, key_column)
        chunks = [c for c in group.chunks if names is None or c.path[0] in names]
        picks, covered = _cover(chunks, wanted, group.rows)
        rows += sum(end - start for start, end in covered)
        for chunk, pick in zip(chunks, picks, strict=True):
            pages.setdefault(chunk.path, []).extend(_pages(chunk, pick))
    every = sorted(page for chunk_pages in pages.values() for page in chunk_pages)
    if sum(page.size for page in every) > WHOLE_SHARE * part.bytes:
        return None
    bodies = await _fetch(blob, part, every)
    return read_parquet(excerpt(tail, pages, bodies, rows))


class _Probes:
    """The probes in the form in which the bounds of pages are: sorted physical values."""

    def __init__(self, probes: pa.Array) -> None:
        floating = pa.types.is_floating(probes.type)
        self._has_null = probes.null_count > 0
        # Parquet's bounds leave NaN out, and say nothing at all of nested columns.
        self._anywhere = pa.types.is_nested(probes.type) or (
            floating and bool(pc.any(pc.is_nan(probes)).as_py())
        )
        self._is_decimal = pa.types.is_decimal(probes.type)
        values = [] if self._anywhere else {v for v in physical(probes) if v is not None}
        self._values: list[Any] = sorted(_as_stored(value) for value in values)

    def rows_in(self, group: RowGroup, key_column: str) -> Ranges:
        """The rows of the pages of `key_column` that can hold a probe."""
        chunk = next((c for c in group.chunks if c.path == (key_column,)), None)
        if chunk is None or chunk.bounds is None or self._anywhere:
            return [(0, group.rows)]
        ends = [*chunk.first_rows[1:].tolist(), group.rows]
        pages = zip(chunk.first_rows.tolist(), ends, strict=True)
        return _union([page for at, page in enumerate(pages) if self._admits(chunk, at)])

    def _admits(self, chunk: Chunk, page: int) -> bool:
        bounds = chunk.bounds
        assert bounds is not None
        if self._has_null and (bounds.nulls is None or bounds.nulls[page]):
            return True
        if bounds.all_null[page]:
            return False
        low, high = bounds.lows[page], bounds.highs[page]
        if self._is_decimal and isinstance(low, bytes):  # not so short that it is an integer
            low, high = (int.from_bytes(end, "big", signed=True) for end in (low, high))
        at = bisect_left(self._values, low)
        return at < len(self._values) and bool(self._values[at] <= high)


def _as_stored(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _cover(chunks: Sequence[Chunk], wanted: Ranges, rows: int) -> tuple[list[Ints], Ranges]:
    """The pages of each chunk that hold the wanted rows, such that all hold the same rows.

    Pages of different columns may begin at different rows. Then rows are added until the pages
    of every column begin and end with them: at the latest when all pages are picked.
    """
    while True:
        picks, touched = [], list(wanted)
        for chunk in chunks:
            pick, ranges = _touching(chunk, wanted, rows)
            picks.append(pick)
            touched += ranges
        wider = _union(touched)
        if wider == wanted:
            return picks, wanted
        wanted = wider


def _touching(chunk: Chunk, wanted: Ranges, rows: int) -> tuple[Ints, Ranges]:
    """The pages of a chunk with a wanted row, and the rows that they hold."""
    starts = np.array([start for start, _ in wanted], dtype=np.int64)
    ends = np.array([end for _, end in wanted], dtype=np.int64)
    page_ends = np.append(chunk.first_rows[1:], rows)
    after = np.searchsorted(ends, chunk.first_rows, side="right")
    before = np.searchsorted(starts, page_ends, side="left")
    pick = np.flatnonzero(after < before)
    ranges = zip(chunk.first_rows[pick].tolist(), page_ends[pick].tolist(), strict=True)
    return pick, list(ranges)


def _union(ranges: Ranges) -> Ranges:
    """Ranges in order, without overlap or touch."""
    merged: Ranges = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _pages(chunk: Chunk, pick: Ints) -> list[Page]:
    columns = (chunk.offsets, chunk.sizes, chunk.checksums)
    return [Page(*page) for page in zip(*(c[pick].tolist() for c in columns), strict=True)]


async def _fetch(blob: Blob, part: Part, pages: list[Page]) -> dict[int, memoryview]:
    """The bytes of the pages, verified, by their offset. The pages are in order of offset."""
    reads: Ranges = []
    for page in pages:
        if reads and page.offset - reads[-1][1] <= GAP_BYTES:
            reads[-1] = (reads[-1][0], page.offset + page.size)
        else:
            reads.append((page.offset, page.offset + page.size))
    limit = asyncio.Semaphore(READS_AT_ONCE)

    async def read(start: int, end: int) -> memoryview:
        async with limit:
            return memoryview(await _get(blob, part, start, end - start))

    data = await asyncio.gather(*(read(start, end) for start, end in reads))
    bodies = {}
    at = 0
    for page in pages:
        while page.offset >= reads[at][1]:
            at += 1
        begin = page.offset - reads[at][0]
        body = data[at][begin : begin + page.size]
        if zlib.crc32(body) != page.checksum:
            raise corrupt(part, f"The page at byte {page.offset} does not match its checksum.")
        bodies[page.offset] = body
    return bodies


async def _read_tail(blob: Blob, part: Part) -> Tail:
    data = await _get(blob, part, part.bytes - part.tail_bytes, part.tail_bytes)
    if xxhash.xxh3_64_intdigest(data) != part.tail_checksum:
        raise corrupt(part, "The page index or footer does not match its checksum.")
    try:
        return parse_tail(data, part.bytes)
    except Corrupt as error:
        raise corrupt(part, error.message) from error


async def _get(blob: Blob, part: Part, start: int, length: int) -> bytes:
    data = await blob.get_range(part.key, start, length)
    if data is None:
        raise MissingObject(
            f'the part "{part.key}" is gone',
            detail="The state of the location refers to it.",
            hint="Restore the object from a copy.",
            object=part.key,
        )
    if len(data) != length:
        raise corrupt(part, f"It ends at byte {start + len(data)}; {part.bytes} were written.")
    return data
