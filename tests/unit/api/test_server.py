"""How the server starts and stops, and how long it waits for slow clients."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from orchestrator.api.server import REQUEST_SECONDS, SIGNALS, listening, run_server
from orchestrator.errors import ADDRESS_UNAVAILABLE, AnamnesisError


class Pair:
    """An application with one long request, one large response and one WebSocket."""

    def __init__(self) -> None:
        self.asked, self.answer = asyncio.Event(), asyncio.Event()
        self.app = Starlette(
            routes=[
                Route("/", self.respond),
                Route("/body", self.read_body, methods=["POST"]),
                Route("/large", self.send_much),
                WebSocketRoute("/ws", self.listen),
            ]
        )

    async def respond(self, request: Request) -> PlainTextResponse:
        self.asked.set()
        await self.answer.wait()
        return PlainTextResponse("done")

    async def read_body(self, request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def send_much(self, request: Request) -> PlainTextResponse:
        return PlainTextResponse("x" * 50_000_000)

    async def listen(self, websocket: WebSocket) -> None:
        await websocket.accept()
        while (await websocket.receive())["type"] == "websocket.receive":
            await websocket.send_bytes(b"heard")


async def serve(app: Starlette, **options: float) -> tuple[asyncio.Task[None], int]:
    """A server under way, as the command runs it, and its port."""
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(run_server(app, "127.0.0.1", 0, ready.set_result, **options))
    return serving, await ready


def signalled(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


async def test_a_program_that_embeds_it_keeps_its_own_signals() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    async with listening(Starlette()):
        during = [signal.getsignal(number) for number in SIGNALS]

    assert during == before


@pytest.mark.parametrize("number", SIGNALS)
async def test_a_signal_stops_the_server_and_closes_websockets_with_1012(number: signal.Signals) -> None:
    serving, port = await serve(Pair().app)

    async with connect(f"ws://127.0.0.1:{port}/ws") as websocket:
        signalled(number)
        with pytest.raises(ConnectionClosed):
            await websocket.recv()

        assert websocket.close_code == 1012
    await serving
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


async def test_a_running_request_is_answered_and_no_new_connection_is_accepted() -> None:
    pair = Pair()
    serving, port = await serve(pair.app)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
        under_way = asyncio.create_task(http.get("/"))
        await pair.asked.wait()

        signalled(signal.SIGTERM)
        await until_nobody_listens(port)
        pair.answer.set()

        assert (await under_way).text == "done"
    await serving


async def until_nobody_listens(port: int) -> None:
    with suppress(ConnectionError):
        while True:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()


async def test_a_request_that_does_not_end_is_given_up_after_the_grace() -> None:
    pair = Pair()
    serving, port = await serve(pair.app, grace=1)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
        under_way = asyncio.create_task(http.get("/"))
        await pair.asked.wait()

        signalled(signal.SIGTERM)

        await serving
        await asyncio.wait([under_way])
        assert under_way.exception() is not None or under_way.result().status_code == 500


async def test_a_second_signal_does_not_wait() -> None:
    pair = Pair()
    serving, port = await serve(pair.app, grace=3600)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
        under_way = asyncio.create_task(http.get("/"))
        await pair.asked.wait()

        signalled(signal.SIGTERM)
        signalled(signal.SIGINT)

        await serving
        pair.answer.set()
        await asyncio.wait([under_way])


def test_a_process_that_gets_a_signal_exits_with_0() -> None:
    program = """
import asyncio
from starlette.applications import Starlette
from orchestrator.api.server import SIGNALS, listening, run_server

asyncio.run(run_server(Starlette(), "127.0.0.1", 0, lambda port: print(port, flush=True)))
print("closed")
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate()

    assert port > 0
    assert (process.returncode, out, err) == (0, "closed\n", "")


async def test_a_port_in_use_is_refused_by_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(AnamnesisError) as refused:
            await run_server(Starlette(), "127.0.0.1", port, print)

    assert refused.value.problem is ADDRESS_UNAVAILABLE
    assert refused.value.facts["port"] == port


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1"])
async def test_a_host_that_is_not_here_is_refused_by_reason(host: str) -> None:
    with pytest.raises(AnamnesisError) as refused:
        await run_server(Starlette(), host, 0, print)

    assert refused.value.problem is ADDRESS_UNAVAILABLE


# --- slow clients -----------------------------------------------------------------------------------------

WHOLE = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"


def test_a_client_has_half_a_minute_for_a_request() -> None:
    assert REQUEST_SECONDS == 30


async def answer_to(*parts: bytes) -> bytes:
    """What the server answers until it closes the connection, if nothing more than `parts` is ever sent."""
    async with listening(Pair().app, request_seconds=0.2) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        answer = await reader.read()
        writer.close()
        return answer


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET / HTTP/1.1\r\nHost: loc"],
        [b"G"],
        [WHOLE[:-1]],
        [WHOLE[:40], WHOLE[40:-2]],
        [b"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"],
    ],
    ids=["header", "letter", "body", "nothing of a body", "chunk"],
)
async def test_a_request_that_is_never_complete_is_refused_and_closed(parts: list[bytes]) -> None:
    answer = await answer_to(*parts)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"/problems/request_too_slow" in answer


async def test_a_connection_on_which_nothing_is_sent_is_closed() -> None:
    assert await answer_to() == b""


async def test_a_second_request_on_a_connection_has_the_same_limit() -> None:
    answer = await answer_to(WHOLE, b"GET / HTTP/1.1\r\n")

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in answer


async def test_a_websocket_and_a_long_answer_outlive_the_limit_of_a_request() -> None:
    pair = Pair()
    async with (
        listening(pair.app, request_seconds=0.1) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as http,
        connect(f"ws://127.0.0.1:{server.port}/ws") as websocket,
    ):
        under_way = asyncio.create_task(http.get("/"))
        await pair.asked.wait()
        await asyncio.sleep(0.3)
        pair.answer.set()
        await websocket.send(b"still there?")

        assert await websocket.recv() == b"heard"
        assert (await under_way).text == "done"


async def test_a_client_that_does_not_read_its_answer_is_dropped() -> None:
    async with listening(Pair().app, request_seconds=0.1) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readexactly(1)
        while server.server_state.connections:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        writer.close()
