"""Lets work in the background wait while turns run in this process."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class Interrupted(Exception):
    """A turn began, so work in the background was cancelled."""


class Foreground:
    """The turns that run now. Work in the background waits for their end, and is cancelled by a new one."""

    def __init__(self) -> None:
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._interrupted: dict[asyncio.Timeout, bool] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn runs while the body does."""
        self._running += 1
        self._idle.clear()
        for scope in self._interrupted:
            if not scope.expired():
                self._interrupted[scope] = True
                scope.reschedule(asyncio.get_running_loop().time())
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def until_idle(self) -> None:
        """Wait until no turn runs."""
        while self._running:
            await self._idle.wait()

    @asynccontextmanager
    async def interruptible(self, seconds: float) -> AsyncIterator[None]:
        """Cancel the body when a turn begins (`Interrupted`), or after so many seconds (`TimeoutError`)."""
        scope = asyncio.timeout(seconds)
        self._interrupted[scope] = False
        try:
            async with scope:
                yield
        except TimeoutError as late:
            if self._interrupted[scope]:
                raise Interrupted from late
            raise
        finally:
            del self._interrupted[scope]
