"""Listens on one address, until it is told to stop."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from orchestrator.errors import ADDRESS_UNAVAILABLE, AnamnesisError
from orchestrator.transports.websocket import ABORT, CLAIMED, MEBIBYTE

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

ROOM: Final = 2 * MEBIBYTE
"""How much of one message is held, whatever it claims to have; the transport refuses far less."""

PARTS: Final = 1024
"""How many parts of a message are held before they are joined: even an empty one takes room."""

IN_A_HEADER: Final = 8
"""The most bytes that are read at once of what is not yet a frame's content."""


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
            ws_max_size=sys.maxsize,  # it would close without a word; what is too large is skipped instead
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
    """Can let go of a peer that does not read, and lets a frame that is far too large pass by unread.

    Closing politely would wait until such a peer reads. And of such a frame the application hears at once, so
    that it can say why it closes. The rest is skipped meanwhile: most peers listen only once it is sent.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read_exact = self.conn.reader.read_exact
        self.conn.reader.read_exact = self._read_or_skip  # type: ignore[method-assign, assignment]
        self._claimed: int | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._claimed is not None:
            told: Any = {"type": "websocket.receive", CLAIMED: self._claimed}
            self._claimed = None
            self.queue.put_nowait(told)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][ABORT] = {"now": self.transport.abort}

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) == PARTS:
            self.frames = [b"".join(self.frames)]
            if len(self.frames[0]) > ROOM:
                self._claimed, self.frames = len(self.frames[0]), []
        super().handle_cont(event)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.loop.call_later(self.close_timeout, self.transport.abort)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        # What was answered instead of an upgrade is over; uvicorn would log that nobody upgraded.
        self.handshake_complete |= self.close_sent

    def _read_or_skip(self, count: int) -> Generator[None, None, bytes | bytearray]:
        """The next `count` bytes; nothing, once they have passed, if there is no room for so many."""
        if count <= max(IN_A_HEADER, ROOM - (self.conn.current_size or 0)):
            return (yield from self._read_exact(count))
        self._claimed, buffer = count, self.conn.reader.buffer
        while count > len(buffer):
            count -= len(buffer)
            buffer.clear()
            yield
        del buffer[:count]
        return b""


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        rule = (
            "there is no such name" if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        )
    raise AnamnesisError(ADDRESS_UNAVAILABLE, host=host, port=port, rule=rule)
