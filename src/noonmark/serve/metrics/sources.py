"""How sources are doing, for Prometheus: asked when the figures are.

noonmark_source_status{source, status}     1 for the status that the source is in
noonmark_relation_error{relation, sqlstate}  1 for a relation that has a definite error and no rows
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from noonmark.adapter.schedule.ended import errors_now

if TYPE_CHECKING:
    from noonmark.adapter.database import Database


class SourceFigures(Collector):
    """See the module."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def collect(self) -> Iterable[Metric]:
        """The figures as they are now."""
        database = self._database
        status = GaugeMetricFamily(
            "noonmark_source_status", "The status of a source.", labels=["source", "status"]
        )
        for worker in list(database.work.sources.values()):
            status.add_metric([worker.name, worker.status.state], 1)
        failed = GaugeMetricFamily(
            "noonmark_relation_error",
            "A relation that has a definite error instead of rows.",
            labels=["relation", "sqlstate"],
        )
        found = errors_now(database.client.state, database.catalog.items())
        for name, error in sorted(found.items()):
            failed.add_metric([name, error.sqlstate], 1)
        return (status, failed)
