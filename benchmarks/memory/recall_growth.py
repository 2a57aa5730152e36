"""Time per search with up to 100,000 memories of one person, and with 100,000 of a thousand people.

The texts are random words with the frequencies of a language, the vectors are random. A person's index is in
memory for all but the first search; that one reads it and is printed alone. The time of embedding the query
is not counted. The time of the processors says what a busy machine would take if it were idle.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from agents.ports import Vectors
from orchestrator.ops.clock import SystemClock
from orchestrator.recall import recipe
from orchestrator.recall.searcher import Searcher
from orchestrator.remember import indexing
from orchestrator.remember.indexing import Embeddings, Item
from orchestrator.settings import shipped_config
from orchestrator.store import migrations
from orchestrator.store.engine.database import Store
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.wire.ids import RandomIds
from tests.servers.postgres import fresh_database
from tools.servers.postgres import running_postgres

WIDTH = 384
WORDS = [f"word{number}" for number in range(20_000)]
SIZES = (1_000, 10_000, 100_000)
PEOPLE = 1_000
BATCH = 2_000
SEARCHES = 100


class RandomVectors:
    """An embedder of random vectors, the same for each text."""

    name = "random"
    width = WIDTH

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One random row of length 1 per text."""
        return random_vectors(np.random.default_rng(len(texts[0]) if texts else 0), len(texts))


def random_vectors(chance: np.random.Generator, count: int) -> Vectors:
    """Random directions."""
    vectors = chance.standard_normal((count, WIDTH), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def random_text(chance: np.random.Generator, count: int) -> str:
    """Random words; a few are frequent, most are rare."""
    places = np.minimum(chance.zipf(1.3, count) - 1, len(WORDS) - 1)
    return " ".join(WORDS[place] for place in places)


def fill(store: Store, user_id: str, count: int, chance: np.random.Generator) -> None:
    """Store memories of one person, as an import does, but with random vectors."""
    for start in range(0, count, BATCH):
        texts = [random_text(chance, 15) for _ in range(min(BATCH, count - start))]
        ids = [f"mem_{user_id}_{start + place}" for place in range(len(texts))]
        items = [
            Item(
                id,
                text,
                f"episode{(start + place) // 20}",
                None,
                new=NewMemory(content=text, user_id=user_id, id=id),
            )
            for place, (id, text) in enumerate(zip(ids, texts, strict=True))
        ]
        vectors = random_vectors(chance, len(items))
        given = Embeddings(RandomVectors.name, vectors, vectors[::-1])
        store.write_now(lambda tx, items=items, given=given: indexing.write(tx, user_id, items, given))  # type: ignore[misc]


Times = list[tuple[float, float]]
"""Milliseconds: of the clock, and of the processors."""


def measure(store: Store, people: Sequence[str], chance: np.random.Generator) -> Times:
    """How long each search takes, the first included. Each also reads the contents of what it found."""
    searcher = Searcher(store, RandomVectors(), SystemClock(), cache_bytes=2 * 10**9)
    weights = recipe.load(shipped_config() / "recall.toml").get()
    times = []
    for _ in range(SEARCHES + 1):
        text, (vector,) = random_text(chance, 6), random_vectors(chance, 1)
        person = people[int(chance.integers(len(people)))]
        began, worked = perf_counter(), process_time()
        found = searcher.search(person, text, weights, vector=vector, skip_repair=True)
        ids = [each.row.memory_id for each in found.ranking.candidates]
        store.read_now(lambda tx, person=person, ids=ids: tx.memory_index.contents(person, ids))  # type: ignore[misc]
        times.append(((perf_counter() - began) * 1000, (process_time() - worked) * 1000))
    return times


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    """An SQLite file and a PostgreSQL database."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(running_postgres())
        yield {
            "SQLite": f"sqlite:///{Path(folder) / 'growth.db'}",
            "PostgreSQL": stack.enter_context(fresh_database(server)),
        }


def main() -> None:
    """Print the median and the 99th percentile for each size on each database."""
    with databases() as urls:
        for name, url in urls.items():
            migrations.upgrade(url)
            store = Store.open(url, clock=SystemClock(), ids=RandomIds(), synchronous="OFF", connections=1)
            chance = np.random.default_rng(1)
            for size in SIZES:
                fill(store, f"person{size}", size, chance)
                _print(f"{name}, {size} of one person", measure(store, [f"person{size}"], chance))
            people = [f"one{number}" for number in range(PEOPLE)]
            for person in people:
                fill(store, person, SIZES[-1] // PEOPLE, chance)
            _print(f"{name}, {SIZES[-1]} of {PEOPLE} people", measure(store, people, chance))
            store.close_now()


def _print(what: str, times: Times) -> None:
    first, later = times[0], np.array(times[1:])
    (middle, work), (late, _) = np.percentile(later, 50, axis=0), np.percentile(later, 99, axis=0)
    print(
        f"{what:<36} first {first[0]:8.1f} ms   p50 {middle:6.2f} ms, processor {work:6.2f} ms"
        f"   p99 {late:6.2f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
