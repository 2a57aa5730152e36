"""What a person said is remembered after the turn, and found in later turns and conversations."""

import asyncio
from typing import Any

import pytest

from agents.models.scripted import ScriptedBrain
from agents.values import FactReading
from memory_blocks.facts.changes import Decider, Op
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember.utterances import UTTERANCE, Remembering, utterance_id
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from tests.support.memory.memories import EMBEDDER
from tests.support.orchestrators import ANN, a_store, an_orchestrator
from tests.support.protocol_client import ERROR, TIMEOUT, TRACE, Frame, Peer, conversing
from tests.support.stores import on_both_databases

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


async def say_and_remember(peer: Peer, orchestrator: Orchestrator, text: str) -> str:
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
            first = await say_and_remember(peer, orchestrator, "I am allergic to penicillin since childhood")
            await say_and_remember(peer, orchestrator, "My knee hurts on the stairs")
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


async def test_each_search_of_a_turn_is_recorded_with_its_message(address: str) -> None:
    async with (
        an_orchestrator(address, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await say_and_remember(peer, orchestrator, "My knee hurts")
        asked = await say_and_remember(peer, orchestrator, "What about my knee?")

        found = await orchestrator.store.read(lambda tx: tx.memory_index.retrievals(ANN))

    assert [(each.message_id, each.conversation_id) for each in found][-1] == (asked, peer.conversation_id)
    assert set(found[-1].observability) == {"retrieval", "packaging", "assembly"}


async def test_a_message_that_is_still_in_the_history_is_not_given_twice(address: str) -> None:
    brain = ScriptedBrain()
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await say_and_remember(peer, orchestrator, "My knee hurts on the stairs")
        frames = await peer.ask("What did I say about the stairs?")

    assert memories(frames) == []
    assert brain.briefs[-1].recalled.memories == ()


async def test_the_same_question_is_no_answer_to_itself(address: str) -> None:
    async with an_orchestrator(address, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await say_and_remember(peer, orchestrator, "What do you know about my elbow?")
        async with conversing(orchestrator) as peer:
            frames = await peer.ask("What do you know about my elbow?")

    assert memories(frames) == []


async def test_another_person_finds_nothing_of_it(address: str) -> None:
    async with an_orchestrator(address, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await say_and_remember(peer, orchestrator, "I am allergic to penicillin")
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


# --- facts --------------------------------------------------------------------------------------------------


def reading(value: str = "penicillin", **fields: Any) -> FactReading:
    given: dict[str, Any] = {
        "op": Op.ADD,
        "kind": "allergies",
        "subject": "person",
        "value": value,
        "stable": True,
        "decided_by": Decider.MODEL,
        "words": f"allergic to {value}",
    }
    return FactReading(**given | fields)


def facts(frames: list[Frame]) -> list[tuple[str, str]]:
    """The actions and contents of the traces of facts that were stored or updated."""
    return [
        (each.body["action"], each.body["content"])
        for each in frames
        if each.type == TRACE and each.body["memoryType"] == "fact" and each.body["action"] != "retrieved"
    ]


@pytest.mark.requirement("000-030", "000-026", "000-027")
async def test_a_lasting_fact_is_stored_and_traced_before_the_last_sentence(address: str) -> None:
    brain = ScriptedBrain(changes=[(reading(),), (reading("37.5", kind="temperature", stable=False),)])
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        message_id = await peer.say("I am allergic to penicillin")
        frames = await peer.answer()
        passing = await peer.ask("My temperature is 37.5")

        assert facts(frames) == [("stored", "The person is allergic to penicillin.")]
        assert frames[-1].body["isFinal"]
        assert facts(passing) == []
        (memory,) = [
            each
            for each in await orchestrator.store.read(lambda tx: tx.memories.of_person(ANN))
            if each.source_type == "fact"
        ]
        source = memory.source_info or {}
        assert (source["message"], source["conversation"]) == (message_id, peer.conversation_id)
        assert (source["subject"], source["words"]) == ("person", "allergic to penicillin")
        assert source["utterances"] == [utterance_id(message_id)]
        assert "confidence" not in frames[0].body


@pytest.mark.requirement("000-031")
async def test_a_correction_updates_the_same_memory_and_keeps_the_old_value(address: str) -> None:
    brain = ScriptedBrain(changes=[(reading("latex"),)])
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        first = await peer.ask("I am allergic to latex")
        (known,) = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
        brain._changes = iter([(reading("penicillin", op=Op.REPLACE, target=known.id),)])
        second = await peer.ask("No, to penicillin")
        repeated = await peer.ask("Hello")

        ids = {each.body["memoryId"] for each in (*first, *second) if each.body.get("memoryType") == "fact"}
        (memory_id,) = ids
        memory = await orchestrator.store.read(lambda tx: tx.memories.get(memory_id))
        assert facts(second) == [("updated", "The person is allergic to penicillin.")]
        assert facts(repeated) == []
        assert memory is not None
        source: dict[str, Any] = memory.source_info or {}
        assert [each["value"] for each in source["history"]] == ["latex"]
        assert check(orchestrator.store) == []


async def test_a_fact_of_an_earlier_conversation_is_repeated_or_contradicted_not_overwritten(
    address: str,
) -> None:
    brain = ScriptedBrain(changes=[(reading(value, kind="blood_type"),) for value in ("A+", "A+", "0-")])
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        traced = []
        for said in ("My blood type is A+", "As I said, A+", "My blood type is 0-"):
            async with conversing(orchestrator) as peer:
                traced.append(facts(await peer.ask(said)))
        kept = await orchestrator.store.read(lambda tx: tx.memories.of_person(ANN))

    actions = [[action for action, _ in each] for each in traced]
    assert actions == [["stored"], ["updated"], ["updated", "stored"]]
    sides: list[dict[str, Any]] = [each.source_info or {} for each in kept if each.source_type == "fact"]
    assert {each["value"] for each in sides} == {"A+", "0-"}
    assert len({each["conflict"] for each in sides}) == 1
    assert sorted(each["times_said"] for each in sides) == [1, 2]


async def test_a_fact_that_was_deleted_is_not_learned_again_from_the_same_words(address: str) -> None:
    brain = ScriptedBrain(changes=[(reading(),), (reading("latex"),)])
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask("I am allergic to penicillin")
        (memory,) = [
            each
            for each in await orchestrator.store.read(lambda tx: tx.memories.of_person(ANN))
            if each.source_type == "fact"
        ]
        await orchestrator.store.write(lambda tx: tx.memories.delete(memory.id))
        later = await peer.ask("And to latex")

    assert facts(later) == [("stored", "The person is allergic to latex.")]


@pytest.mark.requirement("000-035")
async def test_facts_summaries_and_knowledge_can_all_be_recalled(address: str) -> None:
    kinds = {
        "fact": "The person is allergic to penicillin.",
        "summary": "In an earlier talk the person asked about penicillin.",
        "knowledge": "Penicillin is an antibiotic.",
    }

    def add(tx: Transaction) -> None:
        for kind, content in kinds.items():
            tx.memories.add(NewMemory(content=content, user_id=ANN, source_type=kind, tags=(kind,)))

    async with (
        an_orchestrator(address, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await orchestrator.store.write(add)
        await say_and_remember(peer, orchestrator, "Hello")
        frames = await peer.ask("What about penicillin?")

    found = {each.body["memoryType"]: each.body for each in memories(frames)}
    assert {kind: found[kind]["content"] for kind in kinds} == kinds
    assert all(found[kind]["metadata"]["tags"] == [kind] for kind in kinds)
