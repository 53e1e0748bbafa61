"""Who runs the tasks of ticks: ordinary Spark jobs, or residents (`resident`).

Without Spark, processes beside it do (`noonmark.compute.runner.processes`).

Law: what a runner gives for a work is what `perform` makes of it; where it ran decides only how
long it took. `end` makes a `run` of the same group end soon, with an error.

Where it runs: driver; from any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol, TypeAlias

from noonmark.compute.jvm.session import OpenSession
from noonmark.compute.runner.job import TickResult, TickTask, run
from noonmark.errors import NoonmarkError
from noonmark.persist.spark.errors import SPARK_ERRORS

#: A task, behind the name of the view that it is of.
Named: TypeAlias = tuple[str, TickTask]


class Ran(NamedTuple):
    """What works made, in their order, and how many Spark jobs that took."""

    made: list[TickResult | NoonmarkError]
    jobs: int


def brought_forward(works: Sequence[Named]) -> set[str]:
    """The views that works bring forward: who has done that once has all that it needs open."""
    return {name for name, work in works if not work.hydrates}


class Runner(Protocol):
    """See the module."""

    def run(self, spark: OpenSession, works: Sequence[Named], group: str) -> Ran:
        """Do the works; blocks. Spark is asked for when it is needed.

        Raises:
            NoonmarkError, or what Spark raises: nothing of them was done.
        """

    def end(self, spark: OpenSession, group: str) -> None:
        """End the works of a group, from another thread; may be called again and again."""


class Jobs:
    """Ordinary Spark jobs: one for the works that come together."""

    def run(self, spark: OpenSession, works: Sequence[Named], group: str) -> Ran:
        """One job, in the group."""
        names = ", ".join(name for name, _ in works)
        session = spark()
        session.sparkContext.setJobGroup(group, f"delta {names}"[:200], interruptOnCancel=True)
        return Ran(run(session, works), 1)

    def end(self, spark: OpenSession, group: str) -> None:
        """Cancel the jobs of the group."""
        with suppress(*SPARK_ERRORS):
            spark().sparkContext.cancelJobGroup(group)


JOBS = Jobs()
