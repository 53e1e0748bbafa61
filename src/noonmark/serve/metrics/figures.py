"""What the front ends count, for Prometheus.

One `Figures` per server, in a registry of its own: two servers in one process do not mix. Other
parts of the system add their collectors to the same registry.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Figures:
    """Connections, statements, their time and their errors."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.connections = Gauge(
            "noonmark_clients", "Clients connected now.", ["front"], registry=self.registry
        )
        self.connections_total = Counter(
            "noonmark_connections_total", "Clients that came.", ["front"], registry=self.registry
        )
        self.statements = Histogram(
            "noonmark_statement_seconds",
            "Time from a statement's arrival to its last byte.",
            ["front"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.errors = Counter(
            "noonmark_errors_total",
            "Errors told to clients.",
            ["front", "sqlstate"],
            registry=self.registry,
        )

    def text(self) -> bytes:
        """All figures in Prometheus' text format."""
        return generate_latest(self.registry)
