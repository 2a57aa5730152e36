"""Limits how many requests one caller may send in a minute."""

import math
import time
from collections.abc import Callable
from typing import Final

from orchestrator.errors import TOO_MANY_REQUESTS, AnamnesisError

REMEMBERED: Final = 10_000
"""How many callers are remembered; then those whose allowance is whole again are forgotten."""


class RateLimits:
    """An allowance per caller that refills evenly; a burst may use all of it at once."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = per_minute, now
        self._left: dict[str, tuple[float, float]] = {}

    def count(self, caller: str) -> None:
        """Count a request. If the allowance is used up, the error says how long to wait."""
        now, per_second = self._now(), self._most / 60
        left, at = self._left.get(caller, (float(self._most), now))
        left = min(float(self._most), left + (now - at) * per_second)
        if left < 1:
            raise AnamnesisError(TOO_MANY_REQUESTS, seconds=math.ceil((1 - left) / per_second))
        if len(self._left) >= REMEMBERED and caller not in self._left:
            self._forget(now, per_second)
        self._left[caller] = (left - 1, now)

    def _forget(self, now: float, per_second: float) -> None:
        self._left = {
            each: (left, at)
            for each, (left, at) in self._left.items()
            if left + (now - at) * per_second < self._most
        }
