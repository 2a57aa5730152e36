"""A correction and a request to forget show what would change, ask once, and can be undone."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agents.models.scripted import ScriptedBrain
from agents.values import Act as Does
from agents.values import ActKind, FactReading
from memory_blocks.facts.changes import Decider, Op, current_facts
from orchestrator.inspection.looks import Look
from orchestrator.inspection.memories import MemoryDecisions
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember.changing import Act, MemoryChanges
from orchestrator.remember.utterances import utterance_id
from orchestrator.store.checks.invariants import check
from orchestrator.store.repositories.memory.memories import SUMMARY, NewMemory
from orchestrator.store.rows import Memory
from tests.support.orchestrators import ANN, an_orchestrator
from tests.support.protocol_client import TRACE, Frame, Peer, conversing
from tests.support.stores import on_both_databases

SAID = "I am allergic to penicillin"
LOOK = Look("operator:eve")


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


class Chat:
    """Ann's conversations with a scripted brain, which reads each message as it is told to."""

    def __init__(self, orchestrator: Orchestrator, brain: ScriptedBrain) -> None:
        self.orchestrator, self.brain = orchestrator, brain

    async def say(
        self,
        peer: Peer,
        text: str,
        *changes: FactReading,
        act: ActKind | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> list[Frame]:
        self.brain._changes = iter([changes])
        self.brain._acts = iter([(Does(kind=act, words=text),) if act else ()])
        self.brain._requests = iter([request or {}])
        return await peer.ask(text)

    async def tell(self) -> tuple[str, str]:
        """Tell the allergy in a conversation of its own; returns that conversation and the fact's id."""
        async with conversing(self.orchestrator) as peer:
            await self.say(peer, SAID, reading())
            (change,) = await self.orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
            return str(peer.conversation_id), change.id

    async def summarise(self, conversation_id: str) -> None:
        """A summary that was made of the message about the allergy."""

        def work(tx: Any) -> None:
            (said,) = tx.facts.changes(conversation_id)
            tx.memories.add(
                NewMemory(
                    content="Ann spoke of her allergies.",
                    user_id=ANN,
                    id="summary",
                    source_type=SUMMARY,
                    source_info={"conversation": conversation_id, "members": [utterance_id(said.message_id)]},
                )
            )

        await self.orchestrator.store.write(work)

    async def facts_of(self, conversation_id: str) -> list[str]:
        changes = await self.orchestrator.store.read(lambda tx: tx.facts.changes(conversation_id))
        return [fact.value for fact in current_facts(changes)]

    async def alive(self) -> list[Memory]:
        return await self.orchestrator.store.read(lambda tx: tx.memories.of_person(ANN))

    async def contents(self) -> set[str]:
        return {each.content for each in await self.alive()}


def a_brain() -> ScriptedBrain:
    return ScriptedBrain()


def forget(fact: str) -> Mapping[str, Any]:
    return {"proposed": (reading(op=Op.FORGET, target=fact),)}


async def decide(orchestrator: Orchestrator, change: Callable[[MemoryChanges], Act]) -> None:
    """Change memories as staff does, with commands or over HTTP."""
    await orchestrator.store.write(
        lambda tx: MemoryDecisions(tx, orchestrator.ledger, ANN, LOOK).carry_out(change)
    )


AGREED: Mapping[str, Any] = {"agreed": True}


@on_both_databases
async def test_forgetting_shows_what_was_derived_and_is_undone_in_the_chat(address: str) -> None:
    brain = a_brain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        chat = Chat(orchestrator, brain)
        told_in, fact = await chat.tell()
        await chat.summarise(told_in)
        async with conversing(orchestrator) as peer:
            await chat.say(peer, "Forget my allergy", act=ActKind.FORGET, request=forget(fact))
            offer = brain.briefs[-1].offer
            before = await chat.contents()
            frames = await chat.say(peer, "yes", request=AGREED)
            after = await chat.contents()
            forgotten_there = await chat.facts_of(told_in)
            await chat.say(peer, "undo that", act=ActKind.UNDO)
            again = await chat.contents()

        assert offer is not None
        assert offer.derived == ("Ann spoke of her allergies.",)
        assert offer.messages == 1
        assert brain.situations[-2].offer is not None
        assert {"The person is allergic to penicillin.", SAID} <= before
        assert not any("allerg" in content for content in after)
        traced = {each.body["memoryId"] for each in frames if each.type == TRACE}
        assert "summary" in traced
        assert forgotten_there == []
        assert brain.briefs[-1].undone == ("penicillin",)
        assert {"The person is allergic to penicillin.", SAID, "Ann spoke of her allergies."} <= again
        assert await chat.facts_of(told_in) == ["penicillin"]
        assert check(orchestrator.store) == []


@on_both_databases
async def test_a_correction_of_another_conversation_is_asked_about_and_undone(address: str) -> None:
    brain = a_brain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        chat = Chat(orchestrator, brain)
        told_in, fact = await chat.tell()
        await chat.summarise(told_in)
        async with conversing(orchestrator) as peer:
            new = reading("latex", op=Op.REPLACE, target=fact)
            await chat.say(peer, "That's wrong, it's latex", new, act=ActKind.CORRECT)
            asked, unchanged = brain.briefs[-1], await chat.contents()
            await chat.say(peer, "yes", request=AGREED)
            corrected, done = await chat.contents(), brain.briefs[-1]
            await chat.say(peer, "undo that", act=ActKind.UNDO)
            again = await chat.contents()

        assert asked.offer is not None
        assert [change.value for change in asked.offer.changes] == ["latex"]
        assert asked.offer.derived == ("Ann spoke of her allergies.",)
        assert [each.value for each in asked.facts] == ["penicillin"]
        assert "The person is allergic to penicillin." in unchanged
        assert [each.value for each in done.facts] == ["latex"]
        assert "The person is allergic to latex." in corrected
        assert "Ann spoke of her allergies." not in corrected
        assert {"The person is allergic to penicillin.", "Ann spoke of her allergies."} <= again
        assert check(orchestrator.store) == []


async def test_a_slip_in_the_running_conversation_is_corrected_at_once_and_undone(address: str) -> None:
    brain = a_brain()
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        chat = Chat(orchestrator, brain)
        await chat.say(peer, SAID, reading())
        (said,) = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
        new = reading("latex", op=Op.REPLACE, target=said.id)
        await chat.say(peer, "Sorry, latex", new, act=ActKind.CORRECT)
        corrected = brain.briefs[-1]
        await chat.say(peer, "undo that", act=ActKind.UNDO)

        assert corrected.offer is None
        assert [fact.value for fact in corrected.facts] == ["latex"]
        assert await chat.facts_of(str(peer.conversation_id)) == ["penicillin"]
        assert check(orchestrator.store) == []


async def test_an_offer_lapses_if_the_next_message_does_not_agree(address: str) -> None:
    brain = a_brain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        chat = Chat(orchestrator, brain)
        _, fact = await chat.tell()
        async with conversing(orchestrator) as peer:
            await chat.say(peer, "Forget my allergy", act=ActKind.FORGET, request=forget(fact))
            await chat.say(peer, "My knee hurts")
            await chat.say(peer, "yes", request=AGREED)

        assert [situation.offer is not None for situation in brain.situations[-3:]] == [False, True, False]
        assert "The person is allergic to penicillin." in await chat.contents()


async def test_everything_is_forgotten_also_what_is_no_fact(address: str) -> None:
    brain = a_brain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        chat = Chat(orchestrator, brain)
        await chat.tell()
        async with conversing(orchestrator) as peer:
            await chat.say(peer, "The weather is nice")
        async with conversing(orchestrator) as peer:
            request = {"forgets_all": True}
            await chat.say(peer, "Forget everything", act=ActKind.FORGET, request=request)
            await chat.say(peer, "yes", request=AGREED)
            after = await chat.contents()
            await chat.say(peer, "undo that", act=ActKind.UNDO)

        assert not after & {SAID, "The weather is nice", "The person is allergic to penicillin."}
        assert {SAID, "The weather is nice"} <= await chat.contents()
        assert check(orchestrator.store) == []


async def test_nothing_is_undone_after_something_was_forgotten_for_good(address: str) -> None:
    brain = a_brain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        chat = Chat(orchestrator, brain)
        _, fact = await chat.tell()
        async with conversing(orchestrator) as peer:
            await chat.say(peer, "Forget my allergy for good", act=ActKind.FORGET, request=forget(fact))
            offer = brain.briefs[-1].offer
            await chat.say(peer, "yes", request=AGREED)
            await chat.say(peer, "undo that", act=ActKind.UNDO)

        assert offer is not None
        assert offer.for_good
        assert brain.briefs[-1].undone == ()
        assert "The person is allergic to penicillin." not in await chat.contents()


@pytest.mark.parametrize("kind", ["corrected", "forgotten"])
async def test_staff_can_undo_what_was_asked_for_in_a_chat(address: str, kind: str) -> None:
    brain = a_brain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        chat = Chat(orchestrator, brain)
        told_in, fact = await chat.tell()
        async with conversing(orchestrator) as peer:
            if kind == "corrected":
                new = reading("latex", op=Op.REPLACE, target=fact)
                await chat.say(peer, "That's wrong, it's latex", new, act=ActKind.CORRECT)
            else:
                await chat.say(peer, "Forget my allergy", act=ActKind.FORGET, request=forget(fact))
            await chat.say(peer, "yes", request=AGREED)
        changed = await chat.contents()
        await decide(orchestrator, lambda changes: changes.undo())

        assert "The person is allergic to penicillin." not in changed
        assert "The person is allergic to penicillin." in await chat.contents()
        assert await chat.facts_of(told_in) == ["penicillin"]
        assert check(orchestrator.store) == []


async def test_a_fact_whose_memory_is_deleted_leaves_its_conversation_and_comes_back(address: str) -> None:
    brain = a_brain()
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        chat = Chat(orchestrator, brain)
        told_in, _ = await chat.tell()
        (memory,) = [each for each in await chat.alive() if each.source_type == "fact"]
        await decide(orchestrator, lambda changes: changes.delete(memory.id))
        gone = await chat.facts_of(told_in)
        await decide(orchestrator, lambda changes: changes.undo())

        assert gone == []
        assert await chat.facts_of(told_in) == ["penicillin"]
        assert check(orchestrator.store) == []
