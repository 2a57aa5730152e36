"""The room of each conversation: whoever may come in gets a token, and the house is there while they are.

LiveKit's webhooks say at once who came and went. They can be missed, so every few seconds the list of rooms
is read as well; and a room that somebody has just got a token for is looked at until they are there.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from orchestrator.errors import AnamnesisError
from orchestrator.logs import get_logger
from orchestrator.ports import Transport
from orchestrator.store.database import Store
from orchestrator.store.rows import Conversation
from orchestrator.transports.livekit import SERVER, TOPIC, LiveKitRoom, LiveKitTransport, all_have_come
from orchestrator.transports.livekit_server import LiveKitServer
from orchestrator.wire.ids import RandomIds

TOKEN_SECONDS: Final = 300
"""How long one may join with a token; who has joined stays."""

GUEST: Final = "user:"
"""How the identities begin that we give; nobody else in a room is listened to."""

SENDS_AT_ONCE: Final = 4
"""In all rooms together: the SDK hands every event to every call that waits."""

LINGER_SECONDS: Final = 5.0
"""How long the house stays in a room that nobody else is in: they may be back in a moment."""

FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.1, 2.0
LOOK_LESS: Final = 1.2

log = get_logger()


class Attend(Protocol):
    """How the house serves one connection in a room until it ends."""

    def __call__(
        self, transport: Transport, person_id: str, conversation_id: str
    ) -> Coroutine[Any, Any, None]: ...


@dataclass(frozen=True, slots=True)
class Admission:
    """What a client needs to come into a room."""

    url: str
    room: str
    identity: str
    token: str = field(repr=False)
    topic: str
    expires_at: datetime


class Rooms:
    """The rooms of one LiveKit server that this process looks after. `async with` opens and closes them."""

    def __init__(
        self,
        server: LiveKitServer,
        store: Store,
        attend: Attend,
        *,
        holder: str,
        is_gone: Callable[[str], bool],
        look_seconds: float,
    ) -> None:
        self._server, self._store, self._attend = server, store, attend
        self._holder, self._is_gone, self._look_seconds = holder, is_gone, look_seconds
        self._gate = asyncio.Semaphore(SENDS_AT_ONCE)
        self._stays: dict[str, _Stay] = {}
        self._expected: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking = WeakValueDictionary[str, asyncio.Lock]()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Rooms"]:
        """Look after the rooms until the block ends; then leave them, so that another process may come."""
        watching = asyncio.create_task(self._watch())
        try:
            yield self
        finally:
            watching.cancel()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(watching, *self._tasks, return_exceptions=True)
            await asyncio.gather(*(stay.room.leave() for stay in self._stays.values()))
            await all_have_come()
            await self._server.close()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return self._server.url

    @property
    def joined(self) -> dict[str, LiveKitRoom]:
        """The rooms that this process is in, by name."""
        return {name: stay.room for name, stay in self._stays.items()}

    async def create(self, person_id: str) -> str:
        """Begin a conversation of that person, with its room; its id, which is the room's name."""
        conversation_id = RandomIds().new("conv_")
        await self._server.create_room(conversation_id)  # first: one that cannot be entered is not begun
        await self._store.write(lambda tx: tx.conversations.create(person_id, id=conversation_id))
        return conversation_id

    def prepare(self, conversation_id: str) -> None:
        """Make the room of a conversation that began another way; if that fails, a token makes it later."""
        self._spawn(self._prepare(conversation_id))

    async def admit(self, person_id: str, conversation_id: str) -> Admission:
        """A token for the owner of a conversation, under an identity that nobody had before."""
        conversation = await self._store.read(lambda tx: tx.conversations.owned(conversation_id, person_id))
        room = _room_of(conversation)
        await self._server.create_room(room)
        identity = f"{GUEST}{secrets.token_urlsafe(16)}"
        expires_at = datetime.now(UTC) + timedelta(seconds=TOKEN_SECONDS)
        token = self._server.token_for_client(room, identity, TOKEN_SECONDS)
        if room not in self._expected:
            self._expected[room] = self._spawn(self._expect(room))
        return Admission(self._server.url, room, identity, token, TOPIC, expires_at)

    def told(self, body: bytes, authorization: str) -> None:
        """Take a webhook of LiveKit: somebody came or went, so look."""
        if (room := self._server.told(body, authorization)) is not None:
            self._spawn(self._look_safely(room))

    async def _prepare(self, conversation_id: str) -> None:
        try:
            found = await self._store.read(lambda tx: tx.conversations.get(conversation_id))
            if found is not None:
                await self._server.create_room(_room_of(found))
        except AnamnesisError as error:
            log.warning("room_not_made", conversation_id=conversation_id, error=error.problem.name)

    async def _watch(self) -> None:
        """For ever: look at every room that somebody is in, and at every one that we are in.

        At first at all there are: somebody may be waiting where a process has just died.
        """
        has_looked = False
        while True:
            try:
                rooms = {*await self._server.rooms(busy=has_looked), *self._stays}
                has_looked = True
            except Exception as error:  # whatever it was: nobody else looks
                log.warning("rooms_not_listed", error=_name_of(error))
                rooms = set()
            for room in rooms:
                await self._look_safely(room)
            await asyncio.sleep(self._look_seconds)

    async def _expect(self, room: str) -> None:
        """Look at a room often at first, then less, until the token has ended or the house is there."""
        wait, until = FIRST_LOOK_SECONDS, _now() + TOKEN_SECONDS
        try:
            while _now() < until and room not in self._stays:
                await asyncio.sleep(wait)
                await self._look_safely(room)
                wait = min(LAST_LOOK_SECONDS, wait * LOOK_LESS)
        finally:
            del self._expected[room]

    async def _look_safely(self, room: str) -> None:
        async with self._looking.setdefault(room, asyncio.Lock()):
            try:
                await self._look(room)
            except Exception as error:  # one room must not keep us from the others
                log.warning("room_not_seen", conversation_id=room, error=_name_of(error))

    async def _look(self, room: str) -> None:
        """Be in the room if somebody else is there, and if no living process is there for the house."""
        there = await self._server.participants(room)
        guests = [each for each in there if each.identity.startswith(GUEST)]
        house = next((each for each in there if each.identity == SERVER), None)
        stay = self._stays.get(room)
        if stay is not None:
            if house is None or house.sid != stay.sid or stay.room.ended.is_set():
                self._go(room, stay)  # LiveKit lost it, or another process has taken our place
                stay = None
            elif guests:
                stay.alone_since = None
            else:
                stay.alone_since = stay.alone_since or _now()
                if _now() - stay.alone_since >= LINGER_SECONDS:
                    self._go(room, stay)
        if stay is None and guests and (house is None or self._has_left(house.holder)):
            await self._come(room, [guest.identity for guest in guests])

    def _has_left(self, holder: str) -> bool:
        """Whether nobody serves through the house that is seen: its process died, or we came in too late."""
        return holder == self._holder or self._is_gone(holder)

    async def _come(self, room: str, guests: list[str]) -> None:
        conversation = await self._store.read(lambda tx: tx.conversations.in_room(room))
        if conversation is None:
            return
        person_id, conversation_id = conversation.user_id, conversation.id

        def met(transport: LiveKitTransport) -> None:
            if transport.identity.startswith(GUEST):
                self._spawn(self._attend(transport, person_id, conversation_id))

        async def remove(identity: str) -> None:
            await self._server.remove(room, identity)

        async def there() -> set[str]:
            return {each.identity for each in await self._server.participants(room)}

        joined = LiveKitRoom(there, on_peer=met, remove=remove, gate=self._gate)
        await joined.join(self._server.url, self._server.token_for_house(room, self._holder))
        self._stays[room] = _Stay(joined, joined.sdk.local_participant.sid)
        log.info("room_entered", conversation_id=conversation_id)
        await joined.start_over(guests)  # the house may have been here before, and they have not noticed

    def _go(self, room: str, stay: "_Stay") -> None:
        """Leave, without waiting for LiveKit: from a server that has died, that takes long."""
        del self._stays[room]
        self._spawn(stay.room.leave())
        log.info("room_left", conversation_id=room)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@dataclass(slots=True)
class _Stay:
    """The house in a room, and since when it is alone there."""

    room: LiveKitRoom
    sid: str
    alone_since: float | None = None


def _room_of(conversation: Conversation) -> str:
    """The name of its room: what is written with it, else its own."""
    name = conversation.livekit_room_name
    return conversation.id if name is None else name


def _name_of(error: Exception) -> str:
    """What it is called; what it says may hold a token."""
    return error.problem.name if isinstance(error, AnamnesisError) else type(error).__name__


def _now() -> float:
    return asyncio.get_running_loop().time()
