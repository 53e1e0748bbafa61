"""``docs/sources/tutorial.md``, run as it stands: only addresses and names of topics are ours."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from noonmark.adapter.contract import Rows
from noonmark.clock import SYSTEM
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream
from support.serve.reading import Conversation, connect, database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sources" / "tutorial.md"
WAIT_S = 240


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_tutorial(
    spark: SparkSession,
    upstream: Upstream,
    kafka_server: KafkaServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    fresh = SYSTEM.fresh_id()
    parts = urlsplit(upstream.url)
    ours = {
        "'localhost:9092'": f"'{kafka_server.bootstrap}'",
        "'localhost'": f"'{parts.hostname}'",
        "5432": str(parts.port),
        "DATABASE 'shop'": f"DATABASE '{upstream.name}'",
        "TOPIC 'orders'": f"TOPIC 'orders-{fresh}'",
        "TOPIC 'owed'": f"TOPIC 'owed-{fresh}'",
    }
    kafka_server.make_topic(f"orders-{fresh}", 1)

    async def go() -> None:
        async with asyncio.timeout(WAIT_S), database(str(tmp_path / "data"), spark) as opened:
            client = await connect(opened)
            rows: list[str] = []
            for kind, text in blocks():
                if kind == "upstream":
                    upstream.run(*text.strip().split(";\n"))
                elif kind == "sql":
                    rows = await run(client, replaced(text, ours))
                elif kind == "orders":
                    kafka_server.send(f"orders-{fresh}", map(order, text.splitlines()))
                    await client.ask("set real_time_recency = on")
                    await client.ask("set real_time_recency_timeout = '200000'")
                elif kind == "text":
                    assert rows == text.splitlines()
                else:
                    await until_written(kafka_server, f"owed-{fresh}", text.splitlines())

    asyncio.run(go())


def replaced(text: str, ours: dict[str, str]) -> str:
    for written, real in ours.items():
        text = text.replace(written, real)
    return text


async def run(client: Conversation, text: str) -> list[str]:
    found: list[str] = []
    for statement in filter(str.strip, text.split(";\n")):
        outcome = await client.session.execute(await client.session.prepare(statement))
        if isinstance(outcome, Rows):
            chunks = [row async for chunk in outcome.chunks for row in chunk]
            found = [" | ".join(map(str, row)) for row in chunks]
    return found


def order(line: str) -> dict[str, Any]:
    key, _, value = line.partition("} ")
    return {"key": f"{key}}}".encode(), "value": value.encode()}


async def until_written(server: KafkaServer, topic: str, wanted: list[str]) -> None:
    """The newest value of each key, as a reader of committed records has it."""
    found: list[Any] = []
    for _ in range(600):
        latest: dict[bytes, Any] = {}
        for record in await asyncio.to_thread(server.committed_records, topic):
            latest[record.key()] = json.loads(record.value()) if record.value() else None
        found = sorted((each for each in latest.values() if each), key=lambda each: each["id"])
        if found == [json.loads(line) for line in wanted]:
            return
        await SYSTEM.sleep(0.1)
    assert found == [json.loads(line) for line in wanted]
