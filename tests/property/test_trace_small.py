"""The law of ``noonmark.compute.trace.small``: the updates of the batches that are there, once."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from noonmark.compute.kernel.updates import Rows
from noonmark.compute.trace.small import RATIO, SmallBatches
from noonmark.persist.log.state import Batch, Collection, Inline, schema_to_wire
from noonmark.rows.schema import Schema

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
