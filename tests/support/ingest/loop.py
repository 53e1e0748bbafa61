"""Ingestion for tests without a database: every source ticks in a thread of its own.

A source that stalls is tried again with growing pauses and says why; its collections stay where
they were, and those of other sources go on. So is one whose Spark job failed, or whose storage did
not answer: nothing is lost by trying. A definite error of our own ends that source's thread and is
kept in its status. Ticks begin at fixed intervals; when one takes longer, the next begins
at once and covers more: under load ticks grow, when idle they shrink.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import NoonmarkError, SourceStalled, StorageError
from noonmark.ingest.ingestion import Ingestion, Tick
from noonmark.ingest.status import Status

_TRANSIENT = (SourceStalled, StorageError)
_PAUSE_FIRST_S = 0.25
_PAUSE_LARGEST_S = 30.0


class IngestLoop:
    """One thread per source, from `start` to `stop`."""

    def __init__(
        self,
        ingestions: dict[str, Callable[[], Ingestion]],
        interval_s: float = 1.0,
        clock: Clock = SYSTEM,
    ) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._stop = threading.Event()
        self._mutex = threading.Lock()
        self.status = {name: Status() for name in ingestions}
        self._threads = [
            threading.Thread(
                target=self._run, args=(name, make), name=f"ingest-{name}", daemon=True
            )
            for name, make in ingestions.items()
        ]

    def start(self) -> None:
        """Begin to tick."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the ticks under way finish and end."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, make: Callable[[], Ingestion]) -> None:
        try:
            is_finished = self._tick_for_ever(name, make)
        except NoonmarkError as error:
            self._note(name, state="failed", error=str(error))
        else:
            self._note(name, state="finished" if is_finished else "stopped")

    def _tick_for_ever(self, name: str, make: Callable[[], Ingestion]) -> bool:
        """Whether upstream has ended, and all of it is here."""
        pause_s = _PAUSE_FIRST_S
        ingestion: Ingestion | None = None
        while not self._stop.is_set():
            began = self._clock.monotonic()
            try:
                # Also to begin may fail for a while, or have happened with its answer lost.
                ingestion = ingestion or make()
                tick = ingestion.tick()
            except Exception as error:
                if isinstance(error, NoonmarkError) and not isinstance(error, _TRANSIENT):
                    raise
                self._note(name, state="stalled", error=str(error))
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_LARGEST_S)
                continue
            pause_s = _PAUSE_FIRST_S
            self._count(name, tick)
            if ingestion.is_finished:
                return True
            self._stop.wait(max(0.0, self._interval_s - (self._clock.monotonic() - began)))
        return False

    def _count(self, name: str, tick: Tick) -> None:
        seen = self.status[name]
        self._note(
            name, state="running", error=None, ticks=seen.ticks + 1, rows=seen.rows + tick.rows,
            last=tick,
        )  # fmt: skip

    def _note(self, name: str, **changes: object) -> None:
        with self._mutex:
            self.status[name] = replace(self.status[name], **changes)  # type: ignore[arg-type]
