"""PostgreSQL and Kafka of one's own, for proofs that run without pytest's fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.kafka import KafkaServer, _jars, start_kafka
from support.logical import Upstream, fresh_upstream
from support.servers import _folder, start_postgres


@contextmanager
def one_kafka() -> Iterator[KafkaServer]:
    """A broker that is gone in the end, with all it had."""
    with _folder("kafka") as folder, start_kafka(folder, _jars()) as server:
        yield server


@contextmanager
def both_upstreams() -> Iterator[tuple[Upstream, KafkaServer]]:
    """A database and a broker."""
    with (
        one_kafka() as kafka,
        _folder("pg") as folder,
        start_postgres(folder) as server,
        fresh_upstream(server) as upstream,
    ):
        yield upstream, kafka
