"""The 22 queries of TPC-H as views over tables that change, with DuckDB as the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from noonmark.compute.dataflow import Dataflow
from noonmark.compute.definition import Definition, errors_name
from noonmark.compute.view import View
from noonmark.persist.client import Client
from noonmark.tvc import Antichain
from support.tpch import QUERIES, SCHEMAS
from support.tpch_changes import KEYS, Judge, Row, Tables, disagreement, updates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TpchViews:
    """A location with the tables, loaded at time 1; every change is one time later."""

    def __init__(
        self, client: Client, spark: Callable[[], SparkSession], seed: int, scale_factor: float
    ) -> None:
        self.client = client
        self.spark = spark
        self.tables = Tables(seed, scale_factor)
        self.judge = Judge(self.tables)
        self.flow = Dataflow()
        self.now = 0
        for name, schema in SCHEMAS.items():
            client.create_or_load(name, schema, key=KEYS[name])
        self._append({name: updates(table, 1, 1) for name, table in self.tables.now.items()})

    def create(self, names: Iterable[str] = QUERIES) -> None:
        """Make the queries views; they are hydrated by the next tick."""
        for name in names:
            definition = Definition.of_sql(name, QUERIES[name], SCHEMAS)
            self.flow.add(View(self.client, self.spark, definition))

    def change(self, fraction: float, rows_max: int = 6_000, *, few: bool = True) -> int:
        """Change the tables, one time later; how many updates there were."""
        made = self.tables.change(self.now + 1, fraction, rows_max, few=few)
        self._append(made)
        return sum(table.num_rows for table in made.values())

    def _append(self, tables: dict[str, pa.Table]) -> None:
        lower, self.now = self.now + (1 if self.now else 0), self.now + 1
        txn = self.client.atomic()
        for name, table in tables.items():
            handle = self.client.create_or_load(name)[0]
            txn.append(handle, table, lower, Antichain.of(self.now + 1))
        txn.commit().result()

    def tick(self) -> set[str]:
        """One round over all views; the strategies that were taken."""
        done = self.flow.tick()
        assert self.flow.failures == {}
        return {record.strategy for record in done}

    def contents(self, name: str, time: int) -> dict[Row, int]:
        """The rows of a view at a time."""
        failed = self.client.create_or_load(errors_name(name))[1].snapshot(time).result()
        assert not failed.counts()
        return dict(self.client.create_or_load(name)[1].snapshot(time).result().counts())

    def wrong(self, time: int, answers: dict[str, Any] | None = None) -> dict[str, str]:
        """What differs from the judge, by view."""
        expected = self.judge.answers() if answers is None else answers
        found = {
            name: disagreement(view.definition.plan, self.contents(name, time), expected[name])
            for name, view in self.flow.views.items()
        }
        return {name: text for name, text in found.items() if text is not None}
