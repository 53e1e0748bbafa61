"""Sources side by side: what stalls waits and says why, what is broken stops, the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import Indeterminate, SchemaMismatch, SourceStalled
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client, Options, open_location
from noonmark.source.impl.counter import Counter
from support.ingest.loop import IngestLoop
from support.ingest.world import HistoryClock

PATIENCE_S = 30.0


@pytest.fixture
def client() -> Iterator[Client]:
    with open_location("memory:ingest-loop", options=Options(notify_host=None)) as opened:
        yield opened
        for name in list(opened.state.names):
            opened.drop(name).result()


@dataclass
class Troubled:
    """An engine that raises these errors, one a run, and then works."""

    errors: list[Exception] = field(default_factory=list)

    def run(self, *work: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return InPlaceEngine().run(*work)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline, pause = SYSTEM.monotonic() + PATIENCE_S, Event()
    while not condition():
        assert SYSTEM.monotonic() < deadline, "it did not come to that"
        pause.wait(0.01)


def test_sources_do_not_wait_for_each_other(client: Client) -> None:
    oracle, start_ms = MemoryOracle(SYSTEM), SYSTEM.now_ms() - 1000
    asleep = SourceStalled("upstream is asleep")
    engines = {
        "fine": Troubled(),
        "stalls": Troubled([asleep] * 10**6),
        "spark": Troubled([RuntimeError("a task failed four times")]),
        "broken": Troubled([SchemaMismatch("no such column")]),
    }

    def maker(name: str) -> Callable[[], Ingestion]:
        source = Named(start_ms=start_ms, tick_ms=1, name=name)
        return lambda: Ingestion(client, oracle, source, name, engines[name]).start()

    loop = IngestLoop({name: maker(name) for name in engines}, interval_s=0.01)
    loop.start()
    status = loop.status
    try:
        wait_for(lambda: status["fine"].ticks > 3 and status["spark"].ticks > 1)
        wait_for(lambda: status["stalls"].state == "stalled" and status["broken"].state == "failed")
        assert status["stalls"].error == "upstream is asleep"
        assert "no such column" in (status["broken"].error or "")
        assert (status["fine"].state, status["spark"].state) == ("running", "running")
        engines["stalls"].errors.clear()
        wait_for(lambda: status["stalls"].ticks > 0 and status["stalls"].error is None)
    finally:
        loop.stop()
    assert {name: each.state for name, each in status.items()} == {
        "fine": "stopped", "stalls": "stopped", "spark": "stopped", "broken": "failed",
    }  # fmt: skip
    for name in ("fine", "stalls", "spark"):
        _, read = client.create_or_load(name)
        found = read.snapshot((read.upper.only() or 1) - 1).result().counts()
        assert sorted(found.elements()) == [(n,) for n in range(len(found))]


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_commit_whose_answer_is_lost_is_taken_up_by_the_next_tick(
    lost: int, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HistoryClock()
    client.clock = clock
    source = Named(start_ms=1000, tick_ms=1, name="counter")
    ingestion = Ingestion(client, MemoryOracle(clock), source, "c", InPlaceEngine()).start()
    ingestion.tick()
    calls, submit = [0], client.submit

    def losing(transaction: Any) -> Future[Any]:
        answer = submit(transaction)
        calls[0] += 1
        if calls[0] == lost:
            answer.result()
            answer = Future()
            answer.set_exception(Indeterminate("the answer was lost"))
        return answer

    monkeypatch.setattr(client, "submit", losing)
    for _ in range(4):
        clock.now += 10
        try:
            ingestion.tick()
        except Indeterminate:
            continue
    assert calls[0] >= lost
    _, read = client.create_or_load("counter")
    found = read.snapshot((read.upper.only() or 1) - 1).result().counts()
    assert sorted(found.elements()) == [(n,) for n in range(41)]


@dataclass(frozen=True, kw_only=True)
class Named(Counter):
    """A counter whose collection has the name of its source."""

    name: str

    @property
    def outputs(self) -> Any:
        return (replace(super().outputs[0], name=self.name),)


def test_a_source_that_has_ended_is_complete_for_ever(client: Client) -> None:
    oracle, start_ms = MemoryOracle(SYSTEM), SYSTEM.now_ms() - 1000

    def make() -> Ingestion:
        source = Counter(start_ms=start_ms, tick_ms=10, up_to=7)
        return Ingestion(client, oracle, source, "counter", InPlaceEngine()).start()

    loop = IngestLoop({"counter": make}, interval_s=0.01)
    loop.start()
    wait_for(lambda: loop.status["counter"].state == "finished")
    loop.stop()
    for name in ("counter", "counter_errors", "counter_remap"):
        assert client.state.collection(name).upper.is_empty()
    again = make()
    assert again.is_finished
    seqno = client.state.seqno
    assert again.tick().rows == 0
    assert client.state.seqno == seqno, "there is nothing left to say"
    read = client.create_or_load("counter")[1]
    assert len(read.snapshot(oracle.read_ts() + 10**9).result().rows()) == 7
