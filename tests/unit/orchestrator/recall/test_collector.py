"""The trace of one search: what it records, and when it writes a file."""

import json
import re
from pathlib import Path

import pytest

from orchestrator.recall.context.collector import PREVIEW, TraceCollector, TraceConfig
from orchestrator.recall.context.summaries import RetrievalSummary
from tests.support.memory.memories import a_memory

SUMMARY = RetrievalSummary(("a",), 1, "q", False, "default", 1, 0, 0, 0.1, None)


@pytest.mark.requirement("002-027")
def test_a_trace_has_an_id_with_its_time() -> None:
    trace = TraceCollector("q", "ann", TraceConfig())

    assert re.fullmatch(r"trace-\d{13}-[a-z0-9]{1,5}", trace.trace_id)
    assert (trace.query, trace.user_id) == ("q", "ann")


@pytest.mark.requirement("002-028", "002-029", "002-030")
def test_a_stage_is_recorded_with_short_previews_and_an_event_without_memories() -> None:
    trace = TraceCollector("q", "ann", TraceConfig(enabled=True))

    trace.stage("search", [a_memory(content="x" * 500, similarity=0.123456, score=0.98765)], {"found": 1})
    trace.event("repair", {"words": 2})

    stage, event = trace.stages
    assert set(stage) == {"name", "count", "memories", "meta", "timestamp"}
    assert (stage["name"], stage["count"], stage["meta"]) == ("search", 1, {"found": 1})
    assert stage["memories"][0]["similarity"] == 0.1235
    assert stage["memories"][0]["score"] == 0.9877
    assert len(stage["memories"][0]["preview"]) == PREVIEW
    assert stage["timestamp"] >= 0
    assert (event["count"], event["memories"]) == (0, [])


@pytest.mark.requirement("002-031", "002-032")
def test_the_switch_is_read_once_when_the_trace_is_made(tmp_path: Path) -> None:
    config = TraceConfig(enabled=False, folder=tmp_path / "traces")
    off = TraceCollector("q", "ann", config)
    config.enabled = True
    on = TraceCollector("q", "ann", config)
    config.enabled = False

    for trace in (off, on):
        trace.stage("search", [a_memory()])
        trace.set_retrieval_summary(SUMMARY)

    assert (off.stages, off.summaries, off.finalize()) == ([], {}, None)
    assert len(on.stages) == 1
    path = on.finalize()
    assert path is not None
    assert json.loads(path.read_text())["retrieval"] == SUMMARY.plain()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("002-026")
def test_two_searches_never_mix() -> None:
    config = TraceConfig(enabled=True)
    one, other = TraceCollector("one", "ann", config), TraceCollector("other", "ben", config)

    one.stage("search", [a_memory(1)])
    other.stage("search", [a_memory(2)])

    assert [stage["memories"][0]["id"] for stage in (*one.stages, *other.stages)] == ["mem1", "mem2"]
    assert one.trace_id != other.trace_id
