"""Many views: each ticks after the views that it reads, and independent ones tick side by side.

Law (order): within one round a view ticks after every view that it reads, so that what came in
before the round has reached every view after it. Equal times are exact everywhere: a view never
reads one input further than another.

Views of one level whose changes are small are one Spark job together, a task each, and one commit:
the jobs of a round are as many as there are levels, not views. Views whose inputs did not change
are one commit, and no job.

A view that fails does not hold back those that do not read it: its error is kept, its collections
stay where they are, and the next round tries again.

Where it runs: driver; hydrations and large changes in a thread per view of a level.
"""

from __future__ import annotations

import math
import statistics
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from noonmark.compute.runner.job import TickTask
from noonmark.compute.runner.limit import Limit, TickExceeded
from noonmark.compute.runner.runner import JOBS, Runner
from noonmark.compute.view import poison
from noonmark.compute.view.cost import Walk
from noonmark.compute.view.tick import NO_OUTPUT, Output
from noonmark.compute.view.view import Begun, TickRecord, View
from noonmark.errors import (
    BelowUpper,
    CapabilityInvalid,
    Determinate,
    NameTaken,
    NoonmarkError,
    UsageError,
)
from noonmark.persist.spark.errors import SPARK_ERRORS
from noonmark.storage.transaction import Transaction

#: Spark plans in the driver: more threads than this only wait for each other.
THREADS_MAX = 8
#: How many records are kept for people to look at.
RECORDS_MAX = 1_000
#: A walk up to so long, or so many times as long as is usual beside it, holds nobody back.
QUICK_MS, SLOW_FACTOR = 250.0, 3.0
#: How long half of a change may take when the row that a tick does not get past is searched.
HALF_S = 3.0
_DETAIL_MAX = 500
#: How often, and how soon again, a refused tick looks whether what refused it is there.
_LOOKS, _PAUSE_S = 50, 0.02

Tick: TypeAlias = "tuple[View, Begun]"
Done: TypeAlias = "tuple[View, TickRecord | NoonmarkError | None]"


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
        shares = shared(begun)
        made = self._noted(advance_together(shares.still))
        made += self._noted(tick_together(shares.walks))
        alone = shares.alone
        if len(alone) < 2:
            return made + self._noted(tick_alone(alone))
        with ThreadPoolExecutor(THREADS_MAX, "noonmark-view") as pool:
            done = pool.map(lambda each: tick_alone([each]), alone)
            return made + self._noted([one for each in done for one in each])

    def _noted(self, done: Sequence[Done]) -> list[TickRecord]:
        """The records of the ticks that went well; the others are failures."""
        for view, outcome in done:
            if isinstance(outcome, NoonmarkError):
                self.failures[view.name] = outcome
            else:
                self.failures.pop(view.name, None)
        return [outcome for _, outcome in done if isinstance(outcome, TickRecord)]

    def _begin(self, view: View) -> Begun | None:
        try:
            return view.begin()
        except NoonmarkError as error:
            self.failures[view.name] = error
            return None


@dataclass(frozen=True)
class Shares:
    """Ticks by how they are done: in one commit, in one job and one commit, or by themselves."""

    still: list[Tick]
    walks: list[Tick]
    alone: list[Tick]


def shared(begun: Sequence[Tick], *, apart: bool = False) -> Shares:
    """Who goes with whom.

    Args:
        begun: ticks of views that do not read each other.
        apart: whether views whose walk takes much longer than the others' are to go alone, so
            that nobody waits for them. Those that were never walked are among them.
    """
    still = [each for each in begun if each[1].strategy == "idle"]
    walks = [each for each in begun if each[1].work is not None]
    alone = [each for each in begun if each[1].work is None and each[1].strategy != "idle"]
    if not apart or len(walks) < 2:
        return Shares(still, walks, alone)
    known = [ms for ms in map(expected_ms, walks) if ms is not None]
    bound = max(QUICK_MS, SLOW_FACTOR * statistics.median(known)) if known else QUICK_MS
    quick = [each for each in walks if (expected_ms(each) or math.inf) <= bound]
    return Shares(still, quick, [*alone, *(each for each in walks if each not in quick)])


def expected_ms(tick: Tick) -> float | None:
    """How long a small change is expected to take, by the last one of the view; None if unknown."""
    view, begun = tick
    if view.walked is None or begun.work is None:
        return None
    return view.walked.expected_ms(begun.work.rows)


def tick_alone(
    ticks: Sequence[Tick],
    limit: Limit | None = None,
    seconds: float | None = None,
    runner: Runner = JOBS,
) -> list[Done]:
    """Ticks each in jobs and a commit of its own.

    Args:
        ticks: what to do, one after another.
        limit: gives them up.
        seconds: how long a small change may take; one that takes longer is searched for the row
            that it does not get past.
        runner: does small changes.
    """
    limit = limit or Limit()
    return [done for each in ticks for done in _alone(*each, limit, seconds, runner)]


def _alone(
    view: View, tick: Begun, limit: Limit, seconds: float | None, runner: Runner
) -> list[Done]:
    if tick.work is not None:
        done = tick_together([(view, tick)], limit, seconds, runner)
        return [_explained(view, tick.work, outcome) for _, outcome in done]
    try:
        with limit.of(partial(JOBS.end, lambda: view.spark, tick.group), None):
            return [(view, view.finish(tick, None))]
    except NoonmarkError as error:
        return _overtaken(view, tick, error)
    except SPARK_ERRORS as error:
        return [(view, exceeded(view, None) if limit.over else _unfinished(view, error))]


def _explained(view: View, work: TickTask, outcome: TickRecord | NoonmarkError | None) -> Done:
    """A tick that took too long, with the row that is to blame, if one is."""
    if isinstance(outcome, TickExceeded) and outcome.fields.get("seconds") is not None:
        with suppress(NoonmarkError, *SPARK_ERRORS):
            row = poison.find(view.spark, view.name, work, HALF_S, Limit())
            outcome.detail = row or outcome.detail
    return view, outcome


def exceeded(view: View, seconds: float | None) -> TickExceeded:
    """What is told of a tick that was ended."""
    if seconds is None:
        return TickExceeded(f'a tick of view "{view.name}" was given up', view=view.name)
    return TickExceeded(
        f'a tick of view "{view.name}" took longer than {seconds:g} s',
        hint="Replace or drop the view. AS OF before the change still answers.",
        view=view.name,
        seconds=seconds,
    )


def _unfinished(view: View, error: Exception) -> NoonmarkError:
    """What Spark said, as an error of ours: nothing was committed, so the tick is tried again."""
    text = f'Spark did not finish a tick of view "{view.name}"'
    return Determinate(text, detail=str(error)[:_DETAIL_MAX], view=view.name)


def advance_together(still: Sequence[Tick]) -> list[Done]:
    """The views whose inputs did not change, in one commit."""
    return commit_together([(view, tick, NO_OUTPUT) for view, tick in still], jobs=0)


def tick_together(
    walks: Sequence[Tick],
    limit: Limit | None = None,
    seconds: float | None = None,
    runner: Runner = JOBS,
) -> list[Done]:
    """Small changes of several views: run together, and one commit.

    Args:
        walks: what to do.
        limit: gives it up.
        seconds: how long it may take: then all of them are told `TickExceeded`.
        runner: does the works.
    """
    if not walks:
        return []
    limit = limit or Limit()
    first, group = walks[0][0], walks[0][1].group
    works = [(view.name, tick.work) for view, tick in walks if tick.work is not None]
    try:
        with limit.of(partial(runner.end, lambda: first.spark, group), seconds):
            made, jobs = runner.run(lambda: first.spark, works, group)
    except (NoonmarkError, *SPARK_ERRORS) as error:  # of one of them: each by itself, to know which
        if limit.over:
            if len(walks) == 1 and seconds is not None:
                walks[0][0].walked = Walk(seconds * 1000, sum(work.rows for _, work in works))
            return [(view, exceeded(view, seconds)) for view, _ in walks]
        if len(walks) == 1:
            view = walks[0][0]
            own = error if isinstance(error, NoonmarkError) else _unfinished(view, error)
            return [(view, own)]
        alone = (tick_together([each], None, seconds, runner) for each in walks)
        return [done for each in alone for done in each]
    outputs: list[tuple[View, Begun, Output]] = []
    failed: list[Done] = []
    for (view, tick), each in zip(walks, made, strict=True):
        try:
            outputs.append((view, tick, view.output(tick, each)))
        except NoonmarkError as error:
            failed.append((view, error))
    return failed + commit_together(outputs, jobs)


def commit_together(made: Sequence[tuple[View, Begun, Output]], jobs: int) -> list[Done]:
    """What several ticks made, in one commit; when it is refused, each by itself."""
    if not made:
        return []
    txn = Transaction(made[0][0].client)
    try:
        # Of views that share an arrangement, the furthest brings it forward.
        for view, tick, output in sorted(made, key=_furthest_first):
            view.add_to(txn, tick, output)
        txn.commit().result()
    except NoonmarkError as error:  # of one of them
        if len(made) == 1:
            return _overtaken(*made[0][:2], error)
        return [done for each in made for done in commit_together([each], jobs)]
    return [(view, view.record(tick, output, jobs)) for view, tick, output in made]


def _furthest_first(made: tuple[View, Begun, Output]) -> float:
    upper = made[1].upper
    return -math.inf if upper is None else -upper


def _overtaken(view: View, tick: Begun, error: NoonmarkError) -> list[Done]:
    """A tick that was refused; made anew where what it counted on was moved meanwhile.

    By another view, if both keep the same; or by an earlier worker of this one, whose last commit
    nobody waited for.
    """
    if isinstance(error, CapabilityInvalid | BelowUpper):
        counted_on = tick.lower, tick.upper, tick.strategy, tick.behind
        for _ in range(_LOOKS):
            try:
                begun = view.begin()
            except NoonmarkError as gone:
                return [(view, gone)]
            if begun is None:
                return [(view, None)]
            if (begun.lower, begun.upper, begun.strategy, begun.behind) != counted_on:
                return tick_alone([(view, begun)])
            # A refusal may be told before the commit that it is owed to is seen.
            threading.Event().wait(_PAUSE_S)
    return [(view, error)]
