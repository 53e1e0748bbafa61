"""Money that moves upstream, and what is read of it: at every time the total is the same.

The writers move money between two tables of PostgreSQL in one transaction, and between accounts of
a topic in one transaction; a third table has no old rows in its log, and shows that it keeps up.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import psycopg

from noonmark.clock import SYSTEM
from support.ingest.upstream_recency import connect_both
from support.neighbour.kafka import KafkaServer
from support.neighbour.logical import Upstream
from support.serve.reading import Conversation, connect, database

ACCOUNTS, CENTS = 20, 1000
TABLES = ("checking", "savings", "keyed")

_TOTALS = (
    "select (select sum(cents) from (select cents from checking union all "
    "select cents from savings) together), (select sum(cents) from account)"
)
WANTED = [(2 * ACCOUNTS * CENTS, ACCOUNTS * CENTS)]


@dataclass
class MoneyWriters:
    """Three tables and a topic; whoever writes to them, from `start` to `close`."""

    upstream: Upstream
    kafka: KafkaServer
    seed: int
    transactions: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.topic = f"money-{SYSTEM.fresh_id()}"
        self.kafka.make_topic(self.topic, 1)
        for table in TABLES:
            self.upstream.run(
                f"create table {table} (id int primary key, cents int)",
                f"insert into {table} select i, {CENTS} from generate_series(1, {ACCOUNTS}) i",
            )
        self.upstream.run(
            "alter table checking replica identity full",
            "alter table savings replica identity full",
        )
        self.balances = dict.fromkeys(range(ACCOUNTS), CENTS)
        self._producer = self.kafka.producer(transactional_id=self.topic)
        self._producer.init_transactions(30)
        self._produce(*range(ACCOUNTS))
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._move, self._send)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _move(self) -> None:
        choose = Random(f"move/{self.seed}")
        with psycopg.connect(self.upstream.url) as session:
            while not self._stop.is_set():
                cents = choose.randrange(50)
                for table, change in (("checking", -cents), ("savings", cents), ("keyed", cents)):
                    session.execute(
                        f"update {table} set cents = cents + %s where id = %s".encode(),
                        (change, choose.randrange(1, ACCOUNTS + 1)),
                    )
                session.commit()
                self.transactions["PostgreSQL"] += 1
                self._stop.wait(0.002)

    def _send(self) -> None:
        choose = Random(f"send/{self.seed}")
        while not self._stop.is_set():
            giver, taker = choose.sample(range(ACCOUNTS), 2)
            cents = choose.randrange(50)
            self.balances[giver] -= cents
            self.balances[taker] += cents
            self._produce(giver, taker)
            self.transactions["Kafka"] += 1
            self._stop.wait(0.005)

    def _produce(self, *accounts: int) -> None:
        self._producer.begin_transaction()
        for account in accounts:
            value = json.dumps({"cents": self.balances[account]}).encode()
            key = json.dumps({"id": account}).encode()
            self._producer.produce(self.topic, value, key, partition=0)
        self._producer.commit_transaction(30)


@dataclass
class Totals:
    """What was read: how often, at how many times, and what was wrong."""

    reads: int = 0
    times: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


async def read_totals(writers: MoneyWriters, reads: int) -> Totals:
    """Read both totals in one query, so many times: half of them now, half in the past.

    Every read is at a time of its own; a read of now is one more time that can be asked about.
    """
    found, choose = Totals(), Random(f"totals/{writers.seed}")
    async with database() as opened:
        client = await connect(opened)
        await _open(client, writers)
        began = opened.clock.now_ms()
        while len(found.times) < reads:
            now = await _upper(client)
            time = now if found.reads % 2 else choose.randrange(min(began, now), now + 1)
            rows = await client.ask(f"{_TOTALS} as of {time}")
            found.reads += 1
            found.times.add(time)
            if rows != WANTED:
                found.wrong.append(f"at {time}: {rows}")
    return found


async def _open(client: Conversation, writers: MoneyWriters) -> None:
    await connect_both(client, writers.upstream, writers.kafka)
    await client.ask("create source s from postgres connection pg (publication 'p') for all tables")
    await client.ask(
        "create source account (id bigint not null, cents bigint not null, primary key (id)) "
        f"from kafka connection k (topic '{writers.topic}') key format json value format json "
        "envelope upsert"
    )
    await client.ask("set real_time_recency = on")
    assert await client.ask(_TOTALS) == WANTED
    await client.ask("set real_time_recency = off")


async def _upper(client: Conversation) -> int:
    """The last time at which all three are complete."""
    names = "'checking', 'savings', 'account'"
    ((upper,),) = await client.ask(
        f"select min(upper) - 1 from noonmark.frontiers where name in ({names})"
    )
    return int(upper)
