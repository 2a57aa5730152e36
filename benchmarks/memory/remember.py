"""How fast memories are made without a model, and whether searches find more with them than without.

The first part runs QualityMemory with the local summariser over conversations of two lengths, with the
ledger in files; then the same with `findInSearches`, which embeds each memory. The second part searches
LoCoMo's conversations as `recall.py` does, with and without a summary of each chunk beside the messages. The
last line counts a summary as finding all messages whose words it has, although it takes one place. `LOCOMO`
names the file; without it, only the first part runs.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from agents.models.usage import estimated_tokens
from agents.ports import Embedder
from benchmarks.memory.recall import DEFAULT, FIRST, Question, conversations, evidence, interval, lines
from orchestrator.ops.clock import SystemClock
from orchestrator.recall import recipe
from orchestrator.recall.recipe import Recipe
from orchestrator.recall.searcher import Searcher
from orchestrator.remember.creators import config
from orchestrator.remember.creators.chunking import chunks
from orchestrator.remember.creators.extractive import summarise
from orchestrator.remember.creators.history import HistoryMessage
from orchestrator.remember.importing import import_lines
from orchestrator.remember.ledger.lines import Discussion
from orchestrator.settings import load, shipped_config
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.turn.outbox import Outbox
from orchestrator.wire.ids import RandomIds
from orchestrator.wiring import load_embedder
from orchestrator.workflows.building import build_creator

LENGTHS = (1000, 4000)
NOW = datetime(2024, 1, 1, tzinfo=UTC)


def main() -> None:
    """Measure the speed, then the recall."""
    embedder = load_embedder(load(None, {}))
    for embeds in (False, True):
        for messages in LENGTHS:
            with tempfile.TemporaryDirectory() as folder:
                asyncio.run(_speed(Path(folder), embedder, messages, embeds=embeds))
    path = Path(os.environ.get("LOCOMO", DEFAULT))
    if not path.exists():
        print("LOCOMO names no file; recall is not measured.")
        return
    with tempfile.TemporaryDirectory() as folder:
        _recall(folder, embedder, conversations(path))


async def _speed(folder: Path, embedder: Embedder, messages: int, *, embeds: bool) -> None:
    shipped = json.loads((shipped_config() / "memory.json").read_text())
    overlay = folder / "config"
    overlay.mkdir()
    (overlay / "memory.json").write_text(json.dumps({**shipped, "findInSearches": embeds}))
    settings = load(None, {"data.dir": str(folder)})
    store = Store.open(settings.database_url(), clock=SystemClock(), ids=RandomIds(), create=True)
    creator, _ = build_creator(settings, store, embedder, Outbox(store), None, overlay)

    def talk(tx: Transaction) -> int:
        tx.conversations.create("ann", id="conv_1")
        size = 0
        for number in range(messages // 2):
            said = (
                f"On day {number} I walked {number % 17} km and took {number % 5} tablets. My knee felt fine."
            )
            for role, text in (("user", said), ("assistant", "Thank you. How did you sleep?")):
                tx.messages.append("conv_1", role, text)
                size += estimated_tokens(text)
        return size

    tokens = store.write_now(talk)
    start = perf_counter()
    run = await creator.handle_discussion_id_flow(Discussion("ann", "conv_1"), whole=True)
    seconds = perf_counter() - start
    print(
        f"{'with' if embeds else 'without'} findInSearches:"
        f" {run.messages} messages ({tokens} tokens) in {run.chunks} chunks: {seconds:.2f} s,"
        f" {run.messages / seconds:.0f} messages per second, with traces"
    )
    await store.close()


def _recall(folder: str, embedder: Embedder, talks: Sequence[dict[str, Any]]) -> None:
    url = f"sqlite:///{folder}/bench.db"
    store = Store.open(url, clock=SystemClock(), ids=RandomIds(), create=True, synchronous="OFF")
    weights = recipe.load(shipped_config() / "recall.toml").get()
    questions: list[Question] = []
    rests_on: dict[tuple[str, str], tuple[str, ...]] = {}
    for place, each in enumerate(talks):
        given = list(lines(each["conversation"]))
        known = {json.loads(line)["id"] for line in given}
        asked = [question for question in each["qa"] if evidence(question, known)]
        vectors = embedder.embed([question["question"] for question in asked])
        summaries = _summaries(given)
        rests_on |= {(str(place), id): ids for id, (_, ids) in summaries.items()}
        more = {"raw": [], "both": [line for line, _ in summaries.values()]}
        for name in more:
            for _ in import_lines(
                store, embedder, f"{name}{place}", [*given, *more[name]], actor="benchmark"
            ):
                pass
        questions += [
            Question(
                str(place), question["question"], question["category"], evidence(question, known), vector
            )
            for question, vector in zip(asked, vectors, strict=True)
        ]
    searcher = Searcher(store, embedder, SystemClock(), cache_bytes=10**9)
    print(f"{len(questions)} questions; {embedder.name}")
    for name, says in (("raw", "messages alone"), ("both", "messages and summaries")):
        for counted in (False, True) if name == "both" else (False,):
            found = _found(searcher, questions, weights, name, rests_on if counted else {})
            shown = "  ".join(f"R@{count} {interval(found[count])}" for count in FIRST)
            print(f"{says}{', a summary finds its messages' if counted else ''}\n    {shown}", flush=True)
    store.close_now()


def _summaries(given: Sequence[str]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """For each chunk of each session: its summary, as a line to import, and the messages it has words of."""
    chosen = config.load(shipped_config() / "memory.json")
    episodes: dict[str, list[dict[str, Any]]] = {}
    for line in given:
        found = json.loads(line)
        episodes.setdefault(found["episode"], []).append(found)
    made: dict[str, tuple[str, tuple[str, ...]]] = {}
    for episode, told in episodes.items():
        said = [
            HistoryMessage(each["id"], place, "user", f"{each['speaker']}: {each['text']}", NOW)
            for place, each in enumerate(told)
        ]
        cut = chunks(
            said,
            tokens=chosen.chunk_estimated_token_size,
            lookback=0,
            least=chosen.messages_between_chunks,
            whole=True,
        )
        for chunk in cut:
            extract = summarise(chunk, chosen.memory_characters)
            if extract.body is not None:
                text = extract.body.text.replace("Person: ", "")
                id = f"S{len(made)}"
                new = {"id": id, "text": text, "date": told[0]["date"]}
                made[id] = (json.dumps({**new, "episode": f"summary:{episode}"}), extract.rests_on)
    return made


def _found(
    searcher: Searcher,
    questions: Sequence[Question],
    weights: Recipe,
    name: str,
    rests_on: dict[tuple[str, str], tuple[str, ...]],
) -> dict[int, list[float]]:
    shares: dict[int, list[float]] = {count: [] for count in FIRST}
    for question in questions:
        found = searcher.search(f"{name}{question.person}", question.text, weights, vector=question.vector)
        ids = [each.row.external_id or "" for each in found.ranking.candidates]
        for count in FIRST:
            seen = {message for id in ids[:count] for message in rests_on.get((question.person, id), (id,))}
            shares[count].append(len(question.evidence & seen) / len(question.evidence))
    return shares


if __name__ == "__main__":
    main()
