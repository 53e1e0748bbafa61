"""Sequences: numbers that come once, also after kill -9, beside transactions and on replicas."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark.adapter.sequence.sequences import RESERVED
from support.serve.host import DatabaseHost


@contextmanager
def serving(place: Path) -> Iterator[DatabaseHost]:
    host = DatabaseHost(str(place))
    try:
        yield host
    finally:
        host.close()


def asked(host: DatabaseHost, *texts: str) -> list[Any]:
    with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
        for text in texts:
            cursor = connection.execute(text.encode())
    return cursor.fetchall()


def test_a_killed_process_leaves_a_gap_and_gives_nothing_twice(tmp_path: Path) -> None:
    """Law (once) and law (gaps)."""
    with serving(tmp_path / "a") as host:
        asked(host, "create table t (id serial primary key, v int)", "select 1")
        given = [asked(host, "insert into t (v) values (1) returning id")[0][0] for _ in range(5)]
        shutil.copytree(tmp_path / "a", tmp_path / "b")  # what kill -9 would leave
    with serving(tmp_path / "b") as host:
        (after,) = asked(host, "insert into t (v) values (1) returning id")[0]
        assert after not in given
        assert after <= max(given) + RESERVED + 1
        assert asked(host, "select count(*), count(distinct id) from t") == [(6, 6)]
    with serving(tmp_path / "a") as host:  # it ended properly: no gap
        assert asked(host, "insert into t (v) values (1) returning id") == [(6,)]
        assert asked(host, "select setval('t_id_seq', 2, false)") == [(2,)]
        shutil.copytree(tmp_path / "a", tmp_path / "c")
    with serving(tmp_path / "c") as host:
        assert asked(host, "select nextval('t_id_seq')") == [(2,)]


def test_sessions_at_the_same_time_get_different_numbers(tmp_path: Path) -> None:
    with serving(tmp_path) as host:
        asked(host, "create table t (id serial primary key, v int)", "select 1")

        def many(_: int) -> list[int]:
            with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
                text = "insert into t (v) select v from generate_series(1, 7) v returning id"
                return [row[0] for _ in range(20) for row in connection.execute(text.encode())]

        with ThreadPoolExecutor(4) as pool:
            given = [value for values in pool.map(many, range(4)) for value in values]
        assert sorted(given) == list(range(1, 561))
        assert asked(host, "select count(*) from t") == [(560,)]


def test_copy_takes_from_the_sequence(tmp_path: Path) -> None:
    with serving(tmp_path) as host:
        with psycopg.connect(host.dsn("noonmark"), autocommit=True) as connection:
            connection.execute("create table t (id bigserial primary key, v text)")
            with connection.cursor().copy("copy t (v) from stdin") as copy:
                for at in range(1_000):
                    copy.write_row((f"v{at}",))
            with connection.cursor().copy("copy t from stdin") as copy:
                copy.write_row((5_000, "own"))
        assert asked(host, "select count(*), min(id), max(id) from t") == [(1_001, 1, 5_000)]
        assert asked(host, "select nextval('t_id_seq')") == [(1_001,)]


def test_rights(tmp_path: Path) -> None:
    with serving(tmp_path) as host:
        asked(
            host,
            "create role bob login",
            "create table t (id serial, v int)",
            "grant select, insert on t to bob",
            "select 1",
        )
        with psycopg.connect(host.dsn("bob"), autocommit=True) as bob:
            denied = "permission denied for sequence t_id_seq"
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=denied):
                bob.execute("insert into t (v) values (1)")
            asked(host, "grant usage on sequence t_id_seq to bob", "select 1")
            bob.execute("insert into t (v) values (1)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=denied):
                bob.execute("select setval('t_id_seq', 9)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner"):
                bob.execute("alter sequence t_id_seq restart")
