"""Scalars and queries against a real PostgreSQL: the reference computes what it computes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from support.servers import PostgresServer
from support.sql_expressions import EXPRESSIONS
from support.sql_generator import Generator
from support.sql_peer import connected, disagreement, load
from support.sql_queries import GUARDED, QUERIES, ROWS, SCHEMAS


@pytest.fixture(scope="module")
def peer(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    with connected(postgres_server.dsn) as connection:
        yield connection


@pytest.mark.parametrize("subject", EXPRESSIONS)
def test_expressions(peer: psycopg.Connection, subject: str) -> None:
    found = [disagreement(peer, f"SELECT {each}", {}, {}) for each in EXPRESSIONS[subject]]
    wrong = [each for each in found if each is not None]
    assert wrong == [], "\n" + "\n".join(wrong)


@pytest.fixture(scope="module")
def tables(peer: psycopg.Connection) -> psycopg.Connection:
    load(peer, SCHEMAS, ROWS)
    return peer


@pytest.mark.parametrize("rules", [False, True], ids=["as written", "after rules"])
def test_queries(tables: psycopg.Connection, rules: bool) -> None:
    found = [
        disagreement(tables, each, SCHEMAS, ROWS, ordered=_has_total_order(each), rules=rules)
        for each in QUERIES
        if rules or each not in GUARDED
    ]
    wrong = [each for each in found if each is not None]
    assert wrong == [], "\n" + "\n".join(wrong)


def _has_total_order(sql: str) -> bool:
    """Where ORDER BY is last in the text, rows come in that order; ties do not occur or show."""
    return bool(re.search(r"order by [\w, ]+( limit \d+)?$", sql)) and "union" not in sql


@pytest.mark.parametrize("seed", range(8))
def test_generated_queries(tables: psycopg.Connection, seed: int) -> None:
    generator = Generator(seed)
    wrong = []
    for _ in range(15):
        sql, _kinds = generator.query(2, [])
        for rules in (False, True):
            found = disagreement(tables, sql, SCHEMAS, ROWS, rules=rules)
            if found is not None:
                wrong.append(f"rules {rules}: {found}")
    assert wrong == [], "\n" + "\n".join(wrong)
