"""The events of F11: auctions, all there from the start, and bids on them, after Nexmark.

Both are JSON in Kafka, in `PARTITIONS` partitions each. Bid number i is the same in every run of
one seed, and goes to partition i % PARTITIONS; so a state of the input is one number a partition.
Half of the bids go to the hottest hundredth of the auctions, as Nexmark's do.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.nexmark.answers import now

Longs = npt.NDArray[np.int64]

AUCTIONS, SELLERS, CATEGORIES, PARTITIONS = 20_000, 1_000, 10, 2
_PIECE = 10_000


@dataclass(frozen=True)
class Events:
    """The events of a seed."""

    seed: int

    @cached_property
    def sellers(self) -> Longs:
        """The seller of each auction."""
        return np.random.default_rng((self.seed, 1)).integers(0, SELLERS, AUCTIONS)

    @cached_property
    def categories(self) -> Longs:
        """The category of each auction."""
        return np.random.default_rng((self.seed, 2)).integers(0, CATEGORIES, AUCTIONS)

    def auctions(self) -> Iterator[bytes]:
        """Every auction as a document."""
        for at in range(AUCTIONS):
            seller, category = self.sellers[at], self.categories[at]
            text = f'{{"id":{at},"item":"item {at}","seller":{seller},"category":{category}}}'
            yield text.encode()

    def piece(self, number: int) -> tuple[Longs, Longs, Longs]:
        """Auction, bidder and price of `_PIECE` bids."""
        rng = np.random.default_rng((self.seed, 3, number))
        auctions = rng.integers(0, AUCTIONS, _PIECE)
        hot = rng.random(_PIECE) < 0.5
        auctions[hot] //= 100
        prices = np.exp(rng.normal(6.0, 1.5, _PIECE) + 2).astype(np.int64) + 1
        return auctions, rng.integers(0, 50_000, _PIECE), prices

    def bids(self, first: int) -> Iterator[bytes]:
        """The bids from a number on, as documents, for ever."""
        number = first
        while True:
            at = number % _PIECE
            columns = [column[at:].tolist() for column in self.piece(number // _PIECE)]
            for auction, bidder, price in zip(*columns, strict=True):
                yield (
                    f'{{"id":{number},"auction":{auction},"bidder":{bidder},"price":{price},'
                    f'"channel":"channel-{bidder % 97}"}}'
                ).encode()
                number += 1

    def lines(self) -> Iterator[str]:
        """The bids as lines of COPY: number, auction, price."""
        for number in count():
            auctions, _, prices = self.piece(number)
            first = number * _PIECE
            for at, auction, price in zip(
                range(first, first + _PIECE), auctions.tolist(), prices.tolist(), strict=True
            ):
                yield f"{at}\t{auction}\t{price}\n"

    def columns(self, total: int) -> tuple[Longs, Longs]:
        """Auction and price of the first bids."""
        pieces = [self.piece(at) for at in range(-(-total // _PIECE))]
        auctions, _, prices = (np.concatenate(each)[:total] for each in zip(*pieces, strict=True))
        return auctions, prices


def produce(bootstrap: str, topic: str, documents: list[bytes], first: int = 0) -> None:
    """Send documents, and wait until brokers have them."""
    producer = _producer(bootstrap)
    for at, document in enumerate(documents, first):
        producer.produce(topic, document, partition=at % PARTITIONS)
        if at % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def held_back(bootstrap: str, topic: str, documents: Iterable[bytes], first: int) -> Any:
    """Send documents that readers see all at once, when the producer commits its transaction."""
    producer = _producer(bootstrap, {"transactional.id": f"{topic}-{first}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for at, document in enumerate(documents, first):
        producer.produce(topic, document, partition=at % PARTITIONS)
        if at % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    return producer


def _producer(bootstrap: str, more: dict[str, Any] | None = None) -> Any:
    from confluent_kafka import Producer  # door: the judge needs events without Kafka

    return Producer({
        "bootstrap.servers": bootstrap, "linger.ms": 2, "batch.size": 1 << 19, "log_level": 0,
        "queue.buffering.max.messages": 2_000_000, **(more or {}),
    })  # fmt: skip


def main(argv: list[str]) -> None:
    """Send bids at a rate; write down how many had been sent when."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("sent", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=10)
    chosen = parser.parse_args(argv)
    producer = _producer(chosen.bootstrap)
    total = int(chosen.rate * chosen.seconds)
    documents = Events(chosen.seed).bids(chosen.first)
    ready = list(islice(documents, total)) if total <= 3_000_000 else documents
    following = iter(ready)
    steps, pause = [], threading.Event()
    began = now()
    done = 0
    while done < total:
        due = min(total, int((now() - began) * chosen.rate) + 1)
        for document in islice(following, due - done):
            producer.produce(chosen.topic, document, partition=(chosen.first + done) % PARTITIONS)
            done += 1
        steps.append((now(), chosen.first + done))
        producer.poll(0)
        pause.wait(0.001)
    assert producer.flush(60) == 0
    np.save(chosen.sent, np.array(steps))


if __name__ == "__main__":
    main(sys.argv[1:])
