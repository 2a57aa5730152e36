"""The ledger: receipts, revisions, rotation, refusals."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_blocks import agreement
from memory_blocks.edits import complete_turn
from memory_blocks.errors import BlockInvalid, BlockTooLarge, HistoryFull, StaleRevision
from memory_blocks.facts.changes import current_facts
from memory_blocks.facts.view import view
from memory_blocks.ledger.adopt import adopt
from memory_blocks.ledger.ledger import Ledger, ReadResult, WriteResult
from memory_blocks.limits import DEFAULTS, Limits
from memory_blocks.models import SCHEMA_VERSIONS, ContextEnrichment, Label, Level, Turn, changed, render
from memory_blocks.ports import ForeignChange
from memory_blocks.stores.in_memory import InMemoryBlockStore
from memory_blocks.trace import Action, digest
from orchestrator.errors import TABLE, as_ours
from tests.support.builders import (
    CountedIds,
    HandClock,
    a_change,
    a_completed_turn,
    a_conversation,
    some_blocks,
)

CONVERSATION = a_conversation()


class LedgerWorld:
    """A ledger over a store in memory, and a clock."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.clock = HandClock()
        self.store = InMemoryBlockStore(CountedIds(), self.clock)
        self.ledger = Ledger(self.clock, limits, {"GENERAL_HEALTH", "SLEEP"})

    def read(self) -> ReadResult:
        return self.ledger.read(self.store, CONVERSATION, actor="context_extractor")

    def take_turn(
        self,
        message: str = "8",
        answer: str = "Since when?",
        reading: ReadResult | None = None,
        **fields: Any,
    ) -> WriteResult:
        """Take one turn as the orchestrator does."""
        reading = reading or self.read()
        turn = replace(
            a_completed_turn(reading.blocks.next_turn, message=message, answer=answer),
            timestamp=self.clock.tick(),
            **fields,
        )
        blocks = complete_turn(reading.blocks, turn, self.clock.now(), self.ledger.limits)
        return self.ledger.write(
            self.store, CONVERSATION, reading, blocks, actor="context_extractor", turn=turn.turn_id
        )


def test_reading_leaves_four_receipts_even_before_the_first_turn() -> None:
    reading = LedgerWorld().read()

    assert [receipt.label for receipt in reading.receipts] == list(Label)
    assert {(receipt.action, receipt.revision) for receipt in reading.receipts} == {(Action.RETRIEVED, 0)}
    assert len({receipt.memory_id for receipt in reading.receipts}) == 4
    assert {receipt.actor for receipt in reading.receipts} == {"context_extractor"}


def test_a_receipt_has_the_state_of_the_block() -> None:
    world = LedgerWorld()
    world.take_turn(message="x" * 2_000)

    receipt = world.read().receipts[0]

    text = world.store.load(CONVERSATION.id)[Label.CONVERSATION_HISTORY].text
    assert (receipt.size, receipt.limit, receipt.level) == (len(text), 32_000, Level.NORMAL)
    assert receipt.digest == digest(text)
    assert (
        receipt.content == f"1 turn, {receipt.utilization:g} % full; latest: User reports having a headache"
    )


@pytest.mark.requirement("001-038", "001-060", "001-071")
def test_the_first_turn_stores_four_blocks_and_the_second_updates_them() -> None:
    world = LedgerWorld()

    first, second = world.take_turn(), world.take_turn()

    assert [(each.action, each.revision) for each in first.receipts] == [(Action.STORED, 1)] * 4
    assert [(each.action, each.revision) for each in second.receipts] == [(Action.UPDATED, 2)] * 4
    assert [each.memory_id for each in first.receipts] == [each.memory_id for each in second.receipts]
    assert second.receipts[0].changed == ("turns.turn_2", "total_turns", "last_updated")
    assert "conversation_state.current_turn" in second.receipts[1].changed
    assert "CONVERSATION FLOW" in second.receipts[2].changed


def test_only_what_changed_gets_a_new_revision() -> None:
    world = LedgerWorld()
    world.take_turn()
    reading = world.read()
    summary = reading.blocks.context_summary.replace("Concern: Headache", "Concern: Migraine")

    written = world.ledger.write(
        world.store,
        CONVERSATION,
        reading,
        replace(reading.blocks, context_summary=summary),
        actor="staff",
    )

    assert [receipt.label for receipt in written.receipts] == [Label.CONTEXT_SUMMARY]
    assert written.revisions[Label.CONTEXT_SUMMARY] == 2
    assert written.revisions[Label.CONVERSATION_HISTORY] == 1
    assert world.store.revisions(CONVERSATION.id, Label.CONTEXT_SUMMARY)[-1].schema_version == "1.2"


def test_writing_unchanged_blocks_writes_nothing() -> None:
    world = LedgerWorld()
    world.take_turn()
    reading = world.read()

    written = world.ledger.write(world.store, CONVERSATION, reading, reading.blocks, actor="staff")

    assert written.receipts == ()
    assert written.revisions == reading.revisions


@pytest.mark.requirement("001-072", "001-078", "001-079")
def test_the_blocks_come_back_as_written() -> None:
    world = LedgerWorld()
    for _ in range(21):
        written = world.take_turn()

    assert written.rotated_out == (1, 2, 3, 4, 5, 6)
    assert written.blocks == world.read().blocks
    assert [turn.turn_id for turn in written.blocks.conversation_history.turns] == list(range(7, 22))
    archival = written.blocks.memory_metadata.archival_info
    assert (archival.total_archived_turns, archival.last_archival) == (6, world.clock.now())
    assert written.blocks.memory_metadata.memory_usage.conversation_history.last_cleanup == world.clock.now()


@pytest.mark.requirement("001-025", "001-031")
def test_after_thirty_short_turns_the_latest_fifteen_to_twenty_are_held() -> None:
    world = LedgerWorld()
    for _ in range(30):
        written = world.take_turn()

    history = written.blocks.conversation_history
    assert 15 <= len(history.turns) <= 20
    assert history.total_turns == len(history.turns) + len(world.store.archived_turns(CONVERSATION.id)) == 30


def test_a_written_result_can_be_the_base_of_the_next_write() -> None:
    world = LedgerWorld()

    second = world.take_turn(reading=world.take_turn())

    assert second.revisions == dict.fromkeys(Label, 2)


@pytest.mark.requirement("001-089", "001-098")
def test_the_emergency_level_is_reported_at_its_write_and_not_at_the_next() -> None:
    world = LedgerWorld()
    for _ in range(4):
        world.take_turn()

    emergency = world.take_turn(message="x" * 29_000)
    afterwards = world.take_turn()

    assert emergency.receipts[0].level is Level.EMERGENCY
    assert emergency.blocks.memory_metadata.system_flags.emergency_mode
    assert len(emergency.blocks.conversation_history.turns) == 3
    assert afterwards.receipts[0].level is Level.ARCHIVE
    assert not afterwards.blocks.memory_metadata.system_flags.emergency_mode


def test_a_stale_writer_is_refused_and_loses_nothing_of_the_other() -> None:
    world = LedgerWorld()
    stale = world.read()
    world.take_turn(message="first")

    with pytest.raises(StaleRevision) as refusal:
        world.take_turn(message="second", reading=stale)

    assert refusal.value.facts == {"label": "conversation_history", "stored": 1, "yours": 0}
    assert world.read().blocks.conversation_history.turns[0].user_message.content == "first"


def test_an_invalid_block_is_never_written() -> None:
    world = LedgerWorld()
    world.take_turn()
    reading = world.read()
    session = reading.blocks.active_session
    state = changed(session.conversation_state, current_turn=7)
    bad = replace(reading.blocks, active_session=changed(session, conversation_state=state))

    with pytest.raises(BlockInvalid) as refusal:
        world.ledger.write(world.store, CONVERSATION, reading, bad, actor="staff")

    assert refusal.value.facts["path"] == "conversation_state.current_turn"
    assert world.read().blocks == reading.blocks


def test_the_blocks_of_another_conversation_are_not_written_here() -> None:
    world = LedgerWorld()

    with pytest.raises(BlockInvalid, match="another conversation"):
        world.ledger.write(
            world.store,
            a_conversation("other"),
            world.read(),
            some_blocks(turns=1),
            actor="staff",
        )


@pytest.mark.requirement("001-021", "001-116")
def test_an_agent_that_is_not_of_this_orchestrator_is_refused() -> None:
    world = LedgerWorld()
    reading = world.read()
    blocks = complete_turn(
        reading.blocks,
        a_completed_turn(1, agent="ASTROLOGY"),
        world.clock.now() + timedelta(minutes=2),
    )

    with pytest.raises(BlockInvalid, match="not a configured agent"):
        world.ledger.write(world.store, CONVERSATION, reading, blocks, actor="staff")


@pytest.mark.requirement("001-086", "001-007")
def test_without_rotation_a_full_block_refuses_the_write() -> None:
    world = LedgerWorld(replace(DEFAULTS, rotation_enabled=False))
    world.take_turn(message="x" * 20_000)

    with pytest.raises(BlockTooLarge) as refusal:
        world.take_turn(message="x" * 20_000)

    assert refusal.value.facts["most"] == 32_000
    flags = world.read().blocks.memory_metadata.system_flags
    assert not flags.memory_rotation_enabled
    assert len(world.read().blocks.conversation_history.turns) == 1


@pytest.mark.requirement("001-088")
def test_without_validation_only_the_checks_between_blocks_are_left_out() -> None:
    world = LedgerWorld(replace(DEFAULTS, validation_enabled=False))
    reading = world.read()
    blocks = complete_turn(
        reading.blocks,
        a_completed_turn(1, agent="ASTROLOGY"),
        world.clock.now() + timedelta(minutes=2),
        world.ledger.limits,
    )

    written = world.ledger.write(world.store, CONVERSATION, reading, blocks, actor="staff")

    assert not written.blocks.memory_metadata.system_flags.context_validation_enabled
    with pytest.raises(BlockTooLarge):
        world.ledger.write(
            world.store,
            CONVERSATION,
            written,
            replace(written.blocks, context_summary="x" * 8_001),
            actor="staff",
        )


def test_a_long_text_is_archived_whole_and_once_when_it_leaves() -> None:
    world = LedgerWorld()
    long = "y" * 60_000
    world.take_turn(message=long)
    in_the_block = world.read().blocks.conversation_history.turns[0].user_message.content

    for _ in range(20):
        world.take_turn()

    archived = [Turn.model_validate_json(turn.text) for turn in world.store.archived_turns(CONVERSATION.id)]
    assert "characters kept in the archive" in in_the_block
    assert archived[0].user_message.content == long
    assert [turn.turn_id for turn in archived] == list(range(1, len(archived) + 1))
    assert world.store.shortened_turns(CONVERSATION.id) == {}


@pytest.mark.parametrize("answered", [True, False], ids=["another answer", "another message"])
def test_a_replaced_long_text_does_not_return(answered: bool) -> None:
    world = LedgerWorld()
    first = a_completed_turn(1, message="y" * 60_000)
    second = a_completed_turn(1, message="short", attempt=2)
    if not answered:
        edited = changed(second.user_message, message_id="msg_edited")
        first = replace(first, response=None, error="model_unavailable")
        second = replace(second, response=None, error="model_unavailable", user_message=edited)
    for turn in (first, second):
        reading = world.read()
        blocks = complete_turn(reading.blocks, turn, world.clock.tick())
        world.ledger.write(world.store, CONVERSATION, reading, blocks, actor="context_extractor", turn=1)

    for _ in range(20):
        world.take_turn()

    archived = Turn.model_validate_json(world.store.archived_turns(CONVERSATION.id)[0].text)
    assert archived.user_message.content == "short"


# --- invalid blocks -----------------------------------------------------------------------------------------


def spoiled(world: LedgerWorld, label: Label, text: str, *revisions: int) -> ReadResult:
    """The next read after a block, and revisions of it, were changed without the ledger."""
    world.store.tamper(CONVERSATION.id, label, text)
    for revision in revisions:
        world.store.tamper(CONVERSATION.id, label, text, revision)
    return world.read()


@pytest.mark.requirement("001-118")
@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("text", ["", "{", "I am in pain", "null"])
def test_an_invalid_block_is_quarantined_and_the_last_valid_one_restored(label: Label, text: str) -> None:
    world = LedgerWorld()
    world.take_turn()
    before = world.take_turn()

    reading = spoiled(world, label, text)

    assert world.store.quarantined == [
        (CONVERSATION.id, label, text, "$: is not what was written", "context_extractor")
    ]
    assert reading.blocks == before.blocks
    assert reading.revisions == dict(before.revisions) | {label: 3}
    restored, *retrieved = reading.receipts
    assert (restored.label, restored.action, restored.revision) == (label, Action.UPDATED, 3)
    assert restored.quarantined is not None
    assert [receipt.action for receipt in retrieved] == [Action.RETRIEVED] * 4
    assert world.take_turn().blocks.next_turn == 4


def test_a_valid_text_that_was_not_written_through_the_ledger_is_quarantined_too() -> None:
    world = LedgerWorld()
    world.take_turn()
    written = world.take_turn()
    other = written.blocks.context_summary.replace("Concern: Headache", "Concern: Migraine")

    reading = spoiled(world, Label.CONTEXT_SUMMARY, other)

    assert reading.blocks == written.blocks
    assert world.store.quarantined[0][2] == other


@pytest.mark.parametrize("label", Label)
@pytest.mark.parametrize("turns", [2, 4, 24])
def test_if_the_latest_revisions_are_invalid_too_an_earlier_one_is_restored_and_all_agree(
    label: Label, turns: int
) -> None:
    world = LedgerWorld()
    for _ in range(turns):
        world.take_turn()

    reading = spoiled(world, label, "{", turns, turns - 1)

    assert list(agreement.departures(reading.blocks)) == []
    after = world.take_turn()
    assert list(agreement.departures(after.blocks)) == []
    left = [turn.turn_id for turn in world.store.archived_turns(CONVERSATION.id)]
    active = [turn.turn_id for turn in after.blocks.conversation_history.turns]
    assert left + active == list(range(1, after.blocks.next_turn))


@pytest.mark.parametrize("turns", [1, 22])
def test_if_no_revision_can_be_read_the_conversation_continues_after_the_archived_turns(turns: int) -> None:
    world = LedgerWorld()
    for _ in range(turns):
        world.take_turn()
    for label in Label:
        spoiled(world, label, "{", *range(1, turns + 2 * len(Label)))

    reading = world.read()

    archived = len(world.store.archived_turns(CONVERSATION.id))
    assert list(agreement.departures(reading.blocks)) == []
    assert reading.blocks.next_turn == archived + 1
    for _ in range(22):
        world.take_turn()
    assert [turn.turn_id for turn in world.store.archived_turns(CONVERSATION.id)][:archived] == list(
        range(1, archived + 1)
    )


ELSEWHERE = '"session_id":"session_elsewhere"'
FORGED = [
    (
        Label.MEMORY_METADATA,
        '"total_archived_turns":0',
        '"total_archived_turns":5',
        "archival_info.total_archived_turns: is not the number of turns that left the history",
    ),
    (
        Label.CONVERSATION_HISTORY,
        '"session_id":"session_123"',
        ELSEWHERE,
        "session_id: is that of another conversation",
    ),
    (
        Label.ACTIVE_SESSION,
        '"session_id":"session_123"',
        ELSEWHERE,
        "session_info.session_id: is that of another conversation",
    ),
    (
        Label.ACTIVE_SESSION,
        '"user_id":"user_456"',
        '"user_id":"user_457"',
        "session_info.user_id: is that of another person",
    ),
    (
        Label.ACTIVE_SESSION,
        '"total_exchanges":3',
        '"total_exchanges":9',
        "session_metadata.total_exchanges: is not the number of completed turns",
    ),
    (
        Label.ACTIVE_SESSION,
        '"last_agent":"GENERAL_HEALTH"',
        '"last_agent":"SLEEP"',
        "conversation_state.last_agent: is not that of the latest turn",
    ),
    (
        Label.CONTEXT_SUMMARY,
        "User: user_456",
        "User: user_457",
        "header: is that of another conversation",
    ),
]


@pytest.mark.requirement("001-118", "001-111", "001-112")
@pytest.mark.parametrize(("label", "old", "new", "reason"), FORGED)
def test_a_block_that_disagrees_with_the_others_is_quarantined_though_its_digests_fit(
    label: Label, old: str, new: str, reason: str
) -> None:
    world = LedgerWorld()
    for _ in range(3):
        world.take_turn()
    forged = world.store.load(CONVERSATION.id)[label].text.replace(old, new)
    world.store.forge(CONVERSATION.id, label, forged)

    reading = world.read()

    assert world.store.quarantined == [(CONVERSATION.id, label, forged, reason, "context_extractor")]
    assert list(agreement.departures(reading.blocks)) == []
    assert new not in reading.stored[label].text
    assert [each.label for each in reading.receipts if each.quarantined] == [label]
    after = world.take_turn()
    assert after.blocks.next_turn == (4 if label is Label.CONVERSATION_HISTORY else 5)
    assert world.ledger.examine(world.store, CONVERSATION, actor="ann")[0] == ()
    assert len(world.store.quarantined) == 1


def test_a_history_that_does_not_follow_the_archive_is_the_invalid_block() -> None:
    world = LedgerWorld()
    for _ in range(3):
        world.take_turn()
    history = world.read().blocks.conversation_history
    later = tuple(changed(turn, turn_id=turn.turn_id + 5) for turn in history.turns)
    world.store.forge(
        CONVERSATION.id, Label.CONVERSATION_HISTORY, changed(history, turns=later, total_turns=8).text
    )

    reading = world.read()

    assert {kept[1] for kept in world.store.quarantined} == {Label.CONVERSATION_HISTORY}
    assert [turn.turn_id for turn in reading.blocks.conversation_history.turns] == [1, 2]
    assert list(agreement.departures(reading.blocks)) == []


def test_blocks_written_without_validation_are_repaired_once_it_is_switched_on() -> None:
    world = LedgerWorld(replace(DEFAULTS, validation_enabled=False))
    for _ in range(2):
        world.take_turn()
    reading = world.read()
    state = changed(reading.blocks.active_session.conversation_state, current_turn=9)
    session = changed(reading.blocks.active_session, conversation_state=state)
    blocks = replace(reading.blocks, active_session=session)
    world.ledger.write(world.store, CONVERSATION, reading, blocks, actor="staff")
    unchecked = world.read()
    world.ledger = Ledger(world.clock, DEFAULTS)

    checked = world.read()

    assert unchecked.blocks.active_session.conversation_state.current_turn == 9
    assert checked.blocks.active_session.conversation_state.current_turn == 2
    assert world.store.quarantined[0][3] == "conversation_state.current_turn: is not the latest turn"
    assert world.take_turn().blocks.next_turn == 4


def test_changed_limits_put_no_block_into_quarantine() -> None:
    world = LedgerWorld()
    for _ in range(18):
        world.take_turn()
    world.ledger = Ledger(
        world.clock,
        replace(
            DEFAULTS, conversation_history_limit=40_000, turns_refused_above=12, turns_most=10, turns_kept=5
        ),
    )

    reading = world.read()

    assert world.store.quarantined == []
    assert len(reading.blocks.conversation_history.turns) == 18
    assert len(world.take_turn().blocks.conversation_history.turns) == 5


@pytest.mark.requirement("001-102")
def test_rotating_before_the_first_turn_writes_nothing() -> None:
    world = LedgerWorld()

    written = world.ledger.rotate(world.store, CONVERSATION, actor="ann")

    assert world.store.load(CONVERSATION.id) == {}
    assert {(each.action, each.revision) for each in written.receipts} == {(Action.RETRIEVED, 0)}


def test_a_restore_before_a_rotation_by_hand_has_its_receipt() -> None:
    world = LedgerWorld()
    for _ in range(5):
        world.take_turn()
    world.store.tamper(CONVERSATION.id, Label.MEMORY_METADATA, "{")

    written = world.ledger.rotate(world.store, CONVERSATION, actor="ann")

    assert [each.label for each in written.receipts if each.quarantined] == [Label.MEMORY_METADATA]
    assert written.rotated_out == (1, 2)


def test_a_block_that_was_changed_after_it_was_read_is_not_overwritten() -> None:
    world = LedgerWorld()
    world.take_turn()
    reading = world.read()
    world.store.tamper(CONVERSATION.id, Label.ACTIVE_SESSION, "{}")

    with pytest.raises(StaleRevision):
        world.take_turn(reading=reading)

    assert world.take_turn().blocks.next_turn == 3
    assert [text for _, _, text, *_ in world.store.quarantined] == ["{}"]


def test_examining_reports_broken_rules_and_changes_nothing() -> None:
    world = LedgerWorld()
    world.take_turn()
    sound, receipts = world.ledger.examine(world.store, CONVERSATION, actor="ann")
    world.store.tamper(CONVERSATION.id, Label.MEMORY_METADATA, "{}")

    found, _ = world.ledger.examine(world.store, CONVERSATION, actor="ann")

    assert sound == ()
    assert [(receipt.action, receipt.actor) for receipt in receipts] == [(Action.RETRIEVED, "ann")] * 4
    assert found[:2] == (
        (Label.MEMORY_METADATA, "$", "is not what was written"),
        (Label.MEMORY_METADATA, "memory_usage", "is missing"),
    )
    assert world.store.quarantined == []


def test_agents_that_are_no_longer_configured_stay_valid_in_old_turns() -> None:
    world = LedgerWorld()
    world.take_turn()
    world.ledger = Ledger(world.clock, DEFAULTS, {"SLEEP"})

    with pytest.raises(BlockInvalid, match="not a configured agent"):
        world.ledger.write(
            world.store,
            CONVERSATION,
            world.read(),
            complete_turn(
                world.read().blocks,
                a_completed_turn(2, agent="ASTROLOGY"),
                world.clock.tick(600),
            ),
            actor="staff",
        )
    world.take_turn()

    assert world.read().blocks.next_turn == 3


# --- earlier revisions --------------------------------------------------------------------------------------


def test_blocks_can_be_viewed_after_a_turn_or_at_a_revision() -> None:
    world = LedgerWorld()
    texts = [world.take_turn(message=f"message {turn}").stored for turn in range(1, 31)]

    after = world.ledger.view(world.store, CONVERSATION, actor="ann", turn=7)
    at = world.ledger.view(world.store, CONVERSATION, actor="ann", labels=[Label.ACTIVE_SESSION], revision=9)

    assert after.blocks == texts[6]
    assert at.blocks == {Label.ACTIVE_SESSION: texts[8][Label.ACTIVE_SESSION]}
    assert [(each.label, each.revision, each.actor) for each in at.receipts] == [
        (Label.ACTIVE_SESSION, 9, "ann")
    ]
    with pytest.raises(BlockInvalid, match="no such revision"):
        world.ledger.view(world.store, CONVERSATION, actor="ann", revision=31)


def test_the_configured_number_of_revisions_is_kept() -> None:
    world = LedgerWorld(replace(DEFAULTS, revisions_kept=4))
    for _ in range(9):
        world.take_turn()

    kept = world.store.revisions(CONVERSATION.id, Label.ACTIVE_SESSION)

    assert [each.revision for each in kept] == [6, 7, 8, 9]


@pytest.mark.requirement("001-099", "001-120")
@pytest.mark.parametrize("enabled", [True, False])
def test_rotating_by_hand_archives_all_but_the_protected_turns(enabled: bool) -> None:
    world = LedgerWorld(replace(DEFAULTS, rotation_enabled=enabled))
    for _ in range(12):
        world.take_turn()

    written = world.ledger.rotate(world.store, CONVERSATION, actor="ann")

    assert written.rotated_out == tuple(range(1, 10))
    assert len(written.blocks.conversation_history.turns) == 3
    assert written.blocks.memory_metadata.archival_info.total_archived_turns == 9
    assert {receipt.actor for receipt in written.receipts} == {"ann"}
    assert world.ledger.rotate(world.store, CONVERSATION, actor="ann").rotated_out == ()


@pytest.mark.requirement("001-086")
def test_a_full_block_without_rotation_names_the_way_out() -> None:
    world = LedgerWorld(replace(DEFAULTS, rotation_enabled=False))
    for _ in range(6):
        world.take_turn(message="x" * 4_000)

    with pytest.raises(BlockTooLarge) as refusal:
        world.take_turn(message="x" * 9_000)
    result = as_ours(refusal.value)
    world.ledger.rotate(world.store, CONVERSATION, actor="ann")
    written = world.take_turn(message="x" * 9_000)

    assert (result.problem.number, "`anamnesis blocks rotate`" in str(result)) == (402, True)
    assert written.blocks.next_turn == 8


@pytest.mark.requirement("001-033")
def test_a_history_full_of_short_turns_without_rotation_names_the_way_out() -> None:
    world = LedgerWorld(replace(DEFAULTS, rotation_enabled=False))
    for _ in range(25):
        world.take_turn()

    with pytest.raises(HistoryFull) as refusal:
        world.take_turn()
    result = as_ours(refusal.value)
    world.ledger.rotate(world.store, CONVERSATION, actor="ann")
    written = world.take_turn()

    assert (result.problem.number, "`anamnesis blocks rotate`" in str(result)) == (402, True)
    assert [turn.turn_id for turn in written.blocks.conversation_history.turns] == [23, 24, 25, 26]


def test_a_history_that_filled_up_without_rotation_rotates_once_it_is_switched_on() -> None:
    world = LedgerWorld(replace(DEFAULTS, rotation_enabled=False))
    for _ in range(25):
        world.take_turn()
    world.ledger = Ledger(world.clock, DEFAULTS)

    written = world.take_turn()

    assert written.blocks.next_turn == 27
    assert [turn.turn_id for turn in world.store.archived_turns(CONVERSATION.id)] == list(range(1, 11))


@pytest.mark.parametrize("text", ["\x01" * 9_000, "I am in pain. " * 400])
def test_the_lowest_limits_hold_any_three_turns(text: str) -> None:
    world = LedgerWorld(replace(DEFAULTS, conversation_history_limit=4_000, archival_trigger_threshold=3_500))

    for _ in range(5):
        reading = world.read()
        turn = replace(
            a_completed_turn(reading.blocks.next_turn, message=text, answer=text),
            timestamp=world.clock.tick(),
            enrichment=ContextEnrichment(previous_context=text, enriched_message=text, relevant_history=()),
        )
        blocks = complete_turn(reading.blocks, turn, world.clock.now(), world.ledger.limits)
        world.ledger.write(world.store, CONVERSATION, reading, blocks, actor="context_extractor")

    assert [turn.turn_id for turn in world.read().blocks.conversation_history.turns] == [3, 4, 5]


texts = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["", "x" * 3_000, "🤢" * 9_000, '"\\' * 8_000, "\x01" * 9_000, "y" * 30_000]),
)


@pytest.mark.requirement(
    "001-007", "001-031", "001-033", "001-034", "001-037", "001-059", "001-070", "001-118"
)
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=30))
def test_for_any_messages_nothing_is_lost_and_everything_fits(said: list[tuple[str, str]]) -> None:
    world = LedgerWorld()

    for message, answer in said:
        written = world.take_turn(message, answer)

        assert list(agreement.departures(written.blocks)) == []
        for label in Label:
            assert len(render(label, written.blocks)) <= DEFAULTS.of(label)
        assert len(written.blocks.conversation_history.turns) >= min(3, written.blocks.next_turn - 1)

    held = world.store.shortened_turns(CONVERSATION.id)
    kept = [held.get(turn.turn_id, turn.text) for turn in world.read().blocks.conversation_history.turns]
    archived = [turn.text for turn in world.store.archived_turns(CONVERSATION.id)]
    turns = [json.loads(text) for text in (*archived, *kept)]
    assert [(turn["user_message"]["content"], turn["agent_response"]["content"]) for turn in turns] == said
    assert [turn["turn_id"] for turn in turns] == list(range(1, len(said) + 1))


@pytest.mark.parametrize(
    "error",
    [
        BlockInvalid(Label.ACTIVE_SESSION, "session_info", "is missing"),
        BlockTooLarge(Label.ACTIVE_SESSION, 4_001, 4_000),
        HistoryFull(Label.ACTIVE_SESSION, 26, 25),
        StaleRevision(Label.ACTIVE_SESSION, 2, 1),
    ],
)
def test_each_error_of_the_blocks_has_its_row_and_its_facts(
    error: BlockInvalid | BlockTooLarge | HistoryFull | StaleRevision,
) -> None:
    assert "active_session" in TABLE[error.name].says.format_map(error.facts)


# --- facts --------------------------------------------------------------------------------------------------


def older_blocks(world: LedgerWorld, version: str, *facts: dict[str, object]) -> None:
    """Blocks of an earlier version, which nobody has written since there are changes to facts."""
    world.take_turn()
    session = json.loads(world.store.load(CONVERSATION.id)[Label.ACTIVE_SESSION].text)
    session["schema_version"], session["facts"] = version, list(facts)
    if version == "1.0":
        del session["schema_version"], session["facts"]
    world.store.forge(CONVERSATION.id, Label.ACTIVE_SESSION, json.dumps(session, separators=(",", ":")))
    world.store.forget_fact_changes(CONVERSATION.id)


def said(world: LedgerWorld) -> list[tuple[str, str, str]]:
    found = current_facts(world.store.fact_changes(CONVERSATION.id))
    return [(fact.subject, fact.kind, fact.value) for fact in found]


@pytest.mark.parametrize("version", SCHEMA_VERSIONS)
def test_the_facts_of_older_blocks_become_changes_once(version: str) -> None:
    world = LedgerWorld()
    older_blocks(
        world,
        version,
        {"kind": "concern", "value": "fever", "turn": 1},
        {"kind": "medications", "value": "ibuprofen, paracetamol", "turn": 1},
    )
    medicines = ["ibuprofen", "paracetamol"] if version == "1.1" else ["ibuprofen, paracetamol"]
    known = [("person", "concern", "fever"), *(("person", "medications", value) for value in medicines)]
    known = [] if version == "1.0" else known
    reading = world.read()
    meant = world.ledger.fact_changes(world.store, CONVERSATION, reading.blocks)

    for number in (1, 2):
        reading = world.read()
        turn = replace(a_completed_turn(reading.blocks.next_turn), timestamp=world.clock.tick(), facts=None)
        blocks = complete_turn(reading.blocks, turn, world.clock.now())
        change = a_change(f"new_{number}", kind="age", value=f"{number}")
        world.ledger.write(
            world.store, CONVERSATION, reading, blocks, actor="x", turn=turn.turn_id, changes=[change]
        )

    assert said(world) == [*known, ("person", "age", "1"), ("person", "age", "2")]
    assert world.store.fact_changes(CONVERSATION.id)[: len(meant)] == meant
    facts = current_facts(world.store.fact_changes(CONVERSATION.id))
    assert world.read().blocks.active_session.facts == view(facts)


def test_a_write_without_a_change_to_facts_also_takes_over_those_of_older_blocks() -> None:
    world = LedgerWorld()
    older_blocks(world, "1.1", {"kind": "concern", "value": "fever", "turn": 1})

    world.ledger.rotate(world.store, CONVERSATION, actor="ann")
    world.take_turn()

    assert said(world) == [("person", "concern", "fever")]


def test_a_write_counts_the_changes_that_were_stored_since_the_caller_read_them() -> None:
    world = LedgerWorld()
    world.take_turn()
    reading, known = world.read(), tuple(world.store.fact_changes(CONVERSATION.id))
    theirs = a_change("theirs", kind="allergies", value="nuts")
    own = a_change("own", kind="conditions", value="asthma")
    world.store.add_fact_changes(CONVERSATION.id, [theirs])
    turn = replace(a_completed_turn(2), timestamp=world.clock.tick(), facts=None)
    blocks = complete_turn(reading.blocks, turn, world.clock.now())

    written = world.ledger.write(
        world.store, CONVERSATION, reading, blocks, actor="x", turn=2, changes=[own], known=known
    )

    assert tuple(world.store.fact_changes(CONVERSATION.id)) == (*known, theirs, own)
    assert {"nuts", "asthma"} <= {fact.value for fact in written.blocks.active_session.facts or ()}


def test_a_restored_block_shows_the_facts_that_hold_now() -> None:
    world = LedgerWorld()
    world.take_turn()
    reading = world.read()
    turn = replace(a_completed_turn(2), timestamp=world.clock.tick(), facts=None)
    change = a_change("new", kind="allergies", value="nuts")
    blocks = complete_turn(reading.blocks, turn, world.clock.now())
    world.ledger.write(world.store, CONVERSATION, reading, blocks, actor="x", turn=2, changes=[change])
    for revision in (None, 2):
        world.store.tamper(CONVERSATION.id, Label.ACTIVE_SESSION, "{", revision)

    restored = world.read().blocks.active_session

    assert [fact.value for fact in restored.facts or ()] == ["headache", "nuts"]


@pytest.mark.parametrize(
    ("actor", "decider"), [("letta:somebody", "operator"), ("letta:context_extractor", "model")]
)
def test_an_edit_of_the_facts_in_the_copy_becomes_changes(actor: str, decider: str) -> None:
    world = LedgerWorld()
    world.take_turn()
    block = world.read().stored[Label.ACTIVE_SESSION]
    text = block.text.replace('"value":"headache"', '"value":"migraine"')

    adopt(
        world.ledger,
        world.store,
        CONVERSATION,
        [ForeignChange(Label.ACTIVE_SESSION, text, block.digest, actor)],
    )
    world.take_turn(facts=None)

    (fact,) = current_facts(world.store.fact_changes(CONVERSATION.id))
    assert (fact.value, fact.decided_by) == ("migraine", decider)
    assert [each.value for each in world.read().blocks.active_session.facts or ()] == ["migraine"]
