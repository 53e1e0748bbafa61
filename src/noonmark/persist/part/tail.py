"""The tail of a part: where its pages are, what they may hold, and their checksums.

    PAR1 | pages, by row group, column and page
         | column index | offset index | page checksums | footer | its length | PAR1     <- the tail

Parquet's own page checksum does not cover the page's header, so the block of checksums has a CRC-32
of the whole of every page (header and body), in the order in which the pages lie. The block ends
where the footer begins: `MAGIC`, the number of pages, the CRCs, all little-endian. Nothing in
Parquet points there, so other readers do not see it.

Law (cover): every byte of the object after the first four is in exactly one page or in the tail;
the tail has its own checksum in the `Part`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from noonmark.errors import Corrupt
from noonmark.persist.part import thrift
from noonmark.persist.part.thrift import Struct

MAGIC = b"NMPC"
_FOOTER_END = struct.Struct("<I4s")
_BLOCK_HEAD = struct.Struct("<4sI")
# The physical types of Parquet that are numbers: boolean, int32, int64, float, double.
_NUMBERS = {
    n: struct.Struct(f"<{f}") for n, f in ((0, "?"), (1, "i"), (2, "q"), (4, "f"), (5, "d"))
}
Ints = npt.NDArray[np.int64]


class Bounds(NamedTuple):
    """A column index: for each page its bounds and how many NULLs it has.

    Bounds are numbers where Parquet stores numbers, else bytes; None where a page is all NULL.
    """

    lows: list[Any]
    highs: list[Any]
    all_null: list[bool]
    nulls: list[int] | None


@dataclass(frozen=True)
class Chunk:
    """One leaf column of one row group, as columns of its pages."""

    path: tuple[str, ...]
    meta: Struct
    offsets: Ints
    sizes: Ints
    first_rows: Ints
    checksums: npt.NDArray[np.uint32]
    bounds: Bounds | None


@dataclass(frozen=True)
class RowGroup:
    """Rows that lie together."""

    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Tail:
    """All that is known of a part without its pages."""

    footer: Struct
    row_groups: tuple[RowGroup, ...]
    bytes: int


def append_checksums(data: memoryview) -> tuple[list[memoryview | bytes], int]:
    """The object, in pieces, with the block of checksums put into it; and the length of its tail.

    `data` is what a Parquet writer made, with an offset index and without dictionaries.
    """
    footer, footer_at = _read_footer(data)
    checksums = [
        zlib.crc32(data[start : start + size])
        for _, chunk in _chunks(footer)
        for start, size in zip(*(part.tolist() for part in _pages(chunk, data, 0)[:2]), strict=True)
    ]
    block = _BLOCK_HEAD.pack(MAGIC, len(checksums)) + np.array(checksums, dtype="<u4").tobytes()
    tail_at = min(at for _, chunk in _chunks(footer) for at in _index_places(chunk))
    return [data[:footer_at], block, data[footer_at:]], len(data) + len(block) - tail_at


def parse_tail(tail: bytes, object_bytes: int) -> Tail:
    """The tail of an object of `object_bytes` bytes. The caller has verified its checksum."""
    start = object_bytes - len(tail)
    footer, footer_at = _read_footer(memoryview(tail))
    pages = [_pages(chunk, memoryview(tail), start) for _, chunk in _chunks(footer)]
    checksums = _read_block(tail, footer_at, sum(len(offsets) for offsets, _, _ in pages))
    groups, at, page = [], 0, 0
    for group in footer[4].value.values:
        chunks = []
        for chunk in group[1].value.values:
            offsets, sizes, first_rows = pages[at]
            own = checksums[page : page + len(offsets)]
            bounds = _bounds(chunk, memoryview(tail), start)
            path = tuple(name.decode() for name in chunk[3].value[3].value.values)
            chunks.append(Chunk(path, chunk[3].value, offsets, sizes, first_rows, own, bounds))
            at, page = at + 1, page + len(offsets)
        groups.append(RowGroup(group[3].value, tuple(chunks)))
    return Tail(footer, tuple(groups), len(tail))


def _read_footer(data: memoryview) -> tuple[Struct, int]:
    """The footer (FileMetaData) and where it begins."""
    length, _ = _FOOTER_END.unpack(data[-_FOOTER_END.size :])
    at = len(data) - _FOOTER_END.size - length
    return thrift.decode_struct(data[at:])[0], at


def _chunks(footer: Struct) -> Iterator[tuple[Struct, Struct]]:
    for group in footer[4].value.values:
        for chunk in group[1].value.values:
            yield group, chunk


def _index_places(chunk: Struct) -> list[int]:
    """Where the offset index and the column index of a chunk begin."""
    return [chunk[field].value for field in (4, 6) if field in chunk]


def _bounds(chunk: Struct, tail: memoryview, start: int) -> Bounds | None:
    if 6 not in chunk:
        return None
    at = chunk[6].value - start
    index, _ = thrift.decode_struct(tail[at : at + chunk[7].value])
    all_null, lows, highs = (index[field].value.values for field in (1, 2, 3))
    number = _NUMBERS.get(chunk[3].value[1].value)
    if number is not None:
        lows, highs = (
            [number.unpack(end)[0] if end else None for end in ends] for ends in (lows, highs)
        )
    return Bounds(lows, highs, all_null, index[5].value.values if 5 in index else None)


def _pages(chunk: Struct, data: memoryview, start: int) -> tuple[Ints, Ints, Ints]:
    """Offset, size and first row of each page of a chunk, from its offset index."""
    at = chunk[4].value - start
    return page_locations(bytes(data[at : at + chunk[5].value]))


def page_locations(index: bytes) -> tuple[Ints, Ints, Ints]:
    """The list of page locations of an OffsetIndex, all at once.

    A location is a struct of three integers, and the bytes that announce them look like integers
    of one byte: so the list is a sequence of seven integers for each page, of which four are fixed.
    """
    raw = np.frombuffer(index, dtype=np.uint8)
    if len(raw) < 2 or raw[0] != (1 << 4 | thrift.LIST):
        raise Corrupt("an offset index begins with something else than its pages")
    size, at = int(raw[1]) >> 4, 2
    ends = np.flatnonzero(raw < 0x80)
    if size == 15:
        after = ends[ends >= 2]
        size, at = int(_integers(raw, after[:1], 2)[0]), int(after[0]) + 1
    ends = ends[ends >= at][: 7 * size]
    if len(ends) < 7 * size:
        raise Corrupt("an offset index ends before it is complete")
    fields = _integers(raw, ends, at).reshape(size, 7)
    if not (fields[:, ::2] == (0x16, 0x15, 0x16, 0x00)).all():
        raise Corrupt("an offset index has a page location of unknown form")
    offsets, sizes, rows = ((fields[:, i] >> 1) for i in (1, 3, 5))
    return offsets, sizes, rows


def _integers(raw: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp], start: int) -> Ints:
    """The unsigned variable-length integers that end at `ends`, the first beginning at `start`."""
    begins = np.concatenate([[start], ends[:-1] + 1])
    lengths = ends - begins + 1
    values = np.zeros(len(ends), dtype=np.int64)
    for byte in range(int(lengths.max(initial=0))):
        has = lengths > byte
        values[has] |= (raw[begins[has] + byte] & 0x7F).astype(np.int64) << (7 * byte)
    return values


def _read_block(tail: bytes, end: int, pages: int) -> npt.NDArray[np.uint32]:
    start = end - _BLOCK_HEAD.size - 4 * pages
    if start < 0 or _BLOCK_HEAD.unpack_from(tail, start) != (MAGIC, pages):
        raise Corrupt("the page checksums are not where they should be")
    return np.frombuffer(tail, dtype="<u4", count=pages, offset=start + _BLOCK_HEAD.size)
