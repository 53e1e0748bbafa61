"""Editions: what a text means may become more exact; what is kept of it may not.

    1   a literal of no type has the size of what stands beside it: numeric(10,2) + '0.001' adds 0
        array_agg and its kin without ORDER BY are in the order of the values
    2   it has what is written; they are in the order of a subquery that they are of

Law: a view means what it meant when it was made. Its rows are kept, and ticks take away again what
earlier ticks computed; they must compute the same. OR REPLACE gives a view the edition of now.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

EDITION = 2
_edition: ContextVar[int] = ContextVar("edition", default=EDITION)


@contextmanager
def planned_in(edition: int) -> Iterator[None]:
    """Plan in an edition, for the length of a block.

    >>> with planned_in(1):
    ...     keeps_written()
    False
    >>> keeps_written()
    True
    """
    before = _edition.set(edition)
    try:
        yield
    finally:
        _edition.reset(before)


def keeps_order() -> bool:
    """Whether aggregates of a subquery are in its order."""
    return _edition.get() >= 2


def keeps_written() -> bool:
    """Whether a literal of no type keeps what is written."""
    return _edition.get() >= 2
