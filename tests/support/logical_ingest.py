"""PostgreSQL sources ingested without Spark, and what came of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from noonmark.clock import SYSTEM
from noonmark.ingest import Ingestion, InPlaceEngine
from noonmark.ingest_feed import postgres
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client
from noonmark.source.impl.postgres import Postgres


def ingest(client: Client, source: Postgres, name: str = "pg") -> Ingestion:
    """The ingestion of a PostgreSQL source, without Spark."""
    return Ingestion(
        client, MemoryOracle(SYSTEM), source, name, InPlaceEngine(), feeds=postgres(source)
    )


def contents(client: Client, name: str, as_of: int | None = None) -> Counter[Any]:
    """The rows of a collection, now or at a time."""
    _, read = client.create_or_load(name)
    now = (read.upper.only() or 1) - 1
    return read.snapshot(now if as_of is None else as_of).result().counts()


def reasons(client: Client, name: str = "pg_errors") -> list[str]:
    """The reasons in a collection of errors."""
    return sorted(row[5] for row in contents(client, name))
