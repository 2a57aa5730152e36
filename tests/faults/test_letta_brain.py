"""The way to the agents of a real Letta is broken, or they talk nonsense: the turn is answered all the same.

The tests are named after the rows of docs/faults.md.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agents import minutes
from agents.brains.modelled import ModelBrain
from agents.brains.patience import Patience
from agents.embedding import embed
from agents.tools.built_in import built_in
from tests.brains import ASKS_ALL, Cast, Using, a_brief, letta_brain, local_words, said
from tests.builders import START, some_blocks
from tests.faults.http_proxy import Fault, HttpProxy, before
from tests.houses import agents
from tests.models import minilm
from tools.model_endpoint import ModelEndpoint, Step

pytestmark = pytest.mark.timeout(600)

MESSAGES = r"POST /v1/agents/[^/]+/messages/stream"
SPECIALIST = "GENERAL_HEALTH"
SHORT = Patience(reply_seconds=1.0, stall_seconds=1.0, budget_seconds=5.0)


@asynccontextmanager
async def a_way(cast: Cast, **rules: Any) -> AsyncIterator[tuple[HttpProxy, ModelBrain]]:
    """A brain whose way to its agents is not sure."""
    await cast.agent_for("any", SPECIALIST)
    async with (
        before(cast.base_url) as proxy,
        letta_brain(proxy.url, cast.agent_for, **rules) as brain,
    ):
        yield proxy, brain


@pytest.mark.parametrize(
    "faults",
    [(Fault(500), Fault(503)), (Fault(429, {"retry-after": "0.2"}),), (Fault(409), Fault(409))],
    ids=["F3", "F5", "F6"],
)
async def test_a_refusal_that_passes_is_asked_again(
    cast: Cast, models: ModelEndpoint, word: str, faults: tuple[Fault, ...]
) -> None:
    models.script(word, Step(text="All is well. Rest."))
    async with a_way(cast) as (proxy, brain):
        proxy.script(MESSAGES, *faults)
        with minutes.taken() as taken:
            words = await said(brain, a_brief(word))

    assert (words, taken.stood_in) == (["All is well. ", "Rest."], "")
    assert proxy.count(MESSAGES) == len(faults) + 1
    assert len(models.asked(word)) == 1


@pytest.mark.parametrize("status", [500, 429, 409], ids=["F3", "F5", "F6"])
async def test_a_refusal_that_stays_lets_the_local_brain_answer(
    cast: Cast, models: ModelEndpoint, word: str, status: int
) -> None:
    brief = a_brief(word)
    async with a_way(cast) as (proxy, brain):
        proxy.script(MESSAGES, *[Fault(status)] * 9)
        with minutes.taken() as taken:
            words = await said(brain, brief)

    assert ("".join(words), taken.stood_in) == (await local_words(brief), f"http_{status}")
    assert proxy.count(MESSAGES) == 3
    assert models.asked(word) == []


@pytest.mark.parametrize(
    "fault", [Fault(hang=True), Fault(drip=0.5), Fault(lost=True)], ids=["F4-hang", "F4-drip", "F4-reset"]
)
async def test_an_answer_that_does_not_come_is_not_asked_for_again(
    cast: Cast, models: ModelEndpoint, word: str, fault: Fault
) -> None:
    brief = a_brief(word)
    async with a_way(cast, patience=SHORT) as (proxy, brain):
        proxy.script(MESSAGES, fault)
        with minutes.taken() as taken:
            words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert taken.stood_in
    assert proxy.count(MESSAGES) == 1
    assert len(models.asked(word)) <= 1


@pytest.mark.parametrize(
    "reply",
    [
        "It sounds like sleep.",
        '{"intent": "SLEEP", "confid',
        "",
        json.dumps({"intent": "ASTROLOGY", "confidence": 0.9, "reasoning": "The stars"}),
    ],
    ids=["F7-garbage", "F7-cut", "F7-empty", "F8-intent"],
)
async def test_a_decision_that_is_none_is_left_to_the_local_brain(
    cast: Cast, models: ModelEndpoint, word: str, reply: str
) -> None:
    models.script(word, Step(), *[Step(text=reply)] * 2)
    blocks, message = some_blocks(0), f"I cannot sleep, {word}"
    async with a_way(cast, sureness=ASKS_ALL) as (_, brain):
        with minutes.taken() as taken:
            enrichment = await brain.extract(message, blocks)
            intent = await brain.classify(enrichment, blocks, await embed(minilm(), message, enrichment))

    assert intent.intent in agents().intents
    assert intent.reasoning.endswith("the local brain decided, since the model's reply could not be read")
    assert (taken.asked, taken.stood_in) == (3, "reply_unreadable")


async def test_a_tool_that_is_not_there_is_not_used_and_the_turn_is_answered(
    cast: Cast, models: ModelEndpoint, word: str
) -> None:  # F8
    models.script(word, Step(tool="launch_rocket", arguments={"where": "up"}), Step(text="I cannot. Sorry."))
    tools = Using()
    async with a_way(cast, tools=built_in(START.date)) as (_, brain):
        words = await said(brain, a_brief(word, tools))

    assert (words, tools.used) == (["I cannot. ", "Sorry."], [])
