"""What a search returns, to the library and over HTTP alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from agents.ports import Period
from orchestrator.ops.clock import as_text
from orchestrator.recall.context.summaries import (
    AssemblySummary,
    Mode,
    PackageType,
    PackagingSummary,
    RetrievalSummary,
)
from orchestrator.recall.ranking import Candidate
from orchestrator.store.repositories.memory.index import Content


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory that a search found, with what is known about it."""

    id: str
    content: str
    score: float
    similarity: float
    position: int
    episode: str
    importance: float = 0.5
    memory_type: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    speaker: str | None = None
    said_at: datetime | None = None
    external_id: str | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    signals: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, candidate: Candidate, content: Content, zone: tzinfo = UTC) -> "FoundMemory":
        """Put a candidate and its content together, with its time in the person's time zone."""
        row = candidate.row
        return cls(
            id=row.memory_id,
            content=content.content,
            score=candidate.score,
            similarity=candidate.similarity,
            position=candidate.position,
            episode=row.episode,
            importance=row.importance,
            memory_type=row.source_type,
            title=content.title,
            tags=content.tags,
            speaker=row.speaker,
            said_at=(row.said_at or row.created_at).astimezone(zone),
            external_id=row.external_id,
            source=row.source_info or {},
            signals=candidate.signals,
        )

    @property
    def is_current(self) -> bool:
        """Whether no later value has replaced it."""
        return bool(self.source.get("current", True))

    @property
    def conflict(self) -> str | None:
        """Names the contradiction that this memory is a side of."""
        found = self.source.get("conflict")
        return found if isinstance(found, str) else None

    @property
    def members(self) -> tuple[str, ...]:
        """The memories that this one was made from."""
        found = self.source.get("members")
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @property
    def subject(self) -> str | None:
        """Whom it is about, if that is known."""
        found = self.source.get("subject")
        return found if isinstance(found, str) else None

    @property
    def true_when(self) -> str:
        """When it was true, in the person's words."""
        found = self.source.get("true_when")
        return found if isinstance(found, str) else ""

    def text(self, name: str) -> str | None:
        """A text of its source, such as the id of its conversation."""
        found = self.source.get(name)
        return found if isinstance(found, str) else None

    def plain(self) -> dict[str, Any]:
        """The memory as HTTP shows it."""
        shown = {
            "id": self.id,
            "content": self.content,
            "similarity": self.similarity,
            "score": self.score,
            "importance": self.importance,
            "position": self.position,
            "type": self.memory_type,
            "tags": list(self.tags),
            "speaker": self.speaker,
            "saidAt": as_text(self.said_at) if self.said_at else None,
            "trueWhen": self.true_when or None,
            "subject": self.subject,
            "conversationId": self.text("conversation"),
            "messageId": self.text("message"),
            "signals": dict(self.signals),
        }
        return {name: value for name, value in shown.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TierAssignment:
    """How much of a memory is in the context: L0 its headline, L1 its first sentence, L2 all of it."""

    id: str
    tier: str


@dataclass(frozen=True, slots=True)
class PackagingSignal:
    """Which package type was chosen, and why."""

    package_type: PackageType
    reason: str


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The result of every search. What does not apply is None, and is left out of `plain`."""

    memories: tuple[FoundMemory, ...]
    injection_text: str
    citations: tuple[str, ...]
    retrieval_mode: Mode
    tier_assignments: tuple[TierAssignment, ...] | None = None
    expand_ids: tuple[str, ...] | None = None
    estimated_context_tokens: int | None = None
    lesson_check: Mapping[str, Any] | None = None
    consensus_result: Mapping[str, Any] | None = None
    packaging_signal: PackagingSignal | None = None
    retrieval_summary: RetrievalSummary | None = None
    packaging_summary: PackagingSummary | None = None
    assembly_summary: AssemblySummary | None = None
    milliseconds: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    """The scores of watched memories, found or not."""
    period: Period | None = None
    """The time that the search was narrowed to."""

    @property
    def observability(self) -> dict[str, Any]:
        """The summaries of this result, in the groups of the HTTP response; missing ones are left out."""
        found = {
            "retrieval": self.retrieval_summary,
            "packaging": self.packaging_summary,
            "assembly": self.assembly_summary,
        }
        return {name: summary.plain() for name, summary in found.items() if summary is not None}

    def plain(self) -> dict[str, Any]:
        """The result as JSON values with names in camelCase. Fields without a value are left out."""
        tiers, signal = self.tier_assignments, self.packaging_signal
        shown = {
            "memories": [memory.plain() for memory in self.memories],
            "injectionText": self.injection_text,
            "citations": list(self.citations),
            "retrievalMode": self.retrieval_mode,
            "tierAssignments": None if tiers is None else [{"id": t.id, "tier": t.tier} for t in tiers],
            "expandIds": None if self.expand_ids is None else list(self.expand_ids),
            "estimatedContextTokens": self.estimated_context_tokens,
            "lessonCheck": self.lesson_check,
            "consensusResult": self.consensus_result,
            "packagingSignal": None
            if signal is None
            else {"type": signal.package_type, "reason": signal.reason},
            "retrievalSummary": self.retrieval_summary and self.retrieval_summary.plain(),
            "packagingSummary": self.packaging_summary and self.packaging_summary.plain(),
            "assemblySummary": self.assembly_summary and self.assembly_summary.plain(),
        }
        return {name: value for name, value in shown.items() if value is not None}
