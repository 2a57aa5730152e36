"""`POST /v1/memories/search`: the response, and whose memories it searches."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.api.app import create_app
from orchestrator.api.authentication import Authentication
from orchestrator.api.routes.memory.search import respond
from orchestrator.store.engine.database import Store
from orchestrator.wire.ids import PersonId
from tests.support.memory.memories import a_service, import_texts
from tests.support.stores import empty_store
from tests.unit.api.test_app import EchoingOrchestrator, client

ANN, BEN = PersonId("ann"), PersonId("ben")
URL = "/v1/memories/search"


@pytest.fixture
def memory_store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    from tests.support.builders import CountedIds, HandClock

    with empty_store("sqlite", request, tmp_path) as url:
        store = Store.open(url, clock=HandClock(), ids=CountedIds(), synchronous="OFF", connections=1)
        yield store
        store.close_now()


@pytest.fixture
def authentication(tmp_path: Path) -> Authentication:
    return Authentication(tmp_path, session_seconds=60)


@pytest.fixture
def http(memory_store: Store, authentication: Authentication) -> httpx.AsyncClient:
    import_texts(memory_store, ANN, "I am allergic to penicillin.", "My knee hurts.", "I sleep badly.")
    return client(create_app(EchoingOrchestrator(), authentication, memory=a_service(memory_store)))


def key_of(authentication: Authentication, person: PersonId) -> dict[str, str]:
    return {"Authorization": f"Bearer {authentication.keys.of(person)}"}


@pytest.mark.requirement("002-044", "002-045", "002-048", "002-049", "002-050")
async def test_the_response_has_the_memories_and_the_three_summaries(
    http: httpx.AsyncClient, authentication: Authentication, memory_store: Store
) -> None:
    response = await http.post(URL, json={"query": "penicillin allergy"}, headers=key_of(authentication, ANN))

    assert response.status_code == 200
    body = response.json()
    library = a_service(memory_store).search(ANN, "penicillin allergy")
    assert (body["count"], body["retrieval_mode"]) == (len(body["memories"]), "flat")
    assert body["scope"] == {"kind": "user", "userId": ANN}
    assert body["memories"][0]["content"] == "I am allergic to penicillin."
    assert {"id", "content", "similarity", "score", "importance"} <= set(body["memories"][0])
    assert body["citations"] == [each["id"] for each in body["memories"]]
    assert "penicillin" in body["injection_text"]
    assert body["observability"] == library.observability
    assert body["memories"] == [each.plain() for each in library.memories]


@pytest.mark.requirement("002-046", "002-047")
async def test_only_summaries_that_exist_are_sent(
    http: httpx.AsyncClient, authentication: Authentication
) -> None:
    key = key_of(authentication, ANN)
    first = (await http.post(URL, json={"query": "knee"}, headers=key)).json()["memories"][0]["id"]

    by_id = (await http.post(URL, json={"query": f"memory://{first}"}, headers=key)).json()
    one = respond(
        ANN,
        {
            "memories": [],
            "injectionText": "",
            "citations": [],
            "retrievalMode": "flat",
            "packagingSummary": {"tokenCost": 0},
        },
    )

    assert by_id["count"] == 1
    assert "observability" not in by_id
    assert one["observability"] == {"packaging": {"tokenCost": 0}}


async def test_a_person_searches_only_their_own_memories(
    http: httpx.AsyncClient, authentication: Authentication
) -> None:
    found = (await http.post(URL, json={"query": "penicillin"}, headers=key_of(authentication, BEN))).json()
    nobody = await http.post(URL, json={"query": "penicillin"})

    assert found["memories"] == []
    assert nobody.status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"query": ""}, 422),
        ({"query": "knee", "limit": 0}, 422),
        ({"query": "knee", "user": "ben"}, 422),
        ({"query": "knee", "recipe": "soup"}, 422),
        ({"query": "knee " * 20_000}, 413),
    ],
)
async def test_a_wrong_body_is_refused_without_quoting_it(
    http: httpx.AsyncClient, authentication: Authentication, body: dict[str, Any], status: int
) -> None:
    response = await http.post(URL, json=body, headers=key_of(authentication, ANN))

    assert response.status_code == status
    assert "knee" not in response.text
    assert "soup" not in response.text


async def test_tiers_and_a_budget_can_be_asked_for(
    http: httpx.AsyncClient, authentication: Authentication
) -> None:
    asked = {"query": "knee penicillin", "retrieval_mode": "tiered", "token_budget": 30, "limit": 2}

    body = (await http.post(URL, json=asked, headers=key_of(authentication, ANN))).json()

    assert body["observability"]["assembly"]["tokenBudget"] == 30
    assert body["observability"]["assembly"]["finalTokenCost"] <= 30
    assert {"tier_assignments", "expand_ids", "estimated_context_tokens"} <= set(body)


async def test_a_server_without_memory_refuses(authentication: Authentication) -> None:
    http = client(create_app(EchoingOrchestrator(), authentication))

    response = await http.post(URL, json={"query": "knee"}, headers=key_of(authentication, ANN))

    assert response.status_code == 503
