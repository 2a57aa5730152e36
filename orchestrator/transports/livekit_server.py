"""The API of the LiveKit server: rooms, participants, tokens and webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import aiohttp
from google.protobuf.json_format import ParseError
from google.protobuf.message import DecodeError
from jwt import PyJWTError
from livekit import api

from orchestrator.errors import LIVEKIT_UNAVAILABLE, UNAUTHENTICATED, AnamnesisError
from orchestrator.transports.livekit import SERVER

EMPTY_SECONDS: Final = 420
"""How long LiveKit keeps an empty room. It is longer than LiveKit accepts a token (until one minute after its
expiry), because a room that is gone cannot be joined. The next token creates the room again."""

MAX_PARTICIPANTS: Final = 8
"""The server, the current and earlier connections of one person, and some that are about to be removed."""

SERVER_TOKEN_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Participant:
    """A participant of a room. `holder` names the process, if the participant is our server."""

    identity: str
    sid: str
    holder: str


class LiveKitServer:
    """A client of one LiveKit server. Its errors may contain a token, so they are replaced by ours."""

    def __init__(self, url: str, api_key: str, api_secret: str) -> None:
        self.url = url.replace("http", "ws", 1) if url.startswith("http") else url
        self._key, self._secret = api_key, api_secret
        self._api = api.LiveKitAPI(url, api_key, api_secret, failover=False)
        self._webhooks = api.WebhookReceiver(api.TokenVerifier(api_key, api_secret))

    async def create_room(self, name: str) -> None:
        """Create the room unless it exists."""
        async with _translated_errors():
            await self._api.room.create_room(
                api.CreateRoomRequest(
                    name=name,
                    empty_timeout=EMPTY_SECONDS,
                    departure_timeout=EMPTY_SECONDS,
                    max_participants=MAX_PARTICIPANTS,
                )
            )

    async def rooms(self, *, busy: bool) -> list[str]:
        """The names of all rooms; if `busy`, only of those with participants (counted with a delay)."""
        async with _translated_errors():
            listed = await self._api.room.list_rooms(api.ListRoomsRequest())
        return [room.name for room in listed.rooms if room.num_participants or not busy]

    async def answers(self) -> None:
        """Send a cheap request; raises if the server is down or rejects our key."""
        async with _translated_errors():
            await self._api.room.list_rooms(api.ListRoomsRequest(names=["nobody"]))

    async def participants(self, room: str) -> list[Participant]:
        """The participants of a room; none if there is no such room."""
        async with _translated_errors():
            try:
                listed = await self._api.room.list_participants(api.ListParticipantsRequest(room=room))
            except api.ServerError as error:
                if error.code != api.ServerErrorCode.NOT_FOUND:
                    raise
                return []
        return [Participant(each.identity, each.sid, each.metadata) for each in listed.participants]

    async def remove(self, room: str, identity: str) -> None:
        """Remove a participant. Their token is valid until it expires, so they may join again."""
        async with _translated_errors():
            try:
                who = api.RoomParticipantIdentity(room=room, identity=identity)
                await self._api.room.remove_participant(who)
            except api.ServerError as error:
                if error.code != api.ServerErrorCode.NOT_FOUND:
                    raise

    def token_for_client(self, room: str, identity: str, seconds: int) -> str:
        """A token that allows joining this room with this identity and sending data, and nothing else."""
        return self._token(room, identity, seconds).to_jwt()

    def token_for_orchestrator(self, room: str, holder: str) -> str:
        """A token for our server in that room; its metadata names the process."""
        return self._token(room, SERVER, SERVER_TOKEN_SECONDS).with_metadata(holder).to_jwt()

    def room_of_webhook(self, body: bytes, authorization: str) -> str | None:
        """The room that a webhook is about, if any. Raises unless the LiveKit server has signed this body."""
        try:
            event = self._webhooks.receive(body.decode(), authorization)
        except (PyJWTError, ParseError, ValueError):
            pass
        except Exception as error:  # the receiver has no exception class of its own
            if type(error) is not Exception:
                raise
        else:
            return event.room.name or None
        raise AnamnesisError(UNAUTHENTICATED)

    async def close(self) -> None:
        """Close the connections to the server."""
        await self._api.aclose()

    def _token(self, room: str, identity: str, seconds: int) -> api.AccessToken:
        grants = api.VideoGrants(
            room_join=True, room=room, can_publish=False, can_subscribe=False, can_publish_data=True
        )
        token = api.AccessToken(self._key, self._secret)
        return token.with_identity(identity).with_ttl(timedelta(seconds=seconds)).with_grants(grants)


@asynccontextmanager
async def _translated_errors() -> AsyncIterator[None]:
    try:
        yield
        return
    except (TimeoutError, api.ServerError, aiohttp.ClientError, DecodeError, ValueError):
        pass  # the last two: the answer is not from LiveKit, but for example from a proxy
    raise AnamnesisError(LIVEKIT_UNAVAILABLE)
