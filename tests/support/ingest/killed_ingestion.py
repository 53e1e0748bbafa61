"""Figure C12: a process that ingests is killed again and again; what it read upstream is counted.

After every kill this process looks, from outside, how far each source is durable: by the remap as
of the last time that is complete everywhere. The next process may read nothing below that, and may
have released nothing beyond it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Protocol

from noonmark import persist
from noonmark.tvc import Partition
from support.house.proving import bar
from support.ingest.world import Violation, known_of
from support.kill.kills import Lines, running

Offsets = dict[Partition, int]


@dataclass
class KilledIngestion(ABC):
    """One folder with a location; its subclass says what is ingested, and what must be there.

    Attributes:
        module: the process, a module of tests/support; it says ``r`` when it begins.
        outputs: the collections of each source.
        starting_s: how long a process may have had that is killed before it begins.
    """

    module: ClassVar[str]
    outputs: ClassVar[Mapping[str, tuple[str, ...]]]
    starting_s: ClassVar[tuple[float, float]] = (0.2, 1.5)

    folder: Path
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    durable: dict[str, Offsets] = field(init=False)
    splits: int = 0
    seen: int = 0

    def __post_init__(self) -> None:
        self.random = Random(f"{self.module}/{self.seed}")
        self.durable = {name: {} for name in self.outputs}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "reads").touch()

    @abstractmethod
    def work(self, lines: Lines) -> None:
        """What happens upstream between the start of a process and its end."""

    @abstractmethod
    def end_work(self) -> None:
        """Upstream comes to rest."""

    @abstractmethod
    def check_contents(self, client: persist.Client) -> None:
        """Compare everything with upstream, once all of it was ingested."""

    def round(self) -> None:
        """One process, killed somewhere between its start and the middle of its work."""
        moment = self.random.choice(("starting", "working", "working", "working"))
        with running(self.module, self.folder) as (child, lines):
            if moment == "starting":
                lines.read(self.random.uniform(*self.starting_s))
            else:
                # Long, because a busy machine is no violation; an end is noticed at once.
                if lines.read(300) != "r":
                    raise Violation(f"a process did not start: status {child.poll()}")
                self.work(lines)
            child.kill()
            child.wait()
        self.faults[f"kill -9 while {moment}"] += 1
        self._look(self._check_reads())

    def finish(self) -> None:
        """A last process in good order; then everything is compared with upstream."""
        self.end_work()
        with running(self.module, self.folder, "3") as (child, _):
            if child.wait(300) != 0:
                raise Violation(f"the last process ended with status {child.returncode}")
        self._look(self._check_reads())
        with self._reader() as client:
            self.check_contents(client)

    def _check_reads(self) -> dict[str, Offsets]:
        """Nothing that was durable when a process started, or released by it, is read after."""
        known = {name: dict(offsets) for name, offsets in self.durable.items()}
        lines = (self.folder / "reads").read_text().splitlines()
        for line in map(json.loads, lines[self.seen :]):
            mine = known[line["source"]]
            if "released" in line:
                mine.update(dict(line["released"]))
                continue
            self.splits += 1
            if line["lower"] < mine.get(line["partition"], 0):
                raise Violation(f"read again, though durable: {line}, {mine}")
        self.seen = len(lines)
        return known

    def _look(self, released: Mapping[str, Offsets]) -> None:
        """How far each source is durable now; what was released must be."""
        with self._reader() as client:
            for name, tables in self.outputs.items():
                if f"{name}_remap" not in client.state.names:
                    continue
                parts = (*tables, f"{name}_errors", f"{name}_remap")
                uppers = [client.state.collection(each).upper.only() or 0 for each in parts]
                _, remap = client.create_or_load(f"{name}_remap")
                if remap.since == remap.upper:
                    continue
                as_of = max(min(uppers) - 1, remap.since.only() or 0)
                durable = known_of(remap.snapshot(as_of).result().counts()) or {}
                for partition, offset in released[name].items():
                    if offset > durable.get(partition, 0):
                        raise Violation(f"{name}: {partition} {offset} was released too early")
                self.durable[name] = durable

    def _reader(self) -> persist.Client:
        options = persist.Options(mode="independent")
        return persist.open(self.folder / "location", options=options)


class Killable(Protocol):
    """A run of kills."""

    def round(self) -> None: ...

    def finish(self) -> None: ...


def kill_often(run: Killable, count: int, seed: int) -> list[str]:
    """So many rounds, and what must hold in the end: the violation that ended it, if there was."""
    with bar("kills", count) as advance:
        try:
            for _ in range(count):
                run.round()
                advance()
            run.finish()
        except Violation as violation:
            return [f"seed {seed}: {violation}"]
    return []


def now(client: persist.Client, name: str) -> Counter[Any]:
    """The contents of a collection at the last time that is complete."""
    _, read = client.create_or_load(name)
    return read.snapshot((read.upper.only() or 1) - 1).result().counts()


def compare(name: str, found: Counter[Any], wanted: Counter[Any]) -> None:
    """Raise what is missing, and what is too much."""
    if found != wanted:
        lost, twice = wanted - found, found - wanted
        raise Violation(f"{name}: lost {lost.total()}, too much {twice.total()}")
