"""What stands before every request: which names we answer to, which pages may ask, what a page may load."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.api.problems import as_response
from orchestrator.errors import FOREIGN_HOST, FOREIGN_ORIGIN, INTERNAL, AnamnesisError
from orchestrator.logs import get_logger

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
API: Final = "/v1/"
_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
}
_POLICY: Final = (
    "default-src 'self'; connect-src 'self'{sockets}; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Door:
    """Lets a request in, or answers it with the problem; nothing that fails behind it passes it unsaid.

    A page elsewhere can make its own name resolve to this machine, so only names we know are answered.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), livekit: str = "") -> None:
        self._app = app
        self._elsewhere = f" {livekit} {livekit.replace('ws', 'http', 1)}" if livekit else ""
        self._hosts = LOOPBACK | {f"[{host}]" if ":" in host else host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one request or WebSocket through."""
        connection, begun = HTTPConnection(scope), False

        async def say(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"].endswith("response.start"):
                _add_headers(MutableHeaders(scope=message), connection, self._elsewhere)
            await send(message)

        try:
            self._check(connection)
            await self._app(scope, receive, say)
            return
        except ClientDisconnect:
            return
        except AnamnesisError as error:
            answer = error
        except Exception as error:
            get_logger().error("request_failed", kind=scope["type"], exc_info=error)
            answer = AnamnesisError(INTERNAL)
        if not begun:
            await as_response(answer)(scope, receive, say)

    def _check(self, connection: HTTPConnection) -> None:
        host = connection.headers.get("host", "").lower()
        known = _HOST.fullmatch(host)
        if known is None or known["name"] not in self._hosts:
            raise AnamnesisError(FOREIGN_HOST)
        origin = connection.headers.get("origin")
        if origin is not None and connection.url.path.startswith(API) and _netloc(origin) != host:
            raise AnamnesisError(FOREIGN_ORIGIN)


def _netloc(origin: str) -> str | None:
    """The host and port of a page; a page without one, such as a file, is nobody's."""
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ("http", "https") else None


def _add_headers(headers: MutableHeaders, connection: HTTPConnection, elsewhere: str) -> None:
    for name, value in _HEADERS.items():
        headers[name] = value
    host = connection.headers.get("host", "").lower()
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    headers["Content-Security-Policy"] = _POLICY.format(sockets=sockets + elsewhere)
    # A browser asks again for files, and hears 304 if they did not change; nothing else is kept at all.
    headers.setdefault("Cache-Control", "no-cache" if "etag" in headers else "no-store")
