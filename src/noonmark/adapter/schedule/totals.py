"""What the ticks of all views have done since the process began, by strategy."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from noonmark.durations import Durations

if TYPE_CHECKING:
    from noonmark.compute.view.view import TickRecord


class TickTotals:
    """See the module; no view has labels of its own here, so that it stays small."""

    def __init__(self) -> None:
        self.durations: defaultdict[str, Durations] = defaultdict(Durations)
        self.rows: Counter[str] = Counter()
        self.jobs = 0
        self.errors = 0

    def add(self, record: TickRecord) -> None:
        """Count one tick."""
        self.durations[record.strategy].add(record.ms / 1000)
        self.rows["in"] += record.rows_in
        self.rows["out"] += record.rows_out
        self.jobs += record.jobs
        self.errors += record.errors
