"""Coarse keys: one integer for each row, so that most of a sort is a sort of integers.

Law (monotone): if row a is below row b by the first key column, the coarse key of a is at or below
that of b. So rows sorted by coarse key are sorted, except where coarse keys repeat; there the rows
are compared in full.

The coarse key of an integer is the integer. Of text or bytes it is the eight bytes that follow the
prefix that all values share, when these tell most rows apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_WORD = 8
_SAMPLE_ROWS = 1000
_DISTINCT_MIN = 0.9


def coarse_key(column: pa.Array) -> pa.Array | None:
    """The coarse key of a plain column (`order.plain`), if one is worth having."""
    if column.null_count or len(column) < 2:
        return None
    if pa.types.is_signed_integer(column.type):
        return column
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        sample = pa.array(np.arange(0, len(column), max(len(column) // _SAMPLE_ROWS, 1)))
        if len(np.unique(_words(column.take(sample)))) >= _DISTINCT_MIN * len(sample):
            return pa.array(_words(column))
    return None


def _words(column: pa.Array) -> npt.NDArray[np.int64]:
    """Eight bytes of each value, past what all share, as integers in the order of the bytes."""
    bytes_ = column.cast(pa.binary())
    extremes = pc.min_max(bytes_)
    shared = _shared_bytes(extremes["min"].as_py(), extremes["max"].as_py())
    _, offsets, data = bytes_.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[bytes_.offset :][: len(column) + 1]
    begins = ends[:-1].astype(np.int64) + shared
    missing = _WORD - np.clip(ends[1:] - begins, 0, _WORD)
    padded = np.frombuffer((data.to_pybytes() if data else b"") + bytes(_WORD), dtype=np.uint8)
    everywhere = np.ndarray((len(padded) - _WORD + 1,), dtype=">u8", buffer=padded, strides=(1,))
    words = everywhere[begins].astype(np.uint64)
    # Bytes beyond the end of a value belong to the next one: they count as zeros.
    shift = (np.minimum(missing, _WORD - 1) * 8).astype(np.uint64)
    words = np.where(missing == _WORD, np.uint64(0), words >> shift << shift)
    return (words ^ np.uint64(1 << 63)).view(np.int64)


def _shared_bytes(low: bytes, high: bytes) -> int:
    """How many bytes the two begin with in common: all values between them share these."""
    pairs = enumerate(zip(low, high, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(low), len(high)))
