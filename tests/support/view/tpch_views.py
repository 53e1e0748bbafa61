"""The 22 queries of TPC-H as views over tables that change, with DuckDB as the judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from noonmark.persist.client import Client
from support.view.judged import JudgedViews
from support.view.tpch import QUERIES, SCHEMAS
from support.view.tpch_changes import KEYS, Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TpchViews(JudgedViews):
    """A location with the tables, loaded at time 1; every change is one time later."""

    def __init__(self, client: Client, spark: Callable[[], SparkSession], tables: Tables) -> None:
        self.tables = tables
        super().__init__(
            client, spark, queries=QUERIES, schemas=SCHEMAS, keys=KEYS, tables=self.tables
        )

    def change(self, fraction: float, rows_max: int = 6_000, *, few: bool = True) -> int:
        """Change the tables, one time later; how many updates there were."""
        made = self.tables.change(self.now + 1, fraction, rows_max, few=few)
        self.append(made)
        return sum(table.num_rows for table in made.values())
