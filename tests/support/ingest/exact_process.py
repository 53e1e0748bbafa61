"""``python -m support.ingest.exact_process FOLDER [TICKS]``: ingests PostgreSQL, to be killed.

FOLDER/source.json says what. Says ``r`` on its standard output when the location is open, and ``t``
after every tick.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from noonmark import persist
from noonmark.errors import SourceStalled
from noonmark.ingest.feed import postgres
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine
from noonmark.oracle import ReservedOracle
from noonmark.persist.impl.open import open_consensus
from noonmark.source.impl.postgres import Postgres


def main(folder: Path, ticks: int | None) -> None:
    known = json.loads((folder / "source.json").read_text())
    client = persist.open(folder / "location")
    oracle = ReservedOracle.open(client.runtime, open_consensus(folder / "oracle"), alone=True)
    tables = Postgres.from_plain(known["url"], known["source"])
    ingestion = Ingestion(
        client, oracle, tables, "pg", InPlaceEngine(), 10**9, postgres(tables)
    ).start()
    os.write(1, b"r\n")
    done = 0
    while ticks is None or done < ticks:
        try:
            ingestion.tick()
        except SourceStalled:
            threading.Event().wait(0.05)
            continue
        done += 1
        os.write(1, b"t\n")
    oracle.close()
    client.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
