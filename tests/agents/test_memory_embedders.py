"""The embedding model of long-term memory, as the settings name it."""

import numpy as np
import pytest

from orchestrator import wiring
from orchestrator.errors import MODEL_FILES_MISSING, AnamnesisError
from orchestrator.settings import load
from tests.support.brains.models import minilm


def test_minilm_is_the_model_of_the_turn() -> None:
    embedders = wiring.load_memory_embedders(load(environment={}), minilm())

    assert embedders.queries is embedders.passages is minilm()


def test_e5_reads_queries_and_passages_with_their_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "e5_files", wiring.model_files)  # files that every checkout has
    settings = load(given={"embeddings.model": "e5-small-v2"}, environment={})

    embedders = wiring.load_memory_embedders(settings, minilm())

    query, passage = minilm().embed(["query: tea", "passage: tea"])
    assert np.allclose(embedders.queries.embed(["tea"])[0], query, atol=1e-5)
    assert np.allclose(embedders.passages.embed(["tea"])[0], passage, atol=1e-5)


def test_e5_without_its_files_says_how_to_fetch_them(tmp_path: object) -> None:
    settings = load(given={"embeddings.model": "e5-small-v2", "models.dir": str(tmp_path)}, environment={})

    with pytest.raises(AnamnesisError) as refused:
        wiring.load_memory_embedders(settings, minilm())

    assert refused.value.problem is MODEL_FILES_MISSING
