"""Pairs of rows with equal keys.

The keys of both sides are numbered together, so that equal is one number; the right side is put in
the order of its numbers, and each left row finds its partners there as one stretch. Where one side
is joined to many others, and its keys are whole numbers, they are places in a table (`Places`).

Where it runs: statement workers; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.kernel.scalar import kept, projected
from noonmark.compute.kernel.updates import Errors, Ints, Rows, concat, group_ids
from noonmark.compute.scalar import number
from noonmark.compute.scalar.number import NoKernel
from noonmark.rows import types as t
from noonmark.rows.arrow import arrow_type
from noonmark.rows.exact import is_exact
from noonmark.rows.schema import Schema
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.scalar import TRUE, columns_of

#: More pairs are not looked at here.
PAIRS_MAX = 20_000_000
_WHOLE = (t.SmallInt, t.Integer, t.BigInt)
_NUMBERS = (*_WHOLE, t.Numeric)


def can_join(node: r.Join) -> bool:
    """Whether equal keys are the same, or can be made so."""
    return all(_comparable(key.left.type, key.right.type) for key in node.keys)


def _comparable(left: t.SqlType, right: t.SqlType) -> bool:
    exact = is_exact(left) and is_exact(right)
    numbers = isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS)
    return exact and (numbers or arrow_type(left) == arrow_type(right))


@dataclass(frozen=True, eq=False)
class Places:
    """Where the row with each key is, of a side with keys that are close together, each once.

    Behind the place of the largest key is that of all others: none, which is -1.
    """

    is_right: bool
    least: int
    places: Ints

    def of(self, keys: pa.Array) -> Ints:
        """For each key of the other side the place of its row, or -1."""
        filled = pc.fill_null(keys, 0) if keys.null_count else keys
        values = filled.to_numpy(zero_copy_only=False).astype(np.int64)
        with np.errstate(over="ignore"):  # what is below the least becomes larger than all
            codes = (values - np.int64(self.least)).view(np.uint64)
        np.minimum(codes, np.uint64(len(self.places) - 1), out=codes)
        if keys.null_count:
            codes[keys.is_null().to_numpy(zero_copy_only=False)] = len(self.places) - 1
        return np.asarray(self.places[codes.view(np.int64)], np.int64)


def places_by_key(node: r.Join, rows: Rows, *, is_right: bool) -> Places | None:
    """Where the keys of one side are, for many joins with others; None if they are not such."""
    if len(node.keys) != 1 or node.keys[0].null_equal:
        return None
    (key,) = node.keys
    if not all(isinstance(each.type, _WHOLE) for each in (key.left, key.right)):
        return None
    errors = Errors()
    (array,), _ = projected([key.right if is_right else key.left], rows, errors)
    if errors.found or array.null_count == len(array):
        return None
    ends = pc.min_max(array).as_py()
    least, size = ends["min"], ends["max"] - ends["min"] + 1
    if size > 4 * len(array) + 1024:
        return None
    there = np.arange(len(array))
    if array.null_count:
        there = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        array = array.drop_null()
    codes = array.to_numpy(zero_copy_only=False).astype(np.int64) - least
    places = np.full(size + 1, -1, np.int32 if len(there) < 1 << 31 else np.int64)
    places[codes] = there
    return Places(is_right, least, places) if (places[codes] == there).all() else None


def join(
    node: r.Join,
    left: Rows,
    right: Rows,
    errors: Errors,
    *,
    known: Places | None = None,
    wanted: set[int] | None = None,
) -> Rows:
    """The rows of a join.

    Args:
        node: the join.
        left: the rows of one side.
        right: those of the other.
        errors: where it says which rows have no answer.
        known: where the keys of one of the sides are.
        wanted: the columns that are needed of its rows; the others are missing.
    """
    lefts, rights = _pairs(node, left, right, errors, known)
    if node.on != TRUE:
        lefts, rights = _matching(node, left, right, (lefts, rights), errors)
    if wanted is not None:
        width = len(left.columns)
        left = left.with_columns(_only(left.columns, wanted, 0))
        right = right.with_columns(_only(right.columns, wanted, width))
    if node.kind in (r.JoinKind.SEMI, r.JoinKind.ANTI):
        matched = np.zeros(len(left), np.bool_)
        matched[lefts] = True
        there = matched if node.kind is r.JoinKind.SEMI else ~matched
        return left.take(np.flatnonzero(there))
    parts = [_beside(_taken(left, lefts), right.take(rights))]
    if node.kind in (r.JoinKind.LEFT, r.JoinKind.FULL):
        alone = left.take(_others(lefts, len(left)))
        parts.append(_beside(alone, _nulls(node.right.schema, alone)))
    if node.kind in (r.JoinKind.RIGHT, r.JoinKind.FULL):
        alone = right.take(_others(rights, len(right)))
        parts.append(_beside(_nulls(node.left.schema, alone), alone))
    return concat(parts, node.schema)


def _taken(rows: Rows, places: Ints) -> Rows:
    """The rows at the places; often these are all, in their order."""
    if len(places) == len(rows) and (places[1:] > places[:-1]).all():
        return rows
    return rows.take(places)


def _pairs(
    node: r.Join, left: Rows, right: Rows, errors: Errors, known: Places | None
) -> tuple[Ints, Ints]:
    """The places of rows with equal keys."""
    if known is not None:
        return _pairs_by_place(node, left, right, errors, known)
    if not node.keys:
        _check_pairs(len(left) * len(right))
        places = np.repeat(np.arange(len(left)), len(right))
        return places, np.tile(np.arange(len(right)), len(left))
    values, _ = projected([key.left for key in node.keys], left, errors)
    others, _ = projected([key.right for key in node.keys], right, errors)
    if errors.found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    both, fine = [], np.ones(len(left) + len(right), np.bool_)
    for key, a, b in zip(node.keys, values, others, strict=True):
        array = _together(a, b)
        if not key.null_equal and array.null_count:
            fine &= array.is_valid().to_numpy(zero_copy_only=False)
        both.append(array)
    ids, firsts = group_ids(both, len(fine))
    return _stretches(ids[: len(left)], ids[len(left) :], fine, len(firsts))


def _pairs_by_place(
    node: r.Join, left: Rows, right: Rows, errors: Errors, known: Places
) -> tuple[Ints, Ints]:
    (key,) = node.keys
    rows, scalar = (left, key.left) if known.is_right else (right, key.right)
    (array,), _ = projected([scalar], rows, errors)
    if errors.found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    partners = known.of(array)
    met = np.flatnonzero(partners >= 0)
    found = partners if len(met) == len(partners) else partners[met]
    _check_pairs(len(met))
    return (met, found) if known.is_right else (found, met)


def _stretches(lefts: Ints, rights: Ints, fine: np.ndarray, count: int) -> tuple[Ints, Ints]:
    left_places = np.flatnonzero(fine[: len(lefts)])
    right_places = np.flatnonzero(fine[len(lefts) :])
    numbers = rights[right_places]
    sizes = np.bincount(numbers, minlength=count)
    if sizes.max(initial=0) <= 1:  # as where the right side is joined by its own key
        only = np.full(count, -1, np.int64)
        only[numbers] = right_places
        partners = only[lefts[left_places]]
        met = np.flatnonzero(partners >= 0)
        _check_pairs(len(met))
        return left_places[met], partners[met]
    right_places = right_places[np.argsort(numbers, kind="stable")]
    begins = np.cumsum(sizes) - sizes
    asked = lefts[left_places]
    times = sizes[asked]
    total = int(times.sum())
    _check_pairs(total)
    ends = np.cumsum(times)
    within = np.arange(total) - np.repeat(ends - times, times)
    at = np.repeat(begins[asked], times) + within
    return np.repeat(left_places, times), right_places[at]


def _together(a: pa.Array, b: pa.Array) -> pa.Array:
    """The keys of both sides as one array in which equal is the same."""
    if a.type != b.type:
        first, second = number.scaled(a), number.scaled(b)
        scale = max(first.scale, second.scale)
        a, b = (_whole(each.at_scale(scale)) for each in (first, second))
    return pa.concat_arrays([a, b])


def _whole(numbers: number.Scaled) -> pa.Array:
    if numbers.values.dtype == object:
        raise NoKernel
    mask = None if numbers.valid is None else ~numbers.valid
    return pa.array(numbers.values, pa.int64(), mask=mask)


def _matching(
    node: r.Join, left: Rows, right: Rows, pairs: tuple[Ints, Ints], errors: Errors
) -> tuple[Ints, Ints]:
    """The pairs for which `on` is TRUE."""
    lefts, rights = pairs
    asked, width = columns_of(node.on), len(left.columns)
    some = Rows(_only(left.columns, asked, 0), left.time, left.diff).take(lefts)
    more = Rows(_only(right.columns, asked, width), right.time, right.diff).take(rights)
    places = kept(node.on, _beside(some, more), errors)
    return lefts[places], rights[places]


def _only(
    columns: Sequence[pa.Array | None], asked: frozenset[int] | set[int], offset: int
) -> tuple[pa.Array | None, ...]:
    return tuple(c if at + offset in asked else None for at, c in enumerate(columns))


def _beside(left: Rows, right: Rows) -> Rows:
    """Rows of the same pairs, with the columns of both."""
    return Rows((*left.columns, *right.columns), left.time, left.diff * right.diff)


def _others(places: Ints, count: int) -> Ints:
    there = np.ones(count, np.bool_)
    there[places] = False
    return np.flatnonzero(there)


def _nulls(schema: Schema, beside: Rows) -> Rows:
    count = len(beside)
    columns = tuple(pa.nulls(count, arrow_type(column.type)) for column in schema)
    return Rows(columns, beside.time, np.ones(count, np.int64))


def _check_pairs(count: int) -> None:
    if count > PAIRS_MAX:
        raise NoKernel
