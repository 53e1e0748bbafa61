"""Node: node-postgres, Postgres.js, Knex, TypeORM, Sequelize, Drizzle; PostgreSQL says the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.neighbour.servers import PostgresServer
from support.neighbour.tool_node import node_script
from support.serve.host import DatabaseHost


def told(url: str) -> dict[str, Any]:
    command = ["node", str(node_script("run_node.js")), url]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-4_000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.server
def test_node(tmp_path: Path, postgres_server: PostgresServer) -> None:
    host = DatabaseHost(str(tmp_path / "location"))  # Sequelize makes indexes
    ours = told(f"postgres://noonmark@{host.host}:{host.port}/noonmark")
    host.close()
    assert [text for text in ours.values() if str(text).startswith("FAIL")] == []
    assert ours["pg listen"] == [["ev", "p1"], ["ev", "p2"]]
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("create database node")
        try:
            url = f"postgres://postgres@{postgres_server.host}:{postgres_server.port}/node"
            assert ours == told(url)
        finally:
            connection.execute("drop database node with (force)")
