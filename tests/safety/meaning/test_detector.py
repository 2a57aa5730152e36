"""The detector: rules and classifier check each other."""

from collections.abc import Mapping, Sequence

import pytest

from agents.safety.classifier import Likeness
from agents.safety.detector import AGREES, ALONE, ALONE_CRISIS, DOUBTS, DangerDetector
from agents.safety.rules.guard import Reason
from agents.safety.verdict import MEANING, Verdict
from tests.support.brains.models import the_guard

CHEST = "chest.pain"
STROKE = "stroke.face"


class Words:
    """A guard whose rules fire on single words."""

    rules: Mapping[str, Verdict] = {
        "chest": Verdict("emergency", 3, (CHEST,)),
        "droops": Verdict("emergency", 3, (STROKE,)),
    }

    def check(self, text: str, context: str | None = None) -> Verdict:
        found = Verdict()
        for word, verdict in self.rules.items():
            if word in text:
                found = found.raised_by(verdict)
        return found

    def check_reply(self, text: str, context: str) -> Verdict:
        is_yes = text == "yes" and "harming" in context
        return Verdict("crisis", 2, ("self_harm",)) if is_yes else Verdict()

    def always(self, verdict: Verdict) -> Verdict:
        return self.rules["droops"] if STROKE in verdict.rule_ids else Verdict()

    def explain(self, text: str) -> Sequence[Reason]:
        return ()

    def as_read(self, text: str) -> str:
        return text

    def has_finding(self, text: str) -> bool:
        return True

    def completed(self, before: str, said: str) -> list[str]:
        return []

    def takes_back(self, text: str) -> bool:
        return text.startswith("no, ")


class Likes:
    """A classifier that gives a text the score of a word in it."""

    def __init__(self, **words: float) -> None:
        self._words = words

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        return [
            Likeness(max((like for word, like in self._words.items() if word in text), default=0.0), 0.0)
            for text in texts
        ]


class Constant:
    """A classifier to which every text is like danger to the same degree."""

    def __init__(self, likeness: float) -> None:
        self._likeness = likeness

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        return [Likeness(self._likeness, self._likeness / 2) for _ in texts]


def a_detector(**words: float) -> DangerDetector:
    return DangerDetector(Words(), Likes(**words))


@pytest.mark.parametrize(
    ("likeness", "certainty"),
    [(AGREES, "certain"), (DOUBTS, "possible"), (DOUBTS - 0.01, None)],
)
def test_a_rule_is_certain_possible_or_dismissed_by_the_likeness(
    likeness: float, certainty: str | None
) -> None:
    verdict = a_detector(chest=likeness).check("my chest hurts")

    assert (verdict.certainty if verdict.flagged else None) == certainty


def test_a_rule_that_must_be_heard_at_any_price_is_never_dismissed() -> None:
    verdict = a_detector().check("his face droops on one side")

    assert verdict.is_certain
    assert verdict.rule_ids == (STROKE,)


STORY = "We went to the park with the dog and had a lovely day. "


@pytest.mark.parametrize("before", ["", STORY, STORY * 8])
def test_what_must_be_heard_at_any_price_is_heard_in_a_sentence_of_two_words(before: str) -> None:
    verdict = a_detector().check(
        f"{before}I look at him and he smiles at me. Face droops! He is 70 years old."
    )

    assert verdict.is_certain
    assert verdict.rule_ids == (STROKE,)


def test_a_rule_is_weighed_by_the_likeness_of_its_own_kind() -> None:
    class Crisis:
        def likeness(self, texts: Sequence[str]) -> list[Likeness]:
            return [Likeness(0.0, 0.5) for _ in texts]

    assert not DangerDetector(Words(), Crisis()).check("my chest hurts").flagged
    assert a_detector(chest=0.5).check("my chest hurts").is_certain


def test_what_only_the_classifier_finds_is_possible() -> None:
    verdict = a_detector(grey=ALONE).check("he went all grey and clammy")

    assert verdict == Verdict("emergency", 2, (MEANING,), "possible")


def test_less_likeness_than_that_is_no_danger() -> None:
    assert not a_detector(grey=ALONE - 0.01).check("he went all grey and clammy").flagged


def test_a_long_text_is_judged_sentence_by_sentence() -> None:
    story = "We went to the park with the dog and had a lovely day. " * 8
    danger = "Now my chest hurts a lot. "

    verdict = a_detector(chest=0.9).check(f"{story}{danger}{story}")

    assert verdict.is_certain


def test_a_yes_to_a_question_about_danger_needs_no_likeness() -> None:
    verdict = a_detector().check("yes", "Are you thinking of harming yourself?")

    assert verdict.is_certain
    assert verdict.kind == "crisis"


def test_without_a_classifier_the_rules_decide_alone() -> None:
    verdict = DangerDetector(Words()).check("my chest hurts")

    assert verdict.is_certain


def test_the_classifier_is_not_asked_about_a_denial() -> None:
    assert not a_detector(harm=0.9).check("no, I do not want to harm myself").flagged


def test_what_happened_in_a_year_that_is_named_before_is_no_danger() -> None:
    told = "I was very ill in 2020. There was chest trouble and ten days in bed."

    assert not a_detector(chest=0.9).check(told).is_certain
    assert a_detector(chest=0.9).check("There is chest trouble. I was born in 1970.").is_certain


@pytest.mark.parametrize(
    "told",
    [
        "My face drooped on one side and I couldn't speak, this was in 2014",
        "My mum had a big stroke ten years ago. Her face dropped and she couldn't speak.",
        "I tried to kill myself with pills, in 2014",
        "He collapsed and stopped breathing, that was back in 2014",
    ],
)
def test_a_year_in_the_next_clause_makes_a_finding_past(told: str) -> None:
    assert not DangerDetector(the_guard(), Constant(0.5)).check(told).flagged


@pytest.mark.parametrize(
    "told",
    [
        "I had a stroke in 2014 and now my face is drooping again",
        "In 2014 my mum died and I want to kill myself with her pills",
        "My father had his stroke in 2014. My face is drooping on one side.",
    ],
)
def test_a_year_takes_nothing_back_of_what_is_there_now(told: str) -> None:
    assert DangerDetector(the_guard(), Constant(0.0)).check(told).is_certain


def test_a_crisis_that_only_the_classifier_finds_needs_more_likeness() -> None:
    class Crisis:
        def __init__(self, likeness: float) -> None:
            self._likeness = likeness

        def likeness(self, texts: Sequence[str]) -> list[Likeness]:
            return [Likeness(0.0, self._likeness) for _ in texts]

    assert DangerDetector(Words(), Crisis(ALONE_CRISIS)).check("all is grey").is_possible
    assert not DangerDetector(Words(), Crisis(ALONE_CRISIS - 0.01)).check("all is grey").flagged


def test_danger_that_the_message_says_is_over_is_possible() -> None:
    assert a_detector(chest=0.9).check("my chest was tight last night, gone this morning").is_possible
    assert a_detector(chest=0.9).check("my chest was tight last night, gone but back again").is_certain
    assert a_detector().check("his face droops, no it stopped").is_certain


@pytest.mark.parametrize(
    "asked",
    [
        'In the song he sings "I want to die", who wrote that?',
        'The poem ends with "I want to die", what does it mean',
        '"I want to kill myself" is what the character says on page 12',
    ],
)
def test_what_a_work_says_is_not_what_the_writer_says(asked: str) -> None:
    assert not DangerDetector(the_guard(), Constant(0.9)).check(asked).is_certain
    assert not DangerDetector(the_guard()).check(asked).flagged


@pytest.mark.parametrize(
    "told",
    [
        'I keep thinking "I want to die" all day',
        'My son said "I want to kill myself" this morning',
        'I listened to the song "I want to die" and I want to kill myself',
    ],
)
def test_what_people_say_of_themselves_counts_in_quotation_marks_too(told: str) -> None:
    assert DangerDetector(the_guard(), Constant(0.9)).check(told).is_certain


def test_a_quotation_of_a_work_beside_the_writer_is_possible_danger() -> None:
    assert DangerDetector(the_guard()).check('my favourite song is "I want to die"').is_possible


def test_what_only_the_enriched_message_shows_is_possible_at_most() -> None:
    guard = the_guard()
    found = guard.check("hives and a wheeze")

    assert DangerDetector(guard, Constant(DOUBTS)).weigh_enriched("", found).is_possible
    assert not DangerDetector(guard, Constant(0.1)).weigh_enriched("", found).flagged
