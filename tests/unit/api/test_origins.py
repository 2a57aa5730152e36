"""Pages of other origins: refused by default, and allowed by a setting to call the API with a key."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from orchestrator.api.app import AppOptions, create_app
from orchestrator.api.authentication import Authentication
from orchestrator.errors import AnamnesisError
from orchestrator.settings import load
from orchestrator.wire.ids import PersonId
from tests.unit.api.test_app import EchoingOrchestrator, client

APP = "https://app.example"
ASKS = {"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "authorization"}


@pytest.fixture
def authentication(tmp_path: Path) -> Authentication:
    return Authentication(tmp_path, session_seconds=3600)


@pytest.fixture
async def http(authentication: Authentication) -> AsyncIterator[httpx.AsyncClient]:
    async with client(create_app(EchoingOrchestrator(), authentication, AppOptions(origins=[APP]))) as made:
        yield made


@pytest.fixture
def key(authentication: Authentication) -> dict[str, str]:
    return {"Authorization": f"Bearer {authentication.keys.of(PersonId('ann'))}"}


async def test_by_default_no_other_page_may_call(authentication: Authentication, key: dict[str, str]) -> None:
    async with client(create_app(EchoingOrchestrator(), authentication)) as http:
        answer = await http.get("/v1/session", headers={**key, "Origin": APP})
        preflight = await http.options("/v1/session", headers={"Origin": APP, **ASKS})

    for each in (answer, preflight):
        assert each.status_code == 403
        assert not any(name.startswith("access-control") for name in each.headers)


async def test_a_page_of_an_allowed_origin_calls_with_a_key(
    http: httpx.AsyncClient, key: dict[str, str]
) -> None:
    origin = {"Origin": APP, "Sec-Fetch-Site": "cross-site"}
    preflight = await http.options("/v1/session", headers={**origin, **ASKS})
    answer = await http.get("/v1/session", headers={**origin, **key})
    refused = await http.get("/v1/session", headers={**origin, "Authorization": "Bearer wrong"})

    assert preflight.status_code == 204
    assert "PATCH" in preflight.headers["access-control-allow-methods"]
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    assert (answer.status_code, refused.status_code) == (200, 401)
    for each in (preflight, answer, refused):
        assert each.headers["access-control-allow-origin"] == APP
        assert each.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in each.headers


async def test_an_allowed_origin_never_acts_with_a_cookie(
    http: httpx.AsyncClient, authentication: Authentication
) -> None:
    cookie = f"anamnesis8321={authentication.sessions.start(PersonId('ann'))}"

    answer = await http.get("/v1/session", headers={"Cookie": cookie, "Origin": APP})
    own = await http.get("/v1/session", headers={"Cookie": cookie, "Origin": "http://127.0.0.1:8321"})

    assert (answer.status_code, own.status_code) == (403, 200)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "https://app.example.evil", "null", "app.example"]
)
async def test_other_origins_stay_out(http: httpx.AsyncClient, key: dict[str, str], origin: str) -> None:
    answer = await http.get("/v1/session", headers={**key, "Origin": origin})

    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("value", ["app.example", "https://app.example/page", "https://a@b", "ftp://a", "*"])
def test_a_setting_that_names_no_origin_is_refused(value: str) -> None:
    with pytest.raises(AnamnesisError, match="must be origins"):
        load(None, {"server.allowed_origins": value}, {})

    assert load(None, {"server.allowed_origins": f"{APP} http://127.0.0.1:3000"}, {})
