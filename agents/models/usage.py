"""Model usage of a turn: how often models were asked, the tokens that cost, and why a fallback was used."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

MAX_REASONING: Final = 4_000
"""Maximum length of one piece of reasoning. Longer text is cut, because it has to fit into one frame."""


@dataclass(slots=True)
class ModelUsage:
    """Counts model requests, their tokens and their reasoning during one turn.

    `fallback_reason` says why the fallback brain did what a model should have done; it is empty if the model
    did it. `cut_reason` says why an answer ended early.
    """

    started: float = field(default_factory=monotonic)
    requests: int = 0
    repairs: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning: list[str] = field(default_factory=list)
    fallback_reason: str = ""
    cut_reason: str = ""

    def add_tokens(self, prompt_tokens: object, completion_tokens: object) -> None:
        """Add the token counts of one reply. Values that are not plausible counts are ignored."""
        self.prompt_tokens += _count(prompt_tokens)
        self.completion_tokens += _count(completion_tokens)

    def add_reasoning(self, text: str) -> None:
        """Keep the reasoning that a model gave, cut to `MAX_REASONING` characters."""
        if text.strip():
            self.reasoning.append(text if len(text) <= MAX_REASONING else f"{text[: MAX_REASONING - 1]}…")

    def take_reasoning(self) -> list[str]:
        """Return the reasoning added since the last call, and clear it."""
        taken, self.reasoning = self.reasoning, []
        return taken


def _count(tokens: object) -> int:
    return tokens if isinstance(tokens, int) and 0 < tokens < 1_000_000_000 else 0


_current: ContextVar[ModelUsage | None] = ContextVar("model_usage", default=None)


@contextmanager
def record() -> Iterator[ModelUsage]:
    """Record the model usage of the `with` body, including tasks that it starts."""
    usage = ModelUsage()
    token = _current.set(usage)
    try:
        yield usage
    finally:
        _current.reset(token)


def current() -> ModelUsage:
    """Model usage of the current turn. Outside a turn, a throw-away instance."""
    return _current.get() or ModelUsage()
