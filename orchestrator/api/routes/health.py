"""`/health`: which parts of the server work."""

import asyncio
from typing import Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from orchestrator.api.answers import Answer, problems
from orchestrator.api.ports import ConversationServer

HEALTH_SECONDS: Final = 5

NO_ANSWER: Final = {"orchestrator": "down: no_answer", "house": "down: no_answer"}
"""The parts if the checks take too long. `house` is the old name of `orchestrator`, kept for old clients."""


class ServerHealth(Answer):
    """`ok` or `degraded`; each part is `ok`, or `down: ` and the name of the reason."""

    status: str
    parts: dict[str, str]


def build_router(orchestrator: ConversationServer) -> APIRouter:
    """Build the route. Anyone may call it."""
    router = APIRouter(tags=["server"])

    @router.head("/health", include_in_schema=False)
    @router.get("/health", response_model=ServerHealth, responses=problems())
    async def show() -> JSONResponse:
        """Which parts of the server work. Anyone may ask."""
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                health = await orchestrator.health()
        except TimeoutError:
            return JSONResponse({"status": "degraded", "parts": NO_ANSWER})
        return JSONResponse({"status": health.status, "parts": dict(health.parts)})

    return router
