"""Key ranges: the work over many sorted runs, cut into pieces that can be done apart.

A *range* holds the rows whose first sort column (the first key column, or the first column of a
collection without a key) lies in ``[low, high)``, as physical values; None is an open end. NULL
and NaN lie beyond every value, in the range without a high end.

Law (partition): every row lies in exactly one of the ranges of `cut`.
Law (order): in the order of runs, every row of a range comes before every row of the next. So runs
merged range by range, end to end, are the merged run.

The cuts are taken where the parts of the longest run begin, so that most parts are read by one
range alone. Where it runs: driver and executors; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.persist.part.part import Part


@dataclass(frozen=True)
class KeyRange:
    """The rows with ``low <= value < high`` in `column`, which is at `place` in the schema."""

    column: str
    place: int
    low: Any = None
    high: Any = None

    def may_hold(self, part: Part) -> bool:
        """Whether some row of the part can lie in the range."""
        if self.place >= len(part.columns):
            return True
        low, high, nulls = part.columns[self.place]
        if nulls and self.high is None:
            return True
        if nulls == part.rows:
            return False
        above = self.low is not None and high is not None and high < self.low
        below = self.high is not None and low is not None and low >= self.high
        return not above and not below

    def mask(self, table: pa.Table) -> pa.ChunkedArray | None:
        """For each row, whether it lies in the range; None when every row does."""
        if self.low is None and self.high is None:
            return None
        column = _comparable(table.column(self.column))
        low = None if self.low is None else pc.invert(_below(column, self.low))
        if self.high is None:
            return low
        high = _below(column, self.high)
        return high if low is None else pc.and_(low, high)


def cut(
    runs: Sequence[Sequence[Part]], column: str, place: int, rows_min: int
) -> tuple[KeyRange, ...]:
    """Ranges in ascending order, each with at least `rows_min` rows of the longest run.

    Args:
        runs: the parts of each run, in order.
        column: the first sort column.
        place: its place in the schema.
        rows_min: how many rows of the longest run make a range worth its task.
    """
    longest = max(runs, key=lambda parts: sum(part.rows for part in parts), default=())
    cuts = list(_cuts(longest, place, rows_min))
    lows: list[Any] = [None, *cuts]
    highs: list[Any] = [*cuts, None]
    return tuple(KeyRange(column, place, *ends) for ends in zip(lows, highs, strict=True))


def _cuts(parts: Iterable[Part], place: int, rows_min: int) -> Iterable[Any]:
    rows, last = 0, None
    for part in parts:
        low = part.columns[place][0] if place < len(part.columns) else None
        if rows >= rows_min and low is not None and (last is None or low > last):
            yield low
            rows, last = 0, low
        rows += part.rows


def _below(column: pa.ChunkedArray, bound: Any) -> pa.ChunkedArray:
    """NaN is below nothing, and neither is NULL."""
    if pa.types.is_decimal(column.type):
        digits = tuple(map(int, str(abs(bound))))
        bound = Decimal((int(bound < 0), digits, -column.type.scale))
    return pc.fill_null(pc.less(column, pa.scalar(bound, column.type)), False)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as the physical values that bounds are given in."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8())
    if pa.types.is_date32(kind):
        return column.cast(pa.int32())
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    return column
