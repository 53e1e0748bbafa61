"""Figure C12: a process that ingests is killed again and again; what it read upstream is counted.

After every kill this process looks, from outside, how far each source is durable: by the remap as
of the last time that is complete everywhere. The next process may read nothing below that. In the
end everything that upstream ever had is there, once.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.source.contract import START, Source
from noonmark.source.splits import read_splits
from noonmark.tvc import Partition, partition_frontier
from support.ingest_process import sources
from support.ingest_world import Violation, known_of
from support.kills import Lines, start

NAMES = ("counter", "key_value", "appended", "upserted")
Offsets = dict[Partition, int]


@dataclass
class IngestKills:
    """One folder: a location, the files that grow, what was read."""

    folder: Path
    seed: int
    durable: dict[str, Offsets] = field(default_factory=lambda: {name: {} for name in NAMES})
    faults: Counter[str] = field(default_factory=Counter)
    splits: int = 0
    seen: int = 0

    def __post_init__(self) -> None:
        self.random = Random(f"ingest kills/{self.seed}")
        self.lines = 0
        (self.folder / "in").mkdir(parents=True)
        (self.folder / "start").write_text(str(SYSTEM.now_ms()))
        (self.folder / "reads").touch()

    def round(self) -> None:
        """One process, killed somewhere between its start and the middle of its work."""
        moment = self.random.choice(("starting", "working", "working", "working"))
        with self._child() as (child, lines):
            if moment == "starting":
                lines.read(self.random.uniform(0.2, 1.5))
            elif self._ready(child, lines):
                for _ in range(self.random.randrange(1, 8)):
                    self._grow()
                    lines.read(self.random.uniform(0.0, 0.1))
            child.kill()
            child.wait()
        self.faults[f"kill -9 while {moment}"] += 1
        self._check_reads()
        self._look()

    def finish(self) -> None:
        """A last process in good order; then everything is compared with upstream."""
        self._end_lines()
        with self._child("3") as (child, _):
            if child.wait(300) != 0:
                raise Violation(f"the last process ended with status {child.returncode}")
        self._check_reads()
        self._look()
        self._check_contents()

    @contextmanager
    def _child(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Lines]]:
        child = start("ingest_process", self.folder, *arguments)
        try:
            yield child, Lines(child)
        finally:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                assert pipe is not None
                pipe.close()

    def _ready(self, child: subprocess.Popen[bytes], lines: Lines) -> bool:
        # Long, because a busy machine is no violation; a process that ended is noticed at once.
        if lines.read(300) != "r":
            raise Violation(f"a process did not start: status {child.poll()}")
        return True

    # -- upstream ---------------------------------------------------------------------------

    def _grow(self) -> None:
        """Some lines more, in some file; the last one may still lack its end."""
        name = f"{self.random.randrange(4)}.json"
        rows = []
        for _ in range(self.random.randrange(1, 30)):
            self.lines += 1
            good = {"id": self.random.randrange(25), "word": f"line {self.lines}"}
            rows.append("{bad" if self.random.random() < 0.05 else json.dumps(good))
        text = "\n".join(rows) + self.random.choice(("\n", "\n", ""))
        path = self.folder / "in" / name
        broken = path.exists() and not path.read_bytes().endswith(b"\n")
        with path.open("a") as file:
            file.write(("\n" if broken else "") + text)

    def _end_lines(self) -> None:
        for path in (self.folder / "in").iterdir():
            if not path.read_bytes().endswith(b"\n"):
                with path.open("a") as file:
                    file.write("\n")

    # -- what is checked ----------------------------------------------------------------------

    def _check_reads(self) -> None:
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
        self._released = known

    def _look(self) -> None:
        """How far each source is durable now; what was released must be."""
        with self._reader() as client:
            for name in NAMES:
                if f"{name}_remap" not in client.state.names:
                    continue
                parts = (name, f"{name}_errors", f"{name}_remap")
                uppers = [client.state.collection(each).upper.only() or 0 for each in parts]
                _, remap = client.create_or_load(f"{name}_remap")
                if remap.since == remap.upper:
                    continue
                as_of = max(min(uppers) - 1, remap.since.only() or 0)
                durable = known_of(remap.snapshot(as_of).result().counts()) or {}
                for partition, offset in self._released[name].items():
                    if offset > durable.get(partition, 0):
                        raise Violation(f"{name}: {partition} {offset} was released too early")
                self.durable[name] = durable

    def _reader(self) -> persist.Client:
        options = persist.Options(mode="independent")
        return persist.open(self.folder / "location", options=options)

    def _check_contents(self) -> None:
        found = sources(self.folder, int((self.folder / "start").read_text()))
        with self._reader() as client:
            for name in NAMES[:2]:
                _compare(name, _now(client, name), rows_of(found[name][0], self.durable[name]))
            lines = [x for f in (self.folder / "in").iterdir() for x in f.read_text().splitlines()]
            good = Counter(tuple(json.loads(x).values()) for x in lines if x.endswith("}"))
            bad = sum(x == "{bad" for x in lines)
            _compare("appended", _now(client, "appended"), good)
            upserted = _now(client, "upserted")
            if {row[0] for row in upserted} != {row[0] for row in good} or upserted - good:
                raise Violation(f"upserted has {upserted}")
            if max(Counter(row[0] for row in upserted).values(), default=1) > 1:
                raise Violation("upserted has two rows of one key")
            for name in ("appended_errors", "upserted_errors"):
                if _now(client, name).total() != bad:
                    raise Violation(f"{name} has not all of the {bad} bad lines once")


def _now(client: persist.Client, name: str) -> Counter[Any]:
    _, read = client.create_or_load(name)
    return read.snapshot((read.upper.only() or 1) - 1).result().counts()


def rows_of(source: Source, known: Offsets) -> Counter[Any]:
    """What the source itself says, up to these offsets."""
    found: Counter[Any] = Counter()
    for batch in read_splits(source, source.plan(START, partition_frontier(known))):
        for row in batch.to_pylist():
            found[tuple(v for n, v in row.items() if not n.startswith("_"))] += row["_diff"]
    return Counter({row: count for row, count in found.items() if count})


def _compare(name: str, found: Counter[Any], wanted: Counter[Any]) -> None:
    if found != wanted:
        lost, twice = wanted - found, found - wanted
        raise Violation(f"{name}: lost {sum(lost.values())}, too much {sum(twice.values())}")
