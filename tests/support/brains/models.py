"""The embedding model, loaded once per test process."""

from functools import cache

import pytest

from agents.embedders.scripted import WordEmbedder
from agents.ports import Embedded, Embedder
from agents.routing.router import Router
from agents.safety.conversation import moves
from agents.safety.conversation.moves import MoveClassifier
from agents.safety.rules.guard import Guard
from orchestrator.settings import load, shipped_config
from orchestrator.wiring import load_embedder, load_guard, load_roster, load_router


@cache
def minilm() -> Embedder:
    """The shipped model; `make setup` has fetched its files."""
    return load_embedder(load(environment={}))


@cache
def a_router() -> Router:
    """The shipped router; `make setup` has trained it."""
    return load_router(load(environment={}), load_roster(), minilm())


@cache
def the_guard() -> Guard:
    """The guard with the shipped rules; `make setup` has compiled them."""
    return load_guard(load(environment={}).models.dir)


@cache
def the_moves() -> MoveClassifier:
    """What messages after danger do, as shipped."""
    return moves.load(shipped_config() / "safety", minilm(), load(environment={}).models.dir)


def embedded(text: str, embedder: Embedder | None = None) -> Embedded:
    """A text with its vector; from the scripted embedder unless another is given."""
    return Embedded(text, (embedder or WordEmbedder()).embed([text])[0])


@pytest.fixture
def embedder() -> Embedder:
    """The shipped model, as a fixture."""
    return minilm()
