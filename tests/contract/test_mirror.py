"""What others change in a mirror is adopted as a revision of theirs, or kept aside and undone."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from memory_blocks.ledger import Reading
from memory_blocks.mirrors.letta import SOMEBODY
from memory_blocks.mirrors.nowhere import Nowhere
from memory_blocks.mirrors.scripted import ScriptedMirror
from memory_blocks.models import Label
from memory_blocks.trace import Action
from tests.lettas import HandEdited, a_mirror
from tests.unit.test_blocks_ledger import CONVERSATION, House

pytestmark = pytest.mark.timeout(600)

AGENT = SOMEBODY
HERE = CONVERSATION.id


class Mirrored(House):
    """A house whose blocks are shown elsewhere, too."""

    def __init__(self, mirror: ScriptedMirror | HandEdited) -> None:
        super().__init__()
        self.mirror = mirror

    async def take_turns(self, turns: int) -> None:
        for _ in range(turns):
            await self.mirror.put(HERE, self.take_turn().stored)

    async def follow(self) -> Reading:
        """What is done before the mirror is used again: take over, then show what stands."""
        changes = await self.mirror.foreign(HERE)
        adopted = self.ledger.adopt(self.store, CONVERSATION, changes)
        await self.mirror.put(HERE, adopted.stored, changes)
        return adopted

    def shows_what_stands(self) -> bool:
        stored = self.store.load(HERE)
        return all(self.mirror.text(HERE, label) == block.text for label, block in stored.items())


@pytest.fixture(params=["scripted", "letta"])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[Mirrored]:
    """A house before each mirror in which others can change something."""
    if request.param == "scripted":
        yield Mirrored(ScriptedMirror())
        return
    letta, tag, store = (request.getfixturevalue(name) for name in ("letta", "tag", "opened"))
    async with a_mirror(letta.base_url, store, tag, HERE) as mirror:
        yield Mirrored(mirror)


async def test_nowhere_nothing_is_shown_or_changed() -> None:
    house = House()

    assert await Nowhere().put(HERE, house.take_turn().stored) == ()
    assert await Nowhere().foreign(HERE) == ()


@pytest.mark.requirement("001-060", "001-038")
async def test_what_an_agent_appends_to_the_summary_becomes_a_note_and_a_revision_of_its(
    house: Mirrored,
) -> None:
    await house.take_turns(2)
    house.mirror.append(HERE, Label.CONTEXT_SUMMARY, "Prefers short answers.", actor=AGENT)

    adopted = await house.follow()

    assert adopted.blocks.context_summary.endswith("--- NOTES ---\nPrefers short answers.")
    receipts = {receipt.label: receipt for receipt in adopted.receipts}
    assert set(receipts) == {Label.CONTEXT_SUMMARY, Label.MEMORY_METADATA}
    summary = receipts[Label.CONTEXT_SUMMARY]
    assert (summary.action, summary.actor, summary.revision) == (Action.UPDATED, AGENT, 3)
    assert house.store.revisions(HERE, Label.CONTEXT_SUMMARY)[-1].actor == AGENT
    assert house.store.quarantined == []
    assert house.shows_what_stands()


async def test_what_an_agent_replaces_in_a_json_block_is_adopted_where_it_is_valid(house: Mirrored) -> None:
    await house.take_turns(2)
    old, new = '"conversation_phase":"symptom_evaluation"', '"conversation_phase":"advice"'
    house.mirror.replace(HERE, Label.ACTIVE_SESSION, old, new, actor=AGENT)

    adopted = await house.follow()

    assert adopted.blocks.active_session.conversation_state.conversation_phase == "advice"
    assert "\nCONVERSATION PHASE: Advice\n" in adopted.blocks.context_summary
    assert {receipt.actor for receipt in adopted.receipts} == {AGENT}
    assert house.store.quarantined == []
    assert house.shows_what_stands()


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
            "system_flags: is not for others to change",
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
async def test_what_cannot_stand_is_quarantined_and_undone(
    house: Mirrored, label: Label, change: dict[str, Any], reason: str
) -> None:
    await house.take_turns(2)
    before = house.read()
    (house.mirror.append if "content" in change else house.mirror.replace)(HERE, label, **change, actor=AGENT)
    left = house.mirror.text(HERE, label)

    adopted = await house.follow()

    assert house.store.quarantined == [(HERE, label, left, reason, AGENT)]
    assert adopted.blocks == before.blocks
    assert adopted.revisions == before.revisions
    (receipt,) = adopted.receipts
    assert (receipt.label, receipt.actor) == (label, AGENT)
    assert receipt.quarantined is not None
    assert house.shows_what_stands()
    assert not await house.mirror.foreign(HERE)


async def test_edits_of_several_blocks_that_are_seen_at_once_are_all_adopted(house: Mirrored) -> None:
    await house.take_turns(2)
    old, new = '"conversation_phase":"symptom_evaluation"', '"conversation_phase":"advice"'
    house.mirror.replace(HERE, Label.ACTIVE_SESSION, old, new, actor=AGENT)
    house.mirror.append(HERE, Label.CONTEXT_SUMMARY, "Prefers short answers.", actor=AGENT)
    score = '"context_accuracy_score":'
    house.mirror.replace(HERE, Label.MEMORY_METADATA, f"{score}1.0", f"{score}0.5", actor=AGENT)

    adopted = await house.follow()

    assert house.store.quarantined == []
    assert adopted.blocks.memory_metadata.performance_metrics.context_accuracy_score == 0.5
    assert adopted.blocks.active_session.conversation_state.conversation_phase == "advice"
    assert "\nCONVERSATION PHASE: Advice\n" in adopted.blocks.context_summary
    assert adopted.blocks.context_summary.endswith("--- NOTES ---\nPrefers short answers.")
    assert house.shows_what_stands()


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
async def test_an_edit_that_is_seen_after_another_let_its_block_be_written_anew_is_adopted_too(
    house: Mirrored, label: Label, old: str, new: str
) -> None:
    await house.take_turns(2)
    phase = '"conversation_phase":"{}"'
    house.mirror.replace(
        HERE,
        Label.ACTIVE_SESSION,
        phase.format("symptom_evaluation"),
        phase.format("advice"),
        actor=AGENT,
    )
    seen = await house.mirror.foreign(HERE)
    adopted = house.ledger.adopt(house.store, CONVERSATION, seen)
    house.mirror.replace(HERE, label, old, new, actor=AGENT)

    later = await house.mirror.put(HERE, adopted.stored, seen)
    stored = house.ledger.adopt(house.store, CONVERSATION, later).stored
    await house.mirror.put(HERE, stored, (*seen, *later))

    assert [each.label for each in later] == [label]
    assert house.store.quarantined == []
    assert new.split("\n")[-1] in house.mirror.text(HERE, label)
    assert "\nCONVERSATION PHASE: Advice\n" in house.mirror.text(HERE, Label.CONTEXT_SUMMARY)
    assert house.shows_what_stands()


async def test_a_second_edit_of_the_same_upon_the_earlier_text_is_undone(house: Mirrored) -> None:
    await house.take_turns(2)
    score = '"context_accuracy_score":'
    house.mirror.replace(HERE, Label.MEMORY_METADATA, f"{score}1.0", f"{score}0.5", actor=AGENT)
    seen = await house.mirror.foreign(HERE)
    adopted = house.ledger.adopt(house.store, CONVERSATION, seen)
    house.mirror.replace(HERE, Label.MEMORY_METADATA, f"{score}0.5", f"{score}0.7", actor=AGENT)

    later = await house.mirror.put(HERE, adopted.stored, seen)
    stored = house.ledger.adopt(house.store, CONVERSATION, later).stored
    await house.mirror.put(HERE, stored, (*seen, *later))

    assert [why for *_, why, _ in house.store.quarantined] == [
        "$: was changed upon a text that stands no more"
    ]
    assert f"{score}0.5" in house.mirror.text(HERE, Label.MEMORY_METADATA)
    assert house.shows_what_stands()


async def test_a_change_upon_a_text_that_stands_no_more_is_undone(house: Mirrored) -> None:
    await house.take_turns(1)
    house.mirror.append(HERE, Label.CONTEXT_SUMMARY, "Too late.", actor=AGENT)
    house.take_turn()

    await house.follow()

    assert [why for *_, why, _ in house.store.quarantined] == [
        "$: was changed upon a text that stands no more"
    ]
    assert house.shows_what_stands()


async def test_what_nobody_followed_is_told_until_somebody_does_and_only_then_written_over(
    house: Mirrored,
) -> None:
    await house.take_turns(1)
    before = house.mirror.text(HERE, Label.ACTIVE_SESSION)
    house.mirror.append(HERE, Label.CONTEXT_SUMMARY, "In between.", actor=AGENT)
    edited = house.mirror.text(HERE, Label.CONTEXT_SUMMARY)
    digest = house.store.load(HERE)[Label.CONTEXT_SUMMARY].digest
    stored = house.take_turn().stored

    told, again = [await house.mirror.put(HERE, stored) for _ in range(2)]
    left = [house.mirror.text(HERE, label) for label in (Label.ACTIVE_SESSION, Label.CONTEXT_SUMMARY)]
    followed = await house.mirror.put(HERE, stored, told)

    assert [(each.label, each.text, each.actor, each.digest) for each in told] == [
        (Label.CONTEXT_SUMMARY, edited, AGENT, digest)
    ]
    assert again == told
    assert left == [before, edited]
    assert not followed
    assert not await house.mirror.foreign(HERE)
    assert house.shows_what_stands()
