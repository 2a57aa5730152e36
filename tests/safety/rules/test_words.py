"""How a message is read as words, the safety texts, and what no brain may say."""

import itertools
import string
import tomllib
from pathlib import Path

import pytest

from agents.embedders.scripted import WordEmbedder
from agents.errors import BadRules
from agents.safety.replies import output, wording
from agents.safety.rules import findings, guard
from agents.safety.rules.phrases import forms, spelled_out
from agents.safety.rules.rules import load as load_rules
from agents.safety.rules.text import Reader, clean
from agents.safety.verdict import Verdict
from orchestrator.errors import BAD_SETTING, AnamnesisError
from orchestrator.settings import load
from orchestrator.wiring import build_monitor
from tests.safety.phrases import RULES
from tests.support.brains.models import the_guard

READER = Reader(
    frozenset(("chest", "pain", "hematemesis", "seizure", "my", "dont", "know")),
    frozenset(("chest", "hematemesis", "pain", "seizure")),
    {"idk": ("dont", "know")},
)


def read(text: str) -> list[str]:
    return [word.text for word in READER.read(text)]


@pytest.mark.parametrize(
    ("typed", "is_read"),
    [
        ("CHEST", ["chest"]),
        ("che\u200bst", ["chest"]),
        ("ch\u00e9st", ["chest"]),
        ("\u0441hest", ["chest"]),
        ("chets", ["chest"]),
        ("chesst", ["chest"]),
        ("hemat emesis", ["hematemesis"]),
        ("hematemsis", ["hematemesis"]),
        ("siezure", ["seizure"]),
        ("c h e s t", ["chest"]),
        ("chestpain", ["chest", "pain"]),
        ("idk", ["dont", "know"]),
        ("don\u2019t", ["dont"]),
        ("cheat", ["cheat"]),
        ("chst", ["chest"]),
        ("pian", ["pain"]),
        ("che st", ["chest"]),
        ("ch*st", ["chest"]),
        ("p**n", ["pain"]),
    ],
)
def test_a_misspelt_word_is_read_as_the_intended_one(typed: str, is_read: list[str]) -> None:
    assert read(typed) == is_read


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("I took an over dose", "I took an overdose"),
        ("good bye everyone", "goodbye everyone"),
        ("he's been stab bed", "he's been stabbed"),
        ("I want 2 die", "I want to die"),
        ("my O2 is 84", "my oxygen is 84"),
        ("my friend OD\u2019d", "my friend overdosed"),
        ("vomiting w/ blood & faint", "vomiting with blood and faint"),
    ],
)
def test_short_forms_and_extra_spaces_change_nothing(typed: str, meant: str) -> None:
    assert the_guard().check(typed) == the_guard().check(meant)
    assert the_guard().check(typed).flagged


def test_words_that_retract_danger_must_be_typed_exactly() -> None:
    assert not the_guard().check("my stool is pitch black, it has healed").flagged
    assert the_guard().check("my stool is pitch black, it has heaed").flagged


@pytest.mark.parametrize(
    "text",
    [
        "my wife took her tablets with breakfast",
        "she thinks she's pregnant",
        "he doesn't know where to park at the hospital",
        "my mum takes all her tablets in the morning",
        "can I take her home after the operation?",
        "we said goodbye to the nurses",
        "she kept going although her knee hurt",
        "he shook her hand",
        "she is afraid of her exam",
        "it's not her fault that she is late",
    ],
)
def test_everyday_talk_about_others_is_no_danger(text: str) -> None:
    assert not the_guard().check(text).flagged


def test_of_a_very_long_text_both_ends_are_checked() -> None:
    filler = "lorem ipsum " * 100_000

    assert the_guard().check(f"{filler} I have crushing chest pain").flagged
    assert the_guard().check(f"I have crushing chest pain. {filler}").flagged
    assert len(clean(filler)) < 30_000


def test_repetitions_do_not_hide_danger_between_them() -> None:
    denied = "no chest pain. " * 300

    assert not the_guard().check(denied).flagged
    assert the_guard().check(f"{denied}I have chest pain. {denied}").flagged


def test_repetitions_are_examined_only_a_few_times() -> None:
    listened = the_guard()._listener.listen("took too much ibuprofen " * 800)

    assert max(len(heard) for heard in listened.heard.values()) <= 4 * findings.MOST_OF_A_CONCEPT


def test_a_phrase_is_expanded_to_all_its_forms() -> None:
    assert set(spelled_out("(cant|cannot)? stop~ it")) >= {
        ("stop", "it"),
        ("cant", "stopped", "it"),
        ("cannot", "stopping", "it"),
    }
    assert forms("carry~") == ("carry", "carries", "carried", "carrying")


# --- the rules themselves -----------------------------------------------------------------------------------


def test_every_rule_names_its_source() -> None:
    rules = load_rules(RULES).rules

    assert len(rules) >= 60
    assert [rule.id for rule in rules if len(rule.source) < 3] == []


def spoiled(folder: Path, name: str, old: str, new: str) -> Path:
    for file in RULES.glob("*.toml"):
        text = file.read_text(encoding="utf-8")
        assert file.name != name or old in text
        (folder / file.name).write_text(
            text.replace(old, new, 1) if file.name == name else text, encoding="utf-8"
        )
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("emergencies.toml", 'when = ["choking"]', 'when = ["chocking_typo"]'),
        ("emergencies.toml", "tier = 3", "tier = 7"),
        ("crises.toml", 'id = "self_harm"', 'id = "suicide.plan"'),
        ("words.toml", "[expand]", "[expand"),
        ("concepts.toml", "[concepts]", "[konzepte]"),
    ],
)
def test_an_invalid_rule_is_refused_when_the_rules_are_loaded(
    tmp_path: Path, name: str, old: str, new: str
) -> None:
    with pytest.raises(BadRules):
        guard.load(spoiled(tmp_path, name, old, new))


# --- what is said -------------------------------------------------------------------------------------------


def regions() -> list[str]:
    return list(tomllib.loads((RULES / "regions.toml").read_text(encoding="utf-8")))


def test_the_texts_of_every_region_say_whom_to_call(subtests: pytest.Subtests) -> None:
    for region in (*regions(), "QQ"):
        words = wording.load(RULES, region)
        for tier in (1, 2, 3):
            with subtests.test(region=region, tier=tier):
                for verdict in (Verdict("emergency", tier), Verdict("crisis", tier)):
                    first = words.answer(verdict, 0)[0]
                    assert any(letter in string.digits for letter in first) or "findahelpline" in first
                assert "{" not in "".join(words.answer(Verdict("emergency", tier), 1))


@pytest.mark.parametrize("region", ["ZZ", "XX"])
def test_no_orchestrator_starts_with_an_unknown_region(region: str) -> None:
    settings = load(environment={"ANAMNESIS_SAFETY_REGION": region})

    with pytest.raises(AnamnesisError, match=r"safety\.region.*GB") as refused:
        build_monitor(settings, WordEmbedder())

    assert refused.value.problem is BAD_SETTING


def test_the_united_kingdom_is_known_by_both_its_names() -> None:
    assert load(environment={"ANAMNESIS_SAFETY_REGION": "UK"}).safety.region == "GB"


@pytest.mark.parametrize(
    ("kind", "tier", "rules"),
    [
        ("emergency", 3, ()),
        ("emergency", 2, ()),
        ("crisis", 3, ()),
        ("crisis", 2, ()),
        ("crisis", 1, ()),
        ("crisis", 3, ("assault.attack",)),
        ("crisis", 2, ("abuse.violence",)),
    ],
)
def test_no_safety_text_is_repeated_and_the_short_ones_are_never_used_in_a_row(
    kind: str, tier: int, rules: tuple[str, ...]
) -> None:
    words = wording.load(RULES, "GB")
    verdict = Verdict("crisis" if kind == "crisis" else "emergency", tier, rules)

    answers = [words.answer(verdict, earlier) for earlier in range(8)]

    long = [answer for answer in answers if len(answer) > 1]
    assert len({answer[0] for answer in long}) == len(long) >= 2
    assert all(one[0] != other[0] for one, other in itertools.pairwise(answers))
    assert {answer[0] for answer in answers if len(answer) == 1}.isdisjoint(each[0] for each in long)
    assert all("999" in "".join(answer) for answer in answers)


@pytest.mark.parametrize("rule", ["abuse.violence", "abuse.danger_now", "assault.sexual", "harm_to_others"])
@pytest.mark.parametrize(
    ("region", "line"), [("GB", "0808 2000 247"), ("US", "1-800-799-7233"), ("JP", "nomore")]
)
def test_the_answer_about_violence_names_help_for_violence(rule: str, region: str, line: str) -> None:
    words = wording.load(RULES, region)

    said = "".join(words.answer(Verdict("crisis", 3, (rule,)), 0))

    assert line in said
    assert "Suicide" not in said
    assert "Samaritans" not in said


def test_the_answer_about_suicide_and_violence_names_the_crisis_line() -> None:
    words = wording.load(RULES, "GB")

    assert "116 123" in words.answer(Verdict("crisis", 3, ("abuse.violence", "suicide.plan")), 0)[0]


POSSIBLE = tomllib.loads((RULES / "texts.toml").read_text(encoding="utf-8"))["possible"]


def possible(name: str) -> Verdict:
    """A possible danger with these texts as the question."""
    rules = {"emergency": "meaning", "crisis": "meaning", "violence": "abuse.violence"}.get(name, name)
    kind = "crisis" if name in ("crisis", "violence", "psychosis") else "emergency"
    return Verdict("crisis" if kind == "crisis" else "emergency", 2, (rules,), "possible")


@pytest.mark.parametrize("name", POSSIBLE)
def test_possible_danger_gets_one_question_at_the_end_and_whom_to_call_before_it(name: str) -> None:
    words = wording.load(RULES, "GB")

    answers = [words.answer(possible(name), times) for times in range(3)]

    for first, *rest in answers:
        assert "999" in first
        assert first[-2:] == ". "
        assert rest[-1].endswith("?")
        assert "".join((first, *rest)).count("?") == 1
    assert answers[0][0] != answers[1][0] != answers[2][0]
    assert answers[0][-1] != answers[1][-1]


@pytest.mark.parametrize(
    ("rules", "kind", "asks"),
    [
        (("coronary.chest_pain",), "emergency", "Is the chest pain there right now?"),
        (("breathing.short",), "emergency", "Is it hard to breathe right now?"),
        (("sepsis.signs",), "emergency", "Is this happening right now, and is it bad or getting worse?"),
        (("meaning",), "emergency", "Is this happening right now, and is it bad or getting worse?"),
        (("suicide.passive",), "crisis", "are you thinking of harming yourself?"),
        (("meaning",), "crisis", "are you thinking of harming yourself?"),
        (("abuse.violence",), "crisis", "Is anybody in danger of being hurt right now?"),
        (("coronary.chest_pain", "mistake"), "emergency", "is anybody in danger right now?"),
    ],
)
def test_the_question_is_chosen_by_the_rule_else_by_the_kind(
    rules: tuple[str, ...], kind: str, asks: str
) -> None:
    verdict = Verdict("crisis" if kind == "crisis" else "emergency", 3, rules, "possible")

    assert wording.load(RULES, "GB").answer(verdict, 0)[-1].endswith(asks)


@pytest.mark.parametrize("name", POSSIBLE)
def test_a_no_to_the_question_about_possible_danger_raises_nothing(name: str) -> None:
    words = wording.load(RULES, "GB")

    for times in range(2):
        asked = "".join(words.answer(possible(name), times))
        assert not the_guard().check("no", asked).flagged


@pytest.mark.parametrize(
    ("rules", "kind", "line"),
    [
        (("stroke.face",), "emergency", "999"),
        (("suicide.plan",), "crisis", "116 123"),
        (("abuse.violence",), "crisis", "0808 2000 247"),
        (("stroke.face", "help.called"), "emergency", "999"),
    ],
)
def test_after_certain_danger_short_texts_name_the_number_and_raise_no_alarm(
    rules: tuple[str, ...], kind: str, line: str
) -> None:
    words = wording.load(RULES, "GB")
    danger = Verdict("crisis" if kind == "crisis" else "emergency", 3, rules)

    light = [words.light(danger, times) for times in range(2)]

    assert light[0] != light[1]
    assert all(line in each and "now" not in each.lower().split() for each in light)
    assert all(line in words.comes_back(danger, again=again) for again in (False, True))


@pytest.mark.parametrize("rule", ["stroke.face", "suicide.plan", "abuse.violence"])
def test_a_person_who_has_called_is_told_what_to_do_and_never_to_call_now(rule: str) -> None:
    words = wording.load(RULES, "GB")
    danger = Verdict("emergency" if rule == "stroke.face" else "crisis", 3, (rule, "help.called"))

    for times in (1, 2):
        said = "".join(words.answer(danger, times))
        assert "call now" not in said
        assert "please call" not in said.lower()


REFUSED = [
    ("dose.directive", "Take 400 mg of ibuprofen every six hours."),
    ("dose.directive", "You could take two tablets now."),
    ("dose.directive", "The usual dose is 10 mg."),
    ("dose.directive", "You should double your dose tonight."),
    ("dose.directive", "TAKE\u200b 500\u00a0mg paracetamol."),
    ("prescription", "I'll prescribe amoxicillin for you."),
    ("prescription", "You should start antibiotics."),
    ("prescription", "Stop taking your warfarin."),
    ("diagnosis", "You have pneumonia."),
    ("diagnosis", "My diagnosis is gout."),
    ("diagnosis", "This is probably just a tension headache."),
    ("diagnosis", "You most likely have a kidney infection."),
    ("diagnosis", "It\u2019s definitely appendicitis."),
    ("reassurance", "There is nothing to worry about."),
]
ALLOWED = [
    "You told me that you have diabetes.",
    "Do you have any infection at the moment?",
    "You take lisinopril 10 mg, is that right?",
    "How severe is it on a scale of 1 to 10?",
    "It can help to drink water and to rest.",
    "You have had this headache for three days.",
    "A pharmacist can tell you about the right dose.",
    "Please see a doctor if it gets worse.",
]


@pytest.mark.parametrize(("rule", "sentence"), REFUSED)
def test_a_diagnosis_a_prescription_or_a_dose_is_refused(rule: str, sentence: str) -> None:
    assert rule in output.load(RULES).refusals(sentence)


@pytest.mark.parametrize("sentence", ALLOWED)
def test_other_sentences_are_allowed(sentence: str) -> None:
    assert output.load(RULES).refusals(sentence) == ()
