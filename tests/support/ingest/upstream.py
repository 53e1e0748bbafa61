"""A source made for tests: an upstream that grows by chance, and remembers who read what.

It has what real ones have: partitions that appear at any time, offsets without a record, several
messages at one offset (a transaction, over several outputs), retractions, idle periods, an end. A
split may be cut anywhere, also inside of an offset where all is typed. Outputs are typed, or raw
for the envelopes NONE and UPSERT, with values and keys that cannot be read. Every call may be the
one at which the process dies: see `Fuse`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import pyarrow as pa

from noonmark.clock import Clock
from noonmark.ingest.ingestion import Feed, raw, typed
from noonmark.rows.schema import Schema
from noonmark.source.contract import (
    START,
    Frontier,
    Output,
    PartitionKind,
    Split,
    points,
    ranges,
    record_schema,
)
from noonmark.source.format.json import Json
from noonmark.tvc import EMPTY, Partition, partition_frontier

SCHEMA = Schema.of(id="bigint not null", word="text")
KEY, WORD = Schema.of(id="bigint not null"), Schema.of(word="text")
_WORDS = ("", "noon", "mark", "Zeitgleichung", None)


class Crash(Exception):
    """The process is dead; nothing that it does from now on has any effect."""


@dataclass
class Fuse:
    """Burns a little with every call; when it is gone, that call and all later ones fail."""

    left: int | None = None
    dead: bool = False
    where: str = ""
    crashes: Counter[str] = field(default_factory=Counter)

    def burn(self, where: str) -> None:
        if self.dead:
            raise Crash(self.where)
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            self.dead, self.where = True, where
            self.crashes[where] += 1
            raise Crash(where)

    def renew(self, left: int | None) -> None:
        self.left, self.dead = left, False


OutputKind = Literal["typed", "NONE", "UPSERT"]


@dataclass(frozen=True)
class Message:
    """One record of one output.

    Typed: a row and its diff. Raw: `key` and `value`; `row` is what they mean, None when the value
    cannot be read or there is none.
    """

    output: int
    row: tuple[int, str | None] | None
    diff: int = 1
    key: bytes | None = None
    value: bytes | None = None


@dataclass
class Upstream:
    """All that was ever written upstream: messages by partition and offset."""

    random: Random
    kind: PartitionKind
    outputs: tuple[OutputKind, ...]
    messages: dict[Partition, dict[int, list[Message]]] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    finished: bool = False
    _next_id: int = 0

    def grow(self) -> None:
        """Some time passes upstream; often nothing happens."""
        chance = self.random.random()
        if self.finished or chance < 0.25:
            return
        if not self.ends or (chance < 0.45 and len(self.ends) < 5):
            self._add_partition()
        for partition in list(self.ends):
            if self.random.random() < 0.6:
                for _ in range(self.random.randrange(1, 4)):
                    self._append(partition)
        self.finished = self.random.random() < 0.02

    def _add_partition(self) -> None:
        taken = set(self.ends)
        names: list[Partition] = list(range(9)) if self.kind == "number" else list("abc/~ä0_")
        self.ends.setdefault(self.random.choice([n for n in names if n not in taken]), 0)

    def _append(self, partition: Partition) -> None:
        """One more offset; it may be empty, one message or a transaction."""
        offset = self.ends[partition]
        self.ends[partition] = offset + 1
        log = self.messages.setdefault(partition, {})
        size = self.random.choice((0, 1, 1, 1, 2, 4))
        made: list[Message] = []
        for _ in range(size):
            made.append(self._message(partition, made))
        if made:
            log[offset] = made

    def _message(self, partition: Partition, made: list[Message]) -> Message:
        output = self.random.randrange(len(self.outputs))
        kind = self.outputs[output]
        self._next_id += 1
        word = self.random.choice(_WORDS)
        if kind == "typed":
            live = [row for number, row in self._live(partition, made) if number == output]
            if live and self.random.random() < 0.3:
                return Message(output, self.random.choice(live), -1)
            return Message(output, (self._next_id, word))
        if kind == "NONE":
            row = (self._next_id, word)
            return self._raw(output, row, None, {"id": row[0], "word": word})
        # Few keys, which all partitions share: they meet, and their order decides.
        name = self.random.randrange(4)
        key = b"{" if self.random.random() < 0.05 else json.dumps({"id": name}).encode()
        text = f"{self._next_id}"
        if self.random.random() < 0.2:
            return Message(output, None, key=key)
        return self._raw(output, (name, text), key, {"word": text})

    def _raw(self, output: int, row: Any, key: bytes | None, value: Any) -> Message:
        if self.random.random() < 0.15:
            bad = self.random.choice((b"{", b"\xff", b"[1]", b""))
            return Message(output, None, key=key, value=bad)
        return Message(output, row, key=key, value=json.dumps(value).encode())

    def _live(self, partition: Partition, made: list[Message]) -> list[Any]:
        """The rows of a partition that can be taken back."""
        count: Counter[Any] = Counter()
        for message in [*(m for each in self.messages[partition].values() for m in each), *made]:
            if self.outputs[message.output] == "typed":
                count[message.output, message.row] += message.diff
        return [row for row, there in count.items() if there > 0]


@dataclass
class TestedSource:
    """See `noonmark.source.contract.Source`.

    `on_read(partition, offset)` and `on_release(frontier)` are told before anything happens.
    """

    __test__ = False

    upstream: Upstream
    fuse: Fuse
    on_read: Callable[[Partition, int], None]
    on_release: Callable[[Frontier], None]
    seed: int = 0
    probes: list[Frontier] = field(default_factory=lambda: [START])
    latest_is_linearizable: bool = True
    offset_unit: int = 1
    releases: str | None = None

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(
            Output(f"out{n}", SCHEMA, ("id",)) if kind == "typed" else Output(f"out{n}")
            for n, kind in enumerate(self.upstream.outputs)
        )

    def feeds(self) -> tuple[Feed, ...]:
        return tuple(self._feed(n, kind) for n, kind in enumerate(self.upstream.outputs))

    def _feed(self, output: int, kind: OutputKind) -> Feed:
        name = f"out{output}"
        if kind == "typed":
            return typed(self, output)
        if kind == "NONE":
            return raw(self, output, name, Json(SCHEMA))
        return raw(self, output, name, Json(WORD), key_format=Json(KEY), envelope="UPSERT")

    @property
    def partition_kind(self) -> PartitionKind:
        return self.upstream.kind

    async def latest(self, clock: Clock, known: Frontier = START) -> Frontier:
        self.fuse.burn("before latest")
        answer = EMPTY if self.upstream.finished else partition_frontier(self.upstream.ends)
        assert answer.at_or_beyond(known)
        assert clock is not None
        self.probes.append(answer)
        self.fuse.burn("after latest")
        return answer

    def plan(self, lower: Frontier, upper: Frontier) -> list[Split]:
        splits = []
        for partition, start, stop in ranges(lower, upper, self.upstream.ends):
            # Pure, as plans are: the same range is always cut in the same places.
            random = Random(f"{self.seed} {partition} {start} {stop}")
            at = start
            while at < stop:
                to = random.randrange(at + 1, stop + 1)
                there = self.upstream.messages[partition].get(at, ())
                kinds = {self.upstream.outputs[message.output] for message in there}
                if to == at + 1 and len(there) > 1 and kinds == {"typed"}:
                    splits += [Split(partition, at, to, (0, 1)), Split(partition, at, to, (1,))]
                else:
                    splits.append(Split(partition, at, to, weight=to - at))
                at = to
        return splits

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        self.fuse.burn("before read")
        run: list[tuple[int, Message]] = []
        for offset in range(split.lower, split.upper):
            self.on_read(split.partition, offset)
            for message in _piece(self.upstream.messages[split.partition].get(offset, []), split):
                if run and run[-1][1].output != message.output:
                    yield self._batch(split.partition, run)
                    self.fuse.burn("inside of read")
                    run = []
                run.append((offset, message))
        if run:
            yield self._batch(split.partition, run)
            self.fuse.burn("after read")

    def _batch(self, partition: Partition, run: list[tuple[int, Message]]) -> pa.RecordBatch:
        """Messages of one output, one after another."""
        output = run[0][1].output
        schema = record_schema(self, output)
        rows: list[Any]
        if self.upstream.outputs[output] == "typed":
            rows = [(message.diff, *(message.row or ())) for _, message in run]
        else:
            rows = [(message.key, message.value) for _, message in run]
        data = [
            pa.array(values, field.type)
            for values, field in zip(zip(*rows, strict=True), list(schema)[3:], strict=True)
        ]
        offsets = [offset for offset, _ in run]
        columns = [*points(self.partition_kind, partition, offsets, output), *data]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    async def release(self, frontier: Frontier) -> None:
        self.fuse.burn("before release")
        self.on_release(frontier)
        self.fuse.burn("after release")


def _piece(messages: list[Message], split: Split) -> list[Message]:
    """The messages of an offset that a split has: all, the first, or those after it."""
    if not split.piece:
        return messages
    return messages[:1] if len(split.piece) == 2 else messages[1:]
