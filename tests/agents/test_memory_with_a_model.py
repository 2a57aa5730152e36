"""What a brain with a model is given from earlier conversations, and how it forgets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agents.models.fallback import ModelBrain, ModelOptions
from agents.models.retries import Breaker
from orchestrator.orchestrator import Orchestrator
from tests.support.brains.model_brains import PATIENT, extractor_prompt
from tests.support.brains.models import minilm
from tests.support.brains.right_readings import ScriptedModel, a_reading
from tests.support.builders import HandClock
from tests.support.orchestrators import ANN, agents, an_orchestrator, built_in_tools, local_brain
from tests.support.protocol_client import TRACE, Peer, conversing

DAY = 86_400


def change(value: str, **fields: Any) -> dict[str, Any]:
    given = {"op": "add", "kind": "medications", "subject": "person", "value": value, "stable": True}
    return {**given, "words": f"I take {value}", "confidence": 1.0, **fields}


@asynccontextmanager
async def with_model(url: str, clock: HandClock) -> AsyncIterator[tuple[Orchestrator, ScriptedModel]]:
    model = ScriptedModel()
    options = ModelOptions(built_in_tools().tools, PATIENT, Breaker())
    brain = ModelBrain(model, local_brain(), agents(), extractor_prompt(), options)
    orchestrator = an_orchestrator(
        url, brain, embedder=minilm(), clock=clock, remembers=True, follow_up_days=30
    )
    async with orchestrator.open():
        yield orchestrator, model


async def say(peer: Peer, model: ScriptedModel, text: str, *changes: dict[str, Any], act: str = "") -> str:
    """Say something that the model reads as scripted; returns the answer."""
    acts = [{"kind": act, "words": text, "confidence": 1.0}] if act else []
    model.reading = {**a_reading(text, changes), "acts": acts}
    frames = await peer.ask(text)
    return "".join(frame.body.get("text", "") for frame in frames)


async def test_a_model_is_given_the_facts_of_earlier_conversations_with_their_dates(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model):
        async with conversing(orchestrator) as peer:
            await say(peer, model, "I take sertraline", change("sertraline"))
        clock.tick(3 * DAY)
        async with conversing(orchestrator) as peer:
            model.answer = "You told me on 15 January that you take sertraline."
            asks = [{"kind": "memory_question", "words": "What do I take?", "confidence": 1.0}]
            model.reading = {**a_reading("What do I take?"), "acts": asks}
            frames = await peer.ask("What do I take?")

    known = model.requests[-1].known
    assert "person \u00b7 medications: sertraline" in known
    assert "said on 2024-01-15 in an earlier conversation" in known
    assert "say that they have not told you" in known
    assert "search_memory" in {tool.name for tool in model.requests[-1].tools}
    facts = [each.body for each in frames if each.type == TRACE and each.body["memoryType"] == "fact"]
    assert [each["content"] for each in facts] == ["The person takes sertraline."]


async def test_a_model_may_ask_how_the_last_conversation_went_on(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model):
        async with conversing(orchestrator) as peer:
            headache = change("headache", kind="concern", stable=False)
            await say(peer, model, "I have a headache", headache)
        clock.tick(3 * DAY)
        async with conversing(orchestrator) as peer:
            await say(peer, model, "Hello")
            await say(peer, model, "My knee hurts")

    assert ["has come back" in request.known for request in model.requests] == [False, True, False]


async def test_with_a_model_too_nothing_is_forgotten_before_it_was_asked_once(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model):
        async with conversing(orchestrator) as peer:
            await say(peer, model, "I take sertraline", change("sertraline"))
        clock.tick(DAY)
        async with conversing(orchestrator) as peer:
            hasty = change("sertraline", op="retract", target="f1")
            asked = await say(peer, model, "Forget that I take sertraline", hasty, act="forget")
            before = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))
            done = await say(peer, model, "yes")
            after = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))

    assert "Shall I remove this from my notes" in asked
    assert [each.content for each in before] == ["The person takes sertraline."]
    assert "Removed" in done
    assert after == []


async def test_with_a_model_too_a_correction_asks_once_and_is_undone(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model):
        async with conversing(orchestrator) as peer:
            await say(peer, model, "I take sertraline", change("sertraline"))
        clock.tick(DAY)
        async with conversing(orchestrator) as peer:
            new = change("citalopram", op="replace", target="f1")
            asked = await say(peer, model, "That's wrong, it's citalopram", new, act="correct")
            before = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))
            clock.tick()
            await say(peer, model, "go on then, yes", act="answer")
            after = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))
            clock.tick()
            undone = await say(peer, model, "undo that", act="undo")
            again = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))

    assert 'Shall I change this in my notes: "sertraline"' in asked
    assert [each.content for each in before] == ["The person takes sertraline."]
    assert [each.content for each in after] == ["The person takes citalopram."]
    assert 'This is in my notes again: "sertraline"' in undone
    assert [each.content for each in again] == ["The person takes sertraline."]


async def test_a_part_of_what_was_offered_is_asked_about_again_and_only_that_is_forgotten(
    embedded: str,
) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model):
        async with conversing(orchestrator) as peer:
            await say(peer, model, "I take sertraline", change("sertraline"))
            await say(peer, model, "and penicillin gives me hives", change("penicillin", kind="allergies"))
        clock.tick(DAY)
        async with conversing(orchestrator) as peer:
            everything = await say(peer, model, "Forget everything", act="forget")
            only = change("sertraline", op="retract", target="f2")
            narrower = await say(peer, model, "ok, but keep the allergy", only, act="answer")
            before = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))
            done = await say(peer, model, "yes")
            after = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))

    assert "sertraline" in everything
    assert "penicillin" in everything
    assert "Shall I remove this from my notes" in narrower
    assert "penicillin" not in narrower
    assert "I keep it" not in narrower
    assert len(before) == 2
    assert "Removed" in done
    assert [each.content for each in after] == ["The person is allergic to penicillin."]


@pytest.mark.parametrize("reply", ["yes, but keep the allergy", "ok what would be deleted?", "yes?"])
async def test_an_unclear_yes_deletes_nothing(embedded: str, reply: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model), conversing(orchestrator) as peer:
        await say(peer, model, "I take sertraline", change("sertraline"))
        await say(peer, model, "Forget everything", act="forget")
        await say(peer, model, reply, act="answer")
        left = await orchestrator.store.read(lambda tx: tx.memories.of_person_ever(ANN))

    contents = {each.content for each in left if each.deleted_at is None}
    assert {"The person takes sertraline.", "I take sertraline"} <= contents


async def test_who_agrees_and_asks_for_more_is_answered_both(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model), conversing(orchestrator) as peer:
        await say(peer, model, "I take sertraline", change("sertraline"))
        await say(peer, model, "and aspirin", change("aspirin"))
        one = change("sertraline", op="retract", target="f1")
        await say(peer, model, "Forget the sertraline", one, act="forget")
        both = (one, change("aspirin", op="retract", target="f2"))
        answer = await say(peer, model, "yes, and the aspirin, forget that too", *both, act="forget")
        left = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))

    assert "Removed" in answer
    assert 'Shall I remove this from my notes: "aspirin"' in answer
    assert [each.content for each in left] == ["The person takes aspirin."]


async def memories(orchestrator: Orchestrator) -> list[str]:
    found = await orchestrator.store.read(lambda tx: tx.memories.of_type(ANN, "fact", limit=9))
    return sorted(each.content for each in found)


async def test_a_model_has_what_was_told_one_turn_before(embedded: str) -> None:
    async with with_model(embedded, HandClock()) as (orchestrator, model), conversing(orchestrator) as peer:
        await say(peer, model, "I take sertraline", change("sertraline"))
        await say(peer, model, "What do I take?", act="memory_question")
        kept = await memories(orchestrator)

    assert "person \u00b7 medications: sertraline" in model.requests[-1].known
    assert kept == ["The person takes sertraline."]


async def test_a_model_has_what_was_told_forty_turns_before(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model), conversing(orchestrator) as peer:
        await say(peer, model, "I take sertraline", change("sertraline"))
        for number in range(40):
            clock.tick()
            await say(peer, model, f"I went for walk number {number}")
        await say(peer, model, "What do I take?", act="memory_question")

    assert "person \u00b7 medications: sertraline" in model.requests[-1].known


async def test_with_a_model_too_what_a_daughter_has_is_hers(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model):
        async with conversing(orchestrator) as peer:
            hers = change("peanuts", kind="allergies", subject="daughter", words="allergic to peanuts")
            await say(peer, model, "My daughter is allergic to peanuts", hers)
        clock.tick(DAY)
        async with conversing(orchestrator) as peer:
            await say(peer, model, "What am I allergic to?", act="memory_question")
            kept = await memories(orchestrator)

    assert kept == ["The person's daughter is allergic to peanuts."]
    assert "daughter \u00b7 allergies: peanuts" in model.requests[-1].known
    assert "person \u00b7 allergies" not in model.requests[-1].known


async def test_a_model_is_given_nothing_of_what_was_never_said(embedded: str) -> None:
    clock = HandClock()
    async with with_model(embedded, clock) as (orchestrator, model):
        async with conversing(orchestrator) as peer:
            await say(peer, model, "I take sertraline", change("sertraline"))
        clock.tick(DAY)
        async with conversing(orchestrator) as peer:
            await say(peer, model, "Did I tell you about my knee?", act="memory_question")

    assert model.requests[-1].known.count("knee") == 1  # in the question itself
    assert "say that they have not told you" in model.requests[-1].known
