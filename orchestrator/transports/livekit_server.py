"""What we ask of the LiveKit server itself: rooms, who is in them, tokens, whether a webhook is its own."""

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
"""How long LiveKit keeps a room that nobody is in: longer than it takes a token, which is a minute after that
has ended, for one that is gone cannot be joined. With the next token it is made again."""

MOST_PARTICIPANTS: Final = 8
"""The house, one person's connections that replace each other, and some who are about to be removed."""

HOUSE_TOKEN_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody in a room. `holder` is the process that is there for the house, if it is the house."""

    identity: str
    sid: str
    holder: str


class LiveKitServer:
    """One LiveKit server. Its errors may hold a token or an address; ours say only that it failed."""

    def __init__(self, url: str, api_key: str, api_secret: str) -> None:
        self.url = url.replace("http", "ws", 1) if url.startswith("http") else url
        self._key, self._secret = api_key, api_secret
        self._api = api.LiveKitAPI(url, api_key, api_secret, failover=False)
        self._webhooks = api.WebhookReceiver(api.TokenVerifier(api_key, api_secret))

    async def create_room(self, name: str) -> None:
        """Make the room, unless it is there."""
        async with _as_ours():
            await self._api.room.create_room(
                api.CreateRoomRequest(
                    name=name,
                    empty_timeout=EMPTY_SECONDS,
                    departure_timeout=EMPTY_SECONDS,
                    max_participants=MOST_PARTICIPANTS,
                )
            )

    async def rooms(self, *, busy: bool) -> list[str]:
        """All rooms; or those that somebody is in, which LiveKit counts some seconds late."""
        async with _as_ours():
            listed = await self._api.room.list_rooms(api.ListRoomsRequest())
        return [room.name for room in listed.rooms if room.num_participants or not busy]

    async def answers(self) -> None:
        """Ask something that costs it little; an error says that it is down or does not let us in."""
        async with _as_ours():
            await self._api.room.list_rooms(api.ListRoomsRequest(names=["nobody"]))

    async def participants(self, room: str) -> list[Participant]:
        """Who is in a room now; nobody, if there is no such room."""
        async with _as_ours():
            try:
                listed = await self._api.room.list_participants(api.ListParticipantsRequest(room=room))
            except api.ServerError as error:
                if error.code != api.ServerErrorCode.NOT_FOUND:
                    raise
                return []
        return [Participant(each.identity, each.sid, each.metadata) for each in listed.participants]

    async def remove(self, room: str, identity: str) -> None:
        """Put somebody out. Their token stays good until it ends, so this is no ban."""
        async with _as_ours():
            try:
                who = api.RoomParticipantIdentity(room=room, identity=identity)
                await self._api.room.remove_participant(who)
            except api.ServerError as error:
                if error.code != api.ServerErrorCode.NOT_FOUND:
                    raise

    def token_for_client(self, room: str, identity: str, seconds: int) -> str:
        """To join that room alone, as that identity, and to send data there; nothing else."""
        return self._token(room, identity, seconds).to_jwt()

    def token_for_house(self, room: str, holder: str) -> str:
        """For the house in that room, which tells there which of its processes it is."""
        return self._token(room, SERVER, HOUSE_TOKEN_SECONDS).with_metadata(holder).to_jwt()

    def told(self, body: bytes, authorization: str) -> str | None:
        """Which room a webhook speaks of, if of any. It must be signed by the server, over this very body."""
        try:
            event = self._webhooks.receive(body.decode(), authorization)
        except (PyJWTError, ParseError, ValueError):
            pass
        except Exception as error:  # the receiver raises no class of its own
            if type(error) is not Exception:
                raise
        else:
            return event.room.name or None
        raise AnamnesisError(UNAUTHENTICATED)

    async def close(self) -> None:
        """Let go of the connections to it."""
        await self._api.aclose()

    def _token(self, room: str, identity: str, seconds: int) -> api.AccessToken:
        grants = api.VideoGrants(
            room_join=True, room=room, can_publish=False, can_subscribe=False, can_publish_data=True
        )
        token = api.AccessToken(self._key, self._secret)
        return token.with_identity(identity).with_ttl(timedelta(seconds=seconds)).with_grants(grants)


@asynccontextmanager
async def _as_ours() -> AsyncIterator[None]:
    try:
        yield
        return
    except (TimeoutError, api.ServerError, aiohttp.ClientError, DecodeError, ValueError):
        pass  # the last two: what answers is something else, such as a proxy's page
    raise AnamnesisError(LIVEKIT_UNAVAILABLE)
