"""The house over HTTP: the WebSocket, the session of a browser, health, numbers, and the console's files."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.staticfiles import StaticFiles

from orchestrator import telemetry
from orchestrator.api import strict_json
from orchestrator.api.door import Door
from orchestrator.api.keys import Keys, cookie_for
from orchestrator.api.problems import as_response, of_departures, of_validation
from orchestrator.errors import (
    BODY_TOO_LARGE,
    INTERNAL,
    LIVEKIT_NOT_CONFIGURED,
    METHOD_NOT_ALLOWED,
    PATH_NOT_FOUND,
    TOO_MANY_ATTEMPTS,
    UNAUTHENTICATED,
    UPGRADE_REQUIRED,
    AnamnesisError,
)
from orchestrator.ports import Transport
from orchestrator.transports.websocket import FAILED, WebSocketTransport
from orchestrator.wire.ids import PersonId

BODY_MOST: Final = 64 * 1024
HEALTH_SECONDS: Final = 5
WITHOUT_A_CONSOLE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Anamnesis</title>
<h1>Anamnesis is running</h1>
<p>Its page has not been built. In a checkout, <code>make run</code> builds it and starts again.
<p>Meanwhile <code>anamnesis chat</code> talks in a terminal; <a href="/health">/health</a> tells how it is.
</html>
"""

M = TypeVar("M", bound=BaseModel)


class Health(Protocol):
    """How the house is, as it says itself."""

    @property
    def status(self) -> Literal["ok", "degraded"]:
        """One word for all of it."""
        ...

    @property
    def parts(self) -> Mapping[str, str]:
        """For each part by name: `ok`, or `down: ` and the name of a reason."""
        ...


class House(Protocol):
    """What the API asks of the house."""

    async def attend(self, transport: Transport, person_id: str) -> None:
        """Serve one connection until it ends."""
        ...

    async def health(self) -> Health:
        """How it is now."""
        ...


class Admission(Protocol):
    """What a client needs to come into a room."""

    @property
    def url(self) -> str: ...
    @property
    def room(self) -> str: ...
    @property
    def identity(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def expires_at(self) -> datetime: ...


class Rooms(Protocol):
    """What the API asks of the LiveKit rooms, where there are any."""

    @property
    def url(self) -> str:
        """Where clients connect to."""
        ...

    async def create(self, person_id: str) -> str:
        """Begin a conversation of that person, with its room; its id, which is the room's name."""
        ...

    async def admit(self, person_id: str, conversation_id: str) -> Admission:
        """A token for the owner of a conversation."""
        ...

    def told(self, body: bytes, authorization: str) -> None:
        """Take a webhook of LiveKit; one that is not its own is refused."""
        ...


class NewSession(BaseModel):
    """What a page posts to be let in."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    key: str


def create_app(
    house: House,
    keys: Keys,
    *,
    hosts: Iterable[str] = (),
    body_most: int = BODY_MOST,
    patience: float = 20,
    console: Path | None = None,
    rooms: Rooms | None = None,
) -> FastAPI:
    """The application over one house.

    `hosts` are names it answers to besides the loopback's, `patience` how many seconds a client may leave its
    frames unread, `console` the built page, if not the one that comes along, and `rooms` those of LiveKit.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Door, hosts=hosts, livekit=rooms.url if rooms else "")
    app.add_exception_handler(HTTPException, _refused_by_the_router)
    app.add_exception_handler(RequestValidationError, _refused_by_a_model)
    wrong_keys = Attempts()

    def who(connection: HTTPConnection) -> PersonId:
        """Whose request it is. A key in the header goes before a cookie."""
        given, cookie = connection.headers.get("authorization"), connection.cookies.get(_cookie(connection))
        scheme, _, key = (given or "").partition(" ")
        if given is None and cookie is None:
            raise AnamnesisError(UNAUTHENTICATED)
        person = keys.owner_of_cookie(cookie or "") if given is None else keys.owner(key.strip())
        if person is None or (given is not None and scheme.lower() != "bearer"):
            wrong_keys.count()
            raise AnamnesisError(UNAUTHENTICATED)
        return person

    @app.websocket("/v1/ws")
    async def converse(websocket: WebSocket) -> None:
        person = who(websocket)
        try:
            await websocket.accept()
        except OSError:  # the client has left meanwhile
            return
        transport = WebSocketTransport(websocket, patience=patience)
        try:
            await house.attend(transport, person)
        except BaseException:
            await transport.close(FAILED)
            raise
        await transport.close()

    @app.get("/v1/ws")
    async def not_a_websocket(request: Request) -> None:
        who(request)
        raise AnamnesisError(UPGRADE_REQUIRED)

    @app.get("/v1/session", status_code=204)
    async def signed_in(request: Request) -> None:
        who(request)

    @app.post("/v1/session", status_code=204)
    async def sign_in(request: Request) -> Response:
        given = await _read(request, NewSession, body_most)
        if keys.owner(given.key) is None:
            wrong_keys.count()
            raise AnamnesisError(UNAUTHENTICATED)
        response = Response(status_code=204)
        response.set_cookie(
            _cookie(request),
            cookie_for(given.key),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    def with_rooms() -> Rooms:
        if rooms is None:
            raise AnamnesisError(LIVEKIT_NOT_CONFIGURED)
        return rooms

    @app.post("/v1/conversations", status_code=201)
    async def begin(request: Request) -> dict[str, str]:
        person = who(request)
        conversation_id = await with_rooms().create(person)
        return {"id": conversation_id, "room": conversation_id}

    @app.post("/v1/conversations/{conversation_id}/token")
    async def admit(request: Request, conversation_id: str) -> dict[str, str]:
        person = who(request)
        admitted = await with_rooms().admit(person, conversation_id)
        return {
            "url": admitted.url,
            "room": admitted.room,
            "identity": admitted.identity,
            "token": admitted.token,
            "topic": admitted.topic,
            "expiresAt": admitted.expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    @app.post("/v1/livekit/webhook", status_code=204)
    async def told(request: Request) -> None:
        """LiveKit says who came and went. It has no key of ours; it signs what it says with its secret."""
        body = await _body(request, body_most)
        with_rooms().told(body, request.headers.get("authorization", ""))

    @app.api_route("/health", methods=["GET", "HEAD"])
    async def health() -> JSONResponse:
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                now = await house.health()
        except TimeoutError:
            return JSONResponse({"status": "degraded", "parts": {"house": "down: no_answer"}})
        return JSONResponse({"status": now.status, "parts": dict(now.parts)})

    @app.get("/metrics")
    async def metrics(request: Request) -> Response:
        """From this machine anyone may read the numbers, which speak of nobody; from elsewhere with a key."""
        if not _from_this_machine(request):
            who(request)
        text, content_type = telemetry.exposition()
        return Response(text, media_type=content_type)

    files = console or built_console()
    if files is not None:
        app.mount("/", StaticFiles(directory=files, html=True))
    else:

        @app.api_route("/", methods=["GET", "HEAD"])
        async def page() -> HTMLResponse:
            return HTMLResponse(WITHOUT_A_CONSOLE)

    return app


class Attempts:
    """Slows down whoever tries keys. The right key is let in all the same: nobody can be locked out."""

    def __init__(
        self, most: int = 30, seconds: float = 60, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._failed: deque[float] = deque(maxlen=most)
        self._seconds, self._now = seconds, now

    def count(self) -> None:
        """Take note of a wrong key; too many in too short a time are an error of their own."""
        now = self._now()
        wait = self._failed[0] + self._seconds - now if len(self._failed) == self._failed.maxlen else 0
        if wait > 0:
            raise AnamnesisError(TOO_MANY_ATTEMPTS, seconds=math.ceil(wait))
        self._failed.append(now)


def built_console() -> Path | None:
    """Where the page's files are: inside an installed wheel, in a checkout where it was built, or nowhere."""
    package = Path(__file__).parents[1]
    folders = (package / "_console", package.parent / "console" / "dist")
    return next((folder for folder in folders if (folder / "index.html").is_file()), None)


def _cookie(connection: HTTPConnection) -> str:
    """Browsers keep cookies by host without its port; two servers on one machine must not share theirs."""
    return f"anamnesis{connection.url.port or ''}"


def _from_this_machine(request: Request) -> bool:
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:  # what stands in front of the server did not say who asks
        return False


async def _read(request: Request, model: type[M], most: int) -> M:
    try:
        return model.model_validate(strict_json.parse(await _body(request, most)))
    except ValidationError as refused:
        problem = of_validation(refused)
    raise problem


async def _body(request: Request, most: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise AnamnesisError(BODY_TOO_LARGE, most=most)
    return bytes(body)


async def _refused_by_the_router(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    problem = {404: PATH_NOT_FOUND, 405: METHOD_NOT_ALLOWED}.get(status, INTERNAL)
    response = as_response(AnamnesisError(problem))
    response.headers.update(getattr(error, "headers", None) or {})
    return response


async def _refused_by_a_model(_: Request, error: Exception) -> Response:
    departures = error.errors() if isinstance(error, RequestValidationError) else []
    return as_response(of_departures(departures))
