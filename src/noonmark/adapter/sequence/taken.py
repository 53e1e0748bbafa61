"""The numbers that one session took from sequences: what `currval` and `lastval` say."""

from __future__ import annotations


class Taken:
    """The last number of each sequence, by its uid, and which of them came last."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._last: str | None = None

    def take(self, uid: str, number: int) -> None:
        """A sequence gave a number."""
        self._numbers[uid], self._last = number, uid

    def put(self, uid: str, number: int) -> None:
        """`setval` said which number was the last."""
        self._numbers[uid] = number

    def of(self, uid: str) -> int | None:
        """The last number of a sequence; None before the first."""
        return self._numbers.get(uid)

    @property
    def last(self) -> int | None:
        """The last number of all."""
        return None if self._last is None else self._numbers[self._last]
