"""The seed's conversation through a real Letta server: its agents answer, over the WebSocket."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from letta_client import Letta
from letta_client.types import BlockResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memory_blocks.mirrors.letta import UNKNOWN_AUTHOR
from memory_blocks.models import Label
from orchestrator.orchestrator import Orchestrator
from orchestrator.settings import load
from orchestrator.store.engine.database import Transaction
from orchestrator.wiring import build_orchestrator
from tests.faults.http_proxy import listening
from tests.support.orchestrators import history, meta, over_websockets
from tests.support.protocol_client import (
    REASONING,
    SENTENCE,
    SERVER_INFO,
    STOP,
    TOOL_RESULT,
    TRACE,
    Frame,
    Peer,
    WebSocketLine,
    conversing,
)
from tests.support.servers.letta_helpers import assert_all_stand, until_synced
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address
from tools.servers.model_endpoint import ModelEndpoint, Step
from tools.servers.process import free_port

AT_ONCE = 4
"""A threshold above every confidence."""

READER, AGENT = "context_extractor", "letta:context_extractor"
SCALE = "How strong is the headache on a scale of 1 to 10?"
"""A question to which a bare number needs no model to be read."""

MEASURES = ["The person is 180 cm tall.", "The person weighs 75 kg."]
NOTE = "Prefers short answers."
PHASE = re.compile('"conversation_phase":"[^"]*"')
ADVICE, FOLLOW_UP = '"conversation_phase":"advice"', '"conversation_phase":"follow_up"'


@asynccontextmanager
async def a_letta_orchestrator(
    base_url: str, folder: Path, tag: str, *, patient: bool = True, copy_seconds: float = 60.0
) -> AsyncIterator[Orchestrator]:
    """The orchestrator of `anamnesis serve` with `LETTA_BASE_URL`; with default timeouts if not `patient`.

    With 0 `copy_seconds` the blocks are copied to Letta after every turn; by default, every few turns and in
    a pause of a minute, which is shorter than the shipped one, so that a test can wait for it.
    """
    given: dict[str, object] = {
        "data.dir": str(folder),
        "letta.base_url": base_url,
        "letta.model": LETTA_MODEL,
        "letta.embedding": LETTA_EMBEDDING,
        "letta.tag": tag,
        "letta.copy_seconds": copy_seconds,
    }
    if patient:
        waits = ("letta.sync_seconds", "brain.reply_seconds", "brain.budget_seconds")
        given.update(dict.fromkeys(waits, 60.0))
    async with build_orchestrator(load(given=given, environment={})).open() as orchestrator:
        yield orchestrator


@asynccontextmanager
async def a_conversation(orchestrator: Orchestrator, folder: Path) -> AsyncIterator[tuple[Peer, list[Frame]]]:
    """A WebSocket to it, and the result of the handshake."""
    async with over_websockets(orchestrator, folder) as dial, dial() as socket:
        peer = Peer(WebSocketLine(socket))
        yield peer, await peer.open(features=["streaming", "reasoning"])


def said(frames: list[Frame]) -> str:
    return "".join(frame.body["text"] for frame in frames if frame.type == SENTENCE)


@pytest.mark.requirement("001-008", "001-060", "001-038")
async def test_the_whole_seed_scenario_is_answered_by_letta_agents_and_every_read_and_write_is_traced(
    letta: Address, tag: str, tmp_path: Path
) -> None:  # F21
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        async with a_letta_orchestrator(letta.base_url, tmp_path, tag, copy_seconds=0) as orchestrator:
            async with a_conversation(orchestrator, tmp_path) as (peer, opening):
                conversation_id = peer.conversation_id
                first = await peer.ask("I am having a headache")
                await until_synced(orchestrator.store, conversation_id)
                extractor = the_extractor(client, tag)
                edit_in_next_run(letta, conversation_id, blocks_of(client, extractor))
                second = await peer.ask("It is an 8")
                await until_synced(orchestrator.store, conversation_id)

                there = blocks_of(client, extractor)
                by_hand = PHASE.sub(FOLLOW_UP, there[Label.ACTIVE_SESSION].value)
                client.blocks.update(block_id=there[Label.ACTIVE_SESSION].id, value=by_hand)
                client.blocks.update(block_id=there[Label.MEMORY_METADATA].id, value="not JSON")
                third = await peer.ask("What's my BMI? I'm 180 cm and 75 kg")
                await until_synced(orchestrator.store, conversation_id)
                turns = (await history(orchestrator, conversation_id)).turns
            health = await orchestrator.health()
            kept = await orchestrator.store.read(partial(everything_traced, conversation_id))
            written = await orchestrator.store.read(partial(everything_written, conversation_id))
            remembered = await orchestrator.store.read(partial(every_lasting_fact, "ann"))
            quarantined = await orchestrator.store.read(lambda tx: tx.blocks.quarantined(conversation_id))
            blocks = blocks_of(client, extractor)
            assert_all_stand(blocks.values(), orchestrator.store, conversation_id)

    (info,) = [frame.body for frame in opening if frame.type == SERVER_INFO]
    assert (info["backend"], info["model"]) == ("letta", {"name": LETTA_MODEL, "provider": "letta"})
    assert health.parts["model"] == "ok"

    # the sentences, and the agents that said them
    assert "scale" in said(first)
    assert '"8 out of 10"' in said(second)
    assert "23.1" in said(third)
    (result,) = [frame.body for frame in third if frame.type == TOOL_RESULT]
    assert result["result"]["bmi"] == 23.1
    for frames, asked in ((first, 2), (second, 2), (third, 3)):
        assert frames[-1].meta["model.asked"] == asked
        assert frames[-1].meta["model.prompt_tokens"] > 500
        assert "model.stood_in" not in frames[-1].meta
        (step,) = [frame.body for frame in frames if frame.type == REASONING]
        assert "decided by the model" in step["content"]
    assert [turn.agent_response.content for turn in turns if turn.agent_response] == [
        said(frames) for frames in (first, second, third)
    ]

    # every read and write has its trace: each trace was sent as a frame, each revision has one
    output = [trace_in(frame) for frames in (first, second, third) for frame in frames if frame.type == TRACE]
    assert sorted(output) == sorted(kept)
    changed = [each[2:] for each in output if each[1] in ("stored", "updated")]
    of_blocks = [each for each in changed if each[0] in set(Label)]
    assert sorted(of_blocks) == sorted(written)
    of_facts = [each for each in changed if each[0] not in set(Label)]
    assert sorted(of_facts) == sorted((memory_id, 0, "", READER) for memory_id in remembered)
    assert sorted(remembered.values()) == MEASURES
    for frames in (first, second, third):
        assert reads(frames, READER) == Counter(Label)
        assert writes(frames, READER).keys() == set(Label)

    # the agent's edits, and those by hand
    assert (
        writes(second, AGENT)[Label.ACTIVE_SESSION]
        == writes(third, UNKNOWN_AUTHOR)[Label.ACTIVE_SESSION]
        == 1
    )
    assert writes(second, AGENT)[Label.CONTEXT_SUMMARY] >= 1
    assert NOTE in blocks[Label.CONTEXT_SUMMARY].value
    assert [(each.label, each.value, each.actor) for each in quarantined] == [
        (Label.MEMORY_METADATA, "not JSON", UNKNOWN_AUTHOR)
    ]
    assert reads(third, UNKNOWN_AUTHOR) == Counter([Label.MEMORY_METADATA])  # the quarantine


def the_extractor(client: Letta, tag: str) -> str:
    (found,) = client.agents.list(tags=["role:extractor", tag], match_all_tags=True)
    return found.id


def blocks_of(client: Letta, agent_id: str) -> dict[str | None, BlockResponse]:
    return {each.label: each for each in client.agents.blocks.list(agent_id=agent_id)}


def edit_in_next_run(
    letta: Address, conversation_id: str, blocks: Mapping[str | None, BlockResponse]
) -> None:
    """Let the extractor replace and append text with its own tools before it returns its result."""
    (phase,) = PHASE.findall(blocks[Label.ACTIVE_SESSION].value)
    replaced = {"label": Label.ACTIVE_SESSION, "old_content": phase, "new_content": ADVICE}
    ModelEndpoint(letta.models_url).script(
        conversation_id,
        Step(tool="core_memory_replace", arguments=replaced),
        Step(tool="core_memory_append", arguments={"label": Label.CONTEXT_SUMMARY, "content": NOTE}),
    )


Traced = tuple[str, str, str, int, str, str]
"""A trace: its id, action, block, revision, digest and actor; of a lasting fact, its id and no revision."""


def trace_in(frame: Frame) -> Traced:
    about = frame.body["metadata"]
    return (
        frame.body["id"],
        frame.body["action"],
        *traced_memory(frame.body["memoryId"], about),
        about["agent"],
    )


def traced_memory(memory_id: str, about: Mapping[str, Any]) -> tuple[str, int, str]:
    return (about["label"], about["revision"], about["digest"]) if "label" in about else (memory_id, 0, "")


def everything_traced(conversation_id: str, tx: Transaction) -> list[Traced]:
    rows = tx.traces.of_conversation(conversation_id)
    return [
        (row.id, row.action, *traced_memory(row.memory_id, cast(dict[str, Any], row.meta)), row.actor or "")
        for row in rows
    ]


def everything_written(conversation_id: str, tx: Transaction) -> list[tuple[str, int, str, str]]:
    return [
        (label.value, each.revision, each.digest, each.actor)
        for label in Label
        for each in tx.blocks.revisions(conversation_id, label)
    ]


def every_lasting_fact(person_id: str, tx: Transaction) -> dict[str, str]:
    """What is kept of the person beyond the conversation, by the memories' ids."""
    return {each.id: each.content for each in tx.memories.of_person(person_id) if each.source_type == "fact"}


def reads(frames: list[Frame], actor: str) -> Counter[str]:
    return touched(frames, actor, "retrieved")


def writes(frames: list[Frame], actor: str) -> Counter[str]:
    return touched(frames, actor, "stored", "updated")


def touched(frames: list[Frame], actor: str, *actions: str) -> Counter[str]:
    """The number of traces of each block, of this actor and these actions."""
    traces = [trace_in(frame) for frame in frames if frame.type == TRACE]
    return Counter(
        label
        for _, action, label, *_, by in traces
        if label in set(Label) and by == actor and action in actions
    )


async def test_with_default_settings_agents_answer_conversations_that_begin_at_the_same_time(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    async def converse(orchestrator: Orchestrator, person: str) -> list[str]:
        async with conversing(orchestrator, person, features=["streaming"]) as peer:
            await peer.ask("I am having a headache")
            later = [await peer.ask(text) for text in ("8", "since Tuesday")]
        return [frames[-1].meta.get("model.trouble", "") for frames in later]

    async with a_letta_orchestrator(letta.base_url, tmp_path, tag, patient=False) as orchestrator:
        talks = await asyncio.gather(
            *(converse(orchestrator, f"person_{number}") for number in range(AT_ONCE))
        )

    troubles = [trouble for talk in talks for trouble in talk]
    by_letta = troubles.count("")
    assert by_letta > len(troubles) / 2, troubles  # all of them on an idle machine


async def test_a_stopped_answer_ends_at_once_and_the_next_turn_works(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
        a_conversation(orchestrator, tmp_path) as (peer, _),
    ):
        endless = Step(text="It is so. " * 300, drip=0.05)
        reading, asking = Step(), Step(text=SCALE)  # the number is then read without the model
        ModelEndpoint(letta.models_url).script(peer.conversation_id, reading, asking, endless)
        await peer.ask("I am having a headache")
        await peer.say("8")
        await peer.until_type(SENTENCE)
        await peer.send(STOP, stopType="generation")
        stopped = await peer.answer()
        following = await peer.ask("since Tuesday")

    assert said(stopped).startswith("It is so. ") or said(stopped) == ""
    assert stopped[-1].meta["stopped"]
    assert "model.stood_in" not in following[-1].meta


async def test_without_letta_the_local_brain_answers_from_the_same_memory(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
        a_conversation(orchestrator, tmp_path) as (peer, _),
    ):
        await peer.ask("I am having a headache")
        conversation_id = peer.conversation_id

    async with (
        a_letta_orchestrator(f"http://127.0.0.1:{free_port()}", tmp_path, tag) as orchestrator,
        over_websockets(orchestrator, tmp_path) as dial,
        dial() as socket,
    ):
        peer = Peer(WebSocketLine(socket))
        await peer.open(conversation_id, features=["streaming"])
        frames = await peer.ask("8")
        kept = await meta(orchestrator, frames[-1].body["previousId"])
        health = await orchestrator.health()

    assert '"8 out of 10"' in said(frames)
    assert (kept["model.stood_in"], kept["model.trouble"]) == ("local", "unreachable")
    assert health.parts["model"] == "down: model_unavailable"


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[str]:
    """The address of a server that answers everything with 200 and the same body."""

    async def answer(_: Request) -> Response:
        return Response(body, media_type="application/json")

    everything = Route("/{path:path}", answer, methods=["GET", "POST", "PATCH", "DELETE"])
    async with listening(Starlette(routes=[everything])) as url:
        yield url


@pytest.mark.parametrize("body", [b"{}", b'{"detail":"maintenance"}', b"[]", b"null", b"<html>"])
async def test_if_another_server_answers_in_place_of_letta_the_local_brain_answers(
    tmp_path: Path, body: bytes
) -> None:
    async with (
        answering(body) as url,
        a_letta_orchestrator(url, tmp_path, "test") as orchestrator,
        a_conversation(orchestrator, tmp_path) as (peer, _),
    ):
        for text in ("I am having a headache", "8"):
            frames = await peer.ask(text)

            assert frames[-1].code is None
            assert frames[-1].meta["model.stood_in"] == "local"

    assert '"8 out of 10"' in said(frames)
