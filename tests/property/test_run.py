"""The laws of ``noonmark.persist.part.run``, against plain Python."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.persist.part import run
from noonmark.persist.part.run import accumulate, advance, consolidate, merge, sort
from support.store.update_tables import (
    contents,
    data_names,
    rows_of,
    update_table,
    update_tables,
)

TIMES = range(5)


def comparable(value: Any) -> Any:
    """The order of one value where Python can tell: NULLs last, floats by IEEE's total order."""
    if isinstance(value, float):
        nan = value != value  # noqa: PLR0124
        return (False, (nan, 0.0 if nan else value, math.copysign(1, value) if value == 0 else 0))
    return (value is None, value)


def in_run_order(table: pa.Table, key: tuple[str, ...]) -> bool:
    """The key never descends (where Python can compare it), and the same rows lie together."""
    flat = [n for n in key if not pa.types.is_nested(table.schema.field(n).type)]
    if flat[:1] == list(key[:1]) and key:
        first = table.column(key[0])
        if pa.types.is_temporal(first.type):
            first = first.cast(pa.int32() if pa.types.is_date32(first.type) else pa.int64())
        values = [comparable(v) for v in first.to_pylist()]
        if any(a > b for a, b in pairwise(values)):
            return False
    rows = rows_of(table, data_names(table))
    firsts = [row for at, row in enumerate(rows) if at == 0 or rows[at - 1] != row]
    times = table.column("_time").to_pylist()
    descends = any(
        rows[at] == rows[at + 1] and times[at] > times[at + 1] for at in range(len(rows) - 1)
    )
    return len(firsts) == len(set(firsts)) and not descends


@st.composite
def keyed_tables(draw: st.DrawFn) -> tuple[pa.Table, tuple[str, ...]]:
    table = draw(update_tables())
    names = data_names(table)
    key = draw(st.lists(st.sampled_from(names), unique=True))
    return table, tuple(key)


@given(keyed_tables())
def test_sort_is_a_permutation_in_run_order(case: tuple[pa.Table, tuple[str, ...]]) -> None:
    table, key = case
    out = sort(table, key)
    assert Counter(rows_of(out)) == Counter(rows_of(table))
    assert in_run_order(out, key or tuple(data_names(table)))
    assert out.schema == table.schema


@given(keyed_tables())
def test_sort_does_not_depend_on_the_order_of_its_input(
    case: tuple[pa.Table, tuple[str, ...]],
) -> None:
    table, key = case
    reverse = table.take(pa.array(range(table.num_rows - 1, -1, -1), pa.int64()))
    without_diffs = [*data_names(table), "_time"]
    assert rows_of(sort(table, key), without_diffs) == rows_of(sort(reverse, key), without_diffs)


@given(update_tables(types=["bigint", "text", "integer"]))
def test_flat_columns_sort_as_tuples_do(table: pa.Table) -> None:
    rows = list(
        zip(*(table.column(n).to_pylist() for n in ("c1", "c0", "c2", "_time")), strict=True)
    )
    expected = sorted(rows, key=lambda row: tuple(comparable(value) for value in row))
    out = sort(table, ("c1", "c0"))
    got = zip(*(out.column(n).to_pylist() for n in ("c1", "c0", "c2", "_time")), strict=True)
    assert list(got) == expected


@given(
    st.text(max_size=3),
    st.lists(st.text("ab\0é", max_size=12), min_size=2, max_size=30, unique=True),
    st.booleans(),
)
def test_text_sorts_by_its_bytes(prefix: str, texts: list[str], as_bytes: bool) -> None:
    """Texts that share a prefix, end early, hold zeros, or differ only beyond eight bytes."""
    values: list[Any] = [prefix + text for text in texts]
    values = [value.encode() for value in values] if as_bytes else values
    rows = len(values)
    table = pa.table({"s": values, "_time": [0] * rows, "_diff": [1] * rows}).slice(1)
    assert sort(table, ("s",)).column("s").to_pylist() == sorted(values[1:])


def test_a_sorted_table_is_not_copied() -> None:
    table = pa.table({"k": [1, 2, 3], "_time": [0, 0, 0], "_diff": [1, 1, 1]})
    assert sort(table, ("k",)) is table


def test_sort_of_wide_keys_that_share_no_word_with_the_row_number() -> None:
    keys = [2**63 - 1, -(2**63), 0, -1, 2**63 - 1]
    table = pa.table({"k": keys, "_time": [0] * 5, "_diff": [1] * 5})
    assert sort(table, ("k",)).column("k").to_pylist() == sorted(keys)


@given(keyed_tables(), st.integers(0, 4))
def test_advance_keeps_contents_and_order(
    case: tuple[pa.Table, tuple[str, ...]], since: int
) -> None:
    table, key = case
    out = advance(sort(table, key), since)
    assert in_run_order(out, key)
    assert all(time >= since for time in out.column("_time").to_pylist())
    for time in TIMES:
        if time >= since:
            assert contents(out, time) == contents(table, time)


@given(keyed_tables())
def test_consolidate_is_canonical_and_keeps_contents(
    case: tuple[pa.Table, tuple[str, ...]],
) -> None:
    table, key = case
    run = sort(table, key)
    names = [*data_names(table), "_time"]
    for out in (consolidate(table), consolidate(run), consolidate(run, sorted_by=key)):
        assert max(Counter(rows_of(out, names)).values(), default=1) == 1
        assert 0 not in out.column("_diff").to_pylist()
        assert all(contents(out, time) == contents(table, time) for time in TIMES)
        assert out.schema == table.schema
    assert rows_of(consolidate(run)) == rows_of(consolidate(run, sorted_by=key))
    assert in_run_order(consolidate(run), key)


@given(keyed_tables())
def test_accumulate_is_the_contents(case: tuple[pa.Table, tuple[str, ...]]) -> None:
    table, key = case
    run = sort(table, key)
    for out in (accumulate(table), accumulate(run, sorted_by=key)):
        assert "_time" not in out.column_names
        diffs = out.column("_diff").to_pylist()
        assert dict(zip(rows_of(out, data_names(table)), diffs, strict=True)) == contents(table, 9)
        assert len(diffs) == len(contents(table, 9))


def test_zero_columns_are_one_row() -> None:
    table = pa.table({"_time": [0, 0, 1], "_diff": [1, 2, -3]})
    assert consolidate(table).to_pylist() == [{"_time": 0, "_diff": 3}, {"_time": 1, "_diff": -3}]
    assert accumulate(table).num_rows == 0
    assert accumulate(table, sorted_by=()).num_rows == 0
    assert accumulate(table.slice(0, 2)).to_pylist() == [{"_diff": 3}]


@st.composite
def several_runs(draw: st.DrawFn) -> tuple[list[list[pa.Table]], tuple[str, ...]]:
    """Runs of one schema, each cut into tables at random places."""
    table = draw(update_tables(rows_max=40))
    key = tuple(draw(st.lists(st.sampled_from(data_names(table)), unique=True)))
    runs, start = [], 0
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(0, table.num_rows - start))
        run = sort(table.slice(start, rows), key)
        start += rows
        cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=5)))
        runs.append([run.slice(a, b - a) for a, b in pairwise([0, *cuts, rows])])
    return runs, key


@given(several_runs(), st.none() | st.integers(0, 4), st.integers(1, 50))
def test_merge_is_sort_advance_consolidate_of_all(
    case: tuple[list[list[pa.Table]], tuple[str, ...]], since: int | None, rows_max: int
) -> None:
    runs, key = case
    out = list(merge([iter(run) for run in runs], key, since, rows_max))
    assert all(0 < table.num_rows <= rows_max for table in out)
    together = pa.concat_tables([table for run in runs for table in run])
    advanced = together if since is None else advance(together, since)
    expected = consolidate(sort(advanced, key), sorted_by=key)
    got = [row for table in out for row in rows_of(table)]
    assert got == rows_of(expected)


@given(st.data())
def test_a_large_base_takes_in_a_small_delta(data: st.DataObject) -> None:
    """Enough rows for the path that inserts instead of sorting."""
    keys = list(range(0, 4000, 2))
    base = update_table({"k": (pa.int64(), keys), "s": (pa.string(), [str(k) for k in keys])},
                        [0] * 2000, [1] * 2000)  # fmt: skip
    few = data.draw(st.lists(st.integers(-1, 4001), max_size=4))
    diffs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(few), max_size=len(few)))
    delta = update_table({"k": (pa.int64(), few), "s": (pa.string(), [str(k) for k in few])},
                         [2] * len(few), diffs)  # fmt: skip
    key = data.draw(st.sampled_from([("k",), ("s", "k"), ()]))
    base, delta = sort(base, key), sort(delta, key)
    step = data.draw(st.sampled_from([1100, 2000]))
    run = (base.slice(at, step) for at in range(0, 2000, step))
    out = pa.concat_tables(merge([run, iter([delta])], key, 2, 1000))
    together = advance(pa.concat_tables([base, delta]), 2)
    assert rows_of(out) == rows_of(consolidate(sort(together, key)))


def test_a_table_that_nothing_interleaves_passes_untouched() -> None:
    def run(start: int) -> pa.Table:
        return pa.table({"k": range(start, start + 9), "_time": [0] * 9, "_diff": [1] * 9})

    low, high = run(0), run(100)
    first, second = merge([iter([high]), iter([low, run(50)])], ("k",), None, 100)
    assert first is low
    assert second.column("k").to_pylist() == [*range(50, 59), *range(100, 109)]


def test_merge_reads_no_further_than_it_must() -> None:
    """Bounded memory: of each run, the table at hand and the one after it."""
    read = []

    def run(name: str, offset: int) -> Any:
        for at in range(10):
            read.append((name, at))
            keys = range(at * 10 + offset, at * 10 + 10 + offset)
            yield pa.table({"k": keys, "_time": [0] * 10, "_diff": [1] * 10})

    merged = merge([run("a", 0), run("b", 5)], ("k",), None, 1000)
    next(merged)
    assert read == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("a", 2)]


@pytest.mark.parametrize("key", [("k",), ()])
def test_one_long_history_is_read_as_one(key: tuple[str, ...]) -> None:
    tables = [
        pa.table({"k": [7, 7], "_time": [at, at + 1], "_diff": [1, -1]}) for at in range(0, 20, 2)
    ]
    assert list(merge([iter(tables)], key, 30, 10)) == []
    kept = pa.concat_tables(merge([iter(tables)], key, None, 3))
    assert kept.equals(pa.concat_tables(tables))


@given(keyed_tables())
def test_few_rows_are_summed_as_many_are(case: tuple[pa.Table, tuple[str, ...]]) -> None:
    table, _ = case
    by_sort = consolidate(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_FEW_ROWS", 0)
        assert rows_of(consolidate(table)) == rows_of(by_sort)
