"""Scalars and queries against a real PostgreSQL: the reference computes what it computes."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from support.servers import PostgresServer
from support.sql_expressions import EXPRESSIONS
from support.sql_peer import connected, disagreement


@pytest.fixture(scope="module")
def peer(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    with connected(postgres_server.dsn) as connection:
        yield connection


@pytest.mark.parametrize("subject", EXPRESSIONS)
def test_expressions(peer: psycopg.Connection, subject: str) -> None:
    found = [disagreement(peer, f"SELECT {each}", {}, {}) for each in EXPRESSIONS[subject]]
    wrong = [each for each in found if each is not None]
    assert wrong == [], "\n" + "\n".join(wrong)
