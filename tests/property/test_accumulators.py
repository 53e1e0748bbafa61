"""Sums are enough for linear aggregates: whatever came and went, and in whatever parts."""

from __future__ import annotations

import math
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.kernel import large_number
from noonmark.compute.kernel.accumulator import accumulator_schema, is_linear
from noonmark.compute.kernel.finish import finished
from noonmark.compute.kernel.sums import added, together
from noonmark.compute.kernel.updates import Errors, Rows
from noonmark.compute.scalar.row_by_row import error_text
from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.rows.arrow import from_array, to_array
from noonmark.rows.schema import Column, Schema
from noonmark.sql.functions.number.fit import to_real
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.scalar import column
from noonmark.sql.meaning.relation import evaluate

LARGEST, SMALLEST = sys.float_info.max, math.ulp(0.0)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.integers() | st.integers(0, 4_000).map(lambda bits: -1 << bits))
def test_a_large_number_is_what_was_encoded(whole: int) -> None:
    assert large_number.decode(large_number.encode(whole)) == whole


@given(st.lists(st.tuples(FLOATS, st.integers(-(2**40), 2**40), st.integers(0, 2))))
def test_sums_of_floats_are_exact(rows: list[tuple[float, int, int]]) -> None:
    values = np.array([value for value, _, _ in rows], np.float64)
    diff, ids = (np.array([row[at] for row in rows], np.int64) for at in (1, 2))
    sums = large_number.sums(values, diff, ids, 3)
    squares = large_number.sums_of_squares(values, diff, ids, 3)
    unit = 1 << large_number.FLOAT_UNITS
    for group in range(3):
        own = [(Fraction(value), count) for value, count, at in rows if at == group]
        assert Fraction(sums[group], unit) == sum(x * n for x, n in own)
        assert Fraction(squares[group], unit**2) == sum(x * x * n for x, n in own)


def _reals() -> st.SearchStrategy[float]:
    return st.floats(width=32).map(to_real) | st.sampled_from([1.0, 0.1]).map(to_real)


DOUBLES = st.floats() | st.sampled_from([0.1, 0.2, -0.0, 1e16, LARGEST, -LARGEST, SMALLEST])
KINDS: dict[t.SqlType, st.SearchStrategy[Any]] = {
    t.Boolean(): st.booleans(),
    t.SmallInt(): st.integers(-(2**15), 2**15 - 1),
    t.Integer(): st.integers(-(2**31), 2**31 - 1),
    t.BigInt(): st.integers(-9, 9) | st.integers(-(2**63), 2**63 - 1),
    t.Numeric(9, 2): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda x: Decimal(x).scaleb(-2)),
    t.Numeric(38, 4): st.integers(-(10**30), 10**30).map(lambda x: Decimal(f"{x}E-4")),
    t.Real(): _reals(),
    t.Double(): DOUBLES,
}
NUMBERS = [kind for kind in KINDS if not isinstance(kind, t.Boolean)]
MOMENTS = "var_samp", "var_pop", "stddev_samp", "stddev_pop"
CASES = [("count", kind) for kind in KINDS]
CASES += [(name, kind) for name in ("sum", "avg", *MOMENTS) for kind in NUMBERS]
CASES += [(name, t.Boolean()) for name in ("bool_and", "bool_or", "every")]


def aggregation(name: str, kind: t.SqlType) -> r.Aggregate:
    schema = Schema((Column("k", t.Integer()), Column("v", kind)))
    base = type(kind)() if isinstance(kind, t.Numeric) else kind
    function = f"{name}({'any' if name == 'count' else base})"
    key, value = (column(at, each) for at, each in enumerate(schema))
    return r.Aggregate(
        r.Scan("l", schema), (key,), (AggregateCall(function, (value,)),), ("k", "a")
    )


def answers(node: r.Aggregate, rows: Counter[Any]) -> dict[Any, Any]:
    """Key by key, by the definition."""
    made = {}
    for key in {row[0] for row in rows}:
        own = {row: count for row, count in rows.items() if row[0] == key}
        try:
            (found,) = evaluate(node, {"l": own})
            made[key] = repr(found[1])
        except EvaluationError as error:
            made[key] = error_text(error)
    return made


@pytest.mark.parametrize(("name", "kind"), CASES, ids=str)
@given(data=st.data())
def test_an_aggregate_follows_from_its_accumulators(
    name: str, kind: t.SqlType, data: st.DataObject
) -> None:
    node = aggregation(name, kind)
    assert is_linear(node)
    row = st.tuples(st.sampled_from([None, 1, 2]), st.none() | KINDS[kind])
    there = Counter(data.draw(st.lists(row, max_size=6), "rows"))
    # Rows that come and go again, on the way: nothing may be left of them.
    passing = Counter(data.draw(st.lists(row, max_size=4), "passing"))
    updates = [*there.items(), *passing.items(), *((x, -n) for x, n in passing.items())]
    updates = data.draw(st.permutations(updates))
    cut = data.draw(st.integers(0, len(updates)))
    parts = [_sums(node, part) for part in (updates[:cut], updates[cut:]) if part]
    given_sums = [pa.concat_arrays(each) for each in zip(*parts, strict=True)]
    made = together(node, given_sums[:1], given_sums[1:]) if parts else []
    assert _shown(node, made) == answers(node, there)


def _sums(node: r.Aggregate, updates: list[tuple[Any, int]]) -> list[pa.Array]:
    columns = [
        to_array([row[at] for row, _ in updates], each.type)
        for at, each in enumerate(node.input.schema)
    ]
    return added(node, columns[:1], columns[1:], np.array([n for _, n in updates], np.int64))


def _shown(node: r.Aggregate, sums: list[pa.Array]) -> dict[Any, Any]:
    """The groups that are there, as `answers` has them."""
    if not sums:
        return {}
    kinds = [each.type for each in accumulator_schema(node)]
    assert [from_array(each, kind) for each, kind in zip(sums, kinds, strict=True)]
    groups = [at for at, rows in enumerate(sums[1].to_pylist()) if rows]
    taken = tuple(each.take(pa.array(groups, pa.int64())) for each in sums)
    # The time of a row is the number of its group: so errors tell whose they are.
    numbers = np.arange(len(groups))
    errors = Errors()
    rows, fine = finished(node, Rows(taken, numbers, np.ones(len(groups), np.int64)), errors)
    keys = taken[0].to_pylist()
    values = from_array(rows.columns[1], node.aggregates[0].type)
    made = {keys[at]: repr(value) for at, value in zip(fine.tolist(), values, strict=True)}
    return made | {keys[at]: text for text, at, _ in errors.found}
