"""The line in a trace: what a person reads about one read or write of a block."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_blocks import edits, trace_text
from memory_blocks.edits import complete_turn
from memory_blocks.facts.changes import Op, current_facts
from memory_blocks.ledger.adopt import adopt
from memory_blocks.ledger.ledger import Ledger, ReadResult, WriteResult
from memory_blocks.limits import DEFAULTS, Limits
from memory_blocks.models import Label, SessionStatus
from memory_blocks.ports import ForeignChange
from memory_blocks.stores.in_memory import InMemoryBlockStore
from memory_blocks.trace import Receipt
from tests.support.builders import (
    CountedIds,
    HandClock,
    a_change,
    a_completed_turn,
    a_conversation,
    a_fact,
    an_enrichment,
    some_blocks,
)

HERE = a_conversation()
HISTORY, SESSION = Label.CONVERSATION_HISTORY, Label.ACTIVE_SESSION
SUMMARY, METADATA = Label.CONTEXT_SUMMARY, Label.MEMORY_METADATA


class TracedLedger:
    """A ledger over a store in memory that returns the lines of its traces."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.clock = HandClock()
        self.store = InMemoryBlockStore(CountedIds(), self.clock)
        self.ledger = Ledger(self.clock, limits)

    def read(self) -> ReadResult:
        return self.ledger.read(self.store, HERE, actor="context_extractor")

    def take_turn(
        self,
        enriched: str = "User reports a headache",
        facts: Mapping[str, str] = {"concern": "headache"},  # only read
        retracted: str = "",
        **values: object,
    ) -> WriteResult:
        before = self.read()
        known = {change.kind for change in self.store.fact_changes(HERE.id)}
        made = [
            a_change(f"fact_{kind}", kind=kind, value=value, turn=before.blocks.next_turn)
            for kind, value in facts.items()
            if kind not in known
        ]
        if retracted:
            target = next(c for c in self.store.fact_changes(HERE.id) if c.kind == retracted)
            gone = {"id": f"gone_{target.id}", "op": Op.RETRACT, "target": target.id}
            made.append(target.model_copy(update=gone))
        turn = replace(
            a_completed_turn(before.blocks.next_turn),
            timestamp=self.clock.tick(),
            enrichment=an_enrichment(enriched),
            facts=current_facts((*self.store.fact_changes(HERE.id), *made)),
            **values,  # type: ignore[arg-type]
        )
        blocks = complete_turn(before.blocks, turn, self.clock.now(), self.ledger.limits)
        return self.ledger.write(
            self.store, HERE, before, blocks, actor="context_extractor", turn=turn.turn_id, changes=made
        )

    def adopt(self, label: Label, change: Callable[[str], str]) -> dict[Label, str]:
        block = self.read().stored[label]
        edit = ForeignChange(label, change(block.text), block.digest, "letta:somebody")
        return lines(adopt(self.ledger, self.store, HERE, [edit]).receipts)


def lines(receipts: tuple[Receipt, ...]) -> dict[Label, str]:
    return {receipt.label: receipt.content for receipt in receipts}


@pytest.fixture
def traced() -> TracedLedger:
    return TracedLedger()


def test_before_the_first_turn_each_block_says_so(traced: TracedLedger) -> None:
    receipts = traced.read().receipts

    history, session, *_ = (f"{receipt.utilization:g} %" for receipt in receipts)
    assert lines(receipts) == {
        HISTORY: "no turns yet",
        SESSION: f"no turns yet, {session} full",
        SUMMARY: "no turns yet",
        METADATA: f"history {history} full with 0 turns; session {session}; summary 0 %",
    }


@pytest.mark.requirement("000-018")
def test_a_write_says_what_the_turn_added_to_each_block(traced: TracedLedger) -> None:
    traced.take_turn("User reports having a headache")

    written = traced.take_turn(
        "User rates headache severity as 8 out of 10 (severe)",
        facts={"concern": "headache", "severity": "8/10"},
    )

    found = lines(written.receipts)
    history, session, summary, _ = (f"{receipt.utilization:g} %" for receipt in written.receipts)
    assert found[HISTORY] == "turn 2 added: User rates headache severity as 8 out of 10 (severe)"
    assert found[SESSION] == "turn 2 added: severity 8/10"
    assert found[SUMMARY] == "turn 2 added: Primary Concern: Headache with severity rating of 8/10"
    assert found[METADATA] == f"history {history} full with 2 turns; session {session}; summary {summary}"


@pytest.mark.requirement("000-018")
def test_a_read_says_what_each_block_holds(traced: TracedLedger) -> None:
    facts = {"concern": "headache", "severity": "8/10", "onset": "Tuesday", "medications": "ibuprofen"}
    traced.take_turn("User reports having a headache", facts={"concern": "headache"})
    traced.take_turn("User takes ibuprofen since Tuesday", facts=facts)

    receipts = traced.read().receipts

    found = lines(receipts)
    history, session, summary, _ = (f"{receipt.utilization:g} %" for receipt in receipts)
    assert found[HISTORY] == f"2 turns, {history} full; latest: User takes ibuprofen since Tuesday"
    assert (
        found[SESSION]
        == f"2 turns, {session} full; concern headache 8/10 since Tuesday; medications ibuprofen"
    )
    assert found[SUMMARY].startswith(
        f"2 turns, {summary} full; topic Headache Evaluation; Primary Concern: Headache with severity rating"
    )
    assert "Not yet determined" not in found[SUMMARY]
    assert found[METADATA] == f"history {history} full with 2 turns; session {session}; summary {summary}"


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"concern": "cough", "onset": "three days ago"}, "concern cough three days ago"),
        ({"concern": "cough", "onset": "since May"}, "concern cough since May"),
        ({"concern": "diabetes", "duration": "ten years"}, "concern diabetes for ten years"),
        ({"request": "How do I start running?", "time_for_it": "an hour"}, "request How do I start running?"),
    ],
)
def test_facts_are_written_in_natural_language(
    traced: TracedLedger, facts: dict[str, str], line: str
) -> None:
    traced.take_turn(facts=facts)

    assert f"; {line}" in lines(traced.read().receipts)[SESSION]


def test_a_turn_without_news_says_so(traced: TracedLedger) -> None:
    traced.take_turn()

    found = lines(traced.take_turn("User says hello").receipts)

    assert found[SESSION] == "turn 2 added: nothing new about the person"
    assert found[SUMMARY] == "turn 2 added: User says hello"


def test_a_fact_that_was_taken_back_is_named(traced: TracedLedger) -> None:
    traced.take_turn(facts={"concern": "headache", "sleep_hours": "five"})

    found = traced.adopt(
        SESSION, lambda text: text.replace(',{"kind":"sleep_hours","value":"five","turn":1}', "")
    )

    assert found[SESSION] == "edit adopted: no longer sleep hours five"


def test_a_key_point_that_left_the_summary_is_named(traced: TracedLedger) -> None:
    traced.take_turn(facts={"concern": "headache", "medications": "ibuprofen"})

    found = lines(traced.take_turn("User says yes", facts={}, retracted="medications").receipts)

    assert found[SESSION] == "turn 2 added: no longer medications ibuprofen"
    assert found[SUMMARY] == "turn 2 added: no longer Current Medications: ibuprofen"


def test_a_key_point_with_another_value_is_named_once(traced: TracedLedger) -> None:
    traced.take_turn(facts={"concern": "headache"})

    found = lines(traced.take_turn("User adds", facts={"concern": "headache", "severity": "8/10"}).receipts)

    assert found[SUMMARY] == "turn 2 added: Primary Concern: Headache with severity rating of 8/10"


def test_a_handover_and_a_new_topic_are_named(traced: TracedLedger) -> None:
    traced.take_turn()
    other = a_completed_turn(2, agent="SLEEP", agent_name="Sleep Agent")

    written = traced.take_turn(
        topic="sleep_evaluation", intent=other.intent, response=other.response, agent_name="Sleep Agent"
    )

    found = lines(written.receipts)
    assert found[SESSION] == "turn 2 added: topic Sleep Evaluation; answered by SLEEP"
    assert found[SUMMARY] == "turn 2 added: topic Sleep Evaluation"


def test_a_turn_that_failed_or_was_not_understood_shows_what_the_person_wrote(traced: TracedLedger) -> None:
    before = traced.read()
    failed = replace(
        a_completed_turn(1, message="it hurts"),
        enrichment=None,
        intent=None,
        response=None,
        error="timed_out",
    )
    blocks = complete_turn(before.blocks, failed, traced.clock.tick(120), DEFAULTS)

    written = traced.ledger.write(traced.store, HERE, before, blocks, actor="context_extractor", turn=1)

    assert lines(written.receipts)[HISTORY] == "turn 1 added, not finished: it hurts"


def test_a_turn_that_is_answered_again_is_changed(traced: TracedLedger) -> None:
    traced.take_turn()
    before = traced.read()
    again = replace(
        a_completed_turn(1, attempt=2),
        timestamp=traced.clock.tick(),
        enrichment=an_enrichment("User is sick"),
    )
    blocks = complete_turn(before.blocks, again, traced.clock.now(), DEFAULTS)

    written = traced.ledger.write(traced.store, HERE, before, blocks, actor="context_extractor", turn=1)

    found = lines(written.receipts)
    assert found[HISTORY] == "turn 1 changed: User is sick"
    assert found[SUMMARY] == "turn 1 changed: User is sick"


def test_a_rotation_says_how_many_turns_left_the_block(traced: TracedLedger) -> None:
    for _ in range(20):
        traced.take_turn()

    written = lines(traced.take_turn("User is fine").receipts)
    read = lines(traced.read().receipts)

    assert written[HISTORY] == "turn 21 added, 6 turns (1 to 6) moved to the archive: User is fine"
    assert written[METADATA].endswith("; 6 turns in the archive; 6 turns moved to the archive")
    assert read[HISTORY].startswith("15 turns, ")
    assert "; 6 more in the archive; latest: User is fine" in read[HISTORY]


def test_a_rotation_by_hand_says_only_what_left(traced: TracedLedger) -> None:
    for _ in range(4):
        traced.take_turn()

    rotated = traced.ledger.rotate(traced.store, HERE, actor="ann")

    assert lines(rotated.receipts)[HISTORY] == "1 turn (1) moved to the archive"


def test_a_turn_that_is_shortened_is_named(traced: TracedLedger) -> None:
    long = a_completed_turn(1, message="y" * 40_000).user_message

    found = lines(traced.take_turn(user_message=long).receipts)

    assert found[HISTORY] == "turn 1 added, turn 1 shortened: User reports a headache"
    assert found[METADATA].endswith("; level emergency")


def test_another_status_of_the_session_is_named(traced: TracedLedger) -> None:
    traced.take_turn()
    before = traced.read()
    paused = edits.with_status(before.blocks, SessionStatus.PAUSED)

    written = traced.ledger.write(traced.store, HERE, before, paused, actor="idle")

    assert lines(written.receipts)[SESSION] == "session paused"


@pytest.mark.requirement("001-118")
def test_a_restored_block_says_so_and_what_it_holds(traced: TracedLedger) -> None:
    traced.take_turn()
    traced.take_turn("User is fine")
    traced.store.tamper(HERE.id, HISTORY, "{")
    traced.store.tamper(HERE.id, HISTORY, "{", 2)

    receipts = traced.read().receipts

    restored = next(each for each in receipts if each.label is HISTORY)
    realigned = next(each for each in receipts if each.label is SESSION)
    assert restored.content == (
        "invalid text put into quarantine, last valid text restored: "
        f"1 turn, {restored.utilization:g} % full; latest: User reports a headache"
    )
    assert realigned.content.startswith("changed to agree with a restored block: 1 turn, ")


def test_an_adopted_edit_says_what_it_changed(traced: TracedLedger) -> None:
    traced.take_turn()

    noted = traced.adopt(SUMMARY, lambda text: f"{text}\nAllergic to nuts.")
    pointed = traced.adopt(SUMMARY, lambda text: text.replace("Concern: Headache", "Concern: Migraine"))
    phased = traced.adopt(SESSION, lambda text: text.replace('"symptom_evaluation"', '"closing"'))

    assert noted[SUMMARY] == "edit adopted: note added: Allergic to nuts."
    assert noted[METADATA].startswith("history ")
    assert pointed[SUMMARY] == "edit adopted: Primary Concern: Migraine"
    assert phased[SESSION] == "edit adopted: changed: conversation_state.conversation_phase"


def test_an_edit_that_is_refused_names_the_rule_and_quotes_nothing(traced: TracedLedger) -> None:
    traced.take_turn()

    found = traced.adopt(SESSION, lambda _: "secret words")

    assert found == {SESSION: "edit refused and put into quarantine, block unchanged: $: is not JSON"}


def test_what_an_operator_reads_has_its_line_too(traced: TracedLedger) -> None:
    traced.take_turn()
    traced.take_turn("User is fine")
    traced.adopt(SESSION, lambda _: "secret words")

    earlier = traced.ledger.view(traced.store, HERE, actor="ann", labels=[HISTORY], revision=1)
    _, quarantined = traced.ledger.view_quarantined(traced.store, HERE, actor="ann")
    traced.store.tamper(HERE.id, SUMMARY, "secret words")
    _, examined = traced.ledger.examine(traced.store, HERE, actor="ann")

    full = earlier.receipts[0].utilization
    assert lines(earlier.receipts) == {HISTORY: f"1 turn, {full:g} % full; latest: User reports a headache"}
    assert lines(quarantined) == {SESSION: "text in quarantine, 12 characters; $: is not JSON"}
    assert lines(examined)[SUMMARY] == "not a valid block, 12 characters"


@pytest.mark.requirement("000-018", "000-019")
@given(
    st.text(max_size=4_000),
    st.dictionaries(st.from_regex(r"[a-z_]{1,20}", fullmatch=True), st.text(min_size=1, max_size=200)),
)
def test_whatever_a_person_writes_a_trace_is_one_readable_line(text: str, facts: dict[str, str]) -> None:
    before = some_blocks(turns=1)
    told = [a_fact(kind, value) for kind, value in facts.items()]
    turn = replace(a_completed_turn(2, message=text), enrichment=an_enrichment(text), facts=tuple(told))
    after = complete_turn(before, turn, turn.timestamp)

    for label in Label:
        old, new = getattr(before, label.value), getattr(after, label.value)
        for line in (trace_text.describe_write(old, new, ("$",)), trace_text.describe_read(new, 8.4)):
            assert 0 < len(line) <= 300
            assert line.isprintable()
            assert not line.startswith("{")
