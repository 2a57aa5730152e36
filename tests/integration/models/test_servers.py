"""Servers that know less than OpenAI's: each is asked what it can answer, and remembered."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agents.models import usage
from agents.models.fallback import ModelBrain, ModelOptions
from agents.models.requests import EXTRACTOR
from agents.models.servers.capabilities import Capabilities, ReplyForm
from agents.models.servers.openai import ChatModel, ChatOptions
from agents.tools.built_in import built_in
from tests.support.brains.model_brains import PATIENT, a_brief, extractor_prompt, local_words, said
from tests.support.brains.model_servers import (
    ANSWER,
    SHAPES,
    Refusal,
    Shape,
    gateway,
    json_object_only,
    lm_studio,
    old_ollama,
    openai,
    openai_reasoning,
)
from tests.support.builders import START, a_situation, some_blocks
from tests.support.orchestrators import agents, local_brain

MESSAGE = "I wake up at three every night"
TOOLS = built_in(START.date)


@asynccontextmanager
async def a_model(shape: Shape, **options: Any) -> AsyncIterator[tuple[ModelBrain, ChatModel]]:
    async with shape.serving() as url:
        model = ChatModel(url, "a key", "a-model", options=ChatOptions(**options))
        rules = ModelOptions(TOOLS, PATIENT)
        try:
            yield ModelBrain(model, local_brain(), agents(), extractor_prompt(), rules), model
        finally:
            await model.close()


@pytest.mark.parametrize("make", SHAPES, ids=[make.__name__ for make in SHAPES])
async def test_every_server_reads_and_answers(make: Callable[[], Shape]) -> None:
    shape = make()
    async with a_model(shape) as (brain, _):
        with usage.record() as used:
            reading = await brain.understand(MESSAGE, a_situation(some_blocks(0)))
            words = await said(brain, a_brief(MESSAGE))

    assert (reading.intent.intent, reading.enrichment.enriched_message) == ("SLEEP", "User cannot sleep")
    assert "decided by the model" in reading.intent.reasoning
    assert "".join(words).split() == ANSWER.split()
    assert (used.fallback_reason, used.repairs) == ("", 0)
    assert [call.outcome for call in used.calls].count(usage.ANSWERED) == 2
    answered = [call for call in used.calls if call.outcome == usage.ANSWERED]
    assert all(call.prompt_tokens > 50 and call.completion_tokens > 10 for call in answered)


@pytest.mark.parametrize("make", SHAPES, ids=[make.__name__ for make in SHAPES])
async def test_every_server_counts_as_reachable_even_one_that_lists_no_models(
    make: Callable[[], Shape],
) -> None:
    async with a_model(make()) as (_, model):
        await model.check_health()


@pytest.mark.parametrize("make", SHAPES, ids=[make.__name__ for make in SHAPES])
async def test_what_a_server_refused_is_not_sent_again(make: Callable[[], Shape]) -> None:
    shape = make()
    async with a_model(shape) as (brain, _):
        for _ in range(3):
            await brain.understand(MESSAGE, a_situation(some_blocks(0)))
            await said(brain, a_brief(MESSAGE))
            sent, shape.asked = shape.asked, []

    assert len(sent) == 2


@pytest.mark.parametrize(
    ("make", "form"),
    [
        (openai, ReplyForm.JSON_SCHEMA),
        (lm_studio, ReplyForm.JSON_SCHEMA),
        (old_ollama, ReplyForm.JSON_SCHEMA),
        (json_object_only, ReplyForm.JSON_OBJECT),
        (gateway, ReplyForm.TEXT),
    ],
)
async def test_the_strictest_form_that_a_server_knows_is_used(
    make: Callable[[], Shape], form: ReplyForm
) -> None:
    shape = make()
    async with a_model(shape) as (brain, model):
        await brain.understand(MESSAGE, a_situation(some_blocks(0)))

        assert model.capabilities_of(EXTRACTOR).form is form
    system = shape.asked[-1]["messages"][0]["content"]
    assert ("JSON Schema" in system) == (form is not ReplyForm.JSON_SCHEMA)


async def test_a_reasoning_model_gets_the_limit_under_its_other_name_and_no_temperature() -> None:
    shape = openai_reasoning()
    async with a_model(shape, answer_tokens=700) as (brain, _):
        await said(brain, a_brief(MESSAGE))

    assert shape.asked[-1]["max_completion_tokens"] == 700
    assert "temperature" not in shape.asked[-1]


async def test_temperature_and_limit_are_those_of_the_settings() -> None:
    shape = openai()
    async with a_model(shape, temperature=0.7, answer_tokens=700) as (brain, _):
        await brain.understand(MESSAGE, a_situation(some_blocks(0)))
        await said(brain, a_brief(MESSAGE))

    reading, answer = shape.asked
    assert reading["temperature"] == 0.0
    assert (answer["temperature"], answer["max_tokens"]) == (0.7, 700)


async def test_a_refusal_that_is_about_nothing_we_could_leave_out_is_learned_from_by_nobody() -> None:
    """A request that is too long is refused in every form. The next one is asked in the strictest again."""

    def too_long(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        says = "This model's maximum context length is 4096 tokens"
        return (400, {"error": {"message": says}}) if len(shape.asked) <= 3 else None

    shape = Shape("short", too_long)
    async with a_model(shape) as (brain, model):
        with usage.record() as used:
            await brain.understand(MESSAGE, a_situation(some_blocks(0)))
        assert model.capabilities_of(EXTRACTOR) == Capabilities()
        later = await brain.understand(MESSAGE, a_situation(some_blocks(0)))

    assert used.fallback_reason == "http_400"
    assert later.intent.intent == "SLEEP"
    assert shape.asked[-1]["response_format"]["type"] == "json_schema"


async def test_a_model_without_a_key_is_not_used_and_its_refusal_is_not_about_a_field() -> None:
    shape, brief = openai(), a_brief(MESSAGE)
    async with shape.serving() as url:
        model = ChatModel(url, "", "a-model")
        brain = ModelBrain(model, local_brain(), agents(), extractor_prompt(), ModelOptions((), PATIENT))
        with usage.record() as used:
            words = await said(brain, brief)
        await model.close()

    assert "".join(words) == await local_words(brief)
    assert (used.fallback_reason, len(shape.asked)) == ("http_401", 1)


async def test_an_answer_that_the_token_limit_cuts_keeps_its_whole_sentences() -> None:
    shape = openai()

    async def cut(text: str, body: Mapping[str, Any]) -> AsyncIterator[str]:
        async for event in Shape._streamed(shape, "It is so. And then it goes on without", body):
            yield event.replace('"finish_reason": "stop"', '"finish_reason": "length"')

    shape._streamed = cut  # type: ignore[method-assign]
    async with a_model(shape) as (brain, _):
        with usage.record() as used, pytest.raises(Exception, match="failed to speak"):
            await said(brain, a_brief(MESSAGE))

    assert used.cut_reason == "token_limit"


async def test_the_request_that_is_kept_is_the_one_that_was_sent() -> None:
    shape = openai()
    async with a_model(shape) as (brain, _):
        with usage.record() as used:
            await brain.understand(MESSAGE, a_situation(some_blocks(2)))
            await said(brain, a_brief("wörter, 😀 and more"))

    assert [json.loads(call.request) for call in used.calls] == shape.asked
    assert [call.role for call in used.calls] == [EXTRACTOR, "GENERAL_HEALTH"]
