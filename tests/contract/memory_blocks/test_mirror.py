"""Edits of others in a mirror are adopted as their revisions, or quarantined and undone."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from memory_blocks.ledger.adopt import adopt
from memory_blocks.ledger.ledger import ReadResult
from memory_blocks.mirrors.letta import UNKNOWN_AUTHOR
from memory_blocks.mirrors.no_mirror import NoMirror
from memory_blocks.mirrors.scripted import ScriptedMirror
from memory_blocks.models import Label
from memory_blocks.trace import Action
from tests.support.servers.letta_helpers import HandEdited, a_mirror
from tests.unit.memory_blocks.ledger.test_ledger import CONVERSATION, LedgerWorld

pytestmark = pytest.mark.timeout(600)

AGENT = UNKNOWN_AUTHOR
HERE = CONVERSATION.id


class Mirrored(LedgerWorld):
    """A ledger whose blocks are copied to a mirror."""

    def __init__(self, mirror: ScriptedMirror | HandEdited) -> None:
        super().__init__()
        self.mirror = mirror

    async def take_turns(self, turns: int) -> None:
        for _ in range(turns):
            await self.mirror.put(HERE, self.take_turn().stored)

    async def follow(self) -> ReadResult:
        """Adopt the edits in the mirror, then copy the current blocks to it."""
        changes = await self.mirror.foreign_changes(HERE)
        adopted = adopt(self.ledger, self.store, CONVERSATION, changes)
        await self.mirror.put(HERE, adopted.stored, changes)
        return adopted

    def shows_what_stands(self) -> bool:
        stored = self.store.load(HERE)
        return all(self.mirror.text(HERE, label) == block.text for label, block in stored.items())


@pytest.fixture(params=["scripted", "letta"])
async def mirrored(request: pytest.FixtureRequest) -> AsyncIterator[Mirrored]:
    """A ledger with each kind of mirror that others can edit."""
    if request.param == "scripted":
        yield Mirrored(ScriptedMirror())
        return
    letta, tag, store = (request.getfixturevalue(name) for name in ("letta", "tag", "opened"))
    async with a_mirror(letta.base_url, store, tag, HERE) as mirror:
        yield Mirrored(mirror)


async def test_without_a_mirror_nothing_is_copied_or_changed() -> None:
    mirrored = LedgerWorld()

    assert await NoMirror().put(HERE, mirrored.take_turn().stored) == ()
    assert await NoMirror().foreign_changes(HERE) == ()


@pytest.mark.requirement("001-060", "001-038")
async def test_text_that_an_agent_appends_to_the_summary_becomes_a_note_and_a_revision_by_the_agent(
    mirrored: Mirrored,
) -> None:
    await mirrored.take_turns(2)
    mirrored.mirror.append(HERE, Label.CONTEXT_SUMMARY, "Prefers short answers.", actor=AGENT)

    adopted = await mirrored.follow()

    assert adopted.blocks.context_summary.endswith("--- NOTES ---\nPrefers short answers.")
    receipts = {receipt.label: receipt for receipt in adopted.receipts}
    assert set(receipts) == {Label.CONTEXT_SUMMARY, Label.MEMORY_METADATA}
    summary = receipts[Label.CONTEXT_SUMMARY]
    assert (summary.action, summary.actor, summary.revision) == (Action.UPDATED, AGENT, 3)
    assert mirrored.store.revisions(HERE, Label.CONTEXT_SUMMARY)[-1].actor == AGENT
    assert mirrored.store.quarantined == []
    assert mirrored.shows_what_stands()


async def test_a_valid_replacement_by_an_agent_in_a_json_block_is_adopted(
    mirrored: Mirrored,
) -> None:
    await mirrored.take_turns(2)
    old, new = '"conversation_phase":"symptom_evaluation"', '"conversation_phase":"advice"'
    mirrored.mirror.replace(HERE, Label.ACTIVE_SESSION, old, new, actor=AGENT)

    adopted = await mirrored.follow()

    assert adopted.blocks.active_session.conversation_state.conversation_phase == "advice"
    assert "\nCONVERSATION PHASE: Advice\n" in adopted.blocks.context_summary
    assert {receipt.actor for receipt in adopted.receipts} == {AGENT}
    assert mirrored.store.quarantined == []
    assert mirrored.shows_what_stands()


@pytest.mark.parametrize(
    ("label", "change", "reason"),
    [
        (Label.CONVERSATION_HISTORY, {"content": "I am in pain"}, "$: is not JSON"),
        (
            Label.CONVERSATION_HISTORY,
            {"old": '"turn_status":"COMPLETED"', "new": '"turn_status":"DONE"'},
            "turns.0.turn_status: is none of PENDING, IN_PROGRESS, COMPLETED",
        ),
        (
            Label.MEMORY_METADATA,
            {"old": '"memory_rotation_enabled":true', "new": '"memory_rotation_enabled":false'},
            "system_flags: may only be changed by the orchestrator",
        ),
        (
            Label.ACTIVE_SESSION,
            {"old": '"current_turn":2', "new": '"current_turn":7'},
            "conversation_state.current_turn: is not the latest turn",
        ),
        (
            Label.ACTIVE_SESSION,
            {"old": '"user_id":"user_456"', "new": '"user_id":"user_457"'},
            "session_info.user_id: is that of another person",
        ),
        (
            Label.ACTIVE_SESSION,
            {"old": '"start_time":"2024-01-15T10:30:00Z"', "new": '"start_time":"2024-01-15T10:29:00Z"'},
            "session_info.start_time: is not when the conversation began",
        ),
        (
            Label.ACTIVE_SESSION,
            {"old": '"last_agent":"GENERAL_HEALTH"', "new": '"last_agent":"SLEEP"'},
            "conversation_state.last_agent: is not that of the latest turn",
        ),
        (
            Label.CONTEXT_SUMMARY,
            {"old": "\nTurn 1 (", "new": f"\nTurn {'9' * 5_000} ("},
            "CONVERSATION FLOW.0: is not a turn and what followed",
        ),
        (Label.CONTEXT_SUMMARY, {"content": "x" * 9_000}, "$: has more than 8000 characters"),
        (
            Label.CONTEXT_SUMMARY,
            {"old": "--- KEY CONTEXT POINTS ---", "new": ""},
            "KEY CONTEXT POINTS: is missing",
        ),
    ],
)
async def test_an_invalid_edit_is_quarantined_and_undone(
    mirrored: Mirrored, label: Label, change: dict[str, Any], reason: str
) -> None:
    await mirrored.take_turns(2)
    before = mirrored.read()
    (mirrored.mirror.append if "content" in change else mirrored.mirror.replace)(
        HERE, label, **change, actor=AGENT
    )
    left = mirrored.mirror.text(HERE, label)

    adopted = await mirrored.follow()

    assert mirrored.store.quarantined == [(HERE, label, left, reason, AGENT)]
    assert adopted.blocks == before.blocks
    assert adopted.revisions == before.revisions
    (receipt,) = adopted.receipts
    assert (receipt.label, receipt.actor) == (label, AGENT)
    assert receipt.quarantined is not None
    assert mirrored.shows_what_stands()
    assert not await mirrored.mirror.foreign_changes(HERE)


async def test_edits_of_several_blocks_found_at_once_are_all_adopted(mirrored: Mirrored) -> None:
    await mirrored.take_turns(2)
    old, new = '"conversation_phase":"symptom_evaluation"', '"conversation_phase":"advice"'
    mirrored.mirror.replace(HERE, Label.ACTIVE_SESSION, old, new, actor=AGENT)
    mirrored.mirror.append(HERE, Label.CONTEXT_SUMMARY, "Prefers short answers.", actor=AGENT)
    score = '"context_accuracy_score":'
    mirrored.mirror.replace(HERE, Label.MEMORY_METADATA, f"{score}1.0", f"{score}0.5", actor=AGENT)

    adopted = await mirrored.follow()

    assert mirrored.store.quarantined == []
    assert adopted.blocks.memory_metadata.performance_metrics.context_accuracy_score == 0.5
    assert adopted.blocks.active_session.conversation_state.conversation_phase == "advice"
    assert "\nCONVERSATION PHASE: Advice\n" in adopted.blocks.context_summary
    assert adopted.blocks.context_summary.endswith("--- NOTES ---\nPrefers short answers.")
    assert mirrored.shows_what_stands()


@pytest.mark.parametrize(
    ("label", "old", "new"),
    [
        (
            Label.CONTEXT_SUMMARY,
            "responding to few questions)",
            "responding to few questions)\nIs in a hurry.",
        ),
        (Label.MEMORY_METADATA, '"context_accuracy_score":1.0', '"context_accuracy_score":0.5'),
    ],
)
async def test_an_edit_of_a_block_that_another_edit_rewrote_is_adopted_too(
    mirrored: Mirrored, label: Label, old: str, new: str
) -> None:
    await mirrored.take_turns(2)
    phase = '"conversation_phase":"{}"'
    mirrored.mirror.replace(
        HERE,
        Label.ACTIVE_SESSION,
        phase.format("symptom_evaluation"),
        phase.format("advice"),
        actor=AGENT,
    )
    seen = await mirrored.mirror.foreign_changes(HERE)
    adopted = adopt(mirrored.ledger, mirrored.store, CONVERSATION, seen)
    mirrored.mirror.replace(HERE, label, old, new, actor=AGENT)

    later = await mirrored.mirror.put(HERE, adopted.stored, seen)
    stored = adopt(mirrored.ledger, mirrored.store, CONVERSATION, later).stored
    await mirrored.mirror.put(HERE, stored, (*seen, *later))

    assert [each.label for each in later] == [label]
    assert mirrored.store.quarantined == []
    assert new.split("\n")[-1] in mirrored.mirror.text(HERE, label)
    assert "\nCONVERSATION PHASE: Advice\n" in mirrored.mirror.text(HERE, Label.CONTEXT_SUMMARY)
    assert mirrored.shows_what_stands()


async def test_a_second_edit_of_the_same_value_in_the_earlier_text_is_undone(mirrored: Mirrored) -> None:
    await mirrored.take_turns(2)
    score = '"context_accuracy_score":'
    mirrored.mirror.replace(HERE, Label.MEMORY_METADATA, f"{score}1.0", f"{score}0.5", actor=AGENT)
    seen = await mirrored.mirror.foreign_changes(HERE)
    adopted = adopt(mirrored.ledger, mirrored.store, CONVERSATION, seen)
    mirrored.mirror.replace(HERE, Label.MEMORY_METADATA, f"{score}0.5", f"{score}0.7", actor=AGENT)

    later = await mirrored.mirror.put(HERE, adopted.stored, seen)
    stored = adopt(mirrored.ledger, mirrored.store, CONVERSATION, later).stored
    await mirrored.mirror.put(HERE, stored, (*seen, *later))

    assert [why for *_, why, _ in mirrored.store.quarantined] == ["$: edits a text that was replaced since"]
    assert f"{score}0.5" in mirrored.mirror.text(HERE, Label.MEMORY_METADATA)
    assert mirrored.shows_what_stands()


async def test_an_edit_of_a_text_that_a_turn_has_replaced_is_merged_into_the_new_text(
    mirrored: Mirrored,
) -> None:
    await mirrored.take_turns(1)
    mirrored.mirror.append(HERE, Label.CONTEXT_SUMMARY, "Prefers tea.", actor=AGENT)
    turn = mirrored.take_turn()

    adopted = await mirrored.follow()

    assert mirrored.store.quarantined == []
    assert adopted.blocks.context_summary == f"{turn.blocks.context_summary}\n\n--- NOTES ---\nPrefers tea."
    assert adopted.blocks.conversation_history == turn.blocks.conversation_history
    assert mirrored.shows_what_stands()


async def test_an_edit_of_a_value_that_a_turn_has_changed_too_is_undone(mirrored: Mirrored) -> None:
    await mirrored.take_turns(1)
    text = mirrored.mirror.text(HERE, Label.ACTIVE_SESSION)
    old = str(json.loads(text)["session_info"]["last_activity"])
    mirrored.mirror.replace(HERE, Label.ACTIVE_SESSION, old, old.replace("2024", "2025"), actor=AGENT)
    mirrored.take_turn()

    await mirrored.follow()

    assert [why for *_, why, _ in mirrored.store.quarantined] == ["$: edits a text that was replaced since"]
    assert mirrored.shows_what_stands()


async def test_an_edit_is_reported_until_it_is_handled_and_only_then_overwritten(
    mirrored: Mirrored,
) -> None:
    await mirrored.take_turns(1)
    before = mirrored.mirror.text(HERE, Label.ACTIVE_SESSION)
    mirrored.mirror.append(HERE, Label.CONTEXT_SUMMARY, "In between.", actor=AGENT)
    edited = mirrored.mirror.text(HERE, Label.CONTEXT_SUMMARY)
    digest = mirrored.store.load(HERE)[Label.CONTEXT_SUMMARY].digest
    stored = mirrored.take_turn().stored

    result, again = [await mirrored.mirror.put(HERE, stored) for _ in range(2)]
    left = [mirrored.mirror.text(HERE, label) for label in (Label.ACTIVE_SESSION, Label.CONTEXT_SUMMARY)]
    followed = await mirrored.mirror.put(HERE, stored, result)

    assert [(each.label, each.text, each.actor, each.digest) for each in result] == [
        (Label.CONTEXT_SUMMARY, edited, AGENT, digest)
    ]
    assert again == result
    assert left == [before, edited]
    assert not followed
    assert not await mirrored.mirror.foreign_changes(HERE)
    assert mirrored.shows_what_stands()
