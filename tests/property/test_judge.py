"""Views that take every rewrite, against their own text (`noonmark.sql.meaning.judge`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from noonmark.compute.plan.definition import Definition
from noonmark.compute.spark.as_written import uncorrelated
from noonmark.errors import EvaluationError
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.asked import bind
from noonmark.sql.ir.node import walk_once
from noonmark.sql.meaning.judge import WORK_MAX, Difference, verdict, work_of
from noonmark.sql.meaning.relation import outcome
from noonmark.sql.parse import plan_query
from noonmark.tvc import Update
from support.view.battery import BATTERY
from support.view.views import SCHEMAS, contents, seeded_history
from support.view.walk import Walker

TIMES = 8


HISTORY = {
    name: [Update(u.data, u.time + 1, u.diff) for u in updates]
    for name, updates in seeded_history(1, TIMES, size=8).items()
}


def test_what_is_maintained_means_what_is_written() -> None:
    """Rules and rewrites by themselves: no kernel, nothing stored."""
    wrong = []
    for name, sql in BATTERY.items():
        definition = Definition.of_sql(name, sql, SCHEMAS)
        for time in (2, 5, TIMES):
            inputs = {each: contents(updates, time) for each, updates in HISTORY.items()}
            wanted = outcome(bind(definition.written, (), time), inputs)
            if isinstance(wanted, EvaluationError):
                continue
            if outcome(bind(definition.plan, (), time), inputs) != wanted:
                wrong.append((name, time))
    assert wrong == []


def test_views_are_what_their_text_says_at_every_time(tmp_path: Path) -> None:
    history = HISTORY
    walker = Walker(tmp_path, SCHEMAS, {})
    defined = {name: Definition.of_sql(name, sql, SCHEMAS) for name, sql in BATTERY.items()}
    walker.write(history, 3)
    for each in defined.values():
        walker.create(each)
    for upper in (4, 7, TIMES + 1):
        walker.write(history, upper)
        assert walker.tick_all() == {}
    wrong: list[tuple[str, int, list[Difference] | None]] = []
    filled: Counter[str] = Counter()
    for time in range(2, TIMES + 1):
        inputs = {name: contents(updates, time) for name, updates in history.items()}
        for name, each in defined.items():
            rows, errors = walker.stored(name, time)
            found = verdict(bind(each.written, (), time), inputs, rows, errors)
            filled[name] += bool(rows)
            if found != []:
                wrong.append((name, time, found))
    walker.stop()
    assert wrong == []
    assert {name for name in BATTERY if not filled[name]} == set(), "nothing is compared"


def test_a_domain_alone_decorrelates_as_the_definition_says() -> None:
    """What the judge of large views does with correlated subqueries."""
    history = seeded_history(5, 6, size=6)
    inputs = {name: contents(updates, 5) for name, updates in history.items()}
    for sql in BATTERY.values():
        plan = bind(plan_query(sql, SCHEMAS).relation, (), 5)
        made = uncorrelated(plan)
        assert not any(isinstance(node, r.Apply) for node in walk_once(made))
        wanted = outcome(plan, inputs)
        if not isinstance(wanted, EvaluationError):
            assert outcome(made, inputs) == wanted, sql


def test_every_difference_is_found() -> None:
    plan = plan_query("SELECT k FROM r", SCHEMAS).relation
    inputs = {"r": {(1, 1): 2, (2, 1): 1}}
    assert verdict(plan, inputs, {(1,): 2, (2,): 1}, {}) == []
    assert verdict(plan, inputs, {(1,): 1, (3,): 1}, {}) == [
        Difference((1,), None, -1), Difference((3,), None, 1), Difference((2,), None, -1),
    ]  # fmt: skip
    assert verdict(plan, inputs, {}, {"22012 division by zero": 1})
    failing = plan_query("SELECT 1 / (k - k) AS x FROM r", SCHEMAS).relation
    assert verdict(failing, inputs, {}, {"22012 division by zero": 3}) == []
    assert verdict(failing, inputs, {(1,): 3}, {}) is None, "the text has no answer"
    assert verdict(plan, inputs, {}, {"22012 x": 1}, inputs_fail=True) == []


def test_what_takes_too_long_is_left_to_spark() -> None:
    joined = plan_query(BATTERY["three"], SCHEMAS).relation
    assert work_of(joined, {"l": 20, "r": 20}) < WORK_MAX < work_of(joined, {"l": 1000, "r": 1000})
    correlated = plan_query(BATTERY["counted"], SCHEMAS).relation
    assert work_of(correlated, {"l": 1000, "r": 1000}) > 1_000_000
