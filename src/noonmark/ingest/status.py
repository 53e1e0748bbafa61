"""How a source is doing: for people, for metrics and for the schedule."""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.ingest.ingestion import Tick


@dataclass(frozen=True)
class Status:
    """How one source is doing.

    Attributes:
        state: "starting", "running", "stalled", "failed", "stopped", or "finished" when upstream
            has ended.
        error: why it stalled or failed.
        ticks: how many ticks it has done.
        rows: how many updates they brought.
        last: the last tick.
    """

    state: str = "starting"
    error: str | None = None
    ticks: int = 0
    rows: int = 0
    last: Tick | None = None
