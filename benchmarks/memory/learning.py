"""Which lasting facts are kept of conversations: each memory with its words, for a reader to judge.

    python -m benchmarks.memory.learning CONVERSATIONS.jsonl > kept.jsonl

Each line of the file is one person: `{"id", "conversations": [["message", …], …], "stable": [{"whose",
"fact"}, …]}`. The product holds the conversations with the brain without a model, a day apart. Each line that
is printed is one memory of type fact, `{"id", "content", "whose", "kind", "value", "true_when", "words",
"said_at", "times_said", "current", "conflict", "ended_at", "history"}`, or with `told` one fact that the file
lists. `LEARNING` can name the file instead. How many were kept is for the reader to count: no rule here
decides whether a memory is right.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember.facts import FACT
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.settings import load
from orchestrator.store import migrations
from orchestrator.wiring import build_monitor
from tests.support.brains.models import minilm
from tests.support.builders import HandClock
from tests.support.orchestrators import ANN, an_orchestrator, local_brain
from tests.support.protocol_client import conversing

DAY: Final = 86_400
_FIELDS: Final = ("kind", "subject", "value", "true_when", "words", "said_at", "times_said")
_MARKS: Final = ("current", "conflict", "ended_at", "history")
_MOST: Final = 1000


def main(path: str = "") -> None:
    """Print what is kept of each person's conversations."""
    path = path or os.environ.get("LEARNING", "")
    if not path:
        print("LEARNING names no file; learning is not measured.")
        return
    logs.configure("error")
    monitor = build_monitor(load(environment={}), minilm())
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.strip():
            case = json.loads(line)
            for kept in asyncio.run(_kept(case["conversations"], monitor)):
                print(json.dumps({"id": case["id"], **kept}, ensure_ascii=False))
            for told in case.get("stable", ()):
                print(json.dumps({"id": case["id"], "told": told}, ensure_ascii=False), flush=True)


async def _kept(conversations: Sequence[Sequence[str]], monitor: SafetyMonitor) -> list[dict[str, Any]]:
    clock = HandClock()
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/store.db"
        migrations.upgrade(url)
        orchestrator = an_orchestrator(url, local_brain(), monitor=monitor, clock=clock, remembers=True)
        async with orchestrator.open():
            for messages in conversations:
                async with conversing(orchestrator) as peer:
                    for message in messages:
                        clock.tick()
                        await peer.ask(message)
                clock.tick(DAY)
            return list(await _memories(orchestrator))


async def _memories(orchestrator: Orchestrator) -> Iterator[dict[str, Any]]:
    found = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, FACT, limit=_MOST))
    return (_as_line(each.content, each.source_info or {}) for each in found)


def _as_line(content: str, source: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: source[name] for name in (*_FIELDS, *_MARKS) if name in source}
    return {"content": content, "whose": named.pop("subject", ""), **named}


if __name__ == "__main__":
    main(*sys.argv[1:2])
