"""Sources whose reading fails once on an executor: by an error, or by the end of its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from noonmark.errors import SourceStalled
from noonmark.source.contract import Split


def once(marker: str) -> bool:
    """Whether this is the first call, in any process."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def fail() -> None:
    raise RuntimeError("the first attempt fails")


def stall() -> None:
    raise SourceStalled("upstream is asleep")


def kill_executor() -> None:
    """Runs on executors: end the JVM above this Python worker and the daemon that forked it."""
    above = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(above[1]), signal.SIGKILL)


@dataclass(frozen=True)
class FailsOnce:
    """A source as it is, but for its first split to be read whole: then `how` happens."""

    inner: Any
    marker: str
    how: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        yield from self.inner.read(split)
        if once(self.marker):
            self.how()
