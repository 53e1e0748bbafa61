"""Works by residents, whichever Spark session there is: a lost one is followed by another.

Where it runs: driver; from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from noonmark.compute.jvm.session import OpenSession
from noonmark.compute.runner.resident.pool import Residents
from noonmark.compute.runner.runner import Named, Ran
from noonmark.supervise import Supervisor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ByResidents:
    """A `Runner` that has residents on the Spark context of the session that it is asked with."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._mutex = threading.Lock()
        self._known: Residents | None = None
        self._stopped = False

    def run(self, spark: OpenSession, works: Sequence[Named], group: str) -> Ran:
        """Do works by residents, or by an ordinary job."""
        session = spark()
        return self._of(session).run(session, works, group)

    def end(self, spark: OpenSession, group: str) -> None:
        """End the works of a group."""
        session = spark()
        self._of(session).end(session, group)

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
