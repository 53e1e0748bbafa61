"""Alembic: autogenerate, upgrade and downgrade, in an environment of its own, as on PostgreSQL."""

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


@pytest.fixture
def peer(postgres_server: PostgresServer) -> Iterator[str]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("create database alembic")
        yield postgres_server.dsn.rpartition("/")[0] + "/alembic"
        connection.execute("drop database alembic with (force)")


def told(url: str, folder: Path) -> dict[str, Any]:
    url = url.replace("postgresql:", "postgresql+psycopg:")
    said = run_tool(tool_python("alembic"), LOCKS / "run_alembic.py", url, str(folder))
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[str]:
    host = DatabaseHost(str(tmp_path / "location"))  # indexes want a folder
    yield f"postgresql://noonmark@{host.host}:{host.port}/noonmark"
    host.close()


@pytest.mark.server
def test_alembic(ours: str, peer: str, tmp_path: Path) -> None:
    found = told(ours, tmp_path / "ours")
    assert len(found["steps 2"]) >= 7
    assert found["left 2"] == []
    assert found == told(peer, tmp_path / "theirs")


CHANGES = (
    "create table i (a int, b text, c int, d int)",
    "create index by_b on i (b)",
    "create index by_c on i (c, a)",
    "create index by_d on i (d)",
    "insert into i values (1, 'x', 2, 3)",
    "alter table i alter column a type bigint",
    "alter table i rename column b to name",
    "alter table i drop column d",
    "alter table i add column e int default 7",
    "begin",
    "alter table i drop column c",
    "rollback",
)
ASKED = (
    "select indexname, indexdef from pg_indexes where tablename = 'i' order by 1",
    "select * from i where name = 'x'",
)


@pytest.mark.server
def test_indexes_follow_what_becomes_of_their_table(ours: str, peer: str) -> None:
    answers = []
    for url in (ours, peer):
        with psycopg.connect(url, autocommit=True) as connection:
            for text in CHANGES:
                connection.execute(text.encode())
            answers.append([connection.execute(text.encode()).fetchall() for text in ASKED])
    assert answers[0] == answers[1]
    assert [name for name, _ in answers[0][0]] == ["by_b", "by_c"]
