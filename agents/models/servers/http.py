"""HTTP client of a model server: JSON replies and event streams, with size limits and our own errors."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from agents.errors import ModelTrouble

MAX_BYTES: Final = 4_000_000
"""Maximum size of one whole reply, and of one line of an event stream."""

MAX_REFUSAL_BYTES: Final = 32_000
"""How much of the text of a refusal is read."""

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "response_format": ("json_schema", "json_object", "grammar", "structured output", "requested parameters"),
    "tools": ("tool choice", "tool_choice", "tool use", "function calling"),
}
"""Other words by which servers name a field of a request when they refuse it."""

_RETRYABLE_STATUSES: Final = (408, 409, 425, 429)
_GATEWAY_STATUSES: Final = (502, 504)
_CONNECT_SECONDS: Final = 5.0
_READ_SECONDS: Final = 60.0
"""Longest silence on a connection. Callers have shorter limits of their own; this is the last resort."""


class HttpClient:
    """Pooled connections to one model server.

    `repeatable` says that the server keeps nothing of a request. A request whose outcome is unknown may then
    be sent again. A request that the server refused may be sent again in any case.
    """

    def __init__(self, base_url: str, key: str, *, repeatable: bool) -> None:
        self._repeatable = repeatable
        self._http = httpx.AsyncClient(
            base_url=f"{base_url.rstrip('/')}/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def fetch(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its whole reply, a JSON object."""
        async with self._response(method, path, body) as response:
            return self._parse(await self._whole(response))

    async def stream_events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Post a request and yield the server-sent events of its reply, each a JSON object.

        A server that does not stream sends one JSON object instead, which is yielded as the only event.
        """
        pending = b""
        async with self._response("POST", path, body) as response:
            if response.headers.get("content-type", "").startswith("application/json"):
                yield self._parse(await self._whole(response))
                return
            async for chunk in response.aiter_bytes():
                *lines, pending = (pending + chunk).split(b"\n")
                if len(pending) > MAX_BYTES:
                    raise ModelTrouble("too_long")
                for line in lines:
                    if line.startswith(b"data:") and (data := line[5:].strip()) != b"[DONE]":
                        yield self._parse(data)

    async def _whole(self, response: httpx.Response) -> bytes:
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > MAX_BYTES:
                raise ModelTrouble("too_long")
        return bytes(data)

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> AsyncIterator[httpx.Response]:
        """A successful response. The library's errors become ours, also while the body is read."""
        try:
            content = None if body is None else encoded(body).encode()
            headers = {} if body is None else {"Content-Type": "application/json"}
            async with self._http.stream(method, path, content=content, headers=headers) as response:
                if not response.is_success:
                    raise self._refusal(response, await _beginning(response), body or {})
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise ModelTrouble("unreachable", retryable=True) from None
        except httpx.HTTPError:
            raise ModelTrouble("broken_off", retryable=self._repeatable) from None

    def _refusal(self, response: httpx.Response, text: str, body: Mapping[str, Any]) -> ModelTrouble:
        """The error for a status code, with the fields of the request that its text names.

        The text itself is not kept, because it can quote what a person wrote.

        A gateway may report a failure after the server behind it has done the work. Such a request is sent
        again only if it is repeatable.
        """
        status = response.status_code
        failed = status >= httpx.codes.INTERNAL_SERVER_ERROR
        retryable = status in _RETRYABLE_STATUSES or (
            failed and (self._repeatable or status not in _GATEWAY_STATUSES)
        )
        return ModelTrouble(
            f"http_{status}",
            retryable=retryable,
            retry_after=parse_retry_after(response.headers),
            named=[name for name in body if any(alias in text for alias in (name, *ALIASES.get(name, ())))],
        )

    def _parse(self, data: bytes) -> dict[str, Any]:
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            raise ModelTrouble("not_understood", retryable=self._repeatable)
        return parsed


def encoded(body: Mapping[str, Any]) -> str:
    """The JSON of a request, exactly as it is sent. Half a surrogate pair has no bytes and becomes "?"."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace").decode()


async def _beginning(response: httpx.Response) -> str:
    """The beginning of a refusal's text."""
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > MAX_REFUSAL_BYTES:
            break
    return bytes(data[:MAX_REFUSAL_BYTES]).decode("utf-8", "replace")


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """The `Retry-After` header in seconds; None if it is missing or invalid.

    A date is compared with the `Date` header of the same response, so that our clock does not matter.
    """
    value = headers.get("retry-after", "")
    try:
        if value.replace(".", "", 1).isdecimal():
            return float(value)
        pause = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
        return max(pause.total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def text_or_empty(value: object) -> str:
    """`value` if it is a string, else the empty string: servers send anything."""
    return value if isinstance(value, str) else ""
