"""PostgreSQL and Kafka of one's own, for proofs that run without pytest's fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.neighbour.kafka import KafkaServer, installed_jars, start_kafka
from support.neighbour.logical import Upstream, fresh_upstream
from support.neighbour.servers import PostgresServer, server_folder, start_postgres


@contextmanager
def one_kafka() -> Iterator[KafkaServer]:
    """A broker that is gone in the end, with all it had."""
    with server_folder("kafka") as folder, start_kafka(folder, installed_jars()) as server:
        yield server


@contextmanager
def one_postgres() -> Iterator[PostgresServer]:
    """A server that is gone in the end, with all it had."""
    with server_folder("pg") as folder, start_postgres(folder) as server:
        yield server


@contextmanager
def both_upstreams() -> Iterator[tuple[Upstream, KafkaServer]]:
    """A database and a broker."""
    with (
        one_kafka() as kafka,
        one_postgres() as server,
        fresh_upstream(server) as upstream,
    ):
        yield upstream, kafka
