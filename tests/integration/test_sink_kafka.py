"""CREATE SINK: what a reader of committed records has is the collection, exactly once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from noonmark.adapter.database import Database
from noonmark.clock import SYSTEM
from noonmark.errors import (
    DependentObjects,
    Indeterminate,
    InvalidValue,
    UniqueViolation,
    WrongObjectType,
)
from noonmark.rows.schema import Schema
from noonmark.sink import kafka as kafka_sink
from noonmark.sink.encode import JsonEncoding
from noonmark.sink.envelope import Envelope
from noonmark.sink.keys import Keys
from support.neighbour.kafka import KafkaServer
from support.neighbour.registry import RegistryServer
from support.serve.reading import Conversation, connect, database

PAIRS = Schema.of(id="int not null", word="text")
JSON = JsonEncoding(PAIRS, ("id",))
UPDATES = some.lists(
    some.tuples(
        some.tuples(some.integers(0, 3), some.sampled_from("abc")),
        some.integers(1, 4),
        some.sampled_from([-1, 1]),
    ),
    max_size=20,
)


def history(steps: list[tuple[tuple[int, str], int, int]]) -> list[tuple[Any, int, int]]:
    """Updates of a collection that has at most one row for each key."""
    rows: dict[int, str] = {}
    made = []
    for (key, word), _, diff in sorted(steps, key=lambda step: step[1]):
        time = _
        if key in rows:
            made.append(((key, rows.pop(key)), time, -1))
        if diff > 0:
            rows[key] = word
            made.append(((key, word), time, 1))
    return made


@given(UPDATES)
def test_messages_up_to_a_time_are_the_collection_at_that_time(steps: Any) -> None:
    updates = history(steps)
    upserts = list(Envelope("UPSERT", PAIRS, ("id",), JSON).messages(updates, Keys()))
    changes = list(Envelope("DEBEZIUM", PAIRS, ("id",), JSON).messages(updates, Keys()))
    for until_ in range(1, 5):
        wanted = {}
        for (key, word), time, diff in updates:
            if time <= until_:
                if diff > 0:
                    wanted[key] = word
                else:
                    wanted.pop(key)
        found: dict[int, str] = {}
        for each in upserts:
            if each.time <= until_:
                apply(found, json.loads(each.key or b""), each.value)
        assert found == wanted
        found = {}
        for each in changes:
            if each.time <= until_:
                said = json.loads(each.value or b"")
                assert (said["before"] is None) == (said["op"] == "c")
                apply(found, json.loads(each.key or b""), json.dumps(said["after"]).encode())
        assert found == wanted


def apply(found: dict[int, str], key: dict[str, int], value: bytes | None) -> None:
    said = None if value is None else json.loads(value)
    if said is None:
        found.pop(key["id"], None)
    else:
        found[key["id"]] = said["word"]


def test_a_key_with_two_rows_is_refused() -> None:
    envelope = Envelope("UPSERT", PAIRS, ("id",), JSON)
    with pytest.raises(UniqueViolation, match="several rows"):
        list(envelope.messages([((1, "a"), 5, 1), ((1, "b"), 5, 1)], Keys()))
    keys = Keys()
    assert len(list(envelope.messages([((1, "a"), 5, 1), ((2, "a"), 6, 1)], keys))) == 2
    one, three, four = (envelope.key_bytes((number,)) for number in (1, 3, 4))
    assert (keys.has(one), keys.has(three), len(keys)) == (True, False, 2)
    moved = [((1, "a"), 7, -1), ((1, "b"), 7, 1), ((2, "a"), 8, -1), ((2, "b"), 9, 1)]
    assert len(list(envelope.messages(moved, keys))) == 3
    again = Keys.of([(one, 1), (one, 1), (four, 1), (one, -1), (four, -1)])
    for each in (keys, again):
        with pytest.raises(UniqueViolation, match="several rows"):
            list(envelope.messages([((1, "c"), 10, 1)], each))
    assert not again.has(four)


def run(body: Callable[[Conversation, Database], Awaitable[None]], url: str = "") -> None:
    async def go() -> None:
        async with asyncio.timeout(120), database(url) as opened:
            await body(await connect(opened), opened)

    asyncio.run(go())


def committed(server: KafkaServer, topic: str) -> list[Any]:
    return server.committed_records(topic)


def state_of(records: list[Any]) -> dict[int, str]:
    found: dict[int, str] = {}
    for each in records:
        apply(found, json.loads(each.key()), each.value())
    return found


async def until(check: Callable[[], Any], wanted: Any) -> None:
    found = await asyncio.to_thread(check)
    for _ in range(200):
        if found == wanted:
            return
        await SYSTEM.sleep(0.1)
        found = await asyncio.to_thread(check)
    assert found == wanted


async def make(client: Conversation, server: KafkaServer, topic: str) -> None:
    await client.ask(f"create connection k to kafka (broker '{server.bootstrap}')")
    await client.ask("create table t (id int not null, word text)")
    await client.ask("insert into t values (1, 'one'), (2, 'two')")
    await client.ask(
        f"create sink s from t into kafka connection k (topic '{topic}') key (id) format json "
        "envelope upsert"
    )


def test_a_table_is_written_and_goes_on_after_a_restart(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    topic = f"sink-{SYSTEM.fresh_id()}"
    url = str(tmp_path / "data")

    async def first(client: Conversation, _: Database) -> None:
        await make(client, kafka_server, topic)
        await until(lambda: state_of(committed(kafka_server, topic)), {1: "one", 2: "two"})
        await client.ask("update t set word = 'uno' where id = 1")
        await client.ask("delete from t where id = 2")
        await until(lambda: state_of(committed(kafka_server, topic)), {1: "uno"})

    async def second(client: Conversation, opened: Database) -> None:
        await client.ask("insert into t values (3, 'three')")
        await until(lambda: state_of(committed(kafka_server, topic)), {1: "uno", 3: "three"})
        records = committed(kafka_server, topic)
        assert [(json.loads(r.key())["id"], r.value() is None) for r in records] == [
            (1, False),
            (2, False),
            (1, False),
            (2, True),
            (3, False),
        ]
        times = [int(dict(r.headers())[kafka_sink.TIME_HEADER]) for r in records]
        assert times == sorted(times)
        assert await client.ask("show sinks") != []
        figures = "select messages_committed, lag_seconds < 60 from mz_internal.mz_sink_statistics"
        assert await client.ask(figures) == [(1, True)]  # this process wrote the last one
        assert await client.ask("drop sink s") == "DROP SINK"
        assert opened.work.sinks == {}

    run(first, url)
    run(second, url)


def test_a_sink_that_waits_for_its_first_time_can_be_stopped(kafka_server: KafkaServer) -> None:
    async def body(client: Conversation, opened: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        await client.ask("create source c from load generator counter with (active = false)")
        await client.ask(
            f"create sink s from c into kafka connection k (topic 'sink-{SYSTEM.fresh_id()}') "
            "envelope debezium"
        )
        (worker,) = opened.work.sinks.values()
        await until(lambda: worker.state, "running")
        assert await client.ask("drop sink s") == "DROP SINK"
        assert worker.sink.messages == 0

    run(body)


def test_a_key_that_does_not_tell_rows_apart_is_seen_in_the_status(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    topic = f"sink-{SYSTEM.fresh_id()}"

    async def body(client: Conversation, opened: Database) -> None:
        await make(client, kafka_server, topic)
        await until(lambda: len(committed(kafka_server, topic)), 2)
        await client.ask("insert into t values (1, 'another one')")
        (worker,) = opened.work.sinks.values()
        await until(lambda: worker.state, "failed")
        ((name, status, error),) = await client.ask(
            "select name, status, error from mz_internal.mz_sink_statuses"
        )
        assert (name, status, "several rows" in error) == ("s", "failed", True)
        assert len(committed(kafka_server, topic)) == 2

    async def again(_: Conversation, opened: Database) -> None:
        (worker,) = opened.work.sinks.values()
        await until(lambda: worker.state, "failed")
        assert len(committed(kafka_server, topic)) == 2

    run(body, str(tmp_path / "data"))
    run(again, str(tmp_path / "data"))


def test_commits_whose_answer_is_lost_are_neither_repeated_nor_missed(
    kafka_server: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"sink-{SYSTEM.fresh_id()}"
    real = kafka_sink.Writer.write
    calls = {"write": 0}

    def flaky(self: kafka_sink.Writer, messages: Any, frontier: int) -> int:
        """Every third write happens and is not answered; every fifth does not happen."""
        calls["write"] += 1
        if calls["write"] % 5 == 0:
            raise Indeterminate("the connection was lost before")
        count = real(self, messages, frontier)
        if calls["write"] % 3 == 0:
            raise Indeterminate("the connection was lost after")
        return count

    monkeypatch.setattr(kafka_sink.Writer, "write", flaky)

    async def body(client: Conversation, _: Database) -> None:
        await make(client, kafka_server, topic)
        for step in range(10, 20):
            seen = calls["write"]
            await client.ask(f"insert into t values ({step}, 'w{step}')")
            await until(lambda seen=seen: calls["write"] > seen, True)
        wanted = {1: "one", 2: "two", **{step: f"w{step}" for step in range(10, 20)}}
        await until(lambda: state_of(committed(kafka_server, topic)), wanted)
        keys = [json.loads(record.key())["id"] for record in committed(kafka_server, topic)]
        assert sorted(keys) == sorted(wanted)

    run(body)
    assert calls["write"] > 5


def test_what_a_sink_writes_can_be_a_source(kafka_server: KafkaServer) -> None:
    topic = f"sink-{SYSTEM.fresh_id()}"

    async def body(client: Conversation, _: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        await client.ask("create table t (id int not null, n numeric, at timestamp, j jsonb)")
        await client.ask("insert into t values (1, 1.50, '2020-01-01 00:00', '{\"a\": 1}')")
        await client.ask(
            f"create sink s from t into kafka connection k (topic '{topic}') envelope debezium"
        )
        await until(lambda: len(committed(kafka_server, topic)), 1)
        await client.ask(
            "create source back (id int, n numeric, at timestamp, j jsonb) from kafka connection k"
            f" (topic '{topic}') format json envelope debezium"
        )
        await client.ask("update t set n = 2 where id = 1")
        await until(lambda: len(committed(kafka_server, topic)), 3)
        await client.ask("set real_time_recency = on")
        assert await client.ask("select * from back") == await client.ask("select * from t")

    run(body)


@pytest.mark.parametrize("envelope", ["upsert", "debezium"])
def test_what_a_sink_writes_in_avro_can_be_a_source(
    kafka_server: KafkaServer, registry_server: RegistryServer, envelope: str
) -> None:
    topic = f"sink-{SYSTEM.fresh_id()}"
    form = "format avro using confluent schema registry connection r"

    async def body(client: Conversation, _: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        url = registry_server.url
        await client.ask(f"create connection r to confluent schema registry (url '{url}')")
        await client.ask(
            "create table t (id int not null, n numeric(9,2), at timestamptz, a int[], m numeric)"
        )
        await client.ask("insert into t values (1, 1.50, '2020-01-01 00:00Z', '{1,null}', 1e40)")
        sink = f"from t into kafka connection k (topic '{topic}') key (id) {form}"
        await client.ask(f"create sink s {sink} envelope {envelope}")
        assert set(registry_server.subjects) == {f"{topic}-key", f"{topic}-value"}
        await until(lambda: len(committed(kafka_server, topic)), 1)
        await client.ask(
            f"create source back from kafka connection k (topic '{topic}') {form} "
            f"envelope {envelope}"
        )
        await client.ask("insert into t values (2, null, null, null, null)")
        await client.ask("update t set n = 2 where id = 1")
        await until(lambda: len(committed(kafka_server, topic)), 3)
        await client.ask("delete from t where id = 2")
        await until(lambda: len(committed(kafka_server, topic)), 4)
        await client.ask("set real_time_recency = on")
        query = "select id, n, at, a, m::numeric from"  # as text: Avro's decimals are narrower
        assert await client.ask(f"{query} back") == await client.ask(f"{query} t")
        with pytest.raises(DependentObjects):
            await client.ask("drop connection r")
        await client.ask("create table other (other int)")
        with pytest.raises(InvalidValue, match="does not take the schema"):
            await client.ask(
                f"create sink o from other into kafka connection k (topic '{topic}') {form} "
                "envelope debezium"
            )

    run(body)


def test_what_cannot_be_a_sink_is_refused(kafka_server: KafkaServer) -> None:
    async def body(client: Conversation, _: Database) -> None:
        await client.ask(f"create connection k to kafka (broker '{kafka_server.bootstrap}')")
        await client.ask("create table t (id int)")
        await client.ask("create view v as select * from t")
        into = "into kafka connection k (topic 'x')"
        with pytest.raises(WrongObjectType, match="is not kept"):
            await client.ask(f"create sink s from v {into} key (id) envelope upsert")
        with pytest.raises(InvalidValue, match="needs a key"):
            await client.ask(f"create sink s from t {into} envelope upsert")
        with pytest.raises(InvalidValue, match="needs an ENVELOPE"):
            await client.ask(f"create sink s from t {into}")
        with pytest.raises(InvalidValue, match="needs a schema registry"):
            await client.ask(f"create sink s from t {into} key (id) format avro envelope upsert")

    run(body)
