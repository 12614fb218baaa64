"""What a server of many homes tells of its requests: lines of JSON, and traces and metrics by OpenTelemetry where it is installed.

Promise: no text of a memory, no path of a document, no query and no message of an error of others is in any of it. A request
is the pattern of its route, its status and its tenant's number; an error its kind and where it arose; of a message, the words
that stand in our source. OpenTelemetry is not imported where OTEL_EXPORTER_OTLP_ENDPOINT says nothing. Not here: what is
worth a line.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from anima.errors import MissingExtra

requests = logging.getLogger("anima.requests")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        about: dict[str, Any] = {"time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")}
        is_ours = record.name.startswith("anima")  # others write what they were given into their messages
        event = str(record.msg) if is_ours else f"{record.module}:{record.lineno}"
        about |= {"level": record.levelname.lower(), "log": record.name, "event": event}
        about |= getattr(record, "about", {})
        given = record.args if isinstance(record.args, tuple) else ()
        error = record.exc_info[1] if record.exc_info else next((e for e in given if isinstance(e, Exception)), None)
        if error is not None:
            at = [
                f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
                for frame in traceback.extract_tb(error.__traceback__)
            ]
            about |= {"error": type(error).__name__, "at": at[-5:]}
        return json.dumps(about, ensure_ascii=True)


def log_as_json() -> None:
    """From now on everything is logged so, on standard error."""
    shown = logging.StreamHandler()
    shown.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [shown]
    root.setLevel(logging.WARNING)
    requests.setLevel(logging.INFO)


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
    _tracers[:] = [provider.get_tracer("anima")]


def tell(about: Mapping[str, Any], headers: Mapping[str, str], seconds: float, credential: str | None) -> None:
    """A request that is over: a line, and a span of the trace that its headers name, if they do."""
    requests.info("request", extra={"about": {**about, "ms": round(seconds * 1000, 1), "credential": credential}})
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
