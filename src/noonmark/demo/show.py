"""What the demo shows: small tables that people would rather look at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from noonmark.demo.scenario import Reading, Scenario
from noonmark.demo.views import Audited
from noonmark.tvc import known_partitions


def sources_table(scenario: Scenario) -> Table:
    """The sources: how far each one is, in its own order and on the timeline."""
    table = Table(title="sources", title_justify="left")
    for column in ("source", "state", "ticks", "updates", "upstream offset", "bound to"):
        table.add_column(column)
    for name, status in scenario.loop.status.items():
        tick = status.last
        known = known_partitions(tick.released) if tick is not None else {}
        offsets = ", ".join(f"{partition}: {offset}" for partition, offset in known.items())
        table.add_row(
            name,
            status.error or status.state,
            str(status.ticks),
            f"{status.rows:,}",
            offsets,
            clock_time(tick.time) if tick else "",
        )
    return table


def frontiers_table(scenario: Scenario) -> Table:
    """The collections: since, upper and size."""
    table = Table(title="collections", title_justify="left")
    for column in ("collection", "since", "upper", "stored updates", "batches"):
        table.add_column(column)
    state = scenario.client.state
    for name in scenario.collections():
        found = state.collection(name)
        table.add_row(
            name,
            clock_time(found.since.only()),
            clock_time(found.upper.only()),
            f"{sum(batch.rows for batch in found.batches):,}",
            str(len(found.batches)),
        )
    return table


def views_table(scenario: Scenario) -> Table:
    """The views: how far each is, and what its last tick cost."""
    table = Table(title="views", title_justify="left")
    for column in ("view", "upper", "ticks", "rows in", "rows out", "Spark jobs", "ms", "now"):
        table.add_column(column)
    records = scenario.views.flow.records
    house = scenario.views.house()
    for name, view in scenario.views.flow.views.items():
        mine = [record for record in records if record.view == name]
        last = mine[-1] if mine else None
        shown = "" if house is None or name != "house" else _house_text(house)
        failed = scenario.views.flow.failures.get(name)
        table.add_row(
            name,
            clock_time(view.upper.only()),
            str(len(mine)),
            f"{sum(record.rows_in for record in mine):,}",
            f"{sum(record.rows_out for record in mine):,}",
            str(last.jobs) if last else "",
            f"{last.ms:,.0f}" if last else "",
            str(failed) if failed else shown,
        )
    return table


def _house_text(row: tuple[Any, ...]) -> str:
    sellers, bids, total = row
    return f"{sellers:,} sellers, {bids or 0:,} bids, {total or 0:,} in all"


def audits_table(audits: list[Audited]) -> Table:
    """The views against their definitions."""
    table = Table(title="views recomputed from their sources", title_justify="left")
    for column in ("view", "AS OF", "rows", "rows that differ"):
        table.add_column(column)
    for each in audits:
        table.add_row(each.name, clock_time(each.as_of), f"{each.rows:,}", str(each.differences))
    return table


def readings_table(readings: list[Reading]) -> Table:
    """The same question asked twice, at times that all collections share."""
    times = sorted({reading.as_of for reading in readings})
    table = Table(title="rows AS OF one time, each asked twice", title_justify="left")
    for column in ("collection", *map(clock_time, times), "same answers"):
        table.add_column(column)
    for name in dict.fromkeys(reading.name for reading in readings):
        mine = [reading for reading in readings if reading.name == name]
        same = "yes" if all(reading.same for reading in mine) else "NO"
        table.add_row(name, *(f"{reading.rows:,}" for reading in mine), same)
    return table


def clock_time(time_ms: int | None) -> str:
    """A time of the timeline as people read clocks, in UTC."""
    if time_ms is None:
        return "complete"
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%H:%M:%S.%f}"[:-3]
