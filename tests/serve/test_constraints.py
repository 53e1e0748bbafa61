"""Constraints and ALTER TABLE under many writers, and after a restart: nothing is lost."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.serve.host import DatabaseHost


def connected(host: DatabaseHost) -> psycopg.Connection[Any]:
    return psycopg.connect(host.dsn("noonmark"), autocommit=True)


def test_many_writers_never_make_a_key_twice(database_host: DatabaseHost) -> None:
    with connected(database_host) as one:
        one.execute("create table t (id serial primary key, k int unique, p int references t)")

    def many(seed: int) -> int:
        done = 0
        with connected(database_host) as session:
            for at in range(40):
                try:
                    session.execute("insert into t (k) values (%s)", ((at * 7 + seed) % 50,))
                    done += 1
                except psycopg.errors.UniqueViolation:
                    continue
        return done

    with ThreadPoolExecutor(4) as pool:
        done = sum(pool.map(many, range(4)))
    with connected(database_host) as one:
        found = one.execute("select count(*), count(distinct k) from t").fetchone()
        assert found == (done, done)
        one.execute("drop table t")


def test_a_restart_keeps_constraints(tmp_path: Path) -> None:
    host = DatabaseHost(str(tmp_path / "a"))
    try:
        with connected(host) as one:
            one.execute("create table p (id int primary key, k text unique)")
            one.execute("create table c (p int references p)")
            one.execute("insert into p values (1, 'x'), (2, null), (3, null)")
            one.execute("insert into c values (1)")
        shutil.copytree(tmp_path / "a", tmp_path / "b")  # what kill -9 would leave
    finally:
        host.close()
    for place in ("a", "b"):
        host = DatabaseHost(str(tmp_path / place))
        try:
            with connected(host) as one:
                with pytest.raises(psycopg.errors.UniqueViolation, match="p_k_key"):
                    one.execute("insert into p values (9, 'x')")
                with pytest.raises(psycopg.errors.ForeignKeyViolation, match="c_p_fkey"):
                    one.execute("delete from p where id = 1")
                with pytest.raises(psycopg.errors.ForeignKeyViolation, match="c_p_fkey"):
                    one.execute("insert into c values (7)")
        finally:
            host.close()


def test_a_table_that_is_made_anew_loses_no_row_of_others(database_host: DatabaseHost) -> None:
    with connected(database_host) as one, connected(database_host) as two:
        one.execute("create table r (a int)")
        one.execute("insert into r values (1)")
        one.execute("begin")
        one.execute("alter table r add column b int not null default 5")
        two.execute("insert into r values (2)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            one.execute("commit")
        assert two.execute("select * from r order by a").fetchall() == [(1,), (2,)]

        def insert(at: int) -> None:
            with connected(database_host) as session:
                session.execute("insert into r (a) values (%s)", (at,))

        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(insert, at) for at in range(10, 40)]
            one.execute("alter table r add column b int not null default 5")
            for each in waiting:
                each.result()
        found = one.execute("select count(*), count(b) from r").fetchone()
        assert found == (32, 32)
        one.execute("drop table r")
