"""An HTTP proxy before a server. It can refuse requests, lose responses, slow them down, or hang."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import uvicorn
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of a request: refused with `status`, or left to `hang`; or done with its answer `lost`,
    or coming in bytes with a pause of `drip` seconds between any two.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    lost: bool = False
    drip: float = 0.0
    hang: bool = False


@dataclass
class HttpProxy:
    """Forwards requests. A request that matches a pattern gets the next fault of that pattern."""

    server: str
    url: str = ""
    asked: list[str] = field(default_factory=list)
    faults: list[tuple[re.Pattern[str], list[Fault]]] = field(default_factory=list)

    def script(self, pattern: str, *faults: Fault) -> None:
        """Give these faults to the next requests that match, such as `PATCH /v1/blocks/…`."""
        self.faults.append((re.compile(pattern), list(faults)))

    def count(self, pattern: str) -> int:
        """The number of requests that matched."""
        return sum(bool(re.match(pattern, each)) for each in self.asked)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        called = f"{request.method} {request.url.path}"
        self.asked.append(called)
        fault = next(
            (left.pop(0) for pattern, left in self.faults if left and pattern.match(called)), Fault()
        )
        if fault.hang:
            await asyncio.Event().wait()
        if fault.status:
            await Response(status_code=fault.status, headers=dict(fault.headers))(scope, receive, send)
            return
        async with httpx.AsyncClient(base_url=self.server, timeout=60, trust_env=False) as client:
            answer = await client.request(
                request.method,
                request.url.path,
                params=httpx.QueryParams(request.url.query),
                content=await request.body(),
                headers={"content-type": request.headers.get("content-type", "application/json")},
            )
        headers = {"content-type": answer.headers.get("content-type", "application/json")}
        content = answer.content
        if fault.drip:
            await StreamingResponse(_dripping(content, fault.drip), answer.status_code, headers)(
                scope, receive, send
            )
            return
        if fault.lost:
            headers["content-length"] = str(len(content) + 1)  # the server then closes the connection
            content = content[:10]
        await Response(content, answer.status_code, headers)(scope, receive, send)


async def _dripping(content: bytes, pause: float) -> AsyncIterator[bytes]:
    for byte in content:
        yield bytes([byte])
        await asyncio.sleep(pause)


@asynccontextmanager
async def before(server: str) -> AsyncIterator[HttpProxy]:
    """Run a proxy before the server at that address. Yields the proxy's address."""
    proxy = HttpProxy(server)
    async with listening(proxy) as proxy.url:
        yield proxy


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an application. Yields its address."""
    running = uvicorn.Server(
        uvicorn.Config(
            app,
            port=0,
            log_config=None,
            log_level="critical",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
    )
    task = asyncio.create_task(running.serve())
    while not running.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    finally:
        running.should_exit = True
        await task
