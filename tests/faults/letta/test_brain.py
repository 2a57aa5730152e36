"""The connection to a real Letta is broken, or its agents send nonsense: the turn is answered all the same.

The tests are named after the rows of docs/faults.md.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agents.errors import ModelTrouble
from agents.models import usage
from agents.models.fallback import ModelBrain
from agents.models.requests import EXTRACTOR, ModelRequest
from agents.models.retries import RetryPolicy
from agents.models.servers.letta import LettaAgents, RoleModels
from agents.tools.built_in import built_in
from tests.faults.http_proxy import Fault, HttpProxy, before, listening
from tests.support.brains.model_brains import Cast, Using, a_brief, letta_brain, local_words, said
from tests.support.builders import START, a_situation, some_blocks
from tests.support.orchestrators import agents
from tools.servers.model_endpoint import ModelEndpoint, Step

pytestmark = pytest.mark.timeout(600)

MESSAGES = r"POST /v1/agents/[^/]+/messages/stream"
SPECIALIST = "GENERAL_HEALTH"
SHORT = RetryPolicy(reply_seconds=1.0, stall_seconds=1.0, budget_seconds=5.0)


@asynccontextmanager
async def a_way(cast: Cast, **rules: Any) -> AsyncIterator[tuple[HttpProxy, ModelBrain]]:
    """A brain with an unreliable connection to its agents."""
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
async def test_a_temporary_refusal_is_retried(
    cast: Cast, models: ModelEndpoint, word: str, faults: tuple[Fault, ...]
) -> None:
    models.script(word, Step(text="All is well. Rest."))
    async with a_way(cast) as (proxy, brain):
        proxy.script(MESSAGES, *faults)
        with usage.record() as used:
            words = await said(brain, a_brief(word))

    assert (words, used.fallback_reason) == (["All is well. ", "Rest."], "")
    assert proxy.count(MESSAGES) == len(faults) + 1
    assert len(models.asked(word)) == 1


@pytest.mark.parametrize("status", [500, 429, 409], ids=["F3", "F5", "F6"])
async def test_after_a_permanent_refusal_the_local_brain_answers(
    cast: Cast, models: ModelEndpoint, word: str, status: int
) -> None:
    brief = a_brief(word)
    async with a_way(cast) as (proxy, brain):
        proxy.script(MESSAGES, *[Fault(status)] * 9)
        with usage.record() as used:
            words = await said(brain, brief)

    assert ("".join(words), used.fallback_reason) == (await local_words(brief), f"http_{status}")
    assert proxy.count(MESSAGES) == 3
    assert models.asked(word) == []


@pytest.mark.parametrize(
    "fault", [Fault(hang=True), Fault(drip=0.5), Fault(lost=True)], ids=["F4-hang", "F4-drip", "F4-reset"]
)
async def test_a_missing_answer_is_not_requested_again(
    cast: Cast, models: ModelEndpoint, word: str, fault: Fault
) -> None:
    brief = a_brief(word)
    async with a_way(cast, retry_policy=SHORT) as (proxy, brain):
        proxy.script(MESSAGES, fault)
        with usage.record() as used:
            words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert used.fallback_reason
    assert proxy.count(MESSAGES) == 1
    assert len(models.asked(word)) <= 1


@pytest.mark.parametrize(
    "reply",
    [
        "It sounds like sleep.",
        '{"intent": "SLEEP", "confid',
        "",
        json.dumps({"enriched_message": "x", "intent": "ASTROLOGY", "confidence": 0.9}),
    ],
    ids=["F7-garbage", "F7-cut", "F7-empty", "F8-intent"],
)
async def test_an_invalid_decision_is_left_to_the_local_brain(
    cast: Cast, models: ModelEndpoint, word: str, reply: str
) -> None:
    models.script(word, *[Step(text=reply)] * 2)
    situation, message = a_situation(some_blocks(0)), f"I cannot sleep, {word}"
    async with a_way(cast) as (_, brain):
        with usage.record() as used:
            intent = (await brain.understand(message, situation)).intent

    assert intent.intent in agents().intents
    assert intent.reasoning.endswith("decided locally, since the model's reply could not be read")
    assert (used.requests, used.fallback_reason) == (2, "reply_unreadable")


async def test_an_unknown_tool_is_not_used_and_the_turn_is_answered(
    cast: Cast, models: ModelEndpoint, word: str
) -> None:  # F8
    models.script(word, Step(tool="launch_rocket", arguments={"where": "up"}), Step(text="I cannot. Sorry."))
    tools = Using()
    async with a_way(cast, tools=built_in(START.date)) as (_, brain):
        words = await said(brain, a_brief(word, tools))

    assert (words, tools.used) == (["I cannot. ", "Sorry."], [])


def streaming(*events: Mapping[str, object] | str) -> Response:
    result = [each if isinstance(each, str) else json.dumps(each) for each in events]
    return Response("".join(f"data: {each}\n\n" for each in result), media_type="text/event-stream")


WORDS = {"message_type": "assistant_message", "run_id": "run-1", "id": "message-1", "content": "It is"}
FAILED = {"message_type": "error_message", "run_id": "run-1", "error_type": "internal_error"}


@pytest.mark.parametrize(
    ("answer", "retryable"),
    [
        (streaming(WORDS, "{not JSON"), False),
        (streaming({"message_type": "tool_return_message", "run_id": "run-1"}, FAILED), False),
        (streaming(WORDS, FAILED), False),
        (streaming(FAILED), True),
        (Response(status_code=502), False),
        (Response(status_code=504), False),
        (Response(status_code=503), True),
    ],
    ids=["garbled", "failed after a tool", "failed after words", "failed", "502", "504", "503"],
)
async def test_only_a_message_without_effect_may_be_sent_again(answer: Response, retryable: bool) -> None:
    async with saying(answer) as (cast, _):
        with usage.record(), pytest.raises(ModelTrouble) as trouble:
            await cast.decide(ModelRequest(EXTRACTOR, "c1", "", "", (), "What does it mean?"))

    assert trouble.value.retryable is retryable


async def test_text_before_a_tool_call_is_sent_again_with_the_result() -> None:
    calculator = built_in(lambda: START.date())[0]
    call = {"tool_call_id": "call-1", "name": calculator.name, "arguments": "{}"}
    asks = {"message_type": "approval_request_message", "run_id": "run-1", "tool_call": call}
    pauses = {"message_type": "stop_reason", "stop_reason": "requires_approval"}
    ends = {"message_type": "stop_reason", "stop_reason": "end_turn"}
    async with saying(streaming(WORDS, asks, pauses), streaming(WORDS, ends)) as (cast, heard):
        ask = ModelRequest(SPECIALIST, "c1", "", "", (), "What is it?", tools=(calculator,))
        words = [fragment async for fragment in cast.speak(ask, Using())]

    assert words == ["It is", "It is"]
    first, second = [each["messages"][0]["content"] for each in heard]
    assert "said_so_far" not in first
    assert "<said_so_far>It is</said_so_far>" in second.replace("\n", "")
    assert calculator.name in second


@asynccontextmanager
async def saying(*answers: Response) -> AsyncIterator[tuple[LettaAgents, list[dict[str, Any]]]]:
    """A server whose agents give these answers in order, and the requests that it received."""
    left, heard = list(answers), []

    async def answer(request: Request) -> Response:
        if not request.url.path.endswith("/stream"):
            return Response("{}")  # a run is cancelled
        heard.append(await request.json())
        return left.pop(0)

    async def agent_for(conversation_id: str, role: str) -> str:
        return "agent-1"

    async with listening(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])) as url:
        cast = LettaAgents(url, "", RoleModels("a model"), agent_for)
        try:
            yield cast, heard
        finally:
            await cast.close()
