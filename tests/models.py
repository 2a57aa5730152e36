"""The embedding model, loaded once per test process."""

from functools import cache

import pytest

from agents.ports import Embedder
from orchestrator.settings import load
from orchestrator.wiring import load_embedder


@cache
def minilm() -> Embedder:
    """The model as it is shipped; `make setup` has fetched its files."""
    return load_embedder(load(environment={}))


@pytest.fixture
def embedder() -> Embedder:
    """The same, for a test to ask for."""
    return minilm()
