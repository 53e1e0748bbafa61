"""How much a source has read, and how fast it reads now: records and bytes as they came.

Law (rates): a rate is the difference of two totals by the time between them, the newest and the
oldest of the last `WINDOW_S` seconds; so a burst fades out after that, and an idle source has none.

Where it runs: counted in the source's own thread, read in any.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from noonmark.ingest.task import Row

WINDOW_S = 60.0
#: Closer samples are one: what is kept does not grow with the number of ticks.
_STEP_S = 1.0


@dataclass(frozen=True)
class Sample:
    """The totals at one moment."""

    at_s: float
    records: int = 0
    bytes: int = 0


@dataclass
class Rates:
    """See the module."""

    _samples: deque[Sample] = field(default_factory=deque)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def count(self, rows: Iterable[Row], now_s: float) -> None:
        """Add what tasks say that they have read (`ingest.task.RESULT`)."""
        read = [(row["read_rows"], row["read_bytes"]) for row in rows if row["read_rows"]]
        with self._mutex:
            last = self._samples[-1] if self._samples else Sample(now_s)
            if not self._samples:
                self._samples.append(last)
            records = last.records + sum(each for each, _ in read)
            total = Sample(now_s, records, last.bytes + sum(each for _, each in read))
            if len(self._samples) > 1 and now_s - self._samples[-2].at_s < _STEP_S:
                self._samples.pop()
            self._samples.append(total)
            self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        while len(self._samples) > 2 and self._samples[1].at_s < now_s - WINDOW_S:
            self._samples.popleft()

    def totals(self) -> tuple[int, int]:
        """Records and bytes since this process began."""
        with self._mutex:
            last = self._samples[-1] if self._samples else Sample(0.0)
        return last.records, last.bytes

    def per_second(self, now_s: float) -> tuple[float, float]:
        """Records and bytes per second, over the last `WINDOW_S`."""
        with self._mutex:
            self._forget(now_s)
            recent = list(self._samples)
        fresh = [(a, b) for a, b in pairwise(recent) if b.at_s >= now_s - WINDOW_S]
        if not fresh:
            return 0.0, 0.0
        first, last = fresh[0][0], fresh[-1][1]
        seconds = max(now_s - first.at_s, _STEP_S)
        return (last.records - first.records) / seconds, (last.bytes - first.bytes) / seconds
