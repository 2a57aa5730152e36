"""The agents' port to long-term memory: finds memories for a turn, within the budget of its prompt."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, tzinfo

from agents.ports import Embedded, MemoryHit, Recalled
from orchestrator.errors import AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.recall.context.result import FoundMemory, RetrievalResult
from orchestrator.recall.service import MemoryService, SearchOptions

log = get_logger()


class LongTermRecall:
    """Searches the memories of the person who writes.

    If it `embeds_queries`, memory has an embedding model of its own, so the vector of the turn is not used.
    """

    def __init__(self, service: MemoryService, *, token_budget: int, embeds_queries: bool = False) -> None:
        self._service, self._token_budget = service, token_budget
        self._embeds_queries = embeds_queries

    async def search(
        self,
        query: Embedded,
        person_id: str,
        conversation_id: str,
        watched: Sequence[str] = (),
        zone: tzinfo = UTC,
    ) -> Recalled:
        """Return this person's memories that are relevant, best first. A failure finds nothing."""
        options = SearchOptions(
            mode="packed",
            token_budget=self._token_budget,
            vector=None if self._embeds_queries else query.vector,
            leave_out=query.text,
            watched=tuple(watched),
            zone=zone,
        )
        try:
            result = await asyncio.to_thread(self._service.search, person_id, query.text, options)
        except AnamnesisError as error:
            log.warning("recall_failed", error=error.problem.name)
            return Recalled()
        return as_recalled(result, query.text, conversation_id)


def as_recalled(result: RetrievalResult, query: str, here: str) -> Recalled:
    """A result in the terms of the agents; `here` is the conversation that goes on."""
    roles = result.packaging_summary.evidence_roles if result.packaging_summary else {}
    hits = tuple(
        _hit(memory, position, roles.get(memory.id), query, here)
        for position, memory in enumerate(result.memories, 1)
    )
    return Recalled(
        hits,
        result.observability,
        result.retrieval_mode,
        result.milliseconds,
        result.scores,
        result.period,
    )


def _hit(memory: FoundMemory, position: int, role: str | None, query: str, here: str) -> MemoryHit:
    conversation_id = memory.text("conversation")
    return MemoryHit(
        memory_id=memory.id,
        content=memory.content,
        score=memory.score,
        memory_type=memory.memory_type,
        tags=memory.tags,
        source=":".join(filter(None, (memory.memory_type or "memory", conversation_id))),
        query_prompt=query,
        position=position,
        role=role,
        said_at=memory.said_at,
        true_when=memory.true_when,
        conversation_id=conversation_id,
        message_id=memory.text("message"),
        subject=memory.subject,
        is_current=memory.is_current,
        is_elsewhere=conversation_id != here,
    )
