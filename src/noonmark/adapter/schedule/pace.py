"""When a source ticks next, and whether it asks upstream then.

    nothing is known to be new         once in `INTERVAL_S`, asking
    records have come                  as soon as its last tick has ended and was paid for, asking
    a neighbour has bound something    likewise, without asking: its collections move on in time

A tick is *paid for* when `COST` times its own length have passed since it began: so ticks take a
share of the time at most, and one that costs much has more to do next time instead.

Law (bounded): between the beginnings of two ticks that nobody hurries lie at least `FLOOR_S`, and
`COST` times the length of the first. Upstream is asked once in `INTERVAL_S` where it does not tell
of records itself.
Law (soon): what has come is bound by a tick that begins then, or as soon as the last one has ended.

Where it runs: anywhere; pure.
"""

from __future__ import annotations

from dataclasses import dataclass

INTERVAL_S = 1.0
FLOOR_S = 0.02
COST = 1.25


@dataclass(frozen=True)
class Pace:
    """The last tick of a source: when it began and ended, and when upstream was last asked."""

    began_s: float
    ended_s: float
    asked_s: float

    def due_s(self, *, early: bool) -> float:
        """When the next one begins; `early` where there is a reason to before the interval ends."""
        usual_s = max(self.ended_s, self.asked_s + INTERVAL_S)
        if not early:
            return usual_s
        paid_s = self.began_s + max(FLOOR_S, COST * (self.ended_s - self.began_s))
        return min(usual_s, max(self.ended_s, paid_s))

    def asks(self, now_s: float) -> bool:
        """Whether upstream is to be asked now, though nobody knows of anything new."""
        return now_s >= self.asked_s + INTERVAL_S
