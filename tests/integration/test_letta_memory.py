"""The blocks in a real Letta: what an agent's tool or a person changes there is taken over and traced."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from letta_client import Letta

from memory_blocks.limits import Limits
from memory_blocks.mirrors.letta import SOMEBODY
from memory_blocks.models import Label
from memory_blocks.trace import digest
from orchestrator.house import House
from orchestrator.letta_agents import are_shown
from tests.integration.test_letta_scenario import a_conversation, a_letta_house
from tests.peers import TRACE, Frame
from tools.model_endpoint import ModelEndpoint, Step
from tools.servers.letta import Address

pytestmark = pytest.mark.timeout(600)

NOTE = "Prefers short answers."


def writers(frames: list[Frame], label: Label) -> list[str]:
    """Who wrote that block, as the traces tell."""
    return [
        frame.body["metadata"]["agent"]
        for frame in frames
        if frame.type == TRACE
        and frame.body["action"] == "updated"
        and frame.body["metadata"]["label"] == label
    ]


async def shown(house: House, conversation_id: str) -> None:
    """Wait until what the last turn wrote is shown: the last sentence does not wait for that."""
    while not await house.store.read(partial(are_shown, conversation_id)):  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.05)


@pytest.mark.requirement("001-008", "001-060", "001-038")
async def test_edits_by_the_agent_and_by_hand_become_revisions_and_all_digests_agree(
    letta: Address, tag: str, tmp_path: Path
) -> None:  # F21
    models = ModelEndpoint(letta.models_url)
    models.script(
        tag, Step(tool="core_memory_append", arguments={"label": "context_summary", "content": NOTE})
    )
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        async with a_letta_house(letta.base_url, tmp_path, tag) as house:
            async with a_conversation(house, tmp_path) as (peer, _):
                await peer.ask("I am having a headache")
                await shown(house, peer.conversation_id)
                (extractor,) = client.agents.list(tags=["role:extractor", tag], match_all_tags=True)
                client.agents.messages.create(
                    agent_id=extractor.id, messages=[{"role": "user", "content": f"Remember it, {tag}"}]
                )
                after_tool = await peer.ask("8")
                await shown(house, peer.conversation_id)

                blocks = {each.label: each for each in client.agents.blocks.list(agent_id=extractor.id)}
                session = blocks[Label.ACTIVE_SESSION]
                phase = '"conversation_phase":"'
                start = session.value.index(phase) + len(phase)
                by_hand = session.value[:start] + "advice" + session.value[session.value.index('"', start) :]
                client.blocks.update(block_id=session.id, value=by_hand)
                client.blocks.update(block_id=blocks[Label.MEMORY_METADATA].id, value="not JSON")
                after_hand = await peer.ask("since this morning")
                conversation_id = peer.conversation_id
                await shown(house, conversation_id)
            stored = house.store.read_now(lambda tx: tx.blocks.load(conversation_id))
            quarantined = house.store.read_now(lambda tx: tx.blocks.quarantined(conversation_id))
        blocks = {each.label: each for each in client.agents.blocks.list(agent_id=extractor.id)}

    assert writers(after_tool, Label.CONTEXT_SUMMARY)[0] == "letta:context_extractor"
    assert NOTE in (stored[Label.CONTEXT_SUMMARY].value or "")
    assert writers(after_hand, Label.ACTIVE_SESSION)[0] == SOMEBODY
    assert [(each.label, each.value, each.actor) for each in quarantined] == [
        (Label.MEMORY_METADATA, "not JSON", SOMEBODY)
    ]
    assert {label: (each.limit, digest(each.value)) for label, each in blocks.items()} == {
        label: (Limits().of(label), stored[label].digest) for label in Label
    }
    noted = {label: each.metadata or {} for label, each in blocks.items()}
    assert {label: (each["digest"], each["revision"]) for label, each in noted.items()} == {
        label: (stored[label].digest, stored[label].revision) for label in Label
    }
