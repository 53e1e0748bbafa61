"""Subscriptions: a snapshot, then updates with progress; waiting, cancelling, holding; transfer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import BeforeSince, Fenced, SchemaMismatch
from noonmark.persist.client import Options
from noonmark.persist.log import command as c
from noonmark.persist.read.snapshot import Step
from noonmark.rows.schema import Schema
from noonmark.storage import CollectionDescription, Storage, Subscription
from noonmark.tvc import EMPTY, Antichain, Update
from support.store import capability_reader

ORDERS = CollectionDescription(Schema.of(id="bigint", name="text", price="bigint"), ("id",))


def at(time: int) -> Antichain[int]:
    return Antichain.of(time)


def row(number: int, time: int, diff: int = 1) -> Update:
    return Update((number, f"row {number}", number * 10), time, diff)


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    options = Options(notify_host=None, config=persist.Config(hold_lease_ms=600))
    with persist.open(f"memory:{request.node.name}", options=options) as client:
        yield Storage(client, lease_ms=60_000)


class Consumer:
    """Iterates a subscription in a thread of its own."""

    def __init__(self, subscription: Subscription) -> None:
        self.steps: list[Step] = []
        self.error: BaseException | None = None
        self._changed = threading.Condition()
        self._subscription = subscription
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for step in self._subscription:
                with self._changed:
                    self.steps.append(step)
                    self._changed.notify_all()
        except BaseException as error:
            self.error = error

    def wait_until(self, ready: Callable[[list[Step]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: ready(self.steps), 20)

    def end(self) -> None:
        self.thread.join(20)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error


def reaches(progress: Antichain[int]) -> Callable[[list[Step]], bool]:
    return lambda steps: bool(steps) and steps[-1].progress == progress


def contents(steps: list[Step], time: int) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for step in steps:
        for update in step.updates:
            if update.time <= time:
                counts[update.data] += update.diff
    return Counter({data: count for data, count in counts.items() if count})


def test_the_sum_of_all_steps_is_the_contents_at_every_time_passed(storage: Storage) -> None:
    read, write = storage.create("orders", ORDERS)
    write = storage.update_and_downgrade(write, [row(1, 1), row(2, 3), row(1, 4, -1)], 5)
    read = storage.downgrade(read, 3)
    consumer = Consumer(storage.subscribe_at(read))
    storage.drop(read)  # the subscription has a hold of its own
    consumer.wait_until(reaches(at(5)))
    write = storage.update_and_downgrade(write, [row(3, 5), row(2, 7, -1)], 9)
    consumer.wait_until(reaches(at(9)))
    assert consumer.steps[0].progress == at(4)
    assert [update.time for update in consumer.steps[0].updates] == [3, 3]
    for step, following in zip(consumer.steps, consumer.steps[1:], strict=False):
        assert following.progress.at_or_beyond(step.progress)
        assert all(step.progress.less_equal(update.time) for update in following.updates)
    _, handle = storage.client.create_or_load("orders")
    for time in range(3, 9):
        assert contents(consumer.steps, time) == handle.snapshot(time).result(10).counts()
    storage.update_and_downgrade(write, [], EMPTY)
    consumer.end()
    assert consumer.steps[-1].progress == EMPTY
    assert storage.capabilities("orders") == [
        hold for hold in storage.capabilities("orders") if hold.writes
    ], "the hold went with the subscription"


def test_without_the_snapshot_it_begins_after_the_frontier(storage: Storage) -> None:
    read, write = storage.create("orders", ORDERS)
    storage.update_and_downgrade(write, [row(1, 0), row(2, 1)], EMPTY)
    steps = list(storage.subscribe_at(read, snapshot=False))
    assert [update.data[0] for step in steps for update in step.updates] == [2]


def test_filter_and_projection(storage: Storage) -> None:
    read, write = storage.create("orders", ORDERS)
    storage.update_and_downgrade(write, [row(n, n % 4) for n in range(20)], EMPTY)
    subscription = storage.subscribe_at(
        read, filter=pc.field("price") >= 150, projection=("name", "id")
    )
    steps = list(subscription)
    assert steps[0].table.column_names == ["name", "id", "_time", "_diff"]
    assert contents(steps, 3) == {(f"row {n}", n): 1 for n in range(15, 20)}
    assert steps[-1].progress == EMPTY, "progress is told also where everything was filtered"
    with pytest.raises(SchemaMismatch):
        storage.subscribe_at(read, projection=("name", "nothing"))


def test_it_waits_while_its_frontier_is_not_complete(storage: Storage) -> None:
    read, write = storage.create("orders", ORDERS)
    read = storage.downgrade(read, 5)
    consumer = Consumer(storage.subscribe_at(read))
    write = storage.update_and_downgrade(write, [row(1, 1)], 5)
    assert consumer.steps == []
    write = storage.update_and_downgrade(write, [row(2, 5)], 6)
    consumer.wait_until(reaches(at(6)))
    assert contents(consumer.steps, 5) == {row(1, 1).data: 1, row(2, 5).data: 1}
    storage.update_and_downgrade(write, [], EMPTY)
    consumer.end()
    assert consumer.steps[-1].progress == EMPTY


def test_closing_the_collection_ends_it_with_an_error(storage: Storage) -> None:
    """Not as if all had been delivered: what it had not seen yet is gone."""
    read, write = storage.create("orders", ORDERS)
    storage.update_and_downgrade(write, [row(1, 0)], 1)
    consumer = Consumer(storage.subscribe_at(read))
    consumer.wait_until(reaches(at(1)))
    storage.close("orders")
    with pytest.raises(BeforeSince):
        consumer.end()


@pytest.mark.parametrize("frontier", [0, 7], ids=["waits for updates", "waits for the snapshot"])
def test_whoever_waits_is_let_go_by_cancel(storage: Storage, frontier: int) -> None:
    read, write = storage.create("orders", ORDERS)
    storage.update_and_downgrade(write, [row(1, 0)], 1)
    read = storage.downgrade(read, frontier)
    subscription = storage.subscribe_at(read)
    consumer = Consumer(subscription)
    if frontier == 0:
        consumer.wait_until(reaches(at(1)))
    subscription.cancel()
    consumer.end()
    storage.drop(read)
    _released(storage)


@pytest.mark.parametrize("begun", [False, True])
def test_an_abandoned_subscription_holds_nothing(storage: Storage, begun: bool) -> None:
    read, write = storage.create("orders", ORDERS)
    storage.update_and_downgrade(write, [row(1, 0)], 4)
    subscription = storage.subscribe_at(read)
    storage.drop(read)
    assert storage.frontiers()["orders"][0] == at(0)
    steps = iter(subscription)
    if begun:
        next(steps)
    subscription.cancel()
    assert list(steps) == []
    assert list(subscription) == []
    _released(storage)


def _released(storage: Storage) -> None:
    """Since follows upper once nobody holds it; cancelling does not wait for that."""
    client = storage.client
    free = client.journal.wait_for(
        lambda state: state.collection("orders").since == state.collection("orders").upper
    )
    client.runtime.submit(free).result(10)


def test_a_quiet_subscription_outlives_its_lease(storage: Storage) -> None:
    read, write = storage.create("orders", ORDERS)
    write = storage.update_and_downgrade(write, [row(1, 0)], 1)
    consumer = Consumer(storage.subscribe_at(read))
    storage.drop(read)
    consumer.wait_until(reaches(at(1)))
    storage.client.runtime.submit(SYSTEM.sleep(1.5)).result(10)  # more than twice the lease
    write = storage.update_and_downgrade(write, [row(2, 3)], 5)
    consumer.wait_until(reaches(at(5)))
    storage.update_and_downgrade(write, [], EMPTY)
    consumer.end()
    assert contents(consumer.steps, 4) == {row(1, 0).data: 1, row(2, 3).data: 1}


def test_since_follows_what_was_delivered(storage: Storage) -> None:
    read, write = storage.create("orders", ORDERS)
    consumer = Consumer(storage.subscribe_at(read))
    storage.drop(read)
    storage.client.runtime.submit(SYSTEM.sleep(0.1)).result(10)
    for time in range(1, 9):
        write = storage.update_and_downgrade(write, [row(time, time)], time + 1)
        consumer.wait_until(reaches(at(time + 1)))
        storage.client.runtime.submit(SYSTEM.sleep(0.05)).result(10)
    since = storage.frontiers()["orders"][0].only()
    assert since is not None
    assert 0 < since < 9
    storage.update_and_downgrade(write, [], EMPTY)
    consumer.end()


def test_a_capability_is_used_in_another_process(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        storage = Storage(client)
        read, write = storage.create("orders", ORDERS)
        storage.update_and_downgrade(write, [row(1, 0), row(2, 2)], 6)
        read = storage.downgrade(read, 2)
        command = [sys.executable, capability_reader.__file__, str(tmp_path), read.to_bytes().hex()]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(run.stdout)
        assert found == {
            "rows": [list(row(1, 0).data), list(row(2, 2).data)],
            "moved": 3,
            "refusal": "read_only",
        }
        client.runtime.submit(client.journal.refresh()).result(10)
        assert storage.frontiers()["orders"] == (at(3), at(6))
        assert [hold.frontier for hold in storage.capabilities("orders")] == [at(3), at(6)]


def test_a_process_that_only_reads_moves_no_upper(tmp_path: Path) -> None:
    with persist.open(tmp_path) as client:
        storage = Storage(client)
        _, write = storage.create("orders", ORDERS)
        with persist.open(tmp_path, options=Options(mode="polling")) as reader:
            elsewhere = Storage(reader)
            for use in (
                lambda: elsewhere.downgrade(write, 5),
                lambda: elsewhere.clone(write),
                lambda: elsewhere.drop(write),
            ):
                with pytest.raises(Fenced):
                    use()
            release = reader.journal.commit(0, [(c.Release(write.token),)])
            with pytest.raises(Fenced):
                reader.runtime.submit(release).result(10)
        assert storage.frontiers()["orders"] == (at(0), at(0))
        storage.update_and_downgrade(write, [row(1, 1)], 5)


def test_a_step_whose_filter_fails_comes_again(storage: Storage) -> None:
    """What was heard is not lost when it cannot be handed over."""
    read, write = storage.create("orders", ORDERS)
    kept, broken = pc.field("id") > 1, pc.field("no such column") > 1
    steps = storage.subscribe_at(read, snapshot=False, filter=kept)._steps
    runtime = storage.client.runtime
    storage.update_and_downgrade(write, [row(1, 3), row(2, 3)], 5)
    steps._filter = broken
    with pytest.raises(pa.ArrowInvalid):
        runtime.submit(steps.next()).result()
    steps._filter = kept
    step = runtime.submit(steps.next()).result()
    assert step is not None
    assert [update.data for update in step.updates] == [row(2, 3).data]
    runtime.submit(steps.close()).result()
