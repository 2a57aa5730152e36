"""Sentence embeddings by a model in ONNX, computed on this machine from local files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from agents.errors import ModelUnusable
from agents.ports import Vectors

MINILM_TOKENS: Final = 256
"""all-MiniLM-L6-v2 was trained on texts of this length. The rest of a longer text is ignored."""

E5_TOKENS: Final = 512
"""The same for e5-small-v2."""


class OnnxModel:
    """An embedding model, loaded once. Vectors have length 1. Safe to use from several threads."""

    def __init__(self, folder: Path, name: str, most_tokens: int = MINILM_TOKENS, threads: int = 1) -> None:
        self.name = name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # onnxruntime prints to stderr by itself; failures are raised as well
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = onnxruntime.InferenceSession(
                folder / "model.onnx", options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # both libraries raise exceptions without a common class
            raise ModelUnusable(name, type(error).__name__) from None
        self._tokenizer.enable_truncation(most_tokens)
        self._tokenizer.no_padding()
        self.width = int(self._session.get_outputs()[0].shape[-1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row per text, in the same order.

        Texts are embedded one by one. The model scales its 8-bit numbers by the largest value in a batch, so
        in a common batch the vector of a text would depend on the other texts.
        """
        vectors = np.empty((len(texts), self.width), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            row[:] = self._embed(text)
        return vectors

    def _embed(self, text: str) -> Vectors:
        """The mean of the token vectors, scaled to length 1."""
        valid = text.encode("utf-8", "replace").decode()  # the tokenizer refuses lone surrogates
        ids = np.array([self._tokenizer.encode(valid).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        tokens = np.asarray(self._session.run(["last_hidden_state"], inputs)[0], dtype=np.float32)
        mean = tokens[0].mean(axis=0)
        vector: Vectors = mean / np.linalg.norm(mean)
        return vector
