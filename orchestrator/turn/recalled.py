"""What a turn does with the memories that a search found: which it uses, and how the search is recorded."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Final

from agents.ports import KNOWN, Embedded, MemoryHit, Recalled
from agents.tools.toolbox import Arguments
from agents.values import ActKind, Understanding
from memory_blocks.facts.changes import CurrentFact, Op
from memory_blocks.models import Blocks
from orchestrator.ops.clock import in_time_zone
from orchestrator.remember.known import KnownFact
from orchestrator.remember.utterances import UTTERANCE
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Retrieval
from orchestrator.turn import traces
from orchestrator.turn.outbox import ConversationWrite, Fence
from orchestrator.turn.queue import OpenTurn
from orchestrator.turn.record import ACTOR
from orchestrator.turn.services import TurnServices

_MOST_FOUND: Final = 8
_MOST_SHOWN: Final = 500
"""So many characters of a memory the tool returns."""

_ABOUT_MEMORY: Final = frozenset(
    (ActKind.MEMORY_QUESTION, ActKind.SUMMARISE, ActKind.FORGET, ActKind.CORRECT)
)

_CHANGES_MEMORY: Final = frozenset((ActKind.FORGET, ActKind.CORRECT, ActKind.UNDO))


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


def is_about_memory(understanding: Understanding) -> bool:
    """Whether a message asks for what is remembered, or to change it."""
    return any(act.kind in _ABOUT_MEMORY for act in understanding.acts)


def is_memory_request(understanding: Understanding) -> bool:
    """Whether a message asks to change what is remembered, or agrees to it."""
    asked = understanding.agreed or understanding.proposed
    return bool(asked) or any(act.kind in _CHANGES_MEMORY for act in understanding.acts)


def changes_after_asking(understanding: Understanding, facts: Sequence[CurrentFact]) -> bool:
    """Whether a reading forgets, undoes or agrees to something, or changes facts of other conversations."""
    elsewhere = {fact.id for fact in facts if fact.conversation_id is not None}
    kinds = {act.kind for act in understanding.acts}
    return (
        understanding.agreed
        or bool(understanding.proposed)
        or not kinds.isdisjoint((ActKind.FORGET, ActKind.UNDO))
        or any(each.op is not Op.ADD and each.target in elsewhere for each in understanding.changes)
    )


def beyond(blocks: Blocks, recalled: Recalled, known: Sequence[KnownFact] = ()) -> Recalled:
    """The memories that the turn uses: those found, and the facts that it was given besides.

    Messages that are still in the history are left out, because the brain reads those anyway. If the search
    was narrowed to a time, facts that were said at another time are left out, too.
    """
    in_history = {turn.user_message.message_id for turn in blocks.conversation_history.turns}
    kept = [
        hit
        for hit in recalled.memories
        if not (hit.memory_type == UTTERANCE and hit.message_id in in_history)
    ]
    found = {hit.memory_id for hit in kept}
    lowest = min((hit.score for hit in kept), default=1.0)
    given = [
        _hit(each, min(max(recalled.scores.get(each.memory.id, 0.0), 0.0), lowest))
        for each in known
        if each.memory.id not in found
        and (recalled.period is None or recalled.period.covers(each.fact.said_at))
    ]
    kept += sorted(given, key=lambda hit: -hit.score)
    return replace(
        recalled, memories=tuple(replace(hit, position=place) for place, hit in enumerate(kept, 1))
    )


def trace_found(write: ConversationWrite, recalled: Recalled, message_id: str, *, limit: int) -> None:
    """Send a trace of each memory, with at most `limit` characters of its content."""
    for hit in recalled.memories:
        trace_id = write.tx.ids.new("trace_")
        write.say(
            traces.of_memory(hit, trace_id, write.conversation.id, message_id, actor=ACTOR, limit=limit)
        )


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """The tool `search_memory` of one turn: searches the memory of the person who writes, and no other."""

    turn: OpenTurn
    fence: Fence
    services: TurnServices

    async def run(self, arguments: Arguments) -> dict[str, Any]:
        """Search, trace each memory that was found, and return them as data."""
        services, turn = self.services, self.turn
        text = str(arguments["query"])
        (vector,) = await asyncio.to_thread(services.agents.embedder.embed, [text])
        found = await services.memory.recall.search(
            Embedded(text, vector),
            turn.conversation.user_id,
            turn.conversation_id,
            zone=in_time_zone(turn.message.created_at, turn.conversation.preferences.get("time_zone")).tzinfo
            or UTC,
        )
        found = replace(found, memories=found.memories[: int(arguments.get("limit", _MOST_FOUND))])
        if found.memories:
            await services.outbox.commit(
                turn.conversation_id,
                lambda write: trace_found(
                    write, found, turn.message.id, limit=services.limits.trace_content_characters
                ),
                self.fence,
                step="recall",
            )
        dates = {"only_said": str(found.period)} if found.period else {}
        return {"memories": [_as_result(hit) for hit in found.memories], **dates}


def _as_result(hit: MemoryHit) -> dict[str, Any]:
    shown = {
        "id": hit.memory_id,
        "content": hit.content[:_MOST_SHOWN],
        "said_on": f"{hit.said_at:%Y-%m-%d}" if hit.said_at else None,
        "true_when": hit.true_when or None,
        "subject": hit.subject,
        "conversation": "an earlier one" if hit.is_elsewhere else "this one",
        "is_current": hit.is_current,
        "score": round(hit.score, 3),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _hit(known: KnownFact, score: float) -> MemoryHit:
    memory, fact = known.memory, known.fact
    return MemoryHit(
        memory_id=memory.id,
        content=memory.content,
        score=score,
        memory_type=memory.source_type,
        tags=memory.tags,
        source=f"{memory.source_type}:{fact.conversation_id}",
        role=KNOWN,
        said_at=fact.said_at,
        true_when=fact.true_when,
        conversation_id=fact.conversation_id,
        subject=fact.subject,
        is_elsewhere=True,
    )
