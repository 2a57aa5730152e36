"""`anamnesis route` and `anamnesis eval`: an answer per line in the same order, and a report of figures."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli import cli


def run(*words: str, said: str = "") -> Result:
    """Run `anamnesis` with these arguments and this input."""
    return CliRunner().invoke(cli, list(words), input=said)


@pytest.mark.requirement("001-020")
def test_each_line_gets_an_intent_with_its_id_in_the_same_order() -> None:
    asked = {"id": "b", "text": "8", "context": "How severe is your headache from 1 to 10?"}

    ran = run("route", "--json", said=f"I can't fall asleep\n\n{json.dumps(asked)}\nwrite me a poem\n")

    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.exit_code == 0
    assert [(each["id"], each["intent"], each["out_of_scope"]) for each in answers] == [
        (1, "SLEEP", False),
        (2, "UNCLEAR", False),
        ("b", "GENERAL_HEALTH", False),
        (4, "OUT_OF_SCOPE", True),
    ]
    assert all(set(each) == {"id", "intent", "confidence", "out_of_scope", "reasoning"} for each in answers)


def test_a_line_that_cannot_be_read_gets_an_error_in_its_place() -> None:
    ran = run("route", "--json", said='{"id": 7}\n{"text": \n{"id": 9, "text": "I snore"}\n')

    first, second, third = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.exit_code == 1
    assert (first["id"], first["line"], "text" in first["error"]) == (7, 1, True)
    assert (second["line"], "error" in second) == (2, True)
    assert (third["id"], third["intent"]) == (9, "SLEEP")


def test_without_json_each_line_is_readable_text() -> None:
    ran = run("route", said="My period is late\n")

    number, intent, sure, reason = ran.stdout.strip().split("\t")
    assert (number, intent, float(sure) > 0.8, bool(reason)) == ("1", "SEXUAL_HEALTH", True, True)


def test_another_configuration_folder_has_its_own_intents(tmp_path: Path) -> None:
    sections = {
        "BALANCE": ["what is my balance", "how much money is in my account", "show my bank balance"],
        "TRANSFER": ["send money to my brother", "transfer fifty dollars", "wire money to savings"],
        "WEATHER": ["will it rain tomorrow", "what is the weather like", "is it sunny outside"],
    }
    (tmp_path / "agents.toml").write_text(
        "".join(
            f'[agents.{name}]\ndescription = "{name.lower()}"\nexamples = {json.dumps(examples)}\n'
            for name, examples in sections.items()
        )
    )

    said = "how much do I have left in the bank\nmove 20 euros to Anna\ndo I need an umbrella\n"
    ran = run("route", "--json", "--config", str(tmp_path), said=said)

    assert [json.loads(line)["intent"] for line in ran.stdout.splitlines()] == list(sections), ran.output


def test_the_evaluation_reports_figures_and_pictures(tmp_path: Path) -> None:
    ran = run("eval", "--json", "--report", str(tmp_path / "report"))

    result = json.loads(ran.stdout)
    assert ran.exit_code == 0
    assert set(result) == {"routing", "context_resolution", "safety"}
    assert result["routing"]["held_out"]["cases"] >= 150
    assert json.loads((tmp_path / "report" / "report.json").read_text()) == result
    assert "rows are right, columns were given" in (tmp_path / "report" / "report.txt").read_text()
    assert (tmp_path / "report" / "confusion.held_out.svg").read_text().startswith("<svg")


def test_a_case_that_cannot_be_read_is_named_by_file_and_line(tmp_path: Path) -> None:
    good = {"id": "one", "text": "my knee hurts", "intent": "GENERAL_HEALTH"}
    lines = [json.dumps(good), json.dumps(good | {"secret words": 1})]
    (tmp_path / "routing.mine.jsonl").write_text("\n".join(lines))

    ran = run("eval", "--sets", str(tmp_path))

    assert ran.exit_code == 2
    assert "routing.mine.jsonl, line 2" in ran.output
    assert "Traceback" not in ran.output
    assert "was not expected" not in ran.output
