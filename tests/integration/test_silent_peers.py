"""A peer outside that does not answer stops nobody (`noonmark.peer`).

There are more of them than any pool has threads. Each object that needs one is dropped, and
everybody else's DDL, writes, strict reads and files are answered, within seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from noonmark import peer
from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError, QueryCanceled
from support.neighbour.kafka import KafkaServer, start_kafka
from support.neighbour.logical import Upstream, fresh_upstream
from support.neighbour.servers import server_folder, start_postgres
from support.neighbour.silence import black_hole, stopped
from support.serve.process import serving
from support.serve.reading import Conversation, connect, database

pytestmark = [pytest.mark.server, pytest.mark.alone]

#: More than the default executor of a loop has threads.
MANY = min(32, (os.cpu_count() or 1) + 4) + 2
#: The law's: GRACE_S for what is under way, the same for what it holds, and a busy machine.
SOON_S = 3.0


async def everybody_is_answered(opened: Database, folder: Path) -> None:
    """Others' DDL, writes, strict reads and files, while peers are silent."""
    (folder / "more.txt").write_text("one\n")
    client = await connect(opened)
    for statement in (
        "create table others (id int not null primary key)",
        "insert into others values (1)",
        "create view v as select count(*) as n from others",
        f"create source f from files '{folder}/*.txt' format text",
    ):
        async with asyncio.timeout(SOON_S):
            await client.ask(statement)
    async with asyncio.timeout(SOON_S):
        assert await client.ask("select n from v") == [(1,)]
    async with asyncio.timeout(2 * SOON_S):
        await client.ask("set real_time_recency = on")
        assert await client.ask("select count(*) from f") == [(1,)]
        await client.ask("set real_time_recency = off")
    for statement in ("drop source f", "drop view v", "drop table others"):
        async with asyncio.timeout(SOON_S):
            await client.ask(statement)


@asynccontextmanager
async def closed_soon(url: str) -> AsyncIterator[Database]:
    """A database whose end is within its time, too."""
    async with database(url) as opened:
        yield opened
        began = SYSTEM.monotonic()
    assert SYSTEM.monotonic() - began < 2 * SOON_S


def test_sinks_whose_brokers_say_nothing_stop_nobody(tmp_path: Path) -> None:
    async def go(port: int) -> None:
        async with closed_soon(str(tmp_path / "data")) as opened:
            client = await connect(opened)
            await client.ask(f"create connection k to kafka (broker '127.0.0.1:{port}')")
            await client.ask("create table t (id int not null)")
            await client.ask("insert into t values (1)")
            for number in range(2 * MANY):
                await client.ask(
                    f"create sink s{number} from t into kafka connection k (topic 'x')"
                    " envelope debezium"
                )
            await opened.clock.sleep(1)
            (tmp_path / "files").mkdir()
            await everybody_is_answered(opened, tmp_path / "files")
            before = peer.abandoned()["sink"]
            for number in range(MANY):
                async with asyncio.timeout(SOON_S):
                    await client.ask(f"drop sink s{number}")
            assert peer.abandoned()["sink"] > before, "they are counted"
            assert peer.silent()["sink"] > 0

    with black_hole() as port:
        asyncio.run(go(port))


def test_sources_whose_postgres_is_stopped_stop_nobody(tmp_path: Path) -> None:
    async def go(upstream: Upstream, process: int) -> None:
        async with closed_soon(str(tmp_path / "data")) as opened:
            client = await connect(opened)
            await client.ask(connection_to(upstream))
            for number in range(MANY):
                await client.ask(
                    f"create source s{number} from postgres connection k (publication 'p')"
                    f" for tables (t as t{number})"
                )
            for number in range(MANY):
                await until(client, f"select count(*) from t{number}", [(1,)])
            (tmp_path / "files").mkdir()
            with stopped(process):
                await opened.clock.sleep(2.5)
                await everybody_is_answered(opened, tmp_path / "files")
                for number in range(MANY - 1):
                    await dropped_soon(client, f"s{number}")
                async with asyncio.timeout(SOON_S):
                    await client.ask("alter connection k set (ssl_mode = 'disable')")
            # What the drops asked for is done once upstream answers again.
            await happens(lambda: len(upstream.run("select 1 from pg_replication_slots")) == 1)
            await happens(lambda: not peer.silent().total())

    with (
        server_folder("pg") as folder,
        start_postgres(folder) as server,
        fresh_upstream(server) as upstream,
    ):
        upstream.run(
            "create table t (id int primary key)",
            "insert into t values (1)",
        )
        asyncio.run(go(upstream, server.process))


def test_sources_and_sinks_whose_kafka_is_stopped_stop_nobody(
    tmp_path: Path, kafka_jars: Path
) -> None:
    async def go(kafka: KafkaServer) -> None:
        async with closed_soon(str(tmp_path / "data")) as opened:
            client = await connect(opened)
            await client.ask(f"create connection k to kafka (broker '{kafka.bootstrap}')")
            await client.ask("create table t (id int not null)")
            for number in range(MANY):
                await client.ask(
                    f"create source s{number} from kafka connection k (topic 'in') format text"
                )
            await client.ask(
                "create sink k1 from t into kafka connection k (topic 'out') envelope debezium"
            )
            for number in range(MANY):
                await until(client, f"select count(*) from s{number}", [(1,)])
            await client.ask("insert into t values (1)")
            await sent(kafka, "out", 1)
            (tmp_path / "files").mkdir()
            with stopped(kafka.process):
                await client.ask("insert into t values (2)")
                await opened.clock.sleep(2.5)
                await everybody_is_answered(opened, tmp_path / "files")
                for number in range(MANY):
                    await dropped_soon(client, f"s{number}")
                # The sink, in the midst of a transaction, is begun again.
                async with asyncio.timeout(SOON_S):
                    await client.ask("alter connection k set (security_protocol = 'plaintext')")
            await sent(kafka, "out", 2)
            await client.ask("insert into t values (3)")
            await sent(kafka, "out", 3)

    with server_folder("kafka") as folder, start_kafka(folder, kafka_jars) as kafka:
        kafka.make_topic("in")
        kafka.send("in", [{"value": b"one"}])
        asyncio.run(go(kafka))


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("kafka", "broker '127.0.0.1:{}'"),
        ("postgres", "host '127.0.0.1', port {}, user 'u', database 'd'"),
        ("confluent schema registry", "url 'http://127.0.0.1:{}'"),
    ],
)
def test_a_connection_that_is_validated_keeps_nobody_waiting(
    tmp_path: Path, kind: str, address: str
) -> None:
    async def go(port: int) -> None:
        async with closed_soon(str(tmp_path / "data")) as opened:
            where = address.format(port)
            many = [await connect(opened, statement_timeout="3s") for _ in range(MANY)]
            asking = [
                asyncio.ensure_future(
                    each.ask(f"create connection c{at} to {kind} ({where}) with (validate)")
                )
                for at, each in enumerate(many)
            ]
            await opened.clock.sleep(0.5)
            (tmp_path / "files").mkdir()
            await everybody_is_answered(opened, tmp_path / "files")
            async with asyncio.timeout(2 * SOON_S):
                found = await asyncio.gather(*asking, return_exceptions=True)
            assert {type(each) for each in found} <= {QueryCanceled, ConfigError}
            assert not list(opened.catalog.items("connection"))

    with black_hole() as port:
        asyncio.run(go(port))


def test_a_source_that_is_cancelled_while_its_slot_is_made_leaves_none(
    upstream: Upstream,
) -> None:
    async def go() -> None:
        async with database() as opened:
            client = await connect(opened, statement_timeout="1s")
            await client.ask(connection_to(upstream))
            making = client.ask(
                "create source s from postgres connection k (publication 'p') for all tables"
            )
            with psycopg.connect(upstream.url) as open_for_long:
                # A slot begins when every transaction that writes has ended.
                open_for_long.execute("insert into t values (2)")
                with pytest.raises(QueryCanceled):
                    await asyncio.wait_for(making, SOON_S)
            ours = "select 1 from pg_replication_slots where database = current_database()"
            await happens(lambda: not upstream.run(ours))
            await happens(lambda: not peer.silent().total())
            assert not upstream.run(ours)

    upstream.run("create table t (id int primary key)")
    asyncio.run(go())


def test_a_server_ends_while_its_peers_say_nothing(tmp_path: Path) -> None:
    with black_hole() as port, serving(tmp_path) as server:
        with server.connect() as client:
            client.execute(f"create connection k to kafka (broker '127.0.0.1:{port}')".encode())
            client.execute("create table t (id int not null)")
            for number in range(MANY):
                client.execute(
                    f"create sink s{number} from t into kafka connection k (topic 'x')"
                    " envelope debezium".encode()
                )
        stop = threading.Event()
        stop.wait(1)
        began = SYSTEM.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        assert SYSTEM.monotonic() - began < 2 * SOON_S


def connection_to(upstream: Upstream) -> str:
    found = psycopg.conninfo.conninfo_to_dict(upstream.url)
    return (
        f"create connection k to postgres (host '{found['host']}', port {found['port']},"
        f" user '{found['user']}', database '{found['dbname']}')"
    )


async def dropped_soon(client: Conversation, name: str) -> None:
    async with asyncio.timeout(SOON_S):
        assert await client.ask(f"drop source {name}") == "DROP SOURCE"


async def sent(kafka: KafkaServer, topic: str, count: int) -> None:
    """Wait until a topic has so many records; never more."""

    def there() -> bool:
        found = [each.value() for each in kafka.committed_records(topic)]
        assert len(found) <= count, "twice"
        return len(found) == count

    for _ in range(200):
        if await asyncio.to_thread(there):
            return
        await asyncio.sleep(0.2)
    raise AssertionError("it does not come")


async def until(client: Conversation, query: str, wanted: object) -> None:
    for _ in range(300):
        if await client.ask(query) == wanted:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(query)


async def happens(happened: Callable[[], bool]) -> None:
    for _ in range(300):
        if happened():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never happened")
