"""A line to a model's HTTP server: replies and streams of events, bounded, its errors turned into ours."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from agents.errors import ModelTrouble

MOST_BYTES: Final = 4_000_000
"""More than this in one line of a stream, or in one whole reply, is not read."""

_PASSING: Final = (408, 409, 425, 429)
_OF_A_GATEWAY: Final = (502, 504)
_CONNECT_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 60.0
"""The longest silence on a connection; whoever asks has less patience, and hangs up."""


class Line:
    """Pooled connections to one server.

    `repeatable` says that it keeps nothing of a request, so that one may be sent again whose outcome nobody
    knows; what the server itself refused may be sent again in any case.
    """

    def __init__(self, base_url: str, key: str, *, repeatable: bool) -> None:
        self._repeatable = repeatable
        self._http = httpx.AsyncClient(
            base_url=f"{base_url.rstrip('/')}/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS),
            trust_env=False,
        )

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()

    async def fetch(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One whole reply."""
        data = bytearray()
        async with self._asked(method, path, body) as answer:
            async for piece in answer.aiter_bytes():
                data += piece
                if len(data) > MOST_BYTES:
                    raise ModelTrouble("too_long")
        return self._parsed(bytes(data))

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """What a stream of events tells, up to its end."""
        pending = b""
        async with self._asked("POST", path, body) as answer:
            async for piece in answer.aiter_bytes():
                *lines, pending = (pending + piece).split(b"\n")
                if len(pending) > MOST_BYTES:
                    raise ModelTrouble("too_long")
                for line in lines:
                    if line.startswith(b"data:") and (said := line[5:].strip()) != b"[DONE]":
                        yield self._parsed(said)

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> AsyncIterator[httpx.Response]:
        """An answer that is no refusal. The library's errors become ours, also while it is being read."""
        try:
            async with self._http.stream(method, path, json=body) as answer:
                if not answer.is_success:
                    raise self._refusal(answer)
                yield answer
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise ModelTrouble("unreachable", again=True) from None
        except httpx.HTTPError:
            raise ModelTrouble("broken_off", again=self._repeatable) from None

    def _refusal(self, answer: httpx.Response) -> ModelTrouble:
        """Refusals that pass by themselves may be tried again; a gateway's may come after the deed."""
        status = answer.status_code
        failed = status >= httpx.codes.INTERNAL_SERVER_ERROR
        again = status in _PASSING or (failed and (self._repeatable or status not in _OF_A_GATEWAY))
        return ModelTrouble(f"http_{status}", again=again, after=retry_after(answer.headers))

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise ModelTrouble("not_understood", again=self._repeatable)
        return said


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The header in seconds: given as such, or as a date beside that of the answer."""
    given = headers.get("retry-after", "")
    try:
        if given.replace(".", "", 1).isdecimal():
            return float(given)
        waits = parsedate_to_datetime(given) - parsedate_to_datetime(headers.get("date", ""))
        return max(waits.total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def text_of(value: object) -> str:
    """A text, or none where something else stands."""
    return value if isinstance(value, str) else ""
