"""`anamnesis safety`: one answer per line, in order, with its id; and why."""

import json
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from agents.safety.classifier import DangerClassifier
from agents.safety.detector import AGREES, ALONE
from orchestrator import wiring
from orchestrator.cli import cli
from orchestrator.settings import load
from orchestrator.wiring import load_classifier
from tests.safety.phrases import HELD_OUT, KNOWN, phrases
from tests.support.brains.models import minilm, the_guard

LINES = [
    "my chest feels tight and I am sweating",
    '{"id": "a7", "text": "yes", "context": "Any thoughts of harming yourself?"}',
    '{"id": "b1", "text": "yes"}',
    "",
    "{not json",
    '{"id": 9, "text": "what are the signs of a stroke"}',
]


def run(*arguments: str, given: str = "") -> str:
    done = CliRunner().invoke(cli, ["safety", *arguments], input=given)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_line_gets_one_answer_in_order_with_its_id() -> None:
    answers = [
        json.loads(line)
        for line in run("check", "--json", "--rules-only", given="\n".join(LINES)).splitlines()
    ]

    assert [(answer["id"], answer["kind"]) for answer in answers] == [
        (1, "emergency"),
        ("a7", "crisis"),
        ("b1", "none"),
        (4, "none"),
        (5, "none"),
        (9, "none"),
    ]
    assert set(answers[0]) == {"id", "flagged", "certainty", "kind", "tier", "rules", "language", "likeness"}
    assert (answers[0]["flagged"], answers[0]["certainty"], answers[0]["tier"]) == (True, "certain", 3)
    assert (answers[2]["flagged"], answers[2]["certainty"]) == (False, None)
    assert answers[0]["rules"][0] == "coronary.chest_pain"


def test_a_line_without_a_text_gets_an_error_with_its_id_and_the_others_are_answered(tmp_path: Path) -> None:
    lines = (
        b'\xef\xbb\xbf{"id": "x1", "text": "I can\'t breathe"}\n'
        b'{"id": "x2", "text": "I can\'t breathe \xff\xfe"}\n'
        b'{"id": "x3", "text": null}\n'
        b'{"id": "x4"}\n'
        b"I can't breathe\n"
    )
    (tmp_path / "lines.txt").write_bytes(lines)

    asked = ["safety", "check", "--json", "--rules-only"]
    result = CliRunner().invoke(cli, [*asked, str(tmp_path / "lines.txt")])
    piped = CliRunner().invoke(cli, asked, input=lines)

    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["id"], answer.get("kind") or answer["error"]) for answer in answers] == [
        ("x1", "emergency"),
        ("x2", "emergency"),
        ("x3", "there is no text"),
        ("x4", "there is no text"),
        (5, "emergency"),
    ]
    assert (result.exit_code, result.stderr) == (1, "Error: 2 of 5 lines have no text.\n")
    assert piped.stdout == result.stdout


def test_lines_are_read_from_a_file_and_printed_as_text(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")

    result = run("check", "--rules-only", str(tmp_path / "lines.txt"))

    assert result.splitlines()[0].startswith("1\temergency\t3\tcoronary.chest_pain")
    assert result.splitlines()[2] == "b1\tnone\t0\t-\t-"


def test_without_the_model_the_rules_decide_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANAMNESIS_MODELS_DIR", str(tmp_path))

    done = CliRunner().invoke(cli, ["safety", "check"], input="I can't breathe")

    assert "1\temergency\t3" in done.stdout
    assert "the rules decide alone" in done.stderr


def test_explain_shows_which_words_fired_a_rule_and_what_stopped_others() -> None:
    result = run("explain", "no SOB but chest tightness")

    assert result.splitlines()[0] == "certain emergency, tier 3"
    assert '"chest tightness"' in result
    assert 'negated by "no"' in result


def test_possible_danger_is_flagged_and_explained_as_possible() -> None:
    lines = ["I wish I could fall asleep and never wake up", "i have crushng chst pain"]

    answers = [
        json.loads(line)
        for line in run("check", "--json", "--rules-only", given="\n".join(lines)).splitlines()
    ]
    passive, misspelt = (run("explain", "--rules-only", line).splitlines() for line in lines)

    assert [(each["flagged"], each["certainty"]) for each in answers] == [(True, "possible")] * 2
    assert passive[0] == "possible crisis, tier 1"
    assert misspelt[0] == "possible emergency, tier 3"
    assert "(tier 3, possible: misspelt)" in misspelt[1]


def test_a_reply_is_explained_by_its_question() -> None:
    result = run("explain", "yes", "--context", "Any thoughts of harming yourself?")

    assert "the reply, to the question before it" in result


ALL_SORTS = (
    "my chest feels tight and I am sweating",
    "no SOB but chest tightness",
    "my husband went all grey and is not making sense",
    "I had a stroke in 2010",
    "nothing is worth getting up for and I have written my letters",
    "dad keeps dropping things and his grin is lopsided since lunch",
    "there is a man downstairs who will not let me leave",
    "the baby is floppy and will not feed",
    "this deadline is killing me",
    "how much water should I drink in a day",
    "can I book an appointment on Friday",
    "what are the signs of a stroke",
    "me duele mucho el pecho y no puedo respirar",
    "   ",
)
REPLIES = (
    ("yes", "Any thoughts of harming yourself?"),
    ("no", "Any thoughts of harming yourself?"),
    ("no", "Is she breathing normally?"),
)


@cache
def the_classifier() -> DangerClassifier:
    return load_classifier(load(), minilm())


@pytest.fixture
def classifier_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "load_embedder", lambda settings: minilm())
    monkeypatch.setattr(wiring, "load_classifier", lambda settings, embedder: the_classifier())


@pytest.mark.usefixtures("classifier_once")
@pytest.mark.parametrize("how", [(), ("--rules-only",)])
def test_explain_and_check_give_the_same_verdict(how: tuple[str, ...]) -> None:
    items = [*((text, None) for text in ALL_SORTS), *REPLIES]
    lines = [json.dumps({"text": text, "context": context, "id": text}) for text, context in items]

    checked = [json.loads(line) for line in run("check", "--json", *how, given="\n".join(lines)).splitlines()]

    result = [
        run("explain", text, *how, *(("--context", context) if context else ())).splitlines()
        for text, context in items
    ]
    assert [explained[0] for explained in result] == [
        f"{each['certainty']} {each['kind']}, tier {each['tier']}" if each["flagged"] else "none"
        for each in checked
    ]
    fired = [{line.split()[1].rstrip(":") for line in each if line.startswith("  fired")} for each in result]
    raised = [
        {"meaning"} if any(line.startswith("  meaning  raised") for line in each) else set()
        for each in result
    ]
    assert [one | other for one, other in zip(fired, raised, strict=True)] == [
        set(each["rules"]) for each in checked
    ]
    assert any(raised) != bool(how)


@pytest.mark.usefixtures("classifier_once")
def test_explain_shows_the_likeness_and_the_thresholds_of_the_classifier() -> None:
    silent, heard = (run("explain", text).splitlines()[-1] for text in (ALL_SORTS[9], ALL_SORTS[0]))

    assert silent.startswith("  meaning  not raised: like an emergency ")
    assert heard.startswith("  meaning  raised: like an emergency ")
    assert all(f"{enough:.2f}" in silent for enough in (AGREES, ALONE))


def test_the_explained_rules_are_those_of_the_verdict() -> None:
    guard = the_guard()
    texts = [
        phrase.text
        for folder in (KNOWN, HELD_OUT)
        for name in ("emergencies", "crises", "calm", "ordinary")
        for phrase in phrases(folder, name)
    ]

    differing = [
        text
        for text in texts
        if {reason.rule.id for reason in guard.explain(text) if not reason.stopped_by}
        != set(guard.check(text).rule_ids)
    ]

    assert differing == []
