"""OpenTelemetry traces of statements and ticks: off, unless somebody says where they go.

    statement      one a statement, from its text to its outcome: its kind, its text as it is
                   recorded elsewhere (without secrets), how it failed
      prepare      the text read and planned
      execute      the rest
    tick           one a tick of a view: strategy, rows in and out, Spark jobs

Law (off): without an endpoint nothing of OpenTelemetry is imported, and a statement pays for one
comparison. Law (apart): what cannot be sent is dropped by the exporter's own thread; no statement
and no tick waits for it, or fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noonmark.errors import ConfigError, NoonmarkError
from noonmark.version import __version__

if TYPE_CHECKING:
    from noonmark.compute.view.view import TickRecord

_NS_OF_MS, _NS_OF_S = 1_000_000, 1_000_000_000


class Telemetry:
    """Where spans are made. `endpoint` None: nowhere."""

    def __init__(self) -> None:
        self._tracer: Any = None
        self._close: Callable[[], None] = lambda: None

    def start(self, endpoint: str) -> None:
        """Send spans to a collector, by OTLP over HTTP.

        Args:
            endpoint: such as ``http://127.0.0.1:4318``; ``/v1/traces`` is added.

        Raises:
            ConfigError: OpenTelemetry is not installed, or the endpoint is no URL.
        """
        if not endpoint.startswith(("http://", "https://")):
            raise ConfigError(f'"{endpoint}" is no URL', hint="http://127.0.0.1:4318, say.")
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise ConfigError(
                "traces need OpenTelemetry, which is not installed",
                detail=str(error),
                hint="Install noonmark[otel].",
            ) from None
        resource = Resource.create({"service.name": "noonmark", "service.version": __version__})
        provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=5)
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        self._tracer = provider.get_tracer("noonmark", __version__)
        self._close = provider.shutdown

    @property
    def is_on(self) -> bool:
        """Whether spans go anywhere."""
        return self._tracer is not None

    def close(self) -> None:
        """Send what is left."""
        self._close()
        self._tracer = None

    def statement(
        self,
        kind: str,
        text: str,
        *,
        prepared_s: float,
        took_s: float,
        ended_ms: int,
        error: object,
    ) -> None:
        """One statement that has ended.

        Args:
            kind: of statement.
            text: as it is recorded: without secrets.
            prepared_s: how long it was read and planned, which is in `took_s`.
            took_s: from its arrival to its outcome.
            ended_ms: when that was.
            error: how it failed, or None.
        """
        if self._tracer is None:
            return
        end = ended_ms * _NS_OF_MS
        start = end - round(took_s * _NS_OF_S)
        between = start + round(prepared_s * _NS_OF_S)
        attributes = {"db.system.name": "noonmark", "db.operation.name": kind}
        span = self._tracer.start_span(
            "statement", start_time=start, attributes={**attributes, "db.query.text": text}
        )
        within = self._within(span)
        for name, begins, ends in (("prepare", start, between), ("execute", between, end)):
            self._tracer.start_span(name, context=within, start_time=begins).end(ends)
        if error is not None:
            self._failed(span, error)
        span.end(end)

    def _within(self, span: Any) -> Any:
        from opentelemetry.trace import set_span_in_context  # there, since it is on

        return set_span_in_context(span)

    def tick(self, record: TickRecord, ended_ms: int) -> None:
        """One tick that has ended."""
        if self._tracer is None:
            return
        end = ended_ms * _NS_OF_MS
        span = self._tracer.start_span(
            "tick",
            start_time=end - round(record.ms * _NS_OF_MS),
            attributes={
                "noonmark.view": record.view,
                "noonmark.strategy": record.strategy,
                "noonmark.rows_in": record.rows_in,
                "noonmark.rows_out": record.rows_out,
                "noonmark.errors": record.errors,
                "noonmark.jobs": record.jobs,
                "noonmark.lower": record.lower,
                "noonmark.upper": -1 if record.upper is None else record.upper,
            },
        )
        span.end(end)

    def _failed(self, span: Any, error: object) -> None:
        from opentelemetry.trace import Status, StatusCode  # there, since it is on

        span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        if isinstance(error, NoonmarkError):
            span.set_attribute("db.response.status_code", error.sqlstate)
            span.set_attribute("error.type", error.id)
