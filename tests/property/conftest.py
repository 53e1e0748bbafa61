"""The orders that the laws of ``noonmark.tvc`` are tested on.

Each is a finite universe of times, closed under meet and join, so that "for every time" can be
checked by looking at every time, and "a frontier's set" is a plain Python set.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import settings

from noonmark.errors import InvalidValue
from noonmark.tvc import Interval, Partition, Partitioned, Product
from support.house.counts import counted

# A shared machine may stall for longer than Hypothesis allows an example by default.
settings.register_profile("noonmark", deadline=None, max_examples=counted(40, 500))
settings.load_profile("noonmark")


def _intervals(bounds: Sequence[Partition | None]) -> list[Interval]:
    made = []
    for lower, upper in product(bounds, bounds):
        try:
            made.append(Interval(lower, upper))
        except InvalidValue:
            continue  # an empty interval is none
    return made


def _partitioned(bounds: Sequence[Partition | None], offsets: int) -> list[Partitioned]:
    return [Partitioned(i, o) for i, o in product(_intervals(bounds), range(offsets))]


_UNIVERSES: dict[str, list[Any]] = {
    "int": list(range(7)),
    "product": [Product(a, b) for a, b in product(range(4), range(3))],
    "nested": [Product(a, Product(b, c)) for a, b, c in product(range(2), range(3), range(2))],
    "partitioned": _partitioned([None, 0, 1, 3], 3),
    "files": _partitioned([None, 2, "a", "a\0"], 3),
    "product_partitioned": [
        Product(a, p) for a, p in product(range(2), _partitioned([None, 0, 1], 2))
    ],
}


@pytest.fixture(scope="session", params=list(_UNIVERSES))
def universe(request: pytest.FixtureRequest) -> list[Any]:
    """Every time of one order."""
    return _UNIVERSES[request.param]
