"""The meaning of a short reply depends on the questions before it, also if other words come with it."""

import re
import tomllib
from dataclasses import replace
from itertools import product

import pytest

from agents.safety.replies.wording import load
from agents.safety.rules.rules import Kind
from agents.safety.verdict import CALLED, MEANWHILE, Verdict
from tests.safety.phrases import RULES
from tests.support.brains.models import the_guard

OF_HARM = "Thank you for telling me. Any thoughts of harming yourself? Please be honest."
SAFE = "Do you feel safe at home?"


@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        "y",
        "Honestly yes",
        "honestly? yes.",
        "um yeah",
        "Hmmm, yes",
        "ok fine yes",
        "to be honest I do",
        "more than once",
        "several times",
        "no\u2026 actually yes",
        "no, yes",
        "no not really... ok fine, yeah",
        "I don't know, yes",
    ],
)
def test_a_yes_is_found_behind_fillers(reply: str) -> None:
    verdict = the_guard().check(reply, context=OF_HARM)

    assert (verdict.kind, verdict.tier, verdict.rule_ids) == ("crisis", 2, ("self_harm",))


@pytest.mark.parametrize(
    "reply",
    [
        "no",
        "honestly no",
        "no, I am fine",
        "No. I have no such thoughts",
        "I have never",
        "um",
        "no problem",
        "nah, ok",
    ],
)
def test_a_no_stays_a_no(reply: str) -> None:
    assert not the_guard().check(reply, context=OF_HARM).flagged


@pytest.mark.parametrize(
    ("asked", "reply", "rule_ids"),
    [
        ("Have you thought of suicide? How do you sleep? Tell me more.", "yes", ("suicide.thoughts",)),
        ("Do you smoke? Do you have chest pain? Since when?", "yeah", ("coronary.chest_pain",)),
        ("You told me of suicide. Do you smoke?", "yes", ()),
        (f"{SAFE} Any thoughts of suicide?", "no", ("abuse.violence",)),
        (f"{SAFE} Any thoughts of suicide?", "yes", ("suicide.thoughts",)),
        (SAFE, "yes... actually no", ("abuse.violence",)),
        (SAFE, "yes, no problems", ()),
        ("Tell me whether you think of suicide", "yes", ("suicide.thoughts",)),
    ],
)
def test_every_question_of_an_answer_counts(asked: str, reply: str, rule_ids: tuple[str, ...]) -> None:
    assert the_guard().check(reply, context=asked).rule_ids == rule_ids


def test_an_unsure_reply_about_a_crisis_has_tier_1() -> None:
    assert the_guard().check("hm, not sure", context=OF_HARM).tier == 1
    assert not the_guard().check("not sure", context="Do you have chest pain?").flagged


NOT_CALLED = Verdict("emergency", 3, ("help.not_called",))
NOT_SAFE = Verdict("crisis", 2, ("not_safe",))
ABUSED = Verdict("crisis", 2, ("abuse.violence",))
NOTHING = Verdict()


def as_tier_1(verdict: Verdict) -> Verdict:
    return Verdict("crisis", 1, verdict.rule_ids, "possible")


# The meaning of yes, no, "not yet" and "I don't know" after the last sentence of each safety answer.
MEANT = {
    ("emergency", "3", 0): (NOTHING, NOT_CALLED, NOT_CALLED, NOTHING),
    ("emergency", "3", 1): (NOTHING, NOT_CALLED, NOT_CALLED, NOTHING),
    ("emergency", "3", 2): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("emergency", "2", 0): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("emergency", "2", 1): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("crisis", "3", 0): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("crisis", "3", 1): (NOTHING, NOT_SAFE, NOT_SAFE, as_tier_1(NOT_SAFE)),
    ("crisis", "3", 2): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("crisis", "2", 0): (NOTHING, NOT_SAFE, NOT_SAFE, as_tier_1(NOT_SAFE)),
    ("crisis", "2", 1): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("crisis", "1", 0): (
        Verdict("crisis", 2, ("self_harm",)),
        NOTHING,
        NOTHING,
        Verdict("crisis", 1, ("self_harm",), "possible"),
    ),
    ("crisis", "1", 1): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("violence", "3", 0): (NOTHING, NOT_SAFE, NOT_SAFE, as_tier_1(NOT_SAFE)),
    ("violence", "3", 1): (NOTHING, NOTHING, NOTHING, NOTHING),
    ("violence", "2", 0): (NOTHING, ABUSED, ABUSED, as_tier_1(ABUSED)),
    ("violence", "2", 1): (NOTHING, NOTHING, NOTHING, NOTHING),
}
TEXTS = tomllib.loads((RULES / "texts.toml").read_text(encoding="utf-8"))


def test_every_last_question_of_a_safety_answer_is_in_the_table() -> None:
    variants = {
        (kind, tier, at)
        for kind in ("emergency", "crisis", "violence")
        for tier, texts in TEXTS[kind].items()
        for at in range(len(texts))
    }

    assert variants == set(MEANT)


def test_a_short_reply_to_a_safety_answer_means_what_it_asked(subtests: pytest.Subtests) -> None:
    for (kind, tier, at), verdicts in MEANT.items():
        text = TEXTS[kind][tier][at]
        for reply, meant in zip(("yes", "no", "not yet", "I don't know"), verdicts, strict=True):
            with subtests.test(kind=kind, tier=tier, at=at, reply=reply):
                assert the_guard().check(reply, context="".join((text["first"], *text["rest"]))) == meant


@pytest.mark.parametrize("reply", ["yes", "no", "not yet", "he has", "I don't know"])
def test_the_last_safety_text_asks_nothing(reply: str) -> None:
    emergency, crisis = Verdict("emergency", 3), Verdict("crisis", 3)
    marked = [replace(emergency, rule_ids=(rule,)) for rule in (CALLED, MEANWHILE)]
    said = [
        "".join(load(RULES, "GB").answer(verdict, times))
        for verdict, times in product(
            (emergency, crisis, replace(crisis, rule_ids=ABUSED.rule_ids), *marked), (4, 5)
        )
    ]

    assert [each for each in said if the_guard().check(reply, context=each).flagged] == []


@pytest.mark.parametrize(
    ("asked", "rule_id"),
    [
        ("Are you safe?", "not_safe"),
        ("Are you safe where you are?", "not_safe"),
        ("Are you somewhere safe at this moment?", "not_safe"),
        ("Is it safe for you there?", "abuse.violence"),
        ("Can you breathe?", "breathing.cannot"),
        ("Does he respond to you?", "consciousness.lost"),
        ("Can you feel your baby move?", "pregnancy.movements"),
        ("Can you keep yourself safe?", "suicide.plan"),
        ("Have you called an ambulance?", "help.not_called"),
    ],
)
def test_a_no_is_a_finding_for_reversed_questions_also_with_you(asked: str, rule_id: str) -> None:
    assert the_guard().check("no", context=asked).rule_ids == (rule_id,)
    assert not the_guard().check("yes", context=asked).flagged


def test_not_having_called_about_an_errand_is_no_danger() -> None:
    assert not the_guard().check("no", context="Have you called the surgery about it?").flagged


@pytest.mark.parametrize(
    "offer",
    [
        "Would you like to know the signs of a stroke?",
        "Shall I list the signs of a heart attack?",
        "Do you want to know what chest pain can mean?",
    ],
)
def test_accepting_an_offer_is_no_finding(offer: str) -> None:
    assert not the_guard().check("yes please", context=offer).flagged


@pytest.mark.parametrize("asked", ["Do you want to die?", "Would you like to be dead?"])
def test_a_yes_to_a_question_about_a_wish_to_die_is_a_finding(asked: str) -> None:
    assert the_guard().check("yes", context=asked).kind == "crisis"


@pytest.mark.parametrize(
    ("asked", "reply", "tier"),
    [
        ("How would you end your life?", "with pills", 3),
        ("How would you end your life?", "yeah the tablets in the cupboard", 3),
        ("How would you end your life?", "no pills here", 0),
        ("Have you thought of suicide?", "it's been on my mind", 2),
        ("Have you thought of suicide?", "\U0001f44d", 2),
        ("Have you thought of suicide?", "\U0001f44e", 0),
        ("So your left arm went numb an hour ago?", "that's right", 3),
        ("How do you take your medicine?", "with pills", 0),
    ],
)
def test_a_reply_without_a_yes_can_be_a_finding(asked: str, reply: str, tier: int) -> None:
    assert the_guard().check(reply, context=asked).tier == tier


@pytest.mark.parametrize("region", ["", "GB", "US", "DE"])
def test_every_first_sentence_says_to_call(region: str) -> None:
    wording = load(RULES, region)
    kinds: tuple[Kind, ...] = ("emergency", "crisis")
    for kind, tier in product(kinds, (1, 2, 3)):
        for rule_ids, earlier in product(((), ("abuse.violence",)), range(6)):
            first = wording.answer(Verdict(kind, tier, rule_ids), earlier)[0]
            assert re.search(r"\b(?:call|called)\b", first), first
            assert "still sounds" not in first


@pytest.mark.parametrize("region", ["", "GB", "US"])
def test_every_sentence_begins_with_a_large_letter(region: str) -> None:
    wording = load(RULES, region)
    kinds: tuple[Kind, ...] = ("emergency", "crisis")
    for kind, tier in product(kinds, (1, 2, 3)):
        for rule_ids, earlier in product(((), ("abuse.violence",)), range(6)):
            said = wording.answer(Verdict(kind, tier, rule_ids), earlier)
            assert [sentence for sentence in said if sentence[:1].islower()] == []
