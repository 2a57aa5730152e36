"""Another embedding model: its vectors are never compared with others, and they are computed step by step."""

from collections.abc import Sequence

import pytest

from agents.embedders.scripted import WordEmbedder
from agents.errors import EmbeddingFailed
from agents.ports import Vectors
from orchestrator.errors import EMBEDDING_FAILED, AnamnesisError
from orchestrator.recall.context.result import RetrievalResult
from orchestrator.remember.reembedding import EmbeddingProgress, progress, reembed_some
from orchestrator.remember.utterances import Remembering
from orchestrator.store.engine.database import Store
from tests.support.builders import HandClock
from tests.support.memory.memories import EMBEDDER, a_service, imported

ANN, BEN = "ann", "ben"


class OtherModel(WordEmbedder):
    """A model of another width, which can fail."""

    name = "other"
    fails = False

    def __init__(self) -> None:
        super().__init__(width=48)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed as the base class does, unless it fails."""
        if self.fails:
            raise EmbeddingFailed(self.name, "it is asleep")
        self.texts += texts
        return super().embed(texts)


@pytest.fixture
def filled(store: Store) -> Store:
    for person, count in ((ANN, 50), (BEN, 3)):
        lines = [{"id": f"m{number}", "text": f"I like tea number{number}"} for number in range(count)]
        imported(store, person, lines)
    return store


def by_vector(result: RetrievalResult) -> list[bool]:
    return ["vector" in each.signals for each in result.memories]


def test_vectors_of_another_model_are_not_compared_until_they_are_computed_anew(
    filled: Store, clock: HandClock
) -> None:
    other = OtherModel()
    service = a_service(filled, clock, embedder=other)

    before = service.search(ANN, "tea number7")
    steps = []
    while reembed_some(filled, other):
        steps.append(progress(filled, "other"))
    after = service.search(ANN, "tea number7")

    assert before.memories[0].external_id == after.memories[0].external_id == "m7"
    assert not any(by_vector(before))
    assert all(by_vector(after))
    assert steps == [EmbeddingProgress("other", 32, 53), EmbeddingProgress("other", 53, 53)]


def test_computing_anew_goes_on_where_it_stopped_and_computes_nothing_twice(filled: Store) -> None:
    first, second = OtherModel(), OtherModel()

    reembed_some(filled, first)
    while reembed_some(filled, second):
        pass

    assert len(first.texts) + len(second.texts) == 2 * 53  # a text alone, and with what was said before
    assert progress(filled, "other") == EmbeddingProgress("other", 53, 53)


def test_a_memory_that_changes_meanwhile_keeps_its_newer_row(filled: Store) -> None:
    class Slow(OtherModel):
        """Lets another process change a memory while it computes."""

        def embed(self, texts: Sequence[str]) -> Vectors:
            """Change a memory, then embed."""
            imported(filled, ANN, [{"id": "m0", "text": "I like coffee"}])
            return super().embed(texts)

    reembed_some(filled, Slow())

    row = filled.read_now(lambda tx: tx.memory_index.by_external_id(ANN, "m0"))
    assert row is not None
    assert (row.model, "coffe" in row.words) == (EMBEDDER.name, True)


def test_a_model_that_fails_leaves_a_search_by_words_that_says_so(filled: Store, clock: HandClock) -> None:
    other = OtherModel()
    service = a_service(filled, clock, embedder=other)
    other.fails = True

    result = service.search(ANN, "tea number7")

    assert result.memories[0].external_id == "m7"
    assert result.observability["retrieval"]["byVectors"] is False
    with pytest.raises(AnamnesisError) as refused:
        reembed_some(filled, other)
    assert refused.value.problem is EMBEDDING_FAILED


async def test_a_server_computes_vectors_anew_in_the_background(filled: Store) -> None:
    await Remembering(filled, OtherModel()).reembed()

    assert progress(filled, "other") == EmbeddingProgress("other", 53, 53)
