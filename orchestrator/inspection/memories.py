"""Changes memories from outside of a turn, for the API and for commands, with the traces of it."""

from typing import Any

from memory_blocks import trace
from memory_blocks.facts.changes import Decider, FactChange, Op, current_facts
from memory_blocks.facts.edits import change_facts
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.models import Conversation
from orchestrator.errors import INVALID_FIELD, AnamnesisError
from orchestrator.inspection.looks import Look, block_errors, trace_receipts
from orchestrator.remember.changing import Act, MemoryChanges
from orchestrator.remember.facts import FACT, Kept, remember_facts
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Memory
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


def correct_fact(tx: Transaction, ledger: Ledger, memory: Memory, value: str, look: Look) -> None:
    """Give a fact another value, as the person decides: in the blocks of its conversation and as a memory.

    The next answer in that conversation uses the new value, and the old one is kept as history. Raises if the
    memory is no fact, or if its conversation has changed or ended the fact meanwhile.
    """
    source: dict[str, Any] = memory.source_info or {}
    row = tx.conversations.get(str(source.get("conversation", "")))
    if memory.source_type != FACT or row is None:
        raise AnamnesisError(INVALID_FIELD, field="value", rule="only a fact has a value; change the content")
    here, store = Conversation(row.id, row.user_id, row.created_at), SqlBlockStore(tx.blocks)
    with in_transaction(tx, row.id) as write, block_errors():
        found = ledger.read(store, here, actor=look.actor)
        wanted = tuple(source.get(name) for name in ("kind", "subject", "value"))
        known = current_facts(ledger.fact_changes(store, here, found.blocks))
        fact = next((each for each in known if (each.kind, each.subject, each.value) == wanted), None)
        if fact is None:
            rule = "its conversation no longer has this fact; change the content"
            raise AnamnesisError(INVALID_FIELD, field="value", rule=rule)
        change = FactChange(
            id=tx.ids.new("fact_"),
            op=Op.REPLACE,
            target=fact.id,
            kind=fact.kind,
            subject=fact.subject,
            about=fact.about,
            value=value,
            stable=fact.stable,
            said_at=tx.now,
            decided_by=Decider.PERSON,
        )
        written = change_facts(ledger, store, here, [change], actor=look.actor)
        read = [each for each in written.receipts if each.action is trace.Action.RETRIEVED]
        trace_receipts(tx, row.id, look, read)
        for receipt in written.receipts:
            if receipt.action is not trace.Action.RETRIEVED:
                write.say(traces.of_block(receipt, tx.ids.new("trace_"), row.id))
        for kept in remember_facts(tx, row.user_id, [change]):
            trace_id = tx.ids.new("trace_")
            write.say(traces.of_kept(kept, trace_id, row.id, None, actor=look.actor, reason=look.reason))
