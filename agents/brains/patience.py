"""How long a model is waited for, how often it is asked again, and when it is left alone for a while."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from agents.errors import ModelTrouble

T = TypeVar("T")

_PAUSE: Final = wait_random_exponential(multiplier=0.1, max=2)


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits of a turn: how long for one reply, between two fragments, and for all asking together."""

    reply_seconds: float = 10.0
    stall_seconds: float = 10.0
    budget_seconds: float = 20.0
    attempts: int = 3


class Breaker:
    """Lets nobody ask a backend that failed several times in a row, until it had some rest.

    After the rest one may try; the others wait for how that goes. Belongs to one loop.
    """

    def __init__(
        self,
        failures: int = 3,
        rest_seconds: float = 10.0,
        longest_rest_seconds: float = 300.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most, self._rest, self._longest = failures, rest_seconds, longest_rest_seconds
        self._clock = clock
        self._failures = 0
        self._rests_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the backend is being left alone."""
        return self._clock() < self._rests_until

    def let_through(self) -> None:
        """Go and ask, or `ModelTrouble`."""
        if self.is_open:
            raise ModelTrouble("left_alone")
        if self._failures >= self._most:
            self._rests_until = self._clock() + self._rest

    def succeeded(self) -> None:
        """It answered."""
        self._failures, self._rests_until = 0, 0.0

    def failed(self, after: float | None) -> None:
        """It did not; one that says for how long it wants to be left alone is, within limits."""
        self._failures += 1
        rest = min(after or 0.0, self._longest)
        if self._failures >= self._most:
            rest = max(rest, self._rest)
        self._rests_until = max(self._rests_until, self._clock() + rest)


async def persist(
    ask: Callable[[], Awaitable[T]], breaker: Breaker, patience: Patience, deadline: float
) -> T:
    """What `ask` gives in the end, tried again where that does no harm and the turn's budget lasts.

    The budget is used up at `deadline`. The breaker hears what came of it.
    """
    breaker.let_through()
    attempts = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, ModelTrouble) and error.again),
        stop=lambda state: (
            stop_after_attempt(patience.attempts)(state) or monotonic() + state.upcoming_sleep >= deadline
        ),
        wait=_wait,
        sleep=asyncio.sleep,
        reraise=True,
    )
    try:
        given: T = await attempts(ask)
    except ModelTrouble as trouble:
        if trouble.blamed:
            breaker.failed(trouble.after)
        raise
    breaker.succeeded()
    return given


def _wait(state: RetryCallState) -> float:
    """As long as it wants to be left alone; where it does not say, ever longer."""
    error = state.outcome.exception() if state.outcome else None
    after = error.after if isinstance(error, ModelTrouble) else None
    return _PAUSE(state) if after is None else after
