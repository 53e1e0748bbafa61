"""The offsets of a file: how much of it was taken, and what that looked like.

A file promises nothing: it may be cut, or replaced under its name. To notice it without keeping
anything beside the remap, the offset itself carries the evidence. An offset is one integer,

    position * UNIT + mark          0 <= mark < UNIT

where position counts bytes (lines) or rows (Parquet). In a frontier the mark is a fingerprint of
what lies before the position, at most UNIT - 2; a record that begins at a position has the mark
UNIT - 1. So offsets are ordered by position first, and

Law (order): a record that begins at p is in the frontier {position q, any fingerprint} iff p >= q.
Law (evidence): a bound frontier says, for ever, what the file before it looked like. A file
that differs in what is fingerprinted (of lines: the first and the last 4 KiB before the position;
of Parquet: the footer) has the same fingerprint by chance only, once in four million.

The last positions are no positions: they say why a file will never be read again. A file that is
bound to one of these stays there.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import xxhash

UNIT = 1 << 22
POSITION_MAX = (1 << 41) - 16
RECORD_MARK = UNIT - 1


class Broken(IntEnum):
    """Why no more is read of a file. The numbers are stored: never change one."""

    SHRUNK = 1
    REPLACED = 2
    UNREADABLE = 3
    TOO_LARGE = 4
    COMPRESSED = 5


_WORDS = {
    Broken.SHRUNK: "became shorter than what was already read of it",
    Broken.REPLACED: "was replaced: what was already read of it is not there any more",
    Broken.UNREADABLE: "is not a whole Parquet file",
    Broken.TOO_LARGE: "is larger than an offset can say",
    Broken.COMPRESSED: "is compressed, which is not supported",
}


def pack(position: int, mark: int) -> int:
    """The offset of a position with a mark."""
    return position * UNIT + mark


def position_of(offset: int) -> int:
    """The bytes or rows before an offset."""
    return offset // UNIT


def record_offsets(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The offsets of records that begin at the positions."""
    return positions * UNIT + RECORD_MARK


def fingerprint(*pieces: bytes) -> int:
    """A mark for a frontier."""
    digest = xxhash.xxh3_64()
    for piece in pieces:
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return int(digest.intdigest() % (UNIT - 1))


def broken_offset(why: Broken) -> int:
    """The offset that a broken file is bound to."""
    return pack(POSITION_MAX + why, 0)


def why_broken(offset: int) -> Broken | None:
    """Whether an offset says that the file is broken."""
    position = position_of(offset)
    return Broken(position - POSITION_MAX) if position > POSITION_MAX else None


def explain(path: str, why: Broken) -> str:
    """A sentence for the error row."""
    return f"file {path!r} {_WORDS[why]}"
