"""A new conversation begins with what is known of the person, and can correct or forget it."""

from typing import Any

import pytest

from agents.models.scripted import ScriptedBrain
from agents.ports import KNOWN
from agents.values import Act, ActKind, FactReading
from memory_blocks.facts.changes import Decider, Op
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember.changing import MemoryChanges
from orchestrator.remember.utterances import utterance_id
from orchestrator.store.checks.invariants import check
from orchestrator.store.repositories.memory.ledger import departures
from orchestrator.store.rows import Memory
from tests.support.orchestrators import ANN, an_orchestrator
from tests.support.protocol_client import TRACE, Frame, conversing
from tests.support.stores import on_both_databases

BEN = "ben"
SAID = "I am allergic to penicillin"


def reading(value: str = "penicillin", **fields: Any) -> FactReading:
    given: dict[str, Any] = {
        "op": Op.ADD,
        "kind": "allergies",
        "subject": "person",
        "value": value,
        "stable": True,
        "decided_by": Decider.LOCAL,
        "words": f"allergic to {value}",
    }
    return FactReading(**given | fields)


def brain(*changes: tuple[FactReading, ...], **script: Any) -> ScriptedBrain:
    return ScriptedBrain(changes=list(changes), **script)


def facts(frames: list[Frame], action: str = "retrieved") -> list[dict[str, Any]]:
    """The traces of facts."""
    return [
        each.body
        for each in frames
        if each.type == TRACE and each.body["memoryType"] == "fact" and each.body["action"] == action
    ]


async def memories(orchestrator: Orchestrator, person: str = ANN) -> list[Memory]:
    return await orchestrator.store.read(lambda tx: tx.memories.of_person(person))


@on_both_databases
@pytest.mark.requirement("000-022", "000-023")
async def test_a_new_conversation_begins_with_the_lasting_facts_of_earlier_ones(address: str) -> None:
    scripted = brain((reading(), reading("8/10", kind="severity", stable=False)))
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.ask(SAID)
            earlier = peer.conversation_id
        async with conversing(orchestrator) as peer:
            first = await peer.ask("Hello")
            second = await peer.ask("And now?")

        situation = scripted.situations[1]
        assert [(fact.value, fact.conversation_id, fact.turn) for fact in situation.facts] == [
            ("penicillin", earlier, None)
        ]
        assert [fact.value for fact in scripted.briefs[1].facts] == ["penicillin"]
        (trace,) = facts(first)
        assert trace["content"] == "The person is allergic to penicillin."
        assert trace["metadata"]["source"] == f"fact:{earlier}"
        assert facts(second) == []  # it was given to this conversation already
        assert [fact.value for fact in scripted.situations[2].facts] == ["penicillin"]
        assert check(orchestrator.store) == []


async def test_facts_of_another_person_are_not_known(address: str) -> None:
    scripted = brain((reading(),))
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.ask(SAID)
        async with conversing(orchestrator, BEN) as peer:
            frames = await peer.ask("Hello")

    assert scripted.situations[1].facts == ()
    assert facts(frames) == []


async def test_a_question_about_memory_is_given_every_known_fact_again(address: str) -> None:
    asks = (Act(kind=ActKind.MEMORY_QUESTION, words="what do you know about me"),)
    scripted = brain((reading(), reading("latex")), acts=[(), (), asks])
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.ask(SAID)
        async with conversing(orchestrator) as peer:
            await peer.ask("Hello")
            frames = await peer.ask("What do you know about me?")

    hits = scripted.briefs[-1].recalled.memories
    assert {trace["content"] for trace in facts(frames)} == {
        "The person is allergic to penicillin.",
        "The person is allergic to latex.",
    }
    assert KNOWN in {hit.role for hit in hits}
    assert [hit.position for hit in hits] == list(range(1, len(hits) + 1))
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)


async def test_a_fact_of_an_earlier_conversation_is_corrected_with_its_history(address: str) -> None:
    scripted = brain((reading("latex"),))
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.ask("I am allergic to latex")
            (known,) = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
        scripted._changes = iter([(reading("penicillin", op=Op.REPLACE, target=known.id),)])
        async with conversing(orchestrator) as peer:
            frames = await peer.ask("No, to penicillin")

        assert [trace["content"] for trace in facts(frames, "updated")] == [
            "The person is allergic to penicillin."
        ]
        (memory,) = [each for each in await memories(orchestrator) if each.source_type == "fact"]
        source: dict[str, Any] = memory.source_info or {}
        assert [each["value"] for each in source["history"]] == ["latex"]
        assert [fact.value for fact in scripted.briefs[-1].facts] == ["penicillin"]
        assert check(orchestrator.store) == []


async def test_a_fact_that_ended_in_one_conversation_is_not_known_in_the_next(address: str) -> None:
    scripted = brain((reading("metformin", kind="medications"),))
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.ask("I take metformin")
            (known,) = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
        stopped = reading("metformin", kind="medications", op=Op.RETRACT, target=known.id)
        scripted._changes = iter([(stopped,)])
        async with conversing(orchestrator) as peer:
            await peer.ask("I stopped taking it")
        async with conversing(orchestrator) as peer:
            await peer.ask("Hello")

    assert scripted.briefs[1].facts == ()
    assert scripted.situations[-1].facts == ()


# --- forgetting ---------------------------------------------------------------------------------------------


async def forget(orchestrator: Orchestrator, scripted: ScriptedBrain, *messages: str) -> list[Frame]:
    """Tell a fact, and ask in another conversation to forget it; returns the frames of the last turn."""
    async with conversing(orchestrator) as peer:
        await peer.ask(SAID)
        (known,) = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
    scripted._changes = iter([*[()] * (len(messages) - 1), (reading(op=Op.FORGET, target=known.id),)])
    async with conversing(orchestrator) as peer:
        for message in messages:
            frames = await peer.ask(message)
    return frames


async def test_what_is_forgotten_leaves_memory_and_recall_and_can_be_brought_back(address: str) -> None:
    scripted = brain((reading(),))
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        frames = await forget(orchestrator, scripted, "Forget my allergy", "yes")
        gone = [each.content for each in await memories(orchestrator)]
        async with conversing(orchestrator) as peer:
            later = await peer.ask("Am I allergic to penicillin?")
        unknown = scripted.situations[-1].facts
        await orchestrator.store.write(lambda tx: MemoryChanges(tx, ANN, ANN).undo())
        async with conversing(orchestrator) as peer:
            await peer.ask("Hello")

        deleted = [trace for trace in facts(frames, "updated") if trace["metadata"].get("deleted")]
        assert [trace["content"] for trace in deleted] == ["removed from the notes"]
        assert not any("penicillin" in content for content in gone)
        assert unknown == ()
        assert not any("penicillin" in trace["content"] for trace in facts(later))
        assert [fact.value for fact in scripted.situations[-1].facts] == ["penicillin"]
        assert check(orchestrator.store) == []


async def test_what_is_forgotten_for_good_leaves_no_content_and_the_chain_verifies(address: str) -> None:
    scripted = brain((reading(),))
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        await forget(orchestrator, scripted, "Forget my allergy for good", "yes")
        rows = await orchestrator.store.read(lambda tx: tx.memories.of_person_ever(ANN))
        entries = await orchestrator.store.read(lambda tx: tx.memories.ledger.of_person(ANN))

        assert not any("penicillin" in f"{row.content}{row.source_info}" for row in rows)
        assert not any("penicillin" in (entry.body or "") for entry in entries)
        assert list(departures(entries)) == []
        assert check(orchestrator.store) == []


async def test_a_request_to_forget_is_not_remembered_itself(address: str) -> None:
    asks = (Act(kind=ActKind.FORGET, words="forget that I have herpes"),)
    scripted = brain(acts=[asks])
    async with (
        an_orchestrator(address, scripted, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        message_id = await peer.say("Forget that I have herpes")
        await peer.answer()
        await peer.ask("Hello")

        kept = await orchestrator.store.read(
            lambda tx: tx.memories.get_even_deleted(utterance_id(message_id))
        )
    assert kept is not None
    assert (kept.content, kept.deleted_at is not None) == ("", True)


async def test_a_forgotten_fact_that_is_stated_again_is_known_again(address: str) -> None:
    scripted = brain((reading(),))
    async with an_orchestrator(address, scripted, remembers=True).open() as orchestrator:
        await forget(orchestrator, scripted, "yes")
        scripted._changes = iter([(reading(),)])
        async with conversing(orchestrator) as peer:
            frames = await peer.ask("I am allergic to penicillin after all")

    assert [trace["content"] for trace in facts(frames, "stored")] == [
        "The person is allergic to penicillin."
    ]


# --- how the last conversation went on ----------------------------------------------------------------------


@pytest.mark.parametrize(("days", "is_asked"), [(30, True), (0, False)])
async def test_the_first_answer_may_ask_how_the_last_conversation_went_on(
    address: str, days: float, is_asked: bool
) -> None:
    scripted = brain((reading("headache", kind="concern", stable=False),))
    async with an_orchestrator(address, scripted, remembers=True, follow_up_days=days).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.ask("I have a headache")
        async with conversing(orchestrator) as peer:
            await peer.ask("Hello")
            await peer.ask("And now?")

    asked = [situation.follow_up is not None for situation in scripted.situations]
    assert asked == [False, is_asked, False]
