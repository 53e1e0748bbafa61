"""How sources and sinks are doing, for Prometheus: asked when the figures are.

noonmark_source_status{source, status}     1 for the status that the source is in
noonmark_source_records_total{source}, noonmark_source_bytes_total{source}   what was read upstream
noonmark_source_updates_total{source}      updates that were committed
noonmark_source_ticks_total{source}        ticks of ingestion
noonmark_source_bad_records{source}        records that cannot be decoded: rows of <source>_errors
noonmark_sink_records_total{sink}          records that were written
noonmark_relation_error{relation, sqlstate}  1 for a relation that has a definite error and no rows
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from noonmark.adapter.schedule.ended import errors_now

if TYPE_CHECKING:
    from noonmark.adapter.database import Database


_COUNTED = {
    "records": "Records that were read from upstream.",
    "bytes": "Bytes that were read from upstream.",
    "updates": "Updates of a source that were committed.",
    "ticks": "Ticks of ingestion of a source.",
}


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
        counts = {
            name: CounterMetricFamily(f"noonmark_source_{name}", about, labels=["source"])
            for name, about in _COUNTED.items()
        }
        for worker in list(database.work.sources.values()):
            status.add_metric([worker.name, worker.status.state], 1)
            records, size = worker.rates.totals()
            sums = (records, size, worker.status.rows, worker.status.ticks)
            for family, value in zip(counts.values(), sums, strict=True):
                family.add_metric([worker.name], value)
        failed = GaugeMetricFamily(
            "noonmark_relation_error",
            "A relation that has a definite error instead of rows.",
            labels=["relation", "sqlstate"],
        )
        found = errors_now(database.client.state, database.catalog.items())
        for name, error in sorted(found.items()):
            failed.add_metric([name, error.sqlstate], 1)
        return (status, failed, *counts.values(), self._bad_records(), self._sinks())

    def _bad_records(self) -> Metric:
        """By the statistics of what is stored: nothing is read for it."""
        bad = GaugeMetricFamily(
            "noonmark_source_bad_records",
            "Records of a source that cannot be decoded: rows of <source>_errors.",
            labels=["source"],
        )
        state = self._database.client.state
        for item in self._database.catalog.items("errors"):
            if item.collection in state.names:
                batches = state.collection(item.collection).batches
                rows = sum(batch.diff_sum for batch in batches)
                bad.add_metric([item.name.removesuffix("_errors")], rows)
        return bad

    def _sinks(self) -> Metric:
        written = CounterMetricFamily(
            "noonmark_sink_records", "Records that a sink has written.", labels=["sink"]
        )
        for worker in list(self._database.work.sinks.values()):
            written.add_metric([worker.item.name], worker.sink.messages)
        return written
