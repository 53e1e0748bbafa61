"""What the demo runs, all of it in SQL: a counter, an auction house, and views over them.

Where PostgreSQL is installed (`noonmark.demo.upstream`) a bank is a further source, on a clock of
its own, with views over it and over both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from noonmark.demo.upstream import Upstream

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
    """CREATE MATERIALIZED VIEW IF NOT EXISTS leaders AS
       SELECT seller, total FROM sellers ORDER BY total DESC, seller LIMIT 3""",
    """CREATE MATERIALIZED VIEW IF NOT EXISTS lately AS
       SELECT auction_id, amount FROM bids
       WHERE mz_now() < bid_time + INTERVAL '10 seconds'""",
)
VIEWS = ("sellers", "house", "leaders", "lately")
BANK_VIEWS = ("money", "cities")
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
    """One relation as of one time: how many rows, and all of them as text."""

    name: str
    as_of: int
    rows: tuple[str, ...]


@dataclass(frozen=True)
class Audited:
    """A view against its definition at one time."""

    name: str
    rows: int
    differences: int


class Scenario:
    """The demo's own session with the server that it runs."""

    def __init__(self, url: str, bank: Upstream | None = None) -> None:
        self._link = psycopg.connect(url, autocommit=True, connect_timeout=10)
        self._statements = STATEMENTS + (bank.statements if bank is not None else ())
        self.views = VIEWS + (BANK_VIEWS if bank is not None else ())

    def begin(self) -> None:
        """Make the sources and the views, where they are not there yet."""
        for statement in self._statements:
            self.ask(statement)

    def close(self) -> None:
        """End the session."""
        self._link.close()

    def ask(self, text: str) -> list[Row]:
        """The rows of a statement; none for one that gives none."""
        cursor = self._link.execute(text.encode())
        return cursor.fetchall() if cursor.description is not None else []

    def sources(self) -> Sequence[Row]:
        """Name, status, error, records read and updates of each source."""
        return self.ask(_SOURCES)

    def frontiers(self) -> Sequence[Row]:
        """Name, kind, since, upper, stored updates and batches of each relation."""
        return self.ask(_FRONTIERS)

    def ticks(self) -> Sequence[Row]:
        """View, ticks, rows in and out, Spark jobs and mean milliseconds."""
        return self.ask(_TICKS)

    def read(self) -> list[Reading]:
        """Every relation as of three times, the same three for all."""
        found = self.frontiers()
        first = max(since for _, _, since, *_ in found)
        last = min(upper for _, _, _, upper, *_ in found if upper is not None) - 1
        times = sorted({first, (first + last) // 2, last})
        return [self.reading(name, as_of) for as_of in times for name, *_ in found]

    def reading(self, name: str, as_of: int) -> Reading:
        """A relation as of a time."""
        rows = self.ask(f'SELECT * FROM "{name}" AS OF {as_of}')
        return Reading(name, as_of, tuple(sorted(map(repr, rows))))

    def audit(self) -> list[Audited]:
        """Every view recomputed from its inputs."""
        made = []
        for name in self.views:
            differences = self.ask(f"AUDIT MATERIALIZED VIEW {name}")
            rows = self.ask(f"SELECT * FROM {name}")
            made.append(Audited(name, len(rows), len(differences)))
        return made
