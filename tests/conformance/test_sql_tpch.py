"""The 22 queries of TPC-H, as the benchmark writes them, against PostgreSQL on tiny data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from support.neighbour.servers import PostgresServer
from support.sql.peer import connected, load, ours, same_rows, schema_of, theirs
from support.view import tpch

SEED, SCALE_FACTOR = 7, 0.001

Rows = dict[str, dict[tuple[Any, ...], int]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return tpch.rows(SEED, SCALE_FACTOR)


@pytest.fixture(scope="module")
def peer(postgres_server: PostgresServer, rows: Rows) -> Iterator[psycopg.Connection]:
    with connected(postgres_server.dsn) as connection:
        load(connection, tpch.SCHEMAS, rows)
        connection.execute("ANALYZE")
        yield connection


@pytest.fixture(scope="module")
def answers(rows: Rows) -> dict[str, list[tuple[Any, ...]]]:
    return {name: ours(sql, tpch.SCHEMAS, rows, rules=True) for name, sql in tpch.QUERIES.items()}


Answers = dict[str, list[tuple[Any, ...]]]


def test_most_queries_have_rows(answers: Answers) -> None:
    """Agreement about nothing proves little."""
    assert list(answers) == [f"q{number:02}" for number in range(1, 23)]
    filled = [rows for rows in answers.values() if any(x is not None for r in rows for x in r)]
    assert len(filled) >= 16


@pytest.mark.parametrize("name", tpch.QUERIES)
def test_query(peer: psycopg.Connection, answers: Answers, name: str) -> None:
    sql = tpch.QUERIES[name]
    schema = schema_of(sql, tpch.SCHEMAS).schema
    found = theirs(peer, sql, schema)
    assert same_rows(answers[name], found, schema, ordered=False), (answers[name], found)
