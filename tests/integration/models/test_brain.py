"""A brain with a model behind a real endpoint: it answers, refuses, breaks off, is slow, garbled or gone."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic

import pytest

from agents.errors import AnswerCut
from agents.models import usage
from agents.models.fallback import MAX_ANSWER, ModelBrain
from agents.models.retries import Breaker, RetryPolicy
from agents.models.understanding import understanding_schema
from agents.models.usage import ModelUsage
from agents.ports import Brief
from agents.tools.built_in import built_in
from agents.values import Enrichment, Intent, Understanding
from orchestrator.orchestrator import Orchestrator
from tests.support.brains.model_brains import PATIENT, Using, a_brief, chat_brain, local_words, said
from tests.support.brains.models import minilm
from tests.support.builders import START, a_fact, a_situation, some_blocks
from tests.support.orchestrators import agents, an_orchestrator, local_brain, meta, shipped_prompts
from tests.support.protocol_client import REASONING, SENTENCE, STOP, TOOL_RESULT, Frame, Peer, conversing
from tools.servers.model_endpoint import ModelEndpoint, Step
from tools.servers.process import free_port

TOOLS = built_in(START.date)
GARBAGE = {
    "prose": "I think the person has a headache.",
    "nothing": "",
    "cut": '{"previous_context": "No previous context", "enriched_mess',
    "another_object": '{"mood": "fine"}',
    "a_list": "[1, 2, 3]",
    "not_json": "{'previous_context': None}",
    "deep": "[" * 5_000 + "]" * 5_000,
    "long": json.dumps({"previous_context": "a" * 1_000_000, "enriched_message": "b"}),
    "infinite": '{"enriched_message": "x", "intent": "SLEEP", "confidence": Infinity, "reasoning": "x"}',
    "unknown_intent": '{"enriched_message": "x", "intent": "HAIRDRESSING", "confidence": 1.0}',
    "nul": '{"enriched_message": "\\u0000", "intent": "SLEEP", "confidence": 1.0}',
    "nobody": '{"enriched_message": "x", "intent": "SLEEP", "confidence": 1.0, "changes": [{"op": "add", '
    '"kind": "severity", "value": "8/10", "subject": ""}]}',
}


def a_reply(**fields: object) -> str:
    """A whole reply of the model that reads messages."""
    found = {"enriched_message": "User says so", "intent": "SLEEP", "confidence": 0.8, "reasoning": "Nights"}
    return json.dumps(found | fields)


async def heard(brain: ModelBrain, message: str) -> tuple[Enrichment, Intent]:
    found = await brain.understand(message, a_situation(some_blocks(0)))
    return found.enrichment, found.intent


async def locally(message: str) -> Understanding:
    return await local_brain().understand(message, a_situation(some_blocks(0)))


async def until_it_fails(brain: ModelBrain, brief: Brief) -> tuple[list[str], Exception | None]:
    """The fragments that were received, and the error that ended them."""
    fragments: list[str] = []
    try:
        async for fragment in brain.speak(brief):
            fragments.append(fragment)
    except AnswerCut as cut:
        return fragments, cut
    return fragments, None


# --- what is asked, and what is not -------------------------------------------------------------------------


async def test_for_a_bare_number_on_the_scale_asked_for_no_model_is_asked(
    model_endpoint: ModelEndpoint,
) -> None:
    situation = a_situation(some_blocks(1), [a_fact("concern", "headache")])
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            found = await brain.understand("8", situation)

    local = await local_brain().understand("8", situation)
    assert used == ModelUsage(started=used.started)
    assert (found.enrichment, found.changes) == (local.enrichment, local.changes)
    assert found.intent.intent == "GENERAL_HEALTH"
    assert found.intent.reasoning.endswith("; decided locally, since it answers a plain question plainly")


async def test_what_a_message_means_is_asked_in_one_call(model_endpoint: ModelEndpoint, word: str) -> None:
    enriched = f"User cannot sleep, {word}"
    model_endpoint.script(word, Step(text=a_reply(enriched_message=enriched, reasoning="It is about nights")))
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            enrichment, intent = await heard(brain, f"{word} again")

    assert intent.intent == "SLEEP"
    assert intent.reasoning.startswith("It is about nights; decided by the model")
    assert enrichment.enriched_message == enriched
    assert (used.requests, used.repairs, used.fallback_reason) == (1, 0, "")
    assert used.prompt_tokens > 100
    assert used.completion_tokens > 10
    (asked,) = model_endpoint.asked(word)
    assert asked["response_format"]["json_schema"]["schema"] == understanding_schema(agents().intents).schema


async def test_the_local_reading_never_overrules_the_models_and_the_reason_says_where_they_differ(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    husband = {"op": "add", "target": None, "kind": "temperature", "subject": "husband", "value": "39 °C"}
    model_endpoint.script(word, Step(text=a_reply(changes=[husband])))
    async with chat_brain(model_endpoint) as brain:
        found = await brain.understand(
            f"I have a bad headache and my forehead hurts since Monday {word}", a_situation(some_blocks(0))
        )

    (change,) = found.changes
    assert (change.subject, change.kind, change.value, change.decided_by) == (
        "husband",
        "temperature",
        "39 °C",
        "model",
    )
    assert "the local reading would be GENERAL_HEALTH" in found.intent.reasoning
    assert "the local reading would change other facts" in found.intent.reasoning


# --- replies that cannot be read (F7, F8) -------------------------------------------------------------------


@pytest.mark.parametrize("kind", GARBAGE)
async def test_an_invalid_reply_is_repaired_once(model_endpoint: ModelEndpoint, word: str, kind: str) -> None:
    model_endpoint.script(word, Step(text=GARBAGE[kind]), Step())
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            _, intent = await heard(brain, f"I cannot sleep, {word}")

    assert (used.requests, used.repairs, used.fallback_reason) == (2, 1, "")
    assert intent.intent in agents().intents
    assert "could not be read" in json.dumps(model_endpoint.asked(word)[1])


@pytest.mark.parametrize("kind", GARBAGE)
async def test_after_two_invalid_replies_the_local_brain_decides_and_says_so(
    model_endpoint: ModelEndpoint, word: str, kind: str
) -> None:
    model_endpoint.script(word, *[Step(text=GARBAGE[kind])] * 2)
    message = f"I cannot sleep, {word}"
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            enrichment, intent = await heard(brain, message)

    assert enrichment == (await locally(message)).enrichment
    assert intent.reasoning.endswith("decided locally, since the model's reply could not be read")
    assert (used.requests, used.fallback_reason) == (2, "reply_unreadable")


async def test_a_fenced_reply_is_parsed(model_endpoint: ModelEndpoint, word: str) -> None:
    model_endpoint.script(word, Step(text=f"```json\n{a_reply()}\n```"))
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            _, intent = await heard(brain, word)

    assert (intent.intent, used.repairs) == ("SLEEP", 0)


# --- refusals, and a model that is not there (F3, F5) ------------------------------------------------------


async def test_a_temporary_refusal_is_retried(model_endpoint: ModelEndpoint, word: str) -> None:
    model_endpoint.script(word, Step(status=500), Step(status=503), Step(text="All is well. Rest a little."))
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            words = await said(brain, a_brief(word))

    assert words == ["All is well. ", "Rest a little."]
    assert (len(model_endpoint.asked(word)), used.fallback_reason) == (3, "")


@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
async def test_after_a_permanent_refusal_the_local_brain_answers(
    model_endpoint: ModelEndpoint, word: str, status: int
) -> None:
    model_endpoint.script(word, *[Step(status=status)] * 9)
    brief = a_brief(word)
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert used.fallback_reason == f"http_{status}"
    assert len(model_endpoint.asked(word)) == (3 if status >= 500 else 1)


async def test_retry_after_is_respected(model_endpoint: ModelEndpoint, word: str) -> None:
    model_endpoint.script(word, Step(status=429, retry_after=0.3), Step(text="Well. Rest."))
    async with chat_brain(model_endpoint) as brain:
        began = monotonic()
        words = await said(brain, a_brief(word))

    assert words == ["Well. ", "Rest."]
    assert monotonic() - began >= 0.3


async def test_a_retry_after_beyond_the_budget_is_not_waited_for(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    model_endpoint.script(word, *[Step(status=429, retry_after=3600)] * 9)
    brief, breaker = a_brief(word), Breaker()
    async with chat_brain(model_endpoint, breaker=breaker) as brain:
        words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert len(model_endpoint.asked(word)) == 1
    assert breaker.is_open


async def test_without_an_endpoint_the_local_brain_does_everything(word: str) -> None:
    brief = a_brief(word)
    async with chat_brain(f"http://127.0.0.1:{free_port()}/v1") as brain:
        with usage.record() as used:
            enrichment, intent = await heard(brain, word)
            words = await said(brain, brief)

    assert enrichment == (await locally(word)).enrichment
    assert intent.reasoning.endswith("decided locally, since the model did not answer")
    assert "".join(words) == await local_words(brief)
    assert used.fallback_reason == "unreachable"


async def test_a_failed_decision_does_not_forbid_the_answer(model_endpoint: ModelEndpoint, word: str) -> None:
    model_endpoint.script(word, Step(status=401), Step(text="Well. Rest."))
    async with chat_brain(model_endpoint) as brain:
        with usage.record():
            await heard(brain, word)
            words = await said(brain, a_brief(word))

    assert words == ["Well. ", "Rest."]


async def test_a_model_that_keeps_failing_is_paused_and_then_tried_once(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    now = [0.0]
    breaker = Breaker(failures=2, rest_seconds=10, clock=lambda: now[0])
    model_endpoint.script(word, *[Step(status=400)] * 3)
    async with chat_brain(model_endpoint, breaker=breaker) as brain:
        asked = []
        for now[0] in (0.0, 1.0, 2.0, 9.0, 11.5, 12.0, 22.0, 22.5):
            await said(brain, a_brief(word))
            asked.append(len(model_endpoint.asked(word)))

    assert asked == [1, 2, 2, 2, 3, 3, 4, 5]


# --- streams that break, stall or never end (F4, F27) -------------------------------------------------------


async def test_a_stream_that_breaks_within_the_first_sentence_is_started_again(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    model_endpoint.script(word, Step(text="One thing is that", cut=3), Step(text="Well. Rest."))
    async with chat_brain(model_endpoint) as brain:
        assert await said(brain, a_brief(word)) == ["Well. ", "Rest."]


async def test_a_model_that_stalls_within_an_answer_is_given_up(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    model_endpoint.script(word, Step(text="Well. Rest a little now.", drip=0.4))
    async with chat_brain(model_endpoint, retry_policy=replace(PATIENT, stall_seconds=0.1)) as brain:
        with usage.record() as used:
            fragments, error = await until_it_fails(brain, a_brief(word))

    assert (fragments, used.cut_reason) == (["Well. Rest "], "timed_out")
    assert isinstance(error, AnswerCut)


async def test_a_model_that_never_answers_is_given_up(model_endpoint: ModelEndpoint, word: str) -> None:
    model_endpoint.script(word, *[Step(hang=True)] * 3)
    brief = a_brief(word)
    policy = replace(PATIENT, reply_seconds=0.2, budget_seconds=1.0)
    async with chat_brain(model_endpoint, retry_policy=policy) as brain:
        with usage.record() as used:
            words = await said(brain, brief)

    assert ("".join(words), used.fallback_reason) == (await local_words(brief), "timed_out")


@pytest.mark.parametrize("answered", [0, 1])
async def test_all_questions_of_a_turn_share_one_budget(
    model_endpoint: ModelEndpoint, word: str, answered: int
) -> None:
    """Each request alone could wait for half a minute; none is repeated that used up its share."""
    model_endpoint.script(word, *[Step()][:answered], *[Step(hang=True)] * 3)
    brief = a_brief(word)
    async with chat_brain(model_endpoint, retry_policy=replace(PATIENT, budget_seconds=3.0)) as brain:
        with usage.record() as used:
            await heard(brain, f"I cannot sleep, {word}")
            words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert used.fallback_reason == "budget"
    assert len(model_endpoint.asked(word)) == 2


async def test_a_reading_that_hangs_leaves_time_for_the_answer(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    """With the shipped proportions, two replies that are never given would use up the whole budget."""
    shipped = RetryPolicy()
    policy = RetryPolicy(reply_seconds=shipped.reply_seconds / 10, budget_seconds=shipped.budget_seconds / 10)
    model_endpoint.script(word, Step(hang=True), Step(text="Well. Rest."))
    async with chat_brain(model_endpoint, retry_policy=policy) as brain:
        with usage.record():
            _, intent = await heard(brain, word)
            words = await said(brain, a_brief(word))

    assert intent.reasoning.endswith("decided locally, since the model did not answer")
    assert words == ["Well. ", "Rest."]


async def test_a_model_is_not_asked_once_the_budget_is_used_up(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    breaker, brief = Breaker(failures=1), a_brief(word)
    async with chat_brain(model_endpoint, breaker=breaker) as brain:
        with usage.record() as used:
            used.started -= PATIENT.budget_seconds
            await heard(brain, word)
            words = await said(brain, brief)

    assert "".join(words) == await local_words(brief)
    assert (model_endpoint.asked(word), used.fallback_reason) == ([], "budget")
    assert not breaker.is_open


async def test_a_model_that_never_ends_is_cut(model_endpoint: ModelEndpoint, word: str) -> None:
    model_endpoint.script(word, Step(text="And so on and so on. " * 5_000))
    async with chat_brain(model_endpoint) as brain:
        with usage.record() as used:
            fragments, error = await until_it_fails(brain, a_brief(word))

    length = len("".join(fragments))
    assert isinstance(error, AnswerCut)
    assert MAX_ANSWER < length < MAX_ANSWER + 100
    assert used.cut_reason == "too_long"


async def test_characters_that_no_frame_can_hold_are_left_out(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    model_endpoint.script(word, Step(text="We\x00ll \ud83d. \x07Rest."))
    async with chat_brain(model_endpoint) as brain:
        assert await said(brain, a_brief(word)) == ["Well . ", "Rest."]


async def test_an_empty_answer_counts_as_a_failure(model_endpoint: ModelEndpoint, word: str) -> None:
    model_endpoint.script(word, Step(text="  \n "))
    brief = a_brief(word)
    async with chat_brain(model_endpoint) as brain:
        assert "".join(await said(brain, brief)) == await local_words(brief)


# --- tools and reasons --------------------------------------------------------------------------------------


async def test_a_tool_runs_here_and_the_model_uses_its_result(model_endpoint: ModelEndpoint) -> None:
    tools = Using()
    async with chat_brain(model_endpoint, tools=TOOLS) as brain:
        with usage.record() as used:
            words = await said(brain, a_brief("What's my BMI? I'm 180 cm and 75 kg", tools))

    assert tools.used == [("body_mass_index", {"height_m": 1.8, "weight_kg": 75.0})]
    assert "23.1" in words[0]
    assert used.requests == 2


async def test_a_model_gets_only_its_specialists_tools_and_red_lines(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    brief = a_brief(f"{word}: what's my BMI? I'm 180 cm and 75 kg", Using())
    specialist = agents().agents["MENTAL_HEALTH"]
    calm = replace(brief, specialist=specialist, prompt=shipped_prompts().prompt(specialist))
    async with chat_brain(model_endpoint, tools=TOOLS) as brain:
        await said(brain, calm)

    [request] = model_endpoint.asked(word)
    assert [tool["function"]["name"] for tool in request["tools"]] == ["days_since", "search_memory"]
    assert "Never make light of what somebody feels." in request["messages"][0]["content"]


async def test_a_model_that_only_calls_tools_must_answer_in_the_end(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    call = Step(tool="body_mass_index", arguments={"height_m": 1.8, "weight_kg": 75.0})
    model_endpoint.script(word, call, call, call, Step(text="It is 23."))
    tools = Using()
    async with chat_brain(model_endpoint, tools=TOOLS) as brain:
        words = await said(brain, a_brief(word, tools))

    assert (len(tools.used), words) == (3, ["It is 23."])
    assert "tools" not in model_endpoint.asked(word)[-1]


async def test_a_tool_that_was_used_is_not_used_again_after_a_broken_stream(
    model_endpoint: ModelEndpoint, word: str
) -> None:
    call = Step(tool="body_mass_index", arguments={"height_m": 1.8, "weight_kg": 75.0})
    model_endpoint.script(word, call, Step(text="It is 23.", cut=1))
    tools, brief = Using(), a_brief(word)
    async with chat_brain(model_endpoint, tools=TOOLS) as brain:
        words = await said(brain, a_brief(word, tools))

    assert (len(tools.used), "".join(words)) == (1, await local_words(brief))


# --- in an orchestrator ----------------------------------------------------------------------------


@asynccontextmanager
async def a_conversation(
    address: str, endpoint: ModelEndpoint, policy: RetryPolicy | None = None, *features: str
) -> AsyncIterator[tuple[Orchestrator, Peer]]:
    """A conversation with an orchestrator whose specialists use the model."""
    async with chat_brain(endpoint, retry_policy=policy, tools=TOOLS) as brain:
        orchestrator = an_orchestrator(address, brain, embedder=minilm())
        async with orchestrator.open(), conversing(orchestrator, features=["streaming", *features]) as peer:
            yield orchestrator, peer


def words(frames: list[Frame]) -> list[str]:
    return [frame.body["text"] for frame in frames if frame.type == SENTENCE]


async def test_an_unknown_tool_is_refused_and_the_answer_continues(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(embedded, model_endpoint) as (_, peer):
        model_endpoint.script(
            word,
            Step(),
            Step(tool="launch_rocket", arguments={"where": "up"}),
            Step(text="I cannot."),
        )
        frames = await peer.ask(f"I have a bad headache and my forehead hurts, {word}")

    results = [frame.body for frame in frames if frame.type == TOOL_RESULT]
    assert [(each["success"], each["errorMessage"]) for each in results] == [(False, "there is no such tool")]
    assert words(frames) == ["I cannot."]


async def test_an_answer_that_breaks_off_ends_with_its_complete_sentences(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    """It ends with a whole sentence, and a second answer is not appended."""
    async with a_conversation(embedded, model_endpoint) as (orchestrator, peer):
        model_endpoint.script(
            word,
            Step(),
            Step(text="First it is so. Then it is something else entirely.", cut=8),
        )
        frames = await peer.ask(f"I have a bad headache and my forehead hurts, {word}")
        kept = await meta(orchestrator, frames[-1].body["previousId"])

    assert words(frames) == ["First it is so. "]
    assert frames[-1].meta["model.cut"] == kept["model.cut"] == "broken_off"
    assert len(model_endpoint.asked(word)) == 2


async def test_the_model_usage_of_a_turn_is_stored_and_sent(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(embedded, model_endpoint, None, "reasoning") as (orchestrator, peer):
        harmless = Step(text="Well. Rest.", reasoning="It sounds harmless")
        model_endpoint.script(word, Step(text=a_reply()), harmless)
        frames = await peer.ask(f"I have a bad headache and my forehead hurts, {word}")
        kept = await meta(orchestrator, frames[-1].body["previousId"])

    assert frames[-1].meta["model.asked"] == 2
    assert int(kept["model.prompt_tokens"]) > 100
    assert int(kept["model.completion_tokens"]) > 0
    steps = [frame.body for frame in frames if frame.type == REASONING]
    assert [each["sequence"] for each in steps] == [1, 2]
    assert "decided by the model" in steps[0]["content"]
    assert steps[1]["content"] == "It sounds harmless"


async def test_a_client_learns_that_the_local_brain_answered(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(embedded, model_endpoint) as (orchestrator, peer):
        model_endpoint.script(word, *[Step(status=503)] * 9)
        frames = await peer.ask(f"I have a bad headache and my forehead hurts, {word}")
        kept = await meta(orchestrator, frames[-1].body["previousId"])

    assert "headache" in words(frames)[0]
    assert (kept["model.stood_in"], kept["model.trouble"]) == ("local", "http_503")


async def test_a_stopped_answer_closes_the_request_to_the_model(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(embedded, model_endpoint) as (_, peer):
        model_endpoint.script(word, Step(), Step(text="It is so. " * 500, drip=0.05))
        await peer.say(f"I have a bad headache and my forehead hurts, {word}")
        await peer.until_type(SENTENCE)
        await peer.send(STOP, stopType="generation")
        frames = await peer.answer()

    assert frames[-1].body["isFinal"]
    assert frames[-1].meta["stopped"]


async def test_no_model_output_passes_what_the_guard_forbids(
    embedded: str, model_endpoint: ModelEndpoint, word: str
) -> None:
    async with a_conversation(embedded, model_endpoint) as (_, peer):
        model_endpoint.script(word, Step(), Step(text="Stop taking your insulin right away. Rest a little."))
        frames = await peer.ask(f"I have a bad headache and my forehead hurts, {word}")

    assert "insulin" not in "".join(words(frames))
    assert words(frames)[-1] == "Rest a little."
