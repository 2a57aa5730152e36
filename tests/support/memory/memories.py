"""Long-term memories for tests: a service over a store, with the embedder that needs no model."""

import json
from collections.abc import Iterable
from typing import Any

from agents.embedders.scripted import WordEmbedder
from agents.ports import Embedder
from memory_blocks.ports import Clock
from orchestrator.ops.clock import SystemClock
from orchestrator.recall import recipe
from orchestrator.recall.context.collector import TraceConfig
from orchestrator.recall.context.result import FoundMemory
from orchestrator.recall.port import LongTermRecall
from orchestrator.recall.searcher import Searcher
from orchestrator.recall.service import MemoryService
from orchestrator.remember.importing import Progress, import_lines
from orchestrator.settings import shipped_config
from orchestrator.store.engine.database import Store
from tests.support.builders import START

EMBEDDER = WordEmbedder()


def a_service(
    store: Store,
    clock: Clock | None = None,
    tracing: TraceConfig | None = None,
    embedder: Embedder = EMBEDDER,
) -> MemoryService:
    """The search of a store, with the shipped recipes."""
    searcher = Searcher(store, embedder, clock or SystemClock(), cache_bytes=10**8)
    return MemoryService(store, searcher, recipe.load(shipped_config() / "recall.toml"), tracing=tracing)


def long_term_recall(
    store: Store, clock: Clock | None = None, embedder: Embedder = EMBEDDER
) -> LongTermRecall:
    """The recall of a turn, over a store."""
    return LongTermRecall(a_service(store, clock, embedder=embedder), token_budget=1000)


def import_texts(store: Store, person: str, *texts: str, **fields: Any) -> Progress:
    """Import texts as memories with the ids m1, m2 and so on, of one episode."""
    lines = [
        {"id": f"m{number}", "text": text, "episode": "e1", **fields} for number, text in enumerate(texts, 1)
    ]
    return imported(store, person, lines)


def imported(store: Store, person: str, lines: Iterable[Any]) -> Progress:
    """Import lines, given as objects or as text."""
    given = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    *_, progress = import_lines(store, EMBEDDER, person, given, actor="test")
    return progress


def a_memory(number: int = 1, **fields: Any) -> FoundMemory:
    """A memory as a search finds it; those with a lower number are better."""
    given: dict[str, Any] = {
        "id": f"mem{number}",
        "content": f"content {number}",
        "score": round(0.9 - number / 20, 3),
        "similarity": 0.5,
        "position": number,
        "episode": "e1",
        "said_at": START,
    }
    return FoundMemory(**given | fields)
