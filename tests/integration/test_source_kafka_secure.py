"""SASL and TLS with real listeners: what SQL says of a connection is what the broker hears."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import ConfigError
from support.neighbour.kafka import PASSWORD, USER, KafkaServer
from support.serve.reading import Conversation, connect, database

PEM = Path(__file__).parents[1] / "support" / "serve" / "pgwire_certificate.pem"
_BEGIN = "-----BEGIN CERTIFICATE-----"


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NOONMARK_SECRET_KEY", raising=False)


def connections(server: KafkaServer) -> dict[str, str]:
    """How each way in is written, by name."""
    private, _, certificate = PEM.read_text().partition(_BEGIN)
    secrets = {"right": PASSWORD, "wrong": "SENTINEL-wrong", "own_key": private}
    made = [f"create secret {name} as '{value}'" for name, value in secrets.items()]
    sasl = f"broker '{server.sasl}', security protocol 'SASL_PLAINTEXT'"
    user = f"sasl username '{USER}'"
    tls = (
        f"broker '{server.ssl}', security protocol 'SSL', "
        f"ssl certificate authority '{_BEGIN}{certificate}'"
    )
    ways = {
        "plain": f"{sasl}, sasl mechanisms 'PLAIN', {user}, sasl password secret right",
        "scram": f"{sasl}, sasl mechanisms 'SCRAM-SHA-256', {user}, sasl password secret right",
        "tls": f"{tls}, ssl certificate '{_BEGIN}{certificate}', ssl key secret own_key",
        "wrong_password": f"{sasl}, sasl mechanisms 'PLAIN', {user}, sasl password secret wrong",
        "unknown_authority": f"broker '{server.ssl}', security protocol 'SSL'",
    }
    created = {name: f"create connection {name} to kafka ({way})" for name, way in ways.items()}
    return {"secrets": ";".join(made), **created}


def test_every_way_in_reads_and_writes_and_no_other_does(kafka_server: KafkaServer) -> None:
    server = kafka_server
    server.make_user(USER, PASSWORD)
    topics = {name: f"{name}-{SYSTEM.fresh_id()}" for name in ("plain", "scram", "tls")}
    for topic in topics.values():
        server.make_topic(topic)
        server.send(topic, [{"value": b'{"n": 1}'}])

    async def body(client: Conversation) -> None:
        ways = connections(server)
        for statement in (*ways.pop("secrets").split(";"), *ways.values()):
            await client.ask(statement)
        await client.ask("set real_time_recency = on")
        for name, topic in topics.items():
            assert await client.ask(f"validate connection {name}") == "VALIDATE CONNECTION"
            await client.ask(
                f"create source s_{name} (n int) from kafka connection {name} (topic '{topic}') "
                "format json"
            )
            assert await client.ask(f"select n from s_{name}") == [(1,)]
        await client.ask("create table t (n int)")
        await client.ask("insert into t values (2)")
        await client.ask(
            f"create sink back from t into kafka connection scram (topic '{topics['scram']}') "
            "envelope debezium"
        )
        while len(found := await asyncio.to_thread(server.committed_records, topics["scram"])) < 2:
            await SYSTEM.sleep(0.1)
        assert json.loads(found[1].value())["after"] == {"n": 2}
        for name in ("wrong_password", "unknown_authority"):
            with pytest.raises(ConfigError, match="does not let us in") as refused:
                await client.ask(f"validate connection {name}")
            assert "SENTINEL" not in str(refused.value)

    async def go() -> None:
        async with asyncio.timeout(120), database("") as opened:
            await body(await connect(opened))

    asyncio.run(go())
