"""``python -m support.ingest.process FOLDER [TICKS]``: an ingestion that is meant to be killed.

Ingests COUNTER, KEY VALUE and the growing files below FOLDER/in (as NONE and as UPSERT) with
`InPlaceEngine`, round after round, for ever or for so many rounds. Whatever it reads from upstream
it writes down first, in FOLDER/reads: one line per split, and one per release. Says ``r`` on its
standard output when the location is open.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from noonmark import persist
from noonmark.ingest.ingestion import Feed, Ingestion, InPlaceEngine, raw, typed
from noonmark.oracle import ReservedOracle
from noonmark.persist.impl.open import open_consensus
from noonmark.rows.schema import Schema
from noonmark.source.contract import Frontier, Source, Split
from noonmark.source.format.json import Json
from noonmark.source.impl.counter import Counter
from noonmark.source.impl.files import of_lines
from noonmark.source.impl.key_value import KeyValue
from noonmark.tvc import known_partitions

SCHEMA = Schema.of(id="bigint not null", word="text not null")
#: Some batches travel in the log, others become parts.
CONFIG = persist.Config(inline_bytes_max=2048, merge_fan_in=4, rollup_entries=64)


@dataclass(frozen=True)
class WritesDown:
    """A source as it is, that writes down what is read from it before it is read."""

    inner: Any
    name: str
    path: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def _say(self, line: dict[str, Any]) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, (json.dumps({"source": self.name, **line}) + "\n").encode())
        finally:
            os.close(file)

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        self._say({"partition": split.partition, "lower": split.lower, "upper": split.upper})
        yield from self.inner.read(split)

    async def release(self, frontier: Frontier) -> None:
        self._say({"released": list(known_partitions(frontier).items())})
        await self.inner.release(frontier)


def sources(folder: Path, start_ms: int) -> dict[str, tuple[Source, tuple[Feed, ...]]]:
    """The same sources for every process of one location."""
    counter = Counter(start_ms=start_ms, tick_ms=1)
    key_value = KeyValue(
        start_ms=start_ms, tick_ms=2, keys=40, partitions=2, batch_keys=2, value_bytes=8
    )
    files = of_lines(str(folder / "in"))
    upserted = raw(files, 0, "upserted", Json(SCHEMA), envelope="UPSERT", key=("id",))
    return {
        "counter": (counter, (typed(counter, 0),)),
        "key_value": (key_value, (typed(key_value, 0),)),
        "appended": (files, (raw(files, 0, "appended", Json(SCHEMA)),)),
        "upserted": (files, (upserted,)),
    }


def main(folder: Path, rounds: int | None) -> None:
    options = persist.Options(config=CONFIG)
    client = persist.open(folder / "location", options=options)
    log = open_consensus(folder / "oracle")
    # The location's lock is of this machine, and ours: nobody else hands out its times.
    oracle = ReservedOracle.open(client.runtime, log, alone=True)
    start_ms = int((folder / "start").read_text())
    ingestions = []
    for name, (source, feeds) in sources(folder, start_ms).items():
        told: Any = WritesDown(source, name, str(folder / "reads"))
        ingestions.append(
            Ingestion(client, oracle, told, name, InPlaceEngine(), 10**9, feeds).start()
        )
    os.write(1, b"r\n")
    done = 0
    while rounds is None or done < rounds:
        for ingestion in ingestions:
            ingestion.tick()
        done += 1
    oracle.close()
    client.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
