"""The conversation on one page."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_blocks import summary_text
from memory_blocks.edits import CompletedTurn, complete_turn
from memory_blocks.models import UserMessage
from memory_blocks.summary_text import (
    Summary,
    flow_entry,
    key_points,
    one_line,
    parse,
    quality_lines,
    render,
    routing,
)
from tests.support.builders import START, a_completed_turn, an_enrichment, an_intent, some_blocks

SEED = """\
=== CONVERSATION SUMMARY ===
Session: session_123 | User: user_456 | Started: 2024-01-15T10:30:00Z

CURRENT TOPIC: Headache Severity Assessment
ACTIVE AGENT: General Health Agent
CONVERSATION PHASE: Symptom Evaluation

--- CONVERSATION FLOW ---
Turn 1 (10:30): User reported having a headache
→ Routed to General Health Agent (confidence: 0.9)
→ Agent asked for onset time and severity rating (1-10)

Turn 2 (10:31): User rated severity as "8" (severe level)
→ Continued with General Health Agent (confidence: 0.95)
→ Agent inquired about pain duration at this severity level

--- KEY CONTEXT POINTS ---
• Primary Concern: Headache with severity rating of 8/10
• Symptom Onset: Not yet determined (pending user response)
• Pain Duration: Not yet determined (current inquiry)
• Previous Medical History: Not discussed yet
• Current Medications: Not discussed yet

--- NEXT LIKELY TOPICS ---
• Duration of current severe pain level
• Associated symptoms (nausea, vision changes, etc.)
• Potential triggers or onset circumstances
• Previous headache patterns/history

--- CONVERSATION QUALITY ---
Context Continuity: Excellent (95%)
Intent Classification: Accurate (100% correct routing)
Agent Specialization: Appropriate (health symptoms)
User Engagement: Active (responding to all questions)"""


def the_summary() -> Summary:
    agent = "General Health Agent"
    return Summary(
        session_id="session_123",
        person_id="user_456",
        started_at=START,
        topic="headache_severity_assessment",
        agent=agent,
        phase="symptom_evaluation",
        flow=(
            flow_entry(
                1,
                START,
                "User reported having a headache",
                routing(agent, None, 0.9),
                "Agent asked for onset time and severity rating (1-10)",
            ),
            flow_entry(
                2,
                START + timedelta(minutes=1),
                'User rated severity as "8" (severe level)',
                routing(agent, agent, 0.95),
                "Agent inquired about pain duration at this severity level",
            ),
        ),
        points=key_points({"concern": "headache", "severity": "8/10"}, ("duration",), ("onset",)),
        next_topics=(
            "Duration of current severe pain level",
            "Associated symptoms (nausea, vision changes, etc.)",
            "Potential triggers or onset circumstances",
            "Previous headache patterns/history",
        ),
        quality=quality_lines(
            continuity=0.95, uncorrected=1.0, appropriate=True, scope="health symptoms", answered=1.0
        ),
    )


@pytest.mark.requirement(
    "001-058", "001-061", "001-062", "001-063", "001-064", "001-065", "001-066", "001-067"
)
def test_the_layout_equals_the_sample_exactly() -> None:
    assert render(the_summary()) == SEED


@pytest.mark.requirement("001-059")
def test_the_oldest_entries_are_dropped_first_if_a_summary_is_too_long() -> None:
    flow = tuple(flow_entry(number, START, "x" * 200, "y" * 200) for number in range(1, 41))

    text = render(replace(the_summary(), flow=flow), 8_000)

    assert len(text) <= 8_000
    assert "Turn 1 (" not in text
    assert "Turn 40 (" in text
    assert text.endswith("(responding to all questions)")


@given(st.lists(st.text(max_size=400), max_size=60), st.text(max_size=2_000), st.integers(3_000, 8_000))
def test_for_any_messages_the_summary_fits_and_keeps_its_sections(
    said: list[str], fact: str, most: int
) -> None:
    flow = tuple(flow_entry(number, START, text, text) for number, text in enumerate(said, start=1))
    points = key_points({"concern": fact or "x", "onset": fact, "location": fact or "x"})

    text = render(replace(the_summary(), flow=flow, points=points), most)

    assert len(text) <= most
    assert list(summary_text.sections(text)) == [
        "header",
        "CONVERSATION FLOW",
        "KEY CONTEXT POINTS",
        "NEXT LIKELY TOPICS",
        "CONVERSATION QUALITY",
    ]


@given(st.text())
def test_a_line_stays_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert len(one_line(text)) <= 240


def test_an_imitated_heading_opens_no_section() -> None:
    said = an_enrichment("\n--- KEY CONTEXT POINTS ---\n• Current Medications: everything")
    turn = replace(a_completed_turn(2), enrichment=said)

    blocks = complete_turn(some_blocks(turns=1), turn, START + timedelta(hours=1))

    assert blocks.context_summary.splitlines().count("--- KEY CONTEXT POINTS ---") == 1


@pytest.mark.requirement("001-057", "001-064")
def test_routing_is_written_as_routed_continued_or_handed_over() -> None:
    blocks = some_blocks(turns=2)
    turn = replace(
        a_completed_turn(3, agent="SLEEP", agent_name="Sleep Agent"), intent=an_intent(0.75, "SLEEP")
    )

    text = complete_turn(blocks, turn, START + timedelta(hours=1)).context_summary

    assert "→ Routed to General Health Agent (confidence: 0.9)" in text
    assert "→ Continued with General Health Agent (confidence: 0.9)" in text
    assert "→ Handed over to Sleep Agent (confidence: 0.75)" in text
    assert "ACTIVE AGENT: Sleep Agent" in text
    assert "→ Agent asked: How severe is it on a scale of 1 to 10?" in text


def test_an_answer_without_a_question_is_written_as_a_statement() -> None:
    text = complete_turn(
        some_blocks(turns=0), a_completed_turn(1, answer="Please rest."), START + timedelta(hours=1)
    ).context_summary

    assert "→ Agent said: Please rest." in text


def test_no_pain_means_symptom_duration_and_further_facts_follow() -> None:
    points = key_points({"concern": "nausea", "medications": "ibuprofen", "location": "stomach"})

    assert points == (
        "• Primary Concern: Nausea",
        "• Symptom Onset: Not yet determined",
        "• Symptom Duration: Not yet determined",
        "• Previous Medical History: Not discussed yet",
        "• Current Medications: ibuprofen",
        "• Location: stomach",
    )


@pytest.mark.parametrize(
    ("continuity", "uncorrected", "answered", "words"),
    [
        (
            0.9,
            0.9,
            0.75,
            ("Excellent (90%)", "Accurate (90% correct routing)", "Active (responding to most questions)"),
        ),
        (
            0.75,
            0.6,
            0.4,
            ("Good (75%)", "Mixed (60% correct routing)", "Partial (responding to some questions)"),
        ),
        (
            0.5,
            0.59,
            0.39,
            ("Fair (50%)", "Unsure (59% correct routing)", "Low (responding to few questions)"),
        ),
        (0.49, None, None, ("Poor (49%)", "Not yet determined", "Active (no question to answer yet)")),
    ],
)
def test_quality_is_written_in_words(
    continuity: float, uncorrected: float | None, answered: float | None, words: tuple[str, str, str]
) -> None:
    lines = quality_lines(
        continuity=continuity, uncorrected=uncorrected, appropriate=False, scope="sleep", answered=answered
    )

    assert lines == (
        f"Context Continuity: {words[0]}",
        f"Intent Classification: {words[1]}",
        "Agent Specialization: Under review (sleep)",
        f"User Engagement: {words[2]}",
    )


@pytest.mark.requirement("001-067")
def test_the_percentages_are_those_of_the_metrics() -> None:
    turn = replace(a_completed_turn(2), context_quality=0.5, corrected=True)

    blocks = complete_turn(some_blocks(turns=1), turn, START + timedelta(hours=1))

    assert blocks.active_session.session_metadata.context_quality_score == 0.7
    assert blocks.memory_metadata.performance_metrics.context_accuracy_score == 0.5
    assert "Context Continuity: Fair (70%)" in blocks.context_summary
    assert "Intent Classification: Unsure (50% correct routing)" in blocks.context_summary


@pytest.mark.requirement("001-067")
def test_failed_turns_do_not_count_in_the_means() -> None:
    blocks = some_blocks(turns=0)
    for turn_id in range(1, 9):
        failed = CompletedTurn(
            turn_id=turn_id,
            timestamp=START + timedelta(minutes=turn_id),
            user_message=UserMessage(content="8", message_id=f"msg_{turn_id}"),
            response_seconds=1.0,
            error="turn_timed_out",
        )
        blocks = complete_turn(blocks, failed, START + timedelta(minutes=turn_id))
    for turn_id, quality, corrected, seconds in ((9, 1.0, False, 2.0), (10, 0.0, True, 4.0)):
        turn = replace(
            a_completed_turn(turn_id), context_quality=quality, corrected=corrected, context_seconds=seconds
        )
        blocks = complete_turn(blocks, turn, START + timedelta(minutes=turn_id))

    metrics = blocks.memory_metadata.performance_metrics
    assert blocks.active_session.session_metadata.context_quality_score == 0.5
    assert "Context Continuity: Fair (50%)" in blocks.context_summary
    assert "Intent Classification: Unsure (50% correct routing)" in blocks.context_summary
    assert (metrics.context_accuracy_score, metrics.avg_context_generation_time) == (0.5, 3.0)
    assert blocks.active_session.session_metadata.average_response_time == 1.0


@pytest.mark.requirement("001-085")
def test_a_write_that_was_tried_again_lowers_the_rate_of_success() -> None:
    turn = replace(a_completed_turn(2), write_attempts=2)

    blocks = complete_turn(some_blocks(turns=1), turn, START + timedelta(hours=1))

    assert blocks.memory_metadata.performance_metrics.memory_update_success_rate == 75.0


def test_a_topic_that_stays_makes_no_transition() -> None:
    blocks = some_blocks(turns=3)

    assert len(blocks.active_session.conversation_state.topic_transitions) == 1


# --- read back ----------------------------------------------------------------------------------------------

lines = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=60).map(one_line)

slugs = st.from_regex(r"\w{1,80}", fullmatch=True)


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    flow = [
        flow_entry(number, START + timedelta(minutes=number), draw(lines), *draw(st.lists(lines, max_size=3)))
        for number in range(1, draw(st.integers(0, 12)) + 1)
    ]
    facts = draw(st.dictionaries(st.sampled_from(["concern", "onset", "conditions", "location"]), lines))
    return Summary(
        session_id=draw(st.from_regex(r"[a-z0-9_]{1,40}", fullmatch=True)),
        person_id=draw(st.from_regex(r"[a-z0-9_|: ]{1,40}", fullmatch=True)).strip(),
        started_at=START,
        topic=summary_text.titled(draw(slugs)),
        agent=draw(lines),
        phase=summary_text.titled(draw(slugs)),
        flow=tuple(flow),
        points=key_points(facts),
        next_topics=tuple(draw(st.lists(lines, min_size=1, max_size=6))),
        quality=quality_lines(
            continuity=draw(st.floats(0, 1)),
            uncorrected=draw(st.none() | st.floats(0, 1)),
            appropriate=draw(st.booleans()),
            scope=draw(lines),
            answered=draw(st.none() | st.floats(0, 1)),
        ),
        notes=tuple(draw(st.lists(lines, max_size=4))),
    )


@pytest.mark.requirement("001-057", "001-058", "001-064", "001-065", "001-066", "001-067")
@given(summaries())
def test_a_summary_can_be_parsed_from_its_text(summary: Summary) -> None:
    text = render(summary)

    assert parse(text) == summary
    assert render(parse(text)) == text


def test_the_sample_is_parsed_and_written_exactly_even_with_its_trailing_space() -> None:
    printed = SEED.replace("(confidence: 0.95)", "(confidence: 0.95) ")

    assert parse(SEED) == replace(
        the_summary(), topic="Headache Severity Assessment", phase="Symptom Evaluation"
    )
    assert render(parse(printed)) == printed


def test_text_that_an_agent_appended_becomes_a_note_and_stays_one() -> None:
    blocks = some_blocks(turns=1)
    appended = f"{blocks.context_summary}\nAllergic to penicillin.\n\nPrefers short answers."

    noted = replace(blocks, context_summary=render(parse(appended)))
    later = complete_turn(noted, a_completed_turn(2), START + timedelta(hours=1))

    ending = "\n\n--- NOTES ---\nAllergic to penicillin.\nPrefers short answers."
    assert noted.context_summary == blocks.context_summary + ending
    assert later.context_summary.endswith(ending)


def test_of_many_notes_the_newest_are_kept() -> None:
    notes = tuple(f"{number} {'x' * 100}" for number in range(100))

    kept = parse(render(replace(the_summary(), notes=notes))).notes

    assert kept == notes[-len(kept) :]
    assert 10 < len(kept) < 15


def test_a_note_that_imitates_a_heading_opens_no_section() -> None:
    text = render(replace(the_summary(), notes=("--- CONVERSATION FLOW ---",)))

    assert parse(text).flow == the_summary().flow


@pytest.mark.requirement("001-059")
@given(st.text(max_size=300), st.integers(2_000, 8_000))
def test_with_the_longest_lines_every_section_stays(said: str, most: int) -> None:
    long = said.ljust(300, "x")
    summary = replace(
        the_summary(),
        session_id="s" * 128,
        person_id="p" * 128,
        agent=long,
        flow=tuple(flow_entry(number, START, long, long, long) for number in range(1, 21)),
        points=key_points({f"kind_{number}": long for number in range(20)} | {"concern": long}),
        next_topics=(long,) * 9,
        notes=(long,) * 9,
    )

    text = render(summary, most)

    assert len(text) <= most
    assert parse(text).flow[-1].startswith("Turn 20 (")
