"""Where a generator's randomness comes from: a sequence of choices that can be replayed and cut.

A generator draws numbers; what it makes is a function of them alone. So a failing text is made
smaller by making its sequence smaller: pieces are left out or set to zero, and the generator runs
again. A replay that asks for more than there is gets zeros: generators put their simplest form
first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """A sequence of choices: fresh from a seed, or a replay."""

    def __init__(self, seed: int = 0, replay: Sequence[int] | None = None) -> None:
        self._random = random.Random(seed)
        self._replay = replay
        self.drawn: list[int] = []

    def below(self, count: int) -> int:
        """A number from 0 up to `count`."""
        at = len(self.drawn)
        if self._replay is None:
            number = self._random.randrange(count)
        else:
            number = self._replay[at] % count if at < len(self._replay) else 0
        self.drawn.append(number)
        return number

    def pick(self, items: Sequence[T]) -> T:
        """One of some items."""
        return items[self.below(len(items))]

    def often(self, parts: int, of: int) -> bool:
        """True in so many parts of all cases; False is the simple case."""
        return self.below(of) >= of - parts


def smaller(
    drawn: Sequence[int], fails: Callable[[list[int]], bool], tries_max: int = 400
) -> list[int]:
    """A sequence that still fails, with pieces left out and numbers set to zero."""
    best, tries = list(drawn), 0
    size = max(1, len(best) // 2)
    while size and tries < tries_max:
        at = 0
        while at < len(best) and tries < tries_max:
            for trial in (
                best[:at] + best[at + size :],
                best[:at] + [0] * len(best[at : at + size]) + best[at + size :],
            ):
                tries += 1
                if trial != best and fails(trial):
                    best = trial
                    break
            else:
                at += size
        size //= 2
    return best
