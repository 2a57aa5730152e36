"""How long one waits for a server: while it answers anybody it is only busy, and worth more patience."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any


def _never() -> float:
    return -math.inf


@dataclass(frozen=True, slots=True)
class Waiting:
    """Until it was silent for so long, or it took too long in all. `heard_at` tells when it last answered."""

    silent_seconds: float
    longest_seconds: float
    heard_at: Callable[[], float] = _never

    def halved(self) -> "Waiting":
        """For whoever is waited for in turn, and has something to say before that patience ends."""
        return Waiting(self.silent_seconds / 2, self.longest_seconds / 2, self.heard_at)

    async def ends(self, work: "asyncio.Future[Any]") -> bool:
        """Whether the work came to its end in that time; if not, it goes on."""
        began = monotonic()
        while not work.done():
            until = min(max(began, self.heard_at()) + self.silent_seconds, began + self.longest_seconds)
            if (left := until - monotonic()) <= 0:
                return False
            await asyncio.wait([work], timeout=left)
        return True
