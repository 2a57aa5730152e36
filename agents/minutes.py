"""The minutes of a turn: what a brain tells of its own work beside its answer, for whoever asked it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

MOST_REASON: Final = 4_000
"""A longer reason is cut: it has to fit into one frame."""


@dataclass(slots=True)
class Minutes:
    """How often models were asked in a turn and what that took; why, in their words; who stood in for them.

    `stood_in` is empty, or names the reason why the local brain did what a model should have done. Where the
    model was not to be had (`given_up`), nobody asks it again in this turn. `cut` is why an answer broke off.
    """

    started: float = field(default_factory=monotonic)
    asked: int = 0
    repairs: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasons: list[str] = field(default_factory=list)
    stood_in: str = ""
    given_up: bool = False
    cut: str = ""

    def used(self, prompt_tokens: object, completion_tokens: object) -> None:
        """Count the tokens of one reply, as far as it tells them."""
        self.prompt_tokens += _count(prompt_tokens)
        self.completion_tokens += _count(completion_tokens)

    def reason(self, text: str) -> None:
        """Keep what a model gives as its reasons, within limits."""
        if text.strip():
            self.reasons.append(text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 1]}…")

    def take_reasons(self) -> list[str]:
        """What models gave as their reasons since this was asked last."""
        taken, self.reasons = self.reasons, []
        return taken


def _count(tokens: object) -> int:
    return tokens if isinstance(tokens, int) and 0 < tokens < 1_000_000_000 else 0


_of_this_turn: ContextVar[Minutes | None] = ContextVar("minutes", default=None)


@contextmanager
def taken() -> Iterator[Minutes]:
    """Minutes of all that is asked of brains during the body, in tasks begun there, too."""
    minutes = Minutes()
    token = _of_this_turn.set(minutes)
    try:
        yield minutes
    finally:
        _of_this_turn.reset(token)


def of_this_turn() -> Minutes:
    """The minutes under way; where nobody takes any, some that nobody reads."""
    return _of_this_turn.get() or Minutes()
