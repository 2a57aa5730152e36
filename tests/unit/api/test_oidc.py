"""OIDC tokens, from an issuer on this machine that signs with keys of its own."""

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import FastAPI

from orchestrator.api.access import oidc
from orchestrator.api.access.oidc import Issuer, OidcTokens
from orchestrator.api.access.roles import Role, Scope
from orchestrator.api.server import listening
from orchestrator.errors import ISSUER_UNAVAILABLE, AnamnesisError

AUDIENCE = "anamnesis"


@dataclass
class IssuerDouble:
    """Publishes its keys over HTTP and signs tokens with the newest one."""

    url: str = ""
    named: str = ""
    keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=dict)
    fetched: int = 0
    is_down: bool = False

    def add_key(self, id: str) -> None:
        self.keys[id] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwks(self) -> dict[str, Any]:
        keys: list[dict[str, Any]] = [{"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}, {"kty": "?"}]
        for id, key in self.keys.items():
            public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
            keys.append({**public, "kid": id, "use": "sig", "alg": "RS256"})
        return {"keys": keys}

    def token(self, *, kid: str = "", without: tuple[str, ...] = (), **claims: Any) -> str:
        """A token with these claims. Times are in seconds from now."""
        now = int(time.time())
        moments: dict[str, Any] = {
            name: now + claims.pop(name) for name in ("exp", "nbf", "iat") if name in claims
        }
        whole: dict[str, Any] = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ann",
            "iat": now,
            "exp": now + 300,
            **claims,
            **moments,
        }
        id = kid or next(reversed(self.keys))
        kept = {name: value for name, value in whole.items() if name not in without}
        key = self.keys.get(id) or next(iter(self.keys.values()))
        return jwt.encode(kept, key, "RS256", headers={"kid": id})

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        async def about() -> dict[str, str]:
            return {"issuer": self.named or self.url, "jwks_uri": f"{self.url}/keys"}

        @app.get("/keys")
        async def keys() -> Any:
            self.fetched += 1
            return {"wrong": True} if self.is_down else self.jwks()

        return app


@pytest.fixture(scope="module")
def first_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
async def issuer(first_key: rsa.RSAPrivateKey) -> AsyncIterator[IssuerDouble]:
    double = IssuerDouble(keys={"one": first_key})
    async with listening(double.app()) as server:
        double.url = f"http://127.0.0.1:{server.port}"
        yield double


def signed_with(secret: bytes, claims: dict[str, Any]) -> str:
    """A token with HS256, which the library itself refuses to sign with a public key."""
    parts = ({"alg": "HS256", "typ": "JWT", "kid": "one"}, claims)
    text = b".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = urlsafe_b64encode(hmac.digest(secret, text, "sha256")).rstrip(b"=")
    return (text + b"." + signature).decode()


def tokens(issuer: IssuerDouble, **options: Any) -> OidcTokens:
    return OidcTokens(Issuer(issuer.url, AUDIENCE), **options)


async def test_a_token_of_the_issuer_names_the_person_and_their_roles(issuer: IssuerDouble) -> None:
    token = issuer.token(roles=["operator", "superuser", 7], scope="openid texts:read profile")

    caller = await tokens(issuer).caller_of(token)

    assert caller is not None
    assert caller.person == "ann"
    assert caller.roles == {Role.PERSON, Role.OPERATOR}
    assert caller.may_use(Scope.TEXTS_READ)
    assert caller.may_use(Scope.TRACES_READ)


async def test_a_token_without_roles_is_of_a_person_only(issuer: IssuerDouble) -> None:
    caller = await tokens(issuer).caller_of(issuer.token())

    assert caller is not None
    assert caller.roles == {Role.PERSON}
    assert not caller.may_use(Scope.TEXTS_READ)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": -3600},
        {"nbf": 3600},
        {"iat": 3600},
        {"aud": "another"},
        {"iss": "http://127.0.0.1:1"},
        {"sub": ""},
        {"sub": "a|b"},
        {"sub": 7},
        {"kid": "unknown"},
        {"without": ("exp",)},
        {"without": ("iat",)},
        {"without": ("aud",)},
        {"without": ("iss",)},
        {"without": ("sub",)},
    ],
    ids=str,
)
async def test_a_token_that_does_not_hold_is_of_nobody(issuer: IssuerDouble, claims: dict[str, Any]) -> None:
    assert await tokens(issuer).caller_of(issuer.token(**claims)) is None


async def test_a_token_of_a_few_seconds_ago_still_holds(issuer: IssuerDouble) -> None:
    token = issuer.token(exp=30 - oidc.LEEWAY_SECONDS)

    assert await tokens(issuer).caller_of(token) is not None


async def test_a_token_signed_with_what_everybody_knows_is_of_nobody(issuer: IssuerDouble) -> None:
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    public = (
        issuer.keys["one"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    known = tokens(issuer)

    unsigned = jwt.encode(claims, "", "none", headers={"kid": "one"})
    with_public_key = signed_with(public, claims)
    with_shared_key = jwt.encode(claims, b"secret" * 8, "HS256", headers={"kid": "shared"})

    for token in (unsigned, with_public_key, with_shared_key, "a.b.c", "", "é.é.é", "a" * 20_000):
        assert await known.caller_of(token) is None


async def test_a_new_key_of_the_issuer_is_found_and_guessing_does_not_fetch_again_and_again(
    issuer: IssuerDouble,
) -> None:
    now = 0.0
    known = tokens(issuer, now=lambda: now)
    assert await known.caller_of(issuer.token()) is not None
    issuer.add_key("two")
    for _ in range(3):
        assert await known.caller_of(issuer.token()) is None
    assert issuer.fetched == 1

    now = oidc.REFETCH_SECONDS + 1

    assert await known.caller_of(issuer.token()) is not None
    assert await known.caller_of(issuer.token(kid="one")) is not None
    assert issuer.fetched == 2


async def test_known_keys_stay_in_use_while_the_issuer_is_down(issuer: IssuerDouble) -> None:
    now = 0.0
    known = tokens(issuer, now=lambda: now)
    token = issuer.token()
    assert await known.caller_of(token) is not None
    issuer.is_down, now = True, oidc.KEYS_SECONDS + 1

    assert await known.caller_of(token) is not None
    with pytest.raises(AnamnesisError) as refused:
        await tokens(issuer).caller_of(token)

    assert refused.value.problem is ISSUER_UNAVAILABLE


async def test_an_issuer_that_names_another_is_not_believed(issuer: IssuerDouble) -> None:
    issuer.named = "http://another.example"

    with pytest.raises(AnamnesisError) as refused:
        await tokens(issuer).caller_of(issuer.token())

    assert refused.value.problem is ISSUER_UNAVAILABLE
