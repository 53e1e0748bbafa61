"""Many views: each ticks after the views that it reads, and independent ones tick side by side.

Law (order): within one round a view ticks after every view that it reads, so that what came in
before the round has reached every view after it. Equal times are exact everywhere: a view never
reads one input further than another.

Views of one level whose changes are small are one Spark job together, a task each: the jobs of a
round are as many as there are levels, not views. Their commits are made side by side, so that they
become one entry of the log; views whose inputs did not change are in it too, and in no job.

A view that fails does not hold back those that do not read it: its error is kept, its collections
stay where they are, and the next round tries again.

Where it runs: driver; hydrations and large changes in a thread per view of a level.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from noonmark.compute.view import Begun, TickRecord, View
from noonmark.compute.walk.job import Made, Work, run
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
        begun = [(view, tick) for view in level if (tick := self._begin(view)) is not None]
        still = [(view, tick) for view, tick in begun if tick.strategy == "idle"]
        begun = [(view, tick) for view, tick in begun if tick.strategy != "idle"]
        return self._advance(still) + self._tick_changed(begun)

    def _advance(self, still: list[tuple[View, Begun]]) -> list[TickRecord]:
        """The views whose inputs did not change, in one commit."""
        if not still:
            return []
        txn = still[0][0].client.atomic()
        for view, tick in still:
            view.add_to(txn, tick)
        try:
            txn.commit().result()
        except NoonmarkError:  # of one of them: each by itself then, to know which
            made = [self._finish(view, tick, None, 0) for view, tick in still]
            return [record for record in made if record is not None]
        for view, _ in still:
            self.failures.pop(view.name, None)
        return [view.record(tick) for view, tick in still]

    def _tick_changed(self, begun: list[tuple[View, Begun]]) -> list[TickRecord]:
        """The views whose inputs changed: their walks in one job."""
        walks = [(view, tick.work) for view, tick in begun if tick.work is not None]
        made = dict(zip([view.name for view, _ in walks], walk_together(walks), strict=True))
        jobs = 1 if made else 0

        def finish(each: tuple[View, Begun]) -> TickRecord | None:
            view, tick = each
            own = made.get(view.name)
            return self._finish(view, tick, own, jobs if own is not None else 0)

        if len(begun) == 1:
            return [record for record in map(finish, begun) if record is not None]
        with ThreadPoolExecutor(THREADS_MAX, "noonmark-view") as pool:
            return [record for record in pool.map(finish, begun) if record is not None]

    def _begin(self, view: View) -> Begun | None:
        try:
            return view.begin()
        except NoonmarkError as error:
            self.failures[view.name] = error
            return None

    def _finish(
        self, view: View, tick: Begun, made: Made | NoonmarkError | None, jobs: int
    ) -> TickRecord | None:
        try:
            record = view.finish(tick, made, jobs)
        except NoonmarkError as error:
            self.failures[view.name] = error
            return None
        self.failures.pop(view.name, None)
        return record


def walk_together(walks: list[tuple[View, Work]]) -> list[Made | NoonmarkError]:
    """The small changes of several views, as one Spark job."""
    if not walks:
        return []
    spark = walks[0][0].spark
    names = ", ".join(view.name for view, _ in walks)
    spark.sparkContext.setJobGroup("noonmark-walk", f"delta {names}"[:200])
    return run(spark, [(view.name, work) for view, work in walks])
