"""How a turn changes the four blocks."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_blocks import agreement
from memory_blocks.edits import after_rotation, complete_turn, empty, refresh
from memory_blocks.errors import BlockInvalid
from memory_blocks.limits import utilization
from memory_blocks.models import Blocks, Label, TurnStatus, changed, render
from memory_blocks.rotation import rotate
from memory_blocks.schema import departures
from tests.support.builders import START, a_completed_turn, a_conversation, a_turn, an_enrichment, some_blocks

NOW = START + timedelta(hours=1)


@pytest.mark.requirement("001-005", "001-013", "001-022", "001-029", "001-030", "001-120")
def test_a_turn_is_appended_and_the_old_ones_stay_as_they_are() -> None:
    before = some_blocks(turns=2)

    after = complete_turn(before, a_completed_turn(3, message="8", answer="Since when?"), NOW)

    *old, new = after.conversation_history.turns
    assert [turn.text for turn in old] == [turn.text for turn in before.conversation_history.turns]
    assert (new.turn_id, new.user_message.content, new.turn_status) == (3, "8", TurnStatus.COMPLETED)
    assert new.agent_response is not None
    assert new.agent_response.content == "Since when?"
    assert after.conversation_history.total_turns == 3
    assert after.conversation_history.last_updated == NOW


@pytest.mark.requirement(
    *("001-035", "001-041", "001-042", "001-044", "001-045", "001-046", "001-047", "001-048", "001-049"),
    *("001-050", "001-051", "001-052", "001-053", "001-054", "001-055", "001-056"),
)
def test_the_session_follows_the_turns() -> None:
    first = complete_turn(some_blocks(turns=0), a_completed_turn(1), START + timedelta(minutes=2))
    turn = replace(
        a_completed_turn(2, agent="SLEEP", agent_name="Sleep Agent"),
        topic="insomnia_evaluation",
        trigger="new_concern",
        context_quality=0.5,
        response_seconds=2.0,
    )

    session = complete_turn(first, turn, NOW).active_session

    assert session.session_info.start_time == START
    assert session.session_info.last_activity == NOW
    state, agents, counts = session.conversation_state, session.agent_context, session.session_metadata
    assert (state.current_turn, state.active_topic, state.last_agent) == (2, "insomnia_evaluation", "SLEEP")
    assert [(entry.turn, entry.topic, entry.trigger) for entry in state.topic_transitions] == [
        (1, "headache_evaluation", "new_session"),
        (2, "insomnia_evaluation", "new_concern"),
    ]
    assert agents.routing_history == ("GENERAL_HEALTH", "SLEEP")
    assert (agents.primary_agent, agents.last_intent) == ("GENERAL_HEALTH", "SLEEP")
    assert agents.agent_confidence == 0.9
    assert (counts.total_exchanges, counts.average_response_time) == (2, 1.5)
    assert counts.context_quality_score == 0.7


@pytest.mark.requirement(
    *("001-068", "001-072", "001-073", "001-074", "001-075", "001-078", "001-080", "001-082", "001-083"),
    *("001-084", "001-085", "001-117"),
)
def test_the_sizes_are_those_of_the_real_texts() -> None:
    blocks = some_blocks(turns=4)

    usage = json.loads(render(Label.MEMORY_METADATA, blocks))["memory_usage"]

    for label, limit in (
        ("conversation_history", 32_000),
        ("active_session", 4_000),
        ("context_summary", 8_000),
    ):
        size = len(render(Label(label), blocks))
        assert usage[label]["current_size"] == size
        assert (usage[label]["limit"], usage[label]["utilization_percent"]) == (
            limit,
            utilization(size, limit),
        )
    metadata = blocks.memory_metadata
    assert usage["conversation_history"]["turns_stored"] == 4
    assert usage["conversation_history"]["last_cleanup"] is None
    assert metadata.archival_info.total_archived_turns == 0
    assert metadata.archival_info.archival_trigger_threshold == 28_000
    assert metadata.performance_metrics.avg_context_generation_time == 0.5
    assert metadata.performance_metrics.memory_update_success_rate == 100.0
    assert metadata.performance_metrics.context_accuracy_score == 1.0


@pytest.mark.requirement("001-081")
def test_the_next_archiving_is_estimated_from_the_third_turn_on() -> None:
    short, long = some_blocks(turns=2), some_blocks(turns=3)

    size = len(render(Label.CONVERSATION_HISTORY, long))
    assert short.memory_metadata.archival_info.next_archival_estimate is None
    estimate = long.memory_metadata.archival_info.next_archival_estimate
    assert estimate is not None
    assert (estimate - 1) * size / 3 < 28_000 <= estimate * size / 3


def test_a_failed_turn_stays_in_progress_with_what_was_said() -> None:
    before = some_blocks(turns=1)
    turn = replace(
        a_completed_turn(2), enrichment=None, intent=None, response=None, error="model_unavailable"
    )

    after = complete_turn(before, turn, NOW)

    failed = json.loads(render(Label.CONVERSATION_HISTORY, after))["turns"][-1]
    assert (failed["turn_status"], failed["error"]) == ("IN_PROGRESS", "model_unavailable")
    assert failed["agent_response"] is None
    assert after.active_session.session_metadata.total_exchanges == 1
    assert after.active_session.conversation_state.current_turn == 2
    assert "→ Not finished (model_unavailable)" in after.context_summary
    assert "• Primary Concern: Headache" in after.context_summary


def test_a_turn_that_went_well_has_no_error_in_its_text() -> None:
    assert "error" not in json.loads(render(Label.CONVERSATION_HISTORY, some_blocks(turns=1)))["turns"][0]


def test_the_latest_turn_is_replaced_under_its_id() -> None:
    before = some_blocks(turns=2)

    after = complete_turn(before, a_completed_turn(2, answer="Another answer.", attempt=2), NOW)

    latest = after.conversation_history.turns[-1].agent_response
    assert latest is not None
    assert latest.content == "Another answer."
    assert after.conversation_history.total_turns == 2
    assert after.active_session.session_metadata.total_exchanges == 2
    assert len(after.active_session.agent_context.routing_history) == 2
    assert after.context_summary.count("Turn 2 (") == 1
    assert list(agreement.departures(after)) == []


def test_a_failed_turn_can_be_answered_later() -> None:
    failed = complete_turn(
        some_blocks(turns=1), replace(a_completed_turn(2), response=None, error="turn_timed_out"), NOW
    )

    after = complete_turn(failed, a_completed_turn(2), NOW)

    assert after.conversation_history.turns[-1].turn_status is TurnStatus.COMPLETED
    assert after.active_session.session_metadata.total_exchanges == 2
    assert list(agreement.departures(after)) == []


@pytest.mark.parametrize("turn_id", [1, 4])
def test_only_the_latest_or_the_next_turn_can_be_written(turn_id: int) -> None:
    with pytest.raises(BlockInvalid, match="only the latest turn"):
        complete_turn(some_blocks(turns=2), a_completed_turn(turn_id), NOW)


def test_a_message_cannot_be_in_two_turns() -> None:
    turn = a_completed_turn(3)
    again = replace(turn, user_message=changed(turn.user_message, message_id="msg_1"))

    with pytest.raises(BlockInvalid) as refusal:
        complete_turn(some_blocks(turns=2), again, NOW)

    assert refusal.value.facts["path"] == "turns.2.user_message.message_id"


@pytest.mark.requirement("001-037")
def test_the_lists_of_the_session_lose_their_oldest_entries_to_fit() -> None:
    blocks = some_blocks(turns=0)
    for number in range(1, 22):
        topic = f"{'x' * 70}_{number}"
        turn = replace(a_completed_turn(number), topic=topic, trigger="y" * 80)
        blocks = complete_turn(blocks, turn, START + timedelta(minutes=number))

    transitions = blocks.active_session.conversation_state.topic_transitions
    assert len(render(Label.ACTIVE_SESSION, blocks)) <= 4_000
    assert transitions[-1].topic.endswith("_21")
    assert 1 < len(transitions) < 20


@pytest.mark.requirement("001-118", "001-111", "001-112", "001-062", "001-025")
def test_after_each_turn_the_four_blocks_agree() -> None:
    for turns in range(6):
        assert list(agreement.departures(some_blocks(turns), agent_types={"GENERAL_HEALTH"})) == []


@pytest.mark.requirement("001-111", "001-112", "001-115", "001-116", "001-117", "001-118")
@pytest.mark.parametrize(
    ("label", "path", "wrong"),
    [
        (Label.ACTIVE_SESSION, "session_info.session_id", {"session_info": {"session_id": "other"}}),
        (
            Label.ACTIVE_SESSION,
            "conversation_state.current_turn",
            {"conversation_state": {"current_turn": 1}},
        ),
        (
            Label.ACTIVE_SESSION,
            "conversation_state.active_topic",
            {"conversation_state": {"active_topic": "x"}},
        ),
        (
            Label.ACTIVE_SESSION,
            "conversation_state.last_agent",
            {"conversation_state": {"last_agent": "NOBODY"}},
        ),
        (Label.ACTIVE_SESSION, "agent_context.primary_agent", {"agent_context": {"primary_agent": "NOBODY"}}),
        (
            Label.ACTIVE_SESSION,
            "session_metadata.total_exchanges",
            {"session_metadata": {"total_exchanges": 9}},
        ),
        (
            Label.ACTIVE_SESSION,
            "session_metadata.memory_usage_percent",
            {"session_metadata": {"memory_usage_percent": 99}},
        ),
        (
            Label.MEMORY_METADATA,
            "archival_info.total_archived_turns",
            {"archival_info": {"total_archived_turns": 1}},
        ),
    ],
)
def test_a_disagreement_is_reported_by_label_and_path(
    label: Label, path: str, wrong: dict[str, dict[str, object]]
) -> None:
    blocks = some_blocks(turns=2)
    (part, values), *_ = wrong.items()
    block = getattr(blocks, label.value)
    bad = replace(blocks, **{label.value: changed(block, **{part: changed(getattr(block, part), **values)})})

    found = [(where, at) for where, at, _ in agreement.departures(bad, agent_types={"GENERAL_HEALTH"})]

    assert (label, path) in found


def test_a_wrong_size_is_a_disagreement_and_refreshing_corrects_it() -> None:
    blocks: Blocks = some_blocks(turns=2)
    bad = replace(blocks, context_summary=blocks.context_summary + " and more")

    found = list(agreement.departures(bad))

    assert [(label, path) for label, path, _ in found] == [
        (Label.MEMORY_METADATA, "memory_usage.context_summary")
    ]
    assert list(agreement.departures(refresh(bad))) == []


def test_a_reply_that_refers_to_a_question_counts_as_an_answer() -> None:
    turn = replace(a_completed_turn(2), enrichment=an_enrichment("User rates it 8", "turn_1"))

    after = complete_turn(some_blocks(turns=1), turn, NOW)

    assert "User Engagement: Active (responding to all questions)" in after.context_summary


def a_talk(turns: int, history: int) -> Iterator[Blocks]:
    """Turns with a history of about so many characters; the message is a third of each."""
    each = history // turns
    words = "words " * each
    blocks = empty(a_conversation())
    for number in range(1, turns + 1):
        said, question = words[: each // 10].strip(), f"{words[: each // 12].strip()}?"
        room = each - len(a_turn(number, "", "").text) - len(said) - len(question) - 20
        message, answer = words[: room // 3], f"{words[: room - room // 3]}. {question}"
        turn = replace(a_completed_turn(number, message, answer), enrichment=an_enrichment(said))
        blocks = complete_turn(blocks, turn, turn.timestamp)
        yield blocks


@pytest.mark.parametrize(
    ("turns", "history", "summary"),
    [
        pytest.param(4, 4_000, 1_500, marks=pytest.mark.requirement("001-091"), id="short chat"),
        pytest.param(10, 12_000, 3_500, marks=pytest.mark.requirement("001-092"), id="medium chat"),
        pytest.param(17, 25_000, 6_000, marks=pytest.mark.requirement("001-093"), id="long chat"),
        pytest.param(18, 28_000, 7_000, marks=pytest.mark.requirement("001-094"), id="threshold"),
    ],
)
def test_a_conversation_uses_about_the_planned_size(turns: int, history: int, summary: int) -> None:
    *_, blocks = a_talk(turns, history)

    assert len(blocks.conversation_history.text) == pytest.approx(history, rel=0.1)
    assert len(blocks.context_summary) == pytest.approx(summary, rel=0.25)


@pytest.mark.requirement("001-094", "001-032")
def test_with_turns_of_that_length_archiving_begins_by_the_eighteenth() -> None:
    rotated = [bool(rotate(blocks.conversation_history).rotated_out) for blocks in a_talk(18, 28_000)]

    assert 15 <= rotated.index(True) + 1 <= 18


@pytest.mark.requirement("001-087")
def test_the_archive_is_ready_while_it_accepts_turns() -> None:
    for blocks in (empty(a_conversation()), some_blocks(turns=20)):
        assert blocks.memory_metadata.system_flags.archival_ready
    rotation = rotate(some_blocks(turns=21).conversation_history)

    after = after_rotation(some_blocks(turns=21), rotation, NOW)

    assert rotation.rotated_out
    assert after.memory_metadata.system_flags.archival_ready
    text = after.memory_metadata.text.replace('"archival_ready":true', '"archival_ready":"yes"')
    assert departures(Label.MEMORY_METADATA, text) == (
        ("system_flags.archival_ready", "is not true or false"),
    )
