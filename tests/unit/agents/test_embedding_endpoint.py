"""The embedder that asks an OpenAI-style endpoint: what it sends, and what it refuses."""

import json
from collections.abc import Iterator

import pytest

from agents.embedders.endpoint import EmbeddingEndpoint
from agents.errors import EmbeddingFailed
from tests.support.servers.embedding_server import EmbeddingServer, embedding_server

SECRET = "my knee hurts"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


def endpoint(server: EmbeddingServer, width: int = 384) -> EmbeddingEndpoint:
    return EmbeddingEndpoint(server.url, "the key", "a-model", width, 5)


def test_it_asks_for_some_texts_at_a_time_with_model_and_key(server: EmbeddingServer) -> None:
    vectors = endpoint(server).embed([f"word{number}" for number in range(40)])

    assert vectors.shape == (40, 384)
    assert [(each["path"], each["model"], len(each["input"])) for each in server.asked] == [
        ("/v1/embeddings", "a-model", 32),
        ("/v1/embeddings", "a-model", 8),
    ]
    assert set(server.keys) == {"Bearer the key"}


def rows(*vectors: list[object]) -> str:
    return json.dumps({"data": [{"index": place, "embedding": row} for place, row in enumerate(vectors)]})


@pytest.mark.parametrize(
    ("status", "text", "rule"),
    [
        (500, SECRET, "status 500"),
        (429, "", "status 429"),
        (200, SECRET, "has not 1 vectors"),
        (200, "[]", "has not 1 vectors"),
        (200, rows(), "has not 1 vectors"),
        (200, rows([1.0]), "has not 1 vectors of 2 numbers"),
        (200, rows([1.0, 0.0], [1.0, 0.0]), "has not 1 vectors"),
        (200, rows([0.0, 0.0]), "has not 1 vectors"),
        (200, '{"data": [{"embedding": [NaN, 1]}]}', "has not 1 vectors"),
        (200, rows(["x", 1]), "has not 1 vectors"),
    ],
)
def test_other_replies_are_refused_without_quoting_anything(
    server: EmbeddingServer, status: int, text: str, rule: str
) -> None:
    server.replies.append((status, text))

    with pytest.raises(EmbeddingFailed, match=rule) as refused:
        endpoint(server, 2).embed([SECRET])

    assert SECRET not in str(refused.value)


def test_a_server_that_is_not_there_is_an_error_of_ours() -> None:
    gone = EmbeddingEndpoint("http://127.0.0.1:9/v1", "", "m", 2, 1)

    with pytest.raises(EmbeddingFailed, match="cannot be reached"):
        gone.embed(["a"])
