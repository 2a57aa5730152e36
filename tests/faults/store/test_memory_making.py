"""Memories are made exactly once, whatever fails in between: by `kill -9`, and by an error in one process."""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from orchestrator.ops import faults
from orchestrator.remember.creators.generation import RequestOrigin
from orchestrator.remember.ledger.files import FileLedger
from orchestrator.remember.ledger.lines import Discussion, Kind
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.ledger.tables import TableLedger
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.wire.ids import RandomIds
from tests.support.builders import HandClock
from tests.support.memory.creators import a_creator, problems, talk
from tools.setup.toolchain import CHECKOUT

ONLY_FILES = {"half_line", "before_tracker"}
OF_SUMMARIES = {"before_summary", "after_summary"}
LENGTHS = (0, 1, 3, 10, 40, 300)
WORDS = ("tea", "knee", "20 mg", "Maria", "yes", "no.", "Since May?", "ärger", "痛い", "\n", "  ")


@pytest.mark.parametrize(
    ("ledger", "kind", "reached"),
    [
        ("files", "file", set(faults.IN_MEMORIES) - {"before_tracker"}),
        ("files", "vector", set(faults.IN_MEMORIES) - {"half_line"} - OF_SUMMARIES),
        ("tables", "file", set(faults.IN_MEMORIES) - ONLY_FILES),
        ("tables", "vector", set(faults.IN_MEMORIES) - ONLY_FILES - OF_SUMMARIES),
    ],
)
def test_a_process_that_is_killed_at_any_step_loses_and_repeats_nothing(
    tmp_path: Path, ledger: str, kind: str, reached: set[str]
) -> None:
    assert reached_by_deaths(tmp_path, ledger, kind, "", 3) == reached


def test_on_postgres_a_process_that_is_killed_at_any_step_loses_and_repeats_nothing(
    tmp_path: Path, postgres_server_url: str
) -> None:
    assert reached_by_deaths(tmp_path, "tables", "file", postgres_server_url, 1) == (
        set(faults.IN_MEMORIES) - ONLY_FILES
    )


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "never"), [("file", set[str]()), ("vector", OF_SUMMARIES)])
def test_on_postgres_a_process_that_is_killed_in_longer_histories_loses_and_repeats_nothing(
    tmp_path: Path, postgres_server_url: str, kind: str, never: set[str]
) -> None:
    assert reached_by_deaths(tmp_path, "tables", kind, postgres_server_url, 3) == (
        set(faults.IN_MEMORIES) - ONLY_FILES - never
    )


def reached_by_deaths(folder: Path, ledger: str, kind: str, server: str, histories: int) -> set[str]:
    """The steps at which processes died; after each of their deaths, everything must be as it should."""
    arguments = (str(folder), ledger, kind, server, str(histories))
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.store.memory_deaths", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert [each for each in found if each[3]] == []
    return {point for point, _, died, _ in found if died}


class Broken(Exception):
    """An error in the middle of a run."""


def fail_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the step with that number raise, whichever it is."""
    left = [steps]

    def point(name: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Broken(name)

    monkeypatch.setattr(faults, "point", point)


def a_text(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.choice(LENGTHS) // 3))


async def a_model(prompt: str, caller: RequestOrigin) -> str:
    """A model that says nothing of note, in the form that is asked for."""
    if prompt.startswith("Objects"):
        return json.dumps(dict.fromkeys(("title", "summary", "entities", "key_phrases"), "Something."))
    return "The person said something."


def change_a_memory(
    chance: random.Random, store: Store, ledger: MemoryLedger, of: Discussion, kind: Kind
) -> None:
    """Delete, erase, restore or edit a random memory, as a person may at any time."""
    known = [line.memory_id for line in ledger.lines(of, kind) if line.action == "memory"]
    if not known:
        return
    id = chance.choice(known)
    changes: list[Callable[[Transaction], object]] = [
        lambda tx: tx.memories.delete(id),
        lambda tx: tx.memories.erase(id),
        lambda tx: tx.memories.update(id, content="Person: edited."),
        lambda tx: tx.memories.restore(id) if _has_content(tx, id) else None,
    ]
    store.write_now(chance.choice(changes))


def _has_content(tx: Transaction, id: str) -> bool:
    memory = tx.memories.get_even_deleted(id)
    return memory is not None and bool(memory.content)


def live(seed: int, store: Store, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A random conversation whose memories are made in runs that fail at random steps; what is wrong then."""
    chance = random.Random(seed)
    kind: Kind = chance.choice(("file", "vector"))
    of = Discussion("ann", f"conv_{seed}")
    creator, _ = a_creator(
        store,
        ledger,
        useVectorForQualityMemory=kind == "vector",
        chunkEstimatedTokenSize=chance.choice((1, 10, 50, 500)),
        lookbackMessages=chance.choice((0, 1, 3)),
        messagesBetweenChunks=chance.choice((1, 4, 10)),
        findInSearches=chance.choice((True, False)),
        complete=chance.choice((a_model, None)),
    )
    for _ in range(chance.randint(1, 5)):
        talk(store, *(a_text(chance) for _ in range(chance.randint(0, 6))), of=of)
        fail_after(chance.randint(1, 12), monkeypatch)
        with suppress(Broken):
            asyncio.run(creator.handle_discussion_id_flow(of, whole=chance.random() < 0.3))
        monkeypatch.undo()
        fail_after(chance.randint(1, 12), monkeypatch)
        with suppress(Broken):
            change_a_memory(chance, store, ledger, of, kind)
        monkeypatch.undo()
    asyncio.run(creator.handle_discussion_id_flow(of, whole=True))
    return problems(store, ledger, of, kind)


def histories(seeds: range, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """What is wrong after each of many random conversations, with the ledger in files and in tables."""
    store = Store.open(url, clock=HandClock(), ids=RandomIds(), synchronous="OFF", connections=1)
    ledgers = (FileLedger(folder / "memories"), TableLedger(store))
    found = {seed: live(seed, store, ledgers[seed % 2], monkeypatch) for seed in seeds}
    store.close_now()
    return {seed: wrong for seed, wrong in found.items() if wrong}


def test_steps_that_fail_lose_and_repeat_nothing(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = range(30) if database_url.startswith("sqlite") else range(1, 21, 2)

    assert histories(seeds, database_url, tmp_path, monkeypatch) == {}


@pytest.mark.soak
def test_steps_that_fail_lose_and_repeat_nothing_in_a_thousand_conversations(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert histories(range(1000), database_url, tmp_path, monkeypatch) == {}
