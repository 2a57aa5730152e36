"""What a message states by itself: medicines taken or only mentioned, statements beside a question."""

from functools import cache
from pathlib import Path

import pytest

from agents.local import lexicon
from agents.local.enriching import Enricher
from agents.questions import kinds_asked
from agents.values import Exchange
from tests.kept_conversations import Talk

CONFIG = Path(__file__).parents[2] / "config"


@cache
def enricher() -> Enricher:
    return Enricher(lexicon.load(CONFIG / "lexicon.toml"))


def stated(message: str) -> dict[str, str]:
    """The facts known after the first message of a conversation."""
    return enricher().enrich(message, ()).known


# --- medicines that are taken, and medicines that are only mentioned ----------------------------------------


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("how many paracetamol can i take in a day", "paracetamol"),
        ("how much melatonin is safe for a beginner", "melatonin"),
        ("would omeprazole help against my reflux", "omeprazole"),
        ("they want to put me on metformin and I'm not keen", "metformin"),
        ("my consultant is pushing me to start methotrexate", "methotrexate"),
        ("the GP prescribed amitriptyline but I haven't dared to take it", "amitriptyline"),
        ("I was given naproxen at the hospital and never took it", "naproxen"),
        ("I refused the antibiotics they had for me", "antibiotics"),
        ("I'm scared of taking sertraline", "sertraline"),
        ("I'm about to start methotrexate on Monday", "methotrexate"),
        ("starting metformin tomorrow, a bit nervous", "metformin"),
        ("my neighbour says melatonin works wonders", "melatonin"),
        ("if I take ibuprofen will it upset my stomach", "ibuprofen"),
    ],
)
def test_a_medicine_that_is_only_asked_about_proposed_or_refused_is_no_fact(message: str, name: str) -> None:
    known = stated(message)

    assert known["asked_about"] == name
    assert not {"medications", "onset"} & known.keys()


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("my GP suggested ibuprofen and now I take it twice a day", "ibuprofen"),
        ("I take ibuprofen but haven't taken any today", "ibuprofen"),
        ("my doctor put me on ramipril", "ramipril"),
        ("I want to stop taking sertraline", "sertraline"),
        ("I want to come off my antidepressants", "antidepressants"),
        ("I have to take warfarin", "warfarin"),
        ("should I stop my sertraline?", "sertraline"),
        ("can I have a beer while on metronidazole?", "metronidazole"),
        ("how often do I need blood tests with my lithium", "lithium"),
        ("I've been off citalopram for a month", "stopped citalopram"),
    ],
)
def test_a_medicine_that_the_person_takes_is_known_in_any_wording(message: str, name: str) -> None:
    assert stated(message)["medications"] == name


def test_in_a_question_the_medicine_asked_about_differs_from_the_one_taken() -> None:
    known = stated("can I take naproxen with my warfarin?")

    assert (known["asked_about"], known["medications"]) == ("naproxen", "warfarin")


@pytest.mark.parametrize(
    "message", ["my doctor gave me statins but I never touched them", "tell me about statins"]
)
async def test_a_person_who_takes_nothing_is_not_asked_for_a_dose(message: str) -> None:
    talk = Talk()

    answers = [(await talk.say(each)).answer for each in (message, "no", "no", "no", "no")]

    assert not any(" dose " in each or "taking it" in each or "you take it" in each for each in answers)


# --- a question beside a statement --------------------------------------------------------------------------

STORY = (
    "so last week we were out camping and the rain got everywhere, then on Sunday my throat began to hurt,"
    " and now I have a cough, no fever, I take bisoprolol, I have asthma, I'm 58,"
    " and I'm allergic to penicillin, "
)


@pytest.mark.parametrize(
    "question",
    [
        "anyway I was wondering whether I ought to have it looked at?",
        "is that something for a doctor?",
        "so should I get it checked",
        "you reckon it will pass by itself?",
        "any advice?",
    ],
)
def test_a_question_at_the_end_of_a_story_changes_none_of_its_facts(question: str) -> None:
    known = stated(STORY + question)

    assert known == stated(STORY) | {kind: known[kind] for kind in known.keys() & {"request"}}
    assert {"concern", "medications", "conditions", "age", "allergies"} <= known.keys()


@pytest.mark.parametrize(
    ("message", "kind", "value"),
    [
        ("can I take ibuprofen, I'm on warfarin?", "medications", "warfarin"),
        ("can i take ibuprofen i have asthma", "conditions", "asthma"),
        ("is it ok to fly, I'm 30 weeks pregnant?", "pregnancy", "30 weeks pregnant"),
        ("why does my knee do that, I'm only 24?", "age", "24"),
        ("should I fast because I have diabetes?", "conditions", "diabetes"),
        ("woke with a stiff neck should i see someone", "concern", "stiff neck"),
        ("a rash on my arm since Friday and it itches, is it serious?", "onset", "Friday"),
    ],
)
def test_facts_stated_next_to_a_question_are_known(message: str, kind: str, value: str) -> None:
    found = enricher().enrich(message, ())

    assert found.known[kind] == value
    assert not found.known.keys() & {"medications"} - {kind}


@pytest.mark.parametrize(
    "message",
    [
        "period is six days late could i be pregnant",
        "my breasts are tender, am I pregnant?",
        "what should I do if I'm pregnant and I have a fever?",
        "mood all over the place, do i need a test for bipolar",
        "aspirin or ibuprofen, which is better?",
        "If I take aspirin, will it help?",
    ],
)
def test_what_is_only_asked_about_is_no_fact(message: str) -> None:
    assert not stated(message).keys() & {"pregnancy", "conditions", "medications"}


# --- openings that contain answers already ------------------------------------------------------------------

OPENINGS = {
    "hip pain, 2 months, 5/10, worse on long walks": "duration severity triggers location",
    "sore throat, four days, hurts to swallow": "duration",
    "toothache, yesterday evening, 8 out of 10": "onset severity",
    "I strained my calf on the treadmill on Thursday": "onset location",
    "slipped on the ice this morning and now my elbow is swollen": "onset location",
    "neck ache, worse sitting at my desk, better in a hot bath": "triggers relief",
    "I've had this cough for two weeks, getting worse": "duration progression",
    "my little boy has a fever, 38.9": "temperature",
    "my shoulder hurts again, third time this year": "previous_episodes",
    "I started citalopram 20 mg two weeks ago and wonder about it": "medications dose taken_for",
    "I've been on metformin since January and my stomach hurts": "medications taken_for",
    "preparing for a triathlon in June": "goal deadline",
    "I'd like to lose 8 kg before my sister's wedding in August": "goal",
    "I sleep about five hours a night": "sleep_hours",
    "I've had Crohn's for twelve years": "conditions duration",
    "I need a letter for my insurer by next Friday": "deadline",
}


@pytest.mark.parametrize("opening", OPENINGS)
async def test_facts_in_the_first_message_are_not_asked_for(opening: str) -> None:
    result = set(OPENINGS[opening].split())
    result |= {"onset", "duration"} if result & {"onset", "duration"} else set()
    talk = Talk()

    asked = [kinds_asked((await talk.say(message)).answer) for message in (opening, *["no"] * 8)]

    assert sum(map(bool, asked)) > 4  # it does ask
    assert [kinds for kinds in asked if result & set(kinds)] == []


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("I took ibuprofen this morning for my back", "taken_for"),
        ("I take ramipril, one a day", "taken_for"),
        ("I need this signed by the doctor", "deadline"),
        ("I want to get fitter", "goal"),
        ("he slept an hour and seems brighter", "sleep_hours"),
        ("the rash is worse on the chest", "triggers"),
        ("my knee is worse in the last two weeks", "triggers"),
        ("I've been on lisinopril for two years and now I cough", "duration"),
    ],
)
def test_a_time_or_wish_about_something_else_is_no_answer(message: str, kind: str) -> None:
    assert kind not in stated(message)


@pytest.mark.parametrize("said", ["{}, like I said", "as I told you, {}", "{}, as I mentioned already"])
def test_an_answer_that_says_it_was_given_before_is_an_answer(said: str) -> None:
    asked = (Exchange(1, "I want to run a marathon", "By when would you like to get there?"),)

    assert enricher().enrich(said.format("October"), asked).known["deadline"] == "October"


# --- replies that contain more than one fact ----------------------------------------------------------------


def replied(question: str, message: str) -> dict[str, str]:
    """The facts known after a reply to a question about a rash."""
    return enricher().enrich(message, (Exchange(1, "I have a rash", question),)).known


@pytest.mark.parametrize(
    ("message", "condition", "medicine"),
    [
        ("only underactive thyroid, on levothyroxine", "underactive thyroid", "levothyroxine"),
        ("high cholesterol, statins", "high cholesterol", "statins"),
        ("depression (sertraline)", "depression", "sertraline"),
        ("gout and I take allopurinol", "gout", "allopurinol"),
    ],
)
def test_a_medicine_named_next_to_a_condition_is_no_condition(
    message: str, condition: str, medicine: str
) -> None:
    known = replied("Do you have any medical conditions?", message)

    assert (known["conditions"], known["medications"]) == (condition, medicine)


@pytest.mark.parametrize(
    ("message", "allergies"),
    [
        ("dogs, and perhaps latex, not sure", "dogs, possibly latex"),
        ("pollen for sure and maybe nuts", "pollen, possibly nuts"),
        ("maybe shellfish, never tested", "possibly shellfish"),
        ("amoxicillin I think, not 100% sure", "possibly amoxicillin"),
    ],
)
def test_an_uncertain_allergy_is_kept_as_possible(message: str, allergies: str) -> None:
    assert replied("Do you have any allergies?", message)["allergies"] == allergies


@pytest.mark.parametrize(
    ("message", "since", "course"),
    [
        ("a few weeks, much worse the last four days", "a few weeks", "much worse the last four days"),
        ("three months, worse since Monday", "three months", "worse since Monday"),
        ("about a year, really bad for a week now", "about a year", "really bad for a week now"),
    ],
)
def test_the_start_of_a_worsening_is_not_the_onset(message: str, since: str, course: str) -> None:
    known = replied("How long have you had it?", message)

    assert (known["duration"], known["progression"]) == (since, course)
    assert "onset" not in known


def test_the_reason_for_a_possible_pregnancy_is_not_its_value() -> None:
    found = enricher().enrich(
        "maybe, my period is ten days late", (Exchange(1, "I feel sick", "Could you be pregnant?"),)
    )

    assert found.known["pregnancy"] == "not sure"
    assert "late" in found.enriched_message


# --- long messages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [STORY * 3, "my knee hurts " * 60, "x" * 900, "is it bad? " * 80, "yes, " * 200, "and but so " * 180],
)
@pytest.mark.parametrize("before", ["", "Do you have any allergies?", "How long have you had it? " * 20])
def test_an_enriched_message_has_at_most_400_characters(message: str, before: str) -> None:
    history = (Exchange(1, STORY, before),) if before else ()

    found = enricher().enrich(message, history)

    assert 0 < len(found.enriched_message) <= 400
