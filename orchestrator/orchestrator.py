"""One process that serves conversations: its connections, its turns, and its background work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from memory_blocks.ports import Ids
from orchestrator.connection.handlers import ConnectedPerson, ConversationLimits
from orchestrator.connection.idle import IdleSessions
from orchestrator.connection.session import Session, SessionContext
from orchestrator.errors import AnamnesisError
from orchestrator.health import Health, HealthChecks
from orchestrator.ops import telemetry
from orchestrator.ops.interpreter import tuned_for_serving
from orchestrator.ops.logs import get_logger
from orchestrator.ports import Transport
from orchestrator.presence import Presence
from orchestrator.recall.service import MemoryService
from orchestrator.safety.alerts import AlertSender
from orchestrator.store.engine.database import Store
from orchestrator.turn.outbox import Outbox
from orchestrator.turn.pipeline import take_turn
from orchestrator.turn.queue import TurnQueue
from orchestrator.turn.services import TurnServices
from orchestrator.wire.messages import ServerInfo

log = get_logger()

BackgroundWork: TypeAlias = Callable[[TurnServices], Coroutine[Any, Any, None]]

GRACE_SECONDS: Final = 10.0
"""How long running turns may take to end when the orchestrator closes."""
SERVER_INFO_SECONDS: Final = 1.0
"""How often the sessions check whether another brain answers."""
RETRY_SECONDS: Final = 0.5
"""How long background work that failed waits before it starts again."""


@dataclass(frozen=True, slots=True)
class OrchestratorOptions:
    """How an orchestrator works, and its background work."""

    lease_seconds: float
    idle: timedelta
    """After how long without a message a session is paused."""
    limits: ConversationLimits
    presence: Presence | None = None
    """Which processes on this machine are alive; None if processes may run on several machines."""
    alerts: Callable[[Store], AlertSender] | None = None
    """Builds the sender of alerts to staff; None if staff get none."""
    background: Sequence[BackgroundWork] = ()
    """Started with the orchestrator, and started again if it fails."""
    close: Callable[[], Awaitable[None]] | None = None
    """Closes what the turn services hold open."""


class Orchestrator:
    """Everything that one process needs to serve conversations. `async with orchestrator.open()` runs it."""

    def __init__(
        self,
        store: Store,
        build_services: Callable[[Outbox], TurnServices],
        ids: Ids,
        server_info: Callable[[], ServerInfo],
        options: OrchestratorOptions,
    ) -> None:
        """`server_info` says which brain answers now; connected clients get it again when it changes."""
        self.store = store
        self._ids, self._options = ids, options
        self.holder = options.presence.name if options.presence else ids.new("proc_")
        self._outbox = Outbox(store)
        self._health = HealthChecks(store, lambda: self._outbox.disk_is_full)
        self._alerts = options.alerts(store) if options.alerts else None
        if self._alerts is not None:
            self._health.include("alerts", self._alerts.check)
        services = build_services(self._outbox)
        self.ledger, self._remembering = services.memory.ledger, services.memory.remembering
        self._background = [partial(work, services) for work in options.background]
        self.idle = IdleSessions(self._outbox, services.memory.ledger, services.memory.sync, options.idle)
        self._queue = TurnQueue(
            store,
            lambda claimed: take_turn(claimed, services),
            holder=self.holder,
            lease_seconds=options.lease_seconds,
            deadline_seconds=services.limits.deadline_seconds,
            is_gone=self.is_gone,
            on_delay=self._turn_delayed,
        )
        self.memory: MemoryService | None = None
        self._delays: set[asyncio.Task[None]] = set()
        self._context = SessionContext(
            self._outbox,
            self._queue,
            ids,
            server_info,
            options.limits,
            services.monitor,
        )

    def is_gone(self, holder: str) -> bool:
        """Whether the process of that name has ended; False if it may run on another machine."""
        return self._options.presence is not None and self._options.presence.is_gone(holder)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Orchestrator"]:
        """Serve until the block ends. Turns that another process left open are answered first."""
        works: list[Callable[[], Awaitable[None]]] = [
            self._queue.sweep,
            self._follow_store,
            self.idle.run,
            self._update_server_info,
            *self._background,
        ]
        if self._alerts is not None:
            works.append(self._alerts.run)
        background = [asyncio.create_task(_restart_on_failure(work)) for work in works]
        try:
            with tuned_for_serving():
                yield self
        finally:
            await _cancel(background)
            await self._queue.close(GRACE_SECONDS)
            await _cancel(self._delays)
            await self._health.close()
            if self._options.close is not None:
                await self._options.close()
            await self.store.close()
            if self._options.presence is not None:
                self._options.presence.leave()

    async def serve(self, transport: Transport, person_id: str, conversation_id: str | None = None) -> None:
        """Serve one connection until it ends. With an id, it may use only that conversation."""
        person = ConnectedPerson(person_id, self._ids.new("link_"), conversation_id)
        with (
            structlog.contextvars.bound_contextvars(connection_id=person.connection_id),
            telemetry.connection(transport.kind),
        ):
            await Session(transport, person, self._context).serve()

    def include(self, part: str, check: Callable[[], Awaitable[object]]) -> None:
        """Add a part to health. The part is down if `check` raises an AnamnesisError."""
        self._health.include(part, check)

    def created(self, conversation_id: str) -> None:
        """Prepare what a conversation needs that was created without a connection."""
        for call in self._context.on_created:
            call(conversation_id)

    def on_created(self, call: Callable[[str], None]) -> None:
        """Call `call` with the id of each conversation that a connection creates."""
        self._context.on_created.append(call)

    async def memories_changed(self, person_id: str) -> None:
        """Make memories of a person searchable that were changed outside of a turn."""
        if self._remembering is not None:
            await self._remembering.index_changed(person_id)

    async def health(self) -> Health:
        """Which parts work and which do not."""
        return await self._health.health()

    def _turn_delayed(self, conversation_id: str, message_id: str | None, error: AnamnesisError) -> None:
        """Tell the client at once that the store refused a turn, which is tried again later."""
        self._outbox.note_failed_write(error)
        task = asyncio.create_task(self._report_delay(conversation_id, message_id, error))
        self._delays.add(task)
        task.add_done_callback(self._delays.discard)

    async def _report_delay(
        self, conversation_id: str, message_id: str | None, error: AnamnesisError
    ) -> None:
        if message_id is None:
            with suppress(AnamnesisError):  # a store that cannot be read does not say whether a message waits
                turn = await self.store.read(lambda tx: tx.turns.next_open(conversation_id))
                message_id = turn.user_message_id if turn else None
        if message_id is not None:
            for session in tuple(self._context.present.get(conversation_id, ())):
                session.report_delay(message_id, error)

    async def _follow_store(self) -> None:
        """Runs until cancelled: notices what other processes store for the conversations connected here."""
        async for _ in self.store.changes():
            while True:
                try:
                    await self._notice_changes()
                    break
                except AnamnesisError as error:
                    log.warning("store_not_followed", error=error.problem.name)
                    await asyncio.sleep(RETRY_SECONDS)  # there may be no further change that wakes us

    async def _update_server_info(self) -> None:
        """Runs until cancelled: lets each session send ServerInfo again when another brain answers."""
        while True:
            await asyncio.sleep(SERVER_INFO_SECONDS)
            for sessions in self._context.present.values():
                for session in sessions:
                    session.update_server_info()

    async def _notice_changes(self) -> None:
        here = {each: tuple(sessions) for each, sessions in self._context.present.items()}
        is_running = self._queue.is_running
        if not here and not is_running:
            return
        to_stop, states = await self.store.read(
            lambda tx: (tx.turns.to_stop() if is_running else (), tx.connections.states(here))
        )
        for conversation_id, number in to_stop:
            self._queue.stop(conversation_id, number)
        for conversation_id, now in states.items():
            for session in here[conversation_id]:
                if session.person.connection_id != now.connection_id:
                    session.replaced()
            self._outbox.wake(conversation_id, now.sent)


async def _restart_on_failure(work: Callable[[], Awaitable[None]]) -> None:
    """Run background work, and start it again if it fails."""
    while True:
        try:
            return await work()
        except Exception as error:
            log.error("background_failed", exc_info=error)
        await asyncio.sleep(RETRY_SECONDS)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel these tasks, and wait until they have ended."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
