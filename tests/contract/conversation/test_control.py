"""The person stops an answer, asks for another one, edits the message, or continues a stopped answer."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agents.errors import BrainFailed
from agents.models.scripted import ScriptedBrain
from orchestrator.orchestrator import Orchestrator
from tests.support.orchestrators import an_orchestrator, everything, history, message, messages, meta, turn
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    ASSISTANT_MESSAGE,
    SENTENCE,
    START_ANSWER,
    STOP,
    TRACE,
    VARIATION,
    Frame,
    Peer,
    conversing,
)
from tests.support.stores import on_both_databases

HALTING: tuple[Any, ...] = ("One. ", "Two. ", "Thr")


def halting() -> tuple[asyncio.Event, list[Any]]:
    """An answer that says its first sentence, then waits for the event before the others."""
    hold = asyncio.Event()
    return hold, [*HALTING, hold, "ee."]


async def begun(peer: Peer) -> str:
    """Wait for the first sentence; returns the answer's id."""
    frames = await peer.until_type(SENTENCE)
    return str(frames[-1].body["previousId"])


def last_words(frames: list[Frame]) -> Any:
    return frames[-1].body.get("text", frames[-1].body.get("content"))


async def answers_in_block(orchestrator: Orchestrator, peer: Peer) -> list[tuple[int, str, str]]:
    turns = (await history(orchestrator, peer.conversation_id)).turns
    return [
        (each.turn_id, each.user_message.content, each.agent_response.content if each.agent_response else "")
        for each in turns
    ]


# --- stop ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["none", "the message", "the answer"])
@on_both_databases
async def test_a_stopped_answer_ends_and_keeps_what_was_said(address: str, target: str) -> None:
    brain = ScriptedBrain(answers=[halting()[1]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        answer_id = await begun(peer)
        named: dict[str, dict[str, Any]] = {
            "the message": {"targetId": message_id},
            "the answer": {"targetId": answer_id},
        }

        await peer.send(STOP, reason="enough", stopType="generation", **named.get(target, {}))
        frames = await peer.answer()

        assert [frame.type for frame in frames] == [ACKNOWLEDGEMENT, *[TRACE] * 4, SENTENCE]
        assert frames[0].body == {
            "conversationId": peer.conversation_id,
            "acknowledgedStanzaId": peer.sent,
            "success": True,
        }
        assert (last_words(frames), frames[-1].body["sequence"]) == ("", 2)
        assert frames[-1].meta == {"stopped": True}
        row = await message(orchestrator, answer_id)
        assert (row.contents, row.completion_status) == ("One. ", "completed")
        assert await meta(orchestrator, answer_id) == {"stopped": "true"}
        assert (await turn(orchestrator, message_id)).state == "completed"
        assert await answers_in_block(orchestrator, peer) == [(1, "I am having a headache", "One. ")]
        assert brain.closed == 1
        assert "stopped" not in await meta(orchestrator, (await peer.ask("And now?"))[1].body["id"])


async def test_a_stopped_answer_that_is_not_streamed_is_one_message_of_what_was_said(address: str) -> None:
    halted = asyncio.Event()

    def answer() -> Iterator[str | asyncio.Event]:
        yield from HALTING
        halted.set()
        yield asyncio.Event()

    brain = ScriptedBrain(answers=[answer()])
    async with (
        an_orchestrator(address, brain).open() as orchestrator,
        conversing(orchestrator, features=[]) as peer,
    ):
        await peer.say()
        await halted.wait()

        await peer.send(STOP)
        frames = await peer.answer()

        assert frames[-1].type == ASSISTANT_MESSAGE
        assert (last_words(frames), frames[-1].meta) == ("One. ", {"stopped": True})
        assert await meta(orchestrator, frames[-1].body["id"]) == {"stopped": "true"}
        assert await answers_in_block(orchestrator, peer) == [(1, "I am having a headache", "One. ")]


async def test_an_answer_may_be_stopped_before_it_has_said_anything_and_more_than_once(address: str) -> None:
    hold = asyncio.Event()
    async with (
        an_orchestrator(address, ScriptedBrain(enrichments=[hold])).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.say()
        await peer.until_type(START_ANSWER)

        await peer.send(STOP)
        await peer.send(STOP)
        frames = await peer.until(lambda frame: frame.body.get("acknowledgedStanzaId") == peer.sent)
        if not any(frame.ends_an_answer for frame in frames):
            frames += await peer.answer()

        (last,) = [frame for frame in frames if frame.type == SENTENCE]
        assert (last.body["text"], last.body["sequence"], last.body["isFinal"]) == ("", 1, True)
        assert await answers_in_block(orchestrator, peer) == [(1, "I am having a headache", "")]
        await peer.ask("And now?")


async def test_without_a_running_answer_nothing_is_stopped(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        assert not (await peer.request(STOP)).body["success"]
        frames = await peer.ask()

        for target in ({}, {"targetId": frames[1].body["id"]}, {"targetId": frames[1].body["previousId"]}):
            assert not (await peer.request(STOP, **target)).body["success"]
        assert await meta(orchestrator, frames[1].body["id"]) == {}


async def test_an_answer_that_the_stop_does_not_name_continues(address: str) -> None:
    hold, answer = halting()
    async with an_orchestrator(address, ScriptedBrain(answers=[("Hi.",), answer])).open() as orchestrator:
        async with conversing(orchestrator) as other:
            elsewhere = await other.say()
            await other.answer()
        async with conversing(orchestrator) as peer:
            await peer.say()
            await begun(peer)

            for target in ("msg_unknown", elsewhere):
                assert not (await peer.request(STOP, targetId=target)).body["success"]
            assert not (await peer.request(STOP, stopType="speech")).body["success"]  # there is no speech yet
            hold.set()

            assert last_words(await peer.answer()) == "Three."


async def test_a_waiting_message_can_be_stopped_by_its_id(address: str) -> None:
    hold, answer = halting()
    brain = ScriptedBrain(answers=[answer])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.say("One")
        answer_id = await begun(peer)
        waiting = await peer.say("Two")
        await peer.next()

        assert (await peer.request(STOP, targetId=waiting)).body["success"]
        hold.set()
        first, second = await peer.answer(), await peer.answer()

        assert last_words(first) == "Three."
        assert await meta(orchestrator, answer_id) == {}
        assert (second[0].type, second[0].body["previousId"]) == (START_ANSWER, waiting)
        assert (last_words(second), second[-1].meta) == ("", {"stopped": True})
        assert [said for _, said, _ in await answers_in_block(orchestrator, peer)] == ["One", "Two"]


# --- another answer, another question, more of it -----------------------------------------------------------


async def an_answer(peer: Peer, content: str = "I am having a headache") -> tuple[str, str]:
    """The ids of a message and its answer."""
    frames = await peer.ask(content)
    started = next(frame for frame in frames if frame.type == START_ANSWER)
    return started.body["previousId"], started.body["id"]


async def vary(peer: Peer, mode: str, target: str, **fields: Any) -> list[Frame]:
    await peer.send(VARIATION, mode=mode, targetId=target, **fields)
    return await peer.answer()


async def test_another_answer_is_a_sibling_of_the_first_and_replaces_it(address: str) -> None:
    brain = ScriptedBrain(answers=[("Since when?",), ("How long?",), ("Where?",)])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id, first = await an_answer(peer)

        frames = await vary(peer, "regenerate", first)
        second = frames[1].body["id"]
        third = (await vary(peer, "regenerate", second))[1].body["id"]

        assert [frame.type for frame in frames[:2]] == [ACKNOWLEDGEMENT, START_ANSWER]
        assert frames[1].body["previousId"] == message_id
        answers = await orchestrator.store.read(
            lambda tx: tx.messages.answers_to(peer.conversation_id, message_id)
        )
        assert [(each.id, each.contents) for each in answers] == [
            (first, "Since when?"),
            (second, "How long?"),
            (third, "Where?"),
        ]
        superseded = [(await meta(orchestrator, each.id)).get("superseded") for each in answers]
        assert superseded == ["true", "true", None]
        now = await turn(orchestrator, message_id)
        assert (now.number, now.answer_id, now.state) == (1, third, "completed")
        assert await answers_in_block(orchestrator, peer) == [(1, "I am having a headache", "Where?")]
        assert [len(brief.situation.blocks.conversation_history.turns) for brief in brain.briefs] == [0, 0, 0]
        await peer.ask("And now?")


async def test_another_answer_can_be_requested_by_the_message_and_replaces_all_its_answers(
    address: str,
) -> None:
    brain = ScriptedBrain(answers=[halting()[1], ("Four.",), ("How long?",)])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        stopped = await begun(peer)
        await peer.send(STOP)
        await peer.answer()
        went_on = (await vary(peer, "continue", stopped))[1].body["id"]

        started = (await vary(peer, "regenerate", message_id))[1].body

        assert started["previousId"] == message_id
        assert brain.briefs[-1].said == ""
        result = (message_id, stopped, went_on, started["id"])
        superseded = [(await meta(orchestrator, each)).get("superseded") for each in result]
        assert superseded == [None, "true", "true", None]
        assert await answers_in_block(orchestrator, peer) == [(1, "I am having a headache", "How long?")]


async def test_an_edited_message_gets_a_new_id_and_is_answered_in_the_same_turn(address: str) -> None:
    brain = ScriptedBrain(answers=[("Hi.",), ("Since when?",), ("Your knee?",)])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        earlier = (await an_answer(peer, "Hello"))[1]
        wrong, answer = await an_answer(peer, "My nee hurts")

        frames = await vary(peer, "edit", wrong, newContent="My knee hurts")

        corrected = await message(orchestrator, frames[1].body["previousId"])
        assert corrected.id not in (wrong, earlier)
        assert (corrected.contents, corrected.message_role) == ("My knee hurts", "user")
        assert corrected.previous_id == (await message(orchestrator, wrong)).previous_id == earlier
        assert [(await meta(orchestrator, each)).get("superseded") for each in (wrong, answer)] == [
            "true"
        ] * 2
        assert (await message(orchestrator, answer)).contents == "Since when?"
        now = await turn(orchestrator, corrected.id)
        assert (now.number, now.answer_id) == (2, frames[1].body["id"])
        assert await answers_in_block(orchestrator, peer) == [
            (1, "Hello", "Hi."),
            (2, "My knee hurts", "Your knee?"),
        ]
        assert brain.messages == ["Hello", "My nee hurts", "My knee hurts"]
        again = await vary(peer, "edit", corrected.id, newContent="My left knee hurts")
        assert again[1].body["previousId"] not in (wrong, corrected.id)
        assert len((await history(orchestrator, peer.conversation_id)).turns) == 2


async def test_a_stopped_answer_is_continued_in_a_new_one(address: str) -> None:
    brain = ScriptedBrain(answers=[halting()[1], ["Four. ", *HALTING, asyncio.Event()], ("Five.",)])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        first = await begun(peer)
        await peer.send(STOP)
        await peer.answer()

        await peer.send(VARIATION, mode="continue", targetId=first)
        second = await begun(peer)
        await peer.until(lambda frame: frame.body.get("text") == "One. ")
        await peer.send(STOP)
        await peer.answer()
        third = (await vary(peer, "continue", second))[1].body["id"]

        chain = [(await message(orchestrator, each)).previous_id for each in (first, second, third)]
        assert chain == [message_id, first, second]
        assert [brief.said for brief in brain.briefs] == ["", "One. ", "One. Four. One. "]
        assert await answers_in_block(orchestrator, peer) == [
            (1, "I am having a headache", "One. Four. One. Five.")
        ]
        assert [await meta(orchestrator, each) for each in (first, third)] == [{"stopped": "true"}, {}]
        assert (await turn(orchestrator, message_id)).answer_id == third


async def test_the_continuation_of_an_answer_can_be_regenerated(address: str) -> None:
    brain = ScriptedBrain(answers=[halting()[1], ("Four.",), ("Five.",)])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.say()
        stopped = await begun(peer)
        await peer.send(STOP)
        await peer.answer()
        second = (await vary(peer, "continue", stopped))[1].body["id"]

        frames = await vary(peer, "regenerate", second)

        assert frames[1].body["previousId"] == stopped  # a sibling of the one it replaces
        assert brain.briefs[-1].said == "One. "
        assert await answers_in_block(orchestrator, peer) == [(1, "I am having a headache", "One. Five.")]


async def test_the_whole_branch_of_an_edited_message_is_superseded_once(address: str) -> None:
    brain = ScriptedBrain(answers=[("Since when?",), halting()[1], ("Four.",)])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id, first = await an_answer(peer)
        await peer.send(VARIATION, mode="regenerate", targetId=first)
        second = await begun(peer)
        await peer.send(STOP)
        await peer.answer()
        third = (await vary(peer, "continue", second))[1].body["id"]

        frames = await vary(peer, "edit", message_id, newContent="My knee hurts")

        pairs = [await meta(orchestrator, each) for each in (message_id, first, second, third)]
        assert [pair["superseded"] for pair in pairs] == ["true"] * 4
        assert (await meta(orchestrator, frames[1].body["id"])) == {}
        assert len((await history(orchestrator, peer.conversation_id)).turns) == 1


@pytest.mark.parametrize("failing", ["before", "within"])
async def test_a_failed_answer_can_be_regenerated_and_a_cut_one_continued(address: str, failing: str) -> None:
    failure = BrainFailed("scripted", "speak")
    features = ["streaming"] if failing == "within" else []
    brain = ScriptedBrain(answers=[(*HALTING, failure), (*HALTING, failure), ("Four.",)])
    async with (
        an_orchestrator(address, brain).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        message_id = await peer.say()
        await peer.answer()
        failed = (await turn(orchestrator, message_id)).answer_id or ""

        error = (await vary(peer, "regenerate", failed))[-1]
        assert error.code == 503
        failed_again = (await turn(orchestrator, message_id)).answer_id or ""
        frames = await vary(peer, "continue", failed_again)

        assert last_words(frames) == "Four."
        said = "One. Four." if failing == "within" else "Four."
        assert await answers_in_block(orchestrator, peer) == [(1, "I am having a headache", said)]
        assert (await turn(orchestrator, message_id)).state == "completed"
        assert await meta(orchestrator, failed) == {"superseded": "true"} | (
            {} if failing == "within" else {"error": "model_unavailable"}
        )


async def test_only_the_latest_turn_can_be_varied_and_only_in_ways_that_make_sense(address: str) -> None:
    hold, answer = halting()
    brain = ScriptedBrain(answers=[("Hi.",), ("Since when?",), answer])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        assert (await peer.request(VARIATION, mode="regenerate", targetId="msg_none")).code == 203
        earlier, earlier_answer = await an_answer(peer, "Hello")
        latest, latest_answer = await an_answer(peer, "My knee hurts")
        before = await everything(orchestrator)

        for code, fields in (
            (203, {"mode": "regenerate", "targetId": earlier_answer}),
            (203, {"mode": "edit", "targetId": earlier, "newContent": "Hi"}),
            (203, {"mode": "continue", "targetId": earlier_answer}),
            (203, {"mode": "regenerate", "targetId": earlier}),
            (203, {"mode": "continue", "targetId": latest}),
            (203, {"mode": "edit", "targetId": latest_answer, "newContent": "Hi"}),
            (203, {"mode": "continue", "targetId": latest_answer}),  # it was not stopped
            (203, {"mode": "regenerate", "targetId": "msg_unknown"}),
            (104, {"mode": "edit", "targetId": latest}),
            (105, {"mode": "edit", "targetId": latest, "newContent": " "}),
            (105, {"mode": "improve", "targetId": latest_answer}),
            (104, {"mode": "regenerate"}),
        ):
            refused = await peer.request(VARIATION, **fields)
            assert (refused.stanza, refused.code) == (0, code), fields
        assert await everything(orchestrator) == before

        running = await peer.say("And my hand")
        running_answer = await begun(peer)
        before = await everything(orchestrator)
        for mode, target in (
            ("regenerate", running_answer),
            ("regenerate", running),
            ("continue", running_answer),
            ("edit", running),
        ):
            refused = await peer.request(VARIATION, mode=mode, targetId=target, newContent="Hi")
            assert refused.code == 202
        assert (await peer.request(VARIATION, mode="regenerate", targetId=latest_answer)).code == 203
        assert await everything(orchestrator) == before
        hold.set()
        await peer.answer()
        assert len(await messages(orchestrator, peer.conversation_id)) == 6


async def test_another_answer_comes_as_one_message_to_a_client_without_streaming(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator, features=[]) as peer:
        first = (await peer.ask())[-1].body

        frames = await vary(peer, "regenerate", first["id"])

        assert {frame.type for frame in frames[1:-1]} == {TRACE}
        assert (frames[0].type, frames[-1].type) == (ACKNOWLEDGEMENT, ASSISTANT_MESSAGE)
        assert frames[-1].body["previousId"] == first["previousId"]
        assert await meta(orchestrator, first["id"]) == {"superseded": "true"}
