"""The house: who may come in, who answers, and what goes on while it is open."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final

import structlog

from memory_blocks.ports import Ids
from orchestrator import telemetry
from orchestrator.alerts import AlertDesk
from orchestrator.desk import Allowance, Visitor
from orchestrator.errors import AnamnesisError
from orchestrator.health import Checkup, Health
from orchestrator.idle import Idle
from orchestrator.logs import get_logger
from orchestrator.outbox import Outbox
from orchestrator.ports import Transport
from orchestrator.presence import Presence
from orchestrator.session import Lobby, Session
from orchestrator.store.connections import Standing
from orchestrator.store.database import Store, Transaction
from orchestrator.turn import Stations, take_turn
from orchestrator.turnstile import Turnstile
from orchestrator.wire.messages import ServerInfo

log = get_logger()

GRACE_SECONDS: Final = 10.0
WHO_SECONDS: Final = 1.0
"""How often one looks whether somebody else answers by now."""
AGAIN_SECONDS: Final = 0.5
"""How long after something failed one tries again; nobody may ever write again, and so wake the watch."""


class House:
    """Everything that one process needs to serve conversations. `async with` opens and closes it."""

    def __init__(
        self,
        store: Store,
        stations: Callable[[Outbox], Stations],
        ids: Ids,
        server_info: Callable[[], ServerInfo],
        *,
        lease_seconds: float,
        bad_frames_per_minute: int,
        idle: timedelta,
        allowance: Allowance,
        presence: Presence | None = None,
        alerts: Callable[[Store], AlertDesk] | None = None,
        beside: Sequence[Callable[[Stations], Coroutine[Any, Any, None]]] = (),
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`beside` is what goes on beside the turns; `close` takes leave of what the stations hold beyond.

        `server_info` is who answers now; whoever is connected is told when it is somebody else.
        """
        self.store = store
        self._close = close
        self._presence = presence
        self.holder = presence.name if presence else ids.new("proc_")
        self._ids = ids
        self._outbox = Outbox(store)
        self._checkup = Checkup(store)
        self._alerts = alerts(store) if alerts else None
        if self._alerts is not None:
            self._checkup.include("alerts", self._alerts.arrive)
        walk = stations(self._outbox)
        self._beside = [partial(work, walk) for work in beside]
        self.idle = Idle(self._outbox, walk.ledger, walk.shown, idle)
        self._turnstile = Turnstile(
            store,
            lambda ticket: take_turn(ticket, walk),
            holder=self.holder,
            lease_seconds=lease_seconds,
            deadline_seconds=walk.deadline_seconds,
            is_gone=self.is_gone,
        )
        self._lobby = Lobby(
            self._outbox,
            self._turnstile,
            ids,
            server_info,
            bad_frames_per_minute,
            allowance,
            walk.watch,
        )

    def is_gone(self, holder: str) -> bool:
        """Whether the process of that name has surely ended; of one on another machine nobody can tell."""
        return self._presence is not None and self._presence.is_gone(holder)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["House"]:
        """Take up what a former process left, and answer until the block ends."""
        works: list[Callable[[], Awaitable[None]]] = [
            self._turnstile.sweep,
            self._watch,
            self.idle.keep_looking,
            self._tell_who_answers,
            *self._beside,
        ]
        if self._alerts is not None:
            works.append(self._alerts.run)
        background = [asyncio.create_task(_keep_up(work)) for work in works]
        try:
            yield self
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await self._turnstile.close(GRACE_SECONDS)
            await self._checkup.close()
            if self._close is not None:
                await self._close()
            await self.store.close()
            if self._presence is not None:
                self._presence.leave()

    async def attend(self, transport: Transport, person_id: str, conversation_id: str | None = None) -> None:
        """Serve one connection until it ends; one that came through a conversation's room, in that alone."""
        visitor = Visitor(person_id, self._ids.new("link_"), conversation_id)
        with (
            structlog.contextvars.bound_contextvars(connection_id=visitor.connection_id),
            telemetry.connection(transport.way),
        ):
            await Session(transport, visitor, self._lobby).attend()

    def include(self, part: str, look: Callable[[], Awaitable[object]]) -> None:
        """Let health tell of another part of the house; it is down when `look` raises our error."""
        self._checkup.include(part, look)

    def tell_of_beginnings(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the id of each conversation that begins with a connection."""
        self._lobby.begun.append(tell)

    async def health(self) -> Health:
        """What is up and what is not."""
        return await self._checkup.health()

    async def _watch(self) -> None:
        """For ever: notice what other processes store for the conversations that have a connection here."""
        async for _ in self.store.changes():
            while True:
                try:
                    await self._look()
                    break
                except AnamnesisError as error:
                    log.warning("watch_failed", error=error.problem.name)
                    await asyncio.sleep(AGAIN_SECONDS)

    async def _tell_who_answers(self) -> None:
        """For ever: those who were told of somebody else."""
        while True:
            await asyncio.sleep(WHO_SECONDS)
            for sessions in self._lobby.present.values():
                for session in sessions:
                    session.tell_who_answers()

    async def _look(self) -> None:
        for conversation_id, number in await self.store.read(_to_stop) if self._turnstile.is_running else ():
            self._turnstile.stop(conversation_id, number)
        here = {each: tuple(sessions) for each, sessions in self._lobby.present.items()}  # before looking
        if not here:
            return
        for conversation_id, now in (await self.store.read(partial(_standing, here))).items():
            for session in here[conversation_id]:
                if session.visitor.connection_id != now.connection_id:
                    session.replaced()
            self._outbox.wake(conversation_id, now.sent)


async def _keep_up(work: Callable[[], Awaitable[None]]) -> None:
    """What goes on beside the turns begins anew where it fails: nobody waits for it, or would notice."""
    while True:
        try:
            return await work()
        except Exception as error:
            log.error("background_failed", exc_info=error)
        await asyncio.sleep(AGAIN_SECONDS)


def _to_stop(tx: Transaction) -> list[tuple[str, int]]:
    """Of which answers nobody wants more; another process may have been told so."""
    return tx.turns.to_stop()


def _standing(conversation_ids: Iterable[str], tx: Transaction) -> dict[str, Standing]:
    return tx.connections.standing(conversation_ids)
