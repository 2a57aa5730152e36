"""Changes memories from outside of a turn, for the API and for commands, with the traces of it."""

from orchestrator.inspection.looks import Look
from orchestrator.remember.changing import Act, MemoryChanges
from orchestrator.remember.facts import Kept
from orchestrator.store.engine.database import Transaction
from orchestrator.turn import traces
from orchestrator.turn.outbox import in_transaction


def changes_by(tx: Transaction, user_id: str, look: Look) -> MemoryChanges:
    """What changes the memories of a person. Pass each act to `trace_act`, in the same transaction."""
    return MemoryChanges(tx, user_id, look.actor)


def trace_act(tx: Transaction, act: Act, look: Look) -> None:
    """Send a trace of each changed memory to the conversation that it comes from.

    The ledger has the change in any case. A memory that comes from no conversation, such as an imported one,
    has no other trace.
    """
    by_conversation: dict[str, list[Kept]] = {}
    for kept in act.changed:
        found = (kept.memory.source_info or {}).get("conversation")
        conversation = tx.conversations.get(found) if isinstance(found, str) else None
        if conversation is not None and conversation.user_id == kept.memory.user_id:
            by_conversation.setdefault(conversation.id, []).append(kept)
    for conversation_id in sorted(by_conversation):  # all writers lock in this order, so none blocks another
        with in_transaction(tx, conversation_id) as write:
            for kept in by_conversation[conversation_id]:
                trace_id = tx.ids.new("trace_")
                write.say(
                    traces.of_kept(
                        kept, trace_id, conversation_id, None, actor=look.actor, reason=look.reason
                    )
                )
