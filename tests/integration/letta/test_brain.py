"""Agents of a real Letta server as a brain: answering, cancelled, cut off, busy, without a model, gone."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest

from agents.errors import AnswerCut
from agents.models import usage
from agents.models.fallback import ModelBrain
from agents.models.requests import EXTRACTOR
from agents.tools.built_in import built_in
from tests.faults.tcp_proxy import between
from tests.support.brains.model_brains import Cast, Using, a_brief, letta_brain, local_words, said
from tests.support.builders import START, a_situation, some_blocks
from tests.support.orchestrators import agents
from tools.servers.model_endpoint import ModelEndpoint, Step
from tools.servers.process import free_port

SPECIALIST = "GENERAL_HEALTH"
TOOLS = built_in(START.date)


@asynccontextmanager
async def a_brain(cast: Cast, base_url: str = "", **rules: Any) -> AsyncIterator[ModelBrain]:
    async with letta_brain(base_url or cast.base_url, cast.agent_for, **rules) as brain:
        yield brain


async def runs_of(cast: Cast, role: str) -> list[Mapping[str, Any]]:
    """The latest runs of an agent, newest first."""
    agent_id = await cast.agent_for("any", role)
    async with httpx.AsyncClient(base_url=cast.base_url, timeout=30) as http:
        found = await http.get("/v1/runs/", params={"agent_id": agent_id, "limit": 5, "order": "desc"})
    runs: list[Mapping[str, Any]] = found.raise_for_status().json()
    return runs


async def test_agents_decide_by_their_schema_and_their_usage_is_recorded(
    cast: Cast, models: ModelEndpoint, word: str
) -> None:
    situation, message = a_situation(some_blocks(0)), f"I cannot sleep, {word}"
    async with a_brain(cast) as brain:
        with usage.record() as used:
            found = await brain.understand(message, situation)

    assert (used.requests, used.repairs, used.fallback_reason) == (1, 0, "")
    assert word in found.enrichment.enriched_message
    assert found.intent.intent in agents().intents
    assert "decided by the model" in found.intent.reasoning
    assert used.prompt_tokens > 500
    forms = [each["response_format"]["json_schema"]["name"] for each in models.asked(word)]
    assert forms == ["understanding"]
    assert set(cast.made) >= {EXTRACTOR}


async def test_an_invalid_decision_is_requested_once_more(
    cast: Cast, models: ModelEndpoint, word: str
) -> None:
    models.script(word, Step(text='{"previous_context": "cut of'), Step())
    async with a_brain(cast) as brain:
        with usage.record() as used:
            found = await brain.understand(f"I cannot sleep, {word}", a_situation(some_blocks(0)))

    assert (used.repairs, used.fallback_reason) == (1, "")
    assert word in found.enrichment.enriched_message


async def test_a_tool_runs_in_the_orchestrator_and_the_agent_uses_its_result(cast: Cast) -> None:
    tools = Using()
    async with a_brain(cast, tools=TOOLS) as brain:
        with usage.record() as used:
            words = await said(brain, a_brief("What's my BMI? I'm 180 cm and 75 kg", tools))

    assert tools.used == [("body_mass_index", {"height_m": 1.8, "weight_kg": 75.0})]
    assert "23.1" in words[0]
    assert (used.requests, used.fallback_reason) == (2, "")


async def test_an_agent_uses_only_the_tools_of_its_specialist(cast: Cast) -> None:
    tools = Using()
    brief = a_brief("What's my BMI? I'm 180 cm and 75 kg", tools)
    without = replace(brief, specialist=brief.specialist.model_copy(update={"tools": ("days_since",)}))
    async with a_brain(cast, tools=TOOLS) as brain:
        words = await said(brain, without)

    assert tools.used == []
    assert "23.1" not in "".join(words)


async def test_an_agents_reasoning_is_recorded(cast: Cast, models: ModelEndpoint, word: str) -> None:
    models.script(word, Step(text="Well. Rest.", reasoning="It sounds harmless"))
    async with a_brain(cast) as brain:
        with usage.record() as used:
            words = await said(brain, a_brief(word))

    assert (words, used.reasoning) == (["Well. ", "Rest."], ["It sounds harmless"])


async def test_a_run_whose_answer_was_stopped_is_cancelled(
    cast: Cast, models: ModelEndpoint, word: str
) -> None:
    models.script(word, Step(text="It is so. " * 200, drip=0.05))
    async with a_brain(cast) as brain:
        spoken = brain.speak(a_brief(word))
        await anext(spoken)
        await spoken.aclose()

    latest, *_ = await runs_of(cast, SPECIALIST)
    assert latest["status"] == "cancelled"


async def test_if_the_agents_model_fails_the_local_brain_answers(
    cast: Cast, models: ModelEndpoint, word: str
) -> None:
    models.script(word, *[Step(status=400)] * 3)
    brief = a_brief(word)
    async with a_brain(cast) as brain:
        with usage.record() as used:
            words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert used.fallback_reason.startswith("llm")


async def test_an_answer_that_breaks_off_is_not_started_again(
    cast: Cast, models: ModelEndpoint, word: str
) -> None:
    models.script(word, Step(text="First it is so. Then it is something else entirely.", cut=8))
    fragments = []
    async with a_brain(cast) as brain:
        with pytest.raises(AnswerCut):  # noqa: PT012 - what came before it counts
            async for fragment in brain.speak(a_brief(word)):
                fragments.append(fragment)

    assert "".join(fragments).startswith("First it is so. ")
    assert len(models.asked(word)) == 1


@pytest.mark.parametrize("most", [50, 300, 900])
async def test_a_message_whose_outcome_is_unknown_is_never_posted_twice(
    cast: Cast, models: ModelEndpoint, word: str, most: int
) -> None:
    port = int(cast.base_url.rpartition(":")[2])
    brief = a_brief(word)
    await cast.agent_for("any", SPECIALIST)
    async with (
        between("127.0.0.1", port, to_client=most) as proxy,
        a_brain(cast, f"http://127.0.0.1:{proxy.port}") as brain,
    ):
        words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert len(models.asked(word)) <= 1


async def test_without_a_server_the_local_brain_answers(cast: Cast, word: str) -> None:
    brief = a_brief(word)
    await cast.agent_for("any", SPECIALIST)
    async with a_brain(cast, f"http://127.0.0.1:{free_port()}") as brain:
        with usage.record() as used:
            words = await said(brain, brief)

    assert ("".join(words), used.fallback_reason) == (await local_words(brief), "unreachable")
