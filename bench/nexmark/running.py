"""One engine of F11 while it runs: its process, what it published, what it takes of the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.figure import ROOT
from bench.nexmark.answers import now
from bench.nexmark.judge import Answer, read_answers
from bench.steady import cpu_seconds, family_of

_END_S = 30
_SAMPLE_S = 0.5
_LOG_MAX = 1_000


class StoppedError(Exception):
    """An engine does not come as far as it should."""


@dataclass
class Running:
    """An engine and the file that it writes its answers into."""

    process: subprocess.Popen[str]
    place: Path
    peak_bytes: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def answers(self) -> list[Answer]:
        """What it has published so far."""
        return read_answers(self.place)

    @property
    def cpu_s(self) -> float:
        """The CPU time of the engine so far."""
        return cpu_seconds(self.process.pid)

    def wait_for(self, total: int, views: Sequence[str], seconds: float) -> float | None:
        """The moment at which all of the views first counted so many bids; None if they do not."""
        until = now() + seconds
        while now() < until and self.process.poll() is None:
            answers = self.answers
            seen = [
                min(
                    (each.t for each in answers if each.view == view and each.n >= total), default=0
                )
                for view in views
            ]
            if all(seen):
                return max(seen)
            self._over.wait(0.3)
        return None

    def watch(self) -> None:
        """Sample the memory until the engine ends."""
        while not self._over.wait(_SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, memory_of(family_of(self.process.pid)))

    def end(self) -> None:
        """Ask it to end; then end it and all that it started."""
        self._over.set()
        family = family_of(self.process.pid)
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in family - {self.process.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


@contextmanager
def running(command: Sequence[str], place: Path, log: Path) -> Iterator[Running]:
    """Start an engine, and wait until it says that it runs."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            cwd=ROOT,
        )  # fmt: skip
        engine = Running(process, place)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip() == "running":
                    break
            else:
                raise StoppedError(f"it ended: {log.read_text()[-_LOG_MAX:]}")
            threading.Thread(target=engine.watch, daemon=True).start()
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield engine
        finally:
            engine.end()


def memory_of(family: set[int]) -> int:
    """Bytes of all of these processes; what several share is counted once."""
    total = 0
    for pid in family:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # it has just ended
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total
