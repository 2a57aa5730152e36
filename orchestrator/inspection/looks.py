"""Who looks at a conversation from outside of a turn, and the traces of it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from memory_blocks.errors import BlockError
from memory_blocks.models import Label
from memory_blocks.trace import Receipt
from orchestrator.errors import as_ours
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.conversation.conversations import looks_id
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK
from orchestrator.store.rows import Trace
from orchestrator.turn.traces import row_of_block


@dataclass(frozen=True, slots=True)
class Look:
    """Who reads somebody's memory, and why. Staff must give a reason; people who read their own need none."""

    actor: str
    reason: str | None = None
    is_own: bool = False


def trace_receipts(tx: Transaction, conversation_id: str, look: Look, receipts: Iterable[Receipt]) -> None:
    """Store a trace for each block that was read. No frame is sent, so looking changes nothing else."""
    traces = [row_of_block(each, tx.ids.new("trace_"), conversation_id, tx.now) for each in receipts]
    tx.traces.add([_with_reason(trace, look) for trace in traces])


def trace_text(
    tx: Transaction, conversation_id: str, look: Look, what: str, *, memory_id: str | None = None
) -> None:
    """Store a trace of staff that read a text of the conversation, such as a message.

    Unless a long-term memory was read, the memory of the trace is the conversation's history. People who read
    their own texts leave no trace.
    """
    if look.is_own:
        return
    label = Label.CONVERSATION_HISTORY
    about: dict[str, Any] = {"agent": look.actor, "background": True}
    memory = tx.memories.get(memory_id) if memory_id else None
    trace = Trace(
        id=tx.ids.new("trace_"),
        conversation_id=conversation_id,
        message_id=None,
        memory_id=memory.id if memory else tx.blocks.memory_ids(conversation_id)[label],
        memory_type=memory.source_type if memory else MEMORY_BLOCK,
        action="retrieved",
        content=f"read {what}",
        confidence=None,
        similarity_score=None,
        query_prompt=None,
        query_prompt_meta=None,
        position_in_results=None,
        actor=look.actor,
        meta=about if memory else {"label": label.value, **about},
        created_at=tx.now,
        updated_at=tx.now,
        deleted_at=None,
    )
    tx.traces.add([_with_reason(trace, look)])


def trace_memory(
    tx: Transaction,
    look: Look,
    user_id: str,
    what: str,
    conversation_id: str | None = None,
    *,
    memory_id: str | None = None,
) -> None:
    """Store a trace of staff that read from a person's long-term memory. One's own reads leave none.

    A trace belongs to a conversation: to the given one, else to the person's latest. If there is none, a
    deleted one is created for it.
    """
    if look.is_own:
        return
    given = tx.conversations.get(conversation_id) if conversation_id else None
    here = given or next(iter(tx.conversations.of_person(user_id, limit=1)), None)
    trace_text(tx, here.id if here else _for_looks(tx, user_id), look, what, memory_id=memory_id)


def _for_looks(tx: Transaction, user_id: str) -> str:
    """The deleted conversation that keeps traces of staff; created the first time."""
    id = looks_id(user_id)
    if tx.conversations.get_even_deleted(id) is None:
        tx.conversations.create(user_id, id=id)
        tx.blocks.memory_ids(id)  # the memories that traces name
        tx.conversations.delete(id)
    return id


@contextmanager
def block_errors() -> Iterator[None]:
    """Raise our own error instead of one of the blocks."""
    try:
        yield
    except BlockError as error:
        problem = as_ours(error)
    else:
        return
    raise problem


def _with_reason(trace: Trace, look: Look) -> Trace:
    return replace(trace, meta={**(trace.meta or {}), "reason": look.reason}) if look.reason else trace
