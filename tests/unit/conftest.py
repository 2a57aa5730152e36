"""Fixtures for the tests of this folder."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from orchestrator.ops import telemetry


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of the turns in the test."""
    exporter = InMemorySpanExporter()
    telemetry.start_with(SimpleSpanProcessor(exporter))
    yield exporter
    telemetry.stop()
