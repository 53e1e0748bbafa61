"""TRUNCATE upstream is data: what the table held is gone at that transaction's time.

The judge is upstream: what its tables had at each point that was bound.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from noonmark.errors import SourceStalled
from noonmark.ingest.ingestion import Ingestion, InPlaceEngine
from noonmark.ingest.task import GatherTask, IngestTask, Row
from noonmark.persist.client import Client, Options, open_location
from noonmark.persist.config import Config
from noonmark.source.contract import Source, Split
from noonmark.source.impl.postgres import Postgres
from noonmark.source.splits import read_splits
from support.ingest.logical_ingest import contents, ingest, reasons
from support.neighbour.logical import Upstream

TABLES = ("keyed", "whole", "child", "part_low", "part_high")
SCHEMA = (
    "create table keyed (id int primary key, n int, big text)",
    "alter table keyed alter big set storage external",
    "create table whole (id int, n int, big text)",
    "alter table whole replica identity full",
    "create table child (id serial primary key, parent int references keyed, n int)",
    "create table part (id int primary key, n int) partition by range (id)",
    "create table part_low partition of part for values from (0) to (100)",
    "create table part_high partition of part for values from (100) to (200)",
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with open_location(tmp_path / "location") as opened:
        yield opened


class BindsOnly(InPlaceEngine):
    """An engine that does not come to read."""

    def run(self, *_: Any) -> Any:
        raise SourceStalled("not now")


@dataclass(frozen=True)
class Shuffling(InPlaceEngine):
    """As the engine on Spark does large ones: a task per split, and a shuffle by key."""

    def run(self, source: Source, splits: Sequence[Split], work: IngestTask) -> list[Row]:
        scattering = replace(work, buckets=3)
        read = [batch for split in splits for batch in scattering(read_splits(source, [split]))]
        rows = [row for batch in read for row in batch.to_pylist()]
        gathered = []
        for bucket in sorted({row["bucket"] for row in rows}):
            mine = [b.filter([row["bucket"] == bucket for row in b.to_pylist()]) for b in read]
            gathered += [batch for batch in mine if batch.num_rows]
        made = GatherTask(work)(gathered)
        return [row for batch in made for row in batch.to_pylist()]


@dataclass
class Watched:
    """A database whose tables are known at every point that was bound."""

    upstream: Upstream
    client: Client
    engine: InPlaceEngine = field(default_factory=InPlaceEngine)
    known: dict[int, dict[str, Counter[Any]]] = field(default_factory=dict)
    cases: dict[int, str] = field(default_factory=dict)
    case: str = ""

    def __post_init__(self) -> None:
        self.upstream.run(*SCHEMA)
        self.source: Postgres = self.upstream.source()
        self.ingestion: Ingestion = ingest(self.client, self.source)

    def now(self) -> dict[str, Counter[Any]]:
        return {t: Counter(self.upstream.run(f"select * from only {t}")) for t in TABLES}

    def tick(self, *, reads: bool = True) -> None:
        """Bind what upstream has, and read it, or leave that to a later tick."""
        now, before = self.now(), self.ingestion.remap.upper
        self.ingestion.engine = self.engine if reads else BindsOnly()
        try:
            self.ingestion.tick()
        except SourceStalled:
            assert not reads
        bound = self.ingestion.remap.upper.only()
        assert bound is not None
        if self.ingestion.remap.upper != before:  # a snapshot that is not read is not bound
            self.known[bound - 1] = now
            self.cases[bound - 1] = self.case

    def restart(self) -> None:
        self.source.close()
        self.source = Postgres.from_plain(self.upstream.url, self.source.to_plain())
        self.ingestion = ingest(self.client, self.source)

    def check(self) -> None:
        for time, tables in self.known.items():
            for table, wanted in tables.items():
                found = contents(self.client, table, time)
                assert found == wanted, (table, time, self.cases[time])
        assert reasons(self.client) == []


@pytest.fixture
def watched(upstream: Upstream, client: Client) -> Iterator[Watched]:
    made = Watched(upstream, client)
    yield made
    made.source.close()


EMPTY = ("delete from child", "delete from keyed", "delete from whole", "delete from part")
FILL = (
    "insert into keyed select i, i, repeat('x', 3000) from generate_series(1, 50) i",
    "insert into whole select i, i, 'w' from generate_series(1, 50) i, generate_series(1, 2)",
    "insert into child (parent, n) select i, i from generate_series(1, 50) i",
    "insert into part select i, i from generate_series(50, 150) i",
)
CASES: dict[str, tuple[str, ...]] = {
    "alone": ("truncate whole",),
    "cascade": ("truncate keyed cascade",),
    "several tables": ("truncate keyed, child, whole restart identity",),
    "rows before and after in its transaction": (
        "begin", "insert into keyed values (900, 1, 'a')", "update whole set n = 0",
        "truncate keyed, whole cascade", "insert into keyed values (1, 2, 'b'), (901, 3, 'c')",
        "insert into whole values (1, 1, 'w'), (1, 1, 'w')", "update keyed set n = 5 where id = 1",
        "commit",
    ),
    "rolled back": ("begin", "truncate whole, child", "rollback"),
    "to a savepoint": (
        "begin", "insert into whole values (7, 7, 'w')", "savepoint s", "truncate whole",
        "insert into whole values (8, 8, 'w')", "rollback to s",
        "insert into whole values (9, 9, 'w')", "commit",
    ),
    "twice in a transaction": (
        "begin", "truncate whole", "insert into whole values (1, 1, 'a')", "truncate whole",
        "insert into whole values (2, 2, 'b')", "truncate child", "truncate child", "commit",
    ),
    "again and again": (
        "truncate whole", "insert into whole values (1, 1, 'a')", "truncate whole",
        "truncate child", "insert into child (parent, n) values (3, 3)", "truncate child",
        "insert into whole values (1, 1, 'a')", "insert into child (parent, n) values (4, 4)",
    ),
    "a partition": ("truncate part_low",),
    "all partitions": ("truncate part", "insert into part values (60, 1), (160, 1)"),
    "what a key had is not there any more": (
        "truncate keyed cascade", "insert into keyed values (1, 1, repeat('y', 4000))",
        "update keyed set n = 9 where id = 1", "delete from keyed where id = 1",
        "insert into keyed values (1, 2, repeat('z', 4000))", "update keyed set n = 3",
    ),
    "of nothing": ("truncate whole, child", "truncate whole, child"),
}  # fmt: skip


def test_truncate(watched: Watched) -> None:
    watched.tick()
    for case, statements in CASES.items():
        watched.case = case
        watched.upstream.run(*EMPTY, *FILL)
        watched.tick()
        watched.upstream.run(*statements)
        watched.tick()
        watched.upstream.run("insert into whole values (70, 1, 'later')")
        watched.tick()
    watched.check()


def test_between_the_snapshot_and_the_first_tick(watched: Watched) -> None:
    """It is in the snapshot, or follows it: never half."""
    watched.upstream.run(*FILL)
    watched.restart()
    watched.upstream.run("truncate keyed, whole cascade", "insert into whole values (1, 1, 'a')")
    watched.tick()
    watched.check()


def test_the_rows_that_go_are_those_of_the_collection(watched: Watched) -> None:
    watched.upstream.run("insert into whole select i, i, 'w' from generate_series(1, 20000) i")
    watched.tick()
    watched.upstream.run("truncate whole", "insert into whole values (1, 1, 'one')")
    watched.tick()
    assert contents(watched.client, "whole") == Counter([(1, 1, "one")])
    watched.check()


def test_errors_of_rows_with_keys_go_with_them(upstream: Upstream, client: Client) -> None:
    upstream.run("create table t (id int primary key, n numeric(10,2))")
    upstream.run("insert into t values (1, 'NaN'), (2, 2)")
    source = upstream.source()
    ingestion = ingest(client, source)
    ingestion.tick()
    assert len(reasons(client)) == 1
    upstream.run("insert into t values (3, 'NaN')", "truncate t", "insert into t values (4, 'NaN')")
    ingestion.tick()
    assert [row[3] for row in contents(client, "pg_errors")] == ["(4)"]
    upstream.run("begin", "insert into t values (5, 'NaN')", "truncate t", "commit")
    ingestion.tick()
    assert reasons(client) == []
    source.close()


class Writer:
    """Random transactions over all tables."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds: tuple[Callable[[], str], ...] = (
            self.insert, self.insert, self.update, self.update, self.delete, self.truncate,
        )  # fmt: skip

    def transaction(self) -> list[str]:
        body = [self.random.choice(self.kinds)() for _ in range(self.random.randint(1, 5))]
        if self.random.random() < 0.3:
            at = self.random.randint(0, len(body))
            body[at:at] = ["savepoint s", self.random.choice(self.kinds)(), "rollback to s"]
        return ["begin", *body, self.random.choice(["commit"] * 5 + ["rollback"])]

    def key(self) -> int:
        return self.random.randint(1, 40)

    def insert(self) -> str:
        key, n = self.key(), self.random.randint(0, 5)
        big = f"repeat('{n}', {self.random.choice([1, 4000])})"
        return self.random.choice([
            f"insert into keyed values ({key}, {n}, {big}) on conflict (id) do update set n = {n}",
            f"insert into whole select {key}, {n}, {big} from generate_series(1, {n})",
            f"insert into child (parent, n) select id, {n} from keyed where id <= {key}",
            f"insert into part values ({5 * key - 1}, {n}) on conflict (id) do nothing",
        ])  # fmt: skip

    def update(self) -> str:
        key, n = self.key(), self.random.randint(0, 5)
        return self.random.choice([
            f"update keyed set n = {n} where id <= {key}",
            f"update whole set n = {n} where id = {key}",
            f"update child set n = {n} where id % 7 = {n}",
            f"update part set id = id + 1 where id = {5 * key - 1} and not exists"
            f" (select from part where id = {5 * key})",
        ])  # fmt: skip

    def delete(self) -> str:
        key = self.key()
        return self.random.choice([
            f"delete from child where parent = {key}", f"delete from whole where id <= {key}",
            f"delete from part where id > {5 * key}",
        ])  # fmt: skip

    def truncate(self) -> str:
        return self.random.choice([
            "truncate keyed cascade", "truncate whole", "truncate child restart identity",
            "truncate whole, child", "truncate part", "truncate part_high", "truncate part, whole",
        ])  # fmt: skip


@pytest.mark.parametrize(("engine", "seed"), [(InPlaceEngine(), 0), (Shuffling(), 1)])
def test_random_transactions(
    upstream: Upstream, tmp_path: Path, engine: InPlaceEngine, seed: int
) -> None:
    """At every bound point, also of several that are read together, and after restarts."""
    writer = Writer(seed)
    # Small parts, so that a tick stores some of what a truncation takes away.
    config = Config(part_rows_max=16, inline_bytes_max=256 if seed % 2 else 16_384)
    with open_location(tmp_path / "location", options=Options(config=config)) as client:
        watched = Watched(upstream, client, engine)
        for _ in range(20):
            for _ in range(writer.random.randint(1, 3)):
                upstream.run(*writer.transaction())
            watched.tick(reads=writer.random.random() < 0.6)
            if writer.random.random() < 0.2:
                watched.restart()
        watched.tick()
        watched.check()
        watched.source.close()
