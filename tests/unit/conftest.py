"""What tests of this folder can ask for."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from orchestrator.ops import telemetry


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What is told of the turns that the test takes, to whoever collects spans."""
    exporter = InMemorySpanExporter()
    telemetry.start_with(SimpleSpanProcessor(exporter))
    yield exporter
    telemetry.stop()
