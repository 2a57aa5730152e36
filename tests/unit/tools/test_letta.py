"""The command behind `make letta`: which model and which endpoint Letta's agents get."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools import letta
from tools.servers.letta import Address
from tools.servers.model_endpoint import MODEL

ELSEWHERE = "http://192.0.2.1:11434/v1"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Notes how Letta would be started and which variables Anamnesis would get. Starts neither."""
    seen: list[dict[str, Any]] = []

    @contextmanager
    def running(port: int, *, endpoint: str, model: str, kept: Path) -> Iterator[Address]:
        seen.append({"endpoint": endpoint, "model": model})
        yield Address("http://127.0.0.1:1", endpoint)

    def serve(port: int, settings: dict[str, str], options: list[str]) -> int:
        seen[-1]["served"] = settings["ANAMNESIS_LETTA_MODEL"]
        return 0

    monkeypatch.setattr(letta, "ensure_letta", lambda: None)
    monkeypatch.setattr(letta, "running_letta", running)
    monkeypatch.setattr(letta, "serve", serve)
    monkeypatch.delenv("LETTA_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return seen


def run(tmp_path: Path, *arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        letta.main(["--data", str(tmp_path), *arguments])
    return ended.value.code


def test_a_named_model_is_used_at_the_endpoint_that_is_given(
    tmp_path: Path, started: list[dict[str, Any]]
) -> None:
    assert run(tmp_path, "--model", "qwen3:8b", "--endpoint", ELSEWHERE) == 0

    model = "openai-proxy/qwen3:8b"
    assert started == [{"endpoint": ELSEWHERE, "model": model, "served": model}]


def test_a_named_model_is_used_at_the_customary_endpoint(
    tmp_path: Path, started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", ELSEWHERE)

    assert run(tmp_path, "--model", "qwen3:8b") == 0
    assert started[0]["endpoint"] == ELSEWHERE


def test_the_variable_alone_sends_nothing_anywhere(
    tmp_path: Path, started: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", ELSEWHERE)

    assert run(tmp_path) == 0
    assert (started[0]["endpoint"], started[0]["model"]) == ("", f"openai-proxy/{MODEL}")


def test_a_named_model_without_an_endpoint_is_refused(
    tmp_path: Path, started: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--model", "qwen3:8b") == 2
    assert started == []
    assert "--endpoint or OPENAI_BASE_URL" in capsys.readouterr().err
