"""The Letta server of the tests is the real one: its agents think with our endpoint."""

import pytest
from letta_client import Letta

from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address

pytestmark = pytest.mark.timeout(600)


def test_an_agent_can_be_made_and_answers(letta: Address) -> None:
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        agent = client.agents.create(
            agent_type="letta_v1_agent",
            include_base_tools=False,
            model=LETTA_MODEL,
            embedding=LETTA_EMBEDDING,
        )
        try:
            answer = client.agents.messages.create(
                agent_id=agent.id, messages=[{"role": "user", "content": "Hello"}]
            )
        finally:
            client.agents.delete(agent_id=agent.id)

    assert [message.message_type for message in answer.messages][-1] == "assistant_message"
