"""OIDC bearer tokens: checked against the keys that the configured issuer publishes."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx
import jwt

from orchestrator.api.access.roles import ALL_SCOPES, Caller, Role, Scope
from orchestrator.errors import ISSUER_UNAVAILABLE, AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.wire.ids import PersonId, is_person_id

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Only algorithms with a public key: a token can then not be signed with what the issuer publishes."""
LEEWAY_SECONDS: Final = 60
KEYS_SECONDS: Final = 600.0
"""How long the issuer's keys are used before they are fetched again."""
REFETCH_SECONDS: Final = 10.0
"""How often a token with an unknown key id can make us fetch the keys."""
LARGEST_TOKEN: Final = 16 * 1024

log = get_logger()


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are accepted, for which audience, and which claims name the person and the roles."""

    url: str
    audience: str
    person_claim: str = "sub"
    roles_claim: str = "roles"
    timeout_seconds: float = 5.0


class OidcTokens:
    """Recognises the callers that one issuer has signed in."""

    def __init__(
        self,
        issuer: Issuer,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer, self._transport, self._now = issuer, transport, now
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched_at: float | None = None
        self._fetching = asyncio.Lock()

    async def caller_of(self, token: str) -> Caller | None:
        """Who the token was made for; None if it is not valid here. Raises if the issuer does not answer."""
        key = await self._key_of(token)
        if key is None:
            return None
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._issuer.audience,
                issuer=self._issuer.url,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None
        return self._caller(claims)

    def _caller(self, claims: Mapping[str, Any]) -> Caller | None:
        person = claims.get(self._issuer.person_claim)
        if not isinstance(person, str) or not is_person_id(person):
            return None
        named = claims.get(self._issuer.roles_claim, ())
        names = named.split() if isinstance(named, str) else named if isinstance(named, list) else ()
        roles = {Role(name) for name in names if name in set(Role)}
        granted = str(claims.get("scope", "")).split()
        texts = {Scope.TEXTS_READ.value} & set(granted)
        return Caller(
            PersonId(person), roles=frozenset({Role.PERSON, *roles}), scopes=frozenset({ALL_SCOPES, *texts})
        )

    async def _key_of(self, token: str) -> jwt.PyJWK | None:
        """The issuer's key that the token names; None if it names none of them."""
        if len(token) > LARGEST_TOKEN:
            return None
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return None
        id = header.get("kid", "")
        async with self._fetching:
            age = None if self._fetched_at is None else self._now() - self._fetched_at
            if age is None or age > KEYS_SECONDS or (id not in self._keys and age > REFETCH_SECONDS):
                await self._fetch(in_use=age is not None)
        return self._keys.get(id)

    async def _fetch(self, *, in_use: bool) -> None:
        """Fetch the issuer's keys. If that fails, known keys stay in use."""
        try:
            async with httpx.AsyncClient(
                transport=self._transport, timeout=self._issuer.timeout_seconds
            ) as client:
                base = self._issuer.url.rstrip("/")
                about = (
                    (await client.get(f"{base}/.well-known/openid-configuration")).raise_for_status().json()
                )
                if about.get("issuer") != self._issuer.url:
                    rule = "another_issuer"
                else:
                    found = (await client.get(about["jwks_uri"])).raise_for_status().json()
                    self._keys = _usable(found)
                    self._fetched_at = self._now()
                    return
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError, AttributeError) as error:
            rule = type(error).__name__
        log.warning("issuer_not_reached", error=rule)
        if not in_use:
            raise AnamnesisError(ISSUER_UNAVAILABLE, rule=rule)
        self._fetched_at = self._now() - KEYS_SECONDS + REFETCH_SECONDS  # try again soon, not at once


def _usable(found: Any) -> dict[str, jwt.PyJWK]:
    """The keys that sign, by id. Keys of a kind we do not know are left out."""
    keys = {}
    for each in found["keys"]:
        if each.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK.from_dict(each)
        except jwt.PyJWTError:
            continue
        if key.key_type != "oct":
            keys[str(key.key_id or "")] = key
    return keys
