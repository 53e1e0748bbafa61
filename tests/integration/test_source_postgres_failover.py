"""A real failover: the primary is gone, a standby answers in its place and is promoted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from noonmark.errors import SourceStalled
from noonmark.persist.client import open_location
from noonmark.source.impl.postgres import create
from support.ingest.logical_ingest import contents, error_of, ingest, reasons
from support.neighbour.servers import server_folder, start_postgres


def test_a_promoted_standby_ends_the_source(tmp_path: Path) -> None:
    with server_folder("pg") as folder, open_location(tmp_path / "location") as client:
        with start_postgres(folder) as primary:
            with psycopg.connect(primary.dsn, autocommit=True) as session:
                session.execute("create table t (id int primary key)")
                session.execute("create publication p for all tables")
                session.execute("insert into t values (1)")
                source = asyncio.run(create(primary.dsn, "p", "noonmark_failover"))
                ingestion = ingest(client, source)
                ingestion.tick()
                session.execute("insert into t values (2)")
                ingestion.tick()
            source.close()
        with pytest.raises(SourceStalled, match="does not answer"):
            ingestion.tick()
        (folder / "data" / "standby.signal").touch()
        with start_postgres(folder, primary.port) as standby:
            with pytest.raises(SourceStalled, match="is a standby"):
                ingestion.tick()
            source.close()
            with psycopg.connect(standby.dsn, autocommit=True) as session:
                assert session.execute("select pg_promote()").fetchone() == (True,)
                session.execute("insert into t values (3)")
                reason = "upstream is on another timeline: a standby was promoted, or a backup"
                before = client.state.collection("t").upper.only() or 0
                for _ in range(2):
                    ingestion.tick()
                    assert reasons(client) == [f"{reason} restored"]
            assert error_of(client, "t") == f"{reason} restored"
            # What was durable stays; nothing of the other history is mixed with it.
            assert sorted(contents(client, "t", before - 1)) == [(1,), (2,)]
            source.close()
