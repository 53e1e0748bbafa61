"""Django: inspectdb and the ORM, in an environment of its own; PostgreSQL says the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.neighbour.servers import PostgresServer
from support.neighbour.tool_venv import LOCKS, run_tool, tool_python
from support.serve.host import DatabaseHost

TABLES = (
    "create table shop (id int primary key, name varchar(20) not null, opened date,"
    " rating numeric(4,2))",
    "create table sale (id bigint primary key, shop_id int not null, at timestamptz, cents int,"
    " note jsonb, ok boolean, f double precision, u uuid)",
    "create view dear as select id, cents from sale where cents > 100",
    "comment on table shop is 'shops'",
)


@pytest.fixture
def peer(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("create role noonmark login superuser")
        connection.execute("create database noonmark owner noonmark")
        yield postgres_server
        connection.execute("drop database noonmark")
        connection.execute("drop role noonmark")


def ran(script: str, host: str, port: int) -> dict[str, Any]:
    said = run_tool(tool_python("django"), LOCKS / script, host, str(port))
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def told(host: str, port: int) -> dict[str, Any]:
    dsn = f"host={host} port={port} user=noonmark dbname=noonmark"
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in TABLES:
            connection.execute(text.encode())
    return ran("run_django.py", host, port)


@pytest.mark.server
def test_django(database_host: DatabaseHost, peer: PostgresServer) -> None:
    ours = told(database_host.host, database_host.port)
    assert ours["names"] == ["four", "drei", "zwei", "one"]
    assert ours == told(peer.host, peer.port)


@pytest.mark.server
def test_migrate_and_users(tmp_path: Path, peer: PostgresServer) -> None:
    host = DatabaseHost(str(tmp_path))  # indexes want a folder
    try:
        ours = ran("run_django_migrate.py", host.host, host.port)
    finally:
        host.close()
    assert "auth.0012" in ours["migrate"]
    assert ours == ran("run_django_migrate.py", peer.host, peer.port)
