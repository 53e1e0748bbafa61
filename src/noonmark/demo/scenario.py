"""What the demo runs: a counter and an auction house on one timeline, and views over them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from noonmark.clock import SYSTEM
from noonmark.demo.views import Views
from noonmark.ingest import Engine, Ingestion
from noonmark.ingest_loop import IngestLoop
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client
from noonmark.source.contract import Source
from noonmark.source.impl.auction import Auction
from noonmark.source.impl.counter import Counter

_WARM_UP_S = 60.0


@dataclass(frozen=True)
class Reading:
    """One collection read twice as of one time."""

    name: str
    as_of: int
    rows: int
    same: bool


class Scenario:
    """Two sources and the views over them, ticking side by side until stopped."""

    def __init__(self, client: Client, engine: Engine, views: Views) -> None:
        self.client = client
        self.views = views
        now_ms = SYSTEM.now_ms()
        oracle = MemoryOracle(SYSTEM, floor=_latest(client))
        self.sources: dict[str, Source] = {
            "counter": Counter(start_ms=now_ms, tick_ms=100, max_cardinality=1000),
            "auction": Auction(start_ms=now_ms, tick_ms=200),
        }
        makers = {
            name: _maker(Ingestion, client, oracle, source, name, engine)
            for name, source in self.sources.items()
        }
        self.loop = IngestLoop(makers, interval_s=1.0)
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin, and wait for the first tick of each source: Spark warms up meanwhile."""
        self.loop.start()
        self.views.start()
        self._until(lambda: all(status.ticks for status in self.loop.status.values()))
        self._until(lambda: self.views.house() is not None or self.views.error is not None)

    def _until(self, ready: Callable[[], bool]) -> None:
        """Wait until something is so; not if a source failed, nor for ever."""
        deadline = SYSTEM.monotonic() + _WARM_UP_S
        while not ready():
            failed = any(s.state == "failed" for s in self.loop.status.values())
            if failed or SYSTEM.monotonic() > deadline:
                return
            self.wait(0.1)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        """Let the ticks under way finish."""
        if not self._stopped.is_set():
            self._stopped.set()
            self.loop.stop()
            self.views.stop()

    def collections(self) -> list[str]:
        """Everything that the sources feed, and the views."""
        names = []
        for name, source in self.sources.items():
            names += [output.name for output in source.outputs]
            names += [f"{name}_errors", f"{name}_remap"]
        names += [name for name, view in self.views.flow.views.items() if view.is_hydrated]
        return [name for name in names if name in self.client.state.names]

    def read_twice(self) -> list[Reading]:
        """Every collection as of three times, the same three for all, each read twice."""
        readings = []
        reads = [(name, self.client.create_or_load(name)[1]) for name in self.collections()]
        first = max(read.since.only() or 0 for _, read in reads)
        last = min(read.upper.only() or 1 for _, read in reads) - 1
        for as_of in (first, (first + last) // 2, last):
            for name, read in reads:
                once = read.snapshot(as_of).result().counts()
                again = read.snapshot(as_of).result().counts()
                readings.append(Reading(name, as_of, sum(once.values()), once == again))
        return readings


def _maker(kind: type[Ingestion], *args: object) -> Callable[[], Ingestion]:
    return lambda: kind(*args)  # type: ignore[arg-type]


def _latest(client: Client) -> int:
    """Where the timeline of a location that was used before goes on."""
    uppers = [each.upper.only() for each in client.state.collections.values()]
    return max((upper for upper in uppers if upper is not None), default=0)
