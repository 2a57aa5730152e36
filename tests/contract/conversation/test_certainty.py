"""Possible danger is asked about; certain danger stays, and lets the person talk about other things."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agents.models.scripted import ScriptedBrain
from agents.ports import Brain
from agents.safety.classifier import Likeness
from agents.safety.detector import AGREES, DOUBTS
from agents.safety.verdict import CONFIRMED, DENIED, MISTAKE, QUIET, RETRACTED, SILENT, STILL
from agents.values import Intent
from orchestrator.orchestrator import Orchestrator
from orchestrator.safety.monitor import LearnedChecks, SafetyMonitor
from orchestrator.store.rows import SafetyEvent
from tests.support.brains.models import the_moves
from tests.support.orchestrators import a_monitor, an_orchestrator, history, local_brain
from tests.support.protocol_client import (
    ASSISTANT_MESSAGE,
    SENTENCE,
    START_ANSWER,
    VARIATION,
    Frame,
    Peer,
    conversing,
)
from tests.support.stores import on_both_databases

CHEST = "I have crushing chest pain and my left arm is numb"
MISSPELT = "I have crushng chets pain"
CORRECTED = "i have crushing chest pain"
PASSIVE = "I wish I could fall asleep and never wake up"
ODD = "something odd is going on with my knee"
PILLS = "I have pills and I'm going to take them all tonight"


class HearsOddThings:
    """A danger classifier that takes every text with the word "odd" for an emergency, "grey" for a crisis.

    It agrees with whatever the rules find, but for the misspelt chest pain.
    """

    def __init__(self) -> None:
        self.heard: list[str] = []

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        self.heard += texts
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Likeness:
        if "grey" in text:
            return Likeness(0.0, 1.0)
        if "odd" in text:
            return Likeness(1.0, 0.0)
        agreed = AGREES / 1.2  # of both kinds together enough for a rule, and too little without one
        return Likeness(DOUBTS, 0.0) if text in (MISSPELT, CORRECTED) else Likeness(agreed, agreed)


def monitor() -> SafetyMonitor:
    return replace(a_monitor(), learned=LearnedChecks(HearsOddThings(), the_moves()), alerts=True)


def brain(which: str) -> Brain:
    return local_brain() if which == "local" else ScriptedBrain()


def sentences(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame.type in (SENTENCE, ASSISTANT_MESSAGE)]


def text(frames: list[Frame]) -> str:
    return "".join(str(each.body.get("text", each.body.get("content"))) for each in sentences(frames))


def certainty(frames: list[Frame]) -> Any:
    """The certainty of the danger that an answer shows; None if it shows none."""
    return next((each.meta["certainty"] for each in sentences(frames) if "certainty" in each.meta), None)


async def events(orchestrator: Orchestrator, peer: Peer) -> list[SafetyEvent]:
    return await orchestrator.store.read(lambda tx: tx.safety.of_conversation(peer.conversation_id))


async def alerted(orchestrator: Orchestrator, peer: Peer) -> list[bool]:
    found = await events(orchestrator, peer)
    return await orchestrator.store.read(
        lambda tx: [tx.safety.alert_of(event.id) is not None for event in found]
    )


# --- possible danger ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kind", "tier", "asks"),
    [
        (MISSPELT, "emergency", 3, "Is the chest pain there right now?"),
        (PASSIVE, "crisis", 1, "are you thinking of harming yourself?"),
    ],
)
@on_both_databases
async def test_a_rule_in_doubt_asks_a_question_before_any_model_is_asked(
    address: str, said: str, kind: str, tier: int, asks: str
) -> None:
    scripted = ScriptedBrain()
    async with (
        an_orchestrator(address, scripted, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask(said)

        [begun] = [frame for frame in frames if frame.type == START_ANSWER]
        assert begun.body["safety"] == {"kind": kind, "tier": tier, "certainty": "possible"}
        assert sentences(frames)[0].meta == {"safety": kind, "tier": tier, "certainty": "possible"}
        assert text(frames).endswith(asks)
        assert text(frames).count("?") == 1
        assert "112" in sentences(frames)[0].body["text"]
        assert scripted.briefs == []
        [event] = await events(orchestrator, peer)
        assert (event.kind, event.tier, event.certainty) == (kind, tier, "possible")
        assert await alerted(orchestrator, peer) == [False]


@pytest.mark.parametrize("features", [["streaming"], []])
async def test_what_only_the_classifier_finds_is_asked_about(address: str, features: list[str]) -> None:
    scripted = ScriptedBrain()
    async with (
        an_orchestrator(address, scripted, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        frames = await peer.ask(ODD)

        assert certainty(frames) == "possible"
        assert text(frames).endswith("Is this happening right now, and is it bad or getting worse?")
        assert scripted.briefs == []
        assert await alerted(orchestrator, peer) == [False]


async def test_what_only_the_router_finds_is_asked_about(address: str) -> None:
    intent = Intent(intent="EMERGENCY", confidence=0.95, reasoning="Reads like danger")
    async with (
        an_orchestrator(address, ScriptedBrain(intents=[intent])).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask("everything went strange just now")

        assert certainty(frames) == "possible"
        assert text(frames).endswith("?")


@pytest.mark.parametrize("which", ["local", "scripted"])
@pytest.mark.parametrize(
    ("said", "kind", "tier"), [(ODD, "emergency", 3), (MISSPELT, "emergency", 3), (PASSIVE, "crisis", 2)]
)
async def test_a_yes_is_certain_danger_with_the_full_answer_and_an_alert(
    address: str, which: str, said: str, kind: str, tier: int
) -> None:
    async with (
        an_orchestrator(address, brain(which), monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(said)
        frames = await peer.ask("yes")

        assert sentences(frames)[0].meta == {"safety": kind, "tier": tier, "certainty": "certain"}
        assert len(sentences(frames)) > 3
        found = await events(orchestrator, peer)
        assert [event.certainty for event in found] == ["possible", "certain"]
        assert CONFIRMED in found[-1].rules
        assert await alerted(orchestrator, peer) == [False, True]


@pytest.mark.parametrize("features", [["streaming"], []])
@pytest.mark.parametrize("said", [ODD, MISSPELT, PASSIVE])
async def test_after_a_no_the_turn_answers_the_message_that_had_raised_the_question(
    address: str, said: str, features: list[str]
) -> None:
    scripted = ScriptedBrain(
        intents=[Intent(intent="EMERGENCY", confidence=0.99, reasoning="Reads like danger")],
        answers=[["Let us look at that."]],
    )
    async with (
        an_orchestrator(address, scripted, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        await peer.ask(said)
        frames = await peer.ask("no")

        assert text(frames) == f"{a_monitor().wording.no_danger} Let us look at that."
        assert certainty(frames) is None
        assert [brief.message for brief in scripted.briefs] == [said]
        assert scripted.messages == [said, said]
        kept = (await history(orchestrator, peer.conversation_id)).turns[-1]
        assert kept.user_message.content == "no"
        assert [DENIED in event.rules for event in await events(orchestrator, peer)] == [False, True]

        again = await peer.ask("what helps against a cold?")
        assert a_monitor().wording.no_danger not in text(again)
        assert scripted.briefs[-1].message == "what helps against a cold?"


async def test_after_a_no_the_local_brain_goes_on_where_it_was(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain(), monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask("I have an odd pain in my knee since Monday")
        frames = await peer.ask("no, I'm fine")

        assert text(frames).startswith(a_monitor().wording.no_danger)
        assert "knee" in text(frames)
        for said in ("about 4 of 10", "it is dull", "when I climb stairs"):  # each retells the odd pain
            assert certainty(await peer.ask(said)) is None


async def test_a_regenerated_answer_after_a_no_still_answers_the_earlier_message(address: str) -> None:
    scripted = ScriptedBrain()
    async with (
        an_orchestrator(address, scripted, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(ODD)
        frames = await peer.ask("no")
        [begun] = [frame for frame in frames if frame.type == START_ANSWER]
        await peer.send(VARIATION, targetId=begun.body["id"], mode="regenerate")
        again = await peer.answer()

        assert certainty(again) is None
        assert [brief.message for brief in scripted.briefs] == [ODD, ODD]


async def test_an_unsure_reply_to_a_possible_emergency_is_answered_beneath_the_number(address: str) -> None:
    scripted = ScriptedBrain()
    async with (
        an_orchestrator(address, scripted, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(ODD)
        frames = await peer.ask("not sure")

        assert text(frames).startswith(a_monitor().wording.error)
        assert certainty(frames) is None
        assert [brief.message for brief in scripted.briefs] == [ODD]


async def test_possible_danger_lapses_if_the_person_says_something_else(address: str) -> None:
    scripted = ScriptedBrain()
    async with (
        an_orchestrator(address, scripted, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(ODD)
        other = await peer.ask("What vitamins are good in winter?")
        reply = await peer.ask("yes")

        assert (certainty(other), certainty(reply)) == (None, None)
        assert [brief.message for brief in scripted.briefs] == ["What vitamins are good in winter?", "yes"]
        assert a_monitor().wording.error not in text(other)
        assert [SILENT.isdisjoint(event.rules) for event in await events(orchestrator, peer)] == [
            True,
            False,
            False,
        ]


async def test_danger_that_the_classifier_finds_again_after_its_question_is_certain(address: str) -> None:
    async with (
        an_orchestrator(address, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        answers = [await peer.ask(f"{ODD}, I said it {times} times") for times in (1, 2, 3)]

        assert [certainty(frames) for frames in answers] == ["possible", "certain", "certain"]
        assert len({text(frames) for frames in answers}) == 3


async def test_another_kind_of_danger_after_a_question_gets_its_own_question(address: str) -> None:
    async with (
        an_orchestrator(address, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(ODD)
        other = await peer.ask("everything in the whole wide world is grey to me today")

        assert certainty(other) == "possible"
        assert "harming yourself" in text(other)


async def test_what_a_rule_finds_twice_in_a_row_is_certain(address: str) -> None:
    async with (
        an_orchestrator(address, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        first = await peer.ask(PASSIVE)
        again = await peer.ask("I just don't want to be here anymore")

        assert (certainty(first), certainty(again)) == ("possible", "certain")


async def test_certain_danger_that_a_later_check_finds_is_said_after_the_question_began(address: str) -> None:
    scripted = ScriptedBrain()
    async with (
        an_orchestrator(address, scripted, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(PASSIVE)
        frames = await peer.ask("no but my face is drooping and I cannot speak properly")

        assert sentences(frames)[0].meta["safety"] == "emergency"
        assert certainty(frames) == "certain"


async def test_a_possible_danger_is_asked_about_once_though_several_checks_find_it(address: str) -> None:
    intent = Intent(intent="EMERGENCY", confidence=0.95, reasoning="Reads like danger")
    async with (
        an_orchestrator(address, ScriptedBrain(intents=[intent]), monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask(f"{PASSIVE}, everything is odd and grey")

        assert text(frames).count("?") == 1
        assert [event.certainty for event in await events(orchestrator, peer)] == ["possible"]


# --- certain danger -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["local", "scripted"])
@pytest.mark.parametrize("danger", [CHEST, PILLS, "my husband beats me"])
async def test_a_mere_ok_or_bye_gets_a_short_line_with_the_number_and_the_danger_stays(
    address: str, which: str, danger: str
) -> None:
    async with (
        an_orchestrator(address, brain(which), monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(danger)
        answers = [await peer.ask(said) for said in ("haha ok", "thanks", "bye")]
        back = await peer.ask("what should I do")

        assert [certainty(frames) for frames in answers] == [None] * 3
        assert all(len(sentences(frames)) == 1 for frames in answers)
        assert all("112" in text(frames) for frames in answers)
        assert text(answers[0]) != text(answers[1]) != text(answers[2])
        assert certainty(back) == "certain"
        found = await events(orchestrator, peer)
        assert [{STILL, QUIET} & set(event.rules) for event in found] == [
            set(),
            {STILL, QUIET},
            {STILL, QUIET},
            {STILL, QUIET},
            {STILL},
        ]
        assert await alerted(orchestrator, peer) == [True, False, False, False, False]


async def test_a_regenerated_answer_to_a_mere_ok_is_no_alarm_either(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask(CHEST)
        frames = await peer.ask("ok")
        [begun] = [frame for frame in frames if frame.type == START_ANSWER]
        await peer.send(VARIATION, targetId=begun.body["id"], mode="regenerate")
        again = await peer.answer()

        assert certainty(again) is None
        assert text(again) != text(frames)


@pytest.mark.parametrize("danger", [CHEST, PILLS])
async def test_a_mistake_is_asked_about_once_and_then_believed(address: str, danger: str) -> None:
    async with (
        an_orchestrator(address, local_brain(), monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(danger)
        asked = await peer.ask("sorry, that was a mistake")
        believed = await peer.ask("no")
        later = await peer.ask("what helps against a cold?")

        assert certainty(asked) == "possible"
        assert "is anybody in danger right now?" in text(asked)
        assert text(believed) == a_monitor().wording.no_danger
        assert certainty(later) is None
        assert "worries me" not in text(later)
        found = await events(orchestrator, peer)
        assert [{MISTAKE, DENIED} & set(event.rules) for event in found] == [set(), {MISTAKE}, {DENIED}]
        assert await alerted(orchestrator, peer) == [True, False, False]


@pytest.mark.parametrize(("said", "is_danger"), [("it was a joke, really", False), ("yes", True)])
async def test_a_person_who_was_asked_about_a_mistake_is_not_asked_again(
    address: str, said: str, is_danger: bool
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask(CHEST)
        await peer.ask("it was a joke")
        frames = await peer.ask(said)

        assert (certainty(frames) == "certain") == is_danger
        assert "is anybody in danger right now?" not in text(frames)


@pytest.mark.parametrize("danger", [CHEST, PILLS, "my husband beats me"])
async def test_other_topics_are_answered_beneath_one_line_with_the_number(address: str, danger: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(danger)
        once = await peer.ask("What vitamins are good in winter?")
        again = await peer.ask("How do I sleep better?")

        assert certainty(once) is None
        assert text(once).startswith("First, because what you told me still worries me")
        assert "112" in sentences(once)[0].body["text"]
        assert "cannot judge" in text(once) or "guess" in text(once)
        assert "worries me" not in text(again)


@pytest.mark.parametrize(
    ("danger", "called"),
    [
        (CHEST, "help is on the way"),
        (PILLS, "I called the crisis line"),
        (PILLS, "my sister is coming over"),
        ("my husband beats me", "the police are on their way"),
    ],
)
async def test_help_that_is_coming_is_acknowledged_and_nobody_is_asked_to_call_again(
    address: str, danger: str, called: str
) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(danger)
        coming = await peer.ask(called)
        waiting = await peer.ask("ok thanks")

        assert text(coming).startswith(("Good that", "I am glad"))
        assert "help.called" in (await events(orchestrator, peer))[1].rules
        for frames in (coming, waiting):
            assert "call now" not in text(frames)
            assert "please call" not in text(frames).lower()


async def test_more_of_the_same_danger_does_not_undo_the_call_for_help(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask("I have crushing chest pain")
        await peer.ask("should I chew an aspirin?")
        called = await peer.ask("my wife called 999")
        answers = [await peer.ask(said) for said in ("he is pale", "what should I watch?")]

        assert text(called).startswith("Good that help is called")
        for frames in answers:
            assert certainty(frames) == "certain"
            assert "call now" not in text(frames)
            assert "please call" not in text(frames)


async def test_help_that_is_there_is_no_danger_for_the_router(address: str) -> None:
    intent = Intent(intent="EMERGENCY", confidence=0.99, reasoning="Reads like danger")
    async with (
        an_orchestrator(address, ScriptedBrain(intents=[intent])).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        assert certainty(await peer.ask("the ambulance is here")) is None


async def test_possible_danger_after_certain_danger_of_its_kind_is_no_question(address: str) -> None:
    async with (
        an_orchestrator(address, monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(CHEST)
        frames = await peer.ask("and now there is something odd with my back as well")

        assert certainty(frames) == "certain"
        assert STILL in (await events(orchestrator, peer))[-1].rules


# --- denials ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["local", "scripted"])
async def test_a_denial_that_is_taken_back_is_a_certain_crisis(address: str, which: str) -> None:
    async with (
        an_orchestrator(address, brain(which), monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask(PASSIVE)
        await peer.ask("no")
        frames = await peer.ask("ok that wasn't true. I think about it every night")

        assert sentences(frames)[0].meta == {"safety": "crisis", "tier": 2, "certainty": "certain"}
        assert RETRACTED in (await events(orchestrator, peer))[-1].rules
        assert (await alerted(orchestrator, peer))[-1]


async def test_a_denial_in_own_words_can_be_taken_back_later(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain(), monitor=monitor()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for said in ("I feel low lately", "I'm not thinking of killing myself or anything", "I sleep badly"):
            assert certainty(await peer.ask(said)) is None
        frames = await peer.ask("I lied before")

        assert certainty(frames) == "certain"
        assert sentences(frames)[0].meta["safety"] == "crisis"


async def test_a_denial_never_raises_danger(address: str) -> None:
    hears = HearsOddThings()
    async with (
        an_orchestrator(
            address, local_brain(), monitor=replace(a_monitor(), learned=LearnedChecks(hears, the_moves()))
        ).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask("no, I'm not thinking of hurting myself, odd as it sounds")

        assert certainty(frames) is None
        assert hears.heard == []
        assert await events(orchestrator, peer) == []
