"""`/metrics`: the counters of this process, for Prometheus."""

from typing import Any

from fastapi import APIRouter, Response

from orchestrator.api.answers import problems
from orchestrator.ops import telemetry


def build_router() -> APIRouter:
    """Build the route. Anyone on this machine may read it; others need a key."""
    router = APIRouter(tags=["server"])
    prometheus: dict[int | str, Any] = {200: {"content": {"text/plain": {}}}}

    @router.get("/metrics", response_class=Response, responses=prometheus | problems())
    async def show() -> Response:
        """The counters of this process, in the text format of Prometheus."""
        text, content_type = telemetry.exposition()
        return Response(text, media_type=content_type)

    return router
