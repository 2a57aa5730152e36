"""Checks the blocks of a conversation against the evidence of their writes: digests, traces and archive."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from pydantic import ValidationError
from sqlalchemy import bindparam

from memory_blocks import summary_text
from memory_blocks.errors import BlockInvalid
from memory_blocks.models import ActiveSession, ConversationHistory, Label, MemoryMetadata, parse
from memory_blocks.trace import digest
from orchestrator.store.engine.database import Transaction
from orchestrator.store.engine.packing import chain_departures, unpacked
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.rows import LABELS, ArchivedTurn, Block, BlockRevision, Trace

Departure: TypeAlias = tuple[str, str, str]

_HISTORY = "conversation_history"
_SHORTENED = "characters kept in the archive] …"
_WRITES = Statement(  # including deleted traces
    all_of(Trace)
    .where(
        Trace.table.c.conversation_id == bindparam("conversation_id"),
        Trace.table.c.action != "retrieved",
    )
    .order_by(Trace.table.c.created_at, Trace.table.c.id),
    Trace,
)


class _TracedWrite(NamedTuple):
    """A write of a block as its trace describes it."""

    digest: object
    actor: object
    at: datetime


def departures(tx: Transaction, conversation_id: str, *, revisions_kept: int = 0) -> Iterator[Departure]:
    """Where blocks, revisions and archive differ from what was written: label, place and rule.

    With `revisions_kept`, older revisions may have been deleted; without it, none may.
    """
    # Read directly, with the stored digests; `tx.blocks` takes those of the revisions.
    blocks = {block.label: block for block in tx.unit.find(Block, conversation_id=conversation_id)}
    traced = _traced_writes(tx.unit.all(_WRITES, conversation_id=conversation_id))
    revisions = {label: tx.blocks.revisions(conversation_id, label) for label in LABELS}
    for label in LABELS:
        if label not in blocks:
            continue
        memory_id = blocks[label].memory_id
        writes = {revision: write for (memory, revision), write in traced.items() if memory == memory_id}
        for at, rule in chain_departures(revisions[label]):
            yield label, f"revision {at}", rule
        yield from _check_ends(blocks[label], revisions[label], max(writes, default=0), revisions_kept)
        for each, text in unpacked(revisions[label]):
            if each.revision in writes:
                yield from _check_trace(each, writes[each.revision])
            if text is not None and each.turn not in (None, _latest_turn(label, text)):
                yield label, f"revision {each.revision}", "has another turn than its text"
    yield from _check_archive(tx.blocks.archived(conversation_id), _turns_in(revisions[_HISTORY]))


def _traced_writes(traces: Sequence[Trace]) -> dict[tuple[str, int], _TracedWrite]:
    found = {}
    for trace in traces:
        about = trace.meta or {}
        revision = about.get("revision")
        if isinstance(revision, int):
            found[trace.memory_id, revision] = _TracedWrite(
                about.get("digest"), about.get("agent"), trace.created_at
            )
    return found


def _check_ends(
    block: Block, revisions: Sequence[BlockRevision], latest_traced: int, revisions_kept: int
) -> Iterator[Departure]:
    """The chain reaches from the first revision that must be kept to the current block."""
    head = block.revision or 0
    if latest_traced > head:
        yield block.label, f"revision {latest_traced}", "has a trace, but the block has an earlier revision"
    if not head:
        return
    latest = revisions[-1] if revisions else None
    if latest is None or latest.revision != head:
        yield block.label, f"revision {head}", "is missing, although it is the block's latest"
    elif not block.digest == latest.digest == digest(block.value or ""):
        yield block.label, f"revision {head}", "differs from the block"
    if revisions and revisions[0].revision > (max(1, head - revisions_kept + 1) if revisions_kept else 1):
        yield block.label, f"revision {revisions[0].revision}", "is preceded by missing revisions"


def _check_trace(revision: BlockRevision, traced: _TracedWrite) -> Iterator[Departure]:
    """The revision agrees with the trace of its write."""
    at = f"revision {revision.revision}"
    if traced.digest != revision.digest:
        yield revision.label, at, "has another digest than the trace of its write"
    if traced.actor != revision.actor:
        yield revision.label, at, "has another actor than the trace of its write"
    if traced.at != revision.created_at:
        yield revision.label, at, "has another time than the trace of its write"


def _latest_turn(label: str, text: str) -> int | None:
    """The latest turn in the text of a block; None if the text is not a valid block."""
    try:
        block = parse(Label(label), text)
        if isinstance(block, str):
            return summary_text.turn_of(summary_text.parse(block).flow[-1]) if block else None
    except (BlockInvalid, IndexError):
        return None
    if isinstance(block, ConversationHistory):
        return block.total_turns
    if isinstance(block, ActiveSession):
        return block.conversation_state.current_turn
    if isinstance(block, MemoryMetadata):
        stored = block.memory_usage.conversation_history.turns_stored
        return block.archival_info.total_archived_turns + stored
    return None


def _turns_in(revisions: Sequence[BlockRevision]) -> dict[int, str]:
    """The last text of each turn in the history."""
    texts = {}
    for _, text in unpacked(revisions):
        history = _history(text) if text is not None else None
        for turn in history.turns if history else ():
            texts[turn.turn_id] = turn.text
    return texts


def _check_archive(archived: Sequence[ArchivedTurn], texts: Mapping[int, str]) -> Iterator[Departure]:
    for at, turn in enumerate(archived, start=1):
        place = f"archived turn {turn.turn_id}"
        if turn.turn_id != at:
            yield _HISTORY, place, "is preceded by a missing turn"
            return
        text = texts.get(turn.turn_id)
        if digest(turn.value) != turn.digest:
            yield _HISTORY, place, "has another digest than its text"
        elif text is not None and _SHORTENED not in text and text != turn.value:
            yield _HISTORY, place, "differs from its text in the block"


def _history(text: str) -> ConversationHistory | None:
    """The text as a history; None if it is not valid."""
    try:
        return ConversationHistory.model_validate_json(text)
    except ValidationError:
        return None
