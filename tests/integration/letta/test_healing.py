"""What somebody deletes on a real Letta server is made again, and harms no other conversation."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from letta_client import Letta

from memory_blocks.models import Label
from tests.integration.letta.test_scenario import a_letta_orchestrator, blocks_of, the_extractor
from tests.support.protocol_client import Frame, conversing
from tests.support.servers.letta_helpers import until_synced
from tools.servers.letta import Address

HEADACHE = ("I am having a headache", "8", "since Tuesday", "it throbs")


def roles(client: Letta, tag: str, conversation_id: str) -> dict[str, str]:
    """The agents of a conversation: their ids by role."""
    tags = [tag, f"conversation:{conversation_id}"]
    found = client.agents.list(tags=tags, match_all_tags=True, include=["agent.tags"])
    return {
        each.removeprefix("role:"): agent.id
        for agent in found
        for each in agent.tags
        if each.startswith("role:")
    }


def troubles(*turns: list[Frame]) -> list[str]:
    """Why a local brain stood in, turn by turn; empty where an agent answered."""
    return [frames[-1].meta.get("model.trouble", "") for frames in turns]


async def test_a_deleted_specialist_is_made_again_within_the_turn_that_needs_it(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        async with (
            a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
            conversing(orchestrator, features=["streaming"]) as peer,
        ):
            first = await peer.ask(HEADACHE[0])
            before = roles(client, tag, peer.conversation_id)
            client.agents.delete(before["GENERAL_HEALTH"])
            later = [await peer.ask(text) for text in HEADACHE[1:]]
            after = roles(client, tag, peer.conversation_id)

    assert troubles(first, *later) == [""] * len(HEADACHE)
    assert before.keys() == after.keys()
    assert {role for role in before if before[role] != after[role]} == {"GENERAL_HEALTH"}


@pytest.mark.parametrize("deleted", [("extractor",), ("extractor", "GENERAL_HEALTH")], ids=["one", "all"])
async def test_deleted_agents_are_made_again_within_the_next_turn(
    letta: Address, tag: str, tmp_path: Path, deleted: tuple[str, ...]
) -> None:
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        async with (
            a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
            conversing(orchestrator, features=["streaming"]) as peer,
        ):
            await peer.ask(HEADACHE[0])
            await until_synced(orchestrator.store, peer.conversation_id)
            before = roles(client, tag, peer.conversation_id)
            for role in deleted:
                client.agents.delete(before[role])
            later = [await peer.ask(text) for text in HEADACHE[2:]]
            after = roles(client, tag, peer.conversation_id)

    assert troubles(*later) == [""] * len(later)
    assert before.keys() == after.keys()
    assert {role for role in before if before[role] != after[role]} == set(deleted)


async def test_deleted_blocks_are_made_again_within_the_next_turn(
    letta: Address, tag: str, tmp_path: Path
) -> None:
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        async with (
            a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
            conversing(orchestrator, features=["streaming"]) as peer,
        ):
            await peer.ask(HEADACHE[0])
            await until_synced(orchestrator.store, peer.conversation_id)
            for block in blocks_of(client, the_extractor(client, tag)).values():
                client.blocks.delete(block.id)
            later = [await peer.ask(text) for text in HEADACHE[2:]]
            blocks = blocks_of(client, the_extractor(client, tag))

    assert troubles(*later) == [""] * len(later)
    assert blocks.keys() == {*Label}


async def test_an_agent_that_cannot_be_found_pauses_no_other_conversation(
    letta: Address, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
        conversing(orchestrator, "ann", features=["streaming"]) as broken,
        conversing(orchestrator, "bob", features=["streaming"]) as well,
    ):
        await broken.ask(HEADACHE[0])
        await well.ask(HEADACHE[0])
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            lost = roles(client, tag, broken.conversation_id)["GENERAL_HEALTH"]
        send = httpx.AsyncClient.send

        async def lossy(client: httpx.AsyncClient, request: httpx.Request, **how: Any) -> httpx.Response:
            if request.url.path.endswith(f"{lost}/messages/stream"):
                return httpx.Response(404, request=request)
            return await send(client, request, **how)

        monkeypatch.setattr(httpx.AsyncClient, "send", lossy)
        failed = [await broken.ask(text) for text in HEADACHE[1:]]
        fine = await well.ask(HEADACHE[1])

        with Letta(base_url=letta.base_url, max_retries=0) as client:
            kept = roles(client, tag, broken.conversation_id)["GENERAL_HEALTH"]

    assert troubles(*failed) == ["http_404", "http_404", "http_404"]
    assert troubles(fine) == [""]
    assert kept == lost  # it exists, so no second one was made
