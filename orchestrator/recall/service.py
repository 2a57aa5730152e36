"""Searches memories and packages what it found: the only entry point, for the turn, HTTP and commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from time import perf_counter
from typing import Any, Final

from agents.ports import Vectors
from orchestrator.ops.clock import as_text, in_time_zone
from orchestrator.recall.context.assembly import PackagingInput, finalize_packaging_trace
from orchestrator.recall.context.collector import TraceCollector, TraceConfig
from orchestrator.recall.context.packaging import conflict_groups, estimate_tokens, package
from orchestrator.recall.context.result import FoundMemory, RetrievalResult
from orchestrator.recall.context.summaries import Mode, RetrievalSummary
from orchestrator.recall.recipe import DEFAULT, Recipes
from orchestrator.recall.searcher import Found, Searcher
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK
from orchestrator.store.rows import Memory, Retrieval

URI: Final = "memory://"
"""A query that begins so names a memory, which is returned without a search."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search. `limit` and `recipe` are those of the settings unless they are given.

    `leave_out` is a text; memories that only repeat it are no results. `zone` is the person's time zone; it
    is that of their latest conversation unless it is given.
    """

    limit: int | None = None
    recipe: str | None = None
    mode: Mode = "flat"
    token_budget: int | None = None
    skip_repair: bool = False
    vector: Vectors | None = None
    leave_out: str = ""
    watched: tuple[str, ...] = ()
    zone: tzinfo | None = None


PLAIN: Final = SearchOptions()


class MemoryService:
    """Searches the memories of one person at a time. Its methods block: call them from a thread."""

    def __init__(
        self,
        store: Store,
        searcher: Searcher,
        recipes: Recipes,
        *,
        recipe: str = DEFAULT,
        tracing: TraceConfig | None = None,
    ) -> None:
        self._store, self._searcher, self._recipes = store, searcher, recipes
        self._recipe, self.tracing = recipe, tracing or TraceConfig()

    def search(self, user_id: str, query: str, options: SearchOptions = PLAIN) -> RetrievalResult:
        """Search one person's memories. Every field of the result says what happened on the way."""
        if query.startswith(URI):
            return self._by_id(user_id, query.removeprefix(URI), options.mode)
        began, trace = perf_counter(), TraceCollector(query, user_id, self.tracing)
        recipe = self._recipes.get(options.recipe or self._recipe)
        limit = options.limit or recipe.limit
        zone = options.zone or self._store.read_now(lambda tx: time_zone_of(tx, user_id))
        found = self._searcher.search(
            user_id,
            query,
            recipe,
            vector=options.vector,
            most=max(limit, recipe.candidates),
            watched=options.watched,
            skip_repair=options.skip_repair,
            zone=zone,
        )
        memories = self._with_contents(user_id, found, options.leave_out, zone)
        trace.stage("search", memories, {"recipe": recipe.name, "repaired": found.is_repaired})
        packaged = package(options.mode, query, memories, limit)
        trace.stage("packaging", packaged.memories, {"type": packaged.signal.package_type})
        retrieval = _summary(query, recipe.name, found, memories, skip_repair=options.skip_repair)
        trace.set_retrieval_summary(retrieval)
        given = PackagingInput(options.mode, memories, packaged, options.token_budget)
        packaging, assembly, final = finalize_packaging_trace(trace, given)
        trace.stage("assembly", final.memories, {"tokens": final.tokens})
        trace.finalize()
        tiers = final.tier_assignments if options.mode == "tiered" else None
        best_first = tuple(sorted(final.memories, key=lambda each: each.position))
        return RetrievalResult(
            memories=best_first,
            injection_text=final.text,
            citations=tuple(each.id for each in best_first),
            retrieval_mode=options.mode,
            tier_assignments=tiers,
            expand_ids=None if tiers is None else tuple(each.id for each in tiers if each.tier != "L2"),
            estimated_context_tokens=final.tokens,
            lesson_check=_lessons(final.memories),
            consensus_result=_consensus(final.memories),
            packaging_signal=final.signal,
            retrieval_summary=retrieval,
            packaging_summary=packaging,
            assembly_summary=assembly,
            milliseconds=(perf_counter() - began) * 1000 - found.embedding_milliseconds,
            scores=found.ranking.scores,
            period=found.period,
        )

    def search_for(
        self,
        person_id: str,
        query: str,
        *,
        limit: int | None,
        mode: Mode,
        token_budget: int | None,
        recipe: str | None,
        skip_repair: bool,
    ) -> dict[str, Any]:
        """Search for the person themselves, record it, and return the result as data."""
        options = SearchOptions(limit, recipe, mode, token_budget, skip_repair)
        result = self.search(person_id, query, options)
        if result.retrieval_summary is not None:
            self._store.write_now(
                lambda tx: tx.memory_index.record([retrieval_row(result, tx, person_id, actor=person_id)])
            )
        return result.plain()

    def _with_contents(self, user_id: str, found: Found, leave_out: str, zone: tzinfo) -> list[FoundMemory]:
        """The candidates with their contents and local times. One that was deleted meanwhile is gone."""
        candidates = found.ranking.candidates
        ids = [each.row.memory_id for each in candidates]
        contents = self._store.read_now(lambda tx: tx.memory_index.contents(user_id, ids)) if ids else {}
        unwanted = _normalised(leave_out)
        memories = [
            FoundMemory.of(each, contents[each.row.memory_id], zone)
            for each in candidates
            if each.row.memory_id in contents
        ]
        return [each for each in memories if not unwanted or _normalised(each.content) != unwanted]

    def _by_id(self, user_id: str, memory_id: str, mode: Mode) -> RetrievalResult:
        """The memory with an id, if it is this person's; no search runs, so there are no summaries."""
        memory = self._store.read_now(lambda tx: own_memory(tx, user_id, memory_id))
        if memory is None or memory.archived:
            return RetrievalResult((), "", (), mode)
        found = FoundMemory(
            id=memory.id,
            content=memory.content,
            score=1.0,
            similarity=1.0,
            position=1,
            episode="",
            importance=memory.importance,
            memory_type=memory.source_type,
            tags=memory.tags,
            said_at=memory.created_at,
            source=memory.source_info or {},
        )
        return RetrievalResult((found,), memory.content, (memory.id,), mode)


def own_memory(tx: Transaction, user_id: str, memory_id: str) -> Memory | None:
    """A memory of this person by its own id or the id of its import; None if it is deleted or not theirs."""
    imported = tx.memory_index.by_external_id(user_id, memory_id)
    memory = tx.memories.get(imported.memory_id if imported else memory_id)
    is_own = memory is not None and memory.user_id == user_id and memory.source_type != MEMORY_BLOCK
    return memory if is_own else None


def time_zone_of(tx: Transaction, user_id: str) -> tzinfo:
    """The time zone that the client of a person's latest conversation named; else UTC."""
    latest = tx.conversations.of_person(user_id, limit=1)
    return in_time_zone(tx.now, latest[0].preferences.get("time_zone") if latest else None).tzinfo or UTC


def retrieval_row(
    result: RetrievalResult,
    tx: Transaction,
    user_id: str,
    *,
    actor: str,
    conversation_id: str | None = None,
    message_id: str | None = None,
) -> Retrieval:
    """The record of a search that is stored."""
    return Retrieval(
        id=tx.ids.new("ret_"),
        user_id=user_id,
        conversation_id=conversation_id,
        message_id=message_id,
        actor=actor,
        recipe=result.retrieval_summary.recipe if result.retrieval_summary else "",
        mode=result.retrieval_mode,
        observability=result.observability,
        milliseconds=round(min(result.milliseconds, 86_400_000.0), 3),
        created_at=tx.now,
    )


def _summary(
    query: str, recipe: str, found: Found, memories: Sequence[FoundMemory], *, skip_repair: bool
) -> RetrievalSummary:
    ranking = found.ranking
    return RetrievalSummary(
        candidate_ids=tuple(each.id for each in memories),
        candidate_count=len(memories),
        query_text=query,
        skip_repair=skip_repair,
        recipe=recipe,
        searched_count=ranking.searched,
        below_minimum_count=ranking.below_minimum,
        beyond_limit_count=ranking.beyond_limit,
        minimum_score=ranking.minimum,
        period=str(found.period) if found.period else None,
        candidates=tuple(
            {
                "id": each.id,
                "score": each.score,
                "signals": dict(each.signals),
                "tokens": estimate_tokens(each.content),
                **({"externalId": each.external_id} if each.external_id else {}),
            }
            for each in memories
        ),
        by_vectors=found.by_vectors,
    )


def _lessons(memories: Sequence[FoundMemory]) -> Mapping[str, Any] | None:
    """The person's corrections among the memories: values that they replaced by others."""
    corrected = [each for each in memories if each.text("corrected_at")]
    if not corrected:
        return None
    return {"lessons": [{"id": each.id, "correctedAt": each.text("corrected_at")} for each in corrected]}


def _consensus(memories: Sequence[FoundMemory]) -> Mapping[str, Any] | None:
    """Which memories contradict each other; None if none do."""
    groups = conflict_groups(memories)
    if not groups:
        return None
    said = {each.id: as_text(each.said_at) if each.said_at else None for each in memories}
    return {"conflicts": [[{"id": id, "saidAt": said[id]} for id in group] for group in groups]}


def _normalised(text: str) -> str:
    return " ".join(text.lower().split())
