"""``python -m support.ingest.upstream_process FOLDER [TICKS]``: ingests both, to be killed.

FOLDER/sources.json says what; whatever is read from upstream is written down first, in
FOLDER/reads. Says ``r`` on its standard output when the location is open.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from noonmark import persist
from noonmark.errors import SourceStalled
from noonmark.ingest.feed import postgres
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine, raw
from noonmark.oracle import ReservedOracle
from noonmark.persist.impl.open import open_consensus
from noonmark.rows.schema import Schema
from noonmark.source.format.json import Json
from noonmark.source.impl.kafka import Kafka
from noonmark.source.impl.postgres import Postgres
from support.ingest.process import CONFIG, WritesDown

ACCOUNT = Schema.of(id="bigint not null")
BALANCE = Schema.of(cents="bigint not null")


def main(folder: Path, rounds: int | None) -> None:
    known = json.loads((folder / "sources.json").read_text())
    client = persist.open(folder / "location", options=persist.Options(config=CONFIG))
    oracle = ReservedOracle.open(client.runtime, open_consensus(folder / "oracle"), alone=True)
    tables = Postgres.from_plain(known["url"], known["postgres"])
    options = tuple((name, value) for name, value in known["options"])
    topic = Kafka.from_plain(options, known["kafka"])
    upsert = raw(topic, 0, "kafka", Json(BALANCE), key_format=Json(ACCOUNT), envelope="UPSERT")
    ingestions = []
    for name, source, feeds in (("pg", tables, postgres(tables)), ("kafka", topic, (upsert,))):
        told: Any = WritesDown(source, name, str(folder / "reads"))
        ingestions.append(
            Ingestion(client, oracle, told, name, InPlaceEngine(), 10**9, feeds).start()
        )
    os.write(1, b"r\n")
    done = 0
    while rounds is None or done < rounds:
        for ingestion in ingestions:
            tick(ingestion)
        done += 1
    oracle.close()
    client.stop()


def tick(ingestion: Ingestion) -> None:
    """As a source's worker does: what a killed process left upstream may stall the next."""
    for _ in range(100):
        try:
            ingestion.tick()
        except SourceStalled:
            continue
        return
    ingestion.tick()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
