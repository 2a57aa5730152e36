"""Model usage of a turn: the requests to models, the tokens they cost, and why a fallback was used."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

MAX_REASONING: Final = 4_000
"""Maximum length of one piece of reasoning. Longer text is cut, because it has to fit into one frame."""


PENDING: Final = "pending"
ANSWERED: Final = "answered"
"""The outcomes of a request: not known yet, or a whole reply. Any other is the kind of `ModelTrouble`."""

DAILY_TOKENS: Final = "daily_tokens"
"""Why no model is asked for a person who has used up the tokens of a day."""


@dataclass(slots=True)
class ModelCall:
    """One request to a model, exactly as it was sent, and its outcome.

    The tokens are those that the server reported, else an estimate.
    """

    role: str
    model: str
    request: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    outcome: str = PENDING

    @property
    def digest(self) -> str:
        """The SHA-256 of the request."""
        return hashlib.sha256(self.request.encode()).hexdigest()


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has. Rather too many: English prose has four to five bytes per token."""
    return -(-len(text.encode("utf-8", "replace")) * 10 // 38)


@dataclass(slots=True)
class ModelUsage:
    """Counts model requests, their tokens and their reasoning during one turn.

    `fallback_reason` says why the fallback brain did what a model should have done; it is empty if the model
    did it. `barred_by` says why no model may be asked in this turn, `cut_reason` why an answer ended early.
    `used_own_tools` is true if an agent used tools of its own server, with which it may edit its blocks.
    """

    started: float = field(default_factory=monotonic)
    requests: int = 0
    repairs: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning: list[str] = field(default_factory=list)
    fallback_reason: str = ""
    barred_by: str = ""
    cut_reason: str = ""
    used_own_tools: bool = False
    calls: list[ModelCall] = field(default_factory=list)

    def begin_call(self, role: str, model: str, request: str) -> ModelCall:
        """Count a request that is about to be sent, and keep it."""
        self.requests += 1
        call = ModelCall(role, model, request)
        self.calls.append(call)
        return call

    def end_call(self, call: ModelCall, outcome: str, reply: str) -> None:
        """Note the outcome of a request. Where the server reported no tokens, they are estimated."""
        call.outcome = outcome
        if not call.prompt_tokens and (reply or outcome == ANSWERED):
            self.add_tokens(call, estimated_tokens(call.request), estimated_tokens(reply))

    def add_tokens(self, call: ModelCall, prompt_tokens: object, completion_tokens: object) -> None:
        """Add the token counts of one reply. Values that are not plausible counts are ignored.

        A server may report the counts several times while they grow.
        """
        prompt = max(_count(prompt_tokens) - call.prompt_tokens, 0)
        completion = max(_count(completion_tokens) - call.completion_tokens, 0)
        call.prompt_tokens += prompt
        call.completion_tokens += completion
        self.prompt_tokens += prompt
        self.completion_tokens += completion

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
