"""Arrow columns out of numpy arrays, without a loop over rows. What the generators are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noonmark.source.impl.chance import Longs, Words, again, draw


def cents(amounts: Longs, precision: int = 15) -> pa.Array:
    """numeric(precision, 2) from an amount in hundredths."""
    halves = np.empty((len(amounts), 2), np.int64)
    halves[:, 0] = amounts
    halves[:, 1] = amounts >> 63
    return pa.Array.from_buffers(
        pa.decimal128(precision, 2), len(amounts), [None, pa.py_buffer(halves)]
    )


def numbered(template: str, *numbers: Longs) -> pa.Array:
    """Text of one length: each run of # in the template holds the digits of the next number.

    A * stands for the character # itself.

    >>> numbered("a*##-#", np.array([7, 12]), np.array([3, 4])).to_pylist()
    ['a#07-3', 'a#12-4']
    """
    count = len(numbers[0])
    text = np.empty((count, len(template)), np.uint8)
    text[:] = np.frombuffer(template.replace("*", "#").encode(), np.uint8)
    place, rest = len(template), list(numbers)
    while rest:
        left = rest.pop().copy()
        while template[place - 1] != "#":
            place -= 1
        while place and template[place - 1] == "#":
            place -= 1
            text[:, place] = ord("0") + left % 10
            left //= 10
    return fixed(text, pa.string())


def fixed(matrix: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
    """Text or bytes, one row of the matrix each."""
    count, width = matrix.shape
    ends = np.arange(count + 1, dtype=np.int64) * width
    if count and ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError("more than 2 GiB in one column of one batch")
    buffers = [
        None,
        pa.py_buffer(ends.astype(np.int32)),
        pa.py_buffer(np.ascontiguousarray(matrix)),
    ]
    return pa.Array.from_buffers(kind, count, buffers)


def noise(bits: Words, width: int) -> pa.Array:
    """Bytes of one length for each word."""
    words = -(-width // 8)
    matrix = np.stack([again(bits, nth + 1) for nth in range(words)], axis=1)
    return fixed(matrix.astype("<u8").view(np.uint8).reshape(len(bits), -1)[:, :width], pa.binary())


def pick(pool: pa.Array, places: Longs) -> pa.Array:
    """The entries of a pool."""
    return pool.take(pa.array(places))


def sentences(stream: int, count: int, words: Sequence[str], least: int, most: int) -> pa.Array:
    """A pool of texts of `least` to `most` words, the same in every process."""
    bits = draw(0, stream, np.arange(count)[:, None], np.arange(most + 1))
    chosen = (bits % np.uint64(len(words))).tolist()
    lengths = (least + bits[:, most] % np.uint64(most - least + 1)).tolist()
    lines = [
        " ".join([words[word] for word in row[:length]])
        for row, length in zip(chosen, lengths, strict=True)
    ]
    return pa.array(lines, pa.string())
