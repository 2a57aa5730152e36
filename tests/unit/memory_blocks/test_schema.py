"""The published schemas of the blocks, and the checks of texts from outside."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memory_blocks.models import SCHEMA_VERSION, SCHEMA_VERSIONS, Label, parse, render
from memory_blocks.schema import departures, publications, published, upgrade
from orchestrator.settings import shipped_config
from tests.support.builders import a_history, a_turn, some_blocks
from tests.unit.memory_blocks.test_models import HISTORY, SAMPLES, compact, departing
from tests.unit.memory_blocks.test_summary import SEED

H, S, M, T = (
    Label.CONVERSATION_HISTORY,
    Label.ACTIVE_SESSION,
    Label.MEMORY_METADATA,
    Label.CONTEXT_SUMMARY,
)
SAME = ""
"""In the fourth column: the violation is reported at the changed place."""

CHANGED: list[tuple[Label, str, object, str, str]] = [
    (H, "session_id", ..., SAME, "is missing"),
    (H, "session_id", "", SAME, "is empty"),
    (H, "session_id", 7, SAME, "is not a text"),
    (H, "session_id", "x" * 129, SAME, "has more than 128 characters"),
    (H, "turns", ..., SAME, "is missing"),
    (H, "turns", {}, SAME, "is not a list"),
    (H, "turns.0", "I am in pain", SAME, "is not an object"),
    (H, "turns.0.turn_id", ..., SAME, "is missing"),
    (H, "turns.0.turn_id", 0, SAME, "is below 1"),
    (H, "turns.0.turn_id", "1", SAME, "is not a whole number"),
    (H, "turns.0.turn_id", 1.5, SAME, "is not a whole number"),
    (H, "turns.0.turn_id", True, SAME, "is not a whole number"),
    (H, "turns.1.turn_id", 3, SAME, "is not one above the turn before it"),
    (H, "turns.1.turn_id", 1, SAME, "is not one above the turn before it"),
    (H, "turns.0.timestamp", ..., SAME, "is missing"),
    (H, "turns.0.timestamp", "15/01/2024", SAME, "is not a time in ISO 8601 with its zone"),
    (H, "turns.0.timestamp", "2024-01-15T10:30:00", SAME, "is not a time in ISO 8601 with its zone"),
    (H, "turns.0.timestamp", "2024-02-30T10:30:00Z", SAME, "is not a time in ISO 8601 with its zone"),
    (H, "turns.0.timestamp", 1705314600, SAME, "is not a text"),
    (H, "turns.1.timestamp", "2024-01-15T10:29:59Z", SAME, "is before the turn before it"),
    (H, "turns.0.user_message", ..., SAME, "is missing"),
    (H, "turns.0.user_message", "I am in pain", SAME, "is not an object"),
    (H, "turns.0.user_message.content", ..., SAME, "is missing"),
    (H, "turns.0.user_message.content", None, SAME, "is not a text"),
    (
        H,
        "turns.0.user_message.mood",
        "I am in pain",
        "turns.0.user_message",
        "has an unknown field",
    ),
    (H, "turns.1.user_message.message_id", "msg_001", SAME, "is used by two messages"),
    (
        H,
        "turns.0.context_enrichment.relevant_history",
        ["turn_1"],
        SAME,
        "names a turn that is not an earlier one",
    ),
    (
        H,
        "turns.1.context_enrichment.relevant_history",
        ["first"],
        "turns.1.context_enrichment.relevant_history.0",
        "does not have the form ^turn_[1-9][0-9]{0,8}$",
    ),
    (H, "turns.1.context_enrichment.relevant_history", "turn_1", SAME, "is not a list"),
    (H, "turns.0.context_enrichment.enriched_message", ..., SAME, "is missing"),
    (
        H,
        "turns.0.intent_classification.intent",
        "general",
        SAME,
        "does not have the form ^[A-Z][A-Z0-9_]{0,63}$",
    ),
    (H, "turns.0.intent_classification.confidence", 1.1, SAME, "is above 1"),
    (H, "turns.0.intent_classification.confidence", -0.1, SAME, "is below 0"),
    (H, "turns.0.intent_classification.confidence", "0.9", SAME, "is not a number"),
    (H, "turns.0.intent_classification.reasoning", "", SAME, "is empty"),
    (H, "turns.0.agent_response", None, SAME, "is missing in a completed turn"),
    (H, "turns.0.agent_response", [], SAME, "is not an object or null"),
    (
        H,
        "turns.0.agent_response.agent_type",
        "general",
        SAME,
        "does not have the form ^[A-Z][A-Z0-9_]{0,63}$",
    ),
    (H, "turns.1.agent_response.response_id", "resp_001", SAME, "is used by two responses"),
    (H, "turns.0.turn_status", "DONE", SAME, "is none of PENDING, IN_PROGRESS, COMPLETED"),
    (H, "turns.0.turn_status", ..., SAME, "is missing"),
    (H, "turns.0.error", "model_unavailable", SAME, "a completed turn has none"),
    (H, "turns.0.sentiment", "ecstatic", SAME, "is none of positive, neutral, negative"),
    (H, "turns.0.topics", ["two words"], "turns.0.topics.0", "does not have the form ^\\w{1,80}$"),
    (H, "turns.0.answered", "yes", SAME, "is not true or false or null"),
    (H, "turns.0.context_score", 2, SAME, "is above 1"),
    (H, "total_turns", 3, SAME, "is not the number of the latest turn"),
    (H, "total_turns", -1, SAME, "is below 0"),
    (H, "last_updated", ..., SAME, "is missing"),
    (H, "last_updated", "2024-01-15T10:30:30Z", SAME, "is before the latest turn"),
    (H, "last_updated", None, SAME, "is before the latest turn"),
    (H, "schema_version", "0.9", SAME, "is none of 1.1, 1.2"),
    (H, "mood", "I am in pain", "$", "has an unknown field"),
    (S, "session_info", ..., SAME, "is missing"),
    (S, "session_info.status", "GONE", SAME, "is none of ACTIVE, PAUSED, ENDED"),
    (S, "session_info.user_id", None, SAME, "is not a text"),
    (S, "session_info.last_activity", "2024-01-15T10:29:00Z", SAME, "is before start_time"),
    (S, "session_info.start_time", "yesterday", SAME, "is not a time in ISO 8601 with its zone"),
    (S, "conversation_state.current_turn", "2", SAME, "is not a whole number"),
    (S, "conversation_state.active_topic", "two words", SAME, "does not have the form ^\\w{1,80}$"),
    (S, "conversation_state.topic_transitions.0.turn", 0, SAME, "is below 1"),
    (S, "conversation_state.topic_transitions.1.trigger", ..., SAME, "is missing"),
    (S, "agent_context.agent_confidence", -0.1, SAME, "is below 0"),
    (S, "agent_context.agent_confidence", "sure", SAME, "is not a number or null"),
    (S, "agent_context.routing_history.1", None, SAME, "is not a text"),
    (S, "session_metadata.memory_usage_percent", 101, SAME, "is above 100"),
    (S, "session_metadata.total_exchanges", -1, SAME, "is below 0"),
    (S, "facts", [{"kind": "onset", "value": "", "turn": 1}], "facts.0.value", "is empty"),
    (S, "facts", {}, SAME, "is not a list or null"),
    (
        S,
        "earlier_sessions",
        [{"session_id": "s", "ended_at": "2024-01-15T10:30:00Z"}],
        "earlier_sessions.0.summary",
        "is missing",
    ),
    (M, "memory_usage.active_session", ..., SAME, "is missing"),
    (M, "memory_usage.conversation_history.turns_stored", 26, SAME, "is above 25"),
    (M, "memory_usage.context_summary.limit", 0, SAME, "is below 1"),
    (M, "memory_usage.context_summary.utilization_percent", 100.1, SAME, "is above 100"),
    (M, "archival_info.last_archival", "soon", SAME, "is not a time in ISO 8601 with its zone"),
    (M, "archival_info.next_archival_estimate", 0, SAME, "is below 1"),
    (M, "performance_metrics.memory_update_success_rate", 100.5, SAME, "is above 100"),
    (M, "system_flags.emergency_mode", "no", SAME, "is not true or false"),
    (M, "system_flags.emergency_mode", 0, SAME, "is not true or false"),
    (M, "system_flags.archival_ready", ..., SAME, "is missing"),
    (M, "level", "overflowing", SAME, "is none of normal, warning, archive, emergency"),
]

TEXT = compact(HISTORY)
BROKEN: list[tuple[Label, str, str, str]] = [
    (H, "", "$", "is not JSON"),
    (H, "I am in pain", "$", "is not JSON"),
    (H, '{"session_id":', "$", "is not JSON"),
    (H, f"{TEXT}x", "$", "is not JSON"),
    (H, TEXT.replace("0.95", "1" * 5_000), "$", "is not JSON"),
    (H, "[]", "$", "is not an object"),
    (H, "null", "$", "is not an object"),
    (H, f'{TEXT[:-1]},"total_turns":2}}', "$", "has a field twice"),
    (H, TEXT.replace("0.95", "NaN"), "$", "has a number that is not finite"),
    (H, TEXT.replace("0.95", "-Infinity"), "$", "has a number that is not finite"),
    (H, '{"session_id":' + "[" * 15_000 + "]" * 15_000 + "}", "$", "is nested too deeply"),
    (H, TEXT.replace('"8"', '"\\u0000"'), "$", "has a NUL character"),
    (H, TEXT.replace('"8"', '"\0"'), "$", "has a NUL character"),
    (H, TEXT.replace('"8"', '"\\ud800"'), "$", "has a lone surrogate"),
    (H, TEXT.replace('"8"', '"\ud800"'), "$", "has a lone surrogate"),
    (H, TEXT.replace('"8"', f'"{"8" * 32_000}"'), "$", "has more than 32000 characters"),
    (S, compact(SAMPLES[S]) + " " * 4_000, "$", "has more than 4000 characters"),
    (M, compact(SAMPLES[M]) + " " * 2_000, "$", "has more than 2000 characters"),
    (T, SEED + "x" * 8_000, "$", "has more than 8000 characters"),
    (T, f"{SEED}\0", "$", "has a NUL character"),
    (T, f"{SEED}\ud800", "$", "has a lone surrogate"),
    (T, "I am in pain", "$", "does not have the form ^=== CONVERSATION SUMMARY ==="),
    (T, SEED.replace("SUMMARY ===", "SUMMARY ===="), "title", "is not the first line"),
    (T, SEED.replace("Z\n", "\n"), "header", "does not state session, user and start"),
    (T, SEED.replace(" | User: user_456", ""), "header", "does not state session, user and start"),
    (T, SEED.replace("CURRENT TOPIC", "TOPIC"), "header", "does not state topic, agent and phase"),
    (T, SEED.replace("--- KEY CONTEXT POINTS ---\n", ""), "KEY CONTEXT POINTS", "is missing"),
    (T, SEED.replace("NEXT LIKELY", "NEXT"), "NEXT LIKELY TOPICS", "is missing"),
    (T, f"{SEED}\n--- CONVERSATION FLOW ---", "CONVERSATION FLOW", "occurs twice"),
    (T, SEED.replace("--- NEXT", "--- NOTES ---\n--- NEXT"), "CONVERSATION QUALITY", "is not in its place"),
    (T, SEED.replace("→ Routed", "Routed"), "CONVERSATION FLOW.0", "is not a turn and what followed"),
    (T, SEED.replace("Turn 2 (", "Turn two ("), "CONVERSATION FLOW.1", "is not a turn and what followed"),
    (T, SEED.replace("• Symptom", "Symptom"), "KEY CONTEXT POINTS.1", "is not a bullet"),
    (T, SEED.replace("• Potential", "Potential"), "NEXT LIKELY TOPICS.2", "is not a bullet"),
    (
        T,
        SEED.replace("User Engagement", "Engagement"),
        "CONVERSATION QUALITY",
        "does not state User Engagement in its place",
    ),
]


def test_the_published_schemas_equal_those_of_the_models() -> None:
    folder = shipped_config() / "blocks"

    files = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}

    assert files == dict(publications()), "`anamnesis blocks schemas config/blocks` writes them anew"


@pytest.mark.parametrize("version", SCHEMA_VERSIONS)
@pytest.mark.parametrize("label", Label)
def test_the_published_schemas_are_valid_json_schemas(label: Label, version: str) -> None:
    Draft202012Validator.check_schema(published(label, version))


@pytest.mark.requirement("001-100", "001-101", "001-103", "001-104", "001-105")
@pytest.mark.parametrize("version", SCHEMA_VERSIONS)
@pytest.mark.parametrize("label", Label)
def test_the_first_samples_are_valid_in_every_version(label: Label, version: str) -> None:
    sample: Any = SEED if label is Label.CONTEXT_SUMMARY else SAMPLES[label]

    Draft202012Validator(published(label, version)).validate(sample)

    assert departures(label, sample if isinstance(sample, str) else compact(sample)) == ()


@pytest.mark.requirement("001-104")
@pytest.mark.parametrize("versions", list(pairwise(SCHEMA_VERSIONS)))
@pytest.mark.parametrize("label", Label)
def test_a_later_version_has_every_field_of_the_earlier_and_demands_no_more(
    label: Label, versions: tuple[str, str]
) -> None:
    first, second = (published(label, version) for version in versions)

    parts = {"": (first, second)} | {
        name: (part, second["$defs"][name]) for name, part in first.get("$defs", {}).items()
    }
    for old, new in parts.values():
        assert set(old.get("properties", ())) <= set(new.get("properties", ()))
        assert old.get("required") == new.get("required")


@pytest.mark.requirement("001-099", "001-106")
@pytest.mark.parametrize("label", SAMPLES)
def test_an_upgrade_loses_nothing_and_does_nothing_the_second_time(label: Label) -> None:
    text = compact(SAMPLES[label])

    upgraded = upgrade(label, text)

    block = json.loads(upgraded)
    assert block.pop("schema_version") == SCHEMA_VERSION
    assert compact(block) == text
    assert upgrade(label, upgraded) == upgraded
    assert departures(label, upgraded) == ()


@pytest.mark.parametrize("label", Label)
def test_written_blocks_fit_the_published_schema_and_need_no_upgrade(label: Label) -> None:
    text = render(label, some_blocks(turns=3))

    assert departures(label, text) == ()
    assert upgrade(label, text) == text


@pytest.mark.requirement(
    *("001-107", "001-108", "001-109", "001-113", "001-114", "001-115", "001-009", "001-010", "001-011"),
    *("001-012", "001-024", "001-026", "001-043", "001-048", "001-100", "001-101", "001-103"),
)
@pytest.mark.parametrize(("label", "path", "value", "where", "rule"), CHANGED)
def test_each_broken_rule_is_reported_by_path_and_reason(
    label: Label, path: str, value: object, where: str, rule: str
) -> None:
    assert departures(label, departing(label, path, value)) == ((where or path, rule),)


@pytest.mark.requirement("001-058", "001-061", "001-062", "001-065")
@pytest.mark.parametrize(("label", "text", "path", "rule"), BROKEN)
def test_each_broken_text_is_reported_by_path_and_reason(
    label: Label, text: str, path: str, rule: str
) -> None:
    assert departures(label, text) == ((path, rule),)


@pytest.mark.requirement("001-110")
def test_the_twenty_sixth_turn_breaks_the_schema() -> None:
    history = json.loads(a_history([a_turn(number) for number in range(1, 26)]).text)
    history["turns"].append(json.loads(a_turn(26).text))
    history |= {"total_turns": 26, "last_updated": "2024-01-15T10:56:00Z"}

    assert departures(H, compact(history)) == (("turns", "has more than 25 turns"),)


def test_all_broken_rules_are_reported_at_once() -> None:
    history = json.loads(TEXT)
    del history["session_id"], history["turns"][1]["timestamp"]
    history["turns"][0]["turn_status"] = "I am in pain"

    assert set(departures(H, compact(history))) == {
        ("session_id", "is missing"),
        ("turns.0.turn_status", "is none of PENDING, IN_PROGRESS, COMPLETED"),
        ("turns.1.timestamp", "is missing"),
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
places = st.sampled_from([(label, path) for label, path, *_ in CHANGED])


@settings(max_examples=150, deadline=None)
@given(places, json_values)
def test_any_value_is_valid_or_reported_and_never_quoted(place: tuple[Label, str], value: object) -> None:
    label, path = place
    text = departing(label, path, {"i am in pain": value} if isinstance(value, str) else value)

    found = departures(label, text)

    if not found:
        parse(label, text)
    assert "i am in pain" not in str(found)
