"""A history of operations, of which every answer can be checked by one number.

The digest of a multiset is the sum of ``diff * hash(row)`` modulo 2**64. It is linear: the digest
of a collection at time t is the sum of the digests of the operations at times up to t. Operation n
writes at time n, and its rows follow from the seed and n, so both sides of a crash know them.

Law (prefix): operations are submitted in order, so what a crash leaves is a prefix of those that
were submitted, with all that were acknowledged in it; nothing twice, nothing in part.

`Load` submits operations through a client and says each step as a line; `Ledger` is told the lines
and knows what every later read must answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

import pyarrow as pa
import xxhash

from noonmark.persist import Client, Config, ReadHandle, Update
from noonmark.rows.schema import Schema

NAMES = ("accounts", "orders", "visits")
SCHEMA = Schema.of(id="bigint", op="bigint", payload="text")
KEY = ("id",)
#: Everything that happens rarely happens often here: rollups, parts, compaction, garbage.
CONFIG = Config(
    inline_bytes_max=4096,
    part_rows_max=150,
    rollup_entries=25,
    rollup_bytes_min=64 * 1024,
    inline_batches_max=8,
    inline_total_bytes_max=64 * 1024,
    merge_fan_in=3,
    garbage_grace_ms=300,
    hold_lease_ms=5_000,
    poll_s=0.01,
)
READABLE = 40  # so many times stay readable behind the newest
_MASK = (1 << 64) - 1
_ROWS_PER_OPERATION = 1_000

Row = tuple[int, int, str]


@dataclass(frozen=True)
class Step:
    """One operation: what it adds and, when it replaces an earlier one, what it takes away."""

    seed: int
    number: int
    replaces: int = 0

    @property
    def kind(self) -> str:
        if self.replaces:
            return "replace"
        kinds = ("small", "large", "atomic", "seal", "allow")
        return self._random().choices(kinds, (40, 12, 20, 20, 8))[0]

    def _random(self) -> Random:
        return Random(f"{self.seed}/{self.number}")

    def _replaced(self) -> Step:
        return Step(self.seed, self.replaces)

    @property
    def names(self) -> tuple[str, ...]:
        """The collections that it is about."""
        if self.replaces:
            return self._replaced().names
        if self.kind == "atomic":
            return NAMES
        return (NAMES[self.number % len(NAMES)],)

    @property
    def seals(self) -> bool:
        return self.kind in ("atomic", "seal")

    def added(self, name: str) -> list[Row]:
        if name not in self.names or self.kind in ("seal", "allow"):
            return []
        random = self._random()
        count = random.randrange(100, 400) if self.kind == "large" else random.randrange(1, 6)
        first = self.number * _ROWS_PER_OPERATION + random.randrange(100)
        return [
            (first + at, self.number, f"{name}-{random.getrandbits(64):x}") for at in range(count)
        ]

    def updates(self, name: str) -> list[Update[Row, int]]:
        gone = self._replaced().added(name) if self.replaces else []
        return [Update(row, self.number, 1) for row in self.added(name)] + [
            Update(row, self.number, -1) for row in gone
        ]

    @lru_cache(maxsize=1 << 16)  # noqa: B019 - steps are values
    def digest(self, name: str) -> int:
        return digest((update.data, update.diff) for update in self.updates(name))


def digest(rows: Iterator[tuple[Row, int]]) -> int:
    total = 0
    for (number, op, payload), diff in rows:
        total += diff * xxhash.xxh3_64_intdigest(f"{number}/{op}/{payload}".encode())
    return total & _MASK


def digest_of(table: pa.Table) -> int:
    """The digest of a snapshot's, or a listen's, table."""
    columns = [table.column(name).to_pylist() for name in (*SCHEMA.names, "_diff")]
    return digest(
        ((number, op, text), diff) for number, op, text, diff in zip(*columns, strict=True)
    )


def read_digest(read: ReadHandle, as_of: int) -> int:
    return digest_of(read.snapshot(as_of, wait=False).result().to_arrow())


class Load:
    """Submits operations, several at a time, and says what it does: ``s`` submits, ``a`` acks."""

    def __init__(self, client: Client, seed: int, first: int, say: Callable[[str], None]) -> None:
        self._client = client
        self._seed = seed
        self._say = say
        self._waiting: deque[tuple[Step, Future[Any]]] = deque()
        self._replaceable: deque[Step] = deque()
        self._random = Random(f"load/{seed}/{first}")
        self.number = first
        self.handles = {name: client.create_or_load(name, SCHEMA, KEY)[0] for name in NAMES}

    def seal_all(self) -> None:
        """Make every time before the next operation complete, so that all of it can be read."""
        together = self._client.atomic()
        for handle in self.handles.values():
            together.seal(handle, self.number)
        together.commit().result()

    def step(self, at_once: int = 12) -> None:
        """Submit one operation; wait for the oldest when there are too many."""
        replaces = 0
        if len(self._replaceable) > 8 and self._random.random() < 0.6:
            replaces = self._replaceable.popleft().number
        step = Step(self._seed, self.number, replaces)
        self.number += 1
        self._say(f"s {step.number} {replaces}")
        self._waiting.append((step, self._submit(step)))
        while len(self._waiting) > at_once or (self._waiting and self._waiting[0][1].done()):
            self.reap()
        if self._random.random() < 0.02:
            self._client.compact(self._random.choice(NAMES))

    def reap(self) -> None:
        """Wait for the oldest operation and acknowledge it."""
        step, future = self._waiting.popleft()
        future.result()
        self._say(f"a {step.number}")
        if step.kind in ("small", "large", "atomic"):
            self._replaceable.append(step)

    def finish(self) -> None:
        while self._waiting:
            self.reap()

    def _submit(self, step: Step) -> Future[Any]:
        together = self._client.atomic()
        for name in step.names:
            handle = self.handles[name]
            if step.kind == "allow":
                together.allow_compaction(handle, max(step.number - READABLE, 0))
            elif updates := step.updates(name):
                together.write(handle, updates)
            if step.seals:
                together.seal(handle, step.number + 1)
        return together.commit()


class Violation(AssertionError):
    """Something that the product promises did not hold."""


@dataclass
class _Account:
    """The digest of one collection after every operation that is known to be there."""

    times: list[int] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)

    def at(self, time: int) -> int:
        place = bisect_right(self.times, time)
        return self.totals[place - 1] if place else 0

    def add(self, time: int, change: int) -> None:
        if change:
            last = self.totals[-1] if self.totals else 0
            self.times.append(time)
            self.totals.append((last + change) & _MASK)


class Ledger:
    """What was submitted and acknowledged, what is known to be there, what was read of it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.doubtful: deque[Step] = deque()
        self.acknowledged = 0  # of the doubtful ones, from the front
        self.accounts = {name: _Account() for name in NAMES}
        self.frontiers = dict.fromkeys(NAMES, (0, 0))
        self.sealed = dict.fromkeys(NAMES, 0)
        self.next = 1
        self.unverified: list[tuple[str, int, int]] = []
        self.counts = {"submitted": 0, "acknowledged": 0, "lost": 0, "kept": 0, "reads": 0}

    def hear(self, line: str) -> None:
        """One line of a `Load`."""
        what, number, *rest = line.split()
        if what == "s":
            self.doubtful.append(Step(self.seed, int(number), int(rest[0])))
            self.next = int(number) + 1
            self.counts["submitted"] += 1
        elif what == "a":
            step = self.doubtful[self.acknowledged]
            if step.number != int(number):
                raise Violation(f"operation {number} was acknowledged before {step.number}")
            self.acknowledged += 1
            self.counts["acknowledged"] += 1
            if step.seals:
                for name in step.names:
                    self.sealed[name] = step.number + 1

    def settle(self, observed: dict[str, int]) -> int:
        """Find which prefix a crash left, given every collection's digest after it; its length."""
        totals = {name: self.accounts[name].at(self.next) for name in NAMES}
        steps = list(self.doubtful)
        for count in range(len(steps) + 1):
            if count >= self.acknowledged and totals == observed:
                self._keep(steps[:count])
                doubtful = len(steps) - self.acknowledged
                self.counts["kept"] += count - self.acknowledged
                self.counts["lost"] += doubtful - (count - self.acknowledged)
                self.doubtful.clear()
                self.acknowledged = 0
                return count
            if count < len(steps):
                for name in NAMES:
                    totals[name] = (totals[name] + steps[count].digest(name)) & _MASK
        raise Violation(
            f"no prefix of operations {steps[0].number if steps else self.next}..{self.next - 1} "
            f"with the first {self.acknowledged} gives what is read"
        )

    def _keep(self, steps: list[Step]) -> None:
        for step in steps:
            for name in NAMES:
                self.accounts[name].add(step.number, step.digest(name))

    def note_frontiers(self, name: str, since: int, upper: int) -> None:
        before = self.frontiers[name]
        if since < before[0] or upper < before[1] or upper < self.sealed[name]:
            raise Violation(
                f"{name}: since {since}, upper {upper} after {before}, sealed {self.sealed[name]}"
            )
        self.frontiers[name] = (since, upper)

    def note_read(self, name: str, time: int, found: int) -> None:
        """An answer that somebody got; verified once everything up to its time is settled."""
        self.counts["reads"] += 1
        self.unverified.append((name, time, found))

    def verify_reads(self) -> None:
        first_doubt = self.doubtful[0].number if self.doubtful else self.next
        later = []
        for name, time, found in self.unverified:
            if time >= first_doubt:
                later.append((name, time, found))
            elif self.accounts[name].at(time) != found:
                raise Violation(f"{name} at {time} answered {found:016x}, which it never was")
        self.unverified = later
