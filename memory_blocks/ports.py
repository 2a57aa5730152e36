"""Every place where the memory blocks touch the world."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time, so that tests can. Never goes back within one process."""

    def now(self) -> datetime:
        """The present moment, in UTC, cut to milliseconds."""
        ...


class Ids(Protocol):
    """Gives new identifiers, so that tests can foresee them."""

    def new(self, prefix: str) -> str:
        """A fresh identifier behind `prefix`, such as `msg_…`."""
        ...
