"""A section of `agents.toml` and a prompt file define a specialist; unknown names in it are refused."""

from pathlib import Path

import pytest

from orchestrator.errors import AnamnesisError
from orchestrator.settings import load
from orchestrator.wiring import build_orchestrator, load_prompts, load_roster, load_toolbox
from tests.support.orchestrators import history
from tests.support.protocol_client import conversing

FEW = """
[agents.EMERGENCY]
description = "What must not wait."
examples = ["he is not breathing", "crushing chest pain", "she is unconscious", "I took all my pills"]
says = "Call now."
[agents.COORDINATOR]
description = "Asks what it is about."
[agents.SLEEP]
description = "Sleep."
examples = ["I can't sleep", "I wake up at three every night", "nightmares", "I snore"]
"""
TRAVEL = """
[agents.TRAVEL_HEALTH]
description = "Vaccinations, and what to think of before a journey."
examples = [
  "which vaccinations do I need for Kenya?", "is there malaria in Ghana?", "jabs before a trip to Vietnam",
  "do I need yellow fever shots for Brazil?", "travelling to India, which injections?",
  "what should be in my travel first aid kit for the tropics?", "how do I avoid altitude sickness in Peru?",
]
"""


def an_overlay(folder: Path, section: str, prompt: str = "travel_health") -> Path:
    """A configuration with a few agents and one more; everything else is as shipped."""
    (folder / "agents.toml").write_text(FEW + section, encoding="utf-8")
    (folder / "prompts").mkdir()
    (folder / "prompts" / f"{prompt}.md").write_text("# Travel\n\nBe brief.\n", encoding="utf-8")
    return folder


async def test_a_section_and_a_prompt_define_a_specialist_that_answers(tmp_path: Path) -> None:
    overlay = an_overlay(tmp_path, TRAVEL)
    settings = load(given={"data.dir": str(tmp_path / "data")}, environment={})
    orchestrator = build_orchestrator(settings, overlay)
    async with orchestrator.open(), conversing(orchestrator) as peer:
        await peer.ask("which jabs do I need for Kenya?")
        [turn] = (await history(orchestrator, peer.conversation_id)).turns

    assert turn.intent_classification is not None
    assert turn.agent_response is not None
    assert turn.intent_classification.intent == turn.agent_response.agent_type == "TRAVEL_HEALTH"
    assert "I cannot judge that" in turn.agent_response.content


def test_a_missing_prompt_is_reported_by_name_at_the_start(tmp_path: Path) -> None:
    overlay = an_overlay(tmp_path, TRAVEL, prompt="travelling")

    with pytest.raises(AnamnesisError, match=r"prompts/travel_health\.md"):
        load_prompts(load(overlay, environment={}), load_roster(overlay), overlay)


def test_an_unknown_tool_is_reported_by_name_at_the_start(tmp_path: Path) -> None:
    overlay = an_overlay(tmp_path, f'{TRAVEL}tools = ["days_since", "book_flight"]')

    with pytest.raises(AnamnesisError, match="there is no tool book_flight"):
        load_toolbox(load_roster(overlay))
