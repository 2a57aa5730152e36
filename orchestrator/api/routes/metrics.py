"""`/metrics`: the counters of this process, for Prometheus."""

from ipaddress import ip_address

from fastapi import APIRouter, Request, Response

from orchestrator.api.authentication import Authentication
from orchestrator.ops import telemetry


def build_router(authentication: Authentication) -> APIRouter:
    """Build the route. Anyone on this machine may read it; others need a key."""
    router = APIRouter()

    @router.get("/metrics")
    async def show(request: Request) -> Response:
        if not _is_from_this_machine(request):
            authentication.person(request)
        text, content_type = telemetry.exposition()
        return Response(text, media_type=content_type)

    return router


def _is_from_this_machine(request: Request) -> bool:
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:  # a proxy in front of the server did not pass on an address
        return False
