"""A process that ingests Kafka and PostgreSQL is killed again and again while both are written to.

The writers move money: between two tables in one transaction, and between accounts of a topic in
one transaction. In the end every collection is what upstream has; at every time in its history the
total is the same; and nothing that was durable when a process started was read again.
"""

from __future__ import annotations

import asyncio
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
from noonmark.source.impl.kafka import create
from support.ingest_world import Violation, known_of
from support.kafka import KafkaServer
from support.kills import Lines, start
from support.logical import Upstream
from support.upstream_money import ACCOUNTS, CENTS, TABLES, MoneyWriters


@dataclass
class UpstreamKills:
    """One folder, one database, one topic."""

    folder: Path
    upstream: Upstream
    kafka: KafkaServer
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    durable: dict[str, dict[Any, int]] = field(default_factory=lambda: {"pg": {}, "kafka": {}})
    splits: int = 0
    seen: int = 0
    times: int = 0

    def __post_init__(self) -> None:
        self.random = Random(f"upstream kills/{self.seed}")
        self.writers = MoneyWriters(self.upstream, self.kafka, self.seed)
        self.topic = self.writers.topic
        tables = self.upstream.source()
        tables.close()
        topic = asyncio.run(create(self.kafka.options, self.topic, self.topic))
        self.folder.mkdir()
        (self.folder / "reads").touch()
        known = {
            "url": self.upstream.url,
            "postgres": tables.to_plain(),
            "options": self.kafka.options,
            "kafka": topic.to_plain(),
        }
        (self.folder / "sources.json").write_text(json.dumps(known))
        self.writers.start()

    def close(self) -> None:
        self.writers.close()

    # -- kills ----------------------------------------------------------------------------------

    def round(self) -> None:
        """One process, killed somewhere between its start and the middle of its work."""
        moment = self.random.choice(("starting", "working", "working", "working"))
        with self._child() as (child, lines):
            if moment == "starting":
                lines.read(self.random.uniform(0.5, 2.0))
            else:
                if lines.read(300) != "r":
                    raise Violation(f"a process did not start: status {child.poll()}")
                lines.read(self.random.uniform(0.0, 1.5))
            child.kill()
            child.wait()
        self.faults[f"kill -9 while {moment}"] += 1
        self._check_reads()
        self._look()

    def finish(self) -> None:
        """The writers end, a last process runs in good order, and everything is compared."""
        self.close()
        with self._child("3") as (child, _):
            if child.wait(300) != 0:
                raise Violation(f"the last process ended with status {child.returncode}")
        self._check_reads()
        self._look()
        with self._reader() as client:
            for table in TABLES:
                wanted = Counter(self.upstream.run(f"select * from {table}"))
                _compare(table, _now(client, table), wanted)
            _compare("kafka", _now(client, "kafka"), Counter(self.writers.balances.items()))
            for name in ("pg_errors", "kafka_errors"):
                if _now(client, name):
                    raise Violation(f"{name} has {_now(client, name)}")
            self._check_totals(client, ("checking", "savings"), 2 * ACCOUNTS * CENTS)
            self._check_totals(client, ("kafka",), ACCOUNTS * CENTS)

    def _check_totals(self, client: persist.Client, names: tuple[str, ...], total: int) -> None:
        """At every time at which one of them changed, once there was anything."""
        by_time: Counter[int] = Counter()
        for name in names:
            _, read = client.create_or_load(name)
            since = read.since.only() or 0
            for row, count in read.snapshot(since).result().counts().items():
                by_time[since] += row[1] * count
            listen = read.listen(since, hold=False)
            step = client.runtime.submit(listen.next()).result()
            for update in step.updates if step is not None else ():
                by_time[update.time] += update.data[1] * update.diff
        held = 0
        for time in sorted(by_time):
            held += by_time[time]
            self.times += 1
            if held not in (0, total):
                raise Violation(f"{names} have {held} at {time}, and not {total}")

    @contextmanager
    def _child(self, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Lines]]:
        child = start("upstream_process", self.folder, *arguments)
        try:
            yield child, Lines(child)
        finally:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                assert pipe is not None
                pipe.close()

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

    def _look(self) -> None:
        """How far each source is durable now."""
        outputs = {"pg": TABLES, "kafka": ("kafka",)}
        with self._reader() as client:
            for name, tables in outputs.items():
                if f"{name}_remap" not in client.state.names:
                    continue
                parts = (*tables, f"{name}_errors", f"{name}_remap")
                uppers = [client.state.collection(each).upper.only() or 0 for each in parts]
                _, remap = client.create_or_load(f"{name}_remap")
                if remap.since == remap.upper:
                    continue
                as_of = max(min(uppers) - 1, remap.since.only() or 0)
                self.durable[name] = known_of(remap.snapshot(as_of).result().counts()) or {}

    def _reader(self) -> persist.Client:
        options = persist.Options(mode="independent")
        return persist.open(self.folder / "location", options=options)


def _now(client: persist.Client, name: str) -> Counter[Any]:
    _, read = client.create_or_load(name)
    return read.snapshot((read.upper.only() or 1) - 1).result().counts()


def _compare(name: str, found: Counter[Any], wanted: Counter[Any]) -> None:
    if found != wanted:
        lost, twice = wanted - found, found - wanted
        raise Violation(f"{name}: lost {lost.total()}, too much {twice.total()}")
