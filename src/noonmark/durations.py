"""How long something took, counted: a histogram that any part keeps, and metrics read.

>>> taken = Durations((0.1, 1.0))
>>> for seconds in (0.05, 0.1, 0.5, 7.0):
...     taken.add(seconds)
>>> taken.cumulative(), taken.count, round(taken.seconds, 2)
([('0.1', 2), ('1.0', 3), ('+Inf', 4)], 4, 7.65)
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

BOUNDS_S = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)


class Durations:
    """See the module. One thread adds; others may read."""

    def __init__(self, bounds: tuple[float, ...] = BOUNDS_S) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, int]]:
        """Each bound, and how many took no longer: as Prometheus wants buckets."""
        names = [*map(str, self._bounds), "+Inf"]
        return list(zip(names, accumulate(self._counts), strict=True))
