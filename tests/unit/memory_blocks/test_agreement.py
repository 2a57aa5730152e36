"""Four valid blocks that disagree: every rule, broken alone, is reported by its path."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from memory_blocks import agreement
from memory_blocks.models import ActiveSession, Blocks, Label, TopicTransition, changed
from tests.support.builders import some_blocks

Change = Callable[[ActiveSession], ActiveSession]


def in_info(**values: object) -> Change:
    return lambda session: changed(session, session_info=changed(session.session_info, **values))


def in_state(**values: object) -> Change:
    return lambda session: changed(session, conversation_state=changed(session.conversation_state, **values))


def in_counts(**values: object) -> Change:
    return lambda session: changed(session, session_metadata=changed(session.session_metadata, **values))


def reported(blocks: Blocks) -> list[tuple[str, str]]:
    """The path and the rule of each violation, except of sizes, which any change affects."""
    found = agreement.departures(blocks)
    return [(path, rule) for _, path, rule in found if not path.startswith("memory_usage")]


def earlier(session: ActiveSession) -> ActiveSession:
    before = session.session_info.last_activity - timedelta(seconds=1)
    return in_info(last_activity=before)(session)


@pytest.mark.requirement("001-118", "001-111", "001-112")
@pytest.mark.parametrize(
    ("change", "path", "rule"),
    [
        (in_info(session_id="x"), "session_info.session_id", "is not that of conversation_history"),
        (in_state(current_turn=2), "conversation_state.current_turn", "is not the latest turn"),
        (earlier, "session_info.last_activity", "is before the history was updated"),
        (in_state(last_agent="SLEEP"), "conversation_state.last_agent", "is not that of the latest turn"),
        (in_state(last_agent=None), "conversation_state.last_agent", "is not that of the latest turn"),
        (
            in_state(
                topic_transitions=(
                    TopicTransition(turn=4, topic="headache_evaluation", trigger="new_concern"),
                )
            ),
            "conversation_state.topic_transitions",
            "names a turn that does not exist",
        ),
        (
            in_state(topic_transitions=(TopicTransition(turn=1, topic="insomnia", trigger="new_concern"),)),
            "conversation_state.active_topic",
            "is not the latest transition's",
        ),
        (in_state(conversation_phase="advice"), "header", "has another phase than active_session"),
        (
            in_state(active_topic=None, topic_transitions=()),
            "header",
            "has another topic than active_session",
        ),
        (in_info(user_id="user_457"), "header", "is not that of active_session"),
        (
            in_counts(total_exchanges=2),
            "session_metadata.total_exchanges",
            "is not the number of completed turns",
        ),
        (
            in_counts(total_exchanges=4),
            "session_metadata.total_exchanges",
            "is not the number of completed turns",
        ),
        (
            in_counts(memory_usage_percent=99),
            "session_metadata.memory_usage_percent",
            "is not what conversation_history takes",
        ),
    ],
)
def test_a_session_that_disagrees_is_reported_by_path_and_rule(change: Change, path: str, rule: str) -> None:
    blocks = some_blocks(turns=3)
    assert reported(blocks) == []

    departing = reported(replace(blocks, active_session=change(blocks.active_session)))

    assert (path, rule) in departing


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_transition_at_an_existing_turn_agrees(turn: int) -> None:
    blocks = some_blocks(turns=3)
    there = (TopicTransition(turn=turn, topic="headache_evaluation", trigger="new_concern"),)

    assert (
        reported(replace(blocks, active_session=in_state(topic_transitions=there)(blocks.active_session)))
        == []
    )


def test_a_session_that_was_active_as_the_history_was_updated_agrees() -> None:
    blocks = some_blocks(turns=3)
    then = blocks.conversation_history.last_updated

    session = in_info(last_activity=then)(blocks.active_session)

    assert reported(replace(blocks, active_session=session)) == []


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("PHASE: Symptom Evaluation", "PHASE: Advice", "has another phase than active_session"),
        ("TOPIC: Headache Evaluation", "TOPIC: Insomnia", "has another topic than active_session"),
        ("User: user_456", "User: user_457", "is not that of active_session"),
        ("Started: 2024-01-15T10:30:00Z", "Started: 2024-01-15T10:31:00Z", "is not that of active_session"),
    ],
)
def test_a_summary_that_disagrees_is_reported_by_its_header(old: str, new: str, rule: str) -> None:
    blocks = some_blocks(turns=3)
    text = blocks.context_summary.replace(old, new)

    assert text != blocks.context_summary
    assert reported(replace(blocks, context_summary=text)) == [("header", rule)]


def test_a_summary_is_missing_once_there_are_turns() -> None:
    assert reported(replace(some_blocks(turns=1), context_summary="")) == [
        ("$", "is empty although there are turns")
    ]
    assert reported(some_blocks(turns=0)) == []


def test_the_archive_and_sizes_in_memory_metadata_are_compared() -> None:
    blocks = some_blocks(turns=3)
    metadata = blocks.memory_metadata
    archival = changed(metadata.archival_info, total_archived_turns=1)
    usage = metadata.memory_usage
    fuller = changed(usage.active_session, current_size=usage.active_session.current_size + 1)

    miscounted = replace(blocks, memory_metadata=changed(metadata, archival_info=archival))
    mismeasured = replace(
        blocks, memory_metadata=changed(metadata, memory_usage=changed(usage, active_session=fuller))
    )

    path = "archival_info.total_archived_turns"
    rule = "is not the number of turns that left the history"
    assert list(agreement.departures(miscounted)) == [(Label.MEMORY_METADATA, path, rule)]
    assert list(agreement.departures(mismeasured)) == [
        (Label.MEMORY_METADATA, "memory_usage.active_session", "is not what the block's text takes")
    ]
