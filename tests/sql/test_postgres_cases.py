"""Statements and what PostgreSQL answers, as text: `tests/cases/postgres`.

The same client asks Noonmark and a real PostgreSQL; names, types, text of the rows and SQLSTATE are
what the file says, of both. A file's statements run one after the other in one session, so they
may make tables. ``NOONMARK_REWRITE=1`` writes PostgreSQL's answers into the files, for review.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost
from support.sql.cases import REWRITE, differing
from support.sql.seen import ask

FOLDER = Path(__file__).resolve().parents[1] / "cases" / "postgres"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.fixture
def ours(path: Path, tmp_path: Path) -> Iterator[psycopg.Connection]:
    # What is maintained wants a folder.
    in_folder = "materialized view" in path.read_text()
    host = DatabaseHost(str(tmp_path / "location") if in_folder else None)
    with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
        yield connection
    host.close()


@pytest.fixture
def peer(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    options = "-c timezone=UTC -c search_path=cases"
    with psycopg.connect(postgres_server.dsn, autocommit=True, options=options) as connection:
        connection.execute("drop schema if exists cases cascade")
        connection.execute("create schema cases")
        yield connection
        connection.execute("drop schema cases cascade")


def told(connection: psycopg.Connection, sql: str) -> str:
    return ask(connection, sql).text(ordered="order by" in sql.lower())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers_are_postgresqls(
    path: Path, ours: psycopg.Connection, peer: psycopg.Connection
) -> None:
    theirs = differing(path, lambda sql: told(peer, sql))
    assert theirs == [], "PostgreSQL itself answers otherwise:\n" + "\n\n".join(theirs)
    if not REWRITE:
        wrong = differing(path, lambda sql: told(ours, sql))
        assert wrong == [], "\n\n".join(wrong)
