"""``python -m support.view.process FOLDER SEED [PHASE POINT]``: maintains views, to be killed.

It goes on wherever the process before it ended: writes the history to the collections time by
time, and ticks. In the phase "hydrate" or "tick" it kills itself (-9) at a point: "running", when
Spark works for it; "made", when all is computed and stored but not committed; "committed", when
the commit is durable and nobody has heard of it. It says so on its standard output, just before.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noonmark.compute.jvm.session import spark_session, stop_session
from noonmark.persist.write import MultiWriteHandle
from support.view.views import seeded_history
from support.view.world import VIEWS, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES, HYDRATED = 14, 3
PHASES, POINTS = ("hydrate", "tick"), ("running", "made", "committed")


class Killer:
    """Kills this process at a point of a phase; in the phase of ticks not always in the first."""

    def __init__(self, spark: SparkSession, phase: str, point: str, seed: int) -> None:
        self.spark = spark
        self.phase, self.point = phase, point
        self.after = random.Random(seed).randrange(3) if phase == "tick" else 0
        self.armed = False

    def now(self, phase: str) -> None:
        """A round of a phase begins."""
        if phase == self.phase and not self.armed:
            self.armed, self.after = self.after == 0, self.after - 1
            if self.armed and self.point == "running":
                threading.Thread(target=self._kill_when_running, daemon=True).start()

    def _kill_when_running(self) -> None:
        tracker = self.spark.sparkContext.statusTracker()
        while not tracker.getActiveJobsIds():
            threading.Event().wait(0.005)
        self._kill()

    def _kill(self) -> None:
        os.write(1, f"killed {self.phase} {self.point}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def committing(self) -> Any:
        """What stands in for the commit of a tick."""
        commit = MultiWriteHandle.commit

        def act(handle: MultiWriteHandle) -> Future[Any]:
            if self.armed and self.point == "made":
                self._kill()
            made = commit(handle)
            if self.armed and self.point == "committed":
                made.result()
                self._kill()
            return made

        return act


def main(folder: Path, seed: int, phase: str = "", point: str = "") -> None:
    spark = spark_session("local[2]", options={"spark.driver.memory": "1g"})
    world = World(folder, spark, seeded_history(seed, TIMES))
    killer = Killer(spark, phase, point, seed)
    setattr(MultiWriteHandle, "commit", killer.committing())  # noqa: B010 - it is put in its place
    world.advance(HYDRATED + 1)
    world.start_views(VIEWS)
    if seed % 2:  # nothing is small for some: hydrated by Spark, ticks of many tasks
        for view in list(world.flow.views.values())[seed % 3 :: 3]:
            view.task_bytes_max = 0
    killer.now("hydrate")
    world.tick()
    uppers = [world.client.state.collection(name).upper.only() or 0 for name in world.handles]
    for upper in range(max(HYDRATED + 2, *uppers), TIMES + 1):
        world.advance(upper)
        killer.now("tick")
        world.tick()
    world.client.stop()
    stop_session()
    os.write(1, b"done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
