"""Changes to facts that somebody makes by hand, outside of a turn."""

from collections.abc import Sequence
from dataclasses import replace

from memory_blocks.facts.changes import FactChange
from memory_blocks.ledger.ledger import Ledger, WriteResult
from memory_blocks.models import Conversation, Label
from memory_blocks.ports import BlockStore


def change_facts(
    ledger: Ledger,
    store: BlockStore,
    conversation: Conversation,
    changes: Sequence[FactChange],
    *,
    actor: str,
) -> WriteResult:
    """Store these changes, and show their result in the blocks.

    Before the first turn there are no blocks yet; the first turn then shows it.
    """
    found = ledger.read(store, conversation, actor=actor)
    if not found.revisions[Label.ACTIVE_SESSION]:
        store.add_fact_changes(conversation.id, changes)
        return WriteResult(found.blocks, found.stored, found.receipts, ())
    written = ledger.write(store, conversation, found, found.blocks, actor=actor, changes=changes)
    return replace(written, receipts=(*found.receipts, *written.receipts))
