"""Works by residents, whichever Spark session there is: a lost one is followed by another.

Law (nobody waits for the cold): while nothing is up on the session, works are done by processes
beside it (`noonmark.compute.runner.processes`). A view that one of those has brought forward stays
with it until a resident has done a work of that view, too: the same one, at the same time, and what
the resident makes of it is not taken. What residents do not end with is done by such a process
where one knows the view, and by an ordinary job else.

Where it runs: driver; from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import OpenSession
from noonmark.compute.runner.processes import LocalProcesses
from noonmark.compute.runner.resident.pool import Made, Residents
from noonmark.compute.runner.runner import JOBS, Named, Ran
from noonmark.supervise import Supervisor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ByResidents:
    """A `Runner` that has residents on the Spark context of the session that it is asked with.

    Args:
        supervisor: of the residents.
        beside: does what is cold on Spark.
    """

    def __init__(self, supervisor: Supervisor, beside: LocalProcesses) -> None:
        self._supervisor = supervisor
        self._beside = beside
        self._mutex = threading.Lock()
        self._known: Residents | None = None
        self._stopped = False

    def run(self, spark: OpenSession, works: Sequence[Named], group: str) -> Ran:
        """Do works by residents, by processes beside Spark, or by an ordinary job."""
        session = spark()
        residents = self._of(session)
        names = {name for name, _ in works}
        away = names if residents.is_cold else residents.cold(names) & self._beside.warm()
        if away:
            residents.rehearse([each for each in works if each[0] in away])
        here = [at for at, (name, _) in enumerate(works) if name not in away]
        asked = residents.run([works[at] for at in here], group) if here else {}
        made: Made = {here[at]: each for at, each in asked.items()}
        rest = [at for at in range(len(works)) if at not in made]
        if not rest:
            return Ran([made[at] for at in range(len(works))], 0)
        left = [works[at] for at in rest]
        if residents.is_cold or {name for name, _ in left} <= self._beside.warm():
            ran = self._beside.run(left, group)
        else:
            began = SYSTEM.monotonic()
            ran = JOBS.run(lambda: session, left, group)
            residents.job_took(SYSTEM.monotonic() - began)
        made.update(zip(rest, ran.made, strict=True))
        return Ran([made[at] for at in range(len(works))], ran.jobs)

    def end(self, spark: OpenSession, group: str) -> None:
        """End the works of a group on Spark."""
        session = spark()
        self._of(session).end(group)
        JOBS.end(lambda: session, group)

    def stop(self) -> None:
        """End the residents; does not wait. Works are ordinary jobs from then on."""
        with self._mutex:
            self._stopped = True
            if self._known is not None:
                self._known.stop()

    def _of(self, spark: SparkSession) -> Residents:
        with self._mutex:
            known = self._known
            if known is None or known.context is not spark.sparkContext:
                if known is not None:
                    known.stop()
                known = self._known = Residents(spark, self._supervisor)
                if self._stopped:
                    known.stop()
            return known
