"""What the demo shows: small tables that people would rather look at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table

from noonmark.demo.scenario import Audited, Reading, Row


def sources_table(rows: Sequence[Row]) -> Table:
    """The sources: how each one is doing."""
    table = _table("sources", "source", "state", "records", "updates")
    for name, status, error, records, updates in rows:
        table.add_row(name, error or status, f"{records:,}", f"{updates:,}")
    return table


def frontiers_table(rows: Sequence[Row]) -> Table:
    """The relations: since, upper and size."""
    table = _table("relations", "relation", "kind", "since", "upper", "updates", "batches")
    for name, kind, since, upper, stored, batches in rows:
        table.add_row(name, kind, clock_time(since), clock_time(upper), f"{stored:,}", str(batches))
    return table


def views_table(rows: Sequence[Row], house: Row | None) -> Table:
    """The views: what their ticks cost, and the whole house in one row."""
    table = _table("views", "view", "ticks", "rows in", "rows out", "Spark jobs", "ms", "now")
    for name, ticks, rows_in, rows_out, jobs, ms in rows:
        shown = _house_text(house) if name == "house" and house is not None else ""
        table.add_row(
            name, str(ticks), f"{rows_in:,}", f"{rows_out:,}", str(jobs), f"{ms:,.0f}", shown
        )
    return table


def _house_text(row: Row) -> str:
    sellers, bids, total = row
    return f"{sellers:,} sellers, {bids or 0:,} bids, {total or 0:,} in all"


def audits_table(audits: Sequence[Audited]) -> Table:
    """The views against their definitions."""
    table = _table("views recomputed from their sources", "view", "rows", "rows that differ")
    for each in audits:
        table.add_row(each.name, f"{each.rows:,}", str(each.differences))
    return table


def readings_table(before: Sequence[Reading], again: Sequence[Reading]) -> Table:
    """The same questions before the kill and after it, at times that all relations share."""
    times = sorted({reading.as_of for reading in before})
    title = "rows AS OF three times, asked before the kill and after it"
    table = _table(title, "relation", *map(clock_time, times), "same answers")
    for name in dict.fromkeys(reading.name for reading in before):
        pairs = [(x, y) for x, y in zip(before, again, strict=True) if x.name == name]
        same = "yes" if all(x == y for x, y in pairs) else "NO"
        table.add_row(name, *(f"{len(x.rows):,}" for x, _ in pairs), same)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    return table


def clock_time(time_ms: int | None) -> str:
    """A time of the timeline as people read clocks, in UTC."""
    if time_ms is None:
        return "complete"
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%H:%M:%S.%f}"[:-3]
