"""Stores memories and searches for them with mem0: `python mem0_search.py INPUT OUTPUT FOLDER`.

It runs in mem0's own environment, so it imports nothing of this project. The input and the output are JSON.
The vectors are given, and `infer=False` asks no language model. The environment lacks the extra packages with
which mem0 compares words and entities, so it compares vectors only. Its store is a local Qdrant in `FOLDER`.
"""

import importlib
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any


class GivenVector:
    """An embedder that returns the vector it was given last."""

    vector: list[float]

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of the text that is stored or searched for now."""
        return self.vector


def search_all(given: dict[str, Any], folder: str) -> list[dict[str, Any]]:
    """Add all memories, then search for all questions: the ids found, best first, and the milliseconds."""
    embedder = GivenVector()
    mem0 = importlib.import_module("mem0").Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": f"{folder}/qdrant", "embedding_model_dims": given["width"]},
            },
            "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "history_db_path": f"{folder}/history.db",
        }
    )
    mem0.embedding_model = embedder
    for memory in given["memories"]:
        embedder.vector = memory["vector"]
        message = {"role": "user", "content": memory["text"], "name": memory["speaker"]}
        mem0.add([message], user_id=memory["person"], metadata={"line": memory["id"]}, infer=False)
    found = []
    for question in given["questions"]:
        embedder.vector = question["vector"]
        start = perf_counter()
        result = mem0.search(question["text"], top_k=given["limit"], filters={"user_id": question["person"]})
        milliseconds = (perf_counter() - start) * 1000
        ids = [each["metadata"]["line"] for each in result["results"]]
        found.append({"ids": ids, "milliseconds": milliseconds})
    mem0.close()
    return found


if __name__ == "__main__":
    source, target, folder = sys.argv[1:]
    results = search_all(json.loads(Path(source).read_text(encoding="utf-8")), folder)
    Path(target).write_text(json.dumps(results), encoding="utf-8")
