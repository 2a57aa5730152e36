"""`/v1/ws`: the WebSocket that carries a conversation."""

import asyncio
from typing import Final

from fastapi import APIRouter, WebSocket
from starlette.requests import HTTPConnection

from orchestrator.api.access.checking import AccessCheck, caller_of
from orchestrator.api.access.roles import Caller
from orchestrator.api.ports import ConversationServer
from orchestrator.errors import UPGRADE_REQUIRED, AnamnesisError
from orchestrator.transports.websocket import FAILED, WebSocketTransport

SIGNED_OUT: Final = 1008
"""The close code when the session of a connection ends: RFC 6455's policy violation."""

SESSION_CHECK_SECONDS: Final = 2.0
"""How often an open connection checks its session, which any process may have ended, or which expired."""

KEY_CHECK_SECONDS: Final = 15.0
"""How often an open connection checks its key, which may have expired or been revoked."""


def build_router(orchestrator: ConversationServer, access: AccessCheck, unread_seconds: float) -> APIRouter:
    """Build the route. A client that leaves its frames unread for `unread_seconds` is disconnected."""
    router = APIRouter()

    @router.websocket("/v1/ws")
    async def converse(websocket: WebSocket) -> None:
        caller = caller_of(websocket)
        try:
            await websocket.accept()
        except OSError:  # the client has disconnected meanwhile
            return
        transport = WebSocketTransport(websocket, timeout=unread_seconds)
        watching = asyncio.create_task(_close_when_signed_out(transport, websocket, access, caller))
        try:
            await orchestrator.serve(transport, caller.person)
        except BaseException:
            await transport.close(FAILED)
            raise
        finally:
            watching.cancel()
        await transport.close()

    @router.get("/v1/ws", include_in_schema=False)
    async def refuse_plain_request() -> None:
        raise AnamnesisError(UPGRADE_REQUIRED)

    return router


async def _close_when_signed_out(
    transport: WebSocketTransport, connection: HTTPConnection, access: AccessCheck, caller: Caller
) -> None:
    """Close the connection once its session has ended, or its key has expired or was revoked."""
    seconds = KEY_CHECK_SECONDS if caller.session is None else SESSION_CHECK_SECONDS
    while await access.is_still_valid(connection):  # noqa: ASYNC110 - another process may end it
        await asyncio.sleep(seconds)
    await transport.close(SIGNED_OUT)
