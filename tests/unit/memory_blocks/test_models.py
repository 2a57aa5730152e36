"""The fields of a block, its text, and how a broken rule is reported."""

import json
from typing import Any

import pytest

from memory_blocks import edits
from memory_blocks.errors import BlockInvalid
from memory_blocks.models import Blocks, ConversationHistory, Label, from_texts, parse, render
from tests.support.builders import a_conversation, a_history, a_turn, some_blocks

HISTORY: dict[str, Any] = {
    "session_id": "session_123",
    "turns": [
        {
            "turn_id": 1,
            "timestamp": "2024-01-15T10:30:00Z",
            "user_message": {"content": "I am having a headache", "message_id": "msg_001"},
            "context_enrichment": {
                "previous_context": "No previous context - first message",
                "enriched_message": "User reports having a headache - initial health query",
                "relevant_history": [],
            },
            "intent_classification": {
                "intent": "GENERAL_HEALTH",
                "confidence": 0.9,
                "reasoning": "Clear physical health symptom reported",
            },
            "agent_response": {
                "agent_type": "GENERAL_HEALTH",
                "content": "I understand you're experiencing headaches. Can you tell me when they first "
                "started and how severe they are on a scale of 1 to 10?",
                "response_id": "resp_001",
            },
            "turn_status": "COMPLETED",
        },
        {
            "turn_id": 2,
            "timestamp": "2024-01-15T10:31:00Z",
            "user_message": {"content": "8", "message_id": "msg_002"},
            "context_enrichment": {
                "previous_context": "User reported headache, agent asked for severity rating 1-10",
                "enriched_message": "User rates headache severity as 8 out of 10 (severe)",
                "relevant_history": ["turn_1"],
            },
            "intent_classification": {
                "intent": "GENERAL_HEALTH",
                "confidence": 0.95,
                "reasoning": "Follow-up response to severity question about headache",
            },
            "agent_response": {
                "agent_type": "GENERAL_HEALTH",
                "content": "A severity of 8 indicates a significant headache. How long have you been "
                "experiencing this level of pain?",
                "response_id": "resp_002",
            },
            "turn_status": "COMPLETED",
        },
    ],
    "total_turns": 2,
    "last_updated": "2024-01-15T10:31:30Z",
}
SESSION: dict[str, Any] = {
    "session_info": {
        "session_id": "session_123",
        "user_id": "user_456",
        "start_time": "2024-01-15T10:30:00Z",
        "last_activity": "2024-01-15T10:31:30Z",
        "status": "ACTIVE",
    },
    "conversation_state": {
        "current_turn": 2,
        "active_topic": "headache_severity_assessment",
        "last_agent": "GENERAL_HEALTH",
        "conversation_phase": "symptom_evaluation",
        "topic_transitions": [
            {"turn": 1, "topic": "initial_health_complaint", "trigger": "new_session"},
            {"turn": 2, "topic": "headache_severity_assessment", "trigger": "severity_inquiry"},
        ],
    },
    "agent_context": {
        "primary_agent": "GENERAL_HEALTH",
        "agent_confidence": 0.95,
        "routing_history": ["GENERAL_HEALTH", "GENERAL_HEALTH"],
        "last_intent": "GENERAL_HEALTH",
    },
    "session_metadata": {
        "total_exchanges": 2,
        "average_response_time": 1.2,
        "context_quality_score": 0.9,
        "memory_usage_percent": 25,
    },
}
METADATA: dict[str, Any] = {
    "memory_usage": {
        "conversation_history": {
            "current_size": 8500,
            "limit": 32000,
            "utilization_percent": 26.6,
            "turns_stored": 2,
            "last_cleanup": None,
        },
        "active_session": {"current_size": 1200, "limit": 4000, "utilization_percent": 30.0},
        "context_summary": {"current_size": 2100, "limit": 8000, "utilization_percent": 26.3},
    },
    "archival_info": {
        "total_archived_turns": 0,
        "last_archival": None,
        "archival_trigger_threshold": 28000,
        "next_archival_estimate": None,
    },
    "performance_metrics": {
        "avg_context_generation_time": 0.8,
        "memory_update_success_rate": 100.0,
        "context_accuracy_score": 0.95,
        "last_performance_check": "2024-01-15T10:31:30Z",
    },
    "system_flags": {
        "memory_rotation_enabled": True,
        "archival_ready": True,
        "context_validation_enabled": True,
        "emergency_mode": False,
    },
}
SAMPLES = {
    Label.CONVERSATION_HISTORY: HISTORY,
    Label.ACTIVE_SESSION: SESSION,
    Label.MEMORY_METADATA: METADATA,
}


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def departing(label: Label, path: str, value: object) -> str:
    """The sample of a block with one value replaced; `...` removes it."""
    sample = json.loads(json.dumps(SAMPLES[label]))
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    holder = sample
    for step in way:
        holder = holder[step]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return compact(sample)


@pytest.mark.requirement("001-006", "001-036", "001-069", "001-090")
@pytest.mark.parametrize("label", SAMPLES)
def test_a_block_is_written_with_the_same_keys_in_the_same_order(label: Label) -> None:
    text = compact(SAMPLES[label])

    block = parse(label, text)

    assert not isinstance(block, str)
    assert block.text == text


@pytest.mark.requirement("001-012", "001-114")
@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2024-01-15T10:31:30Z", "2024-01-15T10:31:30Z"),
        ("2024-01-15T10:31:30.250Z", "2024-01-15T10:31:30.250Z"),
        ("2024-01-15T12:31:30+02:00", "2024-01-15T10:31:30Z"),
    ],
)
def test_a_time_is_kept_in_utc(written: str, kept: str) -> None:
    history = parse(
        Label.CONVERSATION_HISTORY, departing(Label.CONVERSATION_HISTORY, "last_updated", written)
    )

    assert isinstance(history, ConversationHistory)
    assert json.loads(history.text)["last_updated"] == kept


def test_non_ascii_text_is_not_escaped() -> None:
    history = a_history([a_turn(1, message="Mir ist übel 🤢")])

    assert "Mir ist übel 🤢" in history.text


BROKEN = [
    (Label.CONVERSATION_HISTORY, "session_id", "", "session_id"),
    (Label.CONVERSATION_HISTORY, "turns", {}, "turns"),
    (Label.CONVERSATION_HISTORY, "turns.0.turn_id", 0, "turns.0.turn_id"),
    (Label.CONVERSATION_HISTORY, "turns.0.turn_id", "1", "turns.0.turn_id"),
    (Label.CONVERSATION_HISTORY, "turns.1.turn_id", 3, "turns.1.turn_id"),
    (Label.CONVERSATION_HISTORY, "turns.1.turn_id", 1, "turns.1.turn_id"),
    (Label.CONVERSATION_HISTORY, "turns.0.turn_id", ..., "turns.0.turn_id"),
    (Label.CONVERSATION_HISTORY, "turns.0.timestamp", ..., "turns.0.timestamp"),
    (Label.CONVERSATION_HISTORY, "turns.0.timestamp", "15/01/2024", "turns.0.timestamp"),
    (Label.CONVERSATION_HISTORY, "turns.0.timestamp", "2024-01-15T10:30:00", "turns.0.timestamp"),
    (Label.CONVERSATION_HISTORY, "turns.0.timestamp", "2024-13-15T10:30:00Z", "turns.0.timestamp"),
    (Label.CONVERSATION_HISTORY, "turns.0.timestamp", 1705314600, "turns.0.timestamp"),
    (Label.CONVERSATION_HISTORY, "turns.1.timestamp", "2024-01-15T10:29:59Z", "turns.1.timestamp"),
    (Label.CONVERSATION_HISTORY, "turns.0.user_message", ..., "turns.0.user_message"),
    (Label.CONVERSATION_HISTORY, "turns.0.user_message.content", ..., "turns.0.user_message.content"),
    (
        Label.CONVERSATION_HISTORY,
        "turns.1.user_message.message_id",
        "msg_001",
        "turns.1.user_message.message_id",
    ),
    (
        Label.CONVERSATION_HISTORY,
        "turns.1.agent_response.response_id",
        "resp_001",
        "turns.1.agent_response.response_id",
    ),
    (Label.CONVERSATION_HISTORY, "turns.0.agent_response", None, "turns.0.agent_response"),
    (
        Label.CONVERSATION_HISTORY,
        "turns.0.agent_response.agent_type",
        "general",
        "turns.0.agent_response.agent_type",
    ),
    (Label.CONVERSATION_HISTORY, "turns.0.turn_status", "DONE", "turns.0.turn_status"),
    (Label.CONVERSATION_HISTORY, "turns.0.error", "model_unavailable", "turns.0.error"),
    (
        Label.CONVERSATION_HISTORY,
        "turns.0.intent_classification.confidence",
        1.1,
        "turns.0.intent_classification.confidence",
    ),
    (
        Label.CONVERSATION_HISTORY,
        "turns.0.intent_classification.reasoning",
        "",
        "turns.0.intent_classification.reasoning",
    ),
    (
        Label.CONVERSATION_HISTORY,
        "turns.0.context_enrichment.relevant_history",
        ["turn_1"],
        "turns.0.context_enrichment.relevant_history",
    ),
    (
        Label.CONVERSATION_HISTORY,
        "turns.1.context_enrichment.relevant_history",
        ["first"],
        "turns.1.context_enrichment.relevant_history.0",
    ),
    (Label.CONVERSATION_HISTORY, "total_turns", 3, "total_turns"),
    (Label.CONVERSATION_HISTORY, "last_updated", "2024-01-15T10:30:30Z", "last_updated"),
    (Label.CONVERSATION_HISTORY, "mood", "good", "$"),
    (Label.ACTIVE_SESSION, "session_info.status", "GONE", "session_info.status"),
    (Label.ACTIVE_SESSION, "session_info.user_id", None, "session_info.user_id"),
    (
        Label.ACTIVE_SESSION,
        "session_info.last_activity",
        "2024-01-15T10:29:00Z",
        "session_info.last_activity",
    ),
    (Label.ACTIVE_SESSION, "session_info.start_time", "yesterday", "session_info.start_time"),
    (Label.ACTIVE_SESSION, "conversation_state.active_topic", "two words", "conversation_state.active_topic"),
    (
        Label.ACTIVE_SESSION,
        "conversation_state.topic_transitions.0.turn",
        0,
        "conversation_state.topic_transitions.0.turn",
    ),
    (Label.ACTIVE_SESSION, "agent_context.agent_confidence", -0.1, "agent_context.agent_confidence"),
    (
        Label.ACTIVE_SESSION,
        "session_metadata.memory_usage_percent",
        101,
        "session_metadata.memory_usage_percent",
    ),
    (Label.MEMORY_METADATA, "system_flags.emergency_mode", "no", "system_flags.emergency_mode"),
    (Label.MEMORY_METADATA, "memory_usage.active_session", ..., "memory_usage.active_session"),
    (
        Label.MEMORY_METADATA,
        "performance_metrics.memory_update_success_rate",
        100.5,
        "performance_metrics.memory_update_success_rate",
    ),
    (Label.MEMORY_METADATA, "archival_info.last_archival", "soon", "archival_info.last_archival"),
]


@pytest.mark.requirement(
    *("001-009", "001-010", "001-011", "001-014", "001-017", "001-019", "001-020", "001-023", "001-024"),
    *("001-026", "001-043", "001-107", "001-108", "001-109", "001-113", "001-114", "001-115"),
)
@pytest.mark.parametrize(("label", "path", "value", "where"), BROKEN)
def test_a_broken_rule_is_reported_by_its_path(label: Label, path: str, value: object, where: str) -> None:
    with pytest.raises(BlockInvalid) as refusal:
        parse(label, departing(label, path, value))

    assert (refusal.value.facts["label"], refusal.value.facts["path"]) == (label, where)


@pytest.mark.parametrize(
    "text", ["", "[]", "not json", '{"session_id":', '"' + "[" * 5000, '{"session_id":"\ud800"}']
)
def test_a_text_that_is_no_block_is_refused(text: str) -> None:
    with pytest.raises(BlockInvalid):
        parse(Label.CONVERSATION_HISTORY, text)


def test_a_refusal_quotes_nothing() -> None:
    secret = "my secret sorrow"
    text = departing(Label.CONVERSATION_HISTORY, "turns.0.timestamp", secret)
    unknown = departing(Label.CONVERSATION_HISTORY, secret, 1)

    for broken in (text, unknown):
        with pytest.raises(BlockInvalid) as refusal:
            parse(Label.CONVERSATION_HISTORY, broken)
        error: BaseException | None = refusal.value

        assert secret not in f"{error!s}{error!r}{refusal.value.facts}"
        assert refusal.value.__context__ is None


@pytest.mark.requirement("001-110")
def test_twenty_five_turns_are_accepted_and_twenty_six_are_refused() -> None:
    text = a_history([a_turn(number) for number in range(1, 26)]).text
    more = json.loads(text)
    more["turns"].append(json.loads(a_turn(26).text))
    more |= {"total_turns": 26, "last_updated": "2024-01-15T10:56:00Z"}

    parse(Label.CONVERSATION_HISTORY, text)

    with pytest.raises(BlockInvalid, match="more than 25 turns"):
        parse(Label.CONVERSATION_HISTORY, compact(more))


@pytest.mark.requirement("001-039", "001-040", "001-041")
def test_before_the_first_turn_nothing_is_known_and_the_sizes_are_right() -> None:
    blocks = edits.empty(a_conversation())

    history = json.loads(render(Label.CONVERSATION_HISTORY, blocks))
    session = json.loads(render(Label.ACTIVE_SESSION, blocks))
    metadata = json.loads(render(Label.MEMORY_METADATA, blocks))
    assert history == {
        "schema_version": "1.2",
        "session_id": "session_123",
        "turns": [],
        "total_turns": 0,
        "last_updated": None,
    }
    assert session["session_info"] == {
        "session_id": "session_123",
        "user_id": "user_456",
        "start_time": "2024-01-15T10:30:00Z",
        "last_activity": "2024-01-15T10:30:00Z",
        "status": "ACTIVE",
    }
    assert session["conversation_state"] == {
        "current_turn": 0,
        "active_topic": None,
        "last_agent": None,
        "conversation_phase": "opening",
        "topic_transitions": [],
    }
    assert set(metadata["performance_metrics"].values()) == {None}
    assert metadata["memory_usage"]["active_session"]["current_size"] == len(
        render(Label.ACTIVE_SESSION, blocks)
    )
    assert blocks.context_summary == ""


def test_blocks_can_be_parsed_from_their_texts() -> None:
    blocks: Blocks = some_blocks(turns=3)

    assert from_texts({label: render(label, blocks) for label in Label}) == blocks


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_history_joined_from_cached_turns_equals_its_json(turns: int) -> None:
    history = some_blocks(turns).conversation_history

    assert history.text == compact(history.model_dump(mode="json"))
