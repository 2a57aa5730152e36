"""A conversation's tables, made once more from nothing but its frames.

What never travels cannot be made again, and is left out where the two are compared:

- when a conversation was made, if that was asked for by a Configuration without a number, which is not kept;
- of a conversation its room, title, status, settings and last change: these are changed over HTTP, and by a
  Configuration that only opens a connection and is not kept;
- memories that no MemoryAction of this conversation made, such as those that stand for memory blocks and
  those made in the background; an empty one stands in for each that a frame names;
- what is computed from a memory: its vector;
- traces that went to nobody: what staff has read.

Turns, leases, connections, blocks and the frames themselves are no part of what is projected.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from sqlalchemy import bindparam

from orchestrator.errors import CONSTRAINT, AnamnesisError
from orchestrator.mirror import Request, record, remembered, request, subject
from orchestrator.store.database import Transaction
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
from orchestrator.store.statements import IsRow, Statement, all_of, names_of
from orchestrator.wire.codec import MOST_IN_FRAME, decode
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.messages import Body, Configuration, MemoryAction, MemoryTrace

NEVER_TRAVELS: Final[Mapping[type[IsRow], frozenset[str]]] = MappingProxyType(
    {
        Conversation: frozenset(
            ("livekit_room_name", "title", "status", "preferences", "updated_at", "deleted_at")
        ),
        Memory: frozenset(("embeddings", "embeddings_info")),
    }
)
"""The columns that no frame speaks of."""


def project(frames: Iterable[Frame], tx: Transaction) -> None:
    """Record a conversation's frames, in their order, where it is not known yet.

    Each is recorded at the moment it was stored; whose conversation it is, is told by who sent the first.
    """
    for frame in frames:
        then = Transaction(replace(tx.unit, now=frame.created_at, ids=_NoIds()))
        conversation = then.conversations.get(frame.conversation_id) or then.conversations.create(
            frame.sender or "", id=frame.conversation_id
        )
        envelope = _opened(frame)
        _stand_in(envelope.body, then, conversation)
        record(then, conversation, envelope)
        then.conversations.update(conversation.id, **{f"last_{frame.direction}_stanza_id": frame.stanza_id})


def tables(frames: Sequence[Frame], tx: Transaction) -> dict[str, list[dict[str, Any]]]:
    """What the tables hold of the conversation with these frames, without what never travels."""
    here = frames[0].conversation_id
    bodies = [_opened(frame).body for frame in frames]
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
        Memory: _rows(tx, Memory, "id", *_made(here, bodies)),
        Meta: _rows(tx, Meta, "ref", *sorted({*_subjects(here, bodies), *(m.id for m in messages)})),
    }
    kept = {kind.table.name: [_travelled(kind, row) for row in rows] for kind, rows in found.items()}
    if not isinstance(bodies[0], Configuration):
        for row in kept[Conversation.table.name]:
            del row["created_at"]
    return kept


class _NoIds:
    """What a frame means is derived from it, so nothing new is ever named."""

    def new(self, prefix: str) -> str:
        """Refuses."""
        raise AnamnesisError(CONSTRAINT, rule=f"a new id {prefix} in a projection")


def _opened(frame: Frame) -> Envelope[Body]:
    sender = cast(Literal["client", "server"], frame.direction)
    return decode(frame.payload, sender=sender, most=MOST_IN_FRAME)


def _stand_in(body: Body, tx: Transaction, conversation: Conversation) -> None:
    """A memory that was made elsewhere is there before it is named."""
    named = body.memory_id if isinstance(body, MemoryTrace | MemoryAction) else None
    if named is not None and tx.memories.ever(named) is None:
        tx.memories.add("", id=named, user_id=conversation.user_id)


def _made(conversation_id: str, bodies: Iterable[Body]) -> Iterator[str]:
    """The memories that the person made in this conversation."""
    requests = {
        body.id: None for body in bodies if isinstance(body, MemoryAction) and body.action == "create"
    }
    return (remembered(conversation_id, request) for request in requests)


def _subjects(conversation_id: str, bodies: Iterable[Body]) -> Iterator[str]:
    """What the meta of these messages is about."""
    for body in bodies:
        yield subject(body) or conversation_id
        if isinstance(body, Request):
            yield request(conversation_id, body)


def _rows(tx: Transaction, kind: type[IsRow], column: str, *values: str) -> list[Any]:
    return [row for value in values for row in tx.unit.all(_where(kind, column), value=value)]


@cache
def _where(kind: type[IsRow], column: str) -> Statement[Any]:
    is_meant = kind.table.c[column] == bindparam("value")
    return Statement(all_of(kind).where(is_meant).order_by(kind.table.c.id), kind)


def _travelled(kind: type[IsRow], row: object) -> dict[str, Any]:
    left_out = NEVER_TRAVELS.get(kind, frozenset())
    return {name: getattr(row, name) for name in names_of(kind) if name not in left_out}
