"""Keys of tables: to look only at keys that a write adds decides what looking at all would."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark import persist
from noonmark.adapter.table.keys import Keys
from noonmark.clock import SYSTEM
from noonmark.errors import UniqueViolation
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema

SCHEMAS = [Schema.of(k="int", v="text"), Schema.of(k="double precision", v="text")]
ROWS = st.tuples(st.integers(0, 4), st.sampled_from("ab"))


def _requests(there: list[Any], steps: list[tuple[str, Any]]) -> list[list[Any]]:
    """Writes as statements make them: what they take away is there, and was not taken before."""
    left, made = Counter(there), []
    for what, row in steps:
        writes = []
        if what in ("delete", "update") and left:
            old = next((each for each in left if each[0] == row[0]), next(iter(left)))
            left[old] -= 1
            left += Counter()
            writes.append((old, -1))
            if what == "update":
                writes.append((row, 1))
        elif what == "insert":
            writes.append((row, 1))
        if writes:
            made.append(writes)
    return made


@settings(deadline=None, max_examples=300)
@given(
    schema=st.sampled_from(SCHEMAS),
    there=st.lists(ROWS, unique_by=lambda row: row[0], max_size=5),
    steps=st.lists(
        st.tuples(st.sampled_from(["insert", "update", "delete"]), ROWS), min_size=1, max_size=8
    ),
    cuts=st.sets(st.integers(1, 7)),
)
def test_what_is_not_added_is_not_looked_at(
    schema: Schema, there: list[Any], steps: list[tuple[str, Any]], cuts: set[int]
) -> None:
    if schema is SCHEMAS[1]:
        there = [(float(k), v) for k, v in there]
        steps = [(what, (-0.0 if k == 0 else float(k), v)) for what, (k, v) in steps]
    with persist.open(f"memory:{SYSTEM.fresh_id()}", options=Options(notify_host=None)) as client:
        client.create_or_load("t", schema, ("k",))
        collection = client.state.collection("t")
    singles = _requests(there, steps)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(singles)), len(singles)]
    group = [
        [write for writes in singles[low:high] for write in writes]
        for low, high in itertools.pairwise(bounds)
    ]
    group = [writes for writes in group if writes]
    whole = Keys.of(collection)
    whole.rows.update(there)
    some = Keys.of(collection).added_by(group)
    some.take(Counter(there))
    for writes in group:
        wanted, found = _after(whole, writes), _after(some, writes)
        assert (wanted is None) == (found is None)
        whole, some = wanted or whole, found or some


def _after(keys: Keys, writes: list[Any]) -> Keys | None:
    try:
        return keys.tried(writes)
    except UniqueViolation:
        return None
