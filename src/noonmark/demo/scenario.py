"""What the demo runs, all of it in SQL: a counter, an auction house, and views over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from noonmark.adapter.contract import Rows
from noonmark.adapter.database import Database
from noonmark.adapter.session import AdapterSession

Row = tuple[Any, ...]

STATEMENTS = (
    """CREATE SOURCE IF NOT EXISTS counter
       FROM LOAD GENERATOR COUNTER (TICK INTERVAL '100ms', MAX CARDINALITY 1000)""",
    """CREATE SOURCE IF NOT EXISTS auction
       FROM LOAD GENERATOR AUCTION (TICK INTERVAL '200ms') FOR ALL TABLES""",
    """CREATE MATERIALIZED VIEW IF NOT EXISTS sellers AS
       SELECT a.seller, count(*) AS bids, sum(b.amount) AS total
       FROM bids AS b JOIN auctions AS a ON a.id = b.auction_id
       GROUP BY a.seller""",
    """CREATE MATERIALIZED VIEW IF NOT EXISTS house AS
       SELECT count(*) AS sellers, sum(bids) AS bids, sum(total) AS total FROM sellers""",
)
VIEWS = ("sellers", "house")
HOUSE = "SELECT sellers, bids, total FROM house"

_SOURCES = """
    SELECT s.name, s.status, s.error, t.messages_received, t.updates_committed
    FROM mz_internal.mz_source_statuses AS s
    JOIN mz_internal.mz_source_statistics AS t ON t.id = s.id ORDER BY s.name"""
_FRONTIERS = """
    SELECT f.name, replace(f.kind, 'materialized-', ''), f.since, f.upper, s.rows, s.batches
    FROM noonmark.frontiers AS f JOIN noonmark.shards AS s ON s.item_id = f.id
    ORDER BY length(f.id), f.id"""
_TICKS = """
    SELECT view, count(*), sum(rows_in), sum(rows_out), sum(jobs), avg(ms)
    FROM noonmark.ticks GROUP BY view ORDER BY view DESC"""


@dataclass(frozen=True)
class Reading:
    """One relation read twice as of one time."""

    name: str
    as_of: int
    rows: int
    same: bool


@dataclass(frozen=True)
class Audited:
    """A view against its definition at one time."""

    name: str
    rows: int
    differences: int


class Scenario:
    """The demo's own session on the database that the demo serves."""

    def __init__(self, database: Database, session: AdapterSession) -> None:
        self.database = database
        self._session = session

    @classmethod
    async def begin(cls, database: Database) -> Scenario:
        """Make the sources and the views, where they are not there yet."""
        session = await database.connect("noonmark", "noonmark", {}, "demo")
        scenario = cls(database, session)
        for statement in STATEMENTS:
            await scenario.ask(statement)
        return scenario

    async def ask(self, text: str) -> list[Row]:
        """The rows of a statement; none for one that gives none."""
        session = self._session
        outcome = await session.execute(await session.prepare(text))
        if not isinstance(outcome, Rows):
            return []
        return [tuple(row) async for chunk in outcome.chunks for row in chunk]

    async def sources(self) -> Sequence[Row]:
        """Name, status, error, records read and updates of each source."""
        return await self.ask(_SOURCES)

    async def frontiers(self) -> Sequence[Row]:
        """Name, kind, since, upper, stored updates and batches of each relation."""
        return await self.ask(_FRONTIERS)

    async def ticks(self) -> Sequence[Row]:
        """View, ticks, rows in and out, Spark jobs and mean milliseconds."""
        return await self.ask(_TICKS)

    async def read_twice(self) -> list[Reading]:
        """Every relation as of three times, the same three for all, each read twice."""
        found = await self.frontiers()
        first = max(since for _, _, since, *_ in found)
        last = min(upper for _, _, _, upper, *_ in found) - 1
        readings = []
        for as_of in (first, (first + last) // 2, last):
            for name, *_ in found:
                query = f'SELECT * FROM "{name}" AS OF {as_of}'
                once, again = await self.ask(query), await self.ask(query)
                same = sorted(map(repr, once)) == sorted(map(repr, again))
                readings.append(Reading(name, as_of, len(once), same))
        return readings

    async def audit(self) -> list[Audited]:
        """Every view recomputed from its inputs."""
        made = []
        for name in VIEWS:
            differences = await self.ask(f"AUDIT MATERIALIZED VIEW {name}")
            rows = await self.ask(f"SELECT * FROM {name}")
            made.append(Audited(name, len(rows), len(differences)))
        return made
