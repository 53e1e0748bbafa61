"""What is stored and kept in memory, for Prometheus: asked when the figures are.

noonmark_commit_seconds                histogram: from an entry's submission to its durability
noonmark_log_entries_total             entries of the location's log, its number of the newest
noonmark_log_entries_since_rollup      entries that a restart would read
noonmark_stored_collections, _batches, _parts, _updates, _bytes   what the newest state lists
noonmark_part_cache_bytes, noonmark_part_cache_requests_total{result}   parts kept in memory
noonmark_statement_workers{state}      processes that run statements: free, busy
process_*                              memory, processor time and open files of the server's process
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from noonmark.adapter.database import Database


class StorageFigures(Collector):
    """See the module."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterable[Metric]:
        """The figures as they are now."""
        return (*self._log(), *self._stored(), *self._memory(), *self._process.collect())

    def _log(self) -> Iterable[Metric]:
        journal = self._database.client.journal
        commits = HistogramMetricFamily(
            "noonmark_commit_seconds", "From the submission of a log entry to its durability."
        )
        commits.add_metric([], journal.commits.cumulative(), journal.commits.seconds)
        entries = CounterMetricFamily(
            "noonmark_log_entries",
            "Entries of the location's log, by all writers.",
            value=journal.state.seqno,
        )
        left = GaugeMetricFamily(
            "noonmark_log_entries_since_rollup",
            "Log entries that a restart would read.",
            value=journal.entries_since_rollup,
        )
        return commits, entries, left

    def _stored(self) -> Iterable[Metric]:
        shards = list(self._database.client.state.collections.values())
        batches = [batch for shard in shards for batch in shard.batches]
        sums = {
            "collections": len(shards),
            "batches": len(batches),
            "parts": sum(len(batch.parts) for batch in batches),
            "updates": sum(batch.rows for batch in batches),
            "bytes": sum(batch.bytes for batch in batches),
        }
        for name, value in sums.items():
            about = f"{name.capitalize()} that the newest state of the location lists."
            yield GaugeMetricFamily(f"noonmark_stored_{name}", about, value=value)

    def _memory(self) -> Iterable[Metric]:
        cache = self._database.client.blob.statistics
        asked = CounterMetricFamily(
            "noonmark_part_cache_requests", "Requests for stored parts.", labels=["result"]
        )
        asked.add_metric(["hit"], cache.hits)
        asked.add_metric(["miss"], cache.misses)
        held = GaugeMetricFamily(
            "noonmark_part_cache_bytes", "Bytes of parts kept in memory.", value=cache.bytes
        )
        workers = GaugeMetricFamily(
            "noonmark_statement_workers", "Processes that run statements.", labels=["state"]
        )
        for state, count in self._database.workers.counts().items():
            workers.add_metric([state], count)
        return asked, held, workers
