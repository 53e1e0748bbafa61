"""Sorted runs of updates: sort, advance, consolidate, merge.

An *update table* has the data columns of a collection, `_time` and `_diff`. A *run* is an update
table, or an iterator of them, in the order of `sort`: by the key columns, then by the other data
columns, then by time. `noonmark.persist.part.order` says what order and sameness mean.

Law (contents): for every time t at or beyond `since`, the multiset of rows that a table holds at t
(the sum of diffs, by row, of the updates at times up to t) is the same before and after `sort`,
`advance(since)`, `consolidate` and `merge`. Nothing is promised for times before `since`.
Law (canonical): a consolidated run has no zero diff and no two updates with the same row and time.

Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.persist.part.coarse import coarse_key
from noonmark.persist.part.order import (
    Indices,
    Row,
    adjacent_equal,
    argsort,
    in_order,
    lower_bound,
    lower_bounds,
    one_array,
    plain_columns,
    refine,
    row_at,
)

TIME = "_time"
DIFF = "_diff"

# A piece this many times smaller than the rest is inserted row by row instead of sorted in.
_INSERT_RATIO = 256
#: Up to so many rows a sort beats a hash table that is set up for them.
_FEW_ROWS = 2_000
_NULL_DECIMAL = Decimal(0)
_BYTES = (pa.types.is_binary, pa.types.is_string, pa.types.is_fixed_size_binary)


def data_order(table: pa.Table, key: Sequence[str]) -> list[str]:
    """The names of the data columns, the key first: the order in which rows are compared."""
    names = [name for name in table.column_names if name not in (TIME, DIFF)]
    return [*key, *(name for name in names if name not in set(key))]


def sort(table: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The updates in order: key, then the other data columns, then time.

    Rows are compared beyond the key only where keys repeat; sorted input costs one pass.
    """
    if table.num_rows < 2:
        return table
    table = _one_chunk(table)
    names = [*data_order(table, key), TIME]
    key_names = names[: len(key)] if key else names[:1]
    keys = plain_columns(table, key_names)
    given = np.arange(table.num_rows)
    if not keys or in_order(keys):
        order, decided, rest = given, keys, names[len(key_names) :]
    elif (coarse := coarse_key(keys[0])) is not None:
        order, decided, rest = argsort([coarse]), [coarse], names
    else:
        order, decided, rest = argsort(keys), keys, names[len(key_names) :]
    order = refine(order, decided, lambda rows: plain_columns(table.take(rows), rest))
    return table if order is given else table.take(pa.array(order))


def advance(table: pa.Table, since: int) -> pa.Table:
    """Times below `since` become `since`; the order of a run is kept."""
    times = table.column(TIME)
    if table.num_rows == 0 or pc.min(times).as_py() >= since:
        return table
    later = np.maximum(one_array(times).to_numpy(), since)
    return _replace(table, TIME, later)


def consolidate(table: pa.Table, *, sorted_by: tuple[str, ...] | None = None) -> pa.Table:
    """Sum the diffs of updates with the same row and time; drop what sums to zero.

    The first update of each sum keeps its place, so a run stays a run. With `sorted_by`, the
    caller says that the table is a run by that key: then only neighbours are compared.
    """
    names = [*data_order(table, sorted_by or ()), TIME]
    return _sum_diffs(table, names, in_run=sorted_by is not None)


def accumulate(table: pa.Table, *, sorted_by: tuple[str, ...] | None = None) -> pa.Table:
    """The contents: diffs summed by row, zeros dropped, without `_time`.

    A negative multiplicity is kept as it is: to judge it is the caller's. The caller has taken
    the updates up to the time it wants.
    """
    names = data_order(table, sorted_by or ())
    rows = table.drop_columns([TIME])
    return _sum_diffs(rows, names, in_run=sorted_by is not None)


def merge(
    runs: Sequence[Iterator[pa.Table]], key: tuple[str, ...], since: int | None, rows_max: int
) -> Iterator[pa.Table]:
    """One consolidated run out of many, advanced to `since`, in tables of at most `rows_max` rows.

    Holds two tables of each run, and never more (unless one row's history is longer than a
    table). A table that no other run interleaves and that has nothing to sum passes through
    untouched, so a large base with small deltas costs little more than reading the base.
    """
    cursors = [cursor for run in runs if (cursor := _Cursor(run, key)).table is not None]
    while cursors:
        bounds = [cursor.bound for cursor in cursors if cursor.bound is not None]
        bound = min(bounds) if bounds else None
        pieces = [piece for cursor in cursors if (piece := cursor.take_below(bound)).num_rows]
        if since is not None:
            pieces = [advance(piece, since) for piece in pieces]
        if pieces:
            merged = consolidate(_interleave(pieces, key), sorted_by=key)
            for start in range(0, merged.num_rows, rows_max):
                yield merged.slice(start, rows_max) if merged.num_rows > rows_max else merged
        cursors = [cursor for cursor in cursors if cursor.table is not None]


class _Cursor:
    """A place in a run: the table at hand, and the next one to know where this one ends."""

    def __init__(self, run: Iterator[pa.Table], key: tuple[str, ...]) -> None:
        self._run = (table for table in run if table.num_rows)
        self._key = key
        self.table: pa.Table | None = next(self._run, None)
        self._read_ahead()

    def _read_ahead(self) -> None:
        """Rows below `bound` are all at hand; the next table may go on with the row `bound`."""
        self._ahead = next(self._run, None)
        self.bound = None if self._ahead is None else row_at(self._columns(self._ahead, 0, 1), 0)

    def _columns(self, table: pa.Table, start: int, rows: int) -> list[pa.Array]:
        return plain_columns(table.slice(start, rows), data_order(table, self._key))

    def take_below(self, bound: Row | None) -> pa.Table:
        """Remove and return the rows below `bound` (None: all of them)."""
        table = self.table
        assert table is not None
        place = table.num_rows if bound is None else self._place(table, bound)
        taken, rest = table.slice(0, place), table.slice(place)
        if self._ahead is not None and (self.bound == bound or not rest.num_rows):
            # What is left, if anything, equals the first row of the next table: they are one.
            rest = (
                _one_chunk(pa.concat_tables([rest, self._ahead])) if rest.num_rows else self._ahead
            )
            self._read_ahead()
        self.table = rest if rest.num_rows else None
        return table if place == table.num_rows else taken

    def _place(self, table: pa.Table, bound: Row) -> int:
        if row_at(self._columns(table, table.num_rows - 1, 1), 0) < bound:
            return int(table.num_rows)
        if row_at(self._columns(table, 0, 1), 0) >= bound:
            return 0
        return lower_bound(self._columns(table, 0, table.num_rows), bound)


def _interleave(pieces: list[pa.Table], key: tuple[str, ...]) -> pa.Table:
    """One run out of the pieces of several."""
    if len(pieces) == 1:
        return pieces[0]
    pieces = sorted(pieces, key=lambda piece: piece.num_rows)
    large = pieces.pop()
    small = sort(pa.concat_tables(pieces), key)
    if small.num_rows * _INSERT_RATIO > large.num_rows:
        return sort(pa.concat_tables([small, large]), key)
    return _insert(large, small, [*data_order(large, key), TIME])


def _insert(large: pa.Table, small: pa.Table, names: list[str]) -> pa.Table:
    """Put the few rows of one run where they belong among the many of another."""
    columns, few = plain_columns(large, names), plain_columns(small, names)
    slices, start = [], 0
    for at, place in enumerate(lower_bounds(columns, few)):
        slices += [large.slice(start, place - start), small.slice(at, 1)]
        start = place
    return _one_chunk(pa.concat_tables([*slices, large.slice(start)]))


def _sum_diffs(table: pa.Table, names: list[str], *, in_run: bool) -> pa.Table:
    """Sum `_diff` over rows that are the same in the columns `names`."""
    if table.num_rows == 0:
        return table
    table = _one_chunk(table)
    diffs = one_array(table.column(DIFF)).to_numpy()
    firsts, sums = (_sums_in_run if in_run else _sums_by_hash)(table, names, diffs)
    kept = np.flatnonzero(sums)
    if len(kept) == table.num_rows:
        return table
    return _replace(table.take(pa.array(firsts[kept])), DIFF, sums[kept])


def _sums_in_run(
    table: pa.Table, names: list[str], diffs: npt.NDArray[np.int64]
) -> tuple[Indices, npt.NDArray[np.int64]]:
    """First row and sum of each group of neighbours that are the same."""
    same = _adjacent_same(table, names)
    if not same.any():
        return np.arange(table.num_rows), diffs
    firsts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    return firsts, np.add.reduceat(diffs, firsts)


def _adjacent_same(table: pa.Table, names: list[str]) -> npt.NDArray[np.bool_]:
    """Column by column, as long as some neighbours are undecided: a unique key decides at once."""
    same = np.ones(table.num_rows - 1, dtype=np.bool_)
    for name in names:
        same &= adjacent_equal(plain_columns(table, [name]), table.num_rows)
        if not same.any():
            break
    return same


def _sums_by_hash(
    table: pa.Table, names: list[str], diffs: npt.NDArray[np.int64]
) -> tuple[Indices, npt.NDArray[np.int64]]:
    """First row and sum of each group, wherever its rows are; groups by first row."""
    columns = plain_columns(table, names)
    if not columns:
        return np.zeros(1, dtype=np.int64), np.array([diffs.sum()])
    if (found := sums_of_few(columns, diffs)) is not None:
        return found
    keys = [str(i) for i in range(len(columns))]
    rows = np.arange(table.num_rows)
    grouped = pa.table([*columns, rows, diffs], names=[*keys, "row", "diff"])
    sums = grouped.group_by(keys, use_threads=False).aggregate([("row", "min"), ("diff", "sum")])
    firsts = one_array(sums.column("row_min")).to_numpy()
    order = np.argsort(firsts, kind="stable")
    return firsts[order], one_array(sums.column("diff_sum")).to_numpy()[order]


def sums_of_few(
    columns: Sequence[pa.Array], diffs: npt.NDArray[np.int64]
) -> tuple[Indices, npt.NDArray[np.int64]] | None:
    """First row and sum of each group of rows that are the same in plain columns, by first row.

    None where there are many rows, or a column that is not soon a number.
    """
    if not 0 < len(diffs) <= _FEW_ROWS:
        return None
    numbers = []
    for column in columns:
        made = _as_numbers(column)
        if made is None:
            return None
        numbers += made
    return _sums_by_sort(numbers, diffs) if numbers else None


def _as_numbers(column: pa.Array) -> list[npt.NDArray[np.int64]] | None:
    """Columns of numbers that are the same where the values are; None where there are none."""
    kind = column.type
    is_decimal = pa.types.is_decimal128(kind)
    if any(is_kind(kind) for is_kind in _BYTES):
        numbers = column.dictionary_encode().indices
        return [numbers.fill_null(-1).to_numpy() if numbers.null_count else numbers.to_numpy()]
    if not (is_decimal or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    made = []
    if column.null_count:
        made.append(column.is_null().to_numpy(zero_copy_only=False))
        column = column.fill_null(
            _NULL_DECIMAL if is_decimal else pa.scalar(0, pa.int8()).cast(kind)
        )
    if not is_decimal:
        return [*made, column.to_numpy(zero_copy_only=False)]
    data = column.buffers()[1]
    start = 2 * column.offset
    halves = np.frombuffer(data, np.int64, start + 2 * len(column))[start:].reshape(-1, 2)
    return [*made, halves[:, 0], halves[:, 1]]


def _sums_by_sort(
    columns: list[npt.NDArray[np.int64]], diffs: npt.NDArray[np.int64]
) -> tuple[Indices, npt.NDArray[np.int64]]:
    """As `_sums_by_hash`: of few rows of numbers, a tenth of the time that a hash table takes."""
    order = np.lexsort(columns[::-1])
    is_first = np.zeros(len(order), np.bool_)
    is_first[0] = True
    for column in columns:
        ordered = column[order]
        is_first[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    firsts = order[starts]  # the order is stable: the first of its group
    sums = np.add.reduceat(diffs[order], starts)
    order = np.argsort(firsts, kind="stable")
    return firsts[order], sums[order]


def _one_chunk(table: pa.Table) -> pa.Table:
    """Kernels over one chunk need no look-up of the chunk of each row."""
    chunks = max((column.num_chunks for column in table.columns), default=1)
    return table if chunks == 1 else table.combine_chunks()


def _replace(table: pa.Table, name: str, values: npt.NDArray[np.int64]) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values))
