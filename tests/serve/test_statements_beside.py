"""Statements that PostgreSQL's tools send, answered as PostgreSQL answers them.

`beside/*.txt` are said to a PostgreSQL and to Noonmark; rows, names and types of columns, tags,
notices, SQLSTATE, message, detail and constraint are equal. What differs says why beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost
from support.sql.beside import surprises

SCRIPTS = sorted(Path(__file__).with_name("beside").glob("*.txt"))


@pytest.fixture
def peer(postgres_server: PostgresServer) -> Iterator[str]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("create database beside")
        yield postgres_server.dsn.rpartition("/")[0] + "/beside"
        connection.execute("drop database beside with (force)")


@pytest.mark.server
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_answers_are_postgresqls(script: Path, database_host: DatabaseHost, peer: str) -> None:
    ours = f"postgresql://noonmark@{database_host.host}:{database_host.port}/noonmark"
    count, found = surprises(script, peer, ours)
    assert count >= 5
    assert found == [], "\n".join(found)
