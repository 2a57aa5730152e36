"""The HTTP API, called by clients that share no code with ours, through a real server."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from orchestrator.api import strict_json
from orchestrator.api.access import rules
from orchestrator.api.app import AppOptions, create_app
from orchestrator.api.authentication import Authentication, FailedAttempts
from orchestrator.api.keys import FILE, Keys
from orchestrator.api.routes import health, page
from orchestrator.api.server import listening
from orchestrator.errors import TABLE, TOO_MANY_ATTEMPTS, AnamnesisError
from orchestrator.ops import telemetry
from orchestrator.ports import Transport
from orchestrator.wire.ids import PersonId

SAID = "my chest hurts"
PERSON = PersonId("local")


@dataclass(frozen=True)
class Health:
    """The state that the orchestrator reports."""

    status: Literal["ok", "degraded"] = "ok"
    parts: Mapping[str, str] = field(default_factory=lambda: {"store": "ok"})


class EchoingOrchestrator:
    """Sends frames back after the person's name, and errors as their number; can be told to fail."""

    def __init__(self) -> None:
        self.now = Health()
        self.served: list[str] = []

    async def serve(self, transport: Transport, person_id: str) -> None:
        self.served.append(person_id)
        while True:
            try:
                frame = await transport.receive()
            except AnamnesisError as error:
                await transport.send(str(error.problem.number).encode())
                continue
            if frame is None:
                return
            if frame == b"fail":
                raise RuntimeError(SAID)
            if frame == b"leave":
                return
            await transport.send(person_id.encode() + b": " + frame)

    async def health(self) -> Health:
        return self.now


@dataclass(frozen=True)
class Served:
    """An application and its keys. `port` is where it would listen; only that of `listened` really does."""

    orchestrator: EchoingOrchestrator
    authentication: Authentication
    http: httpx.AsyncClient
    port: int = 8321

    @property
    def keys(self) -> Keys:
        """The keys of the persons."""
        return self.authentication.keys

    @property
    def origin(self) -> dict[str, str]:
        """The header that a browser adds for a page of this server."""
        return {"Origin": f"http://127.0.0.1:{self.port}"}

    @property
    def key(self) -> dict[str, str]:
        """The header with the person's key."""
        return {"Authorization": f"Bearer {self.keys.of(PERSON)}"}

    def open(self, headers: Mapping[str, str] | None = None, host: str = "127.0.0.1") -> connect:
        """Open a WebSocket."""
        headers = self.key if headers is None else headers
        return connect(f"ws://{host}:{self.port}/v1/ws", additional_headers=headers, host="127.0.0.1")

    async def sign_in(self) -> dict[str, str]:
        """Sign in with a code; the headers that the page of a browser sends from then on."""
        code = self.authentication.sessions.issue_code(PERSON)
        response = await self.http.post("/v1/session", json={"code": code}, headers=self.origin)
        self.http.cookies.clear()
        return {"Cookie": response.headers["set-cookie"].partition(";")[0], **self.origin}


def client(
    app: FastAPI, address: str = "http://127.0.0.1:8321", asked_from: str = "127.0.0.1"
) -> httpx.AsyncClient:
    """An HTTP client that calls the application without a network."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, client=(asked_from, 50_000)), base_url=address
    )


@pytest.fixture
def orchestrator() -> EchoingOrchestrator:
    return EchoingOrchestrator()


@pytest.fixture
def authentication(tmp_path: Path) -> Authentication:
    return Authentication(tmp_path, session_seconds=3600)


@pytest.fixture
def app(orchestrator: EchoingOrchestrator, authentication: Authentication, tmp_path: Path) -> FastAPI:
    console = a_console(tmp_path)
    return create_app(orchestrator, authentication, AppOptions(hosts=["anamnesis.example"], console=console))


@pytest.fixture
async def served(
    orchestrator: EchoingOrchestrator, authentication: Authentication, app: FastAPI
) -> AsyncIterator[Served]:
    async with client(app) as http:
        yield Served(orchestrator, authentication, http)


@pytest.fixture
async def listened(
    orchestrator: EchoingOrchestrator, authentication: Authentication, app: FastAPI
) -> AsyncIterator[Served]:
    async with (
        listening(app) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as http,
    ):
        yield Served(orchestrator, authentication, http, server.port)


def a_console(folder: Path) -> Path:
    files = folder / "dist"
    (files / "assets").mkdir(parents=True)
    (files / "index.html").write_text("<!doctype html><title>the console</title>")
    (files / "assets" / "main.js").write_text("export {}")
    return files


def problem(response: httpx.Response) -> Any:
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == response.status_code
    return body


async def refusal(opening: connect) -> Any:
    """The HTTP answer to a WebSocket that was not opened, as a problem."""
    with pytest.raises(InvalidStatus) as refused:
        await opening
    response = refused.value.response
    assert response.headers["content-type"] == "application/problem+json"
    return {**json.loads(response.body or b""), "status": response.status_code}


# --- the WebSocket ----------------------------------------------------------------------------------------


async def test_the_key_opens_a_websocket_for_its_person(listened: Served) -> None:
    async with listened.open() as socket:
        await socket.send(b"hello")

        assert await socket.recv() == b"local: hello"
    assert listened.orchestrator.served == [PERSON]


async def test_the_cookie_opens_a_websocket_too(listened: Served) -> None:
    async with listened.open(await listened.sign_in()) as socket:
        await socket.send(b"hello")

        assert await socket.recv() == b"local: hello"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic bG9jYWw6eA=="},
        {"Authorization": "Bearer \xe9"},
        {"Cookie": "anamnesis=wrong"},
    ],
)
async def test_without_key_and_cookie_a_websocket_gets_401(listened: Served, headers: dict[str, str]) -> None:
    listened.keys.of(PERSON)

    assert (await refusal(listened.open(headers)))["status"] == 401
    assert listened.orchestrator.served == []


async def test_the_key_does_not_pass_as_another_scheme(listened: Served) -> None:
    headers = {"Authorization": f"Basic {listened.keys.of(PERSON)}"}

    assert (await refusal(listened.open(headers)))["status"] == 401


async def test_a_wrong_key_is_refused_even_with_a_valid_cookie(listened: Served) -> None:
    headers = {"Authorization": "Bearer wrong", **await listened.sign_in()}

    assert (await refusal(listened.open(headers)))["status"] == 401


@pytest.mark.parametrize(
    "origin", ["http://elsewhere.example", "null", "file://", "http://127.0.0.1:1", "http://["]
)
async def test_a_page_of_a_foreign_origin_is_refused(listened: Served, origin: str) -> None:
    answer = await refusal(listened.open({**listened.key, "Origin": origin}))

    assert (answer["status"], answer["type"]) == (403, "/problems/foreign_origin")


async def test_refused_connections_do_not_fill_the_log(
    listened: Served, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await refusal(listened.open({"Authorization": "Bearer wrong"})))["status"] == 401

    async with listened.open() as socket:  # so that the refused connection is surely over
        await socket.send(b"leave")
        await closing(socket)
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_a_page_of_our_own_may_connect(listened: Served) -> None:
    async with listened.open({**listened.key, "Origin": f"http://127.0.0.1:{listened.port}"}) as socket:
        await socket.send(b"hello")

        assert await socket.recv() == b"local: hello"


async def test_a_foreign_host_name_that_resolves_to_us_is_refused(listened: Served) -> None:
    answer = await refusal(listened.open(host="rebound.example"))

    assert (answer["status"], answer["type"]) == (421, "/problems/foreign_host")


async def test_a_plain_get_is_401_without_a_key_and_426_with_one(listened: Served) -> None:
    without = await listened.http.get("/v1/ws")
    foreign = await listened.http.get("/v1/ws", headers={"Origin": "http://elsewhere.example"})
    with_key = await listened.http.get("/v1/ws", headers=listened.key)

    assert [problem(answer)["status"] for answer in (without, foreign, with_key)] == [401, 403, 426]
    assert with_key.headers["upgrade"] == "websocket"


async def closing(socket: ClientConnection) -> int | None:
    with pytest.raises(ConnectionClosed):
        await socket.recv()
    return socket.close_code


async def test_a_frame_too_large_is_answered_with_103_and_1009(listened: Served) -> None:
    async with listened.open() as socket:
        await socket.send(bytes((1 << 20) + 1))

        assert await socket.recv() == b"103"
        assert await closing(socket) == 1009


async def test_a_text_frame_is_answered_with_101_and_the_connection_stays_open(listened: Served) -> None:
    async with listened.open() as socket:
        await socket.send("text")
        await socket.send(b"hello")

        assert [await socket.recv(), await socket.recv()] == [b"101", b"local: hello"]


async def test_when_the_orchestrator_has_finished_the_websocket_is_closed_normally(listened: Served) -> None:
    async with listened.open() as socket:
        await socket.send(b"leave")

        assert await closing(socket) == 1000


async def test_when_the_orchestrator_fails_the_websocket_is_closed_with_1011_and_nothing_is_quoted(
    listened: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    async with listened.open() as socket:
        await socket.send(b"fail")

        assert await closing(socket) == 1011
        assert socket.close_reason == ""
    async with listened.open() as socket:
        await socket.send(b"hello")
        assert await socket.recv() == b"local: hello"
    assert SAID not in "".join(capfd.readouterr())


# --- the session of a browser -----------------------------------------------------------------------------


async def test_the_right_key_is_exchanged_for_a_cookie_no_script_can_read(served: Served) -> None:
    key = served.keys.of(PERSON)

    response = await served.http.post("/v1/session", json={"key": key})

    cookie = response.headers["set-cookie"]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert response.status_code == 204
    assert attributes == {"httponly", "samesite=strict", "path=/v1"}
    assert cookie.startswith(f"anamnesis{served.port}=")
    assert key not in cookie


async def test_the_cookie_survives_a_restart_and_not_a_new_key(served: Served, tmp_path: Path) -> None:
    cookie = await served.sign_in()
    authentication = Authentication(tmp_path, session_seconds=3600)

    async with client(
        create_app(EchoingOrchestrator(), authentication, AppOptions(console=tmp_path / "dist"))
    ) as restarted:
        known = await restarted.get("/v1/session", headers=cookie)
        (tmp_path / FILE).unlink()
        forgotten = await restarted.get("/v1/session", headers=cookie)

    assert (known.status_code, forgotten.status_code) == (200, 401)
    assert known.json()["person"] == PERSON


async def test_the_cookie_is_for_tls_only_where_there_is_tls(served: Served, app: FastAPI) -> None:
    async with client(app, "https://anamnesis.example") as http:
        response = await http.post("/v1/session", json={"key": served.keys.of(PERSON)})

    assert "secure" in response.headers["set-cookie"].lower()


async def test_a_wrong_key_is_401_and_sets_no_cookie(served: Served) -> None:
    served.keys.of(PERSON)

    response = await served.http.post("/v1/session", json={"key": "wrong"})

    assert problem(response)["type"] == "/problems/unauthenticated"
    assert response.headers["www-authenticate"] == "Bearer"
    assert "set-cookie" not in response.headers


async def test_a_foreign_page_cannot_post_a_key(served: Served) -> None:
    response = await served.http.post(
        "/v1/session", json={"key": served.keys.of(PERSON)}, headers={"Origin": "http://elsewhere.example"}
    )

    assert problem(response)["status"] == 403


async def test_wrong_keys_are_slowed_down_and_the_right_one_is_not(served: Served) -> None:
    key = served.keys.of(PERSON)

    answers = [await served.http.post("/v1/session", json={"key": "wrong"}) for _ in range(31)]
    right = await served.http.post("/v1/session", json={"key": key})

    assert [answer.status_code for answer in answers] == [401] * 30 + [429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert problem(answers[-1])["seconds"] == int(answers[-1].headers["retry-after"])
    assert right.status_code == 204


def test_after_a_minute_wrong_keys_are_no_longer_slowed_down() -> None:
    time = [0.0]
    attempts = FailedAttempts(limit=2, seconds=10, now=lambda: time[0])
    attempts.count()
    attempts.count()

    with pytest.raises(AnamnesisError) as refused:
        attempts.count()
    time[0] = 10.0
    attempts.count()

    assert refused.value.problem is TOO_MANY_ATTEMPTS
    assert refused.value.facts["seconds"] == 10


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"", "malformed_body"),
        (b"{", "malformed_body"),
        (b'{"key": NaN}', "malformed_body"),
        (b'{"key": 1e999}', "malformed_body"),
        (b'{"key": -Infinity}', "malformed_body"),
        (b'{"key": "a", "key": "b"}', "malformed_body"),
        (b'{"key": "\\ud800"}', "malformed_body"),
        (b'{"\\udfff": "a"}', "malformed_body"),
        (b'{"key": "\xff"}', "malformed_body"),
        (b'\xef\xbb\xbf{"key": "a"}', "malformed_body"),
        (b'{"key": ' + b"9" * 5000 + b"}", "malformed_body"),
        (b'{"key": "\\u0000"}', "nul_in_text"),
        (b'{"key": ' + b"[" * 16 + b"]" * 16 + b"}", "too_deep"),
        (b"[" * 60_000, "too_deep"),
        (b"{}", "missing_field"),
        (b"[]", "invalid_field"),
        (b'{"key": 7}', "invalid_field"),
        (b'{"key": "a", "my chest hurts": 1}', "invalid_field"),
        (b'{"key": "' + b"a" * 65536 + b'"}', "body_too_large"),
    ],
)
async def test_an_invalid_body_is_refused_by_name(served: Served, body: bytes, name: str) -> None:
    response = await served.http.post("/v1/session", content=body)

    result = problem(response)
    assert result["type"] == f"/problems/{name}"
    assert (result["status"], result["code"]) == (TABLE[name].http, TABLE[name].number)
    assert SAID not in response.text


async def test_a_body_without_an_announced_end_is_cut_off_at_the_limit(listened: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", listened.port)
    writer.write(b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")

    writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n1\r\nx\r\n")
    answer = await reader.read()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 413 ")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), inner, max_size=3
        )
    ),
    max_leaves=10,
)


@given(values)
def test_every_ordinary_value_is_parsed_unchanged(value: Any) -> None:
    assert strict_json.parse(json.dumps(value).encode()) == value


@given(st.binary())
def test_whatever_is_sent_as_json_is_a_value_or_an_error_of_ours(body: bytes) -> None:
    with suppress(AnamnesisError):
        strict_json.parse(body)


# --- health, numbers, files -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["ok", "degraded"])
async def test_anyone_may_read_the_health(served: Served, status: Literal["ok", "degraded"]) -> None:
    served.orchestrator.now = Health(status, {"store": "ok", "letta": "down: refused"})

    response = await served.http.get("/health")

    assert response.status_code == 200
    assert response.json() == {"status": status, "parts": {"store": "ok", "letta": "down: refused"}}
    assert response.headers["cache-control"] == "no-store"


async def test_an_orchestrator_whose_health_check_hangs_is_degraded(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never() -> Health:
        await asyncio.Event().wait()
        return Health()

    monkeypatch.setattr(served.orchestrator, "health", never)
    monkeypatch.setattr(health, "HEALTH_SECONDS", 0)

    response = await served.http.get("/health")

    assert response.json() == {
        "status": "degraded",
        "parts": {"orchestrator": "down: no_answer", "house": "down: no_answer"},
    }


async def test_metrics_are_public_on_this_machine(served: Served) -> None:
    telemetry.trace_stored("stored")

    response = await served.http.get("/metrics")

    assert response.headers["content-type"].startswith("text/plain; version=")
    assert 'anamnesis_memory_traces_total{action="stored"}' in response.text


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7", "unknown"])
async def test_metrics_need_a_key_from_other_machines(served: Served, app: FastAPI, address: str) -> None:
    async with client(app, asked_from=address) as http:
        without, with_key = await http.get("/metrics"), await http.get("/metrics", headers=served.key)

    assert (without.status_code, with_key.status_code) == (401, 200)


async def test_a_request_through_a_proxy_does_not_count_as_local(listened: Served) -> None:
    response = await listened.http.get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"})

    assert response.status_code == 401


async def test_the_console_is_served_with_its_files(served: Served) -> None:
    index, script = await served.http.get("/"), await served.http.get("/assets/main.js")
    again = await served.http.get("/", headers={"If-None-Match": index.headers["etag"]})

    assert "the console" in index.text
    assert script.headers["content-type"].startswith("text/javascript")
    assert index.headers["cache-control"] == "no-cache"
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["/keys.json", "/../keys.json", "/%2e%2e/keys.json", "/..%2fkeys.json", "//etc/passwd"]
)
async def test_no_file_outside_the_console_is_served(listened: Served, path: str) -> None:
    listened.keys.of(PERSON)
    reader, writer = await asyncio.open_connection("127.0.0.1", listened.port)

    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 404 ")


async def test_without_a_built_console_the_page_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "built_console", lambda: None)
    app = create_app(EchoingOrchestrator(), Authentication(tmp_path, session_seconds=3600))

    async with client(app) as http:
        index, other = await http.get("/"), await http.get("/nothing")

    assert "make run" in index.text
    assert problem(other)["type"] == "/problems/path_not_found"


# --- every answer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/assets/main.js", "/health", "/metrics", "/nothing", "/v1/session", "/v1/ws"]
)
async def test_every_response_has_the_security_headers(listened: Served, path: str) -> None:
    headers = (await listened.http.get(path)).headers

    policy = {part.split()[0]: part.split()[1:] for part in headers["content-security-policy"].split(";")}
    here = f"127.0.0.1:{listened.port}"
    assert policy["default-src"] == ["'self'"]
    assert policy["connect-src"] == ["'self'", f"ws://{here}", f"wss://{here}"]
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == ["'none'"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


async def test_a_refused_websocket_has_the_security_headers(listened: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await listened.open({})

    assert refused.value.response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8321", 200),
        ("127.0.0.1", 200),
        ("[::1]:8321", 200),
        ("anamnesis.example", 200),
        ("elsewhere.example", 421),
        ("localhost.elsewhere.example", 421),
        ("localhost:8321@elsewhere.example", 421),
        ("local host", 421),
        ("127.0.0.1; script-src *", 421),
        ("", 421),
    ],
)
async def test_only_known_host_names_are_served(served: Served, host: str, status: int) -> None:
    response = await served.http.get("/health", headers={"Host": host})

    assert response.status_code == status
    assert "script-src" not in response.headers["content-security-policy"]


async def test_unknown_paths_and_methods_are_problems_too(served: Served) -> None:
    nothing = await served.http.get("/nothing")
    wrong = await served.http.put("/v1/session")

    assert problem(nothing)["type"] == "/problems/path_not_found"
    assert problem(wrong)["type"] == "/problems/method_not_allowed"
    assert SAID.encode() not in nothing.content


@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/conversations/conv_1/token"])
async def test_without_livekit_there_are_no_rooms_and_only_a_caller_with_a_key_learns_it(
    served: Served, path: str
) -> None:
    nobodys = await served.http.post(path)
    refused = await served.http.post(path, headers=served.key)

    assert problem(nobodys)["type"] == "/problems/unauthenticated"
    assert (refused.status_code, problem(refused)["type"]) == (503, "/problems/livekit_not_configured")


async def test_a_parameter_of_the_wrong_kind_is_named_and_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "built_console", lambda: None)
    app = create_app(EchoingOrchestrator(), Authentication(tmp_path, session_seconds=3600))

    @app.get("/count")
    async def count(most: int) -> int:
        return most

    async with client(app) as http:
        denied = await http.get("/count", params={"most": 1})
        monkeypatch.setattr(rules, "RULES", {("GET", "/count"): rules.Rule()})
        response = await http.get("/count", params={"most": SAID})

    assert (denied.status_code, problem(denied)["type"]) == (403, "/problems/not_allowed")
    assert problem(response)["field"] == "query.most"
    assert "chest" not in response.text


async def test_an_internal_error_is_a_problem_without_quotes(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fail() -> Health:
        raise RuntimeError(SAID)

    monkeypatch.setattr(served.orchestrator, "health", fail)

    response = await served.http.get("/health")

    assert problem(response)["type"] == "/problems/internal"
    output = "".join(capfd.readouterr())
    assert "request_failed" in output
    assert SAID not in output + response.text


async def test_a_client_has_more_than_a_minute_to_answer_a_ping(tmp_path: Path) -> None:
    """A server that is late itself reads the answer late; with 20 s it closed all connections under load."""
    app = create_app(EchoingOrchestrator(), Authentication(tmp_path, session_seconds=60))

    async with listening(app) as server:
        assert server.config.ws_ping_timeout is not None
        assert server.config.ws_ping_timeout > 60
