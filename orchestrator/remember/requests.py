"""The person's requests to change what is remembered: what each would change, and how it is undone.

An offer is kept until the next turn of its conversation. What was done is kept as ids only, so that it can be
undone for a while.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from agents.values import FactReading, Offer, Understanding
from memory_blocks.facts.changes import CurrentFact, Decider, FactChange, Op, current_facts, derived_id
from orchestrator.remember.changing import UNDO_DAYS, Deletion, MemoryChanges
from orchestrator.remember.fact_folding import entries_of
from orchestrator.remember.facts import FACT, all_changes, memory_id_of
from orchestrator.remember.forgetting import all_memories, memories_of
from orchestrator.remember.utterances import UTTERANCE
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Memory

_OFFER: Final = "memory_offer"
_DONE: Final = "memory_request"
_MOST_DERIVED: Final = 20
"""So many texts of derived memories an offer names."""


class _KeptOffer(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    turn: int
    offer: Offer


class _KeptRequest(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    conversation: str
    changes: tuple[str, ...]
    act: str | None = None


@dataclass(frozen=True, slots=True)
class DoneRequest:
    """A request that was carried out: its changes to facts and the act that changed memories, as ids."""

    id: str
    conversation_id: str
    changes: tuple[str, ...]
    act: str | None
    done_at: datetime


@dataclass(frozen=True, slots=True)
class Settled:
    """What a request to change memories comes to, before it is answered.

    `understanding` has the changes that are made now, `offer` those that the person is asked about.
    `undone` has the values that hold again; it is None if the person did not ask to undo anything.
    """

    understanding: Understanding
    offer: Offer | None = None
    undone: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What the answer may quote of it."""
        return (*(self.undone or ()), *(self.offer.derived if self.offer else ()))


# --- before it is done --------------------------------------------------------------------------------------


def preview(
    tx: Transaction, user_id: str, changes: Sequence[FactReading], *, for_good: bool, everything: bool = False
) -> Offer:
    """The changes with everything that goes with them. Changes nothing."""
    gone = Deletion(())
    derived = []
    changing = MemoryChanges(tx, user_id, user_id)
    forgotten = [change.target for change in changes if change.op is Op.FORGET and change.target]
    if everything:
        known = all_memories(tx, user_id, even_deleted=for_good)
    else:
        known = memories_of(tx, user_id, forgotten, even_deleted=for_good) if forgotten else []
    if known:
        gone = changing.preview(*known, even_deleted=for_good)
    others = [change.target for change in changes if change.op is not Op.FORGET and change.target]
    if others and (known := memories_of(tx, user_id, others)):
        derived = list(changing.derived_from(*known))
    with_it = {each.id: each for each in (*gone.derived, *derived)}
    utterances = [each for each in gone.everything if each.source_type == UTTERANCE]
    return Offer(
        changes=tuple(changes),
        derived=tuple(each.content for each in with_it.values())[:_MOST_DERIVED],
        messages=len(utterances),
        for_good=for_good,
        everything=everything,
    )


def must_ask(tx: Transaction, user_id: str, fact: CurrentFact) -> bool:
    """Whether a correction of this fact is asked about: it is of another conversation, or more rests on it.

    A slip of the tongue in the running conversation is corrected at once; it can be undone like the others.
    """
    if fact.conversation_id is not None:
        return True
    known = memories_of(tx, user_id, [fact.id])
    return bool(known) and bool(MemoryChanges(tx, user_id, user_id).derived_from(*known))


def save_offer(tx: Transaction, conversation_id: str, turn: int, offer: Offer | None) -> None:
    """Keep what an answer offers until the next turn, in place of any earlier offer."""
    kept = _KeptOffer(turn=turn, offer=offer).model_dump_json() if offer else None
    tx.meta.replace(f"{conversation_id}:offer", _OFFER, kept)


def open_offer(tx: Transaction, conversation_id: str, turn: int) -> Offer | None:
    """What the answer before this turn offered to change."""
    for row in tx.meta.of(f"{conversation_id}:offer"):
        try:
            kept = _KeptOffer.model_validate_json(row.value)
        except ValidationError:
            return None
        return kept.offer if kept.turn == turn - 1 else None
    return None


# --- after it was done --------------------------------------------------------------------------------------


def save_done(
    tx: Transaction, user_id: str, conversation_id: str, changes: Sequence[FactChange], act: str | None
) -> None:
    """Keep what a request changed, so that it can be undone."""
    ids = tuple(change.id for change in changes)
    kept = _KeptRequest(conversation=conversation_id, changes=ids, act=act)
    tx.meta.add(_requests_of(user_id), _DONE, kept.model_dump_json())


def done_requests(tx: Transaction, user_id: str) -> list[DoneRequest]:
    """The requests that can still be undone, the latest first."""
    found = []
    for row in reversed(tx.meta.of(_requests_of(user_id))):
        if row.created_at < tx.now - timedelta(days=UNDO_DAYS):
            break
        kept = _KeptRequest.model_validate_json(row.value)
        found.append(DoneRequest(row.id, kept.conversation, kept.changes, kept.act, row.created_at))
    return found


def withdrawals_of(tx: Transaction, done: DoneRequest) -> tuple[FactChange, ...]:
    """The changes that withdraw what a request changed."""
    outside_a_turn = {"turn": None, "message_id": None, "words": "", "said_at": tx.now}
    return tuple(
        each.model_copy(
            update={
                "id": derived_id(done.id, each.id),
                "op": Op.WITHDRAW,
                "target": each.id,
                "decided_by": Decider.PERSON,
                **outside_a_turn,
            }
        )
        for each in tx.facts.changes(done.conversation_id)
        if each.id in done.changes
    )


def forgetting(tx: Transaction, user_id: str, memories: Sequence[Memory]) -> dict[str, list[FactChange]]:
    """The changes that forget the facts of deleted memories, by the conversations that have these facts."""
    gone = {each.id for each in memories if each.source_type == FACT}
    if not gone:
        return {}
    said = all_changes(tx, user_id)
    entries = entries_of(said)
    found: dict[str, list[FactChange]] = {}
    for conversation_id in dict.fromkeys(each.conversation_id for each in said):
        own = [each.change for each in said if each.conversation_id == conversation_id]
        for fact in current_facts(own):
            entry = entries.get(fact.id)
            if entry is not None and memory_id_of(user_id, entry) in gone:
                shared = fact.model_dump(include=set(FactChange.model_fields) - {"id", "words"})
                change = FactChange(
                    **shared
                    | {
                        "id": tx.ids.new("fact_"),
                        "op": Op.FORGET,
                        "target": fact.id,
                        "turn": None,
                        "message_id": None,
                        "said_at": tx.now,
                        "decided_by": Decider.PERSON,
                    }
                )
                found.setdefault(conversation_id, []).append(change)
    return found


def values_before(tx: Transaction, user_id: str, done: DoneRequest) -> tuple[str, ...]:
    """The values that hold again after a request is undone."""
    said = {each.change.id: each.change for each in all_changes(tx, user_id)}
    targets = [said[id].target for id in done.changes if id in said]
    return tuple(dict.fromkeys(said[target].value for target in targets if target in said))


def forget_done(tx: Transaction, done: DoneRequest) -> None:
    """Remove a request that was undone, so that it is not undone twice."""
    tx.meta.remove(done.id)


def _requests_of(user_id: str) -> str:
    return f"{user_id}:requests"
