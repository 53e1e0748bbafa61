"""Views on Spark against the definition: at every time, across ticks, restarts and errors.

One location with two collections and a generated history; many views over it, hydrated at one
time and ticked over several times at once; the process that maintains them is replaced halfway.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from noonmark import errors, persist
from noonmark.compute.audit import audit_view
from noonmark.compute.dataflow import Dataflow
from noonmark.compute.definition import Definition, errors_name
from noonmark.compute.explain import explain_view
from noonmark.compute.layer import Compute
from noonmark.compute.view import View
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema
from noonmark.storage import CollectionDescription, Storage
from support.views import SCHEMAS, History, answer, seeded_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMES, HYDRATED, RESTART = 9, 2, 6

VIEWS = {
    "linear": "SELECT k, v + 1 AS v1, s || 'x' AS sx FROM l WHERE v > 0 OR s IS NULL",
    "fails": "SELECT k, 6 / v AS ratio FROM l",
    "pairs": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k WHERE v < 2",
    "totals": "SELECT l.k, count(*) AS n, sum(v * w) AS total, avg(w) AS mean "
    "FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "everything": "SELECT count(*) AS n, sum(v) AS total FROM l",
    "missing": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND v <= w",
    "extremes": "SELECT k, min(v) AS low, max(s) AS high, count(DISTINCT v) AS n FROM l GROUP BY k",
    "keys": "SELECT DISTINCT k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.w = l.v)",
    "best": "SELECT k, v, s FROM l ORDER BY v DESC LIMIT 3",
    "less": "SELECT k, v FROM l EXCEPT ALL SELECT k, w FROM r",
    "both": "SELECT k, v FROM l UNION ALL SELECT k, w FROM r",
    "doubled": "SELECT l.k FROM l CROSS JOIN (VALUES (1), (2)) x(n)",
    "of_pairs": "SELECT v, sum(w) AS w FROM pairs GROUP BY v",
    "of_fails": "SELECT count(*) AS n FROM fails",
}


class World:
    """A location, its inputs and its views, as one process sees them."""

    def __init__(self, path: Path, spark: SparkSession, history: History) -> None:
        self.client = persist.open(path, options=Options(notify_host=None))
        self.spark = spark
        self.history = history
        self.handles = {
            name: self.client.create_or_load(name, schema)[0] for name, schema in SCHEMAS.items()
        }
        self.flow = Dataflow()

    def write(self, lower: int, upper: int) -> None:
        for name, handle in self.handles.items():
            updates = [u for u in self.history[name] if lower <= u.time < upper]
            handle.compare_and_append(updates, lower, upper).result()

    def start_views(self, names: dict[str, str]) -> None:
        schemas = dict(SCHEMAS)
        for name, sql in names.items():
            definition = Definition.of_sql(name, sql, schemas)
            schemas[name] = definition.plan.schema
            self.flow.add(View(self.client, lambda: self.spark, definition))

    def tick(self) -> None:
        self.flow.tick()
        assert self.flow.failures == {}

    def stored(self, name: str, time: int) -> Any:
        """What a view says at a time: its rows, or "error"."""
        failed = self.client.create_or_load(errors_name(name))[1].snapshot(time).result().counts()
        assert all(count > 0 for count in failed.values())
        if failed:
            return "error"
        return dict(self.client.create_or_load(name)[1].snapshot(time).result().counts())


@pytest.fixture
def world(tmp_path: Path, spark: SparkSession) -> Iterator[World]:
    made = World(tmp_path, spark, seeded_history(7, TIMES))
    yield made
    made.client.stop()


def plans() -> dict[str, Any]:
    """The plan of every view over the two collections alone."""
    made, schemas = {}, dict(SCHEMAS)
    for name, sql in VIEWS.items():
        made[name] = Definition.of_sql(name, sql, schemas).plan
        schemas[name] = Schema(made[name].schema.columns)
    return made


def test_views_are_their_definitions_at_every_time(world: World, tmp_path: Path) -> None:
    world.write(0, HYDRATED + 1)
    world.start_views(VIEWS)
    world.tick()
    world.write(HYDRATED + 1, RESTART)
    world.tick()
    world.client.stop()
    again = World(tmp_path, world.spark, world.history)
    world.client, world.flow = again.client, again.flow
    again.write(RESTART, TIMES)
    again.start_views(VIEWS)
    again.tick()
    again.tick()
    expected = plans()
    wrong = []
    for name, plan in expected.items():
        for time in range(HYDRATED, TIMES):
            history = dict(world.history)
            if name.startswith("of_"):
                below = name.removeprefix("of_")
                contents = answer(expected[below], history, time)
                history[below] = contents
                want = "error" if contents == "error" else reference_over(plan, below, contents)
            else:
                want = answer(plan, history, time)
            got = again.stored(name, time)
            if got != want:
                wrong.append((name, time, got, want))
    assert wrong == []
    records = [record for record in again.flow.records if record.strategy != "hydrate"]
    assert {r.jobs for r in records if r.view in ("totals", "everything")} == {1}
    assert audit_view(again.flow.views["totals"], TIMES - 1) == []


LARGE = ("fails", "totals", "missing", "doubled")


def test_large_changes_are_the_same_by_sparks_own_operators(world: World) -> None:
    """Nothing is small here: hydration, several times by the delta rules, and one time anew."""
    world.write(0, HYDRATED + 1)
    world.start_views({name: VIEWS[name] for name in LARGE})
    for view in world.flow.views.values():
        view.walk_bytes_max = 0
    world.tick()
    world.write(HYDRATED + 1, RESTART)
    world.tick()
    for view in world.flow.views.values():
        view.strict = view.name == "missing"
    world.write(RESTART, RESTART + 1)
    world.tick()
    expected = plans()
    wrong = [
        (name, time, world.stored(name, time), want)
        for name in LARGE
        for time in range(HYDRATED, RESTART + 1)
        if world.stored(name, time) != (want := answer(expected[name], world.history, time))
    ]
    assert wrong == []
    taken = {(record.view, record.strategy) for record in world.flow.records}
    assert {("totals", "hydrate"), ("totals", "spark"), ("totals", "recompute")} <= taken
    assert ("missing", "recompute") not in taken


def reference_over(plan: Any, name: str, contents: dict[Any, int]) -> Any:
    from noonmark.compute.reference import outcome
    from noonmark.errors import EvaluationError

    found = outcome(plan, {name: contents})
    return "error" if isinstance(found, EvaluationError) else found


def test_an_audit_finds_what_was_changed_behind_its_back(world: World) -> None:
    world.write(0, 3)
    sql = VIEWS["everything"]
    world.start_views({"everything": sql})
    world.tick()
    view = world.flow.views["everything"]
    assert "accumulators by group" in explain_view(view)
    handle = world.client.create_or_load("everything")[0]
    handle.write([persist.Update((99, 99), 3, 1)]).result()
    world.client.create_or_load(errors_name("everything"))[0].seal(4).result()
    handle.seal(4).result()
    world.write(3, 4)
    extra = [(d.row, d.extra) for d in audit_view(view, 3)]
    assert ((99, 99), 1) in extra


def test_the_layer_holds_its_inputs_and_resumes(tmp_path: Path, spark: SparkSession) -> None:
    sql = "SELECT k, count(*) AS n FROM t GROUP BY k"
    schema = Schema.of(k="bigint", v="integer")
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        storage = Storage(client)
        read, write = storage.create("t", CollectionDescription(schema), 1)
        rows = [persist.Update((1, 5), 1, 1), persist.Update((None, 5), 2, 1)]
        write = storage.update_and_downgrade(write, rows, 3)
        compute = Compute(storage, lambda: spark)
        definition = Definition.of_sql("counts", sql, {"t": schema})
        with pytest.raises(errors.CapabilityInvalid):
            compute.maintain_view([], definition)
        (counts,) = compute.maintain_view([read], definition)
        with pytest.raises(errors.CapabilityInvalid):
            storage.renew(read)  # it was given away
        compute.tick()
        assert counts.frontier.only() == 1
        assert client.state.collection("t").since.only() == 1
        write = storage.update_and_downgrade(write, [persist.Update((1, 5), 3, 1)], 5)
        compute.tick()
        assert dict(client.create_or_load("counts")[1].snapshot(1).result().counts()) == {(1, 1): 1}
    with persist.open(tmp_path, options=Options(notify_host=None)) as client:
        compute = Compute(Storage(client), lambda: spark)
        (view,) = compute.resume()
        assert compute.tick() == []
        at_4 = {(1, 2): 1, (None, 1): 1}
        assert dict(client.create_or_load("counts")[1].snapshot(4).result().counts()) == at_4
        compute.drop_view("counts")
        assert not {name for name in client.state.names if name.startswith("counts")}
        assert not [hold for hold in client.state.holds if hold.startswith("view/")]
        assert view.name not in compute.dataflow.views
