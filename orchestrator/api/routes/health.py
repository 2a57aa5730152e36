"""`/health`: which parts of the server work."""

import asyncio
from typing import Final

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from orchestrator.api.ports import Orchestrator

HEALTH_SECONDS: Final = 5

NO_ANSWER: Final = {"orchestrator": "down: no_answer", "house": "down: no_answer"}
"""The parts if the checks take too long. `house` is the old name of `orchestrator`, kept for old clients."""


def build_router(orchestrator: Orchestrator) -> APIRouter:
    """Build the route. Anyone may call it."""
    router = APIRouter()

    @router.api_route("/health", methods=["GET", "HEAD"])
    async def show() -> JSONResponse:
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                health = await orchestrator.health()
        except TimeoutError:
            return JSONResponse({"status": "degraded", "parts": NO_ANSWER})
        return JSONResponse({"status": health.status, "parts": dict(health.parts)})

    return router
