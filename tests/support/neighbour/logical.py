"""A PostgreSQL upstream for sources: a fresh database for each test, and an end to its slots."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from noonmark.clock import SYSTEM
from support.neighbour.servers import PostgresServer

if TYPE_CHECKING:
    from noonmark.source.impl.postgres import Postgres

SLOT = "noonmark_test"


@dataclass(frozen=True)
class Upstream:
    """One database, and a session in it."""

    url: str
    name: str
    session: psycopg.Connection[tuple[Any, ...]]

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each in a transaction of its own; the rows of the last one."""
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            made = self.session.execute(statement.encode())
            rows = made.fetchall() if made.description else []
        return rows

    def source(self, *tables: str, slot: str = SLOT) -> Postgres:
        """A source over publication `p`."""
        from noonmark.source.impl.postgres import create

        wanted = [("public", table) for table in tables] or None
        return asyncio.run(create(self.url, "p", f"{slot}_{self.name[-12:]}", wanted))

    def lsn(self) -> int:
        """The end of the log."""
        return int(self.run("select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")[0][0])


@pytest.fixture
def upstream(postgres_server: PostgresServer) -> Iterator[Upstream]:
    """A fresh database with publication `p` for all of its tables."""
    with fresh_upstream(postgres_server) as made:
        yield made


@contextmanager
def fresh_upstream(postgres_server: PostgresServer) -> Iterator[Upstream]:
    """A database that is dropped in the end, with all its slots."""
    name = f"u_{SYSTEM.fresh_id()}"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute(f"create database {name}".encode())
        url = f"{postgres_server.dsn.rpartition('/')[0]}/{name}"
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("set timezone = 'UTC'")
            session.execute("create publication p for all tables")
            yield Upstream(url, name, session)
        slots = "from pg_replication_slots where database = %s"
        admin.execute(
            f"select pg_terminate_backend(active_pid) {slots} and active_pid is not null".encode(),
            (name,),
        )
        for _ in range(200):
            try:
                admin.execute(
                    f"select pg_drop_replication_slot(slot_name) {slots}".encode(), (name,)
                )
                break
            except psycopg.errors.ObjectInUse:
                admin.execute("select pg_sleep(0.02)")
        admin.execute(f"drop database {name} with (force)".encode())
