"""Which way a large tick is cheaper: by its changes, or the whole anew.

    by its changes   costs seconds per byte of the change
    anew             costs seconds per byte of the inputs, whatever changed

Both rates are a view's own, taken from the ticks that it did: F14 shows that views differ in what a
change costs them. They are not stored. A view that has not done both ways since the process began
goes by `RECOMPUTE_SHARE` instead.

Law (only cost): whatever is chosen, the updates are the same (`noonmark.compute.view.tick`).
Law (bounded regret): where costs are linear, a choice costs at most `1 / MARGIN` of the cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

#: Without experience: beyond this part of the inputs a change costs more than the whole.
RECOMPUTE_SHARE = 0.25
#: What is done anew must promise to take at most this part of the other way's time, because it also
#: reads what is stored, which hydration did not. Chosen, not measured.
MARGIN = 0.75
#: The fixed cost of a job hides what a byte of a smaller change costs.
CHANGE_BYTES_MIN = 1 << 20


@dataclass(frozen=True)
class Costs:
    """What a view's ways of computing took last, in milliseconds per byte; None if unknown.

    Attributes:
        share: what decides without experience.
        change: by the changes, per byte of them.
        whole: anew, per byte of the inputs.
    """

    share: float = RECOMPUTE_SHARE
    change: float | None = None
    whole: float | None = None

    def after(self, strategy: str, read_bytes: int, ms: float) -> Self:
        """With what a computation took that read so much: its changes, or all of its inputs."""
        if strategy == "tasks" and read_bytes >= CHANGE_BYTES_MIN:
            return replace(self, change=ms / read_bytes)
        if strategy in ("hydrate", "recompute", "renew") and read_bytes > 0:
            return replace(self, whole=ms / read_bytes)
        return self

    def anew_is_cheaper(self, change_bytes: int, input_bytes: int) -> bool:
        """Whether the whole anew is expected to take less than so large a change."""
        if self.change is None or self.whole is None:
            return change_bytes > self.share * input_bytes
        return self.whole * input_bytes < MARGIN * self.change * change_bytes


@dataclass(frozen=True)
class Walk:
    """The last walk of a view: how long it took, and how many updates it was about."""

    ms: float
    rows: int

    def expected_ms(self, rows: int) -> float:
        """How long one about so many is expected to take: of fewer updates, as much less.

        A view that is slow whatever changed is found out by its next walk.
        """
        return self.ms * min(1.0, rows / self.rows) if self.rows else self.ms
