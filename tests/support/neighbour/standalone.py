"""A standalone Spark cluster on this machine: a master, workers, and executors as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from noonmark.clock import SYSTEM
from noonmark.compute.jvm.session import java_home_once
from support.neighbour.servers import free_ports

_HOME = Path(pyspark.__file__).parent
_READY_S = 60.0


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        master: its URL.
        folder: what its processes log.
        workers: one process each.
    """

    master: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self) -> None:
        """One more, of one core."""
        name = f"worker-{len(self.workers)}"
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "2g"]
        options += ["--webui-port", "0", "--work-dir", str(self.folder / name)]
        self.workers.append(_start(self.folder, name, "worker.Worker", *options, self.master))

    def executors(self) -> list[int]:
        """The processes that run tasks: what workers began."""
        workers = {each.pid for each in self.workers}
        found = []
        for each in Path("/proc").glob("[0-9]*/stat"):
            try:
                above = int(each.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
            if above in workers:
                found.append(int(each.parent.name))
        return found


def _start(folder: Path, name: str, kind: str, *options: str) -> subprocess.Popen[bytes]:
    """A process of the cluster in a session of its own, so that all of it can be ended."""
    environment = {
        **os.environ,
        "JAVA_HOME": java_home_once(),
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "512m",
    }
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *options],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """A process and all that it began, at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A cluster of some workers of one core each."""
    (port,) = free_ports(1)
    with ExitStack() as ending:
        options = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        master = _start(folder, "master", "master.Master", *options)
        ending.callback(end, master)
        cluster = Cluster(f"spark://127.0.0.1:{port}", folder)
        _await(folder / "master.log", "I have been elected leader")
        ending.callback(lambda: [end(each) for each in cluster.workers])
        for _ in range(workers):
            cluster.add_worker()
        for number in range(workers):
            _await(folder / f"worker-{number}.log", "Successfully registered with master")
        yield cluster


def _await(log: Path, words: str) -> None:
    until = SYSTEM.monotonic() + _READY_S
    while words not in log.read_text(errors="replace"):
        if SYSTEM.monotonic() > until:
            raise AssertionError(f"{words!r} is not in {log}: {log.read_text()[-2000:]}")
        threading.Event().wait(0.1)
