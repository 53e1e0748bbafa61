"""The same statements on a cluster and embedded: every answer is equal, row by row.

The cluster is a standalone master with two workers; the location is in an S3 server with its log in
PostgreSQL. The embedded server has files and a local Spark. Both take the same steps: a source of
files, tables, views that are hydrated over many rows, small changes, a change too large for one
task, an executor that is killed, a worker that is killed, a server that is killed. After each step
both are asked for everything; at the beginning and at the end the cluster audits its views.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from noonmark.clock import SYSTEM
from support.neighbour.servers import PostgresServer, S3Server
from support.neighbour.standalone import Cluster, end, standalone
from support.serve.process import Server, serving

#: Rows of one INSERT: what one statement may hold.
_ROWS_OF_ONE = 250_000
_WITHIN_S = 300.0

_VIEWS = {
    "per_shop": "select shop, count(*) as n, sum(price) as total, max(price) as most "
    "from items group by shop",
    "best": "select i.id, i.price, s.name from items i join shops s on i.shop = s.id "
    "order by i.price desc, i.id limit 10",
    "quiet": "select s.id, s.name from shops s "
    "where not exists (select 1 from items i where i.shop = s.id and i.price > 99)",
}
_ASKED = (
    *(f"select * from {name}" for name in _VIEWS),
    "select count(*), sum(price), min(note), max(note) from items",
    "select shop % 10 as d, count(distinct price) from items group by 1",
    "select name, count(*) from shops join items on items.shop = shops.id group by name",
)


@dataclass
class Side:
    """One of the two servers, which can be started again."""

    name: str
    options: tuple[str, ...]
    data: str
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Start, or start again after the end of its process."""
        self.stack.close()
        self.server: Server = self.stack.enter_context(serving(self.data, *self.options))
        self.connection = self.server.connect()
        self.stack.callback(self.connection.close)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """A statement; one that met a death is tried again, as any client would."""
        until = SYSTEM.monotonic() + _WITHIN_S
        while True:
            try:
                cursor = self.connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
            except psycopg.Error as error:
                if statement.startswith(("insert", "create")) or SYSTEM.monotonic() > until:
                    raise AssertionError(f"{self.name}: {statement}: {error}") from error
                threading.Event().wait(1.0)


@dataclass
class Run:
    """Both sides, and what differed."""

    cluster: Cluster
    sides: tuple[Side, Side]
    wrong: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def both(self, statement: str) -> None:
        """A statement on both."""
        for side in self.sides:
            side.run(statement)

    def compare(self, step: str, *, audit: bool) -> None:
        """Ask both for everything; the cluster audits its views."""
        for query in _ASKED:
            far, near = (sorted(map(repr, side.run(query))) for side in self.sides)
            if far != near:
                self.wrong.append(f"{step}: {query}: {far[:3]} but embedded {near[:3]}")
        for name in _VIEWS if audit else ():
            if found := self.sides[0].run(f"audit materialized view {name}"):
                self.wrong.append(f"{step}: audit of {name}: {found}")

    def step(self, name: str, act: Callable[[], None], *, audit: bool = False) -> None:
        """One step on both, timed, then everything compared."""
        started = SYSTEM.monotonic()
        act()
        self.seconds[name] = SYSTEM.monotonic() - started
        self.compare(name, audit=audit)


def _insert(first: int, last: int) -> Iterator[str]:
    for begin in range(first, last + 1, _ROWS_OF_ONE):
        to = min(begin + _ROWS_OF_ONE - 1, last)
        yield (
            "insert into items select g, g % 997, (g * 7919 % 10000) / 100.0, "
            f"md5(g::text) || md5((g * 31)::text) from generate_series({begin}, {to}) g"
        )


@contextmanager
def two_sides(folder: Path, s3: S3Server, postgres: PostgresServer) -> Iterator[Run]:
    """A cluster and an embedded server, both empty."""
    name = SYSTEM.fresh_id()
    files = folder / "files"
    files.mkdir()
    with standalone(folder) as cluster, ExitStack() as ending:
        root = ("--files-root", str(files))
        far = Side(
            "cluster",
            ("--consensus", postgres.consensus_url(name), "--spark", cluster.master, *root),
            s3.url(name),
        )
        near = Side("embedded", ("--spark", "local[2]", *root), str(folder / "near"))
        for side in (far, near):
            ending.callback(side.stack.close)
            side.start()
        yield Run(cluster, (far, near))


def run_all(run: Run, folder: Path, rows: int, large: int) -> None:
    """Every step.

    Args:
        run: both sides.
        folder: that `two_sides` was given.
        rows: how many there are when views are made.
        large: how many come in one change afterwards.
    """
    shops = folder / "files" / "shops.csv"
    shops.write_text("".join(f"{at},shop {at}\n" for at in range(1000)))
    far = run.sides[0]

    def begin() -> None:
        run.both("create table items (id bigint primary key, shop int, price numeric, note text)")
        pattern = f"{folder}/files/*.csv"
        run.both(f"create source shops (id int, name text) from files '{pattern}' format csv")
        for statement in _insert(1, rows):
            run.both(statement)

    def hydrate() -> None:
        for name, query in _VIEWS.items():
            run.both(f"create materialized view {name} as {query}")
            run.both(f"select count(*) from {name}")

    def small() -> None:
        run.both("insert into items values (-1, 5, 123.45, 'by hand')")
        run.both("update items set price = price + 1 where id between 10 and 20")
        run.both("delete from items where id = 3")

    def many() -> None:
        for statement in _insert(rows + 1, rows + large):
            run.both(statement)

    def executor() -> None:
        before = run.cluster.executors()
        assert before, "the cluster has executors"
        os.kill(before[0], signal.SIGKILL)
        run.faults["executors killed"] = run.faults.get("executors killed", 0) + 1
        run.both("insert into items values (-2, 6, 99.99, 'after an executor')")

    def worker() -> None:
        end(run.cluster.workers[0])
        run.faults["workers killed"] = run.faults.get("workers killed", 0) + 1
        run.both("insert into items values (-3, 7, 99.98, 'after a worker')")
        run.cluster.add_worker()

    def driver() -> None:
        far.server.process.kill()
        run.faults["servers killed"] = run.faults.get("servers killed", 0) + 1
        far.start()
        run.both("insert into items values (-4, 8, 99.97, 'after a server')")

    run.both("select 1")
    begin()
    run.seconds["begin"] = 0.0
    run.step("hydration", hydrate, audit=True)
    run.step("small changes", small)
    run.step("a large change", many)
    run.step("an executor dies", executor)
    run.step("a worker dies", worker)
    run.step("the server dies", driver, audit=True)
