"""The bounded cache of embeddings, and the similarities of the model."""

from collections.abc import Sequence

from agents.embedders.remembering import RememberingEmbedder
from agents.embedders.scripted import WordEmbedder
from agents.ports import Embedder, Vectors


class Counting(WordEmbedder):
    """Counts how often each text was computed."""

    def __init__(self) -> None:
        super().__init__()
        self.computed: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed as the base class does, and count."""
        self.computed.extend(texts)
        return super().embed(texts)


def test_a_repeated_text_is_not_computed_again() -> None:
    counting = Counting()
    embedder = RememberingEmbedder(counting)

    embedder.embed(["a", "b", "a"])
    embedder.embed(["b", "c"])

    assert counting.computed == ["a", "b", "c"]


def test_the_least_recently_used_text_is_dropped_first() -> None:
    counting = Counting()
    embedder = RememberingEmbedder(counting, most=2)

    for text in ("a", "b", "a", "c", "a", "b"):
        embedder.embed([text])

    assert counting.computed == ["a", "b", "c", "b"]


def test_a_batch_larger_than_the_cache_is_computed_completely() -> None:
    embedder = RememberingEmbedder(WordEmbedder(), most=2)

    assert embedder.embed(list("abcde")).shape == (5, embedder.width)


def test_the_model_gives_the_similarities_of_its_model_card(embedder: Embedder) -> None:
    same, *others = embedder.embed(
        [
            "That is a happy person",
            "That is a happy dog",
            "That is a very happy person",
            "Today is a sunny day",
        ]
    )

    assert [round(float(same @ other), 1) for other in others] == [0.7, 0.9, 0.3]
