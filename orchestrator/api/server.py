"""The HTTP server: uvicorn on one address, with time limits and without its signal handling."""

import asyncio
import math
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from orchestrator.api.problems import to_response
from orchestrator.errors import ADDRESS_UNAVAILABLE, REQUEST_TOO_SLOW, AnamnesisError
from orchestrator.transports.websocket import ABORT, CLAIMED, MEBIBYTE

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

REQUEST_SECONDS: Final = 30.0
"""How long a client may take to send one whole request, and to read what was sent to it."""

PONG_SECONDS: Final = 120.0
"""How long a client may take to answer a ping. With 20 s, a server with more messages than it can answer took
its own lateness for the client's, and closed every connection."""

HELD_BYTES: Final = 2 * MEBIBYTE
"""How much of one WebSocket message is held in memory; the transport refuses much smaller messages."""

HELD_FRAGMENTS: Final = 1024
"""How many fragments of a message are held before they are joined: even an empty one takes memory."""

HEADER_READ_BYTES: Final = 8
"""The largest read of a frame's header; every larger read is of its content."""


async def run_server(
    app: ASGIApp, host: str, port: int, on_ready: Callable[[int], None], *, grace: float = 10
) -> None:
    """Serve `app` until SIGTERM or SIGINT. `on_ready` is called with the port once requests are answered.

    After the signal the server accepts no connections, closes WebSockets with 1012 (service restart), and
    gives running requests `grace` seconds; a second signal ends it at once. The caller closes the
    orchestrator afterwards.
    """
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    try:
        async with listening(app, host, port, grace=grace) as server:

            def stop() -> None:
                server.force_exit = stopping.is_set()
                stopping.set()

            for number in SIGNALS:
                loop.add_signal_handler(number, stop)
            on_ready(server.port)
            await stopping.wait()
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def listening(
    app: ASGIApp,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    grace: float = 10,
    request_seconds: float = REQUEST_SECONDS,
) -> AsyncIterator["Server"]:
    """Serve `app` while the block runs. Port 0 picks a free one, which is in the server's `port`."""
    listener = _bind(host, port)
    server = Server(app, listener.getsockname()[1], grace, request_seconds)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.ready.wait()
        yield server
    finally:
        feed = getattr(getattr(app, "state", None), "feed", None)
        if feed is not None:
            feed.close()  # or open event streams would keep the server for the whole grace period
        server.should_exit = True
        await serving


class Server(uvicorn.Server):
    """uvicorn without its signal handling, which would end the process with the signal."""

    def __init__(self, app: ASGIApp, port: int, grace: float, request_seconds: float) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            http=partial(_HttpProtocol, request_seconds),  # type: ignore[arg-type]
            ws=_WebSocketProtocol,
            ws_max_size=sys.maxsize,  # uvicorn would close without an error; we skip large frames
            ws_per_message_deflate=False,
            ws_ping_timeout=PONG_SECONDS,
            timeout_graceful_shutdown=max(1, round(grace)),
        )
        super().__init__(config)
        self.port = port
        self.ready = asyncio.Event()

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Capture none."""
        return nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer requests, then set `ready`."""
        await super().startup(sockets)
        self.ready.set()


class _HttpProtocol(H11Protocol):
    """Limits how long a client may take to send a request and to read a response.

    uvicorn only limits the pause between two requests. Without more, a client that sends half a header would
    keep its connection for ever.
    """

    def __init__(self, seconds: float, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seconds = seconds
        self._request_timer = _Timer(self.loop, seconds, self._refuse_slow_request)
        self._response_timer = _Timer(self.loop, seconds, self._abort)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._request_timer.start()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_upgraded = self.transport.get_protocol() is not self
        if is_upgraded or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._request_timer.stop()
        else:
            self._request_timer.start()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._response_timer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._response_timer.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._request_timer.stop()
        self._response_timer.stop()
        super().connection_lost(exc)

    def _refuse_slow_request(self) -> None:
        """Answer 408 and close; just close if the client sent nothing, or if an answer has begun."""
        has_begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        if has_begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            problem = to_response(AnamnesisError(REQUEST_TOO_SLOW, most=math.ceil(self._seconds)))
            head = h11.Response(status_code=problem.status_code, headers=problem.raw_headers)
            for event in (head, h11.Data(data=bytes(problem.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _abort(self) -> None:
        """Drop the connection, because closing it would wait until the client reads."""
        self.transport.abort()


class _Timer:
    """Calls a function after some seconds, unless it is stopped before. Starting it again changes nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, act: Callable[[], None]) -> None:
        self._loop, self._seconds, self._act = loop, seconds, act
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if self._handle is None:
            self._handle = self._loop.call_later(self._seconds, self._act)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class _WebSocketProtocol(WebSocketsSansIOProtocol):
    """Can drop a client that does not read, and skips a frame that is far too large without storing it.

    A normal close would wait until such a client reads. The application learns of the large frame when its
    header arrives, so that it can send an error before closing. The content is skipped meanwhile, because
    most clients read only after they have sent it all.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read_exact = self.conn.reader.read_exact
        self.conn.reader.read_exact = self._read_or_skip  # type: ignore[method-assign, assignment]
        self._skipped_size: int | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._skipped_size is not None:
            event: Any = {"type": "websocket.receive", CLAIMED: self._skipped_size}
            self._skipped_size = None
            self.queue.put_nowait(event)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][ABORT] = {"now": self.transport.abort}

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) == HELD_FRAGMENTS:
            self.frames = [b"".join(self.frames)]
            if len(self.frames[0]) > HELD_BYTES:
                self._skipped_size, self.frames = len(self.frames[0]), []
        super().handle_cont(event)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.loop.call_later(self.close_timeout, self.transport.abort)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        # A request answered without an upgrade is finished; uvicorn would log an incomplete handshake.
        self.handshake_complete |= self.close_sent

    def _read_or_skip(self, count: int) -> Generator[None, None, bytes | bytearray]:
        """Return the next `count` bytes; if they are too many to hold, discard them and return nothing."""
        if count <= max(HEADER_READ_BYTES, HELD_BYTES - (self.conn.current_size or 0)):
            return (yield from self._read_exact(count))
        self._skipped_size, buffer = count, self.conn.reader.buffer
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
