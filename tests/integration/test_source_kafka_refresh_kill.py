"""ALTER SOURCE ... REFRESH of a topic under kill -9: the error stands, or the new rows do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from noonmark.clock import SYSTEM
from support.kill.kills import Lines, running
from support.neighbour.kafka import KafkaServer

REFRESH = b"alter source s refresh"
IDS = 40


@dataclass
class World:
    """A server of ours in a process, and a topic that is made again and again."""

    folder: Path
    kafka: KafkaServer
    topic: str
    made: int = 0

    def remake(self) -> None:
        """Another topic, with fewer records than there were, and others."""
        self.made += 1
        if self.made == 1:
            self.kafka.make_topic(self.topic)
        else:
            self.kafka.remake_topic(self.topic)
        self.send(range(self.made, IDS, self.made))

    def send(self, ids: range) -> None:
        """Rows of this incarnation."""
        word = json.dumps({"word": f"w{self.made}"})
        records = [{"key": json.dumps({"id": id}), "value": word} for id in ids]
        self.kafka.send(self.topic, records)

    def wanted(self, *more: int) -> list[tuple[int, str]]:
        return [(id, f"w{self.made}") for id in sorted({*range(self.made, IDS, self.made), *more})]

    @contextmanager
    def serving(self) -> Iterator[tuple[Any, Lines, psycopg.Connection[Any]]]:
        with running("strict.server", self.folder) as (child, lines):
            port = lines.read(60)
            assert port is not None, f"a server did not start: {child.poll()}"
            where = f"host=127.0.0.1 port={port} user=me dbname=noonmark"
            with closing(psycopg.connect(where, autocommit=True)) as session:
                session.execute("set real_time_recency = on")
                yield child, lines, session


@pytest.fixture
def world(tmp_path: Path, kafka_server: KafkaServer) -> World:
    made = World(tmp_path / "location", kafka_server, f"killed-{SYSTEM.fresh_id()}")
    made.remake()
    with made.serving() as (_, _lines, session):
        session.execute(
            f"create connection k to kafka (broker '{kafka_server.bootstrap}')".encode()
        )
        session.execute(
            "create source s (id int not null, word text, primary key (id)) "
            f"from kafka connection k (topic '{made.topic}') "
            "key format json value format json envelope upsert".encode()
        )
        assert _rows(session) == made.wanted()
    return made


def _rows(session: psycopg.Connection[Any]) -> list[tuple[Any, ...]] | str:
    """The rows, or the error that stands for them."""
    try:
        return session.execute("select id, word from s order by id").fetchall()
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        return str(error)


def _refresh(session: psycopg.Connection[Any]) -> None:
    try:
        session.execute(REFRESH)
    except psycopg.Error:
        return  # the server was killed


@pytest.mark.slow
def test_a_refresh_that_was_killed_has_happened_or_not(world: World) -> None:
    outcomes = []
    for life_s in (0.0, 0.1, 0.2, 0.3, 0.45, 0.6):
        world.remake()
        with world.serving() as (child, lines, session):
            assert "was deleted and made again" in _rows(session)
            asking = threading.Thread(target=_refresh, args=(session,))
            asking.start()
            lines.read(life_s)
            child.kill()
            child.wait()
            asking.join()
        with world.serving() as (_, _lines, session):
            found = _rows(session)
            outcomes.append(found == world.wanted())
            if not outcomes[-1]:
                assert "was deleted and made again" in found
                session.execute(REFRESH)
                assert _rows(session) == world.wanted()
            world.send(range(0, 1))
            assert _rows(session) == world.wanted(0)
            beside = "select count(*) from noonmark.shards where name like 'staging%'"
            assert session.execute(beside).fetchall() == [(0,)]
    assert not outcomes[0], "killed before anything was durable"
