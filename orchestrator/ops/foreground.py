"""Lets work in the background wait while turns run in this process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt at some work in the background. `is_interrupted`: a turn began meanwhile."""

    is_interrupted: bool = False


class Foreground:
    """The turns that run now. Work in the background waits for their end, and is cancelled by a new one."""

    def __init__(self) -> None:
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._attempts: dict[Attempt, asyncio.Timeout] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn runs while the body does."""
        self._running += 1
        self._idle.clear()
        for attempt, scope in self._attempts.items():
            if not scope.expired():
                attempt.is_interrupted = True
                scope.reschedule(asyncio.get_running_loop().time())
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def is_idle_within(self, seconds: float) -> bool:
        """Wait until no turn runs, at most so many seconds; False if turns still run then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:
                    await self._idle.wait()
        return not self._running

    @contextmanager
    def interrupting(self, attempt: Attempt, scope: asyncio.Timeout) -> Iterator[None]:
        """Let the scope around the body expire when a turn begins."""
        self._attempts[attempt] = scope
        try:
            yield
        finally:
            del self._attempts[attempt]
