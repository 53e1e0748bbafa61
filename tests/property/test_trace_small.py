"""The law of ``noonmark.compute.trace.small``: the updates of the batches that are there, once."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark import persist
from noonmark.compute.kernel.updates import Rows
from noonmark.compute.plan.definition import Definition
from noonmark.compute.trace.small import FEW, RATIO, ROWS_MAX, SmallBatches, small
from noonmark.persist.client import Options
from noonmark.persist.config import Config
from noonmark.persist.log.state import Batch, Collection, Inline, schema_to_wire
from noonmark.persist.part.part import Part
from noonmark.rows.schema import Schema
from noonmark.tvc import Update
from support.view.queries import QUERIES
from support.view.views import SCHEMAS, answer, seeded_history
from support.view.walk import Walker

EMPTY = Collection(1, "t", (), (schema_to_wire(Schema.of(a="bigint")),))


def batch(number: int) -> Batch:
    return Batch(number, 1, 1, 0, 0, 1, inline=Inline(0, b""))


def decoded(sizes: dict[int, int], each: Batch) -> Rows:
    count = sizes[each.id]
    zeros = np.zeros(count, np.int64)
    return Rows((pa.array(np.full(count, each.id)),), zeros, zeros + 1)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.sets(st.integers(0, 30), max_size=3)), max_size=30)
)
def test_runs_are_the_updates_of_the_batches_that_are_there(
    steps: list[tuple[int, set[int]]],
) -> None:
    kept: SmallBatches[Rows] = SmallBatches(lambda rows: rows)
    there: dict[int, int] = {}
    for number, (size, gone) in enumerate(steps):
        there[number] = size
        for each in gone:  # compaction takes some, and what was asked before is asked again
            there.pop(each, None)
        collection = msgspec.structs.replace(EMPTY, batches=tuple(map(batch, there)))
        runs = kept.runs(collection, lambda each: decoded(there, each))
        found = Counter(value for run in runs for value in run.columns[0].to_pylist())
        assert found == {each: count for each, count in there.items() if count}
        lengths = [len(run) for run in runs]
        assert all(a > RATIO * b for a, b in pairwise(lengths))


def in_parts(number: int, rows: int, schema_id: int = 0) -> Batch:
    part = Part(f"{number}", rows, 1, 0, 0, 0, 0, 0, schema_id=schema_id)
    return Batch(number, rows, 1, 0, 0, rows, parts=(part,))


def of(*batches: Batch, schemas: int = 1) -> Collection:
    return msgspec.structs.replace(EMPTY, batches=batches, schemas=EMPTY.schemas * schemas)


def test_few_rows_in_parts_are_small_and_of_many_such_the_newest() -> None:
    assert small(of(batch(1), in_parts(2, FEW), in_parts(3, FEW + 1))) == {1, 2}
    count = ROWS_MAX // FEW
    many = of(batch(1), *(in_parts(number, FEW) for number in range(2, count + 10)))
    assert small(many) == {1, *range(10, count + 10)}


def test_parts_of_an_older_schema_are_mapped() -> None:
    assert small(of(batch(1), in_parts(2, 5), in_parts(3, 5, schema_id=1), schemas=2)) == {1, 3}


@pytest.mark.parametrize("few", [0, 2, FEW])
def test_views_are_the_same_whatever_is_small(
    tmp_path: Path, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every batch is in parts: all of them mapped, some, or none."""
    monkeypatch.setattr("noonmark.compute.trace.small.FEW", few)
    config = Config(inline_bytes_max=0, inline_batches_max=1)
    opened = partial(persist.open, options=Options(notify_host=None, config=config))
    monkeypatch.setattr(persist, "open", lambda path, **_: opened(path))
    history = {
        name: [Update(u.data, u.time + 1, u.diff) for u in updates]
        for name, updates in seeded_history(3, 8).items()
    }
    walker = Walker(tmp_path, SCHEMAS, {"l": ("k",)})
    definitions = [Definition.of_sql(name, sql, SCHEMAS) for name, sql in QUERIES.items()]
    for each in definitions:
        walker.create(each)
    for upper in range(2, 10):
        walker.write(history, upper)
        walker.tick_all()
    batches = [b for c in walker.client.state.collections.values() for b in c.batches]
    wrong = [
        (each.name, time)
        for each in definitions
        for time in range(9)
        if walker.at(each.name, time) != answer(each.plan, history, time)
    ]
    walker.stop()
    assert any(each.parts for each in batches)
    assert wrong == []
