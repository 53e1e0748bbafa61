"""Spark jobs with an end: a group of jobs is cancelled when its time is up, or when it is given up.

Cancelling interrupts the tasks; a Python worker that does not answer is killed by Spark within two
seconds. Nothing is committed by a task, so a tick that was ended has not happened.

Where it runs: driver.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from noonmark.errors import Interrupted
from noonmark.persist.spark_errors import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A job may begin after its group was cancelled: it is cancelled again and again until the end.
_AGAIN_S = 0.5


class TickExceeded(Interrupted, id="tick_exceeded", sqlstate="57014"):
    """A tick of a view took longer than it may, or was given up; nothing of it was committed."""


class Limit:
    """The end of a group of jobs: `over` once it was reached or `give_up` was called."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._done = threading.Event()
        self.over = False

    def give_up(self) -> None:
        """End the jobs now; from any thread."""
        self._end.set()

    @contextmanager
    def of(self, spark: SparkSession, group: str, seconds: float | None) -> Iterator[None]:
        """Limit the jobs of a group that this thread runs inside the block."""
        watch = threading.Thread(
            target=self._watch, args=(spark, group, seconds), name="noonmark-limit", daemon=True
        )
        watch.start()
        try:
            yield
        finally:
            self._done.set()
            self._end.set()

    def _watch(self, spark: SparkSession, group: str, seconds: float | None) -> None:
        self._end.wait(seconds)
        while not self._done.is_set():
            self.over = True
            with suppress(*SPARK_ERRORS):
                spark.sparkContext.cancelJobGroup(group)
            self._done.wait(_AGAIN_S)
