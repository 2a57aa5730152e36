"""After a safety answer: what ends the danger and what does not, and whether help was called.

After a question about possible danger: what is a yes, what is a no, and what is neither.
"""

from dataclasses import replace

import pytest

from agents.safety.after_danger import (
    CALLED,
    CONFIRMED,
    MISTAKE,
    RETRACTED,
    at_once,
    denies,
    is_asked,
    is_part_of,
    means,
    retracted,
    understood,
)
from agents.safety.verdict import QUIET, STILL, Verdict
from agents.values import Enrichment, Intent
from tests.models import the_guard

STROKE = Verdict("emergency", 3, ("stroke.face",))
SUICIDE = Verdict("crisis", 3, ("suicide.plan",))
BEATEN = Verdict("crisis", 2, ("abuse.violence",))
OVERDOSE = Verdict("emergency", 3, ("overdose.medicine",))
ASKED = "I am still here: has somebody called, and what has changed since you wrote?"

EITHER = (
    "the ambulance is here",
    "The ambulance has arrived, thank you so much",
    "paramedics are here now",
    "we are at the hospital",
    "I'm in the ER now",
    "they are taking him to the hospital",
    "the crew is with him now",
    "the doctors are looking after her",
    "the ambulance is here, I feel fine now",
)
MISTAKES = (
    "sorry, false alarm",
    "no, it was a false alarm",
    "false alarm lol, sorry",
    "you misunderstood me",
    "this is not an emergency",
    "it was just a test",
    "it was a typo, my mistake",
    "I was only joking",
    "I didn't mean it like that",
    "sorry, wrong chat",
)
AS_FELT = (
    "I'm fine now",
    "I feel much better now, thank you",
    "it has passed, thank god",
    "it's gone now, I'm fine",
    "he is ok again",
    "my dad is fine again",
    "everything is fine now!",
)
NEVER = (
    "is the ambulance here yet",
    "ambulance here yet",
    "the ambulance is here?",
    "the ambulance is not here",
    "has the ambulance arrived",
    "when will help be here",
    "I wish the ambulance were here",
    "the ambulance has come to the wrong house",
    "the doctor has come and gone, he is worse",
    "his breathing, it stopped",
    "it stopped",
    "his pulse is gone now",
    "this is a joke, 999 doesn't pick up",
    "this is not a joke",
    "it was no false alarm",
    "is it a false alarm",
    "could this be a false alarm?",
    "im ok now but he isn't",
    "it passed but came back",
    "he is better now, just very cold and blue",
    "I'm fine now, the pills are kicking in",
    "I feel better now, I took them",
    "I'm fine now that I have decided",
    "I was just kidding myself that I could go on",
    "it's over, goodbye everyone I loved",
)


@pytest.mark.parametrize("said", EITHER)
def test_help_that_has_arrived_ends_a_danger(said: str) -> None:
    assert all(means(the_guard(), said, earlier) == "over" for earlier in (STROKE, SUICIDE, BEATEN, OVERDOSE))
    heard = the_guard().check(said, ASKED)
    assert not at_once(the_guard(), said, ASKED, STROKE, heard).flagged


@pytest.mark.parametrize("said", AS_FELT)
def test_feeling_well_ends_only_dangers_that_are_felt_at_once(said: str) -> None:
    ended = [the_guard().is_over(said, earlier) for earlier in (STROKE, SUICIDE, BEATEN, OVERDOSE)]

    assert ended == [True, False, False, False]


@pytest.mark.parametrize("said", ["they are here", "they're here now"])
def test_they_means_helpers_after_an_emergency_but_not_after_violence(said: str) -> None:
    assert the_guard().is_over(said, OVERDOSE)
    assert not the_guard().is_over(said, BEATEN)


@pytest.mark.parametrize("said", NEVER)
def test_a_message_that_asks_denies_or_says_more_ends_no_danger(said: str) -> None:
    assert not any(the_guard().is_over(said, earlier) for earlier in (STROKE, SUICIDE, BEATEN, OVERDOSE))


@pytest.mark.parametrize("said", ["I took them", "i did it", "I've already taken it"])
def test_a_person_who_has_done_it_is_in_immediate_danger(said: str) -> None:
    assert at_once(the_guard(), said, "", Verdict("crisis", 2, ("suicide.thoughts",)), Verdict()).tier == 3


def marks(said: str, earlier: Verdict = STROKE) -> set[str]:
    heard = the_guard().check(said, ASKED)
    return {CALLED, STILL}.intersection(at_once(the_guard(), said, ASKED, earlier, heard).rule_ids)


@pytest.mark.parametrize(
    "said",
    [
        "yes",
        "yeah we have",
        "yes, my wife did",
        "I have",
        "yes, 5 minutes ago",
        "I have called 999",
        "I've called an ambulance",
        "my neighbour called 911",
        "i just rang 999",
        "help is on the way",
        "the ambulance is on its way",
        "they\u2019re coming",
        "on hold with 999",
        "I'm on the phone with them",
        "my wife is calling them",
        "calling now",
        "an ambulance has been called",
        "it's on the way",
        "someone phoned for an ambulance",
        "got through to 999",
    ],
)
def test_the_statement_that_help_was_called_is_recognised(said: str) -> None:
    assert marks(said) == {CALLED, STILL}


NOT_CALLED = (
    "I have not called anyone",
    "I have no phone",
    "he has stopped breathing",
    "he is turning blue",
    "we did not call",
    "yes but nobody picks up",
    "i rang my mum",
    "i called my doctor",
    "actually nobody has called",
    "yes and he is turning blue",
    "i haven't called yet",
    "should I have called?",
    "I tried calling 999",
    "I called 999 but nobody answers",
    "I called 999 and they hung up",
    "thinking of calling an ambulance",
    "if I called 999 what would happen",
    "he has a rash",
    "it is worse",
    "he keeps calling my name",
    "on the phone with my sister",
    "I called 999 last year",
    "no ambulance is coming",
)


@pytest.mark.parametrize("said", NOT_CALLED)
def test_other_statements_do_not_count_as_a_call_for_help(said: str) -> None:
    assert CALLED not in marks(said)


@pytest.mark.parametrize(
    "said",
    ["actually nobody has called", "they don't pick up", "not yet", "no one is coming", "he is turning blue"],
)
def test_a_call_for_help_counts_until_it_is_denied_or_another_danger_comes(said: str) -> None:
    called = Verdict("emergency", 3, ("stroke.face", CALLED, STILL))

    assert CALLED in marks("ok thanks", called)
    assert CALLED not in marks(said, called)


def test_a_new_danger_is_not_marked_as_carried_over() -> None:
    assert marks("I have called 999") == {CALLED, STILL}
    assert marks("I have called 999, he is turning blue") == {CALLED}
    assert marks("not yet") == {STILL}


# --- certain danger -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", MISTAKES)
@pytest.mark.parametrize("earlier", [STROKE, SUICIDE, BEATEN, OVERDOSE])
def test_a_person_who_says_that_it_was_a_mistake_is_asked_once_and_then_believed(
    said: str, earlier: Verdict
) -> None:
    asked = at_once(the_guard(), said, ASKED, earlier, the_guard().check(said, ASKED))

    assert asked == replace(earlier, rule_ids=(*earlier.rule_ids, MISTAKE), certainty="possible")
    assert means(the_guard(), said, asked) == "no"
    assert not at_once(the_guard(), said, "Is anybody in danger right now?", asked, Verdict()).flagged


@pytest.mark.parametrize("said", ["yes", "I don't know", "yes but only a bit"])
def test_a_mistake_that_is_taken_back_is_certain_danger(said: str) -> None:
    asked = replace(STROKE, rule_ids=(*STROKE.rule_ids, MISTAKE), certainty="possible")

    again = at_once(the_guard(), said, "", asked, Verdict())

    assert again == Verdict("emergency", 3, ("stroke.face", CONFIRMED))


@pytest.mark.parametrize("said", ["haha ok", "bye", "thanks", "ok thank you, bye", "lol", "Good night!"])
@pytest.mark.parametrize("earlier", [STROKE, SUICIDE, BEATEN])
def test_a_mere_ok_or_bye_leaves_the_danger_and_repeats_no_alarm(said: str, earlier: Verdict) -> None:
    verdict = at_once(the_guard(), said, "", earlier, Verdict())

    assert verdict == replace(earlier, rule_ids=(*earlier.rule_ids, STILL, QUIET))
    next_verdict = at_once(the_guard(), "what should I do", "", verdict, Verdict())
    assert next_verdict == replace(earlier, rule_ids=(*earlier.rule_ids, STILL))


@pytest.mark.parametrize(
    "said", ["no", "yes", "thanks but he is worse", "ok what now", "hm", "bye everyone I loved"]
)
def test_a_message_that_says_more_than_ok_or_bye_is_not_light(said: str) -> None:
    assert means(the_guard(), said, SUICIDE) == "other"


@pytest.mark.parametrize(
    ("said", "earlier", "is_called"),
    [
        ("the police are on their way", BEATEN, True),
        ("I called the crisis line", SUICIDE, True),
        ("I'm on the phone with the Samaritans", SUICIDE, True),
        ("my sister is coming over", SUICIDE, True),
        ("my husband is coming", BEATEN, False),
        ("they are coming", BEATEN, False),
        ("he is on his way", BEATEN, False),
        ("nobody is coming", SUICIDE, False),
    ],
)
def test_in_a_crisis_the_helpers_who_come_must_be_named(said: str, earlier: Verdict, is_called: bool) -> None:
    verdict = at_once(the_guard(), said, "", earlier, the_guard().check(said))

    assert (CALLED in verdict.rule_ids) == is_called


def test_possible_danger_after_certain_danger_of_its_kind_belongs_to_it() -> None:
    possible = Verdict("emergency", 2, ("ears",), "possible")

    assert is_part_of(possible, STROKE)
    assert not is_part_of(possible, SUICIDE)
    assert not is_part_of(replace(possible, certainty="certain"), STROKE)
    raised = at_once(the_guard(), "his arm hurst", "", STROKE, possible)
    assert raised.is_certain
    assert raised.tier == 3


# --- possible danger ----------------------------------------------------------------------------------------

ACHE = Verdict("emergency", 2, ("ears",), "possible")
GLOOM = Verdict("crisis", 1, ("suicide.passive",), "possible")
QUESTION = "Are you thinking of harming yourself?"


@pytest.mark.parametrize(
    "said", ["yes", "yeah", "um, yes", "yes it is", "it is", "no... actually yes", "right now"]
)
def test_a_plain_yes_is_certain_danger(said: str) -> None:
    assert at_once(the_guard(), said, "", ACHE, Verdict()) == Verdict("emergency", 3, ("ears", CONFIRMED))


@pytest.mark.parametrize(
    "said",
    [
        "yes",
        "sometimes",
        "I do",
        "maybe",
        "I don't know",
        "not yet",
        "not right now",
        "I think about it every night",
    ],
)
def test_in_a_crisis_anything_near_a_yes_is_certain_danger(said: str) -> None:
    verdict = at_once(the_guard(), said, QUESTION, GLOOM, the_guard().check(said, QUESTION))

    assert (verdict.kind, verdict.tier, verdict.certainty) == ("crisis", 2, "certain")
    assert CONFIRMED in verdict.rule_ids
    assert verdict.is_of_oneself


def test_a_yes_never_lowers_what_the_rules_find() -> None:
    said = "yes, I have the pills here and will take them all tonight"

    verdict = at_once(the_guard(), said, QUESTION, GLOOM, the_guard().check(said, QUESTION))

    assert (verdict.tier, verdict.certainty) == (3, "certain")


NO = (
    "no",
    "nope",
    "No, I'm fine.",
    "god no",
    "haha no",
    "of course not",
    "not at all",
    "nah all good, thanks",
    "no, it's not that bad",
    "I was just asking",
    "not any more",
    "No, I'm not thinking of hurting myself",
    "I don't want to hurt myself",
    "it was a joke",
)


@pytest.mark.parametrize("said", NO)
def test_a_plain_no_ends_a_possible_danger(said: str) -> None:
    for earlier in (ACHE, GLOOM):
        assert means(the_guard(), said, earlier) == "no"
        heard = the_guard().check(said, QUESTION)
        assert not at_once(the_guard(), said, QUESTION, earlier, heard).flagged


@pytest.mark.parametrize(
    "said",
    [
        "no but I took all my pills",
        "never felt worse",
        "no help me please",
        "no, it's getting worse",
        "what vitamins should I take",
        "it's over",
    ],
)
def test_a_no_with_something_else_is_no_plain_no(said: str) -> None:
    assert means(the_guard(), said, GLOOM) == "other"


@pytest.mark.parametrize("said", ["yes but only a bit", "not sure", "yes, it's mild"])
def test_a_softened_yes_to_a_possible_emergency_is_unsure(said: str) -> None:
    assert means(the_guard(), said, ACHE) == "unsure"
    assert not at_once(the_guard(), said, "", ACHE, Verdict()).flagged


def test_danger_after_the_question_is_judged_on_its_own() -> None:
    said = "no but my face is drooping on one side"
    assert at_once(the_guard(), said, "", ACHE, the_guard().check(said)).is_certain

    other = at_once(the_guard(), "I slept badly", "", ACHE, Verdict())
    assert not other.flagged


def test_what_a_rule_finds_twice_in_a_row_is_certain() -> None:
    said = "I just wish I could fall asleep and never wake up"
    heard = the_guard().check(said)

    assert heard.is_possible
    assert at_once(the_guard(), said, QUESTION, GLOOM, heard).is_certain
    assert at_once(the_guard(), said, QUESTION, ACHE, heard).is_possible


def test_a_question_is_not_asked_twice_in_a_row_for_the_same_thing() -> None:
    assert is_asked(ACHE, ACHE)
    assert not is_asked(ACHE, GLOOM)
    assert not is_asked(ACHE, STROKE)
    assert not is_asked(ACHE, Verdict())


def test_possible_danger_does_not_hold_for_later_messages() -> None:
    enrichment = Enrichment(previous_context="Nothing", enriched_message="ok")
    unclear = Intent(intent="UNCLEAR", confidence=0.1, reasoning="Nothing is said")

    assert not understood("ok", enrichment, unclear, ACHE).flagged
    assert understood("it hurts", enrichment, unclear, STROKE).flagged


# --- denials ------------------------------------------------------------------------------------------------

DENIED = (("Are you thinking of harming yourself?", "no"),)
LIES = (
    "ok that wasn't true. I think about it every night",
    "I lied",
    "that was a lie, sorry",
    "what I said before was not true",
    "I wasn't being honest with you",
    "I haven't been honest",
)


@pytest.mark.parametrize("said", [*LIES, "I do think about it", "actually, yes", "well, to be honest I do"])
@pytest.mark.parametrize("before", [DENIED, (("", "I'm not thinking of killing myself"),)])
def test_a_denial_that_is_taken_back_counts_as_a_yes(said: str, before: tuple[tuple[str, str], ...]) -> None:
    verdict = retracted(the_guard(), said, before)

    assert (verdict.kind, verdict.certainty) == ("crisis", "certain")
    assert verdict.tier >= 2
    assert RETRACTED in verdict.rule_ids


def test_a_lie_is_remembered_longer_than_an_admission() -> None:
    since = (("How do you sleep?", "badly"), *DENIED)

    assert retracted(the_guard(), LIES[0], since).flagged
    assert not retracted(the_guard(), "I do think about it", since).flagged


@pytest.mark.parametrize(
    ("said", "before"),
    [
        (LIES[0], (("Do you smoke?", "no"),)),
        (LIES[0], (("Are you thinking of harming yourself?", "what do you mean"),)),
        ("I lied about my age", DENIED),
        ("what vitamins should I take", DENIED),
        ("I never think about it", DENIED),
    ],
)
def test_other_messages_take_back_no_denial(said: str, before: tuple[tuple[str, str], ...]) -> None:
    assert not retracted(the_guard(), said, before).flagged


@pytest.mark.parametrize(
    ("said", "is_denial"),
    [
        ("no, I'm not thinking of hurting myself", True),
        ("I don't have any chest pain", True),
        ("I don't have chest pain but my arm is numb", False),
        ("do I not have a stroke?", False),
        ("I feel low", False),
    ],
)
def test_a_message_that_only_denies_a_danger_is_recognised(said: str, is_denial: bool) -> None:
    assert denies(the_guard(), said) == is_denial
    if is_denial:
        assert not the_guard().check(said).flagged
