"""Sentence embeddings by all-MiniLM-L6-v2, computed on this machine from files that lie on it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from agents.errors import ModelUnusable
from agents.ports import Vectors

WIDTH: Final = 384
_MOST_TOKENS: Final = 256  # what the model was trained on; of a longer text, the beginning counts
_BATCH: Final = 32  # larger ones are no quicker, and each needs its memory at once


class MiniLM:
    """The model, loaded once. A text's vector does not depend on the batch it comes in; it has length 1."""

    width = WIDTH

    def __init__(self, folder: Path, name: str, threads: int = 1) -> None:
        self.name = name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # it writes to stderr by itself; what fails is raised as well
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._session = onnxruntime.InferenceSession(
                folder / "model.onnx", options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # both libraries raise bare exceptions of their own making
            raise ModelUnusable(name, type(error).__name__) from None
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row per text, in the same order. Texts of like length share a batch: little is padding."""
        vectors = np.empty((len(texts), WIDTH), dtype=np.float32)
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(texts), _BATCH):
            indices = by_length[start : start + _BATCH]
            vectors[indices] = self._embed_batch([texts[index] for index in indices])
        return vectors

    def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        """The mean of the token vectors, without padding, scaled to length 1."""
        whole = [text.encode("utf-8", "replace").decode() for text in texts]  # half a character is none
        encodings = self._tokenizer.encode_batch(whole)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        tokens = np.asarray(self._session.run(["last_hidden_state"], given)[0], dtype=np.float32)
        weights = mask[:, :, np.newaxis].astype(np.float32)
        means = (tokens * weights).sum(axis=1) / weights.sum(axis=1)
        vectors: Vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors
