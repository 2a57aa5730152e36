"""The HTTP application: the routes of `routes/` behind the security checks of `middleware.py`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fastapi import FastAPI

from orchestrator.api.authentication import Authentication
from orchestrator.api.middleware import SecurityMiddleware
from orchestrator.api.ports import Memories, Orchestrator, Rooms
from orchestrator.api.problems import add_error_handlers
from orchestrator.api.routes import (
    conversations,
    health,
    livekit,
    memories,
    metrics,
    page,
    session,
    websocket,
)

BODY_LIMIT: Final = 64 * 1024


def create_app(
    orchestrator: Orchestrator,
    authentication: Authentication,
    *,
    hosts: Iterable[str] = (),
    body_limit: int = BODY_LIMIT,
    unread_seconds: float = 20,
    console: Path | None = None,
    rooms: Rooms | None = None,
    memory: Memories | None = None,
) -> FastAPI:
    """Build the application for one orchestrator.

    `hosts` are the names it answers to besides those of the loopback. A client that leaves its frames unread
    for `unread_seconds` is disconnected. `console` is the folder of the built page, if it is not the usual
    one. `rooms` are the LiveKit rooms, if LiveKit is configured. `memory` searches long-term memory.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(SecurityMiddleware, hosts=hosts, livekit=rooms.url if rooms else "")
    add_error_handlers(app)
    for router in (
        websocket.build_router(orchestrator, authentication, unread_seconds),
        session.build_router(authentication, body_limit),
        conversations.build_router(authentication, rooms),
        livekit.build_router(rooms, body_limit),
        memories.build_router(authentication, memory, body_limit),
        health.build_router(orchestrator),
        metrics.build_router(authentication),
    ):
        app.include_router(router)
    page.serve_page(app, console)
    return app
