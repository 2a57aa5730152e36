"""Whether the blocks of a conversation are what was written: by their chain, and by what else tells of it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from pydantic import ValidationError
from sqlalchemy import bindparam

from memory_blocks import summary_text
from memory_blocks.errors import BlockInvalid
from memory_blocks.models import ActiveSession, ConversationHistory, Label, MemoryMetadata, parse
from memory_blocks.trace import digest
from orchestrator.store.database import Transaction
from orchestrator.store.packing import chain_departures, unpacked
from orchestrator.store.rows import ArchivedTurn, Block, BlockRevision, Trace
from orchestrator.store.statements import Statement, all_of
from orchestrator.store.tables import LABELS

Departure: TypeAlias = tuple[str, str, str]

_HISTORY = "conversation_history"
_SHORTENED = "characters kept in the archive] …"
_WRITES = Statement(  # deleted ones, too: what was written stays written
    all_of(Trace)
    .where(
        Trace.table.c.conversation_id == bindparam("conversation_id"),
        Trace.table.c.action != "retrieved",
    )
    .order_by(Trace.table.c.created_at, Trace.table.c.id),
    Trace,
)
_BLOCKS = Statement(  # with the digests that stand beside the texts
    all_of(Block).where(Block.table.c.conversation_id == bindparam("conversation_id")), Block
)


class _Told(NamedTuple):
    """What the trace of a write tells of it."""

    digest: object
    actor: object
    at: datetime


def departures(tx: Transaction, conversation_id: str, *, revisions_kept: int = 0) -> Iterator[Departure]:
    """Where blocks, revisions and archive are not what was written: by label, place and rule.

    With `revisions_kept`, older revisions may be gone; without, none may.
    """
    blocks: dict[str, Block] = {
        block.label: block for block in tx.unit.all(_BLOCKS, conversation_id=conversation_id)
    }
    told = _told(tx.unit.all(_WRITES, conversation_id=conversation_id))
    revisions = {label: tx.blocks.revisions(conversation_id, label) for label in LABELS}
    for label in LABELS:
        if label not in blocks:
            continue
        memory_id = blocks[label].memory_id
        writes = {revision: write for (memory, revision), write in told.items() if memory == memory_id}
        for at, rule in chain_departures(revisions[label]):
            yield label, f"revision {at}", rule
        yield from _of_ends(blocks[label], revisions[label], max(writes, default=0), revisions_kept)
        for each, text in unpacked(revisions[label]):
            if each.revision in writes:
                yield from _of_trace(each, writes[each.revision])
            if text is not None and each.turn not in (None, _latest_turn(label, text)):
                yield label, f"revision {each.revision}", "has another turn than its text"
    yield from _of_archive(tx.blocks.archived(conversation_id), _turns_in(revisions[_HISTORY]))


def _told(traces: Sequence[Trace]) -> dict[tuple[str, int], _Told]:
    found = {}
    for trace in traces:
        about = trace.meta or {}
        revision = about.get("revision")
        if isinstance(revision, int):
            found[trace.memory_id, revision] = _Told(
                about.get("digest"), about.get("agent"), trace.created_at
            )
    return found


def _of_ends(
    block: Block, revisions: Sequence[BlockRevision], latest_told: int, revisions_kept: int
) -> Iterator[Departure]:
    """Both ends of the chain: it has to reach from the first revision that is kept to the block itself."""
    head = block.revision or 0
    if latest_told > head:
        yield block.label, f"revision {latest_told}", "is told of by a trace, and the block is an earlier one"
    if not head:
        return
    latest = revisions[-1] if revisions else None
    if latest is None or latest.revision != head:
        yield block.label, f"revision {head}", "is missing, though it is the block's latest"
    elif not block.digest == latest.digest == digest(block.value or ""):
        yield block.label, f"revision {head}", "is not what the block now says"
    if revisions and revisions[0].revision > (max(1, head - revisions_kept + 1) if revisions_kept else 1):
        yield block.label, f"revision {revisions[0].revision}", "has lost revisions before it"


def _of_trace(revision: BlockRevision, told: _Told) -> Iterator[Departure]:
    """What the trace of the write tells otherwise."""
    at = f"revision {revision.revision}"
    if told.digest != revision.digest:
        yield revision.label, at, "has another digest than the trace of its write"
    if told.actor != revision.actor:
        yield revision.label, at, "has another actor than the trace of its write"
    if told.at != revision.created_at:
        yield revision.label, at, "has another time than the trace of its write"


def _latest_turn(label: str, text: str) -> int | None:
    """The latest turn that a block knows of; None where a text is no block."""
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
    """Each turn as it last stood in the history."""
    stood = {}
    for _, text in unpacked(revisions):
        history = _history(text) if text is not None else None
        for turn in history.turns if history else ():
            stood[turn.turn_id] = turn.text
    return stood


def _of_archive(archived: Sequence[ArchivedTurn], stood: Mapping[int, str]) -> Iterator[Departure]:
    for at, turn in enumerate(archived, start=1):
        place = f"archived turn {turn.turn_id}"
        if turn.turn_id != at:
            yield _HISTORY, place, "has lost the one before it"
            return
        shown = stood.get(turn.turn_id)
        if digest(turn.value) != turn.digest:
            yield _HISTORY, place, "has another digest than its text"
        elif shown is not None and _SHORTENED not in shown and shown != turn.value:
            yield _HISTORY, place, "is not what stood in the block"


def _history(text: str) -> ConversationHistory | None:
    """The history that a text is; None for one that somebody forged badly."""
    try:
        return ConversationHistory.model_validate_json(text)
    except ValidationError:
        return None
