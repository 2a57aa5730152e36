"""How much of the evidence of LoCoMo's questions a search finds, and how long it takes.

The conversations are imported and searched as `anamnesis memory` does it. `LOCOMO` names the file; without
it, nothing is measured. For each question, the share of its evidence among the first results is counted, and
the intervals come from drawing the questions again. With `RECALL_TUNE=1`, the weights are also chosen anew
for each conversation on the others, to estimate how well they carry over to conversations nobody has seen.
`ANAMNESIS_EMBEDDINGS_MODEL` chooses another embedding model.

At the end, mem0 stores the same memories with the same vectors, in an environment of its own, and is asked
the same questions.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.ports import Embedder, Vectors
from orchestrator.ops.clock import SystemClock
from orchestrator.recall import recipe
from orchestrator.recall.recipe import Recipe, Recipes
from orchestrator.recall.searcher import Searcher
from orchestrator.recall.service import MemoryService, SearchOptions
from orchestrator.remember.importing import import_lines
from orchestrator.settings import load, shipped_config
from orchestrator.store.engine.database import Store
from orchestrator.wire.ids import RandomIds
from orchestrator.wiring import load_embedder, load_memory_embedders, unrelated_cosine
from tools.setup.progress import SetupError, run
from tools.setup.toolchain import ensure_mem0

DEFAULT = Path(__file__).parents[3] / "shared" / "data" / "locomo-dev.json"
KINDS = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
FIRST = (1, 5, 10, 20)
DRAWS = 1000
_SIGNALS = (
    *("words", "words_window", "vector", "vector_window", "neighbour", "speaker", "episode", "date"),
    *("several_neighbour", "several_speaker", "several_difference", "several_spread"),
    *("minimum", "best_needed"),
)
ALONE = dict.fromkeys(_SIGNALS, 0.0)
METHODS: dict[str, dict[str, float]] = {
    "words alone": ALONE | {"words": 1.0},
    "vectors alone": ALONE | {"vector": 1.0},
    "plain fusion": ALONE | {"words": 1.0, "vector": 1.0},
    "ours": {},
}
GRID: dict[str, Sequence[float]] = {
    "words": (0.2, 0.35, 0.5),
    "words_window": (0.35, 0.5, 0.7),
    "vector": (0.35, 0.5, 0.7),
    "vector_window": (0.35, 0.5, 0.7),
    "neighbour": (0.2, 0.3, 0.4),
    "speaker": (0.0, 0.1, 0.2),
    "episode": (0.3, 0.5, 0.7),
    "date": (0.2, 0.3, 0.4),
    "several_speaker": (0.2, 0.3, 0.4),
    "several_neighbour": (0.0, 0.1, 0.2),
}


@dataclass(frozen=True)
class Question:
    """A question about one person's memories, and the memories that answer it."""

    person: str
    text: str
    kind: int
    evidence: frozenset[str]
    vector: Vectors


Found = dict[int, list[float]]
"""For each number of first results: the share of the evidence among them, per question."""


def conversations(path: Path) -> list[dict[str, Any]]:
    """The conversations of a LoCoMo file."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def lines(conversation: dict[str, Any]) -> Iterator[str]:
    """A conversation as the import reads it. A session is an episode."""
    number = 1
    while (date := conversation.get(f"session_{number}_date_time")) is not None:
        for turn in conversation.get(f"session_{number}", ()):
            line = {"id": turn["dia_id"], "text": turn["text"], "speaker": turn["speaker"], "date": date}
            yield json.dumps({**line, "episode": f"session_{number}"})
        number += 1


def evidence(question: dict[str, Any], known: set[str]) -> frozenset[str]:
    """The ids that a question's evidence names, as far as they exist."""
    return frozenset(id for text in question["evidence"] for id in re.findall(r"D\d+:\d+", text)) & known


def share_found(question: Question, ids: Sequence[str | None]) -> list[float]:
    """The share of a question's evidence among the first results, for each number in `FIRST`."""
    return [len(question.evidence & set(ids[:count])) / len(question.evidence) for count in FIRST]


def search_all(
    store: Store, searcher: Searcher, questions: Sequence[Question], weights: Recipe
) -> tuple[Found, list[float]]:
    """Search for every question as a user does.

    Returns the shares found, and the milliseconds of each search without the embedding of its query.
    """
    service = MemoryService(store, searcher, Recipes({weights.name: weights}), recipe=weights.name)
    rows, times = [], []
    for question in questions:
        result = service.search(
            question.person, question.text, SearchOptions(limit=max(FIRST), vector=question.vector)
        )
        ids = [each.external_id for each in result.memories]
        times.append(result.milliseconds)
        rows.append(share_found(question, ids))
    return _by_count(rows), times


def search_with_mem0(
    embedder: Embedder, given: dict[str, list[str]], questions: Sequence[Question]
) -> tuple[Found, list[float]]:
    """Let mem0 store each person's lines, and search for every question.

    Its environment has no package for words or entities, so it compares vectors only. Telemetry is off.
    Returns the shares found, and the milliseconds of each search. The vectors are computed before.
    """
    memories = []
    for person, texts in given.items():
        for line in map(json.loads, texts):
            text = f"{line['speaker']}: {line['text']}"  # as the product embeds it
            memories.append({**line, "text": text, "person": person})
    for memory, vector in zip(memories, embedder.embed([each["text"] for each in memories]), strict=True):
        memory["vector"] = vector.tolist()
    asked = [{"person": each.person, "text": each.text, "vector": each.vector.tolist()} for each in questions]
    python = ensure_mem0() / "environment" / "bin" / "python"
    script = Path(__file__).with_name("mem0_search.py")
    with tempfile.TemporaryDirectory(prefix="anamnesis-mem0-") as folder:
        source, target = Path(folder) / "input.json", Path(folder) / "output.json"
        everything = {
            "width": questions[0].vector.size,
            "limit": max(FIRST),
            "memories": memories,
            "questions": asked,
        }
        source.write_text(json.dumps(everything), encoding="utf-8")
        own = {"HOME": folder, "MEM0_DIR": folder, "MEM0_TELEMETRY": "False"}
        kept = {name: os.environ[name] for name in ("PATH", "OMP_NUM_THREADS") if name in os.environ}
        run([python, script, source, target, folder], env=kept | own, cwd=Path(folder), hint="")
        found = json.loads(target.read_text(encoding="utf-8"))
    rows = [share_found(question, each["ids"]) for question, each in zip(questions, found, strict=True)]
    return _by_count(rows), [each["milliseconds"] for each in found]


def _by_count(rows: Sequence[Sequence[float]]) -> Found:
    return {count: [row[place] for row in rows] for place, count in enumerate(FIRST)}


def interval(shares: Sequence[float]) -> str:
    """The mean, and the interval that holds 95 of 100 means of drawn questions."""
    values = np.array(shares)
    draws = np.random.default_rng(1).integers(0, len(values), (DRAWS, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), (2.5, 97.5))
    return f"{values.mean():.3f} ({low:.2f}-{high:.2f})"


def report(name: str, questions: Sequence[Question], shares: Found, times: Sequence[float]) -> None:
    """Print one method's rows: all questions, then each kind of question."""
    print(f"{name}: p50 {np.median(times):.2f} ms  p99 {np.percentile(times, 99):.2f} ms", flush=True)
    for number, kind in ((0, "all"), *KINDS.items()):
        which = [place for place, each in enumerate(questions) if number in (0, each.kind)]
        if which:
            row = "  ".join(
                f"R@{count} {interval([shares[count][place] for place in which])}" for count in FIRST
            )
            print(f"    {kind:<12} {len(which):>5}  {row}", flush=True)


def tuned(store: Store, searcher: Searcher, questions: Sequence[Question], start: Recipe) -> Recipe:
    """The weights of the grid that find most for these questions, chosen one after the other."""

    def worth(weights: Recipe) -> float:
        shares, _ = search_all(store, searcher, questions, weights)
        several = [share for share, each in zip(shares[10], questions, strict=True) if each.kind == 1]
        return float(np.mean(shares[10]) + 0.7 * np.mean(shares[5]) + 0.3 * np.mean(several))

    best, most = start, worth(start)
    for name, values in GRID.items():
        for value in values:
            tried = best.model_copy(update={name: value})
            if tried != best and (found := worth(tried)) > most:
                best, most = tried, found
    return best


def main() -> None:
    """Import every conversation for a person of its own, and search for all questions by each method."""
    path = Path(os.environ.get("LOCOMO", DEFAULT))
    if not path.exists():
        print("LOCOMO names no file; nothing is measured.")
        return
    settings = load(None, {})
    embedders = load_memory_embedders(settings, load_embedder(settings))
    shipped = recipe.load(shipped_config() / "recall.toml").get()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/bench.db"
        store = Store.open(url, clock=SystemClock(), ids=RandomIds(), create=True, synchronous="OFF")
        questions: list[Question] = []
        imported: dict[str, list[str]] = {}
        for place, each in enumerate(conversations(path)):
            person, given = f"person{place}", list(lines(each["conversation"]))
            imported[person] = given
            for _ in import_lines(store, embedders.passages, person, given, actor="benchmark"):
                pass
            known = {json.loads(line)["id"] for line in given}
            asked = [question for question in each["qa"] if evidence(question, known)]
            vectors = embedders.queries.embed([question["question"] for question in asked])
            questions += [
                Question(
                    person, question["question"], question["category"], evidence(question, known), vector
                )
                for question, vector in zip(asked, vectors, strict=True)
            ]
        searcher = Searcher(
            store, embedders.queries, SystemClock(), cache_bytes=10**9, unrelated=unrelated_cosine(settings)
        )
        search_all(store, searcher, questions, shipped)  # reads the indexes and caches the query vectors
        print(f"{len(questions)} questions; {embedders.queries.name}")
        for name, changes in METHODS.items():
            report(
                name, questions, *search_all(store, searcher, questions, shipped.model_copy(update=changes))
            )
        if os.environ.get("RECALL_TUNE"):
            _leave_one_out(store, searcher, questions, shipped)
        store.close_now()
        try:
            found = search_with_mem0(embedders.passages, imported, questions)
        except SetupError as failure:
            print(f"mem0 is not measured: {failure}")
        else:
            report("mem0, vectors only", questions, *found)


def _leave_one_out(store: Store, searcher: Searcher, questions: Sequence[Question], shipped: Recipe) -> None:
    """Choose weights on all conversations but one, and search that one, for each."""
    start = shipped.model_copy(update={name: values[len(values) // 2] for name, values in GRID.items()})
    shares: Found = {count: [] for count in FIRST}
    times: list[float] = []
    asked: list[Question] = []
    for person in sorted({each.person for each in questions}):
        others = [each for each in questions if each.person != person]
        here = [each for each in questions if each.person == person]
        found, took = search_all(store, searcher, here, tuned(store, searcher, others, start))
        for count in FIRST:
            shares[count] += found[count]
        times += took
        asked += here
    report("leave one out", asked, shares, times)


if __name__ == "__main__":
    main()
