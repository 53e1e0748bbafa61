"""The laws of `noonmark.persist.part.ranges`: partition and order, on runs of every type."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from noonmark.persist.part import run
from noonmark.persist.part.part import Part, encode_part
from noonmark.persist.part.ranges import KeyRange, cut
from support.store.update_tables import rows_of, update_tables

KEY = ("c0",)


def parts_of(table: pa.Table, rows: int) -> list[tuple[Part, pa.Table]]:
    """A run as parts of so many rows."""
    pieces = [table.slice(at, rows) for at in range(0, table.num_rows, rows)]
    return [
        (encode_part(piece, blob_key=f"p{at}", key_columns=KEY).part, piece)
        for at, piece in enumerate(pieces)
    ]


def confined(table: pa.Table, within: KeyRange) -> pa.Table:
    mask = within.mask(table)
    return table if mask is None else table.filter(mask)


@given(update_tables(rows_min=1), update_tables(rows_min=1, types=["bigint"]), st.integers(1, 5))
def test_ranges_end_to_end_are_the_run(table: pa.Table, other: pa.Table, rows: int) -> None:
    for updates in (table, other):
        ordered = run.sort(updates, KEY)
        parts = parts_of(ordered, rows)
        ranges = cut([[part for part, _ in parts]], "c0", 0, rows)
        assert ranges[0].low is None
        assert ranges[-1].high is None
        pieces = [confined(ordered, within) for within in ranges]
        assert rows_of(pa.concat_tables(pieces)) == rows_of(ordered)


@given(update_tables(rows_min=1), st.integers(1, 5))
def test_a_part_that_may_not_hold_a_range_has_no_row_of_it(table: pa.Table, rows: int) -> None:
    parts = parts_of(run.sort(table, KEY), rows)
    for within in cut([[part for part, _ in parts]], "c0", 0, 1):
        for part, piece in parts:
            assert within.may_hold(part) or confined(piece, within).num_rows == 0


def test_cuts_follow_the_longest_run() -> None:
    def numbers(count: int, step: int) -> pa.Table:
        ids = pa.array(range(0, count * step, step), pa.int64())
        ones = pa.array([1] * count, pa.int64())
        return pa.table({"c0": ids, "_time": ones, "_diff": ones})

    long = [part for part, _ in parts_of(numbers(12, 10), 3)]
    short = [part for part, _ in parts_of(numbers(4, 1), 1)]
    assert [within.low for within in cut([short, long], "c0", 0, 6)] == [None, 60]
    assert [within.high for within in cut([short, long], "c0", 0, 6)] == [60, None]
    assert len(cut([], "c0", 0, 6)) == 1
