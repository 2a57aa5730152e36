"""The LiveKit room of each conversation: issues tokens for it, and joins it while a client is in it.

LiveKit's webhooks report at once who joined and left. One can be missed, so the list of rooms is also polled
every few seconds, and a room for which a token was just issued is checked until the client has joined.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from orchestrator.errors import NOT_FOUND, AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.ports import Transport
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import Conversation
from orchestrator.transports.livekit import SERVER, TOPIC, LiveKitRoom, LiveKitTransport, wait_for_late_joins
from orchestrator.transports.livekit_server import LiveKitServer
from orchestrator.wire.ids import RandomIds

TOKEN_SECONDS: Final = 300
"""How long a token can be used to join. Its expiry does not end a connection."""

CLIENT_PREFIX: Final = "user:"
"""The prefix of the identities in our tokens. Frames of other participants are ignored."""

SENDS_AT_ONCE: Final = 4
"""The limit for all rooms together, because the SDK passes every event to every waiting call."""

LINGER_SECONDS: Final = 5.0
"""How long we stay in a room without clients, because a client may come back."""

FIRST_CHECK_SECONDS, LAST_CHECK_SECONDS = 0.1, 2.0
CHECK_BACKOFF: Final = 1.2
"""How often a room is checked after a token was issued: the pause grows by this factor."""

log = get_logger()


class ServeConnection(Protocol):
    """Serves one connection in a room until it ends."""

    def __call__(
        self, transport: Transport, person_id: str, conversation_id: str
    ) -> Coroutine[Any, Any, None]: ...


@dataclass(frozen=True, slots=True)
class Admission:
    """What a client needs to join a room."""

    url: str
    room: str
    identity: str
    token: str = field(repr=False)
    topic: str
    expires_at: datetime


class Rooms:
    """The rooms on one LiveKit server. Several processes may share them; one is in each room."""

    def __init__(
        self,
        server: LiveKitServer,
        store: Store,
        serve: ServeConnection,
        *,
        holder: str,
        is_gone: Callable[[str], bool],
        poll_seconds: float,
    ) -> None:
        self._server, self._store, self._serve = server, store, serve
        self._holder, self._is_gone, self._poll_seconds = holder, is_gone, poll_seconds
        self._send_slots = asyncio.Semaphore(SENDS_AT_ONCE)
        self._joined: dict[str, _JoinedRoom] = {}
        self._checking: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Rooms"]:
        """Join and leave rooms until the block ends. Then leave all, so that another process can join."""
        polling = asyncio.create_task(self._poll())
        try:
            yield self
        finally:
            polling.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(polling, *self._tasks, return_exceptions=True)
            await asyncio.gather(*(joined.room.leave() for joined in self._joined.values()))
            await wait_for_late_joins()
            await self._server.close()

    @property
    def url(self) -> str:
        """The address of the LiveKit server for clients."""
        return self._server.url

    @property
    def joined(self) -> dict[str, LiveKitRoom]:
        """The rooms that this process is in, by name."""
        return {name: joined.room for name, joined in self._joined.items()}

    async def create(self, person_id: str) -> str:
        """Create a conversation of that person and its room; its id is the room's name."""
        conversation_id = RandomIds().new("conv_")
        await self._server.create_room(conversation_id)  # first: a conversation without a room is of no use
        await self._store.write(lambda tx: tx.conversations.create(person_id, id=conversation_id))
        return conversation_id

    def prepare(self, conversation_id: str) -> None:
        """Create the room of a conversation in the background. If that fails, the next token creates it."""
        self._spawn(self._prepare(conversation_id))

    async def admit(self, person_id: str | None, conversation_id: str) -> Admission:
        """A token with a new identity for a conversation of that person, or of anybody if there is none."""
        conversation = await self._store.read(lambda tx: _admitted(tx, person_id, conversation_id))
        room = _room_of(conversation)
        await self._server.create_room(room)
        identity = f"{CLIENT_PREFIX}{secrets.token_urlsafe(16)}"
        expires_at = datetime.now(UTC) + timedelta(seconds=TOKEN_SECONDS)
        token = self._server.token_for_client(room, identity, TOKEN_SECONDS)
        self._check_often(room)
        return Admission(self._server.url, room, identity, token, TOPIC, expires_at)

    def receive_webhook(self, body: bytes, authorization: str) -> None:
        """Check the room that a webhook of LiveKit is about: somebody has joined or left it."""
        if (room := self._server.room_of_webhook(body, authorization)) is not None:
            self._spawn(self._check_safely(room))

    async def _prepare(self, conversation_id: str) -> None:
        try:
            found = await self._store.read(lambda tx: tx.conversations.get(conversation_id))
            if found is not None:
                await self._server.create_room(_room_of(found))
        except AnamnesisError as error:
            log.warning("room_not_created", conversation_id=conversation_id, error=error.problem.name)

    async def _poll(self) -> None:
        """Runs until cancelled: checks every room with participants, and every room that we are in.

        The first time it checks all rooms, because a client may wait in the room of a process that has died.
        """
        first = True
        while True:
            try:
                rooms = {*await self._server.rooms(busy=not first), *self._joined}
                first = False
            except Exception as error:  # any error, because polling must go on
                log.warning("rooms_not_listed", error=_name_of(error))
                rooms = set()
            for room in rooms:
                await self._check_safely(room)
            await asyncio.sleep(self._poll_seconds)

    async def _check_until_joined(self, room: str) -> None:
        """Check a room, with growing pauses, until we have joined it or the token has expired."""
        wait, until = FIRST_CHECK_SECONDS, _now() + TOKEN_SECONDS
        try:
            while _now() < until and room not in self._joined:
                await asyncio.sleep(wait)
                await self._check_safely(room)
                wait = min(LAST_CHECK_SECONDS, wait * CHECK_BACKOFF)
        finally:
            del self._checking[room]

    async def _check_safely(self, room: str) -> None:
        async with self._locks.setdefault(room, asyncio.Lock()):
            try:
                await self._check(room)
            except Exception as error:  # an error in one room must not affect the others
                log.warning("room_not_checked", conversation_id=room, error=_name_of(error))

    async def _check(self, room: str) -> None:
        """Join the room if a client is in it and no live process of ours; leave it if no client is."""
        participants = await self._server.participants(room)
        clients = [each.identity for each in participants if each.identity.startswith(CLIENT_PREFIX)]
        server = next((each for each in participants if each.identity == SERVER), None)
        joined = self._joined.get(room)
        if joined is not None:
            if server is None or server.sid != joined.sid or joined.room.ended.is_set():
                self._leave(room, joined)  # LiveKit lost us, or another process has replaced us
                joined = None
                if server is None:
                    await self._restore(room)
            elif clients:
                joined.empty_since = None
            else:
                joined.empty_since = joined.empty_since or _now()
                if _now() - joined.empty_since >= LINGER_SECONDS:
                    self._leave(room, joined)
        if joined is None and clients and (server is None or self._is_stale(server.holder)):
            await self._join(room, clients)

    async def _restore(self, room: str) -> None:
        """Create a room again in which we were: LiveKit forgets all rooms when it restarts."""
        await self._server.create_room(room)
        self._check_often(room)

    def _check_often(self, room: str) -> None:
        """Check a room often for some minutes, because a client is about to join it."""
        if room not in self._checking:
            self._checking[room] = self._spawn(self._check_until_joined(room))

    def _is_stale(self, holder: str) -> bool:
        """Whether the server in the room serves nobody: its process died, or it is a late join of ours."""
        return holder == self._holder or self._is_gone(holder)

    async def _join(self, room: str, clients: list[str]) -> None:
        conversation = await self._store.read(lambda tx: tx.conversations.in_room(room))
        if conversation is None:
            return
        person_id, conversation_id = conversation.user_id, conversation.id

        def on_peer(transport: LiveKitTransport) -> None:
            if transport.identity.startswith(CLIENT_PREFIX):
                self._spawn(self._serve(transport, person_id, conversation_id))

        async def remove(identity: str) -> None:
            await self._server.remove(room, identity)

        async def identities() -> set[str]:
            return {each.identity for each in await self._server.participants(room)}

        joined = LiveKitRoom(identities, on_peer=on_peer, remove=remove, send_slots=self._send_slots)
        await joined.join(self._server.url, self._server.token_for_orchestrator(room, self._holder))
        self._joined[room] = _JoinedRoom(joined, joined.sdk.local_participant.sid)
        log.info("room_joined", conversation_id=conversation_id)
        await joined.ask_to_reconnect(clients)  # they may not have noticed that an earlier process is gone

    def _leave(self, room: str, joined: "_JoinedRoom") -> None:
        """Leave in the background, because leaving takes long if the LiveKit server has died."""
        del self._joined[room]
        self._spawn(joined.room.leave())
        log.info("room_left", conversation_id=room)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@dataclass(slots=True)
class _JoinedRoom:
    """A room that we are in, and since when no client is in it."""

    room: LiveKitRoom
    sid: str
    empty_since: float | None = None


def _admitted(tx: Transaction, person_id: str | None, conversation_id: str) -> Conversation:
    """The conversation, if it belongs to the person; a service asks without one."""
    if person_id is not None:
        return tx.conversations.owned(conversation_id, person_id)
    if (found := tx.conversations.get(conversation_id)) is None:
        raise AnamnesisError(NOT_FOUND)
    return found


def _room_of(conversation: Conversation) -> str:
    """The name of the conversation's room: the stored one, or else its id."""
    name = conversation.livekit_room_name
    return conversation.id if name is None else name


def _name_of(error: Exception) -> str:
    """The name of an error. Its text may contain a token."""
    return error.problem.name if isinstance(error, AnamnesisError) else type(error).__name__


def _now() -> float:
    return asyncio.get_running_loop().time()
