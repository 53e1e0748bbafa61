"""When a plan is computed by kernels, in a statement worker; and of which leaf it takes pieces.

What a plan takes of memory is estimated by the columns that it looks at. Of one leaf, the largest,
it needs only a piece at a time for each thread where its operators allow that
(`noonmark.compute.contents.pieces`); its file is mapped, and may be as large as files may be.
What is kept of all pieces, as many groups, is not estimated: who runs out of memory goes on
another way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from noonmark.adapter.peek.shape import Leaf
from noonmark.adapter.worker.columnar import InPieces
from noonmark.compute.contents.pieces import columns_used, split_of
from noonmark.rows.arrow import arrow_type
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import columns_of

if TYPE_CHECKING:
    from noonmark.adapter.peek.answer import Peek

#: What a value of a column takes in a worker at most, with what is made of it.
_VALUE_BYTES = 64
#: What a value takes in a file, where its type does not say.
_TEXT_BYTES = 24
#: Rows of a piece: enough that what each piece costs beside its rows is little.
PIECE_ROWS = 1 << 19
_PIECE_ROWS_MIN = 10_000
#: Of the memory of a statement, what its pieces may take; the rest is for what is kept of them.
_PIECES_SHARE = 0.5
_THREADS_MAX = 4


@dataclass(frozen=True)
class Columns:
    """From how many rows on, in how much memory, over files of which size.

    With `streams` somebody takes the rows as they come: all of a collection has another way.
    """

    rows_min: int
    memory_bytes: int
    file_bytes: int
    streams: bool = True

    def fits(self, peek: Peek, sizes: Sequence[tuple[Leaf, int]]) -> bool:
        """Whether a peek whose leaves have so many rows is."""
        total = sum(size for _, size in sizes)
        if total < self.rows_min or not peek.has_kernels:
            return False
        linear = peek.shape.linear and not peek.order
        if self.streams and linear and peek.shape.leaves[0].predicate is None:
            return False  # piece by piece
        if sum(size * _row_bytes(leaf) for leaf, size in sizes) > self.file_bytes:
            return False
        pieces, left = self.pieces(peek, sizes), self.memory_bytes
        if pieces is not None:
            left = int(left * (1 - _PIECES_SHARE))
        rest = peek.shape.rest
        whole = [each for each in sizes if pieces is None or each[0].name != pieces.name]
        return sum(size * _used_bytes(rest, leaf) for leaf, size in whole) <= left

    def pieces(self, peek: Peek, sizes: Sequence[tuple[Leaf, int]]) -> InPieces | None:
        """How the rows of the largest leaf are taken in pieces; None for all at once."""
        leaf, size = max(sizes, key=lambda each: each[1])
        if size <= PIECE_ROWS:
            return None
        rest = peek.shape.rest
        split = split_of(rest, leaf.name)
        if split is None or (split.reduction is None and peek.order and leaf.predicate is None):
            return None
        threads = min(_THREADS_MAX, _processors())
        # One more than there are threads is made ahead.
        share = int(self.memory_bytes * _PIECES_SHARE) // (threads + 1)
        rows = min(PIECE_ROWS, share // _used_bytes(rest, leaf))
        return InPieces(leaf.name, rows, threads) if rows >= _PIECE_ROWS_MIN else None


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system says which it may use
        return os.cpu_count() or 1


def _used_bytes(rest: r.Relation, leaf: Leaf) -> int:
    """What a row of a leaf takes in a worker."""
    used = columns_used(rest, leaf.name)
    if leaf.predicate is not None:
        used |= columns_of(leaf.predicate)
    return _VALUE_BYTES * (1 + len(used))


def _row_bytes(leaf: Leaf) -> int:
    """About what a row of a leaf takes in its file."""
    kinds = [arrow_type(column.type) for column in leaf.scan.columns]
    return 8 + sum((kind.bit_width + 7) // 8 if _is_fixed(kind) else _TEXT_BYTES for kind in kinds)


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))
