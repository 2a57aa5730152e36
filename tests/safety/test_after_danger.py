"""After a safety answer: what ends the danger and what does not, and who has called and who has not."""

import pytest

from agents.safety.after_danger import CALLED, at_once
from agents.safety.verdict import STILL, Verdict
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
