"""Finds stored blocks that are not valid, puts them into quarantine, and restores the last valid revision."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from memory_blocks import agreement, edits, schema, summary_text, trace, trace_text
from memory_blocks.errors import BlockInvalid
from memory_blocks.facts.changes import current_facts
from memory_blocks.ledger.revisions import next_revision, stored_after
from memory_blocks.limits import Limits, utilization
from memory_blocks.models import Blocks, Conversation, Label, Model, from_texts, parse, render
from memory_blocks.ports import BlockStore, StoredBlock
from memory_blocks.trace import Action, Receipt

NOT_AS_WRITTEN: Final = "is not what was written"


# --- finding ----------------------------------------------------------------------------------------------


def load_blocks(
    stored: Mapping[Label, StoredBlock], conversation: Conversation
) -> tuple[Blocks | None, dict[Label, str]]:
    """The blocks, if each is valid by itself; else None, and per invalid block the path and the rule."""
    values: dict[str, Any] = {}
    faults = {}
    for label, block in stored.items():
        try:
            values[label.value] = parse_stored(label, block, conversation)
        except BlockInvalid as refused:
            faults[label] = _reason(refused)
    return None if faults else Blocks(**values), faults


def parse_stored(label: Label, block: StoredBlock, conversation: Conversation) -> Model | str:
    """The block in a stored text; `BlockInvalid` if the text was tampered with or breaks a rule."""
    if block.revision and trace.digest(block.text) != block.digest:
        raise BlockInvalid(label, "$", NOT_AS_WRITTEN)
    return _parse_own(label, block.text, conversation)


def invalid_reason(label: Label, text: str) -> str | None:
    """The path and the rule by which a text is not a valid block; None if it is valid."""
    try:
        _parse(label, text)
    except BlockInvalid as refused:
        return _reason(refused)
    return None


def parse_if_valid(label: Label, text: str) -> Model | str | None:
    """The block in a text; None if it is not a valid block."""
    try:
        return _parse(label, text)
    except BlockInvalid:
        return None


def disagreements(
    store: BlockStore, conversation: Conversation, blocks: Blocks, limits: Limits
) -> dict[Label, str]:
    """Which blocks, each valid by itself, contradict the others; with the path and the rule."""
    if not limits.validation_enabled:
        return {}
    found: dict[Label, str] = {}
    for label, path, rule in agreement.disagreements(blocks):
        found.setdefault(label, f"{path}: {rule}")
    history = blocks.conversation_history
    archived = history.total_turns - len(history.turns)
    if found and archived != store.last_archived_turn(conversation.id):
        return {Label.CONVERSATION_HISTORY: "turns: does not begin after the turns that are archived"}
    return found


def departures(label: Label, block: StoredBlock, limits: Limits) -> Iterator[schema.Departure]:
    """Every rule that a stored block breaks by itself."""
    if trace.digest(block.text) != block.digest:
        yield "$", NOT_AS_WRITTEN
    yield from schema.departures(label, block.text, limits)


def _parse_own(label: Label, text: str, conversation: Conversation) -> Model | str:
    block = _parse(label, text)
    for path, rule in agreement.wrong_owner(block, conversation):
        raise BlockInvalid(label, path, rule)
    return block


def _parse(label: Label, text: str) -> Model | str:
    block = parse(label, text)
    if label is Label.CONTEXT_SUMMARY and text:
        summary_text.parse(text)
    return block


def _reason(refused: BlockInvalid) -> str:
    return f"{refused.facts['path']}: {refused.facts['rule']}"


# --- restoring --------------------------------------------------------------------------------------------


def restore(
    store: BlockStore,
    conversation: Conversation,
    stored: Mapping[Label, StoredBlock],
    faults: Mapping[Label, str],
    limits: Limits,
    actor: str,
) -> tuple[dict[Label, StoredBlock], tuple[Receipt, ...]]:
    """Put the faulty blocks into quarantine and write their last valid text as a new revision.

    The other blocks are rewritten where they have to change to agree with it.
    """
    kept = {
        label: store.quarantine(conversation.id, label, stored[label].text, reason=why, actor=actor)
        for label, why in faults.items()
    }
    empty = edits.empty(conversation, limits)
    valid = {
        label: _last_valid(store, conversation, label, stored[label].text) or render(label, empty)
        if label in faults
        else stored[label].text
        for label in Label
    }
    blocks = edits.follow_history(from_texts(valid), store.last_archived_turn(conversation.id), limits)
    if changes := store.fact_changes(conversation.id):  # an earlier text has earlier facts
        blocks = edits.with_facts(blocks, current_facts(changes), limits)
    writes = [
        next_revision(label, stored[label], text, actor, restores=label in faults)
        for label in Label
        if (text := render(label, blocks)) != stored[label].text or label in faults
    ]
    store.commit(conversation.id, writes, ())
    now = dict(stored)
    receipts = []
    for write in writes:
        label = write.label
        now[label] = stored_after(write, stored[label].memory_id)
        full = utilization(len(write.text), limits.of(label))
        line = trace_text.describe_read(getattr(blocks, label.value), full)
        describe = trace_text.describe_restored if label in faults else trace_text.describe_realigned
        receipts.append(
            trace.receipt(
                label,
                now[label],
                Action.UPDATED,
                actor,
                describe(line),
                limits,
                changed=("$",),
                quarantined=kept.get(label),
            )
        )
    return now, tuple(receipts)


def _last_valid(store: BlockStore, conversation: Conversation, label: Label, faulty: str) -> str | None:
    """The latest text of a block that is valid for this conversation and is not the faulty one."""
    for each in reversed(store.revisions(conversation.id, label)):
        text = store.text_at(conversation.id, label, each.revision)
        if text is not None and text != faulty:
            try:
                _parse_own(label, text, conversation)
            except BlockInvalid:
                continue
            return text
    return None
