"""Indexes: where the rows with a key are.

Law: ``matches(index, probes)`` are all pairs (i, j) such that probe i has the hash of row j; the
caller compares the values (`same`), for different values may have one hash.

An index is the hashes of all rows in ascending order, and the rows in that order: two binary
searches find all rows of a key, whatever the types of the key are.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from noonmark.compute.kernel.updates import Ints

Hashes = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

_NULL = np.uint64(0x9E3779B97F4A7C15)
_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, eq=False)
class Index:
    """Hashes in ascending order, and the row of each."""

    hashes: Hashes
    rows: npt.NDArray[np.uint32]


def _mix(values: Hashes) -> Hashes:
    values = (values ^ (values >> np.uint64(30))) * _A
    values = (values ^ (values >> np.uint64(27))) * _B
    return values ^ (values >> np.uint64(31))


def _of_bytes(array: pa.Array) -> Hashes:
    """Text and bytes: each value that occurs is hashed once."""
    coded = array.dictionary_encode()
    views = (value.as_buffer() for value in coded.dictionary)
    known = np.fromiter((xxhash.xxh3_64_intdigest(view) for view in views), np.uint64)
    if not len(known):
        return np.zeros(len(array), np.uint64)
    codes = pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)
    return np.asarray(known[codes], np.uint64)


def _of_array(array: pa.Array) -> Hashes:
    kind = array.type
    if pa.types.is_decimal128(kind):
        words = np.frombuffer(array.buffers()[1], np.uint64) if len(array) else np.zeros(0)
        words = words[2 * array.offset : 2 * (array.offset + len(array))].astype(np.uint64)
        made = _mix(words[0::2]) + words[1::2]
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        made = _of_bytes(array)
    else:
        if pa.types.is_date32(kind):
            array = array.view(pa.int32())
        elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
            array = array.view(pa.int64())
        plain = array
        if array.null_count:
            plain = pc.fill_null(array, False if pa.types.is_boolean(kind) else 0)
        made = plain.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    if array.null_count:
        made = np.where(array.is_valid().to_numpy(zero_copy_only=False), made, _NULL)
    return np.asarray(made, np.uint64)


def hashes_of(arrays: Sequence[pa.Array], count: int) -> Hashes:
    """One hash per row; equal values of one type have equal hashes, NULL equals NULL."""
    made = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):
        for array in arrays:
            made = _mix(made * np.uint64(31) + _of_array(array) + _NULL)
    return made


def build(arrays: Sequence[pa.Array], count: int) -> Index:
    """The index of rows by these columns."""
    hashes = hashes_of(arrays, count)
    order = np.argsort(hashes, kind="stable").astype(np.uint32)
    return Index(hashes[order], order)


def matches(index: Index, probes: Hashes) -> tuple[Ints, Ints]:
    """All pairs of a probe and a row with its hash, as two arrays of places."""
    there, low, count = ranges(index, probes)
    return _pairs(index, there, low, count)


def firsts(index: Index, probes: Hashes, size: int) -> tuple[Ints, Ints, Bools]:
    """Of the rows of each probe at most so many; and which are the last before others."""
    there, low, count = ranges(index, probes)
    taken = np.minimum(count, size)
    given, found = _pairs(index, there, low, taken)
    cut = np.zeros(len(given), np.bool_)
    cut[np.cumsum(taken)[count > size] - 1] = True
    return given, found, cut


def ranges(index: Index, probes: Hashes) -> tuple[Ints, Ints, Ints]:
    """The probes that have rows, where these begin in the index, and how many they are."""
    if not len(index.hashes):
        none = np.zeros(0, np.int64)
        return none, none, none
    low = np.searchsorted(index.hashes, probes, "left")
    # Most probes of most pieces have no row: only for those that have one the end is searched.
    there = np.flatnonzero(index.hashes[np.minimum(low, len(index.hashes) - 1)] == probes)
    low = low[there]
    return there, low, np.searchsorted(index.hashes, probes[there], "right") - low


def _pairs(index: Index, there: Ints, low: Ints, count: Ints) -> tuple[Ints, Ints]:
    given = np.repeat(there, count)
    starts = np.repeat(low - (np.cumsum(count) - count), count)
    return given, index.rows[starts + np.arange(len(given))].astype(np.int64)


def same(left: Sequence[pa.Array], right: Sequence[pa.Array], count: int) -> Ints:
    """The places at which the values of both sides are the same; NULL is the same as NULL."""
    fine = np.ones(count, np.bool_)
    for a, b in zip(left, right, strict=True):
        found = pc.equal(a, b)
        if found.null_count:
            found = pc.fill_null(found, False)
        equal = found.to_numpy(zero_copy_only=False)
        if a.null_count and b.null_count:
            nulls = pc.and_(pc.is_null(a), pc.is_null(b)).to_numpy(zero_copy_only=False)
            equal = equal | nulls
        fine &= equal
    return np.flatnonzero(fine)
