"""The laws of `subscribe.follow` and `subscribe.envelope`, over generated histories."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.adapter.contract import Field
from noonmark.adapter.peek.answer import Peek, plan_of
from noonmark.adapter.peek.gather import Given, Multiset
from noonmark.adapter.peek.rows import Change
from noonmark.adapter.subscribe.envelope import Envelope
from noonmark.adapter.subscribe.follow import Linear, Recomputed, is_linear
from noonmark.rows.schema import Schema
from noonmark.rows.types import Integer, Text
from noonmark.sql.ir.asked import bind
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.parse import plan_query
from noonmark.sql.rules import simplify

SCHEMAS = {"t": Schema.of(k="integer", v="text"), "u": Schema.of(k="integer", w="integer")}
QUERIES = (
    "select * from t",
    "select v from t where k > 1",
    "select k + 1, upper(v) from t where v = 'a' or k is null",
    "select k, count(*) from t group by k",
    "select t.v, u.w from t left join u using (k)",
    "select distinct v from t",
    "select * from t order by v, k limit 2",
    "select k from t except select k from u",
    "select * from t where mz_now() < k * 2 + 1",
    "select v, count(*) from t where mz_now() >= k + 1 and mz_now() < k + 4 group by v",
    "select t.v, u.w from t join u using (k) where mz_now() <= u.w + 3 and mz_now() > t.k",
    "with x as (select k from t where mz_now() = k + 2) select a.k from x a join x b using (k)",
    "select 1 where mz_now() between 2 and 4",
)
rows = {
    "t": st.tuples(st.none() | st.integers(0, 3), st.sampled_from("ab")),
    "u": st.tuples(st.integers(0, 3), st.integers(0, 1)),
}


@st.composite
def histories(draw: st.DrawFn) -> dict[str, list[Change]]:
    """Changes by collection, sorted by time, that never take away what is not there."""
    made: dict[str, list[Change]] = {}
    for name, strategy in rows.items():
        present: list[Any] = []
        own: list[Change] = []
        for time in sorted(draw(st.lists(st.integers(1, 6), max_size=8))):
            if present and draw(st.booleans()):
                own.append((present.pop(draw(st.integers(0, len(present) - 1))), time, -1))
            else:
                row = draw(strategy)
                present.append(row)
                own.append((row, time, 1))
        made[name] = own
    return made


async def computed(peek: Peek, given: Mapping[str, Given]) -> Multiset:
    return plan_of(peek).multiset(given)


def at(changes: list[Change], time: int) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for row, when, diff in changes:
        if when <= time:
            total[row] += diff
    return Counter({row: count for row, count in total.items() if count})


@settings(deadline=None)
@given(st.sampled_from(QUERIES), histories())
def test_changes_add_up_to_the_contents_at_every_time(
    sql: str, history: dict[str, list[Change]]
) -> None:
    peek = Peek.of(simplify(plan_query(sql, SCHEMAS).relation))
    inputs = {name: history[name] for name in peek.collections}
    recomputed = Recomputed(peek, SCHEMAS, {name: {} for name in inputs}, computed)
    asyncio.run(recomputed.begun())
    start = [(row, 0, count) for row, count in recomputed.contents.items()]
    # In two steps, as they come.
    first, rest = (
        {name: [c for c in own if (c[1] < 4) == early] for name, own in inputs.items()}
        for early in (True, False)
    )
    changes = asyncio.run(recomputed.changes(first, 4)) + asyncio.run(recomputed.changes(rest, 7))
    ways = {"recomputed": start + changes}
    if is_linear(peek):
        (name,) = inputs
        linear = Linear(peek, computed)
        ways["linear"] = asyncio.run(linear.changes(inputs[name], SCHEMAS[name]))
    for time in range(7):
        given_rows = {name: dict(at(history[name], time)) for name in SCHEMAS}
        wanted = Counter(evaluate(bind(peek.relation, (), time), given_rows))
        for way, changes in ways.items():
            assert at(changes, time) == wanted, (way, time)


keyed = st.dictionaries(st.integers(0, 3), st.sampled_from("abc"))


@settings(deadline=None)
@given(st.lists(keyed, min_size=1, max_size=6), st.sampled_from(["upsert", "debezium"]))
def test_an_envelope_can_be_followed_by_key(states: list[dict[int, str]], kind: str) -> None:
    columns = (Field("k", Integer()), Field("v", Text()))
    envelope = Envelope.of(columns, kind, ("k",), progress=False)
    changes: list[Change] = []
    before: dict[int, str] = {}
    for time, state in enumerate(states):
        changes += [((k, v), time, -1) for k, v in before.items() if state.get(k) != v]
        changes += [((k, v), time, 1) for k, v in state.items() if before.get(k) != v]
        before = state
    followed: dict[int, str] = {}
    shown = envelope.rows(changes)
    for time, state in enumerate(states):
        for row in (row for row in shown if row[0] == time):
            _, act, key, *values = row
            assert act in ("insert", "upsert", "delete")
            if kind == "debezium":
                assert values[0] == followed.get(key), "what was there before is told"
                assert (act == "insert") == (key not in followed)
            followed.pop(key, None)
            if act != "delete":
                followed[key] = values[-1]
        assert followed == state
