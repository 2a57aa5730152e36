"""A server as the settings build it makes memories of what was said before it started."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import load
from orchestrator.store.rows import Trace
from orchestrator.wiring import build_orchestrator, open_store
from tests.support.commands import run
from tests.support.memory.creators import HERE, talk

pytestmark = pytest.mark.usefixtures("nothing_configured")

SECONDS = 60


async def test_a_server_makes_memories_in_the_background(tmp_path: Path) -> None:
    settings = load(given={"data.dir": str(tmp_path / "data"), "memory.check_seconds": 0.05}, environment={})
    store = open_store(settings)
    talk(store, *(f"Message {number}: I walked {number} km." for number in range(14)))
    await store.close()

    orchestrator = await asyncio.to_thread(build_orchestrator, settings)
    async with orchestrator.open(), asyncio.timeout(SECONDS):
        traces: list[Trace] = []
        async for _ in orchestrator.store.changes():
            traces = await orchestrator.store.read(lambda tx: tx.traces.of_conversation(HERE.id))
            if any(trace.memory_type == "summary" for trace in traces):
                break

    shown = status()
    (trace,) = [each for each in traces if each.memory_type == "summary"]
    assert (trace.action, (trace.meta or {})["background"]) == ("stored", True)
    assert (shown["behind"], shown["memories"], shown["broken"]) == (2, 1, [])


def status() -> Any:
    done = run("memory", "status", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)
