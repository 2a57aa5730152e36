"""After any operations on the blocks in any order, nothing is lost, everything fits and all four agree."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory_blocks import agreement
from memory_blocks.edits import CompletedTurn, complete_turn
from memory_blocks.errors import StaleRevision
from memory_blocks.facts.changes import FactChange, Op, current_facts
from memory_blocks.facts.view import view
from memory_blocks.ledger.adopt import adopt
from memory_blocks.ledger.ledger import Ledger, ReadResult, WriteResult
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Label, Turn, render
from memory_blocks.ports import ForeignChange
from memory_blocks.stores.in_memory import InMemoryBlockStore
from tests.support.builders import CountedIds, HandClock, a_change, a_completed_turn, a_conversation

CONVERSATION = a_conversation()
texts = st.one_of(
    st.text(max_size=60),
    st.sampled_from(["", "x" * 3_000, "🤢" * 9_000, '"\\' * 8_000, "\x01" * 9_000, "y" * 30_000]),
)


class Blocks(RuleBasedStateMachine):
    """A conversation, compared with a plain list of its messages."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.store = InMemoryBlockStore(CountedIds(), self.clock)
        self.ledger = Ledger(self.clock, DEFAULTS, {"GENERAL_HEALTH", "SLEEP"})
        self.said: list[tuple[str, str | None]] = []
        self.stood: dict[int, str] = {}
        self.kept: tuple[ReadResult, int] | None = None
        self.tampered = 0
        self.attempt = 0
        self.changes: list[FactChange] = []

    def read(self) -> ReadResult:
        return self.ledger.read(self.store, CONVERSATION, actor="context_extractor")

    def write(
        self, reading: ReadResult, turn: CompletedTurn, changes: Sequence[FactChange] = ()
    ) -> WriteResult:
        facts = current_facts((*self.changes, *changes))
        turn = replace(turn, timestamp=self.clock.tick(), facts=facts)
        blocks = complete_turn(reading.blocks, turn, self.clock.now(), self.ledger.limits)
        written = self.ledger.write(
            self.store,
            CONVERSATION,
            reading,
            blocks,
            actor="context_extractor",
            turn=turn.turn_id,
            changes=changes,
        )
        self.changes += changes
        del self.said[turn.turn_id - 1 :]
        self.said.append((turn.user_message.content, turn.response.content if turn.response else None))
        self.stood[turn.turn_id] = render(Label.CONVERSATION_HISTORY, written.blocks)
        return written

    def a_turn(self, reading: ReadResult, message: str, answer: str, **changes: Any) -> CompletedTurn:
        self.attempt += 1
        number = reading.blocks.next_turn
        return replace(a_completed_turn(number, message, answer, attempt=self.attempt), **changes)

    @rule(message=texts, answer=texts)
    def take_a_turn(self, message: str, answer: str) -> None:
        reading = self.read()
        self.write(reading, self.a_turn(reading, message, answer))

    @rule(data=st.data())
    def say_something_about_oneself(self, data: st.DataObject) -> None:
        reading = self.read()
        made: list[FactChange] = []
        for _ in range(data.draw(st.integers(1, 4))):
            known = [change.id for change in (*self.changes, *made)]
            op = data.draw(st.sampled_from(Op)) if known else Op.ADD
            needs_target = op not in (Op.ADD, Op.UNSURE)
            target = data.draw(st.sampled_from(known)) if needs_target else None
            made.append(
                a_change(
                    f"fact_{len(known)}",
                    op,
                    target=target,
                    kind=data.draw(st.sampled_from(["concern", "severity", "medications", "noted"])),
                    subject=data.draw(st.sampled_from(["person", "daughter"])),
                    value=data.draw(st.sampled_from(["headache", "8/10", "x" * 200, "🤢" * 200])),
                    said_at=self.clock.now(),
                )
            )
        self.write(reading, self.a_turn(reading, "hello", "hi"), made)

    @precondition(lambda self: self.said)
    @rule(value=st.sampled_from(["cough", "y" * 100]))
    def edit_the_facts_by_hand(self, value: str) -> None:
        block = self.read().stored[Label.ACTIVE_SESSION]
        session = json.loads(block.text)
        entry = {"kind": "noted", "value": value, "turn": 1}
        session["facts"] = [*session.get("facts", ())[1:], entry]
        edit = ForeignChange(Label.ACTIVE_SESSION, json.dumps(session), block.digest, "letta:somebody")
        adopt(self.ledger, self.store, CONVERSATION, [edit])
        self.changes = list(self.store.fact_changes(CONVERSATION.id))

    @rule(message=texts)
    def fail_a_turn(self, message: str) -> None:
        reading = self.read()
        failed = {"response": None, "enrichment": None, "intent": None, "error": "model_unavailable"}
        self.write(reading, self.a_turn(reading, message, "", **failed))

    @precondition(lambda self: self.said)
    @rule(answer=texts)
    def answer_the_latest_turn_again(self, answer: str) -> None:
        reading = self.read()
        self.attempt += 1
        number = len(self.said)
        self.write(reading, a_completed_turn(number, self.said[-1][0], answer, attempt=self.attempt))

    @rule()
    def keep_a_reading(self) -> None:
        self.kept = self.read(), len(self.stood)

    @precondition(lambda self: self.kept is not None)
    @rule(message=texts)
    def write_upon_a_reading_that_was_kept(self, message: str) -> None:
        assert self.kept is not None
        reading, self.kept = self.kept[0], None
        stale = reading.revisions != {
            label: self.store.revisions(CONVERSATION.id, label)[-1].revision
            if self.store.revisions(CONVERSATION.id, label)
            else 0
            for label in Label
        }
        turn = self.a_turn(reading, message, "")
        if stale:
            with pytest.raises(StaleRevision):
                self.write(reading, turn)
        else:
            self.write(reading, turn)

    @precondition(lambda self: self.said)
    @rule(label=st.sampled_from(list(Label)), text=st.sampled_from(["", "{", "{}", "null", "I am in pain"]))
    def change_a_block_behind_the_ledger(self, label: Label, text: str) -> None:
        before = self.read()
        self.store.tamper(CONVERSATION.id, label, text)
        self.tampered += 1
        after = self.read()
        assert after.blocks == before.blocks
        assert len(self.store.quarantined) == self.tampered

    @precondition(lambda self: self.said)
    @rule()
    def rotate_by_hand(self) -> None:
        self.ledger.rotate(self.store, CONVERSATION, actor="ann")

    @precondition(lambda self: self.stood)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(sorted(self.stood)))
        looked = self.ledger.view(
            self.store, CONVERSATION, actor="ann", labels=[Label.CONVERSATION_HISTORY], turn=turn
        )
        assert looked.blocks[Label.CONVERSATION_HISTORY].text == self.stood[turn]

    @invariant()
    def everything_fits_and_agrees(self) -> None:
        blocks = self.read().blocks
        assert list(agreement.departures(blocks, DEFAULTS, {"GENERAL_HEALTH", "SLEEP"})) == []
        for label in Label:
            assert len(render(label, blocks)) <= DEFAULTS.of(label)
            assert self.store.chain_departures(CONVERSATION.id, label) == []

    @invariant()
    def the_facts_in_the_block_follow_from_the_changes(self) -> None:
        changes = self.store.fact_changes(CONVERSATION.id)
        assert list(changes) == self.changes
        shown, meant = self.read().blocks.active_session.facts or (), view(current_facts(changes))
        assert shown == meant

    @invariant()
    def nothing_is_lost_or_kept_twice(self) -> None:
        blocks = self.read().blocks
        held = self.store.shortened_turns(CONVERSATION.id)
        active = blocks.conversation_history.turns
        whole = [_whole(turn, held.get(turn.turn_id)) for turn in active]
        turns = [
            json.loads(text)
            for text in (*(t.text for t in self.store.archived_turns(CONVERSATION.id)), *whole)
        ]
        assert [turn["turn_id"] for turn in turns] == list(range(1, len(self.said) + 1))
        assert [
            (turn["user_message"]["content"], turn["agent_response"] and turn["agent_response"]["content"])
            for turn in turns
        ] == self.said
        assert len(active) >= min(3, len(self.said))


def _whole(turn: Turn, held: str | None) -> str:
    """A turn in full; the stored text may belong to an earlier answer of the same turn."""
    kept = Turn.model_validate_json(held) if held else turn
    same = (kept.user_message.message_id, kept.agent_response and kept.agent_response.response_id) == (
        turn.user_message.message_id,
        turn.agent_response and turn.agent_response.response_id,
    )
    return kept.text if same else turn.text


def explore(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Blocks,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


MARKS = ("001-007", "001-031", "001-033", "001-034", "001-037", "001-059", "001-070", "001-118")


@pytest.mark.requirement(*MARKS)
def test_the_blocks_stay_valid_under_any_operations() -> None:
    explore(examples=12, steps=20)


@pytest.mark.soak
@pytest.mark.requirement(*MARKS)
@pytest.mark.timeout(3_000)
def test_the_blocks_stay_valid_under_thousands_of_any_operations() -> None:
    for _ in range(30):  # one after the other, because each run keeps its examples until its end
        explore(examples=100, steps=40)
