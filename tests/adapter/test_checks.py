"""CHECK constraints, statement by statement, beside PostgreSQL: the same rows and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pytest

from noonmark.adapter.table.checks import CheckViolation
from noonmark.embedded.database import Embedded
from noonmark.errors import NoonmarkError
from support.neighbour.servers import PostgresServer

STATEMENTS = (
    "create table c (a int check (a > 0), b text constraint long check (length(b) < 5), c int, "
    "check (a < c), check (c > 0), check (c < 100), constraint named check (c <> 7))",
    "insert into c values (1, 'abc', 2)",
    "insert into c values (0, 'abc', 2)",
    "insert into c values (1, 'abcdef', 2)",
    "insert into c values (3, 'abc', 2)",
    "insert into c values (1, 'abc', 100)",
    "insert into c values (null, null, null)",
    "insert into c values (1, 'x', 7)",
    "insert into c values (1, 'x', 8), (2, 'y', 1)",
    "insert into c (a) values (5)",
    "insert into c select g, 'z', g + 1 from generate_series(-1, 3) g",
    "update c set a = -1 where a = 1",
    "update c set c = 50 where a = 1",
    "alter table c rename to d",
    "insert into d values (1, 'abc', 7)",
    "select * from d",
    "create table k (a int primary key, b int check (k.b between 1 and 9))",
    "insert into k values (1, 1)",
    "insert into k values (1, 5) on conflict (a) do update set b = excluded.b",
    "insert into k values (1, 10) on conflict (a) do update set b = excluded.b",
    "insert into k values (1, 2) on conflict (a) do update set b = 10",
    "alter table k rename to l",
    "insert into l values (2, 0)",
    "select * from l",
    "create table e (a int check (a + 1))",
    "create table e (a int check (sum(a) > 1))",
    "create table e (a int check (b > 1))",
    "create table e (a int check (1 / a > 0))",
    "insert into e values (0)",
    "insert into e values (1)",
    "select * from e",
    "create table n (a int)",
    "insert into n values (1), (1) on conflict do nothing",
    "insert into n values (1) on conflict (a) do nothing",
    "select * from n",
    "select conname, contype from pg_constraint where conrelid = 'd'::regclass order by 1",
)


def _ours(db: Embedded, statement: str) -> Any:
    try:
        rows = db.sql(statement).rows() if statement.startswith("select") else db.execute(statement)
    except NoonmarkError as error:
        return error.sqlstate, error.message, error.detail
    return sorted(map(repr, rows)) if isinstance(rows, list) else rows


def _theirs(connection: psycopg.Connection, statement: str) -> Any:
    try:
        cursor = connection.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.message_detail
    return sorted(map(repr, cursor.fetchall())) if cursor.description else cursor.statusmessage


def test_every_statement_does_what_it_does_in_postgresql(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    place = f"host={postgres_server.host} port={postgres_server.port} user={postgres_server.user}"
    with (
        psycopg.connect(f"{place} dbname={postgres_server.database}", autocommit=True) as theirs,
        Embedded(str(tmp_path), None, None, maintain=False) as db,
    ):
        theirs.execute("create schema checks; set search_path to checks")
        for statement in STATEMENTS:
            # PostgreSQL shows bpchar and the like as we do; only the catalog's "char" is bytes.
            wanted = str(_theirs(theirs, statement)).replace("b'c'", "'c'")
            assert str(_ours(db, statement)) == wanted, statement
        theirs.execute("drop schema checks cascade")


def test_copies_of_every_kind_are_checked(tmp_path: Path) -> None:
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        db.execute("create table t (a int check (a > 0), b text)")
        good = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
        assert db.insert("t", good) == 2
        with pytest.raises(CheckViolation):
            db.insert("t", pd.DataFrame({"a": [3, 0], "b": ["y", "z"]}))
        assert db.sql("select count(*) from t").rows() == [(2,)]
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        with pytest.raises(CheckViolation):
            db.execute("insert into t values (0, '')")
        (shown,) = db.sql("show create table t").rows()
        assert "CONSTRAINT t_a_check CHECK (a > 0)" in shown[1]


def test_what_a_check_cannot_say_is_refused(tmp_path: Path) -> None:
    with Embedded(str(tmp_path), None, None, maintain=False) as db:
        for condition, message in (
            ("a > (select 1)", "cannot use subquery in check constraint"),
            ("current_user = 'me'", "current_user"),
            ("now() > '2020-01-01'", "function now is not supported"),
        ):
            with pytest.raises(NoonmarkError, match=message):
                db.execute(f"create table t (a int check ({condition}))")
        db.execute("create table t (a int)")
        db.execute("alter table t add column b int check (b > 0)")
        with pytest.raises(NoonmarkError, match='violates check constraint "t_b_check"'):
            db.execute("insert into t values (1, 0)")
        with pytest.raises(NoonmarkError, match="CHECK of a source's columns"):
            db.execute("create source s (a int check (a > 0)) from files '/x/*' format csv")
