"""Time limits and retries of model requests, and circuit breakers that pause a failing model or agent."""

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

MAX_AGENTS: Final = 1_000
"""For how many agents failures are remembered."""

_BACKOFF: Final = wait_random_exponential(multiplier=0.1, max=2)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of one turn.

    `reply_seconds` is the time for one reply, `stall_seconds` the time between two fragments of an answer,
    `budget_seconds` the time for all requests together.
    """

    reply_seconds: float = 10.0
    stall_seconds: float = 10.0
    budget_seconds: float = 20.0
    attempts: int = 3


class Breaker:
    """A circuit breaker: rejects requests for `rest_seconds` after `failures` failures in a row.

    After the rest it lets one request through and rejects the others until that one has succeeded. It is not
    thread-safe: use it from one event loop.
    """

    def __init__(
        self,
        failures: int = 3,
        rest_seconds: float = 10.0,
        longest_rest_seconds: float = 300.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._max_failures, self._rest, self._longest_rest = failures, rest_seconds, longest_rest_seconds
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether requests are rejected now."""
        return self._clock() < self._open_until

    def check(self) -> None:
        """Raise `ModelTrouble` if requests are rejected now."""
        if self.is_open:
            raise ModelTrouble("left_alone", counts_against_model=False)
        if self._failures >= self._max_failures:
            self._open_until = self._clock() + self._rest

    def record_success(self) -> None:
        """Close the breaker after a reply."""
        self._failures, self._open_until = 0, 0.0

    def record_failure(self, retry_after: float | None) -> None:
        """Count a failure. The pause that the server asked for is kept, up to `longest_rest_seconds`."""
        self._failures += 1
        rest = min(retry_after or 0.0, self._longest_rest)
        if self._failures >= self._max_failures:
            rest = max(rest, self._rest)
        self._open_until = max(self._open_until, self._clock() + rest)


class AgentBreakers:
    """One breaker per agent of an endpoint, so that an agent that fails pauses no other agent.

    Only agents with failures are kept, the latest `MAX_AGENTS` of them.
    """

    def __init__(self, make: Callable[[], Breaker] = Breaker) -> None:
        self._make = make
        self._breakers: dict[str, Breaker] = {}

    def check(self, agent_id: str) -> None:
        """Raise `ModelTrouble` if requests to this agent are rejected now."""
        if agent_id in self._breakers:
            self._breakers[agent_id].check()

    def record_success(self, agent_id: str) -> None:
        """Forget the failures of an agent that has answered."""
        self._breakers.pop(agent_id, None)

    def record_failure(self, agent_id: str, retry_after: float | None) -> None:
        """Count a failure of this agent alone."""
        breaker = self._breakers.pop(agent_id, None) or self._make()
        breaker.record_failure(retry_after)
        self._breakers[agent_id] = breaker
        while len(self._breakers) > MAX_AGENTS:
            del self._breakers[next(iter(self._breakers))]


async def call_with_retries(
    call: Callable[[], Awaitable[T]], breaker: Breaker, policy: RetryPolicy, deadline: float
) -> T:
    """Return what `call` returns, after retrying errors that are `retryable`.

    No retry starts after `deadline`, when the turn's budget is used up. The breaker records the outcome.
    """
    breaker.check()
    retrying = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, ModelTrouble) and error.retryable),
        stop=lambda state: (
            stop_after_attempt(policy.attempts)(state) or monotonic() + state.upcoming_sleep >= deadline
        ),
        wait=_wait,
        sleep=asyncio.sleep,
        reraise=True,
    )
    try:
        result: T = await retrying(call)
    except ModelTrouble as trouble:
        if trouble.counts_against_model:
            breaker.record_failure(trouble.retry_after)
        raise
    breaker.record_success()
    return result


def _wait(state: RetryCallState) -> float:
    """Wait as long as the server asked for; otherwise back off exponentially."""
    error = state.outcome.exception() if state.outcome else None
    retry_after = error.retry_after if isinstance(error, ModelTrouble) else None
    return _BACKOFF(state) if retry_after is None else retry_after
