"""The seed's conversation through a real Letta server: its agents answer, over the WebSocket."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from letta_client import Letta
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memory_blocks.models import Label
from orchestrator.house import House
from orchestrator.settings import load
from orchestrator.wiring import build_house
from tests.faults.http_proxy import listening
from tests.houses import history, meta, over_websockets
from tests.lettas import assert_all_stand, shown
from tests.peers import (
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
from tools.model_endpoint import ModelEndpoint, Step
from tools.servers.keeper import free_port
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address


@asynccontextmanager
async def a_letta_house(
    base_url: str, folder: Path, tag: str, *, patient: bool = True
) -> AsyncIterator[House]:
    """A house as `anamnesis serve` opens it where `LETTA_BASE_URL` is set; as shipped, if not `patient`."""
    given: dict[str, object] = {
        "data.dir": str(folder),
        "letta.base_url": base_url,
        "letta.model": LETTA_MODEL,
        "letta.embedding": LETTA_EMBEDDING,
        "letta.tag": tag,
    }
    if patient:
        waits = ("letta.show_seconds", "brain.reply_seconds", "brain.budget_seconds")
        given.update(dict.fromkeys(waits, 60.0))
    async with build_house(load(given=given, environment={})).open() as house:
        yield house


@asynccontextmanager
async def a_conversation(house: House, folder: Path) -> AsyncIterator[tuple[Peer, list[Frame]]]:
    """A WebSocket to it, with what the handshake said."""
    async with over_websockets(house, folder) as dial, dial() as socket:
        peer = Peer(WebSocketLine(socket))
        yield peer, await peer.open(features=["streaming", "reasoning"])


def said(frames: list[Frame]) -> str:
    return "".join(frame.body["text"] for frame in frames if frame.type == SENTENCE)


def traced(frames: list[Frame]) -> Counter[tuple[str, str]]:
    """How often which block was read or written, as the traces tell."""
    return Counter(
        (frame.body["action"], frame.body["metadata"]["label"]) for frame in frames if frame.type == TRACE
    )


async def test_the_whole_seed_scenario_is_answered_by_letta_agents(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    async with a_letta_house(letta.base_url, tmp_path, tag) as house:
        async with a_conversation(house, tmp_path) as (peer, opening):
            first = await peer.ask("I am having a headache")
            second = await peer.ask("8")
            third = await peer.ask("What's my BMI? I'm 180 cm and 75 kg")
            turns = (await history(house, peer.conversation_id)).turns
        health = await house.health()
        await shown(house.store, peer.conversation_id)
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            (extractor,) = client.agents.list(tags=["role:extractor", tag], match_all_tags=True)
            blocks = list(client.agents.blocks.list(agent_id=extractor.id))
        assert_all_stand(blocks, house.store, peer.conversation_id)

    (info,) = [frame.body for frame in opening if frame.type == SERVER_INFO]
    assert (info["backend"], info["model"]) == ("letta", {"name": LETTA_MODEL, "provider": "letta"})
    assert health.parts["model"] == "ok"
    assert "scale" in said(first)
    assert "severe headache" in said(second)
    for frames, asked in ((first, 1), (second, 1), (third, 2)):
        assert frames[-1].meta["model.asked"] == asked
        assert frames[-1].meta["model.prompt_tokens"] > 500
        assert "model.stood_in" not in frames[-1].meta
        (step,) = [frame.body for frame in frames if frame.type == REASONING]
        assert "sure without the model" in step["content"]
    (result,) = [frame.body for frame in third if frame.type == TOOL_RESULT]
    assert result["result"]["bmi"] == 23.1
    assert "23.1" in said(third)
    for frames, action in ((first, "stored"), (second, "updated"), (third, "updated")):
        assert traced(frames) == Counter(
            {(done, label): 1 for label in Label for done in ("retrieved", action)}
        )
    assert [turn.agent_response.content for turn in turns if turn.agent_response] == [
        said(first),
        said(second),
        said(third),
    ]


async def test_with_settings_as_shipped_agents_soon_answer_conversations_that_begin_at_once(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    async def until_an_agent_answers(house: House) -> list[Frame]:
        async with conversing(house, features=["streaming"]) as peer:
            frames = await peer.ask("I am having a headache")
            while "model.stood_in" in frames[-1].meta:
                await shown(house.store, peer.conversation_id)
                frames = await peer.ask("8")
            return frames

    async with a_letta_house(letta.base_url, tmp_path, tag, patient=False) as house:
        answers = await asyncio.gather(*(until_an_agent_answers(house) for _ in range(3)))

    assert all(frames[-1].meta["model.asked"] >= 1 for frames in answers)


async def test_a_stopped_answer_ends_at_once_and_the_next_turn_goes_on(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    async with (
        a_letta_house(letta.base_url, tmp_path, tag) as house,
        a_conversation(house, tmp_path) as (peer, _),
    ):
        await peer.ask("I am having a headache")
        endless = Step(text="It is so. " * 300, drip=0.05)
        ModelEndpoint(letta.models_url).script(peer.conversation_id, endless)
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
        a_letta_house(letta.base_url, tmp_path, tag) as house,
        a_conversation(house, tmp_path) as (peer, _),
    ):
        await peer.ask("I am having a headache")
        conversation_id = peer.conversation_id

    async with (
        a_letta_house(f"http://127.0.0.1:{free_port()}", tmp_path, tag) as house,
        over_websockets(house, tmp_path) as dial,
        dial() as socket,
    ):
        peer = Peer(WebSocketLine(socket))
        await peer.open(conversation_id, features=["streaming"])
        frames = await peer.ask("8")
        kept = await meta(house, frames[-1].body["previousId"])
        health = await house.health()

    assert "severe headache" in said(frames)
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
async def test_where_something_else_answers_in_letta_s_place_the_local_brain_does_its_work(
    tmp_path: Path, body: bytes
) -> None:
    async with (
        answering(body) as url,
        a_letta_house(url, tmp_path, "test") as house,
        a_conversation(house, tmp_path) as (peer, _),
    ):
        for text in ("I am having a headache", "8"):
            frames = await peer.ask(text)

            assert frames[-1].code is None
            assert frames[-1].meta["model.stood_in"] == "local"

    assert "severe headache" in said(frames)
