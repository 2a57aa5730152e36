"""Checks every request before a route sees it, and adds the security headers to every response."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.api.problems import to_response
from orchestrator.errors import FOREIGN_HOST, FOREIGN_ORIGIN, INTERNAL, AnamnesisError
from orchestrator.ops.logs import get_logger

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
API: Final = "/v1/"
OWN_PAGES: Final = ("same-origin", "none")
"""The values of Sec-Fetch-Site for a page of this server, and for an address that the person typed."""

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(self)",
}
_GUEST: Final = {
    "Vary": "Origin",
    "Access-Control-Expose-Headers": "Idempotency-Replayed, Retry-After",
}
"""Headers of an answer that a page of an allowed origin may read."""
_PREFLIGHT: Final = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PATCH, DELETE",
    "Access-Control-Allow-Headers": (
        "Authorization, Content-Type, Idempotency-Key, Anamnesis-Reason, Last-Event-ID"
    ),
    "Access-Control-Max-Age": "600",
}
_POLICY: Final = (
    "default-src 'self'; connect-src 'self'{sockets}; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class SecurityMiddleware:
    """Refuses requests for foreign hosts and from foreign pages; turns every error into a problem response.

    The Host header is checked because a foreign page can make its own domain name resolve to this machine.
    """

    def __init__(
        self, app: ASGIApp, hosts: Iterable[str] = (), livekit: str = "", origins: Iterable[str] = ()
    ) -> None:
        """`origins` are those of other pages that may call the API, with a key and never with a cookie."""
        self._app = app
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._livekit = f" {livekit} {livekit.replace('ws', 'http', 1)}" if livekit else ""
        self._hosts = LOOPBACK | {f"[{host}]" if ":" in host else host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and serve one request or WebSocket."""
        connection, started = HTTPConnection(scope), False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"].endswith("response.start"):
                headers = MutableHeaders(scope=message)
                _add_headers(headers, connection, self._livekit)
                if self._is_guest(connection):
                    headers.update(_GUEST | {"Access-Control-Allow-Origin": connection.headers["origin"]})
            await send(message)

        try:
            self._check(connection)
            preflight = self._is_preflight(connection)
            app = Response(None, 204, _PREFLIGHT) if preflight else self._app
            await app(scope, receive, send_with_headers)
            return
        except ClientDisconnect:
            return
        except AnamnesisError as error:
            problem = error
        except Exception as error:
            get_logger().error("request_failed", kind=scope["type"], exc_info=error)
            problem = AnamnesisError(INTERNAL)
        if not started:
            await to_response(problem)(scope, receive, send_with_headers)

    def _check(self, connection: HTTPConnection) -> None:
        host = connection.headers.get("host", "").lower()
        known = _HOST.fullmatch(host)
        if known is None or known["name"] not in self._hosts:
            raise AnamnesisError(FOREIGN_HOST)
        if not connection.url.path.startswith(API):
            return
        if self._is_guest(connection):
            has_key = "authorization" in connection.headers or self._is_preflight(connection)
            if connection.scope["type"] != "http" or not has_key:
                raise AnamnesisError(FOREIGN_ORIGIN)
            return
        origin = connection.headers.get("origin")
        if origin is not None and _netloc(origin) != host:
            raise AnamnesisError(FOREIGN_ORIGIN)
        if connection.headers.get("sec-fetch-site", "none") not in OWN_PAGES:
            raise AnamnesisError(FOREIGN_ORIGIN)

    def _is_guest(self, connection: HTTPConnection) -> bool:
        """Whether the request is for the API and comes from a page of an allowed origin."""
        origin = connection.headers.get("origin", "").lower()
        return origin in self._origins and connection.url.path.startswith(API)

    def _is_preflight(self, connection: HTTPConnection) -> bool:
        """Whether this is a CORS preflight: the browser asks whether a page of an allowed origin may call."""
        is_options = connection.scope.get("method") == "OPTIONS"
        return (
            is_options
            and "access-control-request-method" in connection.headers
            and self._is_guest(connection)
        )


def _netloc(origin: str) -> str | None:
    """The host and port in an Origin header; None for a page without them, such as a local file."""
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ("http", "https") else None


def _add_headers(headers: MutableHeaders, connection: HTTPConnection, livekit: str) -> None:
    for name, value in _HEADERS.items():
        headers[name] = value
    host = connection.headers.get("host", "").lower()
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    headers["Content-Security-Policy"] = _POLICY.format(sockets=sockets + livekit)
    # A browser revalidates files, and gets 304 if they did not change. It stores no other response.
    headers.setdefault("Cache-Control", "no-cache" if "etag" in headers else "no-store")
