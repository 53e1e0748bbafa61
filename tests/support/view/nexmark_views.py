"""The queries of Nexmark as views over a house of auctions, with DuckDB as the judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from noonmark.persist.client import Client
from support.view.judged import JudgedViews
from support.view.nexmark import KEYS, QUERIES, SCHEMAS, House

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NexmarkViews(JudgedViews):
    """A location with the events that there were at time 1; more come at every time."""

    def __init__(
        self, client: Client, spark: Callable[[], SparkSession], seed: int, events: int
    ) -> None:
        self.house = House(seed, events)
        super().__init__(
            client, spark, queries=QUERIES, schemas=SCHEMAS, keys=KEYS, tables=self.house
        )

    def change(self, events: int) -> None:
        """So many events, one time later."""
        self.append(self.house.change(self.now + 1, events))
