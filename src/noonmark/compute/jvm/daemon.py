"""Spark's Python daemon, which has read the code of our tasks before it forks a worker.

Spark starts this program once for each executor and has it fork a worker when a task needs one.
With the code read here a worker is there in milliseconds, the first one and one that replaces a
worker that died; otherwise each of them reads it for a second.

Where it runs: executors on this machine; Spark starts it by `MODULE`.
"""

from __future__ import annotations

import gc
from importlib import import_module

MODULE = "noonmark.compute.jvm.daemon"
#: What workers import: Spark's side of a worker, and our tasks.
READ = ("pyspark.worker", "noonmark.compute.runner.job")


def main() -> None:
    """Read the code, and fork workers until Spark ends."""
    from pyspark import daemon  # the server asks this module for its name, without Spark

    for name in READ:
        import_module(name)
    gc.collect()
    gc.freeze()  # what is here now is shared by all workers, and never garbage
    daemon.manager()


if __name__ == "__main__":
    main()
