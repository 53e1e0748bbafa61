"""What PostgreSQL says on the wire: conversations over both protocols, said to it and to Noonmark.

`conversations/cases.txt` has them. The answers are equal, message by message; where they are not,
`conversations/different.txt` names the conversation and says why, and nothing else is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from support.neighbour.servers import PostgresServer
from support.serve.conversations import Case, Talk, cases
from support.serve.host import DatabaseHost

FOLDER = Path(__file__).with_name("conversations")
CASES = list(cases(FOLDER / "cases.txt"))
DIFFERENT = dict(
    line.split(": ", 1) for line in (FOLDER / "different.txt").read_text().splitlines() if line
)
TABLES = (
    "create table t (a int primary key, b text)",
    "insert into t values (1, 'one'), (2, 'two'), (3, null), (4, 'four'), (5, 'five')",
    "create table w (a int, b text)",
)


@pytest.fixture(scope="module")
def peer(postgres_server: PostgresServer) -> Iterator[tuple[str, int, str, str]]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("create database conversations")
        yield (postgres_server.host, postgres_server.port, "postgres", "conversations")
        connection.execute("drop database conversations with (force)")


def said(to: tuple[str, int, str, str]) -> dict[str, list[tuple[str, list[str]]]]:
    host, port, user, database = to
    dsn = f"host={host} port={port} user={user} dbname={database}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in TABLES:
            connection.execute(text.encode())
    return {case.name: _said(case, to) for case in CASES}


def _said(case: Case, to: tuple[str, int, str, str]) -> list[tuple[str, list[str]]]:
    talk = Talk(*to)
    try:
        return list(talk.exchanges(case))
    finally:
        talk.close()


@pytest.mark.server
def test_conversations_are_postgresqls(
    database_host: DatabaseHost, peer: tuple[str, int, str, str]
) -> None:
    theirs = said(peer)
    ours = said((database_host.host, database_host.port, "noonmark", "noonmark"))
    assert sum(map(len, theirs.values())) >= 500
    different = {name for name, answers in theirs.items() if answers != ours[name]}
    surprising = [
        f"{name}\n  sent {sent!r}\n  PostgreSQL {wanted}\n  Noonmark   {found}"
        for name in sorted(different - set(DIFFERENT))
        for (sent, wanted), (_, found) in zip(theirs[name], ours[name], strict=False)
        if wanted != found
    ]
    assert surprising == [], "\n".join(surprising)
    assert sorted(set(DIFFERENT) - different) == [], "these are equal by now"
