"""The kernels that run on executors, without Spark: `KeyedTask` and accumulators.

Both are tested against the definition: the changes that a kernel gives over [lower, upper), added
to what was there, are the operator of its inputs at every time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.compute.incremental.accumulate import (
    accumulate,
    accumulators,
    merge,
    partial_sums,
)
from noonmark.compute.incremental.by_key import BEFORE, SIDE, KeyedTask
from noonmark.compute.incremental.matching import matching
from noonmark.compute.kernel.accumulator import accumulator_schema, is_linear
from noonmark.compute.kernel.layout import ERROR, layout_schema
from noonmark.compute.kernel.updates import Changes, Rows, concat
from noonmark.compute.plan.keys import KeyedInput, keyed_inputs, keyed_types, over_scans
from noonmark.errors import EvaluationError
from noonmark.persist.part.run import DIFF, TIME
from noonmark.rows.arrow import from_array, to_array
from noonmark.sql.evaluate import evaluate
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall, SortKey, WindowCall
from noonmark.sql.ir.scalar import Call, Compare, Scalar, column
from noonmark.sql.meaning.relation import outcome
from support.view.views import LEFT, RIGHT, History, Row, answer, contents, histories

TIMES, LOWER = 5, 2
L, R = r.Scan("l", LEFT), r.Scan("r", RIGHT)


def at(relation: r.Relation, index: int) -> Scalar:
    return column(index, relation.schema.columns[index])


V = at(L, 1)
RATIO = Call("/(integer, integer)", (V, V))
KEY = r.JoinKey(at(L, 0), at(R, 0))
PAIR = r.Join(r.JoinKind.LEFT, L, R).schema
ON = Compare("<", column(1, PAIR.columns[1]), column(4, PAIR.columns[4]))
JUST_K = r.Project(L, (at(L, 0), V), ("k", "v"))


def aggregation(*calls: AggregateCall, keys: tuple[Scalar, ...] = (at(L, 0),)) -> r.Aggregate:
    names = tuple(f"x{i}" for i in range(len(keys) + len(calls)))
    return r.Aggregate(L, keys, calls, names)


KEYED: dict[str, r.Relation] = {
    "distinct": r.Distinct(L),
    "min and max": aggregation(
        AggregateCall("min(anyelement)", (V,)), AggregateCall("max(anyelement)", (V,))
    ),
    "min of all": aggregation(AggregateCall("min(anyelement)", (V,)), keys=()),
    "count distinct": aggregation(AggregateCall("count(any)", (V,), distinct=True)),
    "errors": aggregation(AggregateCall("max(anyelement)", (RATIO,))),
    "top 2": r.TopK(L, (at(L, 0),), (SortKey(V, descending=True),), 2),
    "top 3 of all": r.TopK(L, (), (SortKey(V),), 3, 1),
    "window": r.Window(L, (at(L, 0),), (SortKey(V),), (WindowCall("row_number()"),), ("n",)),
    "intersect": r.Intersect(JUST_K, R, all=False),
    "intersect all": r.Intersect(JUST_K, R, all=True),
    "except": r.Except(JUST_K, R, all=False),
    "except all": r.Except(JUST_K, R, all=True),
    **{f"{kind.value} join": r.Join(kind, L, R, (KEY,)) for kind in r.JoinKind},
    **{f"{kind.value} join on": r.Join(kind, L, R, (KEY,), ON) for kind in r.JoinKind},
    "left join null-safe": r.Join(r.JoinKind.LEFT, L, R, (replace(KEY, null_equal=True),)),
    "left join without keys": r.Join(r.JoinKind.LEFT, L, R, (), ON),
}


def updates_of_part(part: KeyedInput, history: History) -> Iterator[tuple[Row, int, int]]:
    """The updates of an input that is a collection or a projection of one."""
    scan = part.relation.input if isinstance(part.relation, r.Project) else part.relation
    assert isinstance(scan, r.Scan)
    for row, time, diff in history[scan.collection]:
        if isinstance(part.relation, r.Project):
            row = tuple(evaluate(scalar, row) for scalar in part.relation.scalars)  # noqa: PLW2901
        yield row, time, diff


def tagged(parts: tuple[KeyedInput, ...], history: History) -> pa.RecordBatch:
    """What Spark hands to the task: the keys that changed, with all their rows."""
    width = sum(len(part.relation.schema) for part in parts)
    rows: list[tuple[int, Row, Row, int, int]] = []
    for side, part in enumerate(parts):
        before = sum(len(p.relation.schema) for p in parts[:side])
        for row, time, diff in updates_of_part(part, history):
            key = tuple(evaluate(scalar, row) for scalar in part.key)
            padded = (None,) * before + row + (None,) * (width - before - len(row))
            rows.append((side, key, padded, time if time >= LOWER else BEFORE, diff))
    changed = {key for _, key, _, time, _ in rows if time != BEFORE}
    rows = [each for each in rows if each[1] in changed]
    types = list(keyed_types(parts))
    values = [key + row for _, key, row, _, _ in rows]
    arrays = [pa.array([each[0] for each in rows], pa.int32())]
    arrays += [to_array([v[i] for v in values], kind) for i, kind in enumerate(types)]
    arrays += [pa.array([each[i] for each in rows], pa.int64()) for i in (3, 4)]
    names = [SIDE, *(f"x{i}" for i in range(len(types))), TIME, DIFF]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def check(node: r.Relation, history: History, made: list[pa.RecordBatch], width: int) -> None:
    """The changes, added to what was there, are the operator at every time."""
    rows, errors = Counter[Any](), Counter[Any]()
    was = answer(node, history, LOWER - 1)
    changes = [change for batch in made for change in read_back(batch, node, width)]
    for time in range(LOWER, TIMES):
        for row, error, when, diff in changes:
            if when == time:
                (rows if error is None else errors)[row if error is None else error] += diff
        now = answer(node, history, time)
        if was == "error" or now == "error":
            continue  # which rows stand beside an error is not defined
        before = Counter(was)
        before.update(rows)
        assert {row: n for row, n in before.items() if n} == now
        assert not any(errors.values())


def read_back(
    batch: pa.RecordBatch, node: r.Relation, width: int
) -> Iterator[tuple[Row, str | None, int, int]]:
    columns = [from_array(batch.column(i), c.type) for i, c in enumerate(node.schema)]
    errors, times, diffs = (batch.column(n).to_pylist() for n in (ERROR, TIME, DIFF))
    rows = zip(*columns, strict=True)
    yield from zip(rows, errors, times, diffs, strict=True)
    assert width == len(columns)


@pytest.mark.parametrize("name", KEYED)
@settings(max_examples=25)
@given(history=histories(TIMES))
def test_a_keyed_operator_is_recomputed_where_it_changed(name: str, history: History) -> None:
    node = KEYED[name]
    parts = keyed_inputs(node)
    work = KeyedTask(
        over_scans(node),
        tuple(keyed_types(parts)),
        len(parts[0].key),
        tuple(len(part.relation.schema) for part in parts),
        timed=True,
    )
    made = list(work([tagged(parts, history)]))
    check(node, history, made, len(node.schema))


@settings(max_examples=50)
@given(history=histories(TIMES))
def test_errors_of_a_key_come_and_go(history: History) -> None:
    node = KEYED["errors"]
    assert isinstance(node, r.Aggregate)
    parts = keyed_inputs(node)
    types, width = tuple(keyed_types(parts)), len(LEFT)
    work = KeyedTask(over_scans(node), types, 1, (width,), timed=True)
    changes = [c for b in work([tagged(parts, history)]) for c in read_back(b, node, 2)]
    was = failing_keys(node, contents(history["l"], LOWER - 1))
    for time in range(LOWER, TIMES):
        balance = sum(d for _, e, when, d in changes if e is not None and when <= time)
        assert balance == failing_keys(node, contents(history["l"], time)) - was


def failing_keys(node: r.Relation, rows: dict[Row, int]) -> int:
    """How many keys have no answer."""
    groups: dict[Any, dict[Row, int]] = {}
    for row, count in rows.items():
        groups.setdefault(row[0], {})[row] = count
    answers = [outcome(node, {"l": group}) for group in groups.values()]
    return sum(isinstance(found, EvaluationError) for found in answers)


@dataclass(frozen=True)
class KnownTraces:
    """Accumulators that are already there."""

    rows: Rows

    def find(self, _: Any, key: Any, probes: list[pa.Array], __: set[int]) -> Any:
        return matching(self.rows, key, probes)

    def everything(self, *_: Any) -> Rows:
        return self.rows


LINEAR = {
    "count": aggregation(AggregateCall("count()"), AggregateCall("count(any)", (V,))),
    "sum and avg": aggregation(
        AggregateCall("sum(integer)", (V,)), AggregateCall("avg(integer)", (V,))
    ),
    "of all": aggregation(AggregateCall("count()"), AggregateCall("sum(integer)", (V,)), keys=()),
}


def rows_of(updates: list[tuple[Row, int, int]]) -> Rows:
    values = [to_array([row[i] for row, _, _ in updates], c.type) for i, c in enumerate(LEFT)]
    times, diffs = (np.array([u[at] for u in updates], np.int64) for at in (1, 2))
    return Rows(tuple(values), times, diffs)


@pytest.mark.parametrize("name", LINEAR)
@settings(max_examples=40)
@given(history=histories(TIMES), parts=st.integers(1, 3))
def test_accumulators_follow_the_changes_however_these_are_cut(
    name: str, history: History, parts: int
) -> None:
    node = LINEAR[name]
    assert is_linear(node)
    there = [(row, 0, n) for row, n in contents(history["l"], LOWER - 1).items()]
    old: Any = SimpleNamespace(
        traces=KnownTraces(accumulators(node, rows_of(there), BEFORE)), sums={node: None}
    )
    changes = [(u.data, u.time, u.diff) for u in history["l"] if LOWER <= u.time < TIMES]
    cut = [partial_sums(node, Changes(rows_of(changes[at::parts]))) for at in range(parts)]
    together = Changes(concat([each.rows for each in cut], accumulator_schema(node)))
    made, kept = merge(node, together, old)
    whole, all_kept = accumulate(node, Changes(rows_of(changes)), old)
    assert _counted(kept) == _counted(all_kept)
    assert _counted(made.rows) == _counted(whole.rows)
    layout = pa.RecordBatch.from_arrays(
        [*made.rows.columns, pa.nulls(len(made.rows), pa.string()), made.rows.time, made.rows.diff],
        schema=layout_schema(node.schema, timed=True),
    )
    check(node, history, [layout], len(node.schema))


def _counted(rows: Rows) -> Counter[Any]:
    columns = [column.to_pylist() for column in rows.columns if column is not None]
    return Counter(zip(*columns, rows.time.tolist(), rows.diff.tolist(), strict=True))
