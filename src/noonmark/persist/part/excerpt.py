"""A small Parquet object made of some pages of a large one.

The pages are copied as they are, column after column, behind a footer that says that they are all
there is: one row group, the same schema without the columns that are left out. That works because
a part has no dictionaries: a page can be read without any other.

Law: reading ``excerpt`` gives the rows of the picked pages, in the order given. The pages of every
column hold the same rows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from noonmark.persist.part import thrift
from noonmark.persist.part.tail import Tail
from noonmark.persist.part.thrift import Field, Items, Struct

_MAGIC = b"PAR1"
_REPEATED = 2


class Page(NamedTuple):
    """Where one page lies, with its header, and the CRC-32 of these bytes."""

    offset: int
    size: int
    checksum: int


def excerpt(
    tail: Tail,
    pages: Mapping[tuple[str, ...], Sequence[Page]],
    bodies: Mapping[int, bytes | memoryview],
    rows: int,
) -> bytes:
    """The object that holds these pages.

    Args:
        tail: of the object that they come from.
        pages: of every leaf column that is kept: the pages, in the order of the columns.
        bodies: the bytes of every page, by offset.
        rows: how many rows the pages hold.
    """
    metas = {chunk.path: chunk.meta for chunk in tail.row_groups[0].chunks}
    elements, repeated = _schema(tail.footer[2].value.values, {path[0] for path in pages})
    pieces: list[bytes | memoryview] = [_MAGIC]
    at = len(_MAGIC)
    chunks = []
    for path, column in pages.items():
        own = [bodies[page.offset] for page in column]
        size = sum(len(body) for body in own)
        values = sum(map(_page_values, own)) if path in repeated else rows
        chunks.append(_chunk(metas[path], values, size, at))
        pieces += own
        at += size
    group: Struct = {
        1: Field(thrift.LIST, Items(thrift.STRUCT, chunks)),
        2: Field(thrift.I64, at - len(_MAGIC)),
        3: Field(thrift.I64, rows),
    }
    footer = thrift.encode_struct(
        {
            1: tail.footer[1],
            2: Field(thrift.LIST, Items(thrift.STRUCT, elements)),
            3: Field(thrift.I64, rows),
            4: Field(thrift.LIST, Items(thrift.STRUCT, [group] if rows else [])),
        }
    )
    return b"".join([*pieces, footer, struct.pack("<I", len(footer)), _MAGIC])


def _chunk(meta: Struct, values: int, size: int, at: int) -> Struct:
    """A ColumnChunk of pages that begin at `at`; type, encodings, path and codec stay."""
    kept = {field: meta[field] for field in (1, 2, 3, 4)}
    sizes = {field: Field(thrift.I64, size) for field in (6, 7)}
    places = {5: Field(thrift.I64, values), 9: Field(thrift.I64, at)}
    return {
        2: Field(thrift.I64, at),
        3: Field(thrift.STRUCT, {**kept, **sizes, **places}),
    }


def _page_values(body: bytes | memoryview) -> int:
    """How many values a data page says it has: with lists, not as many as rows."""
    header, _ = thrift.decode_struct(body)
    return int(header[5].value[1].value)


def _schema(
    elements: Sequence[Struct], names: set[str]
) -> tuple[list[Struct], set[tuple[str, ...]]]:
    """The schema with these top-level columns alone, and the leaf paths below a repeated element.

    The schema is a tree written depth first: each element says how many children follow it.
    """
    root = dict(elements[0])
    kept: list[Struct] = []
    repeated: set[tuple[str, ...]] = set()
    at = 1
    for _ in range(root[5].value):
        end = _walk(elements, at, (), repeated_above=False, repeated=repeated)
        if elements[at][4].value.decode() in names:
            kept += elements[at:end]
        at = end
    root[5] = Field(thrift.I32, len(names))
    return [root, *kept], repeated


def _walk(
    elements: Sequence[Struct],
    at: int,
    above: tuple[str, ...],
    *,
    repeated_above: bool,
    repeated: set[tuple[str, ...]],
) -> int:
    """Visit the element at `at` and all below it; the place after them."""
    element = elements[at]
    path = (*above, element[4].value.decode())
    is_repeated = repeated_above or (3 in element and element[3].value == _REPEATED)
    children = element[5].value if 5 in element else 0
    if not children and is_repeated:
        repeated.add(path)
    at += 1
    for _ in range(children):
        at = _walk(elements, at, path, repeated_above=is_repeated, repeated=repeated)
    return at
