"""Figure C4: stored objects are changed behind the product's back, and every read must notice.

A location is built with every kind of object: log entries before and after a rollup, rollups, floor
markers, parts that are read whole, by pages and not at all, with schemas old and new. One object is
changed (a bit flipped, cut, extended, or two swapped); the location is opened read-only and all of
it is read in every way; then the object is put back.

Law: each read gives the answer that it gave before, or an error of class `Corrupt` that names a
changed object. If the newest state rests on a changed object, some read gives the error.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from noonmark import persist
from noonmark.clock import SYSTEM
from noonmark.errors import Corrupt
from noonmark.persist.impl.files import FileBlob
from noonmark.persist.impl.log import BlobConsensus
from noonmark.persist.read.plan import Query
from noonmark.persist.runtime import Runtime
from noonmark.rows.schema import Column, Schema
from noonmark.rows.types import parse_type
from support.store.history import Violation

#: Kinds of objects, and how often one of them is changed.
KINDS = {"log": 35, "rollup": 20, "part": 40, "floor": 5}
SCHEMA = Schema.of(id="bigint", name="text", price="double precision")
CONFIG = persist.Config(
    inline_bytes_max=8 * 1024,
    part_rows_max=4_000,
    rollup_entries=10_000,
    rollup_bytes_min=1 << 30,
    inline_batches_max=1_000,
    merge_fan_in=100,
)
#: As a process that reads much does: sorted runs merged by worker threads.
THREADED = persist.Config(prefetch_bytes_max=0, merge_rows_max=500)
THREADED_EVERY = 25

#: The ways to read: every one of a collection's columns and rows is in some of them.
QUERIES: dict[str, tuple[Query, ...]] = {
    "items": (
        Query(9),
        Query(9, keys=(2060, 10**9)),
        Query(9, where={"price": (100.0, 900.0)}),
        Query(9, columns=("name",), where={"id": (10, 1500)}),
        Query(9, after=3),
    ),
    "pairs": (
        Query(9),
        Query(5),
        Query(9, keys=((1, "n1"), (40, "n40"))),
        Query(9, after=4),
    ),
    "notes": (Query(9), Query(9, where={"price": (None, 500.0)}), Query(9, after=3)),
}


def _rows(
    random: Random, first: int, count: int, time: int, bits: int = 80
) -> list[persist.Update[Any, int]]:
    return [
        persist.Update((n, f"n{n}-{random.getrandbits(bits):x}", random.random() * 1000), time, 1)
        for n in range(first, first + count)
    ]


def build(folder: Path, seed: int) -> None:
    """Every kind of object. Rollups are written where the test wants them."""
    random = Random(f"build/{seed}")
    with persist.open(folder, options=persist.Options(config=CONFIG, notify_host=None)) as client:

        def roll_up() -> None:
            client.runtime.submit(client.journal.write_rollup()).result()

        items, _ = client.create_or_load("items", SCHEMA, ("id",))
        pairs, _ = client.create_or_load("pairs", SCHEMA, ("id", "name"))
        notes, _ = client.create_or_load("notes", SCHEMA)
        items.write(_rows(random, 0, 2_100, 1, bits=256)).result()
        small = [persist.Update((n, f"n{n}", float(n)), 2, 1) for n in range(60)]
        pairs.write(small).result()
        notes.write(_rows(random, 0, 30, 2)).result()
        roll_up()
        client.compact("notes").result()
        client.evolve("items", (Column("extra", parse_type("text"), True),)).result()
        items, _ = client.create_or_load("items")
        for time in (3, 4, 5):
            gone = [persist.Update(u.data, time, -1) for u in small if u.data[0] % 7 == time]
            pairs.write(gone + [persist.Update((n, "p", 0.5), time, 1) for n in range(200, 240)])
            notes.write(_rows(random, 100 * time, 400, time)).result()
            if time == 4:
                client.compact("notes").result()  # leaves parts that nobody needs
            roll_up()
        items.write([persist.Update((n, "late", 1.5, "e"), 6, 1) for n in range(5)])
        items.write([persist.Update((n, "big", 1.5, f"{n:090x}"), 6, 1) for n in range(50, 300)])
        for handle in (items, pairs, notes):
            handle.seal(10).result()
        pairs.write([persist.Update((1, "not complete yet", 0.0), 12, 1)]).result()


@dataclass
class Mutations:
    """One location and what its reads answer."""

    folder: Path
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = Random(f"mutations/{self.seed}")
        self._root = self.folder / "location-0"
        self._opened = 0
        build(self._root, self.seed)
        self._objects = {
            kind: sorted(
                str(p.relative_to(self._root))
                for p in self._root.glob(f"{kind}/**/*")
                if p.is_file()
            )
            for kind in KINDS
        }
        self._bytes = {
            name: (self._root / name).read_bytes()
            for names in self._objects.values()
            for name in names
        }
        self._expected = asyncio.run(self._read_all(persist.Config()))
        self._judge("nothing was changed", self._expected, set())
        self._needed = asyncio.run(self._rest_on())

    async def _open(self, config: persist.Config) -> persist.Client:
        runtime = Runtime(asyncio.get_running_loop(), SYSTEM, in_place=True)
        blob = FileBlob(self._root)
        options = persist.Options(mode="independent", config=config)
        return await persist.Client.start(
            runtime, blob, BlobConsensus(FileBlob(self._root)), options
        )

    async def _rest_on(self) -> set[str]:
        """The objects that the newest state rests on."""
        client = await self._open(persist.Config())
        state = client.state
        await client.close()
        newest = self._objects["rollup"][-1]
        needed = {p.key for c in state.collections.values() for b in c.batches for p in b.parts}
        entries = {name for name in self._objects["log"] if name[-20:] > newest[-20:]}
        return needed | entries | {newest}

    async def _read_all(self, config: persist.Config) -> dict[Any, pa.Table | Exception]:
        """Open and read everything in every way; an error stands for its answer."""
        try:
            client = await self._open(config)
        except Exception as error:
            return {"open": error}
        answers: dict[Any, pa.Table | Exception] = {}
        for way in _ways():
            try:
                answers[way] = pa.concat_tables([t async for t in _contents(client, *way)])
            except Exception as error:
                answers[way] = error
        await client.close()
        return answers

    def _read_all_threaded(self) -> dict[Any, pa.Table | Exception]:
        """The same through the front door, with worker threads and in bounded memory."""
        options = persist.Options(mode="independent", config=THREADED)
        try:
            client = persist.open(self._root, options=options)
        except Exception as error:
            return {"open": error}
        answers: dict[Any, pa.Table | Exception] = {}
        with client:
            for way in _ways():
                try:
                    answers[way] = pa.concat_tables(client.iterate(_contents(client, *way)))
                except Exception as error:
                    answers[way] = error
        return answers

    def mutate(self) -> None:
        """Change one object, or swap two, by chance; check every read; put it back."""
        (kind,) = self._random.choices(list(KINDS), list(KINDS.values()))
        name = self._random.choice(self._objects[kind])
        how, changed = self._change(kind, name)
        self.try_with(f"{kind} {how}", changed)

    def newest(self, kind: str) -> str:
        return self._objects[kind][-1]

    def largest(self, kind: str) -> tuple[str, bytes]:
        name = max(self._objects[kind], key=lambda name: len(self._bytes[name]))
        return name, self._bytes[name]

    def try_with(self, how: str, changed: dict[str, bytes]) -> None:
        """Put other bytes in place of some objects; check every read; put them back."""
        # Under a path of its own, so that nothing in this process remembers the location.
        self._opened += 1
        moved = self.folder / f"location-{self._opened}"
        self._root.rename(moved)
        self._root = moved
        try:
            for changed_name, data in changed.items():
                (self._root / changed_name).write_bytes(data)
            threaded = self._opened % THREADED_EVERY == 0
            answers = (
                self._read_all_threaded()
                if threaded
                else asyncio.run(self._read_all(persist.Config()))
            )
        finally:
            for changed_name in changed:
                (self._root / changed_name).write_bytes(self._bytes[changed_name])
        self.faults[how] += 1
        self._judge(f"mutation {self._opened}, {how} of {sorted(changed)}", answers, set(changed))

    def _change(self, kind: str, name: str) -> tuple[str, dict[str, bytes]]:
        random, data = self._random, self._bytes[name]
        others = [other for other in self._objects[kind] if self._bytes[other] != data]
        ways = ["extend"] + ["swap"] * bool(others) + ["flip", "flip", "cut", "empty"] * bool(data)
        how = random.choice(ways)
        if how == "swap":
            other = random.choice(others)
            return how, {name: self._bytes[other], other: data}
        return how, {name: CHANGES[how](data, random)}

    def _judge(
        self, what: str, answers: dict[Any, pa.Table | Exception], changed: set[str]
    ) -> None:
        noticed = False
        for way, found in answers.items():
            if isinstance(found, Corrupt):
                noticed = True
                if _stored_name(str(found.fields.get("object"))) not in changed:
                    raise Violation(f"{what}: {way} blames {found.fields}: {found}")
            elif isinstance(found, Exception):
                raise Violation(f"{what}: {way} gave {found!r}") from found
            elif not _same(found, self._expected[way]):
                raise Violation(f"{what}: {way} answers otherwise")
        if not changed:
            return
        if changed & self._needed and not noticed:
            raise Violation(f"{what}: nobody noticed")
        self.outcomes["noticed" if noticed else "not needed"] += 1


def _ways() -> list[tuple[str, int]]:
    return [(name, at) for name, queries in QUERIES.items() for at in range(len(queries))]


async def _contents(client: persist.Client, name: str, at: int) -> AsyncIterator[pa.Table]:
    collection = client.state.collection(name).id
    plan = client.reader.plan(collection, QUERIES[name][at])
    async for table in client.reader.contents(plan):
        yield table


def _same(found: pa.Table, expected: pa.Table) -> bool:
    if found.equals(expected):
        return True
    return _counts(found) == _counts(expected)  # the same rows in another order or grouping


def _counts(table: pa.Table) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for row in table.to_pylist():
        diff = row.pop("_diff")
        counts[tuple(row.items())] += diff
    return counts


def _stored_name(name: str) -> str:
    """The entry of a log is named by its number, its object by twenty digits."""
    kind, _, number = name.partition("/")
    return f"log/{int(number):020d}" if kind == "log" and number.isdigit() else name


def _flip(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


CHANGES: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip": _flip,
    "cut": lambda data, random: data[: random.randrange(len(data))],
    "empty": lambda data, random: b"",  # noqa: ARG005
    "extend": lambda data, random: data + random.randbytes(random.randrange(1, 64)),
}
