"""Domains: kept over a restart, asked at commit of what came before them, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from support.serve.host import DatabaseHost

MADE = (
    "create type mood as enum ('sad', 'ok')",
    "create domain feel as mood default 'ok' check (value <> 'sad')",
    "create domain posint as int default 5 check (value > 0)",
    "create domain small as posint not null check (value < 100)",
    "create table t (id int primary key, n small, f feel)",
    "insert into t (id) values (1)",
)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[DatabaseHost]:
    made = DatabaseHost(str(tmp_path))
    yield made
    made.close()


def connected(host: DatabaseHost, user: str = "noonmark") -> psycopg.Connection[Any]:
    return psycopg.connect(host.dsn(user), autocommit=True)


def said(connection: psycopg.Connection[Any], *texts: str) -> list[Any]:
    for text in texts:
        cursor = connection.execute(text.encode())
    return cursor.fetchall() if cursor.description is not None else []


def test_what_a_domain_asks_for_is_kept(tmp_path: Path) -> None:
    for start in range(2):
        host = DatabaseHost(str(tmp_path))
        with connected(host) as db:
            if not start:
                said(db, *MADE, "alter domain posint rename to counted")
            said(db, f"insert into t (id) values ({start + 2})")
            for bad in ("0, 'ok'", "100, 'ok'", "null, 'ok'", "1, 'sad'"):
                with pytest.raises((errors.CheckViolation, errors.NotNullViolation)):
                    said(db, f"insert into t values (9, {bad})")
            rows = said(db, "select id, n, f, pg_typeof(n), pg_typeof(f) from t order by id")
            assert rows[0] == (1, 5, "ok", "small", "feel")
            with pytest.raises(errors.CheckViolation, match="posint_check"):
                said(db, "select 0::counted")
        host.close()


def test_rows_of_an_older_domain_are_refused_at_commit(host: DatabaseHost) -> None:
    """What a transaction wrote before a constraint came was never asked for it."""
    with connected(host) as one, connected(host) as other:
        said(one, *MADE, "begin", "insert into t values (2, 7)")
        said(other, "alter domain posint add constraint odd check (value <> 7)")
        with pytest.raises(errors.SerializationFailure):
            said(one, "commit")
        with pytest.raises(errors.CheckViolation, match="odd"):
            said(one, "insert into t values (2, 7)")


def test_copy_asks_for_what_a_domain_asks(host: DatabaseHost) -> None:
    with connected(host) as db:
        said(db, *MADE, "create table c (n posint)")
        with pytest.raises(errors.CheckViolation), db.cursor().copy("copy c from stdin") as copy:
            copy.write("".join(f"{n}\n" for n in range(5000, -1, -1)))
        with db.cursor().copy("copy c from stdin") as copy:
            copy.write("".join(f"{n}\n" for n in range(1, 5000)))
        assert said(db, "select count(*), min(n) from c") == [(4999, 1)]


def test_the_error_says_which_domain_it_is(host: DatabaseHost) -> None:
    with connected(host) as db:
        said(db, *MADE)
        with pytest.raises(errors.CheckViolation) as caught:
            said(db, "insert into t values (2, -1)")
        told = caught.value.diag
        found = (told.schema_name, told.datatype_name, told.constraint_name)
        assert found == ("public", "small", "posint_check")


def test_a_column_takes_usage_and_a_change_takes_the_owner(host: DatabaseHost) -> None:
    with connected(host) as db:
        said(db, *MADE, "create role ada login", "grant create on schema public to ada")
        said(db, "revoke usage on domain posint from public")
        with connected(host, "ada") as ada:
            for denied in ("create table u (n posint)", "create domain mine as posint",
                           "alter domain posint set default 1", "drop domain posint",
                           "alter domain posint rename to mine",
                           "comment on domain posint is 'x'"):  # fmt: skip
                with pytest.raises(errors.InsufficientPrivilege):
                    said(ada, denied)
            assert said(ada, "select 3::posint") == [(3,)]
            said(db, "grant usage on domain posint to ada")
            said(ada, "create table u (n posint)", "create domain mine as posint")
