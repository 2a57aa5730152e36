"""What a turn does with the memories that a search found: which it uses, and how the search is recorded."""

from collections.abc import Callable
from dataclasses import replace

from agents.ports import Recalled
from memory_blocks.models import Blocks
from orchestrator.remember.utterances import UTTERANCE
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Retrieval
from orchestrator.turn.queue import OpenTurn
from orchestrator.turn.record import ACTOR


def search_record(turn: OpenTurn, searched: Recalled | None) -> Callable[[Transaction], Retrieval] | None:
    """Makes the stored record of a turn's search; None if nothing was searched."""
    if searched is None or not searched.observability:
        return None
    summary = searched.observability.get("retrieval", {})

    def make(tx: Transaction) -> Retrieval:
        return Retrieval(
            id=tx.ids.new("ret_"),
            user_id=turn.conversation.user_id,
            conversation_id=turn.conversation_id,
            message_id=turn.message.id,
            actor=ACTOR,
            recipe=str(summary.get("recipe", "")),
            mode=searched.mode,
            observability=dict(searched.observability),
            milliseconds=round(searched.milliseconds, 3),
            created_at=tx.now,
        )

    return make


def beyond(blocks: Blocks, recalled: Recalled) -> Recalled:
    """The memories without messages that are still in the history, because the brain reads those anyway."""
    in_history = {turn.user_message.message_id for turn in blocks.conversation_history.turns}
    kept = [
        hit
        for hit in recalled.memories
        if not (hit.memory_type == UTTERANCE and hit.message_id in in_history)
    ]
    return replace(
        recalled, memories=tuple(replace(hit, position=place) for place, hit in enumerate(kept, 1))
    )
