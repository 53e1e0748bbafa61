"""Descriptions: what a batch of updates is a batch of.

A batch with the description (lower, upper, since) stands for the updates of one collection at the
times in lower and not in upper. Let U be all updates that the collection ever has, and B those in
the batch. The contract is one equation, for every data and for every time t in since:

    sum of B(data, s) over s <= t
        =  sum of U(data, s) over s <= t, with s in lower and s not in upper

What a reader may conclude: batches that follow each other, each one's upper the next one's lower,
add up to the collection itself at every t in all of their sinces and not in the last upper.

What a reader may not conclude:

- that the times in the batch lie in [lower, upper): they may have been advanced by since, even to
  upper and past it;
- anything at a time that is not in since: the history there may be gone;
- that a batch without updates means that nothing happened: changes may have cancelled out;
- that upper is the collection's: a later batch may follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, final

from noonmark.errors import FrontierRegression, InvalidValue
from noonmark.tvc.frontier import Antichain
from noonmark.tvc.order import T


@final
@dataclass(frozen=True, slots=True)
class Description(Generic[T]):
    """The bounds of a batch; upper is at or beyond lower."""

    lower: Antichain[T]
    upper: Antichain[T]
    since: Antichain[T]

    def __post_init__(self) -> None:
        if not self.upper.at_or_beyond(self.lower):
            raise FrontierRegression(
                f"a batch cannot end at {self.upper!r}, before it starts at {self.lower!r}",
                lower=self.lower,
                upper=self.upper,
            )

    def contains(self, time: T) -> bool:
        """Whether the batch stands for the updates at `time`: in lower and not in upper."""
        return self.lower.less_equal(time) and not self.upper.less_equal(time)

    def is_empty(self) -> bool:
        """Whether the batch stands for no time at all."""
        return self.lower == self.upper

    def merge(self, following: Description[T]) -> Description[T]:
        """What the updates of two batches that follow each other stand for together."""
        if self.upper != following.lower:
            raise InvalidValue(
                f"a batch from {following.lower!r} does not follow one up to {self.upper!r}",
                upper=self.upper,
                lower=following.lower,
            )
        return Description(self.lower, following.upper, self.since.join(following.since))
