"""Forgets what the person asked to forget in a conversation, in the transaction of the turn."""

import re
from collections.abc import Sequence
from typing import Final

from memory_blocks.facts.changes import FactChange, Op
from orchestrator.remember.changing import MemoryChanges
from orchestrator.remember.fact_folding import entries_of
from orchestrator.remember.facts import Kept, all_changes, memory_id_of
from orchestrator.remember.utterances import UTTERANCE, utterance_id
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memories import NewMemory

_FOR_GOOD: Final = re.compile(
    r"\b(?:for good|for ?ever|permanently|irreversibly|erase|wipe|completely|with no way back)\b",
    re.IGNORECASE,
)


def is_for_good(*messages: str) -> bool:
    """Whether the person insists that nothing can be brought back."""
    return any(_FOR_GOOD.search(message) for message in messages)


def forgotten(made: Sequence[FactChange]) -> tuple[str, ...]:
    """The facts that the person asked to forget among the changes of a turn, by their ids."""
    return tuple(change.target for change in made if change.op is Op.FORGET and change.target)


def forget(tx: Transaction, user_id: str, facts: Sequence[str], *, final: bool) -> list[Kept]:
    """Delete the memories of facts, what was derived from them, and the utterances that they rest on.

    The facts are named by their ids in `fact_changes`. Facts that do not last have no memory of their own;
    only the utterances are deleted then. With `final`, nothing can be brought back.
    """
    said = all_changes(tx, user_id)
    wanted = set(facts)
    messages = {each.change.message_id for each in said if each.change.id in wanted}
    ids = {utterance_id(each) for each in messages if each}
    ids |= {memory_id_of(user_id, entry) for change, entry in entries_of(said).items() if change in wanted}
    known = [id for id in sorted(ids) if _exists(tx, id, even_deleted=final)]
    if not known:
        return []
    return list(MemoryChanges(tx, user_id, user_id).delete(*known, final=final).changed)


def leave_out(tx: Transaction, user_id: str, conversation_id: str, message_id: str) -> None:
    """Keep a request to forget something out of long-term memory, because it names what is to be forgotten.

    An empty, deleted memory takes the place of the utterance.
    """
    memory_id = utterance_id(message_id)
    if tx.memories.get_even_deleted(memory_id) is None:
        source = {"conversation": conversation_id, "message": message_id}
        tx.memories.add(
            NewMemory(
                content="",
                user_id=user_id,
                id=memory_id,
                created_by=user_id,
                source_type=UTTERANCE,
                source_info=dict(source),
            )
        )
        tx.memories.delete(memory_id, by=user_id)


def _exists(tx: Transaction, memory_id: str, *, even_deleted: bool) -> bool:
    found = tx.memories.get_even_deleted(memory_id) if even_deleted else tx.memories.get(memory_id)
    return found is not None
