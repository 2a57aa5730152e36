"""What models were sent is stored with the message, can be shown, and has a ceiling per person and day."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents.models.requests import EXTRACTOR
from orchestrator.orchestrator import Orchestrator
from orchestrator.store.repositories.turn.model_calls import request_text
from orchestrator.store.rows import ModelCall
from tests.support.brains.model_brains import chat_brain
from tests.support.brains.models import minilm
from tests.support.orchestrators import an_orchestrator, meta
from tests.support.protocol_client import CONFIGURATION, REASONING, Peer, conversing
from tests.support.stores import on_both_databases
from tools.servers.model_endpoint import ModelEndpoint, Step


@asynccontextmanager
async def a_conversation(
    url: str, endpoint: ModelEndpoint, person: str = "ann", *, most_tokens: int = 0
) -> AsyncIterator[tuple[Orchestrator, Peer]]:
    """A conversation with an orchestrator that uses the model."""
    async with chat_brain(endpoint) as brain:
        orchestrator = an_orchestrator(url, brain, embedder=minilm(), tokens_per_person_and_day=most_tokens)
        async with (
            orchestrator.open(),
            conversing(orchestrator, person, features=["streaming", "reasoning"]) as peer,
        ):
            yield orchestrator, peer


async def calls_of(orchestrator: Orchestrator, message_id: str) -> list[ModelCall]:
    return await orchestrator.store.read(lambda tx: tx.model_calls.of_message(message_id))


@on_both_databases
async def test_every_request_of_a_turn_is_kept_with_its_message(
    address: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(address, model_endpoint) as (orchestrator, peer):
        await peer.ask(f"I cannot sleep, {word}", id=f"msg_{word}")
        calls = await calls_of(orchestrator, f"msg_{word}")

    assert [call.role for call in calls] == [EXTRACTOR, "SLEEP"]
    assert [json.loads(request_text(call) or "") for call in calls] == model_endpoint.asked(word)
    assert [call.outcome for call in calls] == ["answered", "answered"]
    assert all(call.prompt_tokens > 500 and call.completion_tokens for call in calls)


async def test_a_model_knows_the_time_where_the_person_is(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(embedded, model_endpoint) as (_, peer):
        await peer.send(CONFIGURATION, timeZone="Asia/Tokyo")
        await peer.ask(f"I cannot sleep, {word}")

    for asked in model_endpoint.asked(word):
        assert "(Asia/Tokyo)" in asked["messages"][0]["content"]


async def test_a_request_that_was_refused_is_kept_too(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    model_endpoint.script(word, Step(status=401), Step(status=401))
    async with a_conversation(embedded, model_endpoint) as (orchestrator, peer):
        await peer.ask(f"I cannot sleep, {word}", id=f"msg_{word}")
        calls = await calls_of(orchestrator, f"msg_{word}")

    assert [(call.outcome, call.prompt_tokens) for call in calls] == [("http_401", 0)] * 2


@on_both_databases
async def test_above_the_ceiling_the_local_brain_answers_and_says_so(
    address: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(address, model_endpoint, most_tokens=500) as (orchestrator, peer):
        within = await peer.ask(f"I cannot sleep, {word}")
        above = await peer.ask(f"I wake up at night, {word}")
        kept = await meta(orchestrator, above[-1].body["previousId"])
        async with conversing(orchestrator, "bob", features=["streaming"]) as other:
            of_bob = await other.ask(f"I cannot sleep either, {word}")

    assert "model.stood_in" not in within[-1].meta
    assert (kept["model.stood_in"], kept["model.trouble"]) == ("local", "daily_tokens")
    assert "model.stood_in" not in of_bob[-1].meta
    assert len(model_endpoint.asked(word)) == 4
    reasons = [frame.body["content"] for frame in above if frame.type == REASONING]
    assert any("the tokens of this person for today are used up" in reason for reason in reasons)
