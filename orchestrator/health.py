"""Checks which parts of the orchestrator work. Asking often does not cost more: results are reused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from orchestrator.errors import STORAGE_FULL, AnamnesisError
from orchestrator.ops import telemetry
from orchestrator.store.engine.database import Store

TIMEOUT_SECONDS: Final = 1.0
"""A part whose check takes longer counts as down."""

FRESH_SECONDS: Final = 1.0
"""How long a result is reused: each check of `writes` costs the disk a write."""

OK: Final = "ok"


@dataclass(frozen=True, slots=True)
class Health:
    """Whether everything works, and the state of each part."""

    status: Literal["ok", "degraded"]
    parts: dict[str, str] = field(default_factory=dict)


class HealthChecks:
    """The checks of one orchestrator."""

    def __init__(self, store: Store, disk_is_full: Callable[[], bool] = lambda: False) -> None:
        """`disk_is_full` says whether a recent write of a conversation found no room."""

        async def check_writes() -> None:
            await store.try_to_write()
            if disk_is_full():  # the trial write is small: it may succeed where a turn does not fit
                raise AnamnesisError(STORAGE_FULL)

        self._checks = {
            "store": _Check(lambda: store.read(lambda tx: tx.conversations.get("nobody"))),
            "writes": _Check(check_writes),
        }

    def include(self, part: str, check: Callable[[], Awaitable[object]]) -> None:
        """Add a part. It is down if `check` raises an AnamnesisError."""
        self._checks[part] = _Check(check)

    async def health(self) -> Health:
        """The state of each part now."""
        states = await asyncio.gather(*(check.state() for check in self._checks.values()))
        parts = dict(zip(self._checks, states, strict=True))
        if (collector := telemetry.collector_reached()) is not None:
            parts["telemetry"] = OK if collector else "down: not_sent"
        return Health("ok" if set(parts.values()) == {OK} else "degraded", parts)

    async def close(self) -> None:
        """Wait for the checks that still run."""
        for check in self._checks.values():
            await check.close()


class _Check:
    """One check; its last result is reused for a moment."""

    def __init__(self, check: Callable[[], Awaitable[object]]) -> None:
        self._check = check
        self._running: asyncio.Task[str] | None = None
        self._started = 0.0

    async def state(self) -> str:
        now = asyncio.get_running_loop().time()
        if self._running is None or (self._running.done() and now - self._started > FRESH_SECONDS):
            self._running, self._started = asyncio.create_task(self._run()), now
        await asyncio.wait([self._running], timeout=TIMEOUT_SECONDS)
        return self._running.result() if self._running.done() else "down: no_answer"

    async def close(self) -> None:
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> str:
        try:
            await self._check()
        except AnamnesisError as error:
            return f"down: {error.problem.name}"
        return OK
