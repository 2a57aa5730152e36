"""`/v1/livekit/webhook`: LiveKit reports who joined or left a room."""

from fastapi import APIRouter, Request

from orchestrator.api.answers import problems
from orchestrator.api.body import read_body
from orchestrator.api.ports import Rooms
from orchestrator.api.routes.conversations import require_rooms


def build_router(rooms: Rooms | None, body_limit: int) -> APIRouter:
    """Build the route."""
    router = APIRouter(tags=["server"])

    @router.post("/v1/livekit/webhook", status_code=204, responses=problems())
    async def take_webhook(request: Request) -> None:
        """LiveKit has no key of ours. It signs the body with its API secret instead."""
        body = await read_body(request, body_limit)
        require_rooms(rooms).receive_webhook(body, request.headers.get("authorization", ""))

    return router
