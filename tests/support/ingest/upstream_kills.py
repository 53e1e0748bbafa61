"""A process that ingests Kafka and PostgreSQL is killed again and again while both are written to.

In the end every collection is what upstream has, and at every time in its history the total of the
money that moves there (`support.ingest.upstream_money`) is the same.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from noonmark import persist
from noonmark.source.impl.kafka import create
from support.ingest.killed_ingestion import KilledIngestion, compare, now
from support.ingest.upstream_money import ACCOUNTS, CENTS, TABLES, MoneyWriters
from support.ingest.world import Violation
from support.kill.kills import Lines
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream


@dataclass
class UpstreamKills(KilledIngestion):
    """One folder, one database, one topic."""

    module = "ingest.upstream_process"
    outputs: ClassVar[Mapping[str, tuple[str, ...]]] = {"pg": TABLES, "kafka": ("kafka",)}
    starting_s = (0.5, 2.0)

    upstream: Upstream = field(kw_only=True)
    kafka: KafkaServer = field(kw_only=True)
    times: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.writers = MoneyWriters(self.upstream, self.kafka, self.seed)
        topic_name = self.writers.topic
        tables = self.upstream.source()
        tables.close()
        topic = asyncio.run(create(self.kafka.options, topic_name, topic_name))
        known = {
            "url": self.upstream.url,
            "postgres": tables.to_plain(),
            "options": self.kafka.options,
            "kafka": topic.to_plain(),
        }
        (self.folder / "sources.json").write_text(json.dumps(known))
        self.writers.start()

    def close(self) -> None:
        self.writers.close()

    def work(self, lines: Lines) -> None:
        lines.read(self.random.uniform(0.0, 1.5))

    def end_work(self) -> None:
        self.close()

    def check_contents(self, client: persist.Client) -> None:
        for table in TABLES:
            wanted = Counter(self.upstream.run(f"select * from {table}"))
            compare(table, now(client, table), wanted)
        compare("kafka", now(client, "kafka"), Counter(self.writers.balances.items()))
        for name in ("pg_errors", "kafka_errors"):
            if now(client, name):
                raise Violation(f"{name} has {now(client, name)}")
        self._check_totals(client, ("checking", "savings"), 2 * ACCOUNTS * CENTS)
        self._check_totals(client, ("kafka",), ACCOUNTS * CENTS)

    def _check_totals(self, client: persist.Client, names: tuple[str, ...], total: int) -> None:
        """At every time at which one of them changed, once there was anything."""
        by_time: Counter[int] = Counter()
        for name in names:
            _, read = client.create_or_load(name)
            since = read.since.only() or 0
            for row, count in read.snapshot(since).result().counts().items():
                by_time[since] += row[1] * count
            listen = read.listen(since, hold=False)
            step = client.runtime.submit(listen.next()).result()
            for update in step.updates if step is not None else ():
                by_time[update.time] += update.data[1] * update.diff
        held = 0
        for time in sorted(by_time):
            held += by_time[time]
            self.times += 1
            if held not in (0, total):
                raise Violation(f"{names} have {held} at {time}, and not {total}")
