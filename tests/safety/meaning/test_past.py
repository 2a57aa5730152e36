"""Old dates make a sentence past; doses, clock times, birthdays and new dates do not."""

import pytest

from agents.safety.detector import DangerDetector
from agents.safety.past import Time, says_over, times_of
from tests.safety.meaning.test_detector import Constant
from tests.safety.phrases import SAID_FOR_RULES
from tests.safety.rules.test_rules import ALWAYS
from tests.support.brains.models import the_guard

YEAR = 2026
NOW, UNCLEAR, PAST = Time.NOW, Time.UNCLEAR, Time.PAST
GRAVE = sorted(SAID_FOR_RULES[id]["said"] for id in (*ALWAYS, "overdose.medicine", "poisoning.swallowed"))


def families(text: str) -> set[str]:
    return {reason.rule.id.split(".")[0] for reason in the_guard().explain(text)}


@pytest.mark.parametrize(
    ("parts", "times"),
    [
        (["I had an embolism in 2020.", "Couldn't breathe, coughed blood."], [PAST, UNCLEAR]),
        (["My mum had a big stroke ten years ago.", "Her face drooped on one side."], [PAST, PAST]),
        (["I had an embolism in 2020.", "Now I cough blood again."], [PAST, NOW]),
        (["My chest hurts.", "I was born in 1970."], [NOW, NOW]),
        (["Since 2020 I have chest pain.", "It was bad."], [NOW, NOW]),
        (["Crushing pain since 2020."], [NOW]),
        (["I was ill in 2019, off tablets since 2021."], [PAST]),
        (["In 2014 my mother died.", "I want to kill myself."], [PAST, NOW]),
        (["In 2014 my mother died and I want to kill myself."], [NOW]),
        (["My father died in 2014.", "Chest pain, crushing."], [PAST, NOW]),
        (["He swallowed 2000 mg."], [NOW]),
        (["At 2015 his face drooped."], [NOW]),
        (["On 17 November 2026 I fainted."], [NOW]),
        (["On 17 November 2025 I fainted."], [NOW]),
        (["On 17 November 2024 I fainted."], [PAST]),
        (["My face drooped, born 1 May 1962."], [NOW]),
        (["I was in hospital in 2019.", "I took all my tablets an hour ago."], [PAST, NOW]),
        (["I was in hospital in 2019.", "I fainted this afternoon."], [PAST, NOW]),
    ],
)
def test_when_a_sentence_happens(parts: list[str], times: list[Time]) -> None:
    assert times_of(parts, families, YEAR) == times


@pytest.mark.parametrize("said", GRAVE)
@pytest.mark.parametrize(
    "frame",
    [
        "I had measles in 2019. {said}",
        "{said}, it was 2000 mg each",
        "At 2015 {said}",
        "On 17 November 2026 {said}",
        "{said}. Born 3 May 1962",
    ],
)
def test_no_date_silences_what_must_be_heard_at_any_price(frame: str, said: str) -> None:
    alone = the_guard().check(frame.format(said=said))
    verdict = DangerDetector(the_guard(), Constant(0.4), YEAR).check(frame.format(said=said))

    assert verdict.flagged or not alone.flagged  # some rules need a short sentence


@pytest.mark.parametrize(
    "said",
    [
        "I was diagnosed with depression in 2019. I took all my tablets an hour ago.",
        "He was in rehab in 2024. He injected heroin and turned blue.",
        "My face drooped on one side, born 1962",
        "Dad had a bypass decades ago. He clutched his chest and went grey.",
        "My son was born in 2026 and he had a fit an hour ago and went blue",
        "I took 60 paracetamol to kill myself, it was 2000 mg each handful",
        "My son swallowed 2000 mg of ibuprofen",
        "On 17 November 2026 I coughed blood and fainted",
        "At 2015 his face drooped and his speech slurred",
        "Newborn, born 1 November 2026, fever 38.8 and floppy",
    ],
)
def test_a_date_silences_no_danger_of_now(said: str) -> None:
    assert DangerDetector(the_guard(), Constant(0.4), YEAR).check(said).flagged


@pytest.mark.parametrize(
    ("said", "is_over"),
    [
        ("my chest was tight last night after the curry, gone this morning", True),
        ("no wait it stopped, I was lifting boxes all day", True),
        ("it's gone now, doctor said it was anxiety", True),
        ("it has not gone away", False),
        ("it went away but came back", False),
        ("her hand, it's gone blue", False),
        ("he has stopped breathing", False),
    ],
)
def test_whether_a_message_says_that_it_is_over(said: str, is_over: bool) -> None:
    assert says_over(said) is is_over
