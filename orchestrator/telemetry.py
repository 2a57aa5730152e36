"""What the house counts and times: Prometheus numbers always, OpenTelemetry spans where they are collected.

Labels and attributes come from closed sets and ids; what a person wrote is in none of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
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
from orchestrator.ports import Way

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Tracer

Station: TypeAlias = Literal[
    "guard", "read", "extract", "embed", "recall", "classify", "pick", "answer", "write", "mirror", "remember"
]
Outcome: TypeAlias = Literal["completed", "stopped", "failed", "timed_out", "interrupted", "set_aside"]
Action: TypeAlias = Literal["retrieved", "stored", "updated"]

FRAME_TYPES: Final = frozenset(
    "ErrorMessage UserMessage AssistantMessage ReasoningStep ToolUseRequest ToolUseResult "  # noqa: SIM905 - legible
    "Acknowledgement Transcription AudioChunk ControlStop ControlVariation Configuration StartAnswer "
    "MemoryTrace Commentary AssistantSentence SyncRequest SyncResponse UserNote NoteConfirmation "
    "MemoryAction MemoryConfirmation ServerInfo".split()
)
"""The names of the message types, as labels. Any other name is counted as `other`."""

_registry = CollectorRegistry()
_turns_started = Counter("anamnesis_turns_started", "Turns begun.", registry=_registry)
_turns_finished = Counter("anamnesis_turns_finished", "Turns ended, by how.", ["outcome"], registry=_registry)
_traces = Counter("anamnesis_memory_traces", "Memory traces kept, by action.", ["action"], registry=_registry)
_received = Counter(
    "anamnesis_frames_received", "Frames from clients, by type.", ["type"], registry=_registry
)
_sent = Counter("anamnesis_frames_sent", "Frames to clients, by type.", ["type"], registry=_registry)
_refused = Counter("anamnesis_frames_refused", "Frames refused, by error.", ["error"], registry=_registry)
_open = Gauge(
    "anamnesis_connections_open", "Connections now open, by way.", ["transport"], registry=_registry
)
_buckets = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_turn_seconds = Histogram(
    "anamnesis_turn_seconds", "How long a turn took.", buckets=_buckets, registry=_registry
)
_station_seconds = Histogram(
    "anamnesis_station_seconds", "How long a station took.", ["station"], buckets=_buckets, registry=_registry
)
_write_seconds = Histogram(
    "anamnesis_store_write_seconds", "How long a write took.", buckets=_buckets, registry=_registry
)
ProcessCollector(registry=_registry)


def _known(metric: MetricWrapperBase, values: tuple[str, ...]) -> None:
    """Show every series from the start, at zero: a rate can be taken only of what was there before."""
    for value in values:
        metric.labels(value)


_known(_turns_finished, get_args(Outcome))
_known(_traces, get_args(Action))
_known(_open, get_args(Way))
_known(_station_seconds, get_args(Station))

_provider: "TracerProvider | None" = None
_tracer: "Tracer | None" = None
_reached: bool | None = None


def start(endpoint: str) -> None:
    """Send spans to the OTLP collector at `endpoint` (its base address); with none, there are no spans."""
    if not endpoint:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    class Exporter(OTLPSpanExporter):
        def export(self, spans: "Sequence[ReadableSpan]") -> SpanExportResult:
            global _reached
            result = super().export(spans)
            _reached = result is SpanExportResult.SUCCESS
            return result

    global _reached
    _reached = True
    address = f"{endpoint.rstrip('/').removesuffix('/v1/traces')}/v1/traces"
    start_with(BatchSpanProcessor(Exporter(endpoint=address, timeout=3)))


def start_with(processor: "SpanProcessor") -> None:
    """Hand spans to `processor`. Nothing of OpenTelemetry is imported before: it takes a while."""
    global _provider, _tracer
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create({"service.name": "anamnesis", "service.version": version("anamnesis")})
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _provider.add_span_processor(processor)
    _tracer = _provider.get_tracer("anamnesis")


def stop() -> None:
    """Send what is left, and end with it. Blocks for a few seconds at most."""
    global _provider, _tracer, _reached
    if _provider is not None:
        _provider.shutdown()
    _provider = _tracer = _reached = None


def reached() -> bool | None:
    """Whether the collector took the last spans it was sent; none, where spans are sent nowhere."""
    return _reached


@dataclass(slots=True)
class WatchedTurn:
    """How the turn under way ends. Left alone, it is completed, or failed if an error leaves it."""

    outcome: Outcome | None = None


@contextmanager
def turn(meta: Mapping[str, object] | None = None, **ids: str) -> Iterator[WatchedTurn]:
    """Count and time one turn. Its span continues the trace that the message's `meta` names, if any."""
    _turns_started.inc()
    watched = WatchedTurn()
    try:
        with _turn_seconds.time(), _span("turn", _parent(meta or {}), ids):
            yield watched
    except BaseException:
        watched.outcome = watched.outcome or "failed"
        raise
    finally:
        _turns_finished.labels(watched.outcome or "completed").inc()


@contextmanager
def station(name: Station) -> Iterator[None]:
    """Time one station of the corridor."""
    with _station_seconds.labels(name).time(), _span(name):
        yield


def store_write() -> AbstractContextManager[object]:
    """Time one write to the store."""
    return _write_seconds.time()


@contextmanager
def connection(way: Way) -> Iterator[None]:
    """Count a connection for as long as it is open."""
    with _open.labels(way).track_inprogress():
        yield


def frame_received(type_name: str) -> None:
    """Count a frame from a client that was understood."""
    _received.labels(type_name if type_name in FRAME_TYPES else "other").inc()


def frame_sent(type_name: str) -> None:
    """Count a frame to a client."""
    _sent.labels(type_name if type_name in FRAME_TYPES else "other").inc()


def frame_refused(problem: Problem) -> None:
    """Count a frame that was answered with an error."""
    _refused.labels(problem.name if problem.name in TABLE else "other").inc()


def trace_kept(action: Action) -> None:
    """Count a memory trace that is on disk."""
    _traces.labels(action).inc()


def exposition() -> tuple[bytes, str]:
    """Every number, as Prometheus reads it, and the content type of that."""
    return generate_latest(_registry), CONTENT_TYPE_LATEST


def ids() -> dict[str, str]:
    """The current span as an envelope's meta names it, so that a stanza can be joined to it."""
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

    # The library would record the text of an error, and foreign texts echo what a person wrote.
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
    """The remote span that `meta` names. One that is not an id is no reason to refuse a turn."""
    if _tracer is None:
        return None
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    trace, span = (str(meta.get(f"messaging.{kind}_id")) for kind in ("trace", "span"))
    if not (re.fullmatch("[0-9a-fA-F]{32}", trace) and re.fullmatch("[0-9a-fA-F]{16}", span)):
        return None
    named = SpanContext(int(trace, 16), int(span, 16), True, TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(named)) if named.is_valid else None
