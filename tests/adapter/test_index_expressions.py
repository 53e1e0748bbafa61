"""Indexes of expressions and of some rows: what is looked up in them, kept and held to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors

from noonmark.adapter.peek.answer import Peek
from noonmark.adapter.peek.indexes import Indexes
from noonmark.embedded.database import Embedded
from noonmark.persist.log.state import State
from support.serve.host import DatabaseHost

MADE = (
    "create table t (id int primary key, name text, gone date)",
    "insert into t select g, 'N' || g, case when g % 2 = 0 then date '2020-01-01' end"
    " from generate_series(1, 20) g",
    "create index on t (lower(name))",
    "create index live on t (name) where gone is null",
    "create index on t ((id * 2), name) where id > 3",
)
#: Each question, its answer, and the index that it is looked up in.
QUESTIONS = (
    ("select id from t where lower(name) = 'n7'", [(7,)], "t_lower_idx"),
    ("select id from t where 'n8' = lower(name) and id < 9", [(8,)], "t_lower_idx"),
    ("select id from t where name = 'N7' and gone is null", [(7,)], "live"),
    ("select id from t where name = 'N8' and gone is null", [], "live"),
    ("select id, name from t where id * 2 = 10 and id > 3", [(5, "N5")], "t_expr_name_idx"),
    ("select id from t where id * 2 = 4", [(2,)], "t"),
    ("select id from t where upper(name) = 'N7'", [(7,)], "t"),
    ("select name from t where gone is null and id < 3", [("N1",)], "t"),
)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The collections of the plans that were made, as if every table were large."""
    found: list[str] = []
    used = Indexes.used

    def large(own: Indexes, peek: Peek, state: State, _: int = 0) -> Peek:
        made = used(own, peek, state, -1)
        found[:] = made.collections
        return made

    monkeypatch.setattr(Indexes, "used", large)
    return found


def test_look_ups_go_through_the_index_that_has_their_rows(
    tmp_path: Path, looked_up: list[str]
) -> None:
    with Embedded(str(tmp_path), None, None) as db:
        for text in MADE:
            db.execute(text)
        for asked, _, index in QUESTIONS:
            for _ in range(600):  # until it has contents
                db.sql(f"{asked} and true").rows()
                if looked_up == [index]:
                    break
                db.sql("select pg_sleep(0.05)").rows()
        for text, answer, index in QUESTIONS:
            assert db.sql(text).rows() == answer, text
            assert looked_up == [index], text
        db.execute("begin")
        db.execute("insert into t values (101, 'n7')")
        asked = "select id from t where lower(name) = 'n7' order by id"
        assert db.sql(asked).rows() == [(7,), (101,)], "what a transaction wrote is in no index"
        db.execute("rollback")
        db.execute("alter table t rename column name to called")
        assert db.sql(asked.replace("name", "called")).rows() == [(7,)]
        db.execute("alter table t drop column gone")
        left = db.sql("select indexname from pg_indexes where tablename = 't' order by 1").rows()
        assert left == [("t_expr_name_idx",), ("t_lower_idx",), ("t_pkey",)]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[DatabaseHost]:
    made = DatabaseHost(str(tmp_path))
    yield made
    made.close()


def _said(connection: psycopg.Connection[Any], *texts: str) -> None:
    for text in texts:
        connection.execute(text.encode())


def test_two_transactions_cannot_both_write_one_key(host: DatabaseHost) -> None:
    with (
        psycopg.connect(host.dsn("noonmark"), autocommit=True) as one,
        psycopg.connect(host.dsn("noonmark"), autocommit=True) as other,
    ):
        _said(one, "create table t (name text)", "create unique index i on t (lower(name))")
        _said(one, "begin", "insert into t values ('A')")
        _said(other, "begin", "insert into t values ('a')", "commit")
        with pytest.raises(errors.UniqueViolation) as caught:
            _said(one, "commit")
        assert caught.value.diag.message_detail == "Key (lower(name))=(a) already exists."


def test_an_index_is_kept_over_a_restart(tmp_path: Path) -> None:
    for start in range(2):
        host = DatabaseHost(str(tmp_path))
        with psycopg.connect(host.dsn("noonmark"), autocommit=True) as db:
            if not start:
                _said(db, "create type mood as enum ('sad', 'ok')",
                      "create table t (n int, m text)",
                      "create unique index i on t ((n::numeric), (m::mood)) where m <> 'x'",
                      "alter type mood rename to feel",
                      "insert into t values (1, 'ok')")  # fmt: skip
            with pytest.raises(errors.UniqueViolation):
                _said(db, "insert into t values (1, 'ok')")
            _said(db, "insert into t values (1, 'x'), (1, 'x')")
            with pytest.raises(errors.InvalidTextRepresentation):
                _said(db, "insert into t values (1, 'nope')")
            many = "insert into t select g, 'ok' from generate_series(1000, 0, -1) g"
            with pytest.raises(errors.UniqueViolation):
                _said(db, many)
        host.close()


def test_sqlalchemy_finds_them(host: DatabaseHost) -> None:
    with psycopg.connect(host.dsn("noonmark"), autocommit=True) as db:
        _said(db, "create table t (id int primary key, name text, gone date)",
              "create unique index i on t (lower(name), id)",
              "create unique index j on t (name) where gone is null")  # fmt: skip
    engine = sa.create_engine(f"postgresql+psycopg://noonmark@{host.host}:{host.port}/noonmark")
    found = {each["name"]: each for each in sa.inspect(engine).get_indexes("t")}
    engine.dispose()
    assert found["i"]["expressions"] == ["lower(name)", "id"]
    assert found["i"]["column_names"] == [None, "id"]
    assert found["j"]["dialect_options"]["postgresql_where"] == "(gone IS NULL)"
