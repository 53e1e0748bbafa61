"""Queries as views over tables that change, with DuckDB as the judge at every time.

A world of `JudgedViews` has a location with the tables, loaded at time 1; every change of all of
them is one time later. The judge is asked the same text over the contents of that time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import duckdb
import pyarrow as pa

from noonmark import persist
from noonmark.compute.jvm.session import spark_session, stop_session
from noonmark.compute.plan.definition import Definition, errors_name
from noonmark.compute.view.dataflow import Dataflow
from noonmark.compute.view.view import View
from noonmark.persist.client import Client, Options
from noonmark.rows.schema import Schema
from noonmark.tvc import Antichain
from support.house.proving import answer, bar, options
from support.view.tpch_changes import Row, disagreement, updates, without_limit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answers = Mapping[str, list[Row]]
World = TypeVar("World", bound="JudgedViews")


class Changing(Protocol):
    """Tables, as they are now."""

    now: dict[str, pa.Table]


class Judge:
    """DuckDB, asked of the contents now."""

    def __init__(self, tables: Changing, queries: Mapping[str, str]) -> None:
        self.tables = tables
        self.queries = queries
        self.connection = duckdb.connect(config={"threads": 1})

    def answers(self) -> dict[str, list[Row]]:
        """Every query without its LIMIT, as rows."""
        for name, table in self.tables.now.items():
            self.connection.register(name, table)
        return {name: self._rows(sql) for name, sql in self.queries.items()}

    def _rows(self, sql: str) -> list[Row]:
        return self.connection.execute(without_limit(sql)).fetchall()


class JudgedViews:
    """See the module."""

    def __init__(
        self,
        client: Client,
        spark: Callable[[], SparkSession],
        *,
        queries: Mapping[str, str],
        schemas: Mapping[str, Schema],
        keys: Mapping[str, tuple[str, ...]],
        tables: Changing,
    ) -> None:
        self.client = client
        self.spark = spark
        self.queries = queries
        self.schemas = schemas
        self.judge = Judge(tables, queries)
        self.flow = Dataflow()
        self.now = 0
        for name, schema in schemas.items():
            client.create_or_load(name, schema, key=keys[name])
        self.load(tables)

    def load(self, tables: Changing) -> None:
        """The tables as they are now, at time 1."""
        self.append({name: updates(table, 1, 1) for name, table in tables.now.items()})

    def create(self, names: Iterable[str] = ()) -> None:
        """Make queries views, all by default; they are hydrated by the next tick."""
        for name in names or self.queries:
            definition = Definition.of_sql(name, self.queries[name], self.schemas)
            self.flow.add(View(self.client, self.spark, definition).start())

    def append(self, tables: Mapping[str, pa.Table]) -> None:
        """The updates of the next time."""
        lower, self.now = self.now + (1 if self.now else 0), self.now + 1
        txn = self.client.atomic()
        for name, table in tables.items():
            handle = self.client.create_or_load(name)[0]
            txn.append(handle, table, lower, Antichain.of(self.now + 1))
        txn.commit().result()

    def tick(self) -> set[str]:
        """One round over all views; the strategies that were taken."""
        done = self.flow.tick()
        assert self.flow.failures == {}, self.flow.failures
        return {record.strategy for record in done}

    def contents(self, name: str, time: int) -> dict[Row, int]:
        """The rows of a view at a time."""
        failed = self.client.create_or_load(errors_name(name))[1].snapshot(time).result()
        assert not failed.counts()
        return dict(self.client.create_or_load(name)[1].snapshot(time).result().counts())

    def wrong(self, time: int, answers: Answers | None = None) -> dict[str, str]:
        """What differs from the judge, by view."""
        expected = self.judge.answers() if answers is None else answers
        found = {
            name: disagreement(view.definition.plan, self.contents(name, time), expected[name])
            for name, view in self.flow.views.items()
        }
        return {name: text for name, text in found.items() if text is not None}


@dataclass
class Verdict:
    """How many answers were compared with the judge's, how many had rows, and what differed."""

    compared: int = 0
    filled: int = 0
    wrong: list[str] = field(default_factory=list)


def judged(
    world: JudgedViews,
    change: Callable[[], object],
    ticks: Sequence[int],
    advance: Callable[[], None],
) -> Verdict:
    """Hydrate all views, then tick over so many times each; compare at every time."""
    verdict = Verdict()
    world.create()
    for times in (0, *ticks):
        answers = [(world.now, world.judge.answers())] if not times else []
        for _ in range(times):
            change()
            answers.append((world.now, world.judge.answers()))
        world.tick()
        for time, expected in answers:
            found = world.wrong(time, expected)
            verdict.wrong += [f"{name} at {time}: {text}" for name, text in found.items()]
            verdict.compared += len(expected)
            verdict.filled += sum(map(bool, expected.values()))
        advance()
    return verdict


def proved(
    title: str,
    argv: Sequence[str],
    ticks: int,
    make: Callable[[Client, Callable[[], SparkSession], int], World],
    change: Callable[[World], object],
) -> dict[str, Any]:
    """The figure of a world made with the seed that was chosen; a tick covers 1 to 3 times."""
    chosen = options(argv, ticks, "ticks")
    times = [1 + at % 3 for at in range(chosen.count)]
    spark = spark_session("local[2]", options={"spark.driver.memory": "3g"})
    with (
        TemporaryDirectory() as folder,
        persist.open(folder, options=Options(notify_host=None)) as client,
        bar("rounds", len(times) + 1) as advance,
    ):
        world = make(client, lambda: spark, chosen.seed)
        done = judged(world, lambda: change(world), times, advance)
        strategies = Counter(record.strategy for record in world.flow.records)
    stop_session()
    taken = ", ".join(f"{name} {count}" for name, count in sorted(strategies.items()))
    note = f"{done.compared} answers compared, {done.filled} with rows; ticks of views: {taken}"
    goal = f"0 in {len(world.queries)} queries x {sum(times)} times"
    return answer(title, goal, done.wrong, {"answers": done.compared}, note)
