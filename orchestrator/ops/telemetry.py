"""Metrics for Prometheus, and OpenTelemetry spans if a collector is configured.

Labels and attributes are ids or come from closed sets; they never contain what a person wrote.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.process_collector import ProcessCollector

from orchestrator.errors import TABLE, AnamnesisError, Problem
from orchestrator.ports import TransportKind

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Tracer

Station: TypeAlias = Literal[
    "guard", "read", "understand", "embed", "recall", "pick", "answer", "write", "mirror", "remember"
]
Outcome: TypeAlias = Literal["completed", "stopped", "failed", "timed_out", "interrupted", "set_aside"]
Action: TypeAlias = Literal["retrieved", "stored", "updated"]
Danger: TypeAlias = Literal["emergency", "crisis"]
Certainty: TypeAlias = Literal["certain", "possible"]

FRAME_TYPES: Final = frozenset(
    "ErrorMessage UserMessage AssistantMessage ReasoningStep ToolUseRequest ToolUseResult "  # noqa: SIM905 - legible
    "Acknowledgement Transcription AudioChunk ControlStop ControlVariation Configuration StartAnswer "
    "MemoryTrace Commentary AssistantSentence SyncRequest SyncResponse UserNote NoteConfirmation "
    "MemoryAction MemoryConfirmation ServerInfo".split()
)
"""The names of the message types, as label values. Any other name is counted as `other`."""

_registry = CollectorRegistry()
_turns_started = Counter("anamnesis_turns_started", "Turns started.", registry=_registry)
_turns_finished = Counter(
    "anamnesis_turns_finished", "Turns ended, by outcome.", ["outcome"], registry=_registry
)
_traces = Counter(
    "anamnesis_memory_traces", "Memory traces stored, by action.", ["action"], registry=_registry
)
_received = Counter(
    "anamnesis_frames_received", "Frames from clients, by type.", ["type"], registry=_registry
)
_sent = Counter("anamnesis_frames_sent", "Frames to clients, by type.", ["type"], registry=_registry)
_refused = Counter("anamnesis_frames_refused", "Frames refused, by error.", ["error"], registry=_registry)
_open = Gauge(
    "anamnesis_connections_open", "Open connections, by transport.", ["transport"], registry=_registry
)
_dangers = Counter(
    "anamnesis_dangers",
    "Dangers found in messages, by kind and certainty. A danger that only continues is not counted again.",
    ["kind", "certainty"],
    registry=_registry,
)
_buckets = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_turn_seconds = Histogram(
    "anamnesis_turn_seconds", "Duration of a turn.", buckets=_buckets, registry=_registry
)
_station_seconds = Histogram(
    "anamnesis_station_seconds",
    "Duration of a station of the turn.",
    ["station"],
    buckets=_buckets,
    registry=_registry,
)
_write_seconds = Histogram(
    "anamnesis_store_write_seconds", "Duration of a write to the store.", buckets=_buckets, registry=_registry
)
ProcessCollector(registry=_registry)


def _initialize(metric: MetricWrapperBase, values: tuple[str, ...]) -> None:
    """Create every series with the value zero, so that Prometheus can compute rates from the first event."""
    for value in values:
        metric.labels(value)


_initialize(_turns_finished, get_args(Outcome))
_initialize(_traces, get_args(Action))
_initialize(_open, get_args(TransportKind))
_initialize(_station_seconds, get_args(Station))
for _kind in get_args(Danger):
    for _certainty in get_args(Certainty):
        _dangers.labels(_kind, _certainty)

_provider: "TracerProvider | None" = None
_tracer: "Tracer | None" = None
_collector_reached: bool | None = None


def start(endpoint: str) -> None:
    """Send spans to the OTLP collector at the base address `endpoint`; if empty, there are no spans."""
    if not endpoint:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    class Exporter(OTLPSpanExporter):
        def export(self, spans: "Sequence[ReadableSpan]") -> SpanExportResult:
            global _collector_reached
            result = super().export(spans)
            _collector_reached = result is SpanExportResult.SUCCESS
            return result

    global _collector_reached
    _collector_reached = True
    address = f"{endpoint.rstrip('/').removesuffix('/v1/traces')}/v1/traces"
    start_with(BatchSpanProcessor(Exporter(endpoint=address, timeout=3)))


def start_with(processor: "SpanProcessor") -> None:
    """Send spans to `processor`. OpenTelemetry is imported only here, because that is slow."""
    global _provider, _tracer
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create({"service.name": "anamnesis", "service.version": version("anamnesis")})
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _provider.add_span_processor(processor)
    _tracer = _provider.get_tracer("anamnesis")


def stop() -> None:
    """Send the remaining spans and stop. Blocks for a few seconds at most."""
    global _provider, _tracer, _collector_reached
    if _provider is not None:
        _provider.shutdown()
    _provider = _tracer = _collector_reached = None


def collector_reached() -> bool | None:
    """Whether the collector accepted the last spans; None if no collector is configured."""
    return _collector_reached


@dataclass(slots=True)
class StationTime:
    """When a station of a turn began, in seconds after the turn did, and how long it took."""

    name: Station
    start: float
    seconds: float | None = None
    """None while it runs."""


@dataclass(slots=True)
class WatchedTurn:
    """The turn that runs: its outcome, and the times of its stations in the order in which they began.

    If the outcome is not set, the turn is completed, or failed if it raised.
    """

    outcome: Outcome | None = None
    stations: list[StationTime] = field(default_factory=list)
    began: float = field(default_factory=perf_counter)

    @property
    def seconds(self) -> float:
        """How long the turn has taken so far."""
        return perf_counter() - self.began


_watched: ContextVar[WatchedTurn | None] = ContextVar("watched_turn", default=None)


@contextmanager
def turn(meta: Mapping[str, object] | None = None, **ids: str) -> Iterator[WatchedTurn]:
    """Count and time one turn. Its span is a child of the span that the message's `meta` names, if any."""
    _turns_started.inc()
    result = WatchedTurn()
    token = _watched.set(result)
    try:
        with _turn_seconds.time(), _span("turn", _parent(meta or {}), ids):
            yield result
    except BaseException:
        result.outcome = result.outcome or "failed"
        raise
    finally:
        _watched.reset(token)
        _turns_finished.labels(result.outcome or "completed").inc()


@contextmanager
def station(name: Station) -> Iterator[None]:
    """Time one station of a turn."""
    watched = _watched.get() or WatchedTurn()
    time = StationTime(name, watched.seconds)
    watched.stations.append(time)
    try:
        with _station_seconds.labels(name).time(), _span(name):
            yield
    finally:
        time.seconds = watched.seconds - time.start


def store_write() -> AbstractContextManager[object]:
    """Time one write to the store."""
    return _write_seconds.time()


@contextmanager
def connection(transport: TransportKind) -> Iterator[None]:
    """Count a connection while it is open."""
    with _open.labels(transport).track_inprogress():
        yield


def frame_received(type_name: str) -> None:
    """Count a frame from a client that could be decoded."""
    _received.labels(type_name if type_name in FRAME_TYPES else "other").inc()


def frame_sent(type_name: str) -> None:
    """Count a frame to a client."""
    _sent.labels(type_name if type_name in FRAME_TYPES else "other").inc()


def frame_refused(problem: Problem) -> None:
    """Count a frame that was answered with an error."""
    _refused.labels(problem.name if problem.name in TABLE else "other").inc()


def trace_stored(action: Action) -> None:
    """Count a memory trace that was stored."""
    _traces.labels(action).inc()


def danger_found(kind: str, certainty: Certainty) -> None:
    """Count a danger that was found in a message."""
    _dangers.labels(kind, certainty).inc()


def exposition() -> tuple[bytes, str]:
    """All metrics in the text format of Prometheus, and its content type."""
    return generate_latest(_registry), CONTENT_TYPE_LATEST


def ids() -> dict[str, str]:
    """The ids of the current span as keys of an envelope's meta, to join a stanza with its span."""
    if _tracer is None:
        return {}
    from opentelemetry.trace import get_current_span

    here = get_current_span().get_span_context()
    if not here.is_valid:
        return {}
    return {"messaging.trace_id": f"{here.trace_id:032x}", "messaging.span_id": f"{here.span_id:016x}"}


@contextmanager
def _span(
    name: str, parent: "Context | None" = None, facts: Mapping[str, str] | None = None
) -> Iterator[None]:
    if _tracer is None:
        yield
        return
    from opentelemetry.trace import StatusCode

    # By default the library records the text of an error, which may quote what a person wrote.
    with _tracer.start_as_current_span(
        name, parent, attributes=facts, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except BaseException as error:
            named = error.problem.name if isinstance(error, AnamnesisError) else type(error).__name__
            span.set_status(StatusCode.ERROR, named)
            raise


def _parent(meta: Mapping[str, object]) -> "Context | None":
    """The remote span that `meta` names, or None. A malformed id is ignored."""
    if _tracer is None:
        return None
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    trace, span = (str(meta.get(f"messaging.{kind}_id")) for kind in ("trace", "span"))
    if not (re.fullmatch("[0-9a-fA-F]{32}", trace) and re.fullmatch("[0-9a-fA-F]{16}", span)):
        return None
    named = SpanContext(int(trace, 16), int(span, 16), True, TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(named)) if named.is_valid else None
