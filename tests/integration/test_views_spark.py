"""Views on Spark against the definition: at every time, across ticks, restarts and errors.

One location with two collections and a generated history; many views over it, hydrated at one
time and ticked over several times at once; the process that maintains them is replaced halfway.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark import errors, persist
from noonmark.compute.layer import Compute
from noonmark.compute.plan.definition import Definition
from noonmark.compute.view.audit import audit_view
from noonmark.compute.view.explain import explain_view
from noonmark.persist.client import Options
from noonmark.rows.schema import Schema
from noonmark.storage import CollectionDescription, Storage
from support.neighbour.executors import Fault, python_workers
from support.view.views import seeded_history, spoil
from support.view.world import VIEWS, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMES, HYDRATED, RESTART = 9, 2, 6


@pytest.fixture
def world(tmp_path: Path, spark: SparkSession) -> Iterator[World]:
    made = World(tmp_path, spark, seeded_history(7, TIMES))
    yield made
    made.client.stop()


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
    assert again.wrong(VIEWS, range(HYDRATED, TIMES)) == []
    records = [record for record in again.flow.records if record.strategy != "hydrate"]
    assert {r.jobs for r in records if r.view in ("totals", "everything")} == {1}
    assert audit_view(again.flow.views["totals"], TIMES - 1) == []


LARGE = (
    "fails",
    "totals",
    "spread",
    "all_spread",
    "no_spread",
    "float_ends",
    "latest",
    "mixed",
    "missing",
    "doubled",
)


def test_large_changes_are_the_same_by_many_tasks(world: World) -> None:
    """Nothing is small here: hydration, several times cut over tasks, and one time anew."""
    world.write(0, HYDRATED + 1)
    world.start_views({name: VIEWS[name] for name in LARGE})
    for view in world.flow.views.values():
        view.task_bytes_max = 0
    world.tick()
    world.write(HYDRATED + 1, RESTART)
    world.tick()
    for view in world.flow.views.values():
        view.strict = view.name == "missing"
    world.write(RESTART, RESTART + 1)
    world.tick()
    assert world.wrong(LARGE, range(HYDRATED, RESTART + 1)) == []
    taken = {(record.view, record.strategy) for record in world.flow.records}
    assert {("totals", "hydrate"), ("totals", "tasks"), ("totals", "recompute")} <= taken
    assert ("missing", "recompute") not in taken


def test_an_audit_finds_what_was_changed_behind_its_back(world: World) -> None:
    world.write(0, 3)
    sql = VIEWS["everything"]
    world.start_views({"everything": sql})
    world.tick()
    view = world.flow.views["everything"]
    assert "accumulators by group" in explain_view(view)
    spoil(world.client, "everything", [persist.Update((99, 99), 3, 1)], 4)
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


def test_a_worker_that_is_killed_costs_another_attempt(world: World) -> None:
    """On one machine Spark gives a task up when its Python process dies; the views do not."""
    names = ("totals", "missing", "best")
    world.advance(HYDRATED + 1)
    world.start_views({name: VIEWS[name] for name in names})
    world.tick()
    world.advance(TIMES)
    with Fault(world.session(), python_workers) as fault:
        world.flow.tick()
    assert fault.killed
    world.tick()
    assert world.wrong(names, range(HYDRATED, TIMES)) == []
