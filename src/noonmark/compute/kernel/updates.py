"""Updates as Arrow columns: what the rules of small changes compute with.

Law: a `Rows` is the multiset of updates ``(row i, time i, diff i)``; `take`, `where` and `concat`
are those of multisets, and `consolidated` is an equal one without repetition.

Errors are beside the rows, as in `noonmark.compute.spark.frame`: text, time and diff.

Where it runs: executors; pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noonmark.persist.part import order, run
from noonmark.rows.arrow import arrow_type
from noonmark.rows.schema import Schema

Ints = npt.NDArray[np.int64]
Error = tuple[str, int, int]

#: The time of what was there before all changes.
BEFORE = -1


@dataclass(frozen=True, eq=False)
class Rows:
    """Updates; a column that nobody asks for may be missing, and is None."""

    columns: tuple[pa.Array | None, ...]
    time: Ints
    diff: Ints

    def __len__(self) -> int:
        return len(self.diff)

    def take(self, places: Ints) -> Rows:
        """The updates at these places."""
        taken = pa.array(places)
        columns = tuple(None if c is None else c.take(taken) for c in self.columns)
        return Rows(columns, self.time[places], self.diff[places])

    def with_columns(self, columns: Sequence[pa.Array | None]) -> Rows:
        """Other columns for the same updates."""
        return Rows(tuple(columns), self.time, self.diff)

    def at(self, time: int) -> Rows:
        """The same updates, all at one time."""
        return Rows(self.columns, np.full(len(self), time, np.int64), self.diff)

    def negated(self) -> Rows:
        """What takes them away."""
        return Rows(self.columns, self.time, -self.diff)

    def consolidated(self) -> Rows:
        """No two updates of one row and time, and none that does nothing."""
        if len(self) < 2:
            return self if len(self) == 0 or self.diff[0] else self.take(np.zeros(0, np.int64))
        plain = [part for c in self.columns if c is not None for part in order.plain(c)]
        few = run.sums_of_few([*plain, pa.array(self.time)], self.diff)
        if few is not None:
            return self._summed(*few)
        names = [str(at) for at, column in enumerate(self.columns) if column is not None]
        given = [column for column in self.columns if column is not None]
        table = pa.table([*given, self.time, self.diff], names=[*names, run.TIME, run.DIFF])
        return from_table(run.consolidate(table), [c is not None for c in self.columns])

    def _summed(self, firsts: Ints, sums: Ints) -> Rows:
        """The updates at these places, with these diffs; none that does nothing."""
        there = np.flatnonzero(sums)
        if len(there) == len(self):
            return self
        taken = self.take(firsts[there])
        return Rows(taken.columns, taken.time, sums[there])

    def table(self, names: Sequence[str]) -> pa.Table:
        """The updates as persist takes them."""
        layout = [*names, run.TIME, run.DIFF]
        return pa.table([*self.columns, self.time, self.diff], names=layout)


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of a relation: of its rows, and of its errors."""

    rows: Rows
    errors: tuple[Error, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        return not len(self.rows) and not self.errors


def from_table(table: pa.Table, present: Sequence[bool] | None = None) -> Rows:
    """A table of updates; `present` says which columns the table has."""
    table = table.combine_chunks()
    time, diff = (one_array(table.column(n)).to_numpy() for n in (run.TIME, run.DIFF))
    given = [one_array(c) for c in table.drop_columns([run.TIME, run.DIFF]).columns]
    if present is None:
        return Rows(tuple(given), time, diff)
    rest = iter(given)
    return Rows(tuple(next(rest) if there else None for there in present), time, diff)


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def empty_rows(schema: Schema) -> Rows:
    """No updates."""
    none = np.zeros(0, np.int64)
    return Rows(tuple(pa.array([], arrow_type(c.type)) for c in schema), none, none)


def concat(parts: Sequence[Rows], schema: Schema) -> Rows:
    """All updates of all parts."""
    given = [part for part in parts if len(part)]
    if not given:
        return empty_rows(schema)
    if len(given) == 1:
        return given[0]
    columns: list[pa.Array | None] = []
    for at in range(len(schema)):
        arrays = [part.columns[at] for part in given]
        missing = any(array is None for array in arrays)
        columns.append(None if missing else pa.concat_arrays(arrays))
    time = np.concatenate([part.time for part in given])
    return Rows(tuple(columns), time, np.concatenate([part.diff for part in given]))


def places(mask: pa.Array) -> Ints:
    """Where a boolean array is TRUE."""
    if mask.null_count:
        mask = pc.fill_null(mask, False)
    true = mask.to_numpy(zero_copy_only=False)
    return np.flatnonzero(true)


def group_ids(arrays: Sequence[pa.Array], count: int) -> tuple[Ints, Ints]:
    """The number of the group of each row, and the first row of each group; NULL equals NULL.

    For types whose stored values are the same iff they are equal.
    """
    ids, firsts = np.zeros(count, np.int64), np.zeros(min(count, 1), np.int64)
    for at, array in enumerate(arrays):
        codes, size = _by_value(array) or _by_table(array)
        if at and _is_sparse(len(firsts) * size, count):
            codes, places = _numbered(codes, size)
            size = len(places)
        ids, firsts = _numbered(ids * size + codes if at else codes, len(firsts) * size)
    return ids, firsts


def _by_value(array: pa.Array) -> tuple[Ints, int] | None:
    """Whole numbers that are close together are their own codes, above 0, which is NULL's."""
    if not pa.types.is_signed_integer(array.type) or array.null_count == len(array):
        return None
    ends = pc.min_max(array).as_py()
    least, size = ends["min"], ends["max"] - ends["min"] + 2
    if _is_sparse(size, len(array)):
        return None
    filled = pc.fill_null(array, least) if array.null_count else array
    codes = filled.to_numpy(zero_copy_only=False).astype(np.int64) - least + 1
    if array.null_count:
        codes *= array.is_valid().to_numpy(zero_copy_only=False)
    return codes, size


def _by_table(array: pa.Array) -> tuple[Ints, int]:
    """Codes of values in the order in which they come, above 0, which is NULL's; how many."""
    codes = array.dictionary_encode().indices
    if codes.null_count:
        codes = pc.fill_null(codes, -1)
    made = codes.to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return made, int(made.max(initial=0)) + 1


def distinct_keys(keys: Sequence[pa.Array]) -> list[pa.Array]:
    """Each key once."""
    _, firsts = group_ids(keys, len(keys[0]))
    return [key.take(pa.array(firsts)) for key in keys]


def _is_sparse(size: int, count: int) -> bool:
    """Whether a table of so many places is too large for so many numbers."""
    return size > 4 * count + 1024


def _numbered(ids: Ints, size: int) -> tuple[Ints, Ints]:
    """Numbers below `size` without gaps, in the same order, and where each is first."""
    if _is_sparse(size, len(ids)):
        _, firsts, ids = np.unique(ids, return_index=True, return_inverse=True)
        return ids, firsts.astype(np.int64)
    first = np.full(size, -1, np.int64)
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    there = first >= 0
    return (np.cumsum(there) - 1)[ids], first[there]


@dataclass
class Errors:
    """Errors that are gathered on the way."""

    found: list[Error] = field(default_factory=list)

    def add(self, texts: Sequence[Any], time: Ints, diff: Ints) -> None:
        """The errors among the texts, at the times and diffs of their rows."""
        for text, when, count in zip(texts, time.tolist(), diff.tolist(), strict=True):
            if text is not None:
                self.found.append((text, when, count))


def errors_table(errors: Sequence[Error]) -> pa.Table | None:
    """Errors as a view keeps them."""
    if not errors:
        return None
    return pa.table(
        {
            "sqlstate": pa.array([text[:5] for text, _, _ in errors], pa.string()),
            "message": pa.array([text[6:] for text, _, _ in errors], pa.string()),
            run.TIME: pa.array([time for _, time, _ in errors], pa.int64()),
            run.DIFF: pa.array([diff for _, _, diff in errors], pa.int64()),
        }
    )


def errors_in(table: pa.Table) -> tuple[Error, ...]:
    """The updates of a view's errors, as evaluations have them."""
    columns = [table.column(n).to_pylist() for n in ("sqlstate", "message", run.TIME, run.DIFF)]
    return tuple((f"{a} {b}", time, diff) for a, b, time, diff in zip(*columns, strict=True))
