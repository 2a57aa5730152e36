"""`/v1/ws`: the WebSocket that carries a conversation."""

import asyncio
from typing import Final

from fastapi import APIRouter, Request, WebSocket

from orchestrator.api.authentication import Authentication
from orchestrator.api.ports import Orchestrator
from orchestrator.api.sessions import Sessions
from orchestrator.errors import UPGRADE_REQUIRED, AnamnesisError
from orchestrator.transports.websocket import FAILED, WebSocketTransport

SIGNED_OUT: Final = 1008
"""The close code when the session of a connection ends: RFC 6455's policy violation."""

SESSION_CHECK_SECONDS: Final = 2.0
"""How often an open connection checks its session, which any process may have ended, or which expired."""


def build_router(
    orchestrator: Orchestrator, authentication: Authentication, unread_seconds: float
) -> APIRouter:
    """Build the route. A client that leaves its frames unread for `unread_seconds` is disconnected."""
    router = APIRouter()

    @router.websocket("/v1/ws")
    async def converse(websocket: WebSocket) -> None:
        caller = authentication.caller(websocket)
        try:
            await websocket.accept()
        except OSError:  # the client has disconnected meanwhile
            return
        transport = WebSocketTransport(websocket, timeout=unread_seconds)
        watching = asyncio.create_task(
            _close_when_signed_out(transport, authentication.sessions, caller.session)
        )
        try:
            await orchestrator.attend(transport, caller.person)
        except BaseException:
            await transport.close(FAILED)
            raise
        finally:
            watching.cancel()
        await transport.close()

    @router.get("/v1/ws")
    async def refuse_plain_request(request: Request) -> None:
        authentication.person(request)
        raise AnamnesisError(UPGRADE_REQUIRED)

    return router


async def _close_when_signed_out(
    transport: WebSocketTransport, sessions: Sessions, session: str | None
) -> None:
    """Close the connection once its session has ended. A connection opened with a key has no session."""
    if session is None:
        return
    while sessions.person(session) is not None:  # noqa: ASYNC110 - another process may end it
        await asyncio.sleep(SESSION_CHECK_SECONDS)
    await transport.close(SIGNED_OUT)
