"""ALTER SOURCE ... REFRESH of a topic: one that was made again is read from its beginning."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError, DefiniteError, SerializationFailure, Unsupported
from noonmark.source.impl.kafka import client as kafka_client
from support.neighbour.kafka import KafkaServer, start_kafka
from support.neighbour.servers import server_folder
from support.serve.reading import Conversation, connect, database

REFRESH = "alter source s refresh"
COLUMNS = {
    "none": "(id int, word text) from kafka connection k (topic '{}') format json "
    "include partition as p, offset as o",
    "upsert": "(id int not null, word text, primary key (id)) "
    "from kafka connection k (topic '{}') key format json value format json envelope upsert",
    "debezium": "(id int, word text) from kafka connection k (topic '{}') format json "
    "envelope debezium",
}


@pytest.fixture
def topic() -> str:
    return f"refreshed-{SYSTEM.fresh_id()}"


@asynccontextmanager
async def opened(url: str = "", spark: Any = None) -> AsyncIterator[tuple[Conversation, Database]]:
    async with asyncio.timeout(240), database(url, spark) as made:
        patience = {"real_time_recency_timeout": "60s"}
        yield await connect(made, real_time_recency="on", **patience), made


async def create(client: Conversation, kafka: KafkaServer, topic: str, envelope: str) -> None:
    await client.ask(f"create connection k to kafka (broker '{kafka.bootstrap}')")
    await client.ask(f"create source s {COLUMNS[envelope].format(topic)}")


def record(envelope: str, id: int, word: str | None, before: str | None = None) -> dict[str, Any]:
    """A row that is new, or changed from what it was, or gone."""
    row, old = ({"id": id, "word": each} for each in (word, before))
    if envelope == "none":
        return {"value": json.dumps(row)}
    if envelope == "upsert":
        value = None if word is None else json.dumps({"word": word})
        return {"key": json.dumps({"id": id}), "value": value}
    change = {"before": old if before else None, "after": row if word else None}
    return {"value": json.dumps({**change, "op": "u" if before else "c"})}


async def rows(client: Conversation, suffix: str = "") -> list[Any]:
    found: list[Any] = await client.ask(f"select id, word from s order by id, word {suffix}")
    return found


async def error(client: Conversation, query: str) -> DefiniteError:
    with pytest.raises(DefiniteError, match="was deleted and made again") as refused:
        await client.ask(query)
    return refused.value


BAD: dict[str, Any] = {"value": b"no JSON"}
BAD_KEYED: dict[str, Any] = {**BAD, "key": b'{"id": 7}'}


@pytest.fixture(
    params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["in place", "on Spark"]
)
def on_spark(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as little is read and compared, once as much is."""
    if request.param:
        monkeypatch.setattr("noonmark.ingest.engine.IN_PLACE_WEIGHT_MAX", -1)
        monkeypatch.setattr("noonmark.ingest.stage._IN_PLACE_BYTES_MAX", -1)


@pytest.mark.usefixtures("on_spark")
@pytest.mark.parametrize("envelope", COLUMNS)
def test_a_topic_made_again_is_read_anew_under_its_views(
    kafka_server: KafkaServer, topic: str, tmp_path: Path, spark: SparkSession, envelope: str
) -> None:
    kafka_server.make_topic(topic, 2)
    bad = BAD_KEYED if envelope == "upsert" else BAD
    old = [record(envelope, id, "old") for id in (1, 2, 3)]
    kafka_server.send(topic, [{**each, "partition": at % 2} for at, each in enumerate([*old, bad])])

    async def go() -> None:
        async with opened(str(tmp_path), spark) as (client, _):
            await create(client, kafka_server, topic, envelope)
            await client.ask(
                "create materialized view v as select word, count(*) as n from s group by word"
            )
            await client.ask(
                "create materialized view ends as select word, max(id) as most, count(*) as n "
                "from s group by word"
            )
            await client.ask("create materialized view best as select id from s order by 1 limit 1")
            assert await client.ask("select * from v") == [("old", 3)]
            assert await client.ask("select *, (select id from best) from ends") == [
                ("old", 3, 3, 1)
            ]
            text = repr(await client.ask("explain materialized view ends"))
            assert ("its own rows, of what only grows" in text) == (envelope == "none")
            assert len(await client.ask("select * from s_errors")) == 1
            kafka_server.remake_topic(topic)
            new = [record(envelope, 1, "new"), record(envelope, 4, "new"), bad]
            kafka_server.send(topic, new)
            found = await error(client, "select * from s")
            assert found.hint == "When upstream is in order, run: ALTER SOURCE s REFRESH;"
            await error(client, "select * from v")
            assert await client.ask(REFRESH) == "ALTER SOURCE"
            await _is_new(client, envelope)
            # The past is what it was: rows, the error.
            at = found.fields["time"]
            assert await rows(client, f"as of {at - 1}") == [(1, "old"), (2, "old"), (3, "old")]
            assert await client.ask(f"select * from v as of {at - 1}") == [("old", 3)]
            await error(client, f"select * from s as of {at}")
        async with opened(str(tmp_path), spark) as (client, _):
            await _is_new(client, envelope)
            await _goes_on(client, kafka_server, topic, envelope)
            # Once more: what comes then is compared with nothing of before.
            kafka_server.remake_topic(topic)
            kafka_server.send(topic, [record(envelope, 9, "newest")])
            await error(client, "select * from v")
            assert await client.ask(REFRESH) == "ALTER SOURCE"
            assert await rows(client) == [(9, "newest")]
            assert await client.ask("select * from v") == [("newest", 1)]
            # Also where rows were not expected to go.
            found = await client.ask("select *, (select id from best) from ends")
            assert found == [("newest", 9, 1, 9)]
            assert await client.ask("select * from s_errors") == []

    asyncio.run(go())


async def _is_new(client: Conversation, envelope: str) -> None:
    assert await rows(client) == [(1, "new"), (4, "new")]
    assert await client.ask("select * from v") == [("new", 2)]
    assert await client.ask("select *, (select id from best) from ends") == [("new", 4, 2, 1)]
    errors = 'select output, partition, "offset" from s_errors'
    assert await client.ask(errors) == [("s", "0", 2)]
    if envelope == "none":
        assert await client.ask("select p, o from s order by o") == [(0, 0), (0, 1)]
    counted = "select offset_known, offset_committed from mz_internal.mz_source_statistics"
    assert await client.ask(counted) == [(3, 3)]
    status = "select status from mz_internal.mz_source_statuses where name = 's'"
    assert await client.ask(status) == [("running",)]


async def _goes_on(client: Conversation, kafka: KafkaServer, topic: str, envelope: str) -> None:
    """What comes later meets the rows of the topic as it is now."""
    if envelope == "none":
        kafka.send(topic, [record(envelope, 5, "later")])
        assert await rows(client) == [(1, "new"), (4, "new"), (5, "later")]
        return
    later = [record(envelope, 1, "later", "new"), record(envelope, 4, None, "new")]
    kafka.send(topic, [*later, record(envelope, 7, "good")])
    assert await rows(client) == [(1, "later"), (7, "good")]
    assert sorted(await client.ask("select * from v")) == [("good", 1), ("later", 1)]
    if envelope == "upsert":
        assert await client.ask("select * from s_errors") == []


def test_what_retention_took_is_over(kafka_server: KafkaServer, topic: str) -> None:
    kafka_server.make_topic(topic)
    kafka_server.send(topic, [record("none", 0, "read")])

    async def go() -> None:
        async with opened() as (client, _):
            await create(client, kafka_server, topic, "none")
            assert await rows(client) == [(0, "read")]
            await client.ask("alter source s set (active = false)")
            kafka_server.send(topic, [record("none", id, "w") for id in range(1, 10)])
            kafka_server.delete_records(topic, 0, 6)
            assert [row[0] for row in await rows(client)] == [0, 6, 7, 8, 9]
            assert len(await client.ask("select * from s_errors")) == 1
            assert await client.ask(REFRESH) == "ALTER SOURCE"
            assert [row[0] for row in await rows(client)] == [6, 7, 8, 9]
            assert await client.ask("select * from s_errors") == []

    asyncio.run(go())


@pytest.mark.slow
def test_what_brokers_lost_is_given_up(
    kafka_jars: Path, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_client, "TIMEOUT_S", 2.0)

    async def go(folder: Path) -> None:
        data, earlier, ports = folder / "data", folder / "earlier", None
        async with opened() as (client, _):
            with start_kafka(folder, kafka_jars) as server:
                server.make_topic(topic)
                server.send(topic, [record("none", 1, "kept")])
                ports = _ports(folder)
            shutil.copytree(data, earlier)
            with start_kafka(folder, kafka_jars, ports) as server:
                server.send(topic, [record("none", 2, "lost"), record("none", 3, "lost")])
                await create(client, server, topic, "none")
                assert await rows(client) == [(1, "kept"), (2, "lost"), (3, "lost")]
            shutil.rmtree(data)
            shutil.move(earlier, data)
            with start_kafka(folder, kafka_jars, ports) as server:
                with pytest.raises(DefiniteError, match="lost records that it had"):
                    await rows(client)
                server.send(topic, [record("none", 4, "new")])
                assert await client.ask(REFRESH) == "ALTER SOURCE"
                assert await rows(client) == [(1, "kept"), (4, "new")]
                assert await client.ask("select p, o from s order by o") == [(0, 0), (0, 1)]

    with server_folder("kafka-lost") as folder:
        asyncio.run(go(folder))


def _ports(folder: Path) -> tuple[int, int]:
    """Those of a broker, so that it comes back where it was."""
    lines = (folder / "server.properties").read_text().splitlines()
    listeners = next(line for line in lines if line.startswith("listeners="))
    client, controller, *_ = (int(each.rpartition(":")[2]) for each in listeners.split(","))
    return client, controller


def test_a_source_that_is_well_never_goes_back(kafka_server: KafkaServer, topic: str) -> None:
    kafka_server.make_topic(topic, 2)
    done = threading.Event()
    sent = 0

    def produce() -> None:
        nonlocal sent
        while not done.is_set():
            kafka_server.send(topic, [{**record("none", sent, "w"), "partition": sent % 2}])
            sent += 1

    async def go() -> None:
        async with opened() as (client, made):
            await create(client, kafka_server, topic, "none")
            assert await rows(client) == []
            heard: list[Any] = []
            following = asyncio.create_task(_follow(await connect(made), heard))
            thread = threading.Thread(target=produce)
            thread.start()
            try:
                refreshing = asyncio.create_task(_refresh_often(await connect(made)))
                counts = []
                while not refreshing.done():
                    before = sent
                    counts.append((await client.ask("select count(*) from s"))[0][0])
                    assert counts[-1] >= before, "what was acknowledged is seen"
                await refreshing
            finally:
                done.set()
                thread.join()
            assert counts == sorted(counts)
            while len(heard) < sent:
                await SYSTEM.sleep(0.05)
            following.cancel()
            assert {row[1] for row in heard} == {1}, "no row has gone, at any time"
            assert [row[0] for row in await rows(client)] == list(range(sent))

    asyncio.run(go())


async def _follow(client: Conversation, heard: list[Any]) -> None:
    stream = await client.stream("subscribe s")
    try:
        async for chunk in stream.chunks:
            heard += chunk
    finally:
        await stream.chunks.aclose()


async def _refresh_often(client: Conversation) -> None:
    for _ in range(5):
        await client.ask(REFRESH)


def test_of_two_at_once_one_is_done_and_the_other_done_or_refused(
    kafka_server: KafkaServer, topic: str
) -> None:
    kafka_server.make_topic(topic)
    kafka_server.send(topic, [record("upsert", 1, "old")])

    async def go() -> None:
        async with opened() as (client, made):
            await create(client, kafka_server, topic, "upsert")
            kafka_server.remake_topic(topic)
            kafka_server.send(topic, [record("upsert", 2, "new")])
            await error(client, "select * from s")
            both = [await connect(made), await connect(made)]
            found = await asyncio.gather(
                *(each.ask(REFRESH) for each in both), return_exceptions=True
            )
            refused = [each for each in found if each != "ALTER SOURCE"]
            assert len(refused) < 2
            assert all(isinstance(each, SerializationFailure) for each in refused)
            assert await rows(client) == [(2, "new")]
            assert not [name for name in made.client.state.names if name.startswith("staging")]

    asyncio.run(go())


def test_what_cannot_be_refreshed_stays_as_it_was(kafka_server: KafkaServer, topic: str) -> None:
    kafka_server.make_topic(topic)
    kafka_server.send(topic, [record("none", 1, "old")])

    async def go() -> None:
        async with opened() as (client, made):
            await create(client, kafka_server, topic, "none")
            assert await rows(client) == [(1, "old")]
            with pytest.raises(Unsupported, match="a topic is one table"):
                await client.ask("alter source s refresh table s")
            with pytest.raises(Unsupported, match="for sources FROM POSTGRES"):
                await client.ask("alter source s drop table s")
            kafka_server.drop_topic(topic)
            with pytest.raises(ConfigError, match="does not exist"):
                await client.ask(REFRESH)
            await client.ask("set real_time_recency = off")
            assert await rows(client) == [(1, "old")]
            assert not [name for name in made.client.state.names if name.startswith("staging")]

    asyncio.run(go())
