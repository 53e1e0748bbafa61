"""The eighth workload of C8: two writers in one process, on a store in memory, clocks apart.

Each takes the lock over from the other, which lives and writes on, because by its own clock the
other's lease has run out. Answers of the store are lost on the way, so that a writer can lose its
lock before it knows what became of its last entry.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from random import Random

from noonmark import persist
from noonmark.clock import SYSTEM, Clock, SystemClock
from noonmark.errors import Determinate, Indeterminate, LockHeld, WriterError
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.impl.memory import MemoryBlob
from noonmark.persist.location import Consensus
from support.kill import rival
from support.kill.rival import Rival
from support.kill.two_writers import Book, Witness, verify

FAULTY = 0.08
#: Longer than a busy machine makes anybody wait: only the clocks end a lease here.
LEASE_MS = 60_000
CONFIG = dataclasses.replace(rival.CONFIG, lock_lease_ms=LEASE_MS)


class ShiftedClock(SystemClock):
    """The machine's clock, ahead by `ahead_ms`."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


class FaultyConsensus(BlobConsensus):
    """A log that sometimes does not append, or appends and does not say so."""

    def __init__(self, name: str, random: Random, book: Book) -> None:
        super().__init__(MemoryBlob(name))
        self._random = random
        self._book = book

    async def append(self, seqno: int, entry: bytes) -> bool:
        chance = self._random.random()
        if chance < FAULTY / 2:
            self._book.faults["append lost"] += 1
            raise Determinate("the request was lost")
        done = await super().append(seqno, entry)
        if chance < FAULTY:
            self._book.faults["answer lost"] += 1
            raise Indeterminate("the answer was lost")
        return done


def open_memory(name: str, clock: Clock, consensus: Consensus | None = None) -> persist.Client:
    log = consensus or BlobConsensus(MemoryBlob(name))
    return rival.open_as(MemoryBlob(name), log, None, clock, CONFIG)


def run_in_memory(seed: int, operations: int, book: Book) -> Iterator[int]:
    """Rounds until there were so many operations; gives how many so far."""
    random = Random(f"apart/{seed}")
    name = f"apart-{SYSTEM.fresh_id()}"
    open_memory(name, SYSTEM).stop()
    witness = Witness(f"memory:{name}")
    clocks = [ShiftedClock(), ShiftedClock()]
    try:
        for turn in range(1, operations):
            if len(book.answers) >= operations:
                break
            _round(name, turn, clocks, random, book)
            yield len(book.answers)
    finally:
        witness.stop()
    book.faults["entries witnessed"] += witness.entries
    verify(open_memory(name, clocks[0]), book)


def _round(name: str, turn: int, clocks: list[ShiftedClock], random: Random, book: Book) -> None:
    rivals = [Rival(f"{side}{turn}", book.hear) for side in "ab"]
    workers = []
    for number, writer in enumerate(rivals):
        if number and not _refused(name, clocks[0], random, book):
            book.violations.append("a lock was given although its lease runs")
        clocks[number].ahead_ms = max(clock.ahead_ms for clock in clocks) + 3 * LEASE_MS
        consensus = FaultyConsensus(name, random, book)
        writer.adopt(open_memory(name, clocks[number], consensus))
        assert writer.client is not None
        book.hear(f"opened {writer.client.parts.epoch} {SYSTEM.monotonic()}")
        worker = threading.Thread(target=writer.work, args=(random.randrange(10, 40),))
        worker.start()
        workers.append(worker)
        worker.join(random.random() * 0.03)
    for worker in workers:
        worker.join()
    rivals[0].work(3)
    rivals[0].zombie()
    for writer in rivals:
        writer.stop()
    clocks.reverse()


def _refused(name: str, clock: ShiftedClock, random: Random, book: Book) -> bool:
    try:
        open_memory(name, clock, FaultyConsensus(name, random, book)).stop()
    except LockHeld as error:
        book.hear(f"held {error.fields['holder']}")
        return True
    except WriterError:
        return True
    return False
