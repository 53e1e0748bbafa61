"""The log in PostgreSQL when connections, rights and servers go (`persist.impl.postgres`)."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import Determinate, Indeterminate, MissingObject, StorageUnfit
from noonmark.persist.impl.postgres import PostgresConsensus
from support.neighbour.servers import PostgresServer, free_ports


def end_sessions(server: PostgresServer) -> None:
    """What a restart does to every other session."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where pid <> pg_backend_pid() and backend_type = 'client backend'"
        )


def test_a_handle_outlives_its_connection(postgres_server: PostgresServer) -> None:
    async def body() -> None:
        log = PostgresConsensus(postgres_server.consensus_url(SYSTEM.fresh_id()))
        assert await log.append(1, b"one")
        end_sessions(postgres_server)
        assert await log.head() == 1
        end_sessions(postgres_server)
        assert await log.read(1, 9) == [b"one"]
        end_sessions(postgres_server)
        with pytest.raises(Indeterminate):
            await log.append(2, b"two")
        seqno = await log.head() + 1
        assert await log.append(seqno, b"again")
        assert (await log.read(1, 9))[-1] == b"again"
        await log.close()

    asyncio.run(body())


def test_logs_in_one_database_do_not_meet(postgres_server: PostgresServer) -> None:
    async def body() -> None:
        one, two = (
            PostgresConsensus(postgres_server.consensus_url(SYSTEM.fresh_id())) for _ in range(2)
        )
        assert await one.append(1, b"one")
        assert await two.head() == 0
        assert await two.append(1, b"two")
        await one.truncate(2)
        assert await two.read(1, 9) == [b"two"]
        with pytest.raises(MissingObject):
            await one.read(1, 9)
        await one.close()
        await two.close()

    asyncio.run(body())


def test_no_server_means_that_nothing_happened() -> None:
    url = f"postgres://me:hush@127.0.0.1:{free_ports(1)[0]}/db?location=a"

    async def body() -> None:
        log = PostgresConsensus(url)
        for call in (lambda: log.append(1, b""), log.head, lambda: log.read(1, 1)):
            with pytest.raises(Determinate) as caught:
                await call()
            assert "hush" not in str(caught.value)
        await log.close()

    asyncio.run(body())


def test_a_read_only_server_and_a_missing_database_are_unfit(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.consensus_url(SYSTEM.fresh_id())

    async def body() -> None:
        read_only = "&options=-c%20default_transaction_read_only%3Don"
        missing = url.replace("/postgres?", "/nowhere?")
        for bad in (url + read_only, missing):
            log = PostgresConsensus(bad)
            with pytest.raises(StorageUnfit) as caught:
                await log.append(1, b"")
            assert caught.value.hint
            await log.close()

    asyncio.run(body())


def test_a_commit_is_on_disk_also_where_the_server_would_not_wait(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.consensus_url(SYSTEM.fresh_id())

    async def body() -> None:
        log = PostgresConsensus(f"{url}&options=-c%20synchronous_commit%3Doff")
        await log.head()
        assert log._connection is not None
        row = await (await log._connection.execute("show synchronous_commit")).fetchone()
        assert row == ("on",)
        await log.close()

    asyncio.run(body())
