"""A timeout that is longer while the server still answers other requests, because it is then only busy."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any


def _has_not_answered() -> float:
    return -math.inf


@dataclass(frozen=True, slots=True)
class Waiting:
    """Wait until the server has answered nobody for `silent_seconds`, at most `longest_seconds` in all.

    `last_answer_at` returns the monotonic time of its last answer to any request.
    """

    silent_seconds: float
    longest_seconds: float
    last_answer_at: Callable[[], float] = _has_not_answered

    def halved(self) -> "Waiting":
        """The same with half of each timeout: an inner step then fails before the step around it."""
        return Waiting(self.silent_seconds / 2, self.longest_seconds / 2, self.last_answer_at)

    async def finishes(self, work: "asyncio.Future[Any]") -> bool:
        """Whether the work ended in time. If not, it is not cancelled."""
        started = monotonic()
        while not work.done():
            until = min(
                max(started, self.last_answer_at()) + self.silent_seconds, started + self.longest_seconds
            )
            if (left := until - monotonic()) <= 0:
                return False
            await asyncio.wait([work], timeout=left)
        return True
