"""A sink over a table that cannot be followed any more: it waits, says so, and goes on once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from noonmark.clock import SYSTEM
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream
from support.serve.reading import Conversation, connect, database

STATUS = "select status, error from mz_internal.mz_sink_statuses where name = 'k'"


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def applied(records: list[Any]) -> dict[int, str]:
    """The rows that the messages make, each of which begins with what the last one ended with."""
    found: dict[int, str] = {}
    for each in records:
        key, said = json.loads(each.key())["id"], json.loads(each.value())
        assert (said["before"] or {}).get("word") == found.get(key), "lost, or sent twice"
        if said["after"] is None:
            del found[key]
        else:
            found[key] = said["after"]["word"]
    return found


async def until_status(client: Conversation, wanted: str) -> str:
    for _ in range(300):
        ((status, error),) = await client.ask(STATUS)
        if status == wanted:
            return str(error)
        await SYSTEM.sleep(0.1)
    raise AssertionError(f"the sink is {status}: {error}")


async def until_sent(kafka: KafkaServer, topic: str, wanted: dict[int, str]) -> int:
    """How many messages there are once they make these rows."""
    for _ in range(300):
        records = await asyncio.to_thread(kafka.committed_records, topic)
        if applied(records) == wanted:
            return len(records)
        await SYSTEM.sleep(0.1)
    raise AssertionError(f"the topic has {applied(records)}")


def test_a_sink_waits_for_the_end_of_an_error_and_goes_on_exactly_once(
    upstream: Upstream, kafka_server: KafkaServer, tmp_path: Path
) -> None:
    topic, url = f"errors-{SYSTEM.fresh_id()}", str(tmp_path / "location")
    upstream.run(
        "create table a (id int primary key, word text)",
        "insert into a values (1, 'one'), (2, 'two')",
    )
    parts = urlsplit(upstream.url)

    async def first() -> int:
        async with asyncio.timeout(120), database(url) as opened:
            client = await connect(opened)
            for statement in (
                f"create connection pg to postgres (host '{parts.hostname}', port {parts.port}, "
                f"user '{parts.username}', database '{upstream.name}')",
                f"create connection c to kafka (broker '{kafka_server.bootstrap}')",
                "create source s from postgres connection pg (publication 'p') for tables (a)",
                f"create sink k from a into kafka connection c (topic '{topic}') key (id) "
                "format json envelope debezium",
            ):
                await client.ask(statement)
            await until_sent(kafka_server, topic, {1: "one", 2: "two"})
            upstream.run("update a set word = 'uno' where id = 1")
            sent = await until_sent(kafka_server, topic, {1: "uno", 2: "two"})
            upstream.run("alter table a drop column word", "alter table a add column word text")
            assert "dropped, renamed or given another type" in await until_status(client, "stalled")
            return sent

    async def second(before: int) -> None:
        """Taken up by another process, it still waits; then what happened meanwhile follows."""
        async with asyncio.timeout(120), database(url) as opened:
            client = await connect(opened)
            assert "dropped, renamed or given another type" in await until_status(client, "stalled")
            upstream.run(
                "update a set word = 'dos' where id = 2",
                "delete from a where id = 1",
                "insert into a values (3, 'three')",
            )
            await client.ask("alter source s refresh table a")
            assert await until_sent(kafka_server, topic, {2: "dos", 3: "three"}) == before + 3
            await until_status(client, "running")
            upstream.run("update a set word = 'four' where id = 3")
            assert await until_sent(kafka_server, topic, {2: "dos", 3: "four"}) == before + 4

    asyncio.run(second(asyncio.run(first())))
