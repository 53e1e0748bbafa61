"""AUDIT on Spark: each judge finds nothing in views that are right, and everything that is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark.compute.plan.definition import Definition
from noonmark.compute.view.audit import audit
from noonmark.compute.view.view import View
from noonmark.tvc import Update
from support.view.battery import BATTERY
from support.view.views import SCHEMAS, seeded_history, spoil
from support.view.walk import Walker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIME = 4
#: One of each operator; all of the battery takes a minute.
SOME = (
    "push_on", "push_anti", "keys_null", "inline_twice", "counted", "domain_left", "time_both",
    "recursive", "moments", "push_group", "sets", "top", "full", "fails_now",
)  # fmt: skip
FEW = ("counted", "recursive", "time_both", "fails_now")


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[tuple[Walker, dict[str, View]]]:
    walker = Walker(tmp_path_factory.mktemp("audit"), SCHEMAS, {})
    before = seeded_history(1, TIME, size=8)
    history = {n: [Update(u.data, u.time + 1, u.diff) for u in x] for n, x in before.items()}
    walker.write(history, TIME + 1)
    views = {}
    for name in BATTERY:
        definition = Definition.of_sql(name, BATTERY[name], SCHEMAS)
        walker.create(definition)
        views[name] = View(walker.client, lambda: spark, definition).start()
    yield walker, views
    walker.stop()


@pytest.mark.parametrize("name", SOME)
def test_spark_agrees_with_what_is_maintained(
    world: tuple[Walker, dict[str, View]], name: str
) -> None:
    found = audit(world[1][name], TIME, work_max=-1)
    assert (found.differences, found.judge) == ([], "spark")


@pytest.mark.parametrize("name", FEW)
def test_the_meaning_agrees_with_what_is_maintained(
    world: tuple[Walker, dict[str, View]], name: str
) -> None:
    found = audit(world[1][name], TIME)
    assert (found.differences, found.judge) == ([], "meaning")


def test_what_is_not_needed_may_fail_as_it_is_written(tmp_path: Path, spark: SparkSession) -> None:
    walker = Walker(tmp_path, SCHEMAS, {})
    walker.write({"r": [Update((1, 0), 1, 1)]}, 2)
    definition = Definition.of_sql("v", "SELECT k FROM (SELECT k, 6 / w AS x FROM r) t", SCHEMAS)
    walker.create(definition)
    view = View(walker.client, lambda: spark, definition).start()
    for work_max in (-1.0, 1e9):
        found = audit(view, 1, work_max=work_max)
        assert (found.differences, found.judge) == ([], "maintained")
    walker.stop()


@pytest.mark.parametrize("work_max", [-1.0, 1e9], ids=["spark", "meaning"])
def test_what_was_changed_behind_its_back_is_found(
    tmp_path: Path, spark: SparkSession, work_max: float
) -> None:
    walker = Walker(tmp_path, SCHEMAS, {})
    walker.write({"r": [Update((1, 2), 1, 1), Update((None, 3), 1, 2)]}, 2)
    sql = "SELECT k, count(*) AS n FROM r GROUP BY k"
    walker.create(Definition.of_sql("v", sql, SCHEMAS))
    spoil(walker.client, "v", [Update((9, 9), 2, 1), Update((1, 1), 2, -1)], 3)
    walker.write({}, 3)
    view = View(walker.client, lambda: spark, Definition.of_sql("v", sql, SCHEMAS)).start()
    found = {(x.row, x.error): x.extra for x in audit(view, 2, work_max=work_max).differences}
    assert found == {((9, 9), None): 1, ((1, 1), None): -1}
    walker.stop()
