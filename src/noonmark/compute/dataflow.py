"""Many views: each ticks after the views that it reads, and independent ones tick side by side.

Law (order): within one round a view ticks after every view that it reads, so that what came in
before the round has reached every view after it. Equal times are exact everywhere: a view never
reads one input further than another.

A view that fails does not hold back those that do not read it: its error is kept, its collections
stay where they are, and the next round tries again.

Where it runs: driver; one thread per view of a level.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from noonmark.compute.view import TickRecord, View
from noonmark.errors import NameTaken, NoonmarkError, UsageError

#: Spark plans in the driver: more threads than this only wait for each other.
THREADS_MAX = 8
#: How many records are kept for people to look at.
RECORDS_MAX = 1_000


@dataclass
class Dataflow:
    """The maintained views of one location. One caller runs rounds."""

    views: dict[str, View] = field(default_factory=dict)
    records: list[TickRecord] = field(default_factory=list)
    failures: dict[str, NoonmarkError] = field(default_factory=dict)

    def add(self, view: View) -> None:
        """Maintain a view from the next round on."""
        if view.name in self.views:
            raise NameTaken(f'view "{view.name}" is maintained already', view=view.name)
        self.views[view.name] = view

    def remove(self, name: str) -> View:
        """Stop maintaining a view; its collections stay as they are."""
        users = [v.name for v in self.views.values() if name in v.definition.inputs]
        if users:
            raise UsageError(
                f'view "{name}" is read by "{users[0]}"',
                hint="Remove its readers first.",
            )
        return self.views.pop(name)

    def levels(self) -> list[list[View]]:
        """The views, each after those that it reads."""
        depths: dict[str, int] = {}

        def depth(name: str) -> int:
            if name not in depths:
                below = [n for n in self.views[name].definition.inputs if n in self.views]
                depths[name] = 1 + max(map(depth, below), default=-1)
            return depths[name]

        made: dict[int, list[View]] = {}
        for name, view in self.views.items():
            made.setdefault(depth(name), []).append(view)
        return [made[at] for at in sorted(made)]

    def tick(self) -> list[TickRecord]:
        """One round: every view as far as its inputs are known."""
        done: list[TickRecord] = []
        for level in self.levels():
            done += self._tick_level(level)
        self.records = (self.records + done)[-RECORDS_MAX:]
        return done

    def _tick_level(self, level: list[View]) -> list[TickRecord]:
        if len(level) == 1:
            made = [self._tick_one(level[0])]
        else:
            with ThreadPoolExecutor(min(len(level), THREADS_MAX), "noonmark-view") as pool:
                made = list(pool.map(self._tick_one, level))
        return [record for record in made if record is not None]

    def _tick_one(self, view: View) -> TickRecord | None:
        try:
            record = view.tick()
        except NoonmarkError as error:
            self.failures[view.name] = error
            return None
        self.failures.pop(view.name, None)
        return record
