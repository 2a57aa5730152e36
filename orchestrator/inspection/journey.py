"""The journey of one search: which memories were candidates, which were included, and which were used.

It is computed from the stored summaries of the search. Memories that were deleted since have no content.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Memory, Retrieval

BUDGET = "budget"
IN_HISTORY = "in_history"


@dataclass(frozen=True, slots=True)
class Drop:
    """Where a memory was left out (`packaging`, `assembly`, `turn`), and why."""

    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that was found. `content` is null if it was deleted since; `signals` make the score."""

    memory_id: str
    content: str | None
    kind: str | None
    position: int
    score: float | None
    signals: dict[str, float]
    tokens: int | None
    stage: str
    role: str | None
    dropped: Drop | None


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens the context may have (null: any number) and has, by estimate."""

    limit: int | None
    used: int


@dataclass(frozen=True, slots=True)
class Counts:
    """How many memories were searched, and how many were left at each stage."""

    searched: int
    below_threshold: int
    beyond_limit: int
    candidates: int
    included: int
    final: int


@dataclass(frozen=True, slots=True)
class Journey:
    """One search from the query to what the answer was given."""

    retrieval: Retrieval
    query: str
    period: str | None
    threshold: float | None
    package_type: str | None
    budget: Budget | None
    counts: Counts
    candidates: tuple[Candidate, ...]


def counts_of(retrieval: Retrieval) -> Counts:
    """How many memories came how far."""
    found, packaging, assembly = _summaries(retrieval)
    return Counts(
        searched=int(found.get("searchedCount", 0)),
        below_threshold=int(found.get("belowMinimumCount", 0)),
        beyond_limit=int(found.get("beyondLimitCount", 0)),
        candidates=int(found.get("candidateCount", 0)),
        included=len(packaging.get("includedIds", ())),
        final=len(assembly.get("finalIds", ())),
    )


def journey_of(tx: Transaction, retrieval: Retrieval) -> Journey:
    """The journey of a stored search."""
    found, packaging, assembly = _summaries(retrieval)
    used = int(assembly.get("finalTokenCost", 0))
    return Journey(
        retrieval=retrieval,
        query=str(found.get("queryText", "")),
        period=found.get("period"),
        threshold=found.get("minimumScore"),
        package_type=packaging.get("packageType"),
        budget=Budget(assembly.get("tokenBudget"), used) if assembly else None,
        counts=counts_of(retrieval),
        candidates=tuple(_candidates(tx, retrieval)),
    )


def _candidates(tx: Transaction, retrieval: Retrieval) -> list[Candidate]:
    found, packaging, _ = _summaries(retrieval)
    details = {each["id"]: each for each in found.get("candidates", ())}
    roles: Mapping[str, str] = packaging.get("evidenceRoles", {})
    used = _used(tx, retrieval)
    shown = []
    for position, id in enumerate(found.get("candidateIds", ()), 1):
        known: Mapping[str, Any] = details.get(id, {})
        memory = _own(tx.memories.get(id), retrieval.user_id)
        stage, dropped = _way(retrieval, id, used)
        shown.append(
            Candidate(
                memory_id=id,
                content=memory.content if memory else None,
                kind=memory.source_type if memory else None,
                position=position,
                score=known.get("score"),
                signals=dict(known.get("signals", {})),
                tokens=known.get("tokens"),
                stage=stage,
                role=roles.get(id),
                dropped=dropped,
            )
        )
    return shown


def _way(retrieval: Retrieval, id: str, used: frozenset[str] | None) -> tuple[str, Drop | None]:
    """How far a candidate came, and where and why it was dropped."""
    _, packaging, assembly = _summaries(retrieval)
    if id not in packaging.get("includedIds", ()):
        reasons: Mapping[str, str] = packaging.get("dropReasons", {})
        return "candidate", Drop("packaging", reasons.get(id, "not_kept"))
    if id not in assembly.get("finalIds", ()):
        return "included", Drop("assembly", BUDGET)
    if used is not None and id not in used:
        return "final", Drop("turn", IN_HISTORY)
    return "final", None


def _used(tx: Transaction, retrieval: Retrieval) -> frozenset[str] | None:
    """The memories that the turn gave to its brain; None if the search was not for a turn."""
    if retrieval.message_id is None:
        return None
    traces = tx.traces.of_message(retrieval.message_id)
    return frozenset(each.memory_id for each in traces if each.action == "retrieved")


def _own(memory: Memory | None, user_id: str) -> Memory | None:
    return memory if memory is not None and memory.user_id == user_id else None


def _summaries(retrieval: Retrieval) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    stored: Mapping[str, Any] = retrieval.observability
    return stored.get("retrieval", {}), stored.get("packaging", {}), stored.get("assembly", {})
