"""ALTER SECRET and ALTER CONNECTION: running sources take the new value (`run.ddl_rotate`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import NoonmarkError
from support.neighbour.servers import PostgresServer, server_folder, start_postgres
from support.serve.reading import Conversation, connect, database

pytestmark = pytest.mark.server
ASKS = "".join(
    f"host {what} keeper 127.0.0.1/32 scram-sha-256\n" for what in ("all", "replication")
)


@pytest.fixture(scope="module")
def strict() -> Iterator[PostgresServer]:
    """A PostgreSQL that asks one user for a password."""
    with server_folder("pg") as folder, start_postgres(folder) as server:
        rules = Path(folder) / "data" / "pg_hba.conf"
        rules.write_text(ASKS + rules.read_text())
        run(
            server,
            "create role keeper superuser replication login password 'one'",
            "select pg_reload_conf()",
            "create table t (a int primary key)",
            "insert into t values (1)",
            "create publication p for all tables",
        )
        yield server


def run(server: PostgresServer, *statements: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for sql in statements:
            connection.execute(sql.encode())


async def until(client: Conversation, query: str, wanted: Any) -> None:
    found = None
    for _ in range(400):
        found = await client.ask(query)
        if found == wanted:
            return
        await SYSTEM.sleep(0.05)
    raise AssertionError(f"{query}: {found}")


STATUS = "select status from mz_internal.mz_source_statuses where name = 's'"


def test_a_running_source_takes_a_new_password(
    strict: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOONMARK_SECRET_KEY", "k")

    async def body() -> None:
        async with asyncio.timeout(90), database() as opened:
            client = await connect(opened)
            await client.ask("create secret pw as 'one'")
            await client.ask(
                f"create connection pg to postgres (host '127.0.0.1', port {strict.port}, "
                "user 'keeper', password secret pw, database 'postgres')"
            )
            await client.ask(
                "create source s from postgres connection pg (publication 'p') for all tables"
            )
            await until(client, "select * from t", [(1,)])
            ends = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'keeper'"
            run(strict, "alter role keeper password 'two'", ends, "insert into t values (2)")
            await until(client, STATUS, [("stalled",)])
            assert await client.ask("alter secret pw as 'two'") == "ALTER SECRET"
            await until(client, "select * from t order by 1", [(1,), (2,)])
            # A place that is none, and back: with other options of the same connection.
            assert await client.ask("alter connection pg set (port = 1)") == "ALTER CONNECTION"
            await until(client, STATUS, [("stalled",)])
            run(strict, "insert into t values (3)")
            with pytest.raises(NoonmarkError):
                await client.ask("alter connection pg set (port = 2) with (validate)")
            with pytest.raises(NoonmarkError, match="takes a secret"):
                await client.ask("alter connection pg set (password = 'clear')")
            await client.ask(f"alter connection pg set (port = {strict.port}) with (validate)")
            await until(client, "select count(*) from t", [(3,)])
            (shown,) = await client.ask("show create connection pg")
            assert f"PORT = '{strict.port}'" in shown[1]
            assert "PASSWORD = SECRET public.pw" in shown[1]
            await client.ask("drop source s")

    asyncio.run(body())
