"""Kafka and PostgreSQL through SQL: connections, secrets, sources, a join of both, and restarts."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fastavro
import pytest

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError, DependentObjects, NameTaken, UndefinedObject
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream
from support.neighbour.registry import RegistryServer
from support.serve.reading import Conversation, connect, database

SENTINEL = "SENTINEL-do-not-show"


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NOONMARK_SECRET_KEY", raising=False)


def run(body: Callable[[Conversation, Database], Awaitable[None]], url: str = "") -> None:
    async def go() -> None:
        async with asyncio.timeout(90), database(url) as opened:
            await body(await connect(opened), opened)

    asyncio.run(go())


async def until(client: Conversation, query: str, wanted: Any) -> None:
    """Ask again until the answer is the one; the test's own time limit ends it."""
    found = await client.ask(query)
    for _ in range(300):
        if found == wanted:
            return
        await SYSTEM.sleep(0.05)
        found = await client.ask(query)
    assert found == wanted


async def connect_postgres(client: Conversation, upstream: Upstream) -> None:
    parts = urlsplit(upstream.url)
    await client.ask(f"create secret pg_password as '{SENTINEL}'")
    await client.ask(
        f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
        f"user '{parts.username}', password secret pg_password, database '{upstream.name}')"
    )


@asynccontextmanager
async def no_slots(upstream: Upstream) -> AsyncIterator[None]:
    yield
    query = f"select count(*) from pg_replication_slots where database = '{upstream.name}'"
    assert upstream.run(query) == [(0,)]


def test_a_publication_becomes_tables(upstream: Upstream) -> None:
    upstream.run(
        "create table a (id int primary key, word text)",
        "create table b (n int)",
        "alter table b replica identity full",
        "insert into a values (1, 'one')",
    )

    async def body(client: Conversation, _: Database) -> None:
        await connect_postgres(client, upstream)
        assert await client.ask("validate connection pg") == "VALIDATE CONNECTION"
        made = await client.ask(
            "create source s from postgres connection pg (publication 'p') for all tables"
        )
        assert made == "CREATE SOURCE"
        await until(client, "select * from a", [(1, "one")])
        upstream.run("update a set word = 'uno'", "insert into b values (7)")
        await until(client, "select * from a", [(1, "uno")])
        await until(client, "select * from b", [(7,)])
        assert await client.ask("select count(*) from s_errors") == [(0,)]
        with pytest.raises(DependentObjects):
            await client.ask("drop connection pg")
        with pytest.raises(NameTaken):
            await client.ask(
                "create source t from postgres connection pg (publication 'p') for all tables"
            )
        async with no_slots(upstream):
            await client.ask("drop source s")

    run(body)


def test_truncate_upstream_is_seen_by_every_read(upstream: Upstream) -> None:
    upstream.run(
        "create table a (id int primary key, word text)",
        "create table b (id int, word text)",
        "alter table b replica identity full",
        *(f"insert into {t} select i, 'w' from generate_series(1, 20000) i" for t in "ab"),
    )

    async def body(client: Conversation, _: Database) -> None:
        await connect_postgres(client, upstream)
        await client.ask(
            "create source s from postgres connection pg (publication 'p') for all tables"
        )
        await client.ask("create view v as select count(*) as n from a join b using (id)")
        client.session.variables["real_time_recency"] = "on"
        client.session.variables["real_time_recency_timeout"] = "60000"
        counts = "select (select count(*) from a), (select count(*) from b), (select n from v)"
        assert await client.ask(counts) == [(20000, 20000, 20000)]
        assert await client.ask("select word from a where id = 7") == [("w",)]
        upstream.run("truncate a, b", "insert into a values (7, 'x')")
        assert await client.ask(counts) == [(1, 0, 0)]
        assert await client.ask("select * from a") == [(7, "x")]
        upstream.run("insert into b values (7, 'y')", "truncate a", "insert into a values (7, 'z')")
        assert await client.ask(counts) == [(1, 1, 1)]
        assert await client.ask("select * from a where id = 7") == [(7, "z")]
        assert await client.ask("select count(*) from s_errors") == [(0,)]

    run(body)


def test_chosen_tables_under_other_names_and_what_is_refused(upstream: Upstream) -> None:
    upstream.run("create table a (id int primary key)", "create table b (id int primary key)")

    async def body(client: Conversation, _: Database) -> None:
        await connect_postgres(client, upstream)
        source = "create source s from postgres connection pg (publication 'p')"
        with pytest.raises(Exception, match="FOR ALL TABLES"):
            await client.ask(source)
        with pytest.raises(Exception, match=r"no table public\.nothing"):
            await client.ask(f"{source} for tables (nothing)")
        with pytest.raises(UndefinedObject, match='connection "nowhere"'):
            await client.ask(
                "create source s from postgres connection nowhere (publication 'p') for all tables"
            )
        await client.ask(f"{source} for tables (public.a as mine)")
        upstream.run("insert into a values (1)", "insert into b values (1)")
        await until(client, "select * from mine", [(1,)])
        with pytest.raises(Exception, match="b"):
            await client.ask("select * from b")
        async with no_slots(upstream):
            await client.ask("drop source s cascade")

    run(body)


def test_a_consistent_read_sees_what_postgres_has_acknowledged(upstream: Upstream) -> None:
    upstream.run("create table a (id int primary key)")

    async def body(client: Conversation, _: Database) -> None:
        await connect_postgres(client, upstream)
        await client.ask(
            "create source s from postgres connection pg (publication 'p') for all tables"
        )
        await until(client, "select count(*) from a", [(0,)])
        await client.ask("set real_time_recency = on")
        for step in range(1, 20):
            upstream.run(f"insert into a values ({step})")
            assert await client.ask("select count(*) from a") == [(step,)]

    run(body)


def test_a_topic_joined_with_a_table_survives_a_restart(
    upstream: Upstream, kafka_server: KafkaServer, tmp_path: Path
) -> None:
    topic = f"t-{SYSTEM.fresh_id()}"
    kafka_server.make_topic(topic, 2)
    upstream.run(
        "create table customer (id int primary key, name text)",
        "insert into customer values (1, 'ann'), (2, 'bob')",
    )
    url = str(tmp_path / "data")
    joined = "select name, cents from customer join orders on customer.id = orders.customer"

    def order(number: int, customer: int, cents: int) -> dict[str, Any]:
        value = json.dumps({"customer": customer, "cents": cents}).encode()
        return {"key": json.dumps({"number": number}).encode(), "value": value}

    async def first(client: Conversation, _: Database) -> None:
        await connect_postgres(client, upstream)
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        await client.ask("validate connection k")
        await client.ask(
            "create source s from postgres connection pg (publication 'p') for all tables"
        )
        await client.ask(
            "create source orders (number int not null, customer int, cents int, primary key "
            f"(number)) from kafka connection k (topic '{topic}') key format json value format "
            "json envelope upsert"
        )
        kafka_server.send(topic, [order(1, 1, 100), order(2, 2, 50), order(1, 1, 70)])
        await client.ask("set real_time_recency = on")
        assert sorted(await client.ask(joined)) == [("ann", 70), ("bob", 50)]

    async def second(client: Conversation, _: Database) -> None:
        kafka_server.send(topic, [order(3, 2, 9), {"key": b'{"number": 2}', "value": None}])
        upstream.run("update customer set name = 'robert' where id = 2")
        await client.ask("set real_time_recency = on")
        assert sorted(await client.ask(joined)) == [("ann", 70), ("robert", 9)]
        statuses = "select name, status from mz_internal.mz_source_statuses order by name"
        assert ("orders", "running") in await client.ask(statuses)
        figures = "select offset_known, offset_committed from mz_internal.mz_source_statistics "
        await until(client, f"{figures} where name = 'orders'", [(5, 5)])
        rates = (
            "select messages_received, bytes_received > 20, offset_lag, lag_seconds < 30, "
            "messages_per_second > 0, bytes_per_second > 0 from mz_internal.mz_source_statistics"
        )
        # This process has read what came after the restart, and nothing else.
        assert await client.ask(f"{rates} where name = 'orders'") == [
            (2, True, 0, True, True, True)
        ]

    run(first, url)
    run(second, url)


def test_a_secret_is_shown_nowhere(
    upstream: Upstream, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    upstream.run("create table a (id int primary key)")
    url = str(tmp_path / "data")
    shown: list[Any] = []

    async def body(client: Conversation, _: Database) -> None:
        await connect_postgres(client, upstream)
        await client.ask(
            "create source s from postgres connection pg (publication 'p') for all tables"
        )
        await client.ask(
            "create connection bad to postgres (host '127.0.0.1', port 1, "
            "password secret pg_password)"
        )
        for statement in (
            "validate connection bad",
            "create source x from postgres connection bad (publication 'p') for all tables",
            "create connection plain to postgres (host 'h', password 'plain')",
        ):
            with pytest.raises(Exception) as refused:  # noqa: PT011 - only its text matters
                await client.ask(statement)
            shown.append(str(refused.value))
        shown.append(await client.ask("show secrets"))
        shown.append(await client.ask("show create connection pg"))
        shown.append(await client.ask("show connections"))
        shown.append(await client.ask("select * from mz_internal.mz_source_statuses"))
        await client.ask("drop source s cascade")

    run(body, url)
    assert SENTINEL not in repr(shown)
    assert SENTINEL not in "".join(capfd.readouterr())
    stored = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
    assert stored
    assert not any(SENTINEL.encode() in file.read_bytes() for file in stored)


def test_without_the_key_a_secret_stays_closed(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "data")

    async def first(client: Conversation, _: Database) -> None:
        await connect_postgres(client, upstream)

    async def second(client: Conversation, _: Database) -> None:
        with pytest.raises(ConfigError, match="sealed with another key"):
            await client.ask("validate connection pg")

    run(first, url)
    monkeypatch.setenv("NOONMARK_SECRET_KEY", "another")
    run(second, url)


def test_passwords_are_secrets(upstream: Upstream) -> None:
    del upstream

    async def body(client: Conversation, _: Database) -> None:
        with pytest.raises(ConfigError, match="PASSWORD takes a secret"):
            await client.ask("create connection c to postgres (host 'h', password 'p')")
        with pytest.raises(ConfigError, match="has no option COLOUR"):
            await client.ask("create connection c to kafka (broker 'h', colour 'red')")
        with pytest.raises(ConfigError, match="needs BROKER"):
            await client.ask("create connection c to kafka (security protocol 'ssl')")

    run(body)


def datum(schema: str, value: Any, number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), value)
    return b"\0" + number.to_bytes(4) + out.getvalue()


def test_avro_with_a_registry(kafka_server: KafkaServer, registry_server: RegistryServer) -> None:
    topic = f"t-{SYSTEM.fresh_id()}"
    kafka_server.make_topic(topic)
    fields = [{"name": "word", "type": ["null", "string"]}]
    value = json.dumps({"type": "record", "name": "v", "fields": fields})
    key = json.dumps({"type": "record", "name": "k", "fields": [{"name": "id", "type": "long"}]})
    registry_server.give(f"{topic}-value", value)
    registry_server.give(f"{topic}-key", key)
    kafka_server.send(
        topic,
        [
            {"key": datum(key, {"id": 1}, 2), "value": datum(value, {"word": "a"}, 1)},
            {"key": datum(key, {"id": 2}, 2), "value": datum(value, {"word": None}, 1)},
            {"key": datum(key, {"id": 1}, 2), "value": datum(value, {"word": "b"}, 1)},
        ],
    )

    async def body(client: Conversation, _: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        url = registry_server.url
        await client.ask(f"create connection r to confluent schema registry (url '{url}')")
        await client.ask(
            f"create source s from kafka connection k (topic '{topic}') format avro using "
            "confluent schema registry connection r envelope upsert"
        )
        await until(client, "select * from s order by id", [(1, "b"), (2, None)])
        await client.ask(
            f"create source inline from kafka connection k (topic '{topic}') format avro using "
            f"schema '{value}' include offset"
        )
        rows = [("a", 0), (None, 1), ("b", 2)]
        await until(client, 'select * from inline order by "offset"', rows)
        with pytest.raises(DependentObjects):
            await client.ask("drop connection r")

    run(body)


def test_a_registry_is_validated(registry_server: RegistryServer) -> None:
    url, registry_server.password = registry_server.url, SENTINEL

    async def body(client: Conversation, _: Database) -> None:
        await client.ask("create secret wrong as 'wrong'")
        await client.ask(f"create secret right as '{SENTINEL}'")
        for name in ("wrong", "right"):
            await client.ask(
                f"create connection {name}_r to confluent schema registry "
                f"(url '{url}', username 'user', password secret {name})"
            )
        assert await client.ask("validate connection right_r") == "VALIDATE CONNECTION"
        with pytest.raises(ConfigError, match="answers 401") as refused:
            await client.ask("validate connection wrong_r")
        assert SENTINEL not in str(refused.value)
        nobody = "create connection n to confluent schema registry (url 'http://127.0.0.1:1')"
        with pytest.raises(ConfigError, match="does not answer"):
            await client.ask(f"{nobody} with (validate = true)")

    run(body)


def test_headers_are_columns(kafka_server: KafkaServer) -> None:
    topic = f"t-{SYSTEM.fresh_id()}"
    kafka_server.make_topic(topic)
    records: list[dict[str, Any]] = [
        {"value": b"1", "headers": [("a", b"x"), ("b", None), ("a", b"y")]},
        {"value": b"2"},
        {"value": b"3", "headers": [("a", b"\xff")]},
    ]
    kafka_server.send(topic, records)

    async def body(client: Conversation, _: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        await client.ask(
            f"create source t from kafka connection k (topic '{topic}') format text "
            "include header 'a' as a, header 'a' as raw bytes"
        )
        await until(client, "select * from t order by 1", [("1", "y", b"y"), ("2", None, None)])
        wrong = await client.ask("select value, reason from t_errors")
        assert wrong == [(b"3", 'header "a": not text in UTF-8')]
        await client.ask(
            f"create source h from kafka connection k (topic '{topic}') format text include headers"
        )
        count = "select text, cardinality(headers), (headers[1]).key, (headers[3]).value from h"
        rows = [("1", 3, "a", b"y"), ("2", 0, None, None), ("3", 1, "a", None)]
        await until(client, f"{count} order by 1", rows)

    run(body)


def test_debezium_in_avro(kafka_server: KafkaServer) -> None:
    topic = f"t-{SYSTEM.fresh_id()}"
    kafka_server.make_topic(topic)
    image = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "int"}]}
    fields = [
        {"name": "before", "type": ["null", image]},
        {"name": "after", "type": ["null", "row"]},
        {"name": "op", "type": "string"},
    ]
    schema = json.dumps({"type": "record", "name": "envelope", "fields": fields})
    changes = [
        {"before": None, "after": {"id": 1}, "op": "c"},
        {"before": None, "after": {"id": 2}, "op": "c"},
        {"before": {"id": 1}, "after": {"id": 3}, "op": "u"},
    ]
    kafka_server.send(topic, [{"value": datum(schema, each, 1)} for each in changes])

    async def body(client: Conversation, _: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        await client.ask(
            f"create source s from kafka connection k (topic '{topic}') format avro using "
            f"schema '{schema}' envelope debezium"
        )
        await until(client, "select * from s order by id", [(2,), (3,)])

    run(body)
