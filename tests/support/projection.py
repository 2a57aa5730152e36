"""Rebuilds the rows of a conversation from its frames alone.

Tests compare the rebuilt rows with the stored ones, to show that the frames contain everything. These values
are in no frame, so they are left out of the comparison:

- the creation time of a conversation that a Configuration without a stanza number started, because that
  frame is not stored;
- a conversation's room, title, status, settings and last change, which HTTP requests and a Configuration that
  only opens a connection may change;
- memories that no MemoryAction of this conversation created, such as those of memory blocks and those written
  in the background; an empty row replaces each that a frame names;
- the vector of a memory, which is computed;
- traces of operators, which are not sent.

Turns, leases, connections, blocks and the frames themselves are not rebuilt.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from orchestrator.errors import CONSTRAINT, AnamnesisError
from orchestrator.store.engine.database import Transaction
from orchestrator.store.engine.statements import IsRow, names_of
from orchestrator.store.frame_records import Request, created_memory_id, record, request_id, subject_of_meta
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import (
    Audio,
    Conversation,
    Frame,
    Memory,
    Message,
    Meta,
    Note,
    Sentence,
    ToolUse,
    Trace,
)
from orchestrator.wire.codec import MAX_FRAME_BYTES, decode
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.messages import Body, Configuration, MemoryAction, MemoryTrace

NOT_IN_FRAMES: Final[Mapping[type[IsRow], frozenset[str]]] = MappingProxyType(
    {
        Conversation: frozenset(
            ("livekit_room_name", "title", "status", "preferences", "updated_at", "deleted_at")
        ),
        Memory: frozenset(("embeddings", "embeddings_info")),
    }
)
"""The columns that no frame contains."""


def project(frames: Iterable[Frame], tx: Transaction) -> None:
    """Record the frames of a conversation, in order, in a database that does not have it yet.

    Each is recorded with the time at which it was stored. The owner is the sender of the first frame.
    """
    for frame in frames:
        then = Transaction(replace(tx.unit, now=frame.created_at, ids=_NoIds()))
        conversation = then.conversations.get(frame.conversation_id) or then.conversations.create(
            frame.sender or "", id=frame.conversation_id
        )
        envelope = _decode(frame)
        _add_missing_memory(envelope.body, then, conversation)
        record(then, conversation, envelope)
        then.conversations.update(conversation.id, **{f"last_{frame.direction}_stanza_id": frame.stanza_id})


def tables(frames: Sequence[Frame], tx: Transaction) -> dict[str, list[dict[str, Any]]]:
    """The rows of the conversation with these frames, without the values that no frame contains."""
    here = frames[0].conversation_id
    bodies = [_decode(frame).body for frame in frames]
    messages = _rows(tx, Message, "conversation_id", here)
    sent = {body.id for body in bodies if isinstance(body, MemoryTrace)}
    traces = _rows(tx, Trace, "conversation_id", here)
    found: dict[type[IsRow], list[Any]] = {
        Conversation: _rows(tx, Conversation, "id", here),
        Message: messages,
        Sentence: _rows(tx, Sentence, "message_id", *(message.id for message in messages)),
        Trace: [trace for trace in traces if trace.message_id or trace.id in sent],
        Note: _rows(tx, Note, "conversation_id", here),
        ToolUse: _rows(tx, ToolUse, "conversation_id", here),
        Audio: _rows(tx, Audio, "conversation_id", here),
        Memory: _rows(tx, Memory, "id", *_created_memories(here, bodies)),
        Meta: _rows(tx, Meta, "ref", *sorted({*_subjects(here, bodies), *(m.id for m in messages)})),
    }
    kept = {kind.table.name: [_in_frames(kind, row) for row in rows] for kind, rows in found.items()}
    if not isinstance(bodies[0], Configuration):
        for row in kept[Conversation.table.name]:
            del row["created_at"]
    return kept


class _NoIds:
    """Refuses to create ids, because all ids must be derived from the frames."""

    def new(self, prefix: str) -> str:
        """Raise."""
        raise AnamnesisError(CONSTRAINT, rule=f"a new id {prefix} in a projection")


def _decode(frame: Frame) -> Envelope[Body]:
    sender = cast(Literal["client", "server"], frame.direction)
    return decode(frame.payload, sender=sender, max_bytes=MAX_FRAME_BYTES)


def _add_missing_memory(body: Body, tx: Transaction, conversation: Conversation) -> None:
    """Add an empty row for a memory that a frame names and that was created elsewhere."""
    named = body.memory_id if isinstance(body, MemoryTrace | MemoryAction) else None
    if named is not None and tx.memories.get_even_deleted(named) is None:
        tx.memories.add(NewMemory(content="", id=named, user_id=conversation.user_id))


def _created_memories(conversation_id: str, bodies: Iterable[Body]) -> Iterator[str]:
    """The ids of the memories that the person created in this conversation."""
    requests = {
        body.id: None for body in bodies if isinstance(body, MemoryAction) and body.action == "create"
    }
    return (created_memory_id(conversation_id, request) for request in requests)


def _subjects(conversation_id: str, bodies: Iterable[Body]) -> Iterator[str]:
    """The ids of the rows that the meta of these messages belongs to."""
    for body in bodies:
        yield subject_of_meta(body) or conversation_id
        if isinstance(body, Request):
            yield request_id(conversation_id, body)


def _rows(tx: Transaction, kind: type[IsRow], column: str, *values: str) -> list[Any]:
    found = (tx.unit.find(kind, "id", even_deleted=True, **{column: value}) for value in values)
    return [row for rows in found for row in rows]


def _in_frames(kind: type[IsRow], row: object) -> dict[str, Any]:
    left_out = NOT_IN_FRAMES.get(kind, frozenset())
    return {name: getattr(row, name) for name in names_of(kind) if name not in left_out}
