"""Forgets what the person asked to forget in a conversation, in the transaction of the turn."""

import re
from collections.abc import Sequence
from typing import Final

from memory_blocks.facts.changes import FactChange, Op
from orchestrator.remember.changing import Act, MemoryChanges
from orchestrator.remember.fact_folding import entries_of
from orchestrator.remember.facts import all_changes, memory_id_of
from orchestrator.remember.utterances import UTTERANCE, utterance_id
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory

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


def forget_everything(tx: Transaction, user_id: str, *, final: bool, act: str) -> Act | None:
    """Delete all memories of a person, also those that are no facts."""
    known = all_memories(tx, user_id, even_deleted=final)
    return MemoryChanges(tx, user_id, user_id).delete(*known, final=final, act=act) if known else None


def all_memories(tx: Transaction, user_id: str, *, even_deleted: bool = False) -> list[str]:
    """All memories of a person, archived or not, by their ids; erased ones are left out."""
    return [
        each.id
        for each in tx.memories.of_person_ever(user_id)
        if each.content and (even_deleted or each.deleted_at is None)
    ]


def forget(tx: Transaction, user_id: str, facts: Sequence[str], *, final: bool, act: str) -> Act | None:
    """Delete the memories of facts, what was derived from them, and the utterances that they rest on.

    The facts are named by their ids in `fact_changes`. Facts that do not last have no memory of their own;
    only the utterances are deleted then. With `final`, nothing can be brought back.
    """
    known = memories_of(tx, user_id, facts, even_deleted=final)
    return MemoryChanges(tx, user_id, user_id).delete(*known, final=final, act=act) if known else None


def delete_derived(tx: Transaction, user_id: str, facts: Sequence[str], *, act: str) -> Act | None:
    """Delete what was made from facts that are corrected, such as summaries: it says what is wrong."""
    known = memories_of(tx, user_id, facts)
    changing = MemoryChanges(tx, user_id, user_id)
    derived = changing.derived_from(*known) if known else ()
    return changing.delete(*(each.id for each in derived), act=act) if derived else None


def memories_of(
    tx: Transaction, user_id: str, facts: Sequence[str], *, even_deleted: bool = False
) -> list[str]:
    """The memories of facts and the utterances in which they were said, by their ids."""
    said = all_changes(tx, user_id)
    wanted = _with_corrections(facts, [each.change for each in said])
    messages = {each.change.message_id for each in said if each.change.id in wanted}
    ids = {utterance_id(each) for each in messages if each}
    ids |= {memory_id_of(user_id, entry) for change, entry in entries_of(said).items() if change in wanted}
    return [id for id in sorted(ids) if _exists(tx, id, even_deleted=even_deleted)]


def _with_corrections(facts: Sequence[str], changes: Sequence[FactChange]) -> set[str]:
    """The ids of these facts, of the values that they had before, and of what else was said about them."""
    found, size = set(facts), 0
    while len(found) > size:
        size = len(found)
        for change in changes:
            if change.target and (change.target in found or change.id in found):
                found |= {change.id, change.target}
    return found


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
