"""`anamnesis extract` prints one result per input line, in the same order, also for invalid lines."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from orchestrator.cli import cli
from orchestrator.ops import logs


@pytest.fixture(autouse=True)
def _restore_logs() -> Iterator[None]:
    """The command reduces logging; restore it for the tests that follow."""
    yield
    logs.configure()


HEADACHE = [
    {"role": "user", "text": "I am having a headache"},
    {"role": "assistant", "text": "How bad is it from 1 to 10?"},
]


def extracted(*lines: object, options: tuple[str, ...] = ("--json",)) -> tuple[int, list[str]]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    ran = CliRunner().invoke(cli, ["extract", *options], input=text)
    return ran.exit_code, ran.output.splitlines()


@pytest.mark.requirement("001-028")
def test_each_line_gets_its_enrichment_and_its_id() -> None:
    code, lines = extracted(
        {"id": "a", "history": HEADACHE, "message": "8"}, {"id": 2, "message": "I have a rash"}
    )

    first, second = map(json.loads, lines)
    assert (code, first["id"], second["id"]) == (0, "a", 2)
    assert first["enriched_message"] == "User rates headache severity as 8 out of 10 (severe)"
    assert first["previous_context"] == "User reported headache, agent asked for severity rating 1-10"
    assert (first["relevant_history"], first["topic"]) == (["turn_1"], "headache_severity_assessment")
    assert first["facts"] == [
        {"kind": "concern", "value": "headache", "turn": 1},
        {"kind": "severity", "value": "8/10", "turn": 2},
    ]
    assert (second["relevant_history"], second["facts"][0]["turn"]) == ([], 1)


def test_an_invalid_line_gets_an_error_and_the_others_are_processed() -> None:
    code, lines = extracted(
        "no json",
        "[1]",
        {"id": "b", "history": [{"role": "somebody", "text": "secret"}], "message": "secret"},
        {"id": "c"},
        {"id": "d", "history": HEADACHE, "message": "8"},
    )

    results = [json.loads(line) for line in lines]
    assert code == 1
    assert [each.get("error") for each in results] == [
        "line: is not JSON",
        "line: is not a JSON object",
        "history.0.role: input should be 'user', 'assistant' or 'agent'",
        "message: field required",
        None,
    ]
    assert [each["id"] for each in results] == [None, None, "b", "c", "d"]
    assert "secret" not in "".join(lines)


def test_without_json_each_line_is_its_id_and_the_enriched_message() -> None:
    code, lines = extracted({"id": "a", "history": HEADACHE, "message": "8"}, options=())

    assert (code, lines) == (0, ["a\tUser rates headache severity as 8 out of 10 (severe)"])


def test_a_blank_line_keeps_its_place() -> None:
    code, lines = extracted({"id": 1, "message": "8"}, "", {"id": 3, "message": "I have a rash"})

    assert code == 1
    assert [(each.get("line"), each["id"]) for each in map(json.loads, lines)] == [
        (None, 1),
        (2, None),
        (None, 3),
    ]
