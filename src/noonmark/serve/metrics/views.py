"""How far everything is, and what ticks do, for Prometheus: asked when the figures are.

noonmark_lag_seconds{relation, kind}       how old the newest complete time is
noonmark_frontier_seconds{relation, frontier}  since and upper, as Unix times
noonmark_relations_not_shown               relations beyond the first 2,000, which have no labels
noonmark_view_stalled{view}                1 for a view that does not go on
noonmark_view_errors{view}                 errors that a view has instead of an answer, now
noonmark_tick_seconds{strategy}            histogram: ticks of all views
noonmark_tick_rows_total{direction}        rows that ticks took in and gave out
noonmark_tick_jobs_total                   Spark jobs that ticks ran
noonmark_tick_errors_total                 rows whose computation failed in ticks
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from noonmark.adapter.schedule.lag import lag_ms

if TYPE_CHECKING:
    from noonmark.adapter.catalog import Item
    from noonmark.adapter.database import Database

#: So many relations have labels of their own; more would be a burden for who stores them.
SHOWN_MAX = 2_000
#: A table is complete up to its last write by definition: it has no lag.
_LAGGING = ("source", "subsource", "materialized-view", "index")


class ViewFigures(Collector):
    """See the module."""

    def __init__(self, database: Database, shown_max: int = SHOWN_MAX) -> None:
        self._database = database
        self._shown_max = shown_max

    def collect(self) -> Iterable[Metric]:
        """The figures as they are now."""
        return (*self._frontiers(), *self._trouble(), *self._ticks())

    def _frontiers(self) -> Iterable[Metric]:
        lag = GaugeMetricFamily(
            "noonmark_lag_seconds",
            "How old the newest complete time of a source, a view or a sink is; "
            "0 when only tables are below it and nothing newer was written to them.",
            labels=["relation", "kind"],
        )
        frontier = GaugeMetricFamily(
            "noonmark_frontier_seconds",
            "The frontiers of a relation as Unix times: exact from since on, complete below upper.",
            labels=["relation", "frontier"],
        )
        database = self._database
        state = database.client.state
        by_name = {each.name: each for each in state.collections.values()}
        now_ms = database.clock.now_ms()
        found = [item for item in database.catalog.items() if item.collection in by_name]
        for item in found[: self._shown_max]:
            shard = by_name[item.collection]
            since, upper = shard.since.only(), shard.upper.only()
            for name, time in (("since", since), ("upper", upper)):
                if time is not None:
                    frontier.add_metric([_name(item), name], time / 1000)
            if upper is not None and item.kind in _LAGGING:
                behind = lag_ms(database.catalog, state, item, upper, now_ms) or 0
                lag.add_metric([_name(item), item.kind], behind / 1000)
        for sink in list(database.work.sinks.values()):
            if sink.sink.frontier is not None:
                frontier_ms = sink.sink.frontier
                behind = lag_ms(database.catalog, state, sink.item, frontier_ms, now_ms) or 0
                lag.add_metric([_name(sink.item), "sink"], behind / 1000)
        hidden = GaugeMetricFamily(
            "noonmark_relations_not_shown",
            f"Relations beyond the first {self._shown_max:,}, which have no figures of their own.",
            value=max(0, len(found) - self._shown_max),
        )
        return lag, frontier, hidden

    def _trouble(self) -> Iterable[Metric]:
        stalled = GaugeMetricFamily(
            "noonmark_view_stalled",
            "1 for a view that does not go on; noonmark.view_statuses says why.",
            labels=["view"],
        )
        errors = GaugeMetricFamily(
            "noonmark_view_errors",
            "Errors that a view has instead of an answer, such as a division by zero; "
            "noonmark.view_statuses says which.",
            labels=["view"],
        )
        for worker in list(self._database.work.views.values())[: self._shown_max]:
            stalled.add_metric([_name(worker.item)], int(worker.error is not None))
            errors.add_metric([_name(worker.item)], worker.failing.errors if worker.failing else 0)
        return stalled, errors

    def _ticks(self) -> Iterable[Metric]:
        totals = self._database.work.totals
        seconds = HistogramMetricFamily(
            "noonmark_tick_seconds", "How long ticks of views took.", labels=["strategy"]
        )
        for strategy, taken in sorted(totals.durations.items()):
            seconds.add_metric([strategy], taken.cumulative(), taken.seconds)
        rows = CounterMetricFamily(
            "noonmark_tick_rows", "Rows that ticks took in and gave out.", labels=["direction"]
        )
        for direction in ("in", "out"):
            rows.add_metric([direction], totals.rows[direction])
        jobs = CounterMetricFamily(
            "noonmark_tick_jobs", "Spark jobs that ticks ran.", value=totals.jobs
        )
        errors = CounterMetricFamily(
            "noonmark_tick_errors", "Rows whose computation failed in ticks.", value=totals.errors
        )
        return seconds, rows, jobs, errors


def _name(item: Item) -> str:
    return f"{item.schema_name}.{item.name}"
