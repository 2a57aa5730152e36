"""Who may call what: every route, with every role and every state of a token. What has no rule is refused."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from orchestrator.api.access.roles import ALL_SCOPES, Caller, Role, Scope
from orchestrator.api.access.rules import RULES
from orchestrator.api.app import AppOptions
from orchestrator.store.engine.database import Transaction
from orchestrator.wire.ids import PersonId
from tests.contract.api.serving import REASON, RoomsDouble, Site, a_site, a_talk
from tests.support.memory.memories import import_texts
from tests.support.orchestrators import ANN, BOB

CONVERSATION = "/v1/conversations/{conversation_id}"
BLOCK = CONVERSATION + "/blocks/{label}"
MEMORY = "/v1/memories/{memory_id}"

# Ann's own data for Ann, then for Bob, who has no role; then for staff, each with one role and a reason.
COLUMNS = ("ann", "bob", Role.SERVICE, Role.ANALYST, Role.OPERATOR, Role.PRIVACY, Role.AUDITOR)
TABLE = {
    ("GET", "/metrics"): (200, 200, 200, 200, 200, 200, 200),
    ("GET", "/v1/session"): (200, 200, 200, 200, 200, 200, 200),
    ("GET", "/v1/ws"): (426, 426, 403, 403, 403, 403, 403),
    ("GET", "/v1/conversations"): (200, 200, 403, 200, 200, 200, 403),
    ("POST", "/v1/conversations"): (201, 201, 201, 403, 403, 403, 403),
    ("GET", CONVERSATION): (200, 404, 403, 200, 200, 200, 403),
    ("PATCH", CONVERSATION): (200, 404, 403, 403, 403, 403, 403),
    ("POST", CONVERSATION + "/token"): (200, 404, 200, 403, 403, 403, 403),
    ("GET", CONVERSATION + "/messages"): (200, 404, 403, 200, 200, 200, 403),
    ("GET", CONVERSATION + "/transcript"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", CONVERSATION + "/notes"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", CONVERSATION + "/export"): (200, 404, 403, 403, 403, 200, 403),
    ("GET", "/v1/messages/{message_id}"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", "/v1/messages/{message_id}/explanation"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", CONVERSATION + "/blocks"): (200, 404, 403, 200, 200, 200, 403),
    ("POST", CONVERSATION + "/blocks/validate"): (200, 404, 403, 403, 200, 403, 403),
    ("POST", CONVERSATION + "/blocks/rotate"): (403, 403, 403, 403, 200, 403, 403),
    ("GET", BLOCK): (200, 404, 403, 403, 200, 200, 403),
    ("GET", BLOCK + "/revisions"): (200, 404, 403, 200, 200, 200, 403),
    ("GET", BLOCK + "/revisions/{revision}"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", BLOCK + "/diff"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", CONVERSATION + "/archived-turns"): (200, 404, 403, 200, 200, 200, 403),
    ("GET", CONVERSATION + "/archived-turns/{turn}"): (200, 404, 403, 403, 200, 200, 403),
    ("POST", "/v1/memories/search"): (200, 200, 403, 403, 403, 403, 403),
    ("GET", "/v1/memories"): (200, 200, 403, 403, 200, 200, 403),
    ("GET", "/v1/memories/conflicts"): (200, 200, 403, 403, 403, 403, 403),
    ("GET", MEMORY): (200, 404, 403, 403, 200, 200, 403),
    ("GET", MEMORY + "/lineage"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", MEMORY + "/deletion"): (200, 404, 403, 403, 403, 403, 403),
    ("PATCH", MEMORY): (200, 404, 403, 403, 403, 403, 403),
    ("POST", MEMORY + "/undo"): (200, 404, 403, 403, 403, 403, 403),
    ("DELETE", MEMORY): (200, 404, 403, 403, 403, 403, 403),
    ("POST", "/v1/memories/undo"): (200, 404, 403, 403, 403, 403, 403),
    ("GET", "/v1/retrievals"): (200, 200, 403, 200, 200, 200, 403),
    ("GET", "/v1/retrievals/{retrieval_id}"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", "/v1/overview"): (200, 200, 403, 200, 200, 200, 403),
    ("GET", "/v1/rotations"): (200, 200, 403, 200, 200, 200, 403),
    ("GET", "/v1/turns"): (200, 200, 403, 200, 200, 200, 403),
    ("GET", "/v1/traces"): (200, 200, 403, 200, 200, 200, 200),
    ("GET", "/v1/traces/export"): (200, 200, 403, 200, 200, 200, 200),
    ("GET", "/v1/traces/stream"): (200, 200, 403, 200, 200, 200, 200),
    ("GET", "/v1/traces/{trace_id}"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", CONVERSATION + "/traces"): (200, 404, 403, 200, 200, 200, 403),
    ("GET", CONVERSATION + "/tool-uses"): (200, 404, 403, 200, 200, 200, 403),
    ("GET", "/v1/tool-uses/{tool_use_id}"): (200, 404, 403, 403, 200, 200, 403),
    ("GET", "/v1/safety-events"): (200, 200, 403, 200, 200, 200, 403),
    ("GET", CONVERSATION + "/safety-events"): (200, 404, 403, 200, 200, 200, 403),
    ("GET", "/v1/safety-events/{event_id}"): (200, 404, 403, 403, 200, 200, 403),
}
PUBLIC = {
    ("GET", "/"),
    ("GET", "/docs"),
    ("GET", "/openapi.json"),
    ("GET", "/health"),
    ("POST", "/v1/session"),
    ("DELETE", "/v1/session"),
    ("POST", "/v1/livekit/webhook"),
}
LISTS = (
    "/v1/conversations",
    "/v1/traces",
    "/v1/traces/export",
    "/v1/traces/stream",
    "/v1/safety-events",
    "/v1/retrievals",
    "/v1/overview",
    "/v1/turns",
    "/v1/rotations",
)


@dataclass(frozen=True)
class Scene:
    """A site with Ann's conversation, in which there is something of every kind."""

    site: Site
    ids: dict[str, str]
    http: httpx.AsyncClient

    async def call(self, method: str, path: str, headers: dict[str, str], *, of_all: bool) -> httpx.Response:
        """Call a route, from another machine."""
        query: dict[str, Any] = {"of": "all"} if of_all and path in LISTS else {}
        if path.endswith("/diff"):
            query = {"first": 1, "second": 2}
        elif path == "/v1/memories" and of_all:
            query = {"person": ANN}
        body: dict[str, Any] | None = None
        if method == "PATCH":
            body = {"pinned": True} if path == MEMORY else {"title": "Headache"}
        elif (method, path) == ("POST", "/v1/conversations") and of_all:
            body = {"person": "carl"}
        elif path == "/v1/memories/search":
            body = {"query": "headache"}
        return await self.http.request(
            method, path.format(**self.ids), headers=headers, params=query or None, json=body
        )


@asynccontextmanager
async def a_scene(folder: Path, template: Path) -> AsyncIterator[Scene]:
    """A site in which Ann had six turns, one of them dangerous, and two of them archived."""
    address = f"sqlite:///{shutil.copyfile(template, folder / 'store.db')}"
    async with (
        a_site(address, folder, rooms=RoomsDouble(ANN), options=AppOptions(console=_console(folder))) as site,
        a_talk(site, "I am having a headache", "8", "yes", "no", "I want to kill myself tonight") as peer,
    ):
        here, store = peer.conversation_id, site.orchestrator.store
        operator = await site.staff(Role.OPERATOR, reason="set up")
        await site.http.post(f"/v1/conversations/{here}/blocks/rotate", headers=operator)
        message = (await site.get(f"/v1/conversations/{here}/messages"))["items"][0]["id"]
        await store.write(lambda tx: tx.tools.request(here, message, "clock", {}, id="tool_1"))
        await site.http.post("/v1/memories/search", headers=site.person(), json={"query": "headache"})
        await asyncio.to_thread(import_texts, store, ANN, "I like tea")
        ids = {
            "memory_id": (await site.get("/v1/memories"))["items"][0]["id"],
            "retrieval_id": (await site.get("/v1/retrievals"))["items"][0]["id"],
            "conversation_id": here,
            "label": "conversation_history",
            "revision": "1",
            "turn": "1",
            "message_id": message,
            "trace_id": (await site.get("/v1/traces"))["items"][0]["id"],
            "tool_use_id": "tool_1",
            "event_id": (await site.get("/v1/safety-events"))["items"][0]["id"],
        }
        site.app.state.feed.close()  # so that a stream of traces ends at once
        transport = httpx.ASGITransport(site.app, client=("10.0.0.9", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321") as http:
            yield Scene(site, ids, http)


def _console(folder: Path) -> Path:
    (folder / "dist").mkdir(exist_ok=True)
    (folder / "dist" / "index.html").write_text("<!doctype html>")
    return folder / "dist"


@pytest.fixture
async def scene(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[Scene]:
    async with a_scene(tmp_path, sqlite_template) as made:
        yield made


def routes_of(site: Site) -> set[tuple[str, str]]:
    """Every method and path that the application answers, its WebSocket included."""
    return {
        (method, context.path or "/")  # the page is mounted without a path
        for context in iter_route_contexts(site.app.routes)
        for method in (context.methods or {"GET"}) - {"HEAD"}
    }


async def test_every_route_has_a_rule_and_a_line_in_the_table(scene: Scene) -> None:
    routes = routes_of(scene.site)

    assert routes == set(RULES) == set(TABLE) | PUBLIC


@pytest.mark.timeout(600)
async def test_the_table_of_routes_and_roles_holds(scene: Scene, subtests: pytest.Subtests) -> None:
    headers = {"ann": scene.site.person(ANN), "bob": scene.site.person(BOB)}
    for role in COLUMNS[2:]:
        headers[role] = await scene.site.staff(Role(role), reason="ticket 7", name=f"{role}-1")
    for (method, path), expected in TABLE.items():
        for column, status in zip(COLUMNS, expected, strict=True):
            with subtests.test(method=method, path=path, caller=str(column)):
                answer = await scene.call(method, path, headers[column], of_all=isinstance(column, Role))

                assert answer.status_code == status, answer.text
                if status >= 400:
                    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_token_that_does_not_hold_opens_nothing(scene: Scene, subtests: pytest.Subtests) -> None:
    site, store = scene.site, scene.site.orchestrator.store
    expired = await site.key("eve", *Role)
    revoked = await site.key("eve", *Role)

    def spoil(tx: Transaction) -> None:
        tx.unit.connection.execute(
            "UPDATE api_keys SET expires_at = created_at WHERE id = ?", (expired.partition(".")[0],)
        )
        tx.api_keys.revoke(revoked.partition(".")[0])

    await store.write(spoil)
    other = await site.key("eve", *Role)
    states = {
        "none": {},
        "wrong": {"Authorization": "Bearer wrong"},
        "expired": {"Authorization": f"Bearer {expired}"},
        "revoked": {"Authorization": f"Bearer {revoked}"},
        "wrong secret": {"Authorization": f"Bearer {other[:-1]}{'A' if other[-1] != 'A' else 'B'}"},
        "unknown id": {"Authorization": f"Bearer key_x.{other.partition('.')[2]}"},
        "wrong scheme": {"Authorization": f"Basic {other}"},
        "token of nobody's issuer": {"Authorization": "Bearer a.b.c"},
        "wrong session": {"Cookie": "anamnesis8321=wrong", "Origin": "http://127.0.0.1:8321"},
    }
    site.authentication._failures.count = lambda: None  # type: ignore[method-assign]
    for method, path in TABLE:
        for state, headers in states.items():
            with subtests.test(method=method, path=path, token=state):
                answer = await scene.call(method, path, {**headers, REASON: "x"}, of_all=True)

                assert answer.status_code == 401, answer.text
                assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_without_the_scope_of_a_route_is_refused(scene: Scene, subtests: pytest.Subtests) -> None:
    for (method, path), rule in RULES.items():
        if rule.scope is None:
            continue
        with subtests.test(method=method, path=path):
            others = tuple(sorted(set(Scope) - {rule.scope}))
            reason = {"granted_for": "study 12"} if Scope.TEXTS_READ in others else {}
            headers = await scene.site.staff(*Role, scopes=others, reason="ticket 7", **reason)

            answer = await scene.call(method, path, headers, of_all=True)

            assert (answer.status_code, answer.json()["type"]) == (403, "/problems/missing_scope")


async def test_public_routes_need_no_key(scene: Scene, subtests: pytest.Subtests) -> None:
    for method, path in sorted(PUBLIC):
        with subtests.test(method=method, path=path):
            answer = await scene.http.request(method, path)

            assert answer.status_code in (200, 204, 400)


async def test_the_local_key_has_all_roles_on_the_loopback_only(scene: Scene) -> None:
    local = scene.site.person("local")

    here = await scene.site.http.get("/v1/session", headers=local)
    elsewhere = await scene.http.get("/v1/session", headers=local)
    somebody = await scene.site.http.get("/v1/session", headers=scene.site.person(ANN))
    read = await scene.site.http.get(
        f"/v1/messages/{scene.ids['message_id']}", headers={**local, REASON: "ticket 7"}
    )

    assert here.json() == {"person": "local", "roles": sorted(Role)}
    assert elsewhere.json() == {"person": "local", "roles": ["person"]}
    assert somebody.json() == {"person": ANN, "roles": ["person"]}
    assert read.status_code == 200


class IssuerStub:
    """Knows one token of an issuer, that of Carl."""

    async def caller_of(self, token: str) -> Caller | None:
        return Caller(PersonId("carl")) if token == "a.b.c" else None


async def test_several_people_sign_in_at_one_installation_and_each_sees_only_their_own(
    embedded: str, tmp_path: Path
) -> None:
    async with a_site(embedded, tmp_path, oidc=IssuerStub()) as site:
        own = {"Origin": "http://127.0.0.1:8321"}
        signed_in: dict[str, dict[str, str]] = {"carl": {"Authorization": "Bearer a.b.c"}}
        for person in (ANN, BOB):
            code = site.authentication.sessions.issue_code(PersonId(person))
            answer = await site.http.post("/v1/session", json={"code": code}, headers=own)
            signed_in[person] = {"Cookie": answer.headers["set-cookie"].partition(";")[0], **own}
            site.http.cookies.clear()
        made = {}
        for person, headers in signed_in.items():
            made[person] = (await site.http.post("/v1/conversations", headers=headers)).json()["id"]
            await asyncio.to_thread(import_texts, site.orchestrator.store, person, f"{person} likes tea")

        for person, headers in signed_in.items():
            here = await site.get("/v1/session", headers)
            listed = (await site.get("/v1/conversations", headers))["items"]
            memories = (await site.get("/v1/memories", headers, texts="true"))["items"]

            assert here == {"person": person, "roles": ["person"]}
            assert [(each["id"], each["person"]) for each in listed] == [(made[person], person)]
            assert [each["content"] for each in memories] == [f"{person} likes tea"]


async def test_all_scopes_do_not_include_the_texts_of_others(scene: Scene) -> None:
    headers = await scene.site.staff(Role.ANALYST, scopes=(ALL_SCOPES,), reason="ticket 7")

    answer = await scene.http.get(f"/v1/messages/{scene.ids['message_id']}", headers=headers)

    assert answer.json()["type"] == "/problems/texts_not_granted"


@pytest.mark.parametrize("reason", ["x" * 201, "a\x07b"])
async def test_a_reason_is_one_short_line(scene: Scene, reason: str) -> None:
    headers = {**await scene.site.staff(Role.OPERATOR), REASON: reason}

    answer = await scene.http.get(f"/v1/messages/{scene.ids['message_id']}", headers=headers)

    assert (answer.status_code, answer.json()["field"]) == (422, REASON)


async def test_a_caller_that_sends_too_many_requests_has_to_wait(tmp_path: Path, embedded: str) -> None:
    async with a_site(embedded, tmp_path, options=AppOptions(requests_per_minute=3)) as site:
        answers = [await site.http.get("/v1/traces", headers=site.person()) for _ in range(4)]
        of_bob = await site.http.get("/v1/traces", headers=site.person(BOB))

        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        assert answers[-1].json()["type"] == "/problems/too_many_requests"
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert of_bob.status_code == 200


async def test_the_page_about_the_api_needs_nothing_from_elsewhere(scene: Scene) -> None:
    page = await scene.http.get("/docs")
    schema = (await scene.http.get("/openapi.json")).json()

    assert "http" not in page.text.replace("http-equiv", "").lower().replace("<html", "")
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    documented = {(m.upper(), path) for path, methods in schema["paths"].items() for m in methods}
    hidden = {("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/v1/ws")}
    assert documented == set(RULES) - hidden
    for _, path in documented:
        assert path in page.text
