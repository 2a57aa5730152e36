"""What every embedder promises: equal texts give equal vectors of length 1, in order, whatever the batch."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.embedders.endpoint import EmbeddingEndpoint
from agents.embedders.prefixed import PrefixedEmbedder
from agents.embedders.remembering import RememberingEmbedder
from agents.embedders.scripted import WordEmbedder
from agents.ports import Embedder
from tests.support.brains.models import minilm
from tests.support.servers.embedding_server import embedding_server

EMBEDDERS: dict[str, Callable[[], Embedder]] = {
    "minilm": minilm,
    "words": WordEmbedder,
    "prefixed": lambda: PrefixedEmbedder(WordEmbedder(), "query: "),
    "remembering": lambda: RememberingEmbedder(WordEmbedder(), most=3),
}
TEXTS = ("I am having a headache", "8", "", "   ", "頭が痛い 🤕", "word " * 2_000, "\udc80", "a\x00b")


@pytest.fixture(params=[*EMBEDDERS, "endpoint"])
def each(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    """Each embedder."""
    if request.param in EMBEDDERS:
        yield EMBEDDERS[request.param]()
        return
    with embedding_server() as server:
        yield EmbeddingEndpoint(server.url, "key", "words", WordEmbedder().width, 5)


def test_a_row_per_text_of_length_one_and_of_the_width_it_says(each: Embedder) -> None:
    vectors = each.embed(TEXTS)

    assert vectors.shape == (len(TEXTS), each.width)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_no_texts_give_no_rows(each: Embedder) -> None:
    assert each.embed([]).shape == (0, each.width)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.sampled_from(TEXTS), max_size=9))
def test_a_vector_depends_on_its_text_alone(each: Embedder, texts: list[str]) -> None:
    together = each.embed(texts)

    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(each.embed([text])[0], vector, atol=1e-5)


def test_texts_that_share_words_are_nearer_than_others(each: Embedder) -> None:
    one, alike, other = each.embed(
        ["I have a bad headache", "a bad headache is what I have", "who pays this invoice?"]
    )

    assert one @ alike > one @ other + 0.2


def test_an_embedder_names_its_model(each: Embedder) -> None:
    assert each.name
