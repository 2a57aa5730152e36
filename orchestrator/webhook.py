"""An address that alerts are posted to, whatever it answers."""

import asyncio
import ssl
from typing import Any, Final

import httpx

_WHO: Final = {"User-Agent": "anamnesis"}


class Webhook:
    """Posts an alert as JSON. What is answered is not read, and no redirect is followed."""

    def __init__(self, url: str, timeout_seconds: float) -> None:
        self._url, self._timeout_seconds = url, timeout_seconds
        self._trust = ssl.create_default_context()  # whom this machine trusts

    async def __call__(self, alert: dict[str, Any]) -> str | None:
        """Why it did not arrive in time, by a name; None where it did."""
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                httpx.AsyncClient(verify=self._trust, timeout=self._timeout_seconds, trust_env=False) as line,
                line.stream("POST", self._url, json=alert, headers=_WHO) as answer,
            ):
                return None if answer.is_success else f"http_{answer.status_code}"
        except Exception as error:  # what lies beneath raises what it likes, and other alerts wait
            return type(error).__name__
