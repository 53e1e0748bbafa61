"""Scalars and queries against a real PostgreSQL: the reference computes what it computes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from noonmark.rows.pg.text import format_value
from support.neighbour.servers import PostgresServer
from support.sql.expressions import EXPRESSIONS
from support.sql.generator import Generator
from support.sql.peer import connected, disagreement, load, ours, schema_of
from support.sql.queries import GUARDED, QUERIES, ROWS, SCHEMAS


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


@pytest.mark.parametrize(
    "sql",
    [
        "select 1.5 + 2, 1.10 - 0.1, 1.50 * 2.0, 100.00 * 3, -1.50, abs(-3.250), 7.50 % 2",
        "select 3::numeric, 1.0::numeric, 2.345::numeric(10,1), round(2.345, 2), trunc(2.999, 1)",
        "select round(2.5), floor(2.50), 12.30::text, 5::bigint * 1.10, 0.000, 1e3, 1.5e-3",
        "select extract(second from time '10:00:01.5'), extract(epoch from date '2020-01-01')",
        "select extract(year from date '2020-01-01'), extract(milliseconds from time '0:00:01')",
        "select sum(c), min(c), max(c), sum(c * 2.5), sum(c) * 2, sum(a), count(*) from t",
        "select a, sum(c * (1 - 0.05) * (1 + 0.1)) from t where c > 0 group by a order by a",
    ],
)
def test_numerics_are_shown_with_the_same_digits(tables: psycopg.Connection, sql: str) -> None:
    schema = schema_of(sql, SCHEMAS).schema
    mine = [
        [None if x is None else format_value(x, c.type) for x, c in zip(row, schema, strict=True)]
        for row in ours(sql, SCHEMAS, ROWS, rules=True)
    ]
    result = tables.pgconn.exec_params(sql.encode(), None)
    peer = [
        [raw and raw.decode() for raw in (result.get_value(n, at) for at in range(result.nfields))]
        for n in range(result.ntuples)
    ]
    assert mine == peer
