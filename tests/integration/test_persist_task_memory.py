"""A Python worker of Spark may use as much memory as it is told, and no more."""

from __future__ import annotations

import os
import subprocess
import sys

from noonmark.adapter.worker.limits import Limits
from noonmark.persist.task import MEMORY_VARIABLE

_TASK = """
from noonmark.persist import task
task.settle()
small = bytearray(64 << 20)
try:
    bytearray(2 << 30)
except MemoryError:
    print("limited")
"""


def test_a_task_has_a_limit_of_memory() -> None:
    options = Limits(spark_python_memory_mb=1_024, spark_memory_mb=2_048).spark_options()
    assert options["spark.driver.memory"] == "2048m"
    told = {MEMORY_VARIABLE: options[f"spark.executorEnv.{MEMORY_VARIABLE}"]}
    done = subprocess.run(
        [sys.executable, "-c", _TASK],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "limited\n"
