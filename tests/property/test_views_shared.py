"""Arrangements that several views keep together (`noonmark.compute.view.owned`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark.compute.layer import Compute
from noonmark.compute.plan.definition import ARRANGEMENT, Definition
from noonmark.compute.plan.naming import arrangement_name, hold_id
from noonmark.compute.view import dataflow
from noonmark.compute.view.view import Begun, TickRecord, View
from noonmark.errors import NoonmarkError
from noonmark.storage import Storage
from noonmark.storage.description import description_of
from noonmark.storage.transaction import Transaction
from noonmark.tvc import Update
from support.view.stored_views import age
from support.view.views import SCHEMAS, History, answer, seeded_history
from support.view.walk import Walker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMS = "SELECT k, count(*) AS n, sum(v) AS total FROM l GROUP BY k"
LARGE = f"SELECT k, total FROM ({SUMS}) t WHERE n > 1"
TIMES = 9
BEFORE = seeded_history(5, TIMES)
HISTORY = {n: [Update(u.data, u.time + 1, u.diff) for u in x] for n, x in BEFORE.items()}


@pytest.fixture
def walker(tmp_path: Path) -> Iterator[Walker]:
    made = Walker(tmp_path, SCHEMAS, {})
    yield made
    made.stop()


def defined(name: str, sql: str) -> Definition:
    return Definition.of_sql(name, sql, SCHEMAS)


def arrangements(walker: Walker) -> list[str]:
    state = walker.client.state
    found = [state.collection(name) for name in state.names]
    return [x.name for x in found if x.annotation and description_of(x).kind == ARRANGEMENT]


def check(walker: Walker, name: str, last: int) -> None:
    view = walker.views[name]
    for time in range(view.hydrated_at, last + 1):
        assert walker.at(name, time) == answer(view.definition.plan, HISTORY, time), (name, time)


def test_equal_needs_are_kept_once_and_go_with_their_last_user(walker: Walker) -> None:
    walker.create(defined("sums", SUMS))
    walker.create(defined("large", LARGE))
    (kept,) = arrangements(walker)
    for upper in (3, 4, 7):
        walker.write(HISTORY, upper)
        walker.tick_all()
        assert walker.client.state.collection(kept).upper.only() == upper
    check(walker, "sums", 6)
    walker.views.pop("sums").drop()
    assert arrangements(walker) == [kept]
    walker.write(HISTORY, TIMES + 1)
    walker.tick("large")
    check(walker, "large", TIMES)
    walker.views.pop("large").drop()
    assert arrangements(walker) == []
    assert not [hold for hold in walker.client.state.holds if hold.startswith("view/")]


def test_a_view_that_was_left_behind_catches_up_first(walker: Walker) -> None:
    walker.create(defined("sums", SUMS))
    walker.create(defined("slow", LARGE))
    (kept,) = arrangements(walker)
    for upper in (3, 5, 6):
        walker.write(HISTORY, upper)
        walker.tick("sums")
    # It is read where the slow one is, whatever the other has let go.
    assert walker.client.state.collection(kept).since.only() == 0
    walker.write(HISTORY, TIMES + 1)
    walker.tick("slow")
    assert walker.upper("slow") == 6
    walker.tick("slow")
    assert walker.upper("slow") == TIMES + 1 == walker.client.state.collection(kept).upper.only()
    walker.tick("sums")
    check(walker, "slow", TIMES)
    check(walker, "sums", TIMES)


def test_a_view_that_comes_later_begins_where_the_arrangement_is_known(walker: Walker) -> None:
    walker.create(defined("sums", SUMS))
    walker.write(HISTORY, 5)
    walker.tick("sums")
    walker.write(HISTORY, 7)  # the view has not heard of that
    assert walker.create(defined("late", LARGE)) == 4
    assert len(arrangements(walker)) == 1
    walker.tick_all()
    check(walker, "late", 6)


def test_what_is_not_known_at_a_first_time_is_not_shared(walker: Walker) -> None:
    walker.create(defined("sums", SUMS))
    walker.write(HISTORY, 5)
    walker.tick("sums")  # lets go of what its arrangement was before
    early = View(walker.client, walker.no_spark, defined("early", LARGE)).start(as_of=2)
    early.task_bytes_max = walker.views["sums"].task_bytes_max
    walker.views["early"] = early
    assert len(arrangements(walker)) == 2
    for _ in range(2):
        walker.tick_all()
    check(walker, "early", 4)
    again = View(walker.client, walker.no_spark, defined("early", LARGE)).start()
    assert [k.name for k in again.arrangements()] == [k.name for k in early.arrangements()]


class Overtaken(View):
    """While its next commit is under way, another one comes first."""

    meanwhile: Callable[[], None] | None = None

    def add_to(self, txn: Transaction, begun: Begun, *output: Any) -> None:
        super().add_to(txn, begun, *output)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()


@pytest.mark.spark
@pytest.mark.parametrize("changes", [{}, HISTORY], ids=["idle", "delta"])
@pytest.mark.parametrize("first", [5, 7])
def test_a_view_that_is_overtaken_ticks_anew(
    walker: Walker, spark: SparkSession, changes: History, first: int
) -> None:
    """By one that shares its arrangement: to where it was going itself, or not as far."""
    made = [View(walker.client, lambda: spark, defined("sums", SUMS)).start()]
    made += [Overtaken(walker.client, lambda: spark, defined("slow", LARGE)).start()]
    walker.views = {view.name: view for view in made}
    quick, slow = made
    assert isinstance(slow, Overtaken)
    for upper in (1, 3):  # both are hydrated, and have ticked
        walker.write(HISTORY, upper)
        for view in made:
            assert view.tick() is not None
    walker.write(changes, first)
    begun = quick.begin()
    assert begun is not None
    walker.write(changes, 7)
    late = slow.begin()
    assert late is not None
    done: list[dataflow.Done] = []
    slow.meanwhile = lambda: done.extend(dataflow.tick_alone([(quick, begun)]))
    done += dataflow.tick_alone([(slow, late)])
    assert [outcome for _, outcome in done if not isinstance(outcome, TickRecord)] == []
    assert (walker.upper("sums"), walker.upper("slow")) == (first, first)
    history = {name: [u for u in HISTORY[name] if u.time < 3 or changes] for name in HISTORY}
    for view in made:
        plan = view.definition.plan
        assert walker.at(view.name, first - 1) == answer(plan, history, first - 1)


@pytest.mark.spark
@pytest.mark.parametrize("strategy", ["hydrate", "delta", "idle", "backfill"])
def test_an_earlier_worker_of_the_same_view_may_overtake_it(
    tmp_path: Path, spark: SparkSession, strategy: str
) -> None:
    """Nobody waits for the last tick of a worker that is stopped; whoever follows goes on."""
    walker = Walker(tmp_path, SCHEMAS, {})
    before = View(walker.client, lambda: spark, defined("sums", SUMS)).start()
    walker.write(HISTORY, 3)
    if strategy != "hydrate":
        while before.tick() is not None:
            pass
    if strategy == "backfill":
        walker.stop()
        age(tmp_path / "data")
        walker = Walker(tmp_path, SCHEMAS, {})
        before = View(walker.client, lambda: spark, defined("sums", SUMS)).start()
        before.adopt()
    walker.write({} if strategy == "idle" else HISTORY, 5)
    after = Overtaken(walker.client, lambda: spark, defined("sums", SUMS))
    early, late = before.begin(), after.begin()
    assert early is not None
    assert late is not None
    assert (early.strategy, late.strategy) == (strategy, strategy)
    done: list[dataflow.Done] = []
    after.meanwhile = lambda: done.extend(dataflow.tick_alone([(before, early)]))
    done += dataflow.tick_alone([(after, late)])
    assert [each for _, each in done if isinstance(each, NoonmarkError)] == []
    while after.tick() is not None:
        pass
    walker.views = {"sums": after}
    if strategy != "idle":
        check(walker, "sums", 4)
    walker.stop()


#: Literals that look like a part of what a plan was once printed as.
HOSTILE = ("a", "a, returns=False", "a', returns=False", "b", "")


def test_views_that_differ_in_a_literal_share_nothing(walker: Walker) -> None:
    plain = "SELECT k, count(*) AS n FROM l WHERE s = '{}' GROUP BY k"
    texts = {f"v{at}": plain.format(text.replace("'", "''")) for at, text in enumerate(HOSTILE)}
    for name, sql in texts.items():
        walker.create(defined(name, sql))
    assert len(arrangements(walker)) == len(HOSTILE)
    for upper in (3, 5, TIMES + 1):
        walker.write(HISTORY, upper)
        assert walker.tick_all() == {}
    for name in texts:
        check(walker, name, TIMES)


def test_numbers_that_are_equal_are_not_the_same() -> None:
    sql = "SELECT sum(v) FILTER (WHERE v::text || (float8 '{}')::text <> '') AS n FROM l"
    (first,), (second,) = (defined("v", sql.format(x)).arrangement_specs({}) for x in ("0", "-0"))
    assert first != second
    assert first.digest != second.digest


def test_a_table_that_is_called_as_an_arrangement_is_none(walker: Walker) -> None:
    sums = defined("sums", SUMS)
    (need,) = sums.arrangement_specs({})
    walker.client.create_or_load(arrangement_name(need.digest), SCHEMAS["l"])
    walker.create(sums)
    assert arrangements(walker) == [arrangement_name(need.digest, "sums")]
    walker.write(HISTORY, TIMES + 1)
    walker.tick("sums")
    check(walker, "sums", TIMES)


def test_what_is_held_of_an_input_never_passes_what_can_be_read(walker: Walker) -> None:
    walker.create(defined("sums", SUMS))
    view = walker.views["sums"]
    view.retain_ms = 2
    for upper in (3, 5, 8, TIMES + 1):
        walker.write(HISTORY, upper)
        walker.tick("sums")
        held = walker.client.state.holds[hold_id("sums", "l")].frontier.only()
        since = view.since.only()
        assert held is not None
        assert since is not None
        assert held <= since <= upper - 1
    assert since > 0, "history is let go"


def test_outputs_of_one_call_share(walker: Walker) -> None:
    storage = Storage(walker.client)
    compute = Compute(storage, walker.no_spark)
    read, write = storage.acquire_capabilities("l")
    storage.drop(write)
    compute.maintain_view([read], [defined("sums", SUMS), defined("large", LARGE)])
    assert len(arrangements(walker)) == 1
    compute.drop_view("sums")
    assert len(arrangements(walker)) == 1
    compute.drop_view("large")
    assert arrangements(walker) == []
