"""WITH that writes: who may, what others change meanwhile, what ends it, and what clients see."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from support.neighbour.servers import PostgresServer
from support.serve.host import DatabaseHost


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


def test_each_statement_takes_its_own_rights(host: DatabaseHost) -> None:
    with connected(host) as db:
        said(db, "create table a (id int)", "create table b (id int)", "insert into a values (1)",
             "create role ada login", "grant select on a to ada")  # fmt: skip
        moved = "with x as (delete from a where id = 1 returning *) insert into b select * from x"
        with connected(host, "ada") as ada:
            for grant, missing in (("delete on a", "a"), ("insert on b", "b")):
                with pytest.raises(errors.InsufficientPrivilege, match=f"table {missing}"):
                    said(ada, moved)
                said(db, f"grant {grant} to ada")
            assert ada.execute(moved.encode()).statusmessage == "INSERT 0 1"
            with pytest.raises(errors.InsufficientPrivilege, match="table b"):
                said(ada, "with x as (select id from b) delete from a using x where a.id = x.id")
        assert said(db, "select * from b") == [(1,)]


def test_nothing_of_it_happens_where_a_part_fails(host: DatabaseHost) -> None:
    with connected(host) as db:
        said(db, "create table a (id int primary key)", "insert into a values (1), (2)")
        for failing in ("select 1 / (id - id) from x", "insert into a values (2)"):
            with pytest.raises((errors.DivisionByZero, errors.UniqueViolation)):
                said(db, f"with x as (delete from a where id = 1 returning id) {failing}")
        assert said(db, "select id from a order by id") == [(1,), (2,)]


def test_rows_move_once_whoever_moves_them(host: DatabaseHost) -> None:
    """Queues are emptied so: no row is lost, and none is taken twice."""
    with connected(host) as db:
        said(db, "create table todo (id int primary key)",
             "create table done (id int, by_whom int)",
             "insert into todo select generate_series(1, 60)")  # fmt: skip

    def work(which: int) -> None:
        with connected(host) as own:
            while said(own, "with x as (delete from todo where id in (select id from todo order by"
                       " id limit 3) returning id), y as (insert into done select id, "
                       f"{which} from x returning 1) select count(*) from y"
                       ) != [(0,)]:  # fmt: skip
                pass

    threads = [threading.Thread(target=work, args=(which,)) for which in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with connected(host) as db:
        assert said(db, "select count(*), count(distinct id) from done") == [(60, 60)]


def test_a_timeout_ends_it_and_nothing_is_written(host: DatabaseHost) -> None:
    with connected(host) as db:
        said(db, "create table a (id int)", "insert into a values (1)",
             "set statement_timeout = '300ms'")  # fmt: skip
        with pytest.raises(errors.QueryCanceled):
            said(db, "with x as (delete from a returning id) select count(*) from x,"
                     " generate_series(1, 100000) g, generate_series(1, 100000) h")  # fmt: skip
        said(db, "reset statement_timeout")
        assert said(db, "select * from a") == [(1,)]


def test_parameters_are_shared(host: DatabaseHost) -> None:
    with connected(host) as db:
        said(db, "create table a (id int primary key, v text)")
        text = (
            "with x as (insert into a values (%s, %s) returning id, v), y as (select %s::int + id"
            " as j from x) select x.v, y.j from x, y where x.id < %s"
        )
        for prepare in (False, True, True):
            db.execute("delete from a")
            found = db.execute(text, (7, "seven", 3, 100), prepare=prepare).fetchall()
            assert found == [("seven", 10)]


#: Parts of statements over two tables, with a place for the name of a part before.
_WRITES = (
    "delete from {t} where id % {m} = {r} returning id, n",
    "update {t} set n = n + {r} where id % {m} = 0 returning id, n",
    "update {t} set n = {t}.n + u.n from {u} u where {t}.id = u.id + {r} returning {t}.id, {t}.n",
    "insert into {t} select id + {k}, n from {u} where id % {m} = 1 returning id, n",
    "insert into {t} values ({k}, {r}) on conflict (id) do update set n = excluded.n"
    " returning id, n",
)
_FROM = (
    "insert into {t} select id + {k}, n from {p} returning id, n",
    "delete from {t} using {p} where {t}.id = {p}.id + {r} returning {t}.id, {t}.n",
    "update {t} set n = {p}.n from {p} where {t}.id = {p}.id returning {t}.id, {t}.n",
    "select id, sum(n) as n from {p} group by id",
)


def _statement(chance: random.Random, number: int) -> str:
    parts: list[str] = []
    names: list[str] = []
    for at in range(chance.randint(1, 3)):
        own = chance.choice(_FROM if names and chance.random() < 0.5 else _WRITES)
        t, u = chance.sample(("a", "b"), 2)
        parts.append(f"x{at} as ({own})".format(
            t=t, u=u, m=chance.randint(2, 4), r=chance.randint(0, 3),
            k=1000 * (number * 4 + at + 1), p=names[-1] if names else ""))  # fmt: skip
        names.append(f"x{at}")
    counts = ", ".join(f"(select count(*) from {each})" for each in names)
    return f"with {', '.join(parts)} select {counts}"


@pytest.mark.parametrize("seed", range(1, 7))
def test_random_statements_do_what_they_do_in_postgresql(
    host: DatabaseHost, postgres_server: PostgresServer, seed: int
) -> None:
    """Counts and tables are the same after each, also where several parts change one row."""
    chance = random.Random(seed)
    with connected(host) as ours, psycopg.connect(postgres_server.dsn, autocommit=True) as theirs:
        made = ("drop table if exists a, b", "create table a (id int primary key, n int)",
                "create table b (id int primary key, n int)")  # fmt: skip
        for each in (ours, theirs):
            said(each, *made, "insert into a select g, g from generate_series(1, 9) g",
                 "insert into b select g, 10 * g from generate_series(1, 9) g")  # fmt: skip
        done = 0
        for number in range(120):
            text = _statement(chance, number)
            answers = []
            for each in (theirs, ours):
                try:
                    answers.append(said(each, text))
                except psycopg.Error as error:
                    answers.append([error.sqlstate])
            assert answers[0] == answers[1], text
            done += isinstance(answers[0][0], tuple)
            for table in ("a", "b"):
                rows = f"select * from {table} order by id"
                assert said(theirs, rows) == said(ours, rows), text
            if number % 10 == 9:
                for each in (ours, theirs):
                    said(each, "delete from a", "delete from b",
                         "insert into a select g, g from generate_series(1, 9) g",
                         "insert into b select g, 10 * g from generate_series(1, 9) g")  # fmt: skip
        assert done > 60
        said(theirs, "drop table a, b")
