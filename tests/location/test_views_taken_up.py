"""Views of a location that another version wrote go on (`noonmark.compute.view.adoption`)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noonmark.compute.plan.definition import ARRANGEMENT
from noonmark.compute.plan.naming import hold_id
from noonmark.compute.view.owned import is_arrangement
from noonmark.compute.view.view import View
from noonmark.persist.log import command as c
from noonmark.storage.description import description_of
from support.view.stored_views import (
    BEHIND,
    HISTORY,
    KEPT,
    STORED,
    TIMES,
    VIEWS,
    definition,
    write_location,
)
from support.view.views import SCHEMAS, answer
from support.view.walk import Walker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What each version that called arrangements otherwise has left.
LOCATIONS = sorted(path.name for path in KEPT.glob("views-*"))


@pytest.fixture(params=LOCATIONS)
def walker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Walker]:
    shutil.copytree(KEPT / request.param, tmp_path / "found")
    made = taken_up(tmp_path / "found")
    yield made
    made.stop()


def taken_up(folder: Path) -> Walker:
    """As another process finds it: the views are not ticked."""
    walker = Walker.found(folder, SCHEMAS)
    for name in VIEWS:
        walker.take_up(definition(name))
    return walker


def check(walker: Walker, first: int, last: int) -> None:
    for name, view in walker.views.items():
        for time in range(first, last + 1):
            wanted = answer(view.definition.plan, HISTORY, time)
            assert walker.at(name, time) == wanted, (name, time)


def arrangements(walker: Walker) -> set[str]:
    state = walker.client.state
    return {name for name in state.names if is_arrangement(state, name)}


def test_every_view_goes_on_from_where_it_was(walker: Walker) -> None:
    uppers = {name: walker.upper(name) for name in VIEWS}
    assert uppers == {name: 3 if name == BEHIND else STORED for name in VIEWS}
    assert walker.tick_all() == {}
    assert {name: walker.upper(name) for name in VIEWS if name != BEHIND} == {
        name: STORED for name in VIEWS if name != BEHIND
    }
    for upper in (STORED + 1, STORED + 3, TIMES + 1):
        walker.write(HISTORY, upper)
        while any(walker.upper(name) < upper for name in VIEWS):
            assert walker.tick_all() == {}
    check(walker, 2, TIMES)


def test_what_it_lacked_is_there_and_nothing_else(walker: Walker) -> None:
    walker.tick_all()
    needed = {kept.name for view in walker.views.values() for kept in view.arrangements()}
    assert arrangements(walker) == needed
    state = walker.client.state
    for view in walker.views.values():
        for name in (*view.inputs, *(kept.name for kept in view.arrangements())):
            assert hold_id(view.name, name) in state.holds
    names = {hold for hold in state.holds if hold.startswith("view/")}
    assert names == {hold for view in walker.views.values() for hold in view.owned.holds} & names
    seqno = state.seqno
    for view in walker.views.values():
        view._adopted = False
        view.adopt()
    assert walker.client.state.seqno == seqno, "a second time there is nothing to do"


def test_a_crash_between_the_steps_loses_nothing(walker: Walker, tmp_path: Path) -> None:
    for view in walker.views.values():
        view.adopt()
    assert all(view.lacks for view in walker.views.values() if view.arrangements())
    check(walker, 2, 2)
    walker.stop()
    again = taken_up(tmp_path / "found")
    assert again.tick_all() == {}
    assert not any(view.lacks for view in again.views.values())
    again.write(HISTORY, TIMES + 1)
    while any(again.upper(name) <= TIMES for name in VIEWS):
        assert again.tick_all() == {}
    check(again, 2, TIMES)
    again.stop()


@pytest.mark.spark
def test_large_views_are_filled_by_spark(walker: Walker, spark: SparkSession) -> None:
    for name, old in list(walker.views.items()):
        view = View(walker.client, lambda: spark, old.definition).start()
        view.task_bytes_max = 0
        record = view.tick()
        assert record is not None or not view.arrangements() or name == BEHIND
        assert record is None or name == BEHIND or record.strategy == "backfill"
        view.tick()
        assert not view.lacks
    walker.write(HISTORY, TIMES + 1)
    for name in VIEWS:
        while walker.upper(name) <= TIMES:
            walker.tick(name)
    check(walker, 2, TIMES)


def test_what_was_not_taken_up_can_be_dropped(walker: Walker) -> None:
    for name in VIEWS:
        walker.views.pop(name).drop()
    assert arrangements(walker) == set()
    assert not [hold for hold in walker.client.state.holds if hold.startswith("view/")]
    assert set(walker.client.state.names) == set(SCHEMAS)


def test_an_arrangement_that_is_gone_is_made_again(tmp_path: Path) -> None:
    """Whatever the reason: the view has its inputs, and so can have all that follows from them."""
    write_location(tmp_path)
    walker = taken_up(tmp_path)
    state = walker.client.state
    gone = [state.collection(name) for name in arrangements(walker)]
    assert {description_of(each).kind for each in gone} == {ARRANGEMENT}
    held = [hold.id for hold in state.holds.values() if hold.collection in {x.id for x in gone}]
    walker.client.submit((*map(c.Release, held), *(c.Drop(x.id) for x in gone))).result()
    walker.write(HISTORY, TIMES + 1)
    while any(walker.upper(name) <= TIMES for name in VIEWS):
        assert walker.tick_all() == {}
    check(walker, 2, TIMES)
    walker.stop()
