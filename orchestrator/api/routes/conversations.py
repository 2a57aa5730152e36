"""`/v1/conversations`: starts a conversation with a LiveKit room, and hands out tokens for the room."""

from fastapi import APIRouter, Request

from orchestrator.api.authentication import Authentication
from orchestrator.api.ports import Rooms
from orchestrator.errors import LIVEKIT_NOT_CONFIGURED, AnamnesisError


def build_router(authentication: Authentication, rooms: Rooms | None) -> APIRouter:
    """Build the routes. Without `rooms`, each refuses."""
    router = APIRouter()

    @router.post("/v1/conversations", status_code=201)
    async def start(request: Request) -> dict[str, str]:
        person = authentication.person(request)
        conversation_id = await require_rooms(rooms).create(person)
        return {"id": conversation_id, "room": conversation_id}

    @router.post("/v1/conversations/{conversation_id}/token")
    async def make_token(request: Request, conversation_id: str) -> dict[str, str]:
        person = authentication.person(request)
        admission = await require_rooms(rooms).admit(person, conversation_id)
        return {
            "url": admission.url,
            "room": admission.room,
            "identity": admission.identity,
            "token": admission.token,
            "topic": admission.topic,
            "expiresAt": admission.expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    return router


def require_rooms(rooms: Rooms | None) -> Rooms:
    """Return the rooms, or refuse the request if this server has no LiveKit."""
    if rooms is None:
        raise AnamnesisError(LIVEKIT_NOT_CONFIGURED)
    return rooms
