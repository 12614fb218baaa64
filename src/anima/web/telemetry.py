"""Traces and metrics of a server of many homes, by OpenTelemetry where it is installed and told where to send them.

Promise: nothing is imported before, nor where OTEL_EXPORTER_OTLP_ENDPOINT says nothing. A span is a request by the pattern
of its route, with its status and its tenant's number; no path, no query, no message of an error and no text of a memory is
in one. Metrics are how long requests take, and how many homes are held open. Not here: what else is logged (logs).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from anima.errors import MissingExtra

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_tracers: list[Any] = []  # one, once it is known where traces go


def export(env: Mapping[str, str], *, held: Callable[[], tuple[int, int]]) -> Callable[[], None]:
    """Begins to send traces and metrics where the environment says; what it gives back ends that. Raises MissingExtra."""
    if not env.get(ENDPOINT):
        return lambda: None
    try:
        from opentelemetry import metrics
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise MissingExtra("otel", "sending traces and metrics") from None
    meters, traces = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())]), TracerProvider()
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    metrics.set_meter_provider(meters)  # by which the framework tells how long requests take

    def counted(options: object) -> Iterable[Any]:
        return [metrics.Observation(held()[0])]

    meters.get_meter("anima").create_observable_gauge("anima.homes", [counted], description="homes that are held open")
    follow(traces)

    def end() -> None:
        _tracers.clear()
        traces.shutdown()
        meters.shutdown()

    return end


def follow(provider: Any) -> None:
    """From now on spans go to this provider."""
    _tracers[:] = [provider.get_tracer("anima")]


def span(about: Mapping[str, Any], headers: Mapping[str, str], seconds: float) -> None:
    """A request that is over, as a span of the trace that its headers name, if they do."""
    if not _tracers:
        return
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    ended = time.time_ns()
    names = {"method": "http.request.method", "route": "http.route", "status": "http.response.status_code"}
    told = {names.get(name, f"anima.{name}"): value for name, value in about.items() if value is not None}
    within = TraceContextTextMapPropagator().extract({"traceparent": headers.get("traceparent", "")})
    name = f"{about['method']} {about['route'] or ''}".strip()
    began = _tracers[0].start_span(
        name, within, SpanKind.SERVER, attributes=told, start_time=ended - int(seconds * 1_000_000_000)
    )
    began.end(ended)
