"""One turn on the wire and in the tables: what is sent is stored, in the order in which it is sent."""

import asyncio
import hashlib
import json
import re
from typing import Any

import pytest
import structlog

from agents.errors import BrainFailed
from agents.models.scripted import ScriptedBrain, ScriptedRecall
from agents.ports import MemoryHit
from agents.values import Intent
from memory_blocks.models import TurnStatus
from orchestrator.ops.foreground import Foreground
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from tests.support.orchestrators import (
    ANN,
    a_store,
    an_orchestrator,
    everything,
    history,
    local_brain,
    message,
    messages,
    meta,
    rows,
    turn,
)
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    ASSISTANT_MESSAGE,
    ERROR,
    NOTE,
    REASONING,
    SENTENCE,
    START_ANSWER,
    TIMEOUT,
    TRACE,
    VARIATION,
    Frame,
    conversing,
    new_id,
    visiting,
)
from tests.support.stores import on_both_databases

THREE = ("One. ", "Two. ", "Three.")
BLOCKS = ["conversation_history", "active_session", "context_summary", "memory_metadata"]


def of_type(type: int, frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame.type == type]


def texts(frames: list[Frame]) -> list[str]:
    return [frame.body["text"] for frame in of_type(SENTENCE, frames)]


@pytest.mark.requirement("000-026", "000-027", "000-033", "000-034", "000-009", "003-158", "003-159")
@on_both_databases
async def test_a_turn_is_sent_in_the_order_of_the_protocol(address: str) -> None:
    async with (
        an_orchestrator(address, ScriptedBrain(answers=[THREE])).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        message_id = await peer.say()
        frames = await peer.answer()

        sent = [(frame.type, frame.body.get("action")) for frame in frames]
        assert sent == [
            (ACKNOWLEDGEMENT, None),
            (START_ANSWER, None),
            *[(TRACE, "retrieved")] * 4,
            (SENTENCE, None),
            (SENTENCE, None),
            *[(TRACE, "stored")] * 4,
            (SENTENCE, None),
        ]
        assert [frame.stanza for frame in frames] == list(range(-1, -len(frames) - 1, -1))
        begun, sentences, traces = frames[1], of_type(SENTENCE, frames), of_type(TRACE, frames)
        assert begun.body["previousId"] == message_id
        assert begun.body["answerType"] == "text"
        assert texts(frames) == list(THREE)
        assert [sentence.body["sequence"] for sentence in sentences] == [1, 2, 3]
        assert [sentence.body["isFinal"] for sentence in sentences] == [False, False, True]
        assert {sentence.body["previousId"] for sentence in sentences} == {begun.body["id"]}
        assert {trace.body["previousId"] for trace in traces} == {message_id}
        assert len({frame.body["id"] for frame in frames[1:]}) == len(frames) - 1
        assert [trace.body["metadata"]["label"] for trace in traces] == [*BLOCKS, *BLOCKS]


async def test_work_in_the_background_waits_until_an_answer_has_ended(address: str) -> None:
    foreground, goes_on = Foreground(), asyncio.Event()
    brain = ScriptedBrain(answers=[("One. ", goes_on, "Two.")])
    async with (
        an_orchestrator(address, brain, foreground=foreground).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.say()
        await peer.until_type(START_ANSWER)
        waiting = asyncio.create_task(foreground.is_idle_within(TIMEOUT))
        await asyncio.wait([waiting], timeout=0.1)
        waited = not waiting.done()

        goes_on.set()
        await peer.answer()

        assert (waited, await waiting) == (True, True)


@pytest.mark.requirement(
    "000-006", "000-007", "000-008", "000-019", "000-038", "000-041", "000-042", "000-045"
)
@pytest.mark.requirement("000-046", "000-047", "000-048", "000-049", "003-084", "003-071", "003-162")
async def test_every_trace_is_a_row_that_says_the_same_and_a_line_in_the_log(address: str) -> None:
    async with (
        an_orchestrator(address, recall=await a_recall(address)).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        with structlog.testing.capture_logs() as logged:
            message_id = await peer.say()
            frames = await peer.answer()
            frames += await peer.ask("It is an 8")
            traces = of_type(TRACE, frames)
            async with asyncio.timeout(TIMEOUT):  # a frame may arrive before its log line is written
                while sum(line["event"] == "memory_traced" for line in logged) < len(traces):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

        stored = await orchestrator.store.read(lambda tx: tx.traces.of_conversation(peer.conversation_id))
        by_id = {row.id: row for row in stored}
        assert sorted(by_id) == sorted(trace.body["id"] for trace in traces)
        for trace in traces:
            row, body = by_id[trace.body["id"]], trace.body
            assert body["conversationId"] == row.conversation_id == peer.conversation_id
            assert body["previousId"] == body["messageId"] == row.message_id
            assert (body["memoryId"], body["memoryType"]) == (row.memory_id, row.memory_type)
            assert (body["action"], body["content"]) == (row.action, row.content)
            assert body.get("confidence") == body.get("relevance") == row.confidence == row.similarity_score
            assert body["metadata"] == row.meta
            assert row.actor == body["metadata"]["agent"] == "context_extractor"
            assert (0 < len(body["content"]) <= 300, "truncated" in body["metadata"]) == (True, False)
            assert bool(body["metadata"].get("changed")) == (body["action"] != "retrieved")
        emitted = [by_id[trace.body["id"]].created_at for trace in traces]
        assert emitted == sorted(emitted)
        lines = [line["memory_trace_id"] for line in logged if line["event"] == "memory_traced"]
        assert lines == [trace.body["id"] for trace in traces]
        of_message = await orchestrator.store.read(lambda tx: tx.traces.of_message(message_id))
        assert {row.id for row in of_message} == {
            trace.body["id"] for trace in traces if trace.body["previousId"] == message_id
        }


HITS = (("Drinks tea", 0.9), ("Has a cat", 0.4), ("Slept badly", 1.0000001))


async def a_recall(address: str) -> ScriptedRecall:
    """Memories that recall finds, best first."""
    async with an_orchestrator(address).open() as orchestrator:

        def add(tx: Transaction) -> list[MemoryHit]:
            return [
                MemoryHit(
                    tx.memories.add(NewMemory(content=content, user_id=ANN, tags=("home",))).id,
                    content,
                    score,
                    memory_type="user_preference",
                    tags=("home",),
                    source="user_profile",
                    query_prompt="headache",
                    position=position,
                    role="primary",
                )
                for position, (content, score) in enumerate(HITS, start=1)
            ]

        return ScriptedRecall(*await orchestrator.store.write(add))


@pytest.mark.requirement("000-011")
async def test_the_trace_of_a_block_says_in_one_line_what_the_turn_changed(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I am having a headache " * 40)
        traces = [
            frame.body for frame in of_type(TRACE, await peer.ask("8")) if frame.body["action"] == "updated"
        ]

        blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(peer.conversation_id))
        for trace in traces:
            block, about = blocks[trace["metadata"]["label"]], trace["metadata"]
            text = block.value or ""
            assert (trace["memoryId"], about["revision"]) == (block.memory_id, block.revision)
            assert about["size"] == len(text)
            assert about["digest"] == hashlib.sha256(text.encode()).hexdigest()
            assert about["utilization"] == round(about["utilization"], 1)
        lines = {trace["metadata"]["label"]: trace["content"] for trace in traces}
        assert lines["conversation_history"] == 'turn 2 added: User says: "8"'
        assert lines["memory_metadata"].startswith("history ")
        assert all("\n" not in line and not line.startswith("{") for line in lines.values())


@pytest.mark.requirement("000-015", "000-018", "000-028", "000-029", "003-071", "003-158")
@pytest.mark.requirement(
    "003-072", "003-073", "003-074", "003-075", "003-076", "003-078", "003-079", "003-080"
)
async def test_each_long_term_memory_that_was_used_is_traced_with_its_score(address: str) -> None:
    brain, recall = ScriptedBrain(), await a_recall(address)
    async with (
        an_orchestrator(address, brain, recall=recall).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask()

        traces = [
            trace.body for trace in of_type(TRACE, frames) if trace.body["memoryType"] != "memory_block"
        ]
        assert [(trace["content"], trace["confidence"]) for trace in traces] == [
            ("Drinks tea", 0.9),
            ("Has a cat", 0.4),
            ("Slept badly", 1.0),
        ]
        assert [trace["metadata"] for trace in traces] == [
            {
                "agent": "context_extractor",
                "retrievalScore": trace["relevance"],
                "tags": ["home"],
                "source": "user_profile",
                "queryPrompt": "headache",
                "position": position,
                "role": "primary",
            }
            for position, trace in enumerate(traces, start=1)
        ]
        (brief,) = brain.briefs
        assert [hit.memory_id for hit in brief.recalled.memories] == [trace["memoryId"] for trace in traces]
        assert [frame.type for frame in frames[6:10]] == [TRACE, TRACE, TRACE, SENTENCE]
        columns = "query_prompt, position_in_results FROM alicia_memory_used WHERE confidence IS NOT NULL"
        asked = await rows(orchestrator, f"SELECT {columns} ORDER BY position_in_results")
        assert asked == [("headache", 1), ("headache", 2), ("headache", 3)]


@pytest.mark.requirement(
    "003-033", "003-034", "003-035", "003-050", "003-051", "003-037", "003-038", "003-039"
)
async def test_an_answer_grows_in_the_tables_as_it_is_sent(address: str) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    brain = ScriptedBrain(answers=[(first, "One. ", "Two. ", "Thr", second, "ee.")])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        answer_id = (await peer.until_type(START_ANSWER))[-1].body["id"]
        begun = await message(orchestrator, answer_id)
        assert (begun.message_role, begun.previous_id) == ("assistant", message_id)
        assert (begun.contents, begun.completion_status) == ("", "streaming")

        first.set()
        await peer.until_type(SENTENCE)
        halfway = await message(orchestrator, answer_id)
        assert (halfway.contents, halfway.completion_status) == ("One. ", "streaming")

        second.set()
        await peer.answer()
        whole = await message(orchestrator, answer_id)
        assert (whole.contents, whole.completion_status) == ("One. Two. Three.", "completed")
        sentences = await orchestrator.store.read(lambda tx: tx.messages.sentences(answer_id))
        assert [(each.sentence_sequence_number, each.text) for each in sentences] == [
            (1, "One. "),
            (2, "Two. "),
            (3, "Three."),
        ]
        assert {each.completion_status for each in sentences} == {"completed"}


@pytest.mark.requirement("003-164")
async def test_the_times_of_sentences_show_how_fast_an_answer_came(address: str) -> None:
    async with (
        an_orchestrator(address, ScriptedBrain(answers=[THREE])).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask()
        answer = await message(orchestrator, frames[1].body["id"])
        sentences = await orchestrator.store.read(lambda tx: tx.messages.sentences(answer.id))

        moments = [answer.created_at, *(sentence.created_at for sentence in sentences)]
        assert moments == sorted(moments)
        assert [sentence.id for sentence in sentences] == [
            frame.body["id"] for frame in of_type(SENTENCE, frames)
        ]


async def test_the_conversation_about_a_headache_works_without_a_model(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        first = await peer.ask("I am having a headache")
        second = await peer.ask("8")

        assert "How severe is it on a scale of 1 to 10?" in [text.strip() for text in texts(first)]
        assert [frame.body["action"] for frame in of_type(TRACE, second)][4:] == ["updated"] * 4
        chain = [each.previous_id for each in await messages(orchestrator, peer.conversation_id)]
        ids = [each.id for each in await messages(orchestrator, peer.conversation_id)]
        assert chain == [None, *ids[:-1]]
        remembered = (await history(orchestrator, peer.conversation_id)).turns
        assert [each.user_message.content for each in remembered] == ["I am having a headache", "8"]
        assert [each.turn_status for each in remembered] == [TurnStatus.COMPLETED] * 2
        understood = remembered[1].context_enrichment
        assert understood is not None
        assert understood.enriched_message == "User rates headache severity as 8 out of 10 (severe)"


async def test_a_client_that_wants_reasoning_gets_the_reason_for_the_intent(address: str) -> None:
    brain = ScriptedBrain(intents=[Intent(intent="GENERAL_HEALTH", confidence=0.8, reasoning="It hurts")])
    async with (
        an_orchestrator(address, brain).open() as orchestrator,
        conversing(orchestrator, features=["streaming", "reasoning"]) as peer,
    ):
        frames = await peer.ask()
        [step] = of_type(REASONING, frames)

        start = of_type(START_ANSWER, frames)[0]
        assert step.body == {
            "id": step.body["id"],
            "conversationId": peer.conversation_id,
            "messageId": start.body["id"],
            "sequence": 1,
            "content": "It hurts",
        }
        assert [frame.type for frame in frames[1:7]] == [START_ANSWER, *[TRACE] * 4, REASONING]


async def test_a_client_that_does_not_want_reasoning_gets_none(address: str) -> None:
    async with (
        an_orchestrator(address).open() as orchestrator,
        conversing(orchestrator, features=["streaming"]) as peer,
    ):
        assert of_type(REASONING, await peer.ask()) == []


# --- without streaming --------------------------------------------------------------------------------------


@pytest.mark.requirement("003-032")
@pytest.mark.parametrize("features", [[], ["reasoning", "tools"]], ids=["none", "others"])
async def test_a_client_without_streaming_gets_one_message_after_its_traces(
    address: str, features: list[str]
) -> None:
    async with (
        an_orchestrator(address, ScriptedBrain(answers=[THREE])).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        message_id = await peer.say()
        frames = await peer.answer()

        assert [frame.type for frame in frames] == [ACKNOWLEDGEMENT, *[TRACE] * 8, ASSISTANT_MESSAGE]
        said = frames[-1].body
        assert (said["content"], said["previousId"]) == ("One. Two. Three.", message_id)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said["timestamp"])
        row = await message(orchestrator, said["id"])
        assert (row.contents, row.previous_id) == ("One. Two. Three.", message_id)
        assert (row.message_role, row.completion_status) == ("assistant", "completed")
        assert await rows(orchestrator, "SELECT count(*) FROM alicia_sentences") == [(0,)]
        assert (await turn(orchestrator, message_id)).answer_id == row.id


async def test_features_that_change_between_two_messages_change_the_next_answer(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        assert START_ANSWER in [frame.type for frame in await peer.ask()]

        await peer.send(12, features=[])
        await peer.until_type(ACKNOWLEDGEMENT)

        assert START_ANSWER not in [frame.type for frame in await peer.ask("It is an 8")]


# --- turns that go wrong ------------------------------------------------------------------------------------

WRONG: dict[str, dict[str, Any]] = {
    "understand": {"enrichments": [BrainFailed("scripted", "understand")]},
    "speak": {"answers": [(BrainFailed("scripted", "speak"),)]},
    "speak on": {"answers": [("One. ", "Two. ", "Thr", BrainFailed("scripted", "speak"))]},
}


@pytest.mark.parametrize("part", WRONG)
@pytest.mark.parametrize("features", [["streaming"], []], ids=["sentences", "whole"])
async def test_a_turn_that_fails_ends_with_an_error_and_the_next_one_works(
    address: str, part: str, features: list[str]
) -> None:
    async with (
        an_orchestrator(address, ScriptedBrain(**WRONG[part])).open() as orchestrator,
        conversing(orchestrator, features=features) as peer,
    ):
        message_id = await peer.say("I am having a headache")
        frames = await peer.answer()

        error = frames[-1]
        assert (error.type, error.code, error.body["recoverable"]) == (ERROR, 503, True)
        assert (error.body["originatingId"], error.meta) == (message_id, {"error": "model_unavailable"})
        failed = await turn(orchestrator, message_id)
        assert (failed.state, failed.error) == ("failed", "model_unavailable")
        row = await message(orchestrator, failed.answer_id or "")
        assert (row.completion_status, row.previous_id) == ("failed", message_id)
        said = "One. " if part == "speak on" and features else ""
        assert row.contents == said == "".join(texts(frames))
        assert await meta(orchestrator, error.body["id"]) == {"error": "model_unavailable"}
        (remembered,) = (await history(orchestrator, peer.conversation_id)).turns
        assert (remembered.turn_status, remembered.error) == (TurnStatus.IN_PROGRESS, "model_unavailable")

        assert (await peer.ask("And now?"))[-1].code is None
        assert [each.turn_id for each in (await history(orchestrator, peer.conversation_id)).turns] == [1, 2]


async def test_an_unexpected_error_is_internal_and_quotes_nothing(address: str) -> None:
    brain = ScriptedBrain(enrichments=[RuntimeError("I am having a headache")])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        error = (await peer.ask("I am having a headache"))[-1]

        assert error.code == 501
        assert "headache" not in error.body["message"]
        await peer.ask("And now?")


async def test_an_answer_that_takes_too_long_is_closed_as_timed_out(address: str) -> None:
    brain = ScriptedBrain(answers=[("One. ", "Two. ", "Thr", asyncio.Event())])
    async with (
        an_orchestrator(address, brain, deadline_seconds=0.3).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        message_id = await peer.say()
        frames = await peer.answer()

        assert (frames[-1].code, frames[-1].body["originatingId"]) == (505, message_id)
        assert (await turn(orchestrator, message_id)).error == "turn_timed_out"
        assert (await message(orchestrator, frames[1].body["id"])).completion_status == "failed"
        assert brain.closed == len(brain.briefs)
        (remembered,) = (await history(orchestrator, peer.conversation_id)).turns
        said = remembered.agent_response.content if remembered.agent_response else ""
        assert said == "".join(texts(frames))
        await peer.ask("And now?")


async def left_behind(address: str, *, attempts: int) -> tuple[str, str]:
    """A conversation with an acknowledged message that has crashed this many processes."""
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        conversation_id = peer.conversation_id
    store, message_id = a_store(address), new_id()

    def leave(tx: Transaction) -> None:
        tx.messages.append(conversation_id, "user", "boom", id=message_id)
        waiting = tx.turns.enqueue(conversation_id, message_id)
        for _ in range(attempts):
            tx.turns.begin(conversation_id, waiting.number, deadline=tx.now)

    await store.write(leave)
    await store.close()
    return conversation_id, message_id


async def test_a_message_that_was_not_answered_is_answered_by_the_next_orchestrator(address: str) -> None:
    conversation_id, message_id = await left_behind(address, attempts=2)

    async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as peer:
        await peer.open(conversation_id, lastSequenceSeen=0)
        frames = await peer.answer()

        assert (frames[0].type, frames[0].body["previousId"]) == (START_ANSWER, message_id)
        assert ((await turn(orchestrator, message_id)).attempts, frames[-1].body["isFinal"]) == (3, True)


async def test_a_message_that_crashed_three_processes_is_set_aside(address: str) -> None:
    conversation_id, message_id = await left_behind(address, attempts=3)
    brain = ScriptedBrain()

    async with an_orchestrator(address, brain).open() as orchestrator, visiting(orchestrator) as peer:
        await peer.open(conversation_id, lastSequenceSeen=0)
        (error,) = await peer.answer()

        assert (error.code, error.body["originatingId"]) == (501, message_id)
        assert (error.meta, brain.messages) == ({"error": "poison_message"}, [])
        assert (await turn(orchestrator, message_id)).state == "failed"
        assert (await everything(orchestrator))[
            "alicia_memory_used"
        ] == 0  # reading the blocks may be what crashes
        await peer.ask("And now?")
        assert brain.messages == ["And now?"]


async def test_a_message_that_was_set_aside_can_be_regenerated_by_its_own_id(address: str) -> None:
    conversation_id, message_id = await left_behind(address, attempts=3)

    async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as peer:
        await peer.open(conversation_id, lastSequenceSeen=0)
        (error,) = await peer.answer()

        await peer.send(VARIATION, mode="regenerate", targetId=message_id)
        frames = await peer.answer()

        assert (frames[1].type, frames[1].body["previousId"]) == (START_ANSWER, message_id)
        assert frames[-1].body["isFinal"]
        now = await turn(orchestrator, message_id)
        assert (now.state, now.attempts) == ("completed", 1)
        assert (await meta(orchestrator, error.body["id"]))["superseded"] == "true"
        assert "superseded" not in await meta(orchestrator, message_id)


async def test_an_answer_continues_when_the_client_has_left(address: str) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(answers=[("One. ", "Two. ", "Thr", hold, "ee.")])
    async with an_orchestrator(address, brain).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.say()
            received = await peer.until_type(SENTENCE)
        hold.set()

        async with visiting(orchestrator) as again:
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=peer.seen)
            rest = await again.answer()

        assert texts(received + rest) == list(THREE)


# --- meta ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("003-135", "003-136", "003-137", "003-138", "003-140", "003-165")
@pytest.mark.requirement("003-129", "003-130", "003-131")
async def test_each_pair_of_an_envelopes_meta_is_a_row_about_its_body(address: str) -> None:
    span = {"messaging.trace_id": "0af7651916cd43dd8448eb211c80319c", "messaging.span_id": "b7ad6b7169203331"}
    about = {"source": "microphone", "retries": 2, "loud": True, "level": 0.5, "nothing": None, **span}
    async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as peer:
        await peer.open(meta={"client.version": "1.2", "platform": "web"})
        message_id = await peer.say(meta=about)
        await peer.answer()
        note = new_id("note_")
        await peer.request(NOTE, id=note, content="hm", action="create", meta={"mood": "calm"})

        kept = await meta(orchestrator, message_id)
        assert kept == {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
        }
        assert await meta(orchestrator, peer.conversation_id) == {"client.version": "1.2", "platform": "web"}
        assert await meta(orchestrator, note) == {"mood": "calm"}
        trace_id = span["messaging.trace_id"]
        (found,) = await orchestrator.store.read(lambda tx: tx.meta.find("messaging.trace_id", trace_id))
        assert found.ref == message_id


async def test_a_whole_answer_that_is_too_large_for_a_frame_fails_once_and_the_next_message_works(
    address: str,
) -> None:
    brain = ScriptedBrain(answers=[[("So it is, " * 180 + "indeed. ") * 150]])
    async with (
        an_orchestrator(address, brain).open() as orchestrator,
        conversing(orchestrator, features=[]) as peer,
    ):
        message_id = await peer.say()
        error = (await peer.answer())[-1]
        after = await peer.ask("And now?")

        assert (error.code, error.body["originatingId"]) == (103, message_id)
        assert (await turn(orchestrator, message_id)).attempts == 1
        assert after[-1].type == ASSISTANT_MESSAGE


@pytest.mark.requirement("001-001")
async def test_a_message_is_understood_with_the_four_blocks(address: str) -> None:
    brain = ScriptedBrain()
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I am having a headache")
        frames = await peer.ask("8")

    read = {frame.body["metadata"]["label"] for frame in frames if frame.type == TRACE}
    assert read == set(BLOCKS)
    assert (
        brain.situations[1].blocks.conversation_history.turns[0].user_message.content
        == "I am having a headache"
    )
    assert brain.situations[1].blocks.active_session.conversation_state.current_turn == 1
