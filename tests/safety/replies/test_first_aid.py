"""First-aid texts: each question in an emergency gets the text that fits, with its source."""

from collections.abc import Sequence

import pytest

from agents.errors import BadRules
from agents.safety.replies import first_aid, wording
from orchestrator.settings import shipped_config

FOLDER = shipped_config() / "safety"
TEXTS = first_aid.load(FOLDER)


@pytest.mark.parametrize(
    ("question", "rules", "topic"),
    [
        ("should i use the EpiPen??", ("anaphylaxis.airway",), "adrenaline_pen"),
        ("do I give him his pen", ("anaphylaxis.airway",), "adrenaline_pen"),
        ("what should I do", ("anaphylaxis.skin_and_more",), "adrenaline_pen"),
        ("how do I do CPR", ("consciousness.lost",), "cpr"),
        ("what can I do until they come?", ("bleeding.severe",), "bleeding"),
        ("should I make her throw up?", ("overdose.medicine",), "overdose"),
        ("can I give him aspirin?", ("stroke.face",), "stroke_time"),
        ("should I hold her down", ("seizure.now",), "seizure"),
        ("can he have some water", ("coronary.chest_pain",), "eat_or_drink"),
        ("should I drive him to hospital", ("coronary.chest_pain",), "transport"),
        ("how many puffs of the inhaler", ("asthma.severe",), "asthma"),
        ("what should we do", ("poisoning.fumes",), "fumes"),
        ("what should I do?", ("consciousness.not_breathing", "consciousness.lost"), "cpr"),
        ("do I push on his chest?", ("consciousness.not_breathing",), "cpr_how"),
        ("how hard?", ("consciousness.not_breathing",), "cpr_how"),
        ("what should I do?", ("stroke.side_of_body", "bleeding.severe"), "bleeding"),
        ("how long until it damages the liver?", ("suicide.attempt", "overdose.medicine"), "overdose"),
        ("ok I used it, what now", ("anaphylaxis.airway",), "adrenaline_pen_used"),
        ("ok I used it, what now", ("meaning", "first_aid.adrenaline_pen"), "adrenaline_pen_used"),
        ("will it hurt my baby, I'm pregnant?", ("anaphylaxis.airway",), "adrenaline_pen_used"),
    ],
)
def test_a_question_in_danger_gets_the_text_that_fits(
    question: str, rules: Sequence[str], topic: str
) -> None:
    found = TEXTS.topic_for(question, rules)

    assert found is not None
    assert found.id == topic


def test_a_question_about_nothing_known_after_a_danger_without_a_text_gets_none() -> None:
    assert TEXTS.topic_for("is it going to be ok?", ("spine.cord",)) is None


def test_a_verdict_is_marked_with_its_topic() -> None:
    found = TEXTS.by_rule(("anaphylaxis.airway", "first_aid.adrenaline_pen", "still"))

    assert found is not None
    assert found.id == "adrenaline_pen"


@pytest.mark.parametrize("topic", TEXTS.topics, ids=lambda topic: topic.id)
def test_each_text_names_its_source_and_can_be_said(topic: first_aid.Topic) -> None:
    said = [text.format_map({"emergency": "999"}) for text in (topic.first, *topic.rest)]

    assert topic.source
    assert any("999" in text for text in said) or topic.id in ("eat_or_drink",)
    assert all("{" not in text for text in said)


def test_a_mistake_in_the_file_is_refused_by_its_place(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "first_aid.toml").write_text('[[topic]]\nid = "x"\nasks = []\nrules = []\n')

    with pytest.raises(BadRules, match="asks"):
        first_aid.load(tmp_path)


def test_the_regions_have_what_the_texts_need() -> None:
    assert wording.known_regions(FOLDER)
