"""What a person said is remembered after the turn, and found in later turns and conversations."""

import asyncio

import pytest

from agents.models.scripted import ScriptedBrain
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember.utterances import UTTERANCE, Remembering, utterance_id
from orchestrator.store.checks.invariants import check
from tests.memories import EMBEDDER
from tests.orchestrators import ANN, a_store, an_orchestrator
from tests.protocol_client import ERROR, TIMEOUT, TRACE, Frame, Peer, conversing
from tests.stores import on_both_databases

BEN = "ben"


def memories(frames: list[Frame]) -> list[Frame]:
    """The traces of long-term memories."""
    return [each for each in frames if each.type == TRACE and each.body["memoryType"] != "memory_block"]


async def remembered(orchestrator: Orchestrator, message_id: str) -> bool:
    """Wait until a message is remembered."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            row = await orchestrator.store.read(lambda tx: tx.memory_index.get(ANN, utterance_id(message_id)))
            if row is not None:
                return True
            await asyncio.sleep(0.01)


async def told(peer: Peer, orchestrator: Orchestrator, text: str) -> str:
    """Say something, and wait until it is remembered; returns the id of the message."""
    message_id = await peer.say(text)
    await peer.answer()
    await remembered(orchestrator, message_id)
    return message_id


@on_both_databases
@pytest.mark.requirement(
    "000-022", "000-023", "000-024", "000-029", "000-032", "000-033", "000-034", "003-071"
)
@pytest.mark.requirement("003-076", "003-078")
async def test_what_was_said_in_one_conversation_is_found_in_another(address: str) -> None:
    brain = ScriptedBrain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            first = await told(peer, orchestrator, "I am allergic to penicillin since childhood")
            await told(peer, orchestrator, "My knee hurts on the stairs")
            earlier = peer.conversation_id
        async with conversing(orchestrator) as peer:
            asked = await peer.say("Which penicillin allergy did I mention?")
            frames = await peer.answer()

        traces = memories(frames)
        brief = brain.briefs[-1]
        stored = await orchestrator.store.read(lambda tx: tx.traces.of_message(asked))
        rows = {row.id: row for row in stored if row.memory_type == UTTERANCE}
        assert traces[0].body["memoryId"] == utterance_id(first)
        assert traces[0].body["content"] == "I am allergic to penicillin since childhood"
        assert traces[0].body["metadata"]["source"] == f"utterance:{earlier}"
        assert traces[0].body["metadata"]["tags"] == []
        assert {each.body["previousId"] for each in traces} == {asked}
        assert {each.body["memoryId"] for each in traces} == {
            hit.memory_id for hit in brief.recalled.memories
        }
        assert brief.recalled.memories[0].conversation_id == earlier
        assert brief.recalled.memories[0].said_at is not None
        scores = [each.body["confidence"] for each in traces]
        assert scores == sorted(scores, reverse=True)
        assert sorted(rows) == sorted(each.body["id"] for each in traces)
        for trace in traces:
            row = rows[trace.body["id"]]
            assert row.query_prompt == "Which penicillin allergy did I mention?"
            assert row.position_in_results == trace.body["metadata"]["position"]
            assert row.similarity_score == trace.body["metadata"]["retrievalScore"]


@on_both_databases
async def test_each_search_of_a_turn_is_recorded_with_its_message(address: str) -> None:
    async with (
        an_orchestrator(address, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await told(peer, orchestrator, "My knee hurts")
        asked = await told(peer, orchestrator, "What about my knee?")

        found = await orchestrator.store.read(lambda tx: tx.memory_index.retrievals(ANN))

    assert [(each.message_id, each.conversation_id) for each in found][-1] == (asked, peer.conversation_id)
    assert set(found[-1].observability) == {"retrieval", "packaging", "assembly"}


async def test_a_message_that_is_still_in_the_history_is_not_given_twice(address: str) -> None:
    brain = ScriptedBrain()
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await told(peer, orchestrator, "My knee hurts on the stairs")
        frames = await peer.ask("What did I say about the stairs?")

    assert memories(frames) == []
    assert brain.briefs[-1].recalled.memories == ()


async def test_the_same_question_is_no_answer_to_itself(address: str) -> None:
    async with an_orchestrator(address, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await told(peer, orchestrator, "What do you know about my elbow?")
        async with conversing(orchestrator) as peer:
            frames = await peer.ask("What do you know about my elbow?")

    assert memories(frames) == []


async def test_another_person_finds_nothing_of_it(address: str) -> None:
    async with an_orchestrator(address, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await told(peer, orchestrator, "I am allergic to penicillin")
        async with conversing(orchestrator, BEN) as peer:
            frames = await peer.ask("penicillin allergy")

    assert memories(frames) == []


async def test_a_turn_that_fails_is_remembered_too(address: str) -> None:
    brain = ScriptedBrain(answers=[[RuntimeError("broken")]])
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        message_id = await peer.say("My elbow hurts")
        await peer.until_type(ERROR)

        assert await remembered(orchestrator, message_id)


@on_both_databases
async def test_what_an_earlier_process_left_undone_is_remembered_at_the_start(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say("I broke my elbow")
        await peer.answer()

    store = a_store(address)
    try:
        await Remembering(store, EMBEDDER).catch_up()
        row = await store.read(lambda tx: tx.memory_index.get(ANN, utterance_id(message_id)))
        entries = await store.read(lambda tx: tx.memories.ledger.of_person(ANN))
        await Remembering(store, EMBEDDER).catch_up()
        again = await store.read(lambda tx: tx.memories.ledger.of_person(ANN))
        assert check(store) == []
    finally:
        await store.close()
    assert row is not None
    assert (len(entries), again) == (1, entries)
