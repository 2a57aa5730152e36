"""The blocks in a real Letta: what an agent's tool or a person changes there is taken over and traced."""

import re
from pathlib import Path

import pytest
from letta_client import Letta
from letta_client.types import BlockResponse

from memory_blocks.mirrors.letta import SOMEBODY
from memory_blocks.models import Label
from tests.integration.test_letta_scenario import a_conversation, a_letta_house
from tests.lettas import assert_all_stand, shown
from tests.peers import TRACE, Frame
from tools.model_endpoint import ModelEndpoint, Step
from tools.servers.letta import Address

pytestmark = pytest.mark.timeout(600)

NOTE = "Prefers short answers."
PHASE = re.compile('"conversation_phase":"[^"]*"')
EXTRACTOR = "letta:context_extractor"


def written(frames: list[Frame], label: Label) -> list[tuple[str, str]]:
    """Who wrote that block, and what, as the traces tell."""
    return [
        (frame.body["metadata"]["agent"], frame.body["content"])
        for frame in frames
        if frame.type == TRACE
        and frame.body["action"] == "updated"
        and frame.body["metadata"]["label"] == label
    ]


@pytest.mark.requirement("001-008", "001-060", "001-038")
async def test_edits_by_the_agent_and_by_hand_become_revisions_and_all_digests_agree(
    letta: Address, tag: str, tmp_path: Path
) -> None:  # F21
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        async with a_letta_house(letta.base_url, tmp_path, tag) as house:
            async with a_conversation(house, tmp_path) as (peer, _):
                await peer.ask("I am having a headache")
                conversation_id = peer.conversation_id
                await shown(house.store, conversation_id)
                (extractor,) = client.agents.list(tags=["role:extractor", tag], match_all_tags=True)
                before = blocks_of(client, extractor.id)
                (phase,) = PHASE.findall(before[Label.ACTIVE_SESSION].value)
                replaced = {
                    "label": "active_session",
                    "old_content": phase,
                    "new_content": '"conversation_phase":"advice"',
                }
                ModelEndpoint(letta.models_url).script(
                    tag,
                    Step(tool="core_memory_replace", arguments=replaced),
                    Step(tool="core_memory_append", arguments={"label": "context_summary", "content": NOTE}),
                    Step(text="Done."),
                )
                client.agents.messages.create(
                    agent_id=extractor.id, messages=[{"role": "user", "content": f"Remember it, {tag}"}]
                )
                after_tools = await peer.ask("8")
                await shown(house.store, conversation_id)

                blocks = blocks_of(client, extractor.id)
                session = blocks[Label.ACTIVE_SESSION]
                by_hand = PHASE.sub('"conversation_phase":"follow_up"', session.value)
                client.blocks.update(block_id=session.id, value=by_hand)
                client.blocks.update(block_id=blocks[Label.MEMORY_METADATA].id, value="not JSON")
                after_hand = await peer.ask("since this morning")
                await shown(house.store, conversation_id)
            quarantined = house.store.read_now(lambda tx: tx.blocks.quarantined(conversation_id))
            assert_all_stand(client.agents.blocks.list(agent_id=extractor.id), house.store, conversation_id)
        summary = blocks_of(client, extractor.id)[Label.CONTEXT_SUMMARY].value

    noted, retold = written(after_tools, Label.CONTEXT_SUMMARY)[:2]  # the note, then the phase it tells of
    assert (noted[0], retold[0]) == (EXTRACTOR, EXTRACTOR)
    assert "CONVERSATION PHASE: Advice" in retold[1]
    assert written(after_tools, Label.ACTIVE_SESSION)[0][0] == EXTRACTOR
    assert NOTE in summary
    by, text = written(after_hand, Label.ACTIVE_SESSION)[0]
    assert (by, PHASE.findall(text)) == (SOMEBODY, ['"conversation_phase":"follow_up"'])
    assert [(each.label, each.value, each.actor) for each in quarantined] == [
        (Label.MEMORY_METADATA, "not JSON", SOMEBODY)
    ]


def blocks_of(client: Letta, agent_id: str) -> dict[str | None, BlockResponse]:
    return {each.label: each for each in client.agents.blocks.list(agent_id=agent_id)}
