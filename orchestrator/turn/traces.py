"""Builds MemoryTraces, the messages that tell a client which memory was read or written."""

from datetime import datetime
from typing import Any, Final

from agents.ports import MemoryHit
from memory_blocks.trace import Receipt
from orchestrator.remember.facts import Kept
from orchestrator.store.rows import Trace
from orchestrator.wire.ids import ConversationId, MemoryId, MessageId, TraceId
from orchestrator.wire.messages import MemoryTrace

REMOVED: Final = "removed from the notes"
"""The content of the trace of a memory that was deleted."""


def row_of_block(receipt: Receipt, trace_id: str, conversation_id: str, at: datetime) -> Trace:
    """The stored trace of a read or write of a block outside of a turn, which belongs to no message."""
    about = of_block(receipt, trace_id, conversation_id)
    return Trace(
        id=trace_id,
        conversation_id=conversation_id,
        message_id=None,
        memory_id=receipt.memory_id,
        memory_type=about.memory_type,
        action=about.action,
        content=about.content,
        confidence=None,
        similarity_score=None,
        query_prompt=None,
        query_prompt_meta=None,
        position_in_results=None,
        actor=receipt.actor,
        meta=about.metadata,
        created_at=at,
        updated_at=at,
        deleted_at=None,
    )


def of_block(
    receipt: Receipt, trace_id: str, conversation_id: str, message_id: str | None = None
) -> MemoryTrace:
    """The trace of a read or write of a block. Without a message, it happened in the background."""
    metadata: dict[str, Any] = {
        "label": receipt.label.value,
        "agent": receipt.actor,
        "revision": receipt.revision,
        "size": receipt.size,
        "limit": receipt.limit,
        "utilization": receipt.utilization,
        "level": receipt.level.value,
        "digest": receipt.digest,
        "changed": list(receipt.changed),
    }
    if receipt.quarantined is not None:
        metadata["quarantined"] = receipt.quarantined
    if message_id is None:
        metadata["background"] = True
    return MemoryTrace(
        id=TraceId(trace_id),
        conversation_id=ConversationId(conversation_id),
        previous_id=None if message_id is None else MessageId(message_id),
        memory_id=MemoryId(receipt.memory_id),
        memory_type="memory_block",
        action=receipt.action.value,
        content=receipt.content,
        metadata=metadata,
    )


def of_memory(
    hit: MemoryHit, trace_id: str, conversation_id: str, message_id: str, *, actor: str, limit: int
) -> MemoryTrace:
    """The trace of a long-term memory that was retrieved, with at most `limit` characters of its content."""
    score = min(max(hit.score, 0.0), 1.0)  # rounding may put a cosine slightly above 1
    facts = {
        "agent": actor,
        "retrievalScore": score,
        "tags": list(hit.tags),
        "source": hit.source,
        "queryPrompt": hit.query_prompt,
        "position": hit.position,
        "role": hit.role,
        "truncated": True if len(hit.content) > limit else None,
    }
    return MemoryTrace(
        id=TraceId(trace_id),
        conversation_id=ConversationId(conversation_id),
        previous_id=MessageId(message_id),
        memory_id=MemoryId(hit.memory_id),
        memory_type=hit.memory_type,
        action="retrieved",
        content=hit.content[:limit],
        confidence=score,
        metadata={name: fact for name, fact in facts.items() if fact is not None},
    )


def of_kept(
    kept: Kept,
    trace_id: str,
    conversation_id: str,
    message_id: str | None,
    *,
    actor: str,
    reason: str | None = None,
) -> MemoryTrace:
    """The trace of a long-term memory that was stored or updated. Without a message, it was not in a turn.

    The content of a deleted memory is not shown: a line says that it was removed.
    """
    memory = kept.memory
    source: dict[str, Any] = memory.source_info or {}
    facts = {
        "agent": actor,
        "tags": list(memory.tags),
        "source": f"{memory.source_type}:{conversation_id}",
        "subject": source.get("subject"),
        "conflict": source.get("conflict"),
        "reason": reason,
        "deleted": True if memory.deleted_at else None,
        "background": True if message_id is None else None,
    }
    return MemoryTrace(
        id=TraceId(trace_id),
        conversation_id=ConversationId(conversation_id),
        previous_id=None if message_id is None else MessageId(message_id),
        memory_id=MemoryId(memory.id),
        memory_type=memory.source_type,
        action=kept.action,
        content=REMOVED if memory.deleted_at else memory.content,
        metadata={name: fact for name, fact in facts.items() if fact is not None},
    )
