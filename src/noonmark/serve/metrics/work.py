"""How the work behind a database is doing, for Prometheus: asked when the figures are.

noonmark_work_deaths_total{kind}  background work that died and was begun again, by its kind
noonmark_work_failing{kind}       how much of it keeps dying
noonmark_calls_abandoned_total{kind}  calls to the outside that nobody waits for, by who made them
noonmark_calls_silent{kind}       how many of those have not come back
noonmark_spark_restarts_total     how often Spark was lost and started again
noonmark_ready                    1 while every part that serves people does
noonmark_statements_total{kind, outcome}  statements that were run, by what they are
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from noonmark import peer

if TYPE_CHECKING:
    from noonmark.adapter.database import Database


class WorkFigures(Collector):
    """See the module."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterable[Metric]:
        """The figures as they are now."""
        database = self._database
        deaths = CounterMetricFamily(
            "noonmark_work_deaths",
            "Background work that died unexpectedly and was begun again.",
            labels=["kind"],
        )
        for kind, count in sorted(database.supervisor.deaths().items()):
            deaths.add_metric([kind], count)
        failing = GaugeMetricFamily(
            "noonmark_work_failing", "Background work that keeps dying.", labels=["kind"]
        )
        lives = [each.life for each in database.supervisor.works()]
        now = Counter({life.kind: 0 for life in lives})
        now.update(life.kind for life in lives if life.is_failing())
        for kind, count in sorted(now.items()):
            failing.add_metric([kind], count)
        restarts = CounterMetricFamily(
            "noonmark_spark_restarts",
            "How often Spark was lost and started again.",
            value=database.engine.restarts,
        )
        ready = GaugeMetricFamily(
            "noonmark_ready",
            "1 while every part that serves people does; /readyz says why not.",
            value=int(not database.troubles()),
        )
        return (deaths, failing, *_outside(), restarts, ready, self._statements())

    def _statements(self) -> Metric:
        totals = self._database.statements
        told = CounterMetricFamily(
            "noonmark_statements",
            "Statements that were run, by what they are; ok, or failed with an error.",
            labels=["kind", "outcome"],
        )
        for kind in sorted({*totals.ok, *totals.failed}):
            told.add_metric([kind, "ok"], totals.ok[kind])
            told.add_metric([kind, "failed"], totals.failed[kind])
        return told


def _outside() -> Iterable[Metric]:
    abandoned = CounterMetricFamily(
        "noonmark_calls_abandoned",
        "Calls to the outside that were given up because they did not come back.",
        labels=["kind"],
    )
    for kind, count in sorted(peer.abandoned().items()):
        abandoned.add_metric([kind], count)
    silent = GaugeMetricFamily(
        "noonmark_calls_silent",
        "Calls to the outside that were given up and have not come back.",
        labels=["kind"],
    )
    for kind, count in sorted(peer.silent().items()):
        silent.add_metric([kind], count)
    return abandoned, silent
