"""Records what each stage of one search did, for offline analysis. Off unless it is switched on."""

import json
import secrets
import string
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.recall.context.result import FoundMemory
from orchestrator.recall.context.summaries import (
    AssemblySummary,
    PackagingSummary,
    RetrievalSummary,
    SearchSummary,
)

PREVIEW: Final = 80
"""So many characters of a memory are in a snapshot."""

_BASE36: Final = string.digits + string.ascii_lowercase


@dataclass(slots=True)
class TraceConfig:
    """Whether searches are traced to disk, and where."""

    enabled: bool = False
    folder: Path = Path("docs/memory-research/evaluation/traces")


class TraceCollector:
    """Collects the stages and summaries of one search. It reads its switch once, when it is made."""

    def __init__(self, query: str, user_id: str, config: TraceConfig) -> None:
        self.enabled = config.enabled
        self.query, self.user_id = query, user_id
        self.trace_id = (
            f"trace-{time.time_ns() // 1_000_000}-{''.join(secrets.choice(_BASE36) for _ in range(5))}"
        )
        self.stages: list[dict[str, Any]] = []
        self.summaries: dict[str, SearchSummary] = {}
        self._folder, self._started = config.folder, time.perf_counter()

    def stage(self, name: str, results: Sequence[FoundMemory], meta: Mapping[str, Any] | None = None) -> None:
        """Record a stage with the memories it has now."""
        self._record(name, [_snapshot(each) for each in results], meta)

    def event(self, name: str, meta: Mapping[str, Any] | None = None) -> None:
        """Record something that has no memories."""
        self._record(name, [], meta)

    def set_retrieval_summary(self, summary: RetrievalSummary) -> None:
        """Attach the summary of what the index found."""
        self._attach("retrieval", summary)

    def set_packaging_summary(self, summary: PackagingSummary) -> None:
        """Attach the summary of what was packaged."""
        self._attach("packaging", summary)

    def set_assembly_summary(self, summary: AssemblySummary) -> None:
        """Attach the summary of what fitted the budget."""
        self._attach("assembly", summary)

    def finalize(self) -> Path | None:
        """Write the trace to its own file, readable only by its owner; nothing if tracing is off."""
        if not self.enabled:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self.trace_id}.json"
        path.touch(mode=0o600)
        trace = {
            "traceId": self.trace_id,
            "query": self.query,
            "userId": self.user_id,
            "durationMs": self._milliseconds(),
            "stages": self.stages,
            **{name: summary.plain() for name, summary in self.summaries.items()},
        }
        path.write_text(json.dumps(trace, ensure_ascii=False, indent=1), encoding="utf-8")
        return path

    def _record(self, name: str, memories: list[dict[str, Any]], meta: Mapping[str, Any] | None) -> None:
        if self.enabled:
            self.stages.append(
                {
                    "name": name,
                    "count": len(memories),
                    "memories": memories,
                    "meta": dict(meta or {}),
                    "timestamp": self._milliseconds(),
                }
            )

    def _attach(self, name: str, summary: SearchSummary) -> None:
        if self.enabled:
            self.summaries[name] = summary

    def _milliseconds(self) -> int:
        return int((time.perf_counter() - self._started) * 1000)


def _snapshot(memory: FoundMemory) -> dict[str, Any]:
    preview = memory.content if len(memory.content) <= PREVIEW else memory.content[: PREVIEW - 1] + "…"
    return {
        "id": memory.id,
        "preview": preview,
        "similarity": round(memory.similarity, 4),
        "score": round(memory.score, 4),
    }
