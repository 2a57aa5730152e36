"""Metrics and spans, and that they never contain what a person wrote."""

import asyncio
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.server import listening
from orchestrator.errors import FRAME_TOO_LARGE, MODEL_UNAVAILABLE, AnamnesisError
from orchestrator.ops import telemetry
from orchestrator.wire.messages import MESSAGES

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
NAMED = {"messaging.trace_id": TRACE, "messaging.span_id": SPAN}
SAID = "my chest hurts"


def number(name: str, **labels: str) -> float:
    """The current value of a series. The registry belongs to the process, so tests compare differences."""
    text, _ = telemetry.exposition()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    )


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


@pytest.mark.parametrize("outcome", ["stopped", "timed_out"])
def test_a_turn_is_counted_by_the_outcome_it_was_given(outcome: telemetry.Outcome) -> None:
    begun = number("anamnesis_turns_started_total")
    before = number("anamnesis_turns_finished_total", outcome=outcome)

    with telemetry.turn() as result:
        result.outcome = outcome

    assert number("anamnesis_turns_started_total") == begun + 1
    assert number("anamnesis_turns_finished_total", outcome=outcome) == before + 1


def test_a_turn_without_an_outcome_is_completed() -> None:
    before = number("anamnesis_turns_finished_total", outcome="completed")

    with telemetry.turn():
        pass

    assert number("anamnesis_turns_finished_total", outcome="completed") == before + 1


def fail_in_a_turn() -> None:
    with telemetry.turn(), telemetry.station("answer"):
        raise RuntimeError(SAID)


def test_a_turn_that_raises_has_failed() -> None:
    before = number("anamnesis_turns_finished_total", outcome="failed")

    with pytest.raises(RuntimeError):
        fail_in_a_turn()

    assert number("anamnesis_turns_finished_total", outcome="failed") == before + 1


def test_a_station_is_timed_under_its_name() -> None:
    before = number("anamnesis_station_seconds_count", station="understand")

    with telemetry.station("understand"):
        pass

    assert number("anamnesis_station_seconds_count", station="understand") == before + 1


def test_frames_traces_and_writes_are_counted() -> None:
    def counts() -> list[float]:
        return [
            number("anamnesis_frames_received_total", type="UserMessage"),
            number("anamnesis_frames_sent_total", type="MemoryTrace"),
            number("anamnesis_frames_refused_total", error="frame_too_large"),
            number("anamnesis_memory_traces_total", action="retrieved"),
            number("anamnesis_store_write_seconds_count"),
        ]

    before = counts()

    telemetry.frame_received("UserMessage")
    telemetry.frame_sent("MemoryTrace")
    telemetry.frame_refused(FRAME_TOO_LARGE)
    telemetry.trace_stored("retrieved")
    with telemetry.store_write():
        pass

    assert counts() == [count + 1 for count in before]


def test_a_connection_counts_while_it_is_open() -> None:
    before = number("anamnesis_connections_open", transport="websocket")

    with telemetry.connection("websocket"):
        during = number("anamnesis_connections_open", transport="websocket")

    assert during == before + 1
    assert number("anamnesis_connections_open", transport="websocket") == before


def test_a_name_that_is_no_message_type_makes_no_new_series() -> None:
    telemetry.frame_received(SAID)
    telemetry.frame_sent(SAID)

    text, _ = telemetry.exposition()

    assert SAID.encode() not in text
    assert number("anamnesis_frames_received_total", type="other") >= 1


def test_every_message_of_the_wire_is_counted_under_its_name() -> None:
    assert {message.__name__ for message in MESSAGES} == telemetry.FRAME_TYPES


def test_every_outcome_and_station_is_shown_before_it_happens() -> None:
    text, content_type = telemetry.exposition()

    assert b'anamnesis_turns_finished_total{outcome="set_aside"}' in text
    assert b'anamnesis_station_seconds_count{station="mirror"}' in text
    assert content_type.startswith("text/plain")


@pytest.mark.requirement("003-165")
def test_a_turn_continues_the_trace_its_message_names(spans: InMemorySpanExporter) -> None:
    with (
        telemetry.turn({**NAMED, "source": "microphone"}, conversation_id="conv_1"),
        telemetry.station("read"),
    ):
        inside = telemetry.ids()

    turn, station = by_name(spans)["turn"], by_name(spans)["read"]
    assert turn.parent is not None
    assert station.parent is not None
    assert (f"{turn.parent.trace_id:032x}", f"{turn.parent.span_id:016x}") == (TRACE, SPAN)
    assert turn.parent.is_remote
    assert station.parent.span_id == turn.context.span_id
    assert inside == {"messaging.trace_id": TRACE, "messaging.span_id": f"{station.context.span_id:016x}"}
    assert dict(turn.attributes or {}) == {"conversation_id": "conv_1"}


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"messaging.trace_id": TRACE},
        {"messaging.trace_id": TRACE, "messaging.span_id": "0" * 16},
        {"messaging.trace_id": "0" * 32, "messaging.span_id": SPAN},
        {"messaging.trace_id": f"0x{TRACE[2:]}", "messaging.span_id": SPAN},
        {"messaging.trace_id": 7, "messaging.span_id": None},
        {"messaging.trace_id": SAID, "messaging.span_id": SAID},
    ],
)
def test_a_malformed_parent_is_ignored(spans: InMemorySpanExporter, meta: dict[str, object]) -> None:
    with telemetry.turn(meta):
        pass

    assert by_name(spans)["turn"].parent is None


def test_a_span_names_an_error_and_does_not_quote_it(spans: InMemorySpanExporter) -> None:
    with pytest.raises(RuntimeError):
        fail_in_a_turn()

    for span in spans.get_finished_spans():
        assert span.status.description == "RuntimeError"
        assert not span.events
        assert SAID not in span.to_json()


def test_a_span_names_our_errors_as_the_table_does(spans: InMemorySpanExporter) -> None:
    with pytest.raises(AnamnesisError), telemetry.station("recall"):
        raise AnamnesisError(MODEL_UNAVAILABLE)

    assert by_name(spans)["recall"].status.description == "model_unavailable"


def test_outside_a_span_there_are_no_ids(spans: InMemorySpanExporter) -> None:
    assert telemetry.ids() == {}


def test_without_an_endpoint_nothing_of_opentelemetry_is_imported() -> None:
    program = """
import sys
from orchestrator.ops import telemetry
telemetry.start("")
with telemetry.turn({"messaging.trace_id": "0af7651916cd43dd8448eb211c80319c"}), telemetry.station("read"):
    assert telemetry.ids() == {}
telemetry.stop()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("given", ["", "/", "/v1/traces"])
async def test_spans_reach_a_collector(given: str) -> None:
    collected: list[tuple[str, bytes]] = []

    async def collect(request: Request) -> Response:
        collected.append((request.url.path, await request.body()))
        return Response()

    async with listening(Starlette(routes=[Route("/{path:path}", collect, methods=["POST"])])) as server:
        telemetry.start(f"http://127.0.0.1:{server.port}{given}")
        with telemetry.turn(NAMED):
            pass
        await asyncio.to_thread(telemetry.stop)

    [(path, body)] = collected
    assert path == "/v1/traces"
    assert bytes.fromhex(TRACE) in body


async def test_it_is_known_whether_the_collector_accepts_the_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")  # milliseconds, instead of five seconds
    status = 400

    async def collect(request: Request) -> Response:
        return Response(status_code=status)

    async def send_until(reached: bool) -> None:
        async with asyncio.timeout(30):
            while telemetry.collector_reached() is not reached:
                with telemetry.turn(NAMED):
                    await asyncio.sleep(0.02)

    assert telemetry.collector_reached() is None
    async with listening(Starlette(routes=[Route("/{path:path}", collect, methods=["POST"])])) as server:
        telemetry.start(f"http://127.0.0.1:{server.port}")
        assert telemetry.collector_reached() is True
        await send_until(False)
        status = 200
        await send_until(True)
        await asyncio.to_thread(telemetry.stop)
    assert telemetry.collector_reached() is None


def test_dangers_are_counted_by_kind_and_certainty() -> None:
    before = number("anamnesis_dangers_total", kind="crisis", certainty="possible")

    telemetry.danger_found("crisis", "possible")

    assert number("anamnesis_dangers_total", kind="crisis", certainty="possible") == before + 1
    assert b'anamnesis_dangers_total{certainty="certain",kind="emergency"}' in telemetry.exposition()[0]
