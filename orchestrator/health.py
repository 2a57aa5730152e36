"""What is up and what is not, for whoever asks, without letting the asking weigh on the house."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from orchestrator import telemetry
from orchestrator.errors import AnamnesisError
from orchestrator.store.database import Store

PATIENCE_SECONDS: Final = 1.0
"""How long one waits for a part; one that has said nothing by then is down."""

FRESH_SECONDS: Final = 1.0
"""Who asks again within this is told the same: each look costs the disk a write."""

OK: Final = "ok"


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the house can do its work, and which part of it cannot."""

    status: Literal["ok", "degraded"]
    parts: dict[str, str] = field(default_factory=dict)


class Checkup:
    """Looks at every part of a house."""

    def __init__(self, store: Store) -> None:
        self._looks = {
            "store": _Look(lambda: store.read(lambda tx: tx.conversations.get("nobody"))),
            "writes": _Look(store.try_to_write),
        }

    def include(self, part: str, look: Callable[[], Awaitable[object]]) -> None:
        """Look at another part, too."""
        self._looks[part] = _Look(look)

    async def health(self) -> Health:
        """How each part is now. Where one cannot write, one may still read."""
        said = await asyncio.gather(*(look.says() for look in self._looks.values()))
        parts = dict(zip(self._looks, said, strict=True))
        if (collector := telemetry.reached()) is not None:
            parts["telemetry"] = OK if collector else "down: not_sent"
        return Health("ok" if set(parts.values()) == {OK} else "degraded", parts)

    async def close(self) -> None:
        """Wait for the looks that are still out."""
        for look in self._looks.values():
            await look.close()


class _Look:
    def __init__(self, look: Callable[[], Awaitable[object]]) -> None:
        self._look = look
        self._looking: asyncio.Task[str] | None = None
        self._since = 0.0

    async def says(self) -> str:
        now = asyncio.get_running_loop().time()
        if self._looking is None or (self._looking.done() and now - self._since > FRESH_SECONDS):
            self._looking, self._since = asyncio.create_task(self._once()), now
        await asyncio.wait([self._looking], timeout=PATIENCE_SECONDS)
        return self._looking.result() if self._looking.done() else "down: no_answer"

    async def close(self) -> None:
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def _once(self) -> str:
        try:
            await self._look()
        except AnamnesisError as error:
            return f"down: {error.problem.name}"
        return OK
