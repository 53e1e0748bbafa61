"""ALTER SOURCE ... REFRESH TABLE under kill -9 of the process, and after a crash of upstream.

Upstream goes on meanwhile. A refresh whose process was killed is undone, and then said again, or is
finished by the next process; either way the tables are what they are upstream, also later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from support.ingest.exact_upstream import crash
from support.kill.kills import Lines, running
from support.neighbour.servers import PostgresServer, server_folder, start_postgres

TABLES = ("a", "b")
FAULT = (
    "alter table a drop column word",
    "alter table a add column word text",
    "update a set word = 'again'",
)
REFRESH = b"alter source s refresh table a"


@dataclass
class World:
    """A server of ours in a process, and upstream's own."""

    folder: Path
    server: PostgresServer
    crash: Callable[[], None]
    words: int = 0

    def upstream(self, *statements: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.dsn, autocommit=True) as session:
            for statement in statements:
                made = session.execute(statement.encode())
            return made.fetchall() if made.description else []

    def change(self) -> None:
        """Something that the tables have to follow."""
        self.words += 1
        self.upstream(
            f"insert into a values ({100 + self.words}, 'w{self.words}')",
            f"update b set word = 'w{self.words}' where id = {self.words % 2}",
            f"delete from a where id = {98 + self.words}",
        )

    @contextmanager
    def serving(self) -> Iterator[tuple[Any, Lines, psycopg.Connection[Any]]]:
        with running("strict.server", self.folder) as (child, lines):
            port = lines.read(60)
            assert port is not None, f"a server did not start: {child.poll()}"
            where = f"host=127.0.0.1 port={port} user=me dbname=noonmark"
            with closing(psycopg.connect(where, autocommit=True)) as session:
                session.execute("set real_time_recency = on")
                yield child, lines, session

    def is_same(self, session: psycopg.Connection[Any]) -> bool:
        for table in TABLES:
            query = f"select id, word from {table} order by id"
            assert session.execute(query.encode()).fetchall() == self.upstream(query), table
        return True


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with server_folder("refresh") as folder, ExitStack() as stack:
        server = stack.enter_context(start_postgres(folder))
        made = World(tmp_path / "location", server, lambda: crash(stack, folder, server.port))
        made.upstream(
            "create table a (id int primary key, word text)",
            "create table b (id int primary key, word text)",
            "insert into a select i, 'old' from generate_series(1, 99) i",
            "insert into b values (0, 'zero'), (1, 'one')",
            "create publication q for table a, b",
        )
        with made.serving() as (_, _lines, session):
            parts = urlsplit(server.dsn)
            session.execute(
                f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
                "user 'postgres', database 'postgres')".encode()
            )
            session.execute(
                "create source s from postgres connection pg (publication 'q') for all tables"
            )
            assert made.is_same(session)
        yield made


def _refresh(session: psycopg.Connection[Any]) -> None:
    try:
        session.execute(REFRESH)
    except psycopg.Error:
        return  # one of the two servers was killed


def _until_answered(session: psycopg.Connection[Any], lines: Lines) -> str:
    """What became of a refresh: "finished", or the error that stands again."""
    for _ in range(400):
        try:
            session.execute("select count(*) from a")
        except psycopg.Error as error:
            pending = "select count(*) from noonmark.shards where name like 'staging%'"
            if session.execute(pending).fetchall() == [(0,)]:
                return error.sqlstate or ""
        else:
            return "finished"
        lines.read(0.05)
    raise AssertionError("what was pending never ended")


@pytest.mark.slow
def test_a_refresh_that_was_killed_is_undone_or_finished(world: World) -> None:
    outcomes = []
    for life_s in (0.0, 0.4, None):
        with world.serving() as (child, lines, session):
            if life_s != 0.0:
                outcomes.append(_until_answered(session, lines))
                if outcomes[-1] != "finished":
                    session.execute(REFRESH)
                assert world.is_same(session)
                world.change()
                assert world.is_same(session)
            if life_s is None:
                break
            world.upstream(*FAULT)
            with pytest.raises(psycopg.Error, match="given another type upstream"):
                session.execute("select * from a")
            asking = threading.Thread(target=_refresh, args=(session,))
            asking.start()
            lines.read(life_s)
            child.kill()
            child.wait()
            asking.join()
        world.change()
    assert outcomes[0] == "55000", "killed before anything was durable"
    slots = "select count(*) from pg_replication_slots"
    assert world.upstream(slots) == [(1,)], "what a killed process held upstream is gone"


@pytest.mark.slow
def test_a_table_is_refreshed_after_upstream_crashed(world: World) -> None:
    with world.serving() as (_, lines, session):
        world.upstream(*FAULT)
        with pytest.raises(psycopg.Error, match="given another type upstream"):
            session.execute("select * from a")
        world.crash()
        world.change()
        session.execute(REFRESH)
        assert world.is_same(session)
        # Crashed while it is refreshed: it is refused, or goes on, and can be said again.
        world.upstream(*FAULT)
        with pytest.raises(psycopg.Error, match="given another type upstream"):
            session.execute("select * from a")
        asking = threading.Thread(target=_refresh, args=(session,))
        asking.start()
        lines.read(0.1)
        world.crash()
        asking.join()
        world.change()
        if _until_answered(session, lines) != "finished":
            session.execute(REFRESH)
        assert world.is_same(session)
        world.change()
        assert world.is_same(session)
