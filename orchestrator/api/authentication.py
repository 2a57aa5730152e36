"""Finds out which person sends a request: by a key in the Authorization header, or by a session's cookie."""

import math
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from starlette.requests import HTTPConnection

from orchestrator.api.access.roles import Caller
from orchestrator.api.keys import Keys
from orchestrator.api.sessions import Sessions
from orchestrator.errors import FOREIGN_ORIGIN, TOO_MANY_ATTEMPTS, UNAUTHENTICATED, AnamnesisError
from orchestrator.wire.ids import PersonId

T = TypeVar("T")

READS: Final = ("GET", "HEAD")


class Authentication:
    """Checks the keys, codes and sessions of one data folder."""

    def __init__(self, data: Path, *, session_seconds: float) -> None:
        self.folder = data
        self.keys = Keys(data)
        self.sessions = Sessions(data, self.keys, seconds=session_seconds)
        self._failures = FailedAttempts()

    def caller(self, connection: HTTPConnection) -> Caller:
        """Return who sent the request, or refuse it with 401. The Authorization header wins over a cookie."""
        if "authorization" in connection.headers:
            key = bearer_token(connection)
            return Caller(self.known(self.keys.owner(key) if key is not None else None))
        token = session_token(connection)
        if token is None:
            raise AnamnesisError(UNAUTHENTICATED)
        return Caller(self.known(self.sessions.person(token)), token)

    def person(self, connection: HTTPConnection) -> PersonId:
        """Return whose request it is, or refuse it with 401."""
        return self.caller(connection).person

    def sign_in(self, *, key: str | None, code: str | None) -> PersonId:
        """Return whose key or one-time code it is, or refuse it with 401. The code is used up."""
        return self.known(self.keys.owner(key) if key is not None else self.sessions.redeem(code or ""))

    def known(self, found: T | None) -> T:
        """Return `found`, the owner of a key, code or token. None is counted and refused with 401."""
        if found is None:
            self._failures.count()
            raise AnamnesisError(UNAUTHENTICATED)
        return found


class FailedAttempts:
    """Limits guessing. A right key is always accepted, so nobody can be locked out by somebody else."""

    def __init__(
        self, limit: int = 30, seconds: float = 60, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._times: deque[float] = deque(maxlen=limit)
        self._seconds, self._now = seconds, now

    def count(self) -> None:
        """Count a failed attempt. After too many within `seconds`, the error says how long to wait."""
        now = self._now()
        wait = self._times[0] + self._seconds - now if len(self._times) == self._times.maxlen else 0
        if wait > 0:
            raise AnamnesisError(TOO_MANY_ATTEMPTS, seconds=math.ceil(wait))
        self._times.append(now)


def bearer_token(connection: HTTPConnection) -> str | None:
    """Return the token of the Authorization header, if there is one of the scheme Bearer."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def cookie_name(connection: HTTPConnection) -> str:
    """The port is part of the name, because browsers send one host's cookies to all of its ports."""
    return f"anamnesis{connection.url.port or ''}"


def session_token(connection: HTTPConnection) -> str | None:
    """Return the token in the cookie, if there is one.

    Pages on other ports of this host can make the browser send the cookie. What is not a plain read therefore
    needs an Origin header, which every browser adds; the middleware has compared it with our own.
    """
    token = connection.cookies.get(cookie_name(connection))
    reads = connection.scope["type"] == "http" and connection.scope["method"] in READS
    if token is not None and not reads and "origin" not in connection.headers:
        raise AnamnesisError(FOREIGN_ORIGIN)
    return token
