"""Posts alerts to the address of a webhook."""

import asyncio
import ssl
from typing import Any, Final

import httpx

_HEADERS: Final = {"User-Agent": "anamnesis"}


class Webhook:
    """Posts an alert as JSON. It does not read the body of the response and follows no redirect."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self._url, self._timeout_seconds = url, timeout_seconds
        self._trust = ssl.create_default_context()  # the certificates that this machine trusts

    async def __call__(self, alert: dict[str, Any]) -> str | None:
        """Post the alert; returns the name of the reason why it did not arrive in time, or None."""
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                httpx.AsyncClient(
                    verify=self._trust, timeout=self._timeout_seconds, trust_env=False
                ) as client,
                client.stream("POST", self._url, json=alert, headers=_HEADERS) as response,
            ):
                return None if response.is_success else f"http_{response.status_code}"
        except Exception as error:  # httpx and ssl raise many kinds; none may keep back the other alerts
            return type(error).__name__
