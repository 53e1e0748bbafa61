"""Executors and Python workers of a Spark context on this machine: who they are, and their end.

A fault that nothing ran into shows nothing: `Fault` waits until Spark works, and says whether it
still did when the process was gone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def executors(spark: SparkSession) -> list[int]:
    """The processes of the executors of `local-cluster`."""
    application = spark.sparkContext.applicationId
    return [p for p in _processes() if _runs(p, "CoarseGrainedExecutorBackend", application)]


def python_workers(spark: SparkSession) -> list[int]:
    """The Python processes that work for the JVM of a local session: the forks of its daemon."""
    jvm = spark.sparkContext._gateway.proc.pid
    daemons = [
        p for p in _processes() if _runs(p, "daemon", "pyspark.worker") and _parent(p) == jvm
    ]
    return [p for p in _processes() if _parent(p) in daemons]


class Fault:
    """Kills one of some processes (-9) as soon as a Spark job runs."""

    def __init__(self, spark: SparkSession, victims: Callable[[SparkSession], list[int]]) -> None:
        self.spark = spark
        self.victims = victims
        self.killed = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Fault:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        while not self._over.wait(0.002):
            if tracker.getActiveJobsIds() and (found := self.victims(self.spark)):
                os.kill(found[0], signal.SIGKILL)
                self.killed = found[0]
                return


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _runs(process: int, *words: str) -> bool:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return all(word in command for word in words)


def _parent(process: int) -> int:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(")")[2].split()[1])
