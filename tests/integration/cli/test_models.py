"""`anamnesis models` and `serve --model`: what is sent to a model, when, and what is never sent."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from orchestrator.local_models import PORTS, LocalServer, find_server, where_messages_go
from orchestrator.settings import load
from tests.support.commands import run, start
from tests.support.servers.forked_servers import Forker
from tools.servers.model_endpoint import MODEL, ModelEndpoint, Step
from tools.servers.process import free_port

pytestmark = pytest.mark.usefixtures("nothing_configured")


def chatted(forker: Forker, folder: Path, text: str, **environment: str) -> list[dict[str, Any]]:
    """The frames of a chat with one message."""
    ended = forker.run(folder, "chat", "--json", typed=f"{text}\n".encode(), environment=environment)
    return [json.loads(line) for line in ended.stdout.splitlines()]


@contextmanager
def a_listening_server(body: bytes, status: int = 200) -> Iterator[tuple[int, list[str]]]:
    """A server on loopback that answers everything like this: its port, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()


# --- what is sent, and when ---------------------------------------------------------------------------------


def test_the_variables_of_openai_alone_send_nothing_anywhere(
    forker: Forker, tmp_path: Path, model_endpoint: ModelEndpoint, word: str
) -> None:
    variables = {"OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": model_endpoint.url}

    frames = chatted(forker, tmp_path, f"I cannot sleep, {word}", **variables)

    assert "isFinal" in json.dumps(frames[-1])
    assert model_endpoint.asked(word) == []


def test_a_model_that_was_named_is_asked_where_the_variables_say(
    forker: Forker, tmp_path: Path, model_endpoint: ModelEndpoint, word: str
) -> None:
    variables = {
        "OPENAI_API_KEY": "a key",
        "OPENAI_BASE_URL": model_endpoint.url,
        "ANAMNESIS_CHAT_MODEL": MODEL,
    }

    chatted(forker, tmp_path, f"I cannot sleep, {word}", **variables)

    assert [asked["model"] for asked in model_endpoint.asked(word)] == [MODEL, MODEL]


def test_serve_takes_a_model_and_an_endpoint_and_says_where_messages_go(
    tmp_path: Path, model_endpoint: ModelEndpoint
) -> None:
    options = ("--model", MODEL, "--endpoint", model_endpoint.url)
    with start("--data", str(tmp_path), "serve", "--port", "0", *options) as server:
        assert server.stdout is not None
        printed = [server.stdout.readline() for _ in range(3)]
        server.terminate()

    assert printed[2] == f"Messages are sent to the model {MODEL} at {model_endpoint.url}.\n"


def test_a_model_beside_letta_is_refused(tmp_path: Path) -> None:
    environment = {"LETTA_BASE_URL": f"http://127.0.0.1:{free_port()}"}
    with start("--data", str(tmp_path), "serve", "--port", "0", "--model", "m", **environment) as server:
        _, error = server.communicate(timeout=60)

    assert server.returncode == 2
    assert "cannot be used together with --model" in error


# --- servers on this machine --------------------------------------------------------------------------------


async def test_a_server_on_this_machine_is_suggested_and_only_its_models_are_listed() -> None:
    listed = json.dumps({"object": "list", "data": [{"id": "llama3.2"}]}).encode()
    with a_listening_server(listed) as (port, asked):
        found = await find_server({"Ollama": free_port(), "LM Studio": port})

    assert found == LocalServer("LM Studio", f"http://127.0.0.1:{port}/v1", "llama3.2")
    assert asked == ["GET /v1/models"]


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 200), (b"{}", 200), (b'{"data": []}', 200), (b'{"data": [{"id": 1}]}', 200), (b"[" * 9_999, 200),
     (b'{"data": [{"id": "llama3.2"}]}', 401), (b'{"data": [{"id": "evil\\u001b[2J"}]}', 200)],
)  # fmt: skip
async def test_another_kind_of_server_is_not_suggested(body: bytes, status: int) -> None:
    with a_listening_server(body, status) as (port, _):
        assert await find_server({"Ollama": port}) is None


def test_the_suggestion_is_one_line_with_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(ports: object = None) -> LocalServer:
        return LocalServer("Ollama", "http://127.0.0.1:11434/v1", "a model; rm x")

    monkeypatch.setattr("orchestrator.local_models.find_server", found)

    line = asyncio.run(where_messages_go(load(environment={})))

    assert "\n" not in line
    assert "anamnesis serve --model 'a model; rm x' --endpoint http://127.0.0.1:11434/v1" in line
    assert PORTS == {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}


def test_nothing_is_looked_for_if_a_model_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.local_models.find_server", None)

    line = asyncio.run(where_messages_go(load(given={"chat.model": "gpt-4.1-mini"}, environment={})))

    assert line == "Messages are sent to the model gpt-4.1-mini at https://api.openai.com/v1."


# --- anamnesis models ---------------------------------------------------------------------------------------


def test_a_trial_asks_what_a_turn_asks(model_endpoint: ModelEndpoint) -> None:
    ended = run("models", "try", "--model", MODEL, "--endpoint", model_endpoint.url)

    assert ended.exit_code == 0, ended.output
    assert re.search(r"\(json_schema\): 4 of 4 replies can be used, \d are right\.", ended.output)
    assert re.search(r"first sentence after \d+\.\d s, \d sentences", ended.output)
    assert "Its replies can be used." in ended.output
    asked = model_endpoint.asked("just my wife, 38.9 this morning")
    assert asked[-1]["response_format"]["json_schema"]["name"] == "understanding"


def test_a_trial_says_which_replies_cannot_be_used(model_endpoint: ModelEndpoint) -> None:
    garbage = Step(text="It sounds like a cold.")
    model_endpoint.script("please delete the thing about my shoulder", garbage, garbage)

    ended = run("models", "try", "--model", MODEL, "--endpoint", model_endpoint.url)

    assert ended.exit_code == 1
    assert "3 of 4 replies can be used" in ended.output
    assert '"please delete the thing about my shoulder": it breaks the rule json_invalid' in ended.output


def test_a_model_that_is_slower_than_a_turn_waits_is_not_usable(
    model_endpoint: ModelEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAMNESIS_BRAIN_REPLY_SECONDS", "1")
    model_endpoint.script("what could I do about the headache?", Step(drip=0.15))

    ended = run("models", "try", "--model", MODEL, "--endpoint", model_endpoint.url)

    assert ended.exit_code == 1, ended.output
    assert "4 of 4 replies can be used" in ended.output
    assert "a turn waits 1 s" in ended.output
    assert "Its replies cannot all be used." in ended.output


def test_a_model_whose_whole_answer_is_refused_is_not_usable(model_endpoint: ModelEndpoint) -> None:
    refused = Step(text="You have a migraine. Take two ibuprofen every four hours. It is nothing serious.")
    model_endpoint.script("what could I do about the headache?", refused)

    ended = run("models", "try", "--model", MODEL, "--endpoint", model_endpoint.url)

    assert ended.exit_code == 1, ended.output
    assert "3 sentences, of which the guard refuses 3" in ended.output


def test_a_trial_offers_the_tools_that_a_turn_offers(model_endpoint: ModelEndpoint) -> None:
    run("models", "try", "--model", MODEL, "--endpoint", model_endpoint.url)

    asked = model_endpoint.asked("what could I do about the headache?")
    assert asked[-1]["tools"]


def test_a_trial_of_a_model_that_is_not_there_says_so() -> None:
    ended = run("models", "try", "--model", "m", "--endpoint", f"http://127.0.0.1:{free_port()}/v1")

    assert ended.exit_code == 1
    assert "0 of 4 replies can be used" in ended.output
    assert "Answering: unreachable" in ended.output


def test_a_trial_without_a_model_is_refused() -> None:
    ended = run("models", "try")

    assert ended.exit_code == 2
    assert "--model NAME" in ended.output


def test_the_requests_of_a_message_are_shown_as_they_were_sent(
    forker: Forker, tmp_path: Path, model_endpoint: ModelEndpoint, word: str
) -> None:
    settings = {"ANAMNESIS_CHAT_MODEL": MODEL, "ANAMNESIS_CHAT_ENDPOINT": model_endpoint.url}
    frames = chatted(forker, tmp_path, f"I cannot sleep, {word}", **settings)
    [started] = [frame["body"] for frame in frames if frame.get("name") == "StartAnswer"]
    message = started["previousId"]

    raw = run("--data", tmp_path, "models", "request", message, "--raw").output.splitlines()
    shown = run("--data", tmp_path, "models", "request", message).output
    digest = re.findall(r"^sha256 (\w+)$", shown, re.MULTILINE)[0]
    by_digest = run("--data", tmp_path, "models", "request", digest[:12], "--raw").output.splitlines()
    unknown = run("--data", tmp_path, "models", "request", "msg_unknown")

    assert [json.loads(line) for line in raw] == model_endpoint.asked(word)
    assert f"extractor  {MODEL}  answered" in shown
    assert by_digest == raw[:1]
    assert unknown.exit_code == 2
    assert "No request to a model is stored under this id" in unknown.output


def test_serve_says_that_an_embedding_endpoint_gets_every_message() -> None:
    given = {"embeddings.model": "endpoint", "embeddings.endpoint": "http://127.0.0.1:9/v1"}
    settings = load(given={**given, "embeddings.endpoint_model": "e", "chat.model": "m"}, environment={})

    assert "also sent to the embedding model e at http://127.0.0.1:9/v1" in asyncio.run(
        where_messages_go(settings)
    )
