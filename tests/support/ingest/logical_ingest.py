"""PostgreSQL sources ingested without Spark, and what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from noonmark.clock import SYSTEM, Clock
from noonmark.errors import DefiniteError
from noonmark.ingest.feed import postgres
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine
from noonmark.oracle import MemoryOracle
from noonmark.persist.client import Client
from noonmark.rows.arrow import from_table
from noonmark.source.impl.postgres import Postgres
from support.neighbour.logical import Upstream


def ingest(
    client: Client,
    source: Postgres,
    name: str = "pg",
    collections: Sequence[str] = (),
    clock: Clock = SYSTEM,
) -> Ingestion:
    """The ingestion of a PostgreSQL source, without Spark; `clock` is that of its times."""
    feeds = postgres(source, collections)
    return Ingestion(
        client, MemoryOracle(clock), source, name, InPlaceEngine(), feeds=feeds
    ).start()


def contents(client: Client, name: str, as_of: int | None = None) -> Counter[Any]:
    """The rows of a collection, now or at a time."""
    _, read = client.create_or_load(name)
    now = (read.upper.only() or 1) - 1
    table = read.snapshot(now if as_of is None else as_of).result().to_arrow()
    schema, _ = client.schema_of(client.state.names[name])
    found: Counter[Any] = Counter()
    rows = from_table(table.drop_columns(["_diff"]), schema)
    for row, diff in zip(rows, table.column("_diff").to_pylist(), strict=True):
        found[tuple(map(_hashable, row))] += diff
    return Counter({row: count for row, count in found.items() if count})


def error_of(client: Client, name: str) -> str | None:
    """Why a collection has no rows now; None when it has."""
    try:
        contents(client, name)
    except DefiniteError as error:
        return error.message
    return None


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def reasons(client: Client, name: str = "pg_errors") -> list[str]:
    """The reasons in a collection of errors."""
    return sorted(row[5] for row in contents(client, name))


class Running:
    """Two tables, one of each identity, with a row each, ingested."""

    def __init__(self, upstream: Upstream, client: Client) -> None:
        upstream.run(
            "create table a (id int primary key, word text)",
            "create table b (id int primary key, word text)",
            "alter table b replica identity full",
            "insert into a values (1, 'a')",
            "insert into b values (1, 'b')",
        )
        self.upstream, self.client = upstream, client
        self.source: Postgres = upstream.source()
        self.ingestion: Ingestion = ingest(client, self.source)
        self.ingestion.tick()

    def after(self, *statements: str) -> list[str]:
        """The errors, once the statements have been ingested."""
        self.upstream.run(*statements)
        self.ingestion.tick()
        return reasons(self.client)

    def ended(self) -> dict[str, str]:
        """The tables without an answer now, and why; before the last tick they have one."""
        made = {}
        for name in ("a", "b"):
            message = error_of(self.client, name)
            if message is not None:
                made[name] = message
                (change,) = self.client.state.collection(name).errors
                assert change.error is not None
                assert (change.error.sqlstate, change.error.message) == ("55000", message)
                assert change.error.hint
                assert sum(contents(self.client, name, change.time - 1).values()) == 1
        return made

    def errors_of(self, output: str | None) -> list[str]:
        return [row[5] for row in contents(self.client, "pg_errors") if row[0] == output]
