"""How a browser signs in and out: one-time codes, sessions, and pages of other origins."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from orchestrator.api.app import AppOptions, create_app
from orchestrator.api.authentication import Authentication
from orchestrator.api.keys import Keys
from orchestrator.api.routes import websocket
from orchestrator.api.running import announced, running_servers
from orchestrator.api.server import listening
from orchestrator.api.sessions import CODE_SECONDS, Sessions
from orchestrator.errors import SESSIONS_UNWRITABLE, AnamnesisError
from orchestrator.wire.ids import PersonId
from tests.unit.api.test_app import EchoingOrchestrator

ANNA, BORIS = PersonId("anna"), PersonId("boris")
HOUR = 3600.0


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(tmp_path: Path, clock: Clock) -> Sessions:
    return Sessions(tmp_path, Keys(tmp_path), seconds=HOUR, now=clock)


# --- codes and sessions -----------------------------------------------------------------------------------


def test_a_code_signs_its_person_in_once(sessions: Sessions) -> None:
    code = sessions.issue_code(ANNA)

    assert [sessions.redeem(code), sessions.redeem(code)] == [ANNA, None]


@pytest.mark.parametrize(("seconds", "person"), [(CODE_SECONDS - 1, ANNA), (CODE_SECONDS, None)])
def test_a_code_is_valid_for_ten_minutes(
    sessions: Sessions, clock: Clock, seconds: float, person: PersonId | None
) -> None:
    code = sessions.issue_code(ANNA)

    clock.seconds += seconds

    assert sessions.redeem(code) == person
    assert sessions.redeem(code) is None


def test_a_code_that_another_process_issued_is_valid(
    sessions: Sessions, tmp_path: Path, clock: Clock
) -> None:
    other = Sessions(tmp_path, Keys(tmp_path), seconds=HOUR, now=clock)

    assert sessions.redeem(other.issue_code(ANNA)) == ANNA


def test_of_many_who_send_one_code_at_once_one_signs_in(sessions: Sessions) -> None:
    code = sessions.issue_code(ANNA)

    with ThreadPoolExecutor(8) as pool:
        signed_in = list(pool.map(lambda _: sessions.redeem(code), range(40)))

    assert sorted(signed_in, key=str) == [None] * 39 + [ANNA]


@pytest.mark.parametrize("wrong", ["", "x", "../keys.json", "é" * 43, "\0"])
def test_an_invalid_code_or_token_signs_nobody_in(sessions: Sessions, wrong: str) -> None:
    sessions.issue_code(ANNA)
    sessions.start(ANNA)

    assert (sessions.redeem(wrong), sessions.person(wrong)) == (None, None)


def test_a_code_is_no_session_and_a_session_is_no_code(sessions: Sessions) -> None:
    code, token = sessions.issue_code(ANNA), sessions.start(ANNA)

    assert (sessions.person(code), sessions.redeem(token)) == (None, None)


def test_a_session_ends_when_its_time_is_over(sessions: Sessions, clock: Clock) -> None:
    token = sessions.start(ANNA)

    clock.seconds += HOUR - 1
    before = sessions.person(token)
    clock.seconds += 1

    assert (before, sessions.person(token)) == (ANNA, None)


def test_a_session_ends_when_its_persons_key_is_replaced(sessions: Sessions, tmp_path: Path) -> None:
    token = sessions.start(ANNA)
    code = sessions.issue_code(ANNA)

    (tmp_path / "keys.json").unlink()
    Keys(tmp_path).of(ANNA)

    assert (sessions.person(token), sessions.redeem(code)) == (None, None)


def test_no_file_holds_a_code_or_a_token(sessions: Sessions, tmp_path: Path) -> None:
    secrets = (sessions.issue_code(ANNA), sessions.start(ANNA))

    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "keys.json"]

    assert len(files) == 2
    for file in files:
        assert file.stat().st_mode & 0o077 == 0
        assert not any(secret in file.name + file.read_text() for secret in secrets)


def test_expired_files_are_removed_when_another_is_made(
    sessions: Sessions, clock: Clock, tmp_path: Path
) -> None:
    sessions.start(ANNA)
    (tmp_path / "sessions" / "half").write_text("{")
    clock.seconds += HOUR

    sessions.start(BORIS)

    assert len(list((tmp_path / "sessions").iterdir())) == 2  # the new one, and what may be half written


def test_a_folder_that_cannot_hold_sessions_is_an_error_by_name(sessions: Sessions, tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("")

    with pytest.raises(AnamnesisError) as refused:
        sessions.start(ANNA)

    assert refused.value.problem is SESSIONS_UNWRITABLE


# --- over HTTP --------------------------------------------------------------------------------------------


class Browser:
    """A browser with one page of the server: it keeps the cookie and adds the headers that browsers add."""

    def __init__(self, http: httpx.AsyncClient, authentication: Authentication, port: int) -> None:
        self.http, self.port = http, port
        self.sessions = authentication.sessions
        self.headers = {"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}

    async def sign_in(self, person: PersonId = ANNA) -> httpx.Response:
        return await self.post({"code": self.sessions.issue_code(person)})

    async def post(self, body: dict[str, str]) -> httpx.Response:
        return await self.http.post("/v1/session", json=body, headers=self.headers)

    async def person(self) -> str | None:
        response = await self.http.get("/v1/session", headers={"Sec-Fetch-Site": "same-origin"})
        return response.json()["person"] if response.status_code == 200 else None

    async def sign_out(self) -> httpx.Response:
        return await self.http.delete("/v1/session", headers=self.headers)

    @property
    def cookie(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{each.name}={each.value}" for each in self.http.cookies.jar)}

    def open(self, **changes: str) -> connect:
        headers = {**self.cookie, **self.headers, **changes}
        address = f"ws://127.0.0.1:{self.port}/v1/ws"
        return connect(address, additional_headers={key: value for key, value in headers.items() if value})


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    authentication = Authentication(tmp_path, session_seconds=HOUR)
    (tmp_path / "dist").mkdir()
    app = create_app(EchoingOrchestrator(), authentication, AppOptions(console=tmp_path / "dist"))
    async with (
        listening(app) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as http,
    ):
        yield Browser(http, authentication, server.port)


async def test_a_code_is_exchanged_for_a_session_and_not_twice(browser: Browser) -> None:
    code = browser.sessions.issue_code(ANNA)

    first, person = await browser.post({"code": code}), await browser.person()
    browser.http.cookies.clear()
    again = await browser.post({"code": code})

    assert (first.status_code, person, again.status_code) == (204, ANNA, 401)
    assert code not in first.headers["set-cookie"]
    assert "set-cookie" not in again.headers


async def test_a_key_is_exchanged_for_a_session_too(browser: Browser, tmp_path: Path) -> None:
    response = await browser.post({"key": Keys(tmp_path).of(BORIS)})

    assert (response.status_code, await browser.person()) == (204, BORIS)


@pytest.mark.parametrize(
    ("body", "problem"), [({}, "missing_field"), ({"key": "a", "code": "b"}, "invalid_field")]
)
async def test_one_of_code_and_key_is_needed(browser: Browser, body: dict[str, str], problem: str) -> None:
    assert (await browser.post(body)).json()["type"] == f"/problems/{problem}"


async def test_signing_out_ends_the_session_and_removes_the_cookie(browser: Browser) -> None:
    await browser.sign_in()
    stolen = browser.cookie

    response = await browser.sign_out()
    with_stolen = await browser.http.get("/v1/session", headers=stolen)

    assert (response.status_code, with_stolen.status_code) == (204, 401)
    assert len(browser.http.cookies.jar) == 0
    assert (await browser.sign_out()).status_code == 204


async def test_signing_out_ends_no_other_session(browser: Browser) -> None:
    elsewhere = browser.sessions.start(ANNA)
    await browser.sign_in()

    await browser.sign_out()

    assert browser.sessions.person(elsewhere) == ANNA


async def test_the_next_sign_in_on_a_browser_ends_the_session_before(browser: Browser) -> None:
    await browser.sign_in(ANNA)
    annas = browser.cookie

    await browser.sign_in(BORIS)
    response = await browser.http.get("/v1/session", headers=annas)

    assert (await browser.person(), response.status_code) == (BORIS, 401)


async def test_a_websocket_of_a_session_is_closed_when_that_ends(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "SESSION_CHECK_SECONDS", 0.01)
    await browser.sign_in()

    async with browser.open() as socket:
        await socket.send(b"hello")
        assert await socket.recv() == b"anna: hello"
        await browser.sign_out()
        with pytest.raises(ConnectionClosed):
            await socket.recv()

    assert socket.close_code == websocket.SIGNED_OUT


@pytest.mark.parametrize(
    "changes",
    [
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
async def test_a_cookie_is_worth_nothing_to_a_page_of_another_origin(
    browser: Browser, changes: dict[str, str]
) -> None:
    await browser.sign_in()
    headers = {key: value for key, value in {**browser.headers, **changes}.items() if value}

    with pytest.raises(InvalidStatus) as refused:
        await browser.open(**changes)
    changed = [
        await browser.http.request(method, path, headers=headers)
        for method, path in (("POST", "/v1/conversations"), ("DELETE", "/v1/session"))
    ]

    assert refused.value.response.status_code == 403
    assert [response.json()["type"] for response in changed] == ["/problems/foreign_origin"] * 2
    assert await browser.person() == ANNA


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)]
)
async def test_a_page_of_another_origin_reads_nothing_by_cookie(
    browser: Browser, site: str, status: int
) -> None:
    await browser.sign_in()

    response = await browser.http.get("/v1/session", headers={"Sec-Fetch-Site": site})

    assert response.status_code == status


async def test_a_program_with_a_key_needs_no_origin(browser: Browser, tmp_path: Path) -> None:
    key = {"Authorization": f"Bearer {Keys(tmp_path).of(ANNA)}"}

    response = await browser.http.post("/v1/conversations", headers=key)

    assert response.json()["type"] == "/problems/livekit_not_configured"


# --- running servers --------------------------------------------------------------------------------------


def test_a_server_is_listed_while_it_runs(tmp_path: Path) -> None:
    before = running_servers(tmp_path)
    with announced(tmp_path, "http://127.0.0.1:1234"):
        during = running_servers(tmp_path)

    assert (before, during, running_servers(tmp_path)) == ([], ["http://127.0.0.1:1234"], [])


def test_a_server_that_crashed_is_no_longer_listed(tmp_path: Path) -> None:
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "4711").write_text("http://127.0.0.1:1234")

    assert running_servers(tmp_path) == []
    assert list((tmp_path / "servers").iterdir()) == []
