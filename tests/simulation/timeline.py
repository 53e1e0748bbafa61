"""The laws of `noonmark.oracle.contract`, over the real order of all calls and all answers.

A call is judged by what had been answered, by any owner, before it was made: that alone it must
respect, since calls that overlap may be put in either order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .model import Violation


@dataclass(frozen=True)
class Floor:
    """The largest times that had been answered when a call was made."""

    written: int
    read: int
    applied: int


@dataclass
class Timeline:
    """Every answer so far."""

    written: int = 0
    read: int = 0
    applied: int = 0
    given: set[int] = field(default_factory=set)
    answers: int = 0

    def floor(self) -> Floor:
        """A call is being made."""
        return Floor(self.written, self.read, self.applied)

    def wrote(self, owner: str, floor: Floor, time: int) -> None:
        """`write_ts` answered."""
        self.answers += 1
        if time <= max(floor.written, floor.read, floor.applied):
            raise Violation(f"{owner} gave {time} for a write after {floor}")
        if time in self.given:
            raise Violation(f"{owner} gave {time} for a write a second time")
        self.given.add(time)
        self.written = max(self.written, time)

    def looked(self, owner: str, floor: Floor, time: int) -> None:
        """`read_ts` answered."""
        self.answers += 1
        if time < max(floor.read, floor.applied):
            raise Violation(f"{owner} gave {time} for a read after {floor}")
        self.read = max(self.read, time)

    def applies(self, time: int) -> None:
        """`apply_write` answered."""
        self.answers += 1
        self.applied = max(self.applied, time)
