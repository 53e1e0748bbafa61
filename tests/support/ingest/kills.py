"""Figure C12 over what needs no server: generators, and files that grow while processes die.

In the end everything that upstream ever had is there, once (`support.ingest.killed_ingestion`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.source.contract import START, Source
from noonmark.source.splits import read_splits
from noonmark.tvc import partition_frontier
from support.ingest.killed_ingestion import KilledIngestion, Offsets, compare, now
from support.ingest.process import sources
from support.ingest.world import Violation
from support.kill.kills import Lines

NAMES = ("counter", "key_value", "appended", "upserted")


@dataclass
class IngestKills(KilledIngestion):
    """One folder: a location, the files that grow, what was read."""

    module = "ingest.process"
    outputs: ClassVar[Mapping[str, tuple[str, ...]]] = {name: (name,) for name in NAMES}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lines = 0
        (self.folder / "in").mkdir()
        (self.folder / "start").write_text(str(SYSTEM.now_ms()))

    def work(self, lines: Lines) -> None:
        for _ in range(self.random.randrange(1, 8)):
            self._grow()
            lines.read(self.random.uniform(0.0, 0.1))

    def end_work(self) -> None:
        for path in (self.folder / "in").iterdir():
            if not path.read_bytes().endswith(b"\n"):
                with path.open("a") as file:
                    file.write("\n")

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

    def check_contents(self, client: persist.Client) -> None:
        found = sources(self.folder, int((self.folder / "start").read_text()))
        for name in NAMES[:2]:
            compare(name, now(client, name), rows_of(found[name][0], self.durable[name]))
        lines = [x for f in (self.folder / "in").iterdir() for x in f.read_text().splitlines()]
        good = Counter(tuple(json.loads(x).values()) for x in lines if x.endswith("}"))
        bad = sum(x == "{bad" for x in lines)
        compare("appended", now(client, "appended"), good)
        upserted = now(client, "upserted")
        if {row[0] for row in upserted} != {row[0] for row in good} or upserted - good:
            raise Violation(f"upserted has {upserted}")
        if max(Counter(row[0] for row in upserted).values(), default=1) > 1:
            raise Violation("upserted has two rows of one key")
        for name in ("appended_errors", "upserted_errors"):
            if now(client, name).total() != bad:
                raise Violation(f"{name} has not all of the {bad} bad lines once")


def rows_of(source: Source, known: Offsets) -> Counter[Any]:
    """What the source itself says, up to these offsets."""
    found: Counter[Any] = Counter()
    for batch in read_splits(source, source.plan(START, partition_frontier(known))):
        for row in batch.to_pylist():
            found[tuple(v for n, v in row.items() if not n.startswith("_"))] += row["_diff"]
    return Counter({row: count for row, count in found.items() if count})
