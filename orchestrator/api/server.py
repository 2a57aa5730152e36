"""Listens on one address, until it is told to stop."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from orchestrator.errors import ADDRESS_UNAVAILABLE, AnamnesisError
from orchestrator.transports.websocket import ABORT, MEBIBYTE

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


async def run_server(
    app: ASGIApp, host: str, port: int, on_ready: Callable[[int], None], *, grace: float = 10
) -> None:
    """Serve `app` until SIGTERM or SIGINT; `on_ready` hears the port once requests are answered.

    Then nobody new is let in, WebSockets are closed with 1012 (the server restarts), and what is under way
    has `grace` seconds; a second signal does not wait. Whoever opened the house closes it after this returns.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    try:
        async with listening(app, host, port, grace=grace) as server:

            def stop() -> None:
                server.force_exit = told.is_set()
                told.set()

            for number in SIGNALS:
                loop.add_signal_handler(number, stop)
            on_ready(server.port)
            await told.wait()
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def listening(
    app: ASGIApp, host: str = "127.0.0.1", port: int = 0, *, grace: float = 10
) -> AsyncIterator["Server"]:
    """Serve `app` for as long as the block runs. Port 0 picks a free one; the server given knows which."""
    listener = _bind(host, port)
    server = Server(app, listener.getsockname()[1], grace)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.ready.wait()
        yield server
    finally:
        server.should_exit = True
        await serving


class Server(uvicorn.Server):
    """uvicorn, with signals left to its caller: its own handling would end the process by the signal."""

    def __init__(self, app: ASGIApp, port: int, grace: float) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws=_WebSocketProtocol,
            # Above what a frame may have, so that one a little too large is refused in our own words.
            ws_max_size=4 * MEBIBYTE,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=max(1, round(grace)),
        )
        super().__init__(config)
        self.port = port
        self.ready = asyncio.Event()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Nothing to capture."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        self.ready.set()


class _WebSocketProtocol(WebSocketsSansIOProtocol):
    """Can let go of a peer that does not read. Closing politely would wait until it does."""

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][ABORT] = {"now": self.transport.abort}

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.loop.call_later(self.close_timeout, self.transport.abort)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        rule = (
            "there is no such name" if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        )
    raise AnamnesisError(ADDRESS_UNAVAILABLE, host=host, port=port, rule=rule)
