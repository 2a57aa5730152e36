"""The whole API is called with data made from its own description: no 500, no undocumented answer."""

import asyncio
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks
from schemathesis.core.result import Ok

from orchestrator.api.server import listening
from tests.contract.api.serving import REASON, RoomsDouble, a_site, a_talk
from tests.support.memory.memories import import_texts

NOT_CALLED = {
    "GET /v1/traces/stream",  # does not end; test_resources follows it
}
LOCAL = "local"
EXAMPLES = 12
CHECKED = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
"""Whether access is refused is not checked here; the table in test_access does that for every route."""


class ServerThread:
    """A real server with a conversation of the local person, on a thread of its own."""

    def __init__(self, folder: Path, template: Path) -> None:
        self._address = f"sqlite:///{shutil.copyfile(template, folder / 'store.db')}"
        self._folder = folder
        self._ready: Future[tuple[str, dict[str, str], dict[str, str]]] = Future()
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run)

    def start(self) -> tuple[str, dict[str, str], dict[str, str]]:
        """Start; returns the address, the headers of the local person, and ids that exist."""
        self._thread.start()
        return self._ready.result(60)

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        said = ("I am having a headache", "8", "yes", "no", "I want to kill myself tonight")
        async with (
            a_site(self._address, self._folder, rooms=RoomsDouble(LOCAL)) as site,
            a_talk(site, *said, person=LOCAL) as peer,
            listening(site.app) as server,
        ):
            headers = {**site.person(LOCAL), REASON: "a test"}
            here, store = peer.conversation_id, site.orchestrator.store
            await site.http.post(f"/v1/conversations/{here}/blocks/rotate", headers=headers)
            message = (await site.get(f"/v1/conversations/{here}/messages", headers))["items"][0]["id"]
            await store.write(lambda tx: tx.tools.request(here, message, "clock", {}, id="tool_1"))
            await site.http.post("/v1/memories/search", headers=headers, json={"query": "headache"})
            await asyncio.to_thread(import_texts, store, LOCAL, "I like tea")
            ids = {
                "memory_id": (await site.get("/v1/memories", headers))["items"][0]["id"],
                "retrieval_id": (await site.get("/v1/retrievals", headers))["items"][0]["id"],
                "conversation_id": here,
                "message_id": message,
                "label": "conversation_history",
                "revision": "1",
                "turn": "1",
                "trace_id": (await site.get("/v1/traces", headers))["items"][0]["id"],
                "tool_use_id": "tool_1",
                "event_id": (await site.get("/v1/safety-events", headers))["items"][0]["id"],
            }
            site.authentication._failures.count = lambda: None  # type: ignore[method-assign]
            self._ready.set_result((f"http://127.0.0.1:{server.port}", headers, ids))
            await self._stop.wait()


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    running = ServerThread(tmp_path_factory.mktemp("openapi"), sqlite_template)
    try:
        yield running.start()
    finally:
        running.stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_gets_a_server_error_or_an_undocumented_answer(
    server: tuple[str, dict[str, str], dict[str, str]], mode: GenerationMode, subtests: pytest.Subtests
) -> None:
    url, headers, ids = server
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    called = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.label in NOT_CALLED or (mode is GenerationMode.NEGATIVE and not takes_data(operation)):
            continue
        with subtests.test(operation=operation.label):
            called += 1

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode), exists=st.booleans())
            def call(case: Any, exists: bool) -> None:
                if exists and mode is GenerationMode.POSITIVE and case.path_parameters:
                    known = {name: ids[name] for name in case.path_parameters if name in ids}
                    case.path_parameters.update(known)
                case.call_and_validate(headers=headers, base_url=url, checks=CHECKED)

            call()
    assert called >= 35


UNKEYED = {
    "POST /v1/session",  # nobody is signed in yet, and a code works only once
    "DELETE /v1/session",  # ends nothing twice
    "POST /v1/livekit/webhook",  # LiveKit sends no such header
    "POST /v1/conversations/{conversation_id}/token",  # a kept answer would keep the token
    "POST /v1/memories/search",  # only reads
}


def test_every_route_that_writes_takes_an_idempotency_key(
    server: tuple[str, dict[str, str], dict[str, str]],
) -> None:
    schema: dict[str, Any] = schemathesis.openapi.from_url(f"{server[0]}/openapi.json").raw_schema
    without = {
        f"{method.upper()} {path}"
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if method != "get"
        and "idempotency-key" not in {each["name"] for each in operation.get("parameters", ())}
    }

    assert without == UNKEYED


def takes_data(operation: Any) -> bool:
    """Whether a request can be wrong: it has parameters or a body."""
    return bool([*operation.iter_parameters(), *operation.body])


def test_every_operation_says_what_it_does_and_documents_its_errors(
    server: tuple[str, dict[str, str], dict[str, str]],
) -> None:
    schema: dict[str, Any] = schemathesis.openapi.from_url(f"{server[0]}/openapi.json").raw_schema

    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), f"{method} {path} has no description"
            problem = operation["responses"]["422"]["content"]["application/problem+json"]["schema"]
            assert problem == {"$ref": "#/components/schemas/Problem"}
