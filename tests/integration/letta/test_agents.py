"""Agents and blocks of a conversation in a real Letta: each is created once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
import structlog
from letta_client import Letta

from agents.errors import ModelTrouble
from agents.models.requests import EXTRACTOR
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import Limits
from memory_blocks.mirrors.letta import LettaMirror
from memory_blocks.models import Conversation, Label
from memory_blocks.ports import StoredBlock
from memory_blocks.trace import digest
from orchestrator.errors import LettaTrouble
from orchestrator.letta.blocks import LettaCopies, StoredJournal
from orchestrator.letta.server import LettaAgent
from orchestrator.letta.specs import BLOCK_DESCRIPTIONS, MEMORY_TOOLS
from orchestrator.ops.clock import SystemClock
from orchestrator.store import rows
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store, Transaction
from tests.faults.http_proxy import before
from tests.support.servers.letta_helpers import a_registry, held_back, some_specs
from tools.servers.letta import LETTA_MODEL, Address

pytestmark = pytest.mark.timeout(600)


def blocks_of(store: Store) -> Mapping[str, rows.LettaBlock]:
    return store.read_now(lambda tx: tx.letta.blocks("c1"))


@pytest.mark.requirement("001-001", "001-007", "001-008", "001-037", "001-038", "001-119")
async def test_the_extractor_has_the_four_blocks_and_the_others_share_them(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry:
        extractor, nutritionist, specialist = [
            await registry.agent("c1", role) for role in (EXTRACTOR, "NUTRITION", "GENERAL_HEALTH")
        ]

    with Letta(base_url=letta.base_url, max_retries=0) as client:
        agents = {
            each.id: each for each in client.agents.list(tags=[tag], include=["agent.tags", "agent.tools"])
        }
        shared = {
            agent_id: {each.label: each for each in client.agents.blocks.list(agent_id=agent_id)}
            for agent_id in agents
        }
    assert set(agents) == {extractor, nutritionist, specialist}
    assert agents[extractor].name == f"{tag}-c1-extractor"
    assert set(agents[extractor].tags) == {tag, "conversation:c1", "role:extractor"}
    assert {each.name for each in agents[extractor].tools} == set(MEMORY_TOOLS)
    assert agents[nutritionist].tools == agents[specialist].tools == []
    blocks = shared[extractor]
    assert {label: (each.limit, each.description, each.read_only) for label, each in blocks.items()} == {
        label: (Limits().of(label), BLOCK_DESCRIPTIONS[label], False) for label in Label
    }
    for others in (shared[nutritionist], shared[specialist]):
        assert {label: each.id for label, each in others.items()} == {
            label: each.id for label, each in blocks.items()
        }


async def test_the_extractor_uses_temperature_0_and_may_have_its_own_model(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry:
        made = await registry.agent("c1", EXTRACTOR)
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        result = client.agents.retrieve(agent_id=made).llm_config
    other = some_specs(letta.base_url, tag, extractor_model="anthropic/claude-haiku-4-5")

    assert (result.temperature, result.reasoning_effort) == (0.0, "low")
    assert other.agent_settings("GENERAL_HEALTH")["model"] == LETTA_MODEL
    assert other.agent_settings(EXTRACTOR)["model"] == "anthropic/claude-haiku-4-5"
    assert other.agent_settings(EXTRACTOR)["model_settings"]["provider_type"] == "anthropic"
    assert other.agent_settings("GENERAL_HEALTH")["model_settings"]["provider_type"] == "openai"


def test_the_extractors_prompt_describes_its_memory_tools() -> None:
    result = some_specs("http://127.0.0.1:1", "a-tag").agent_settings(EXTRACTOR)["system"]

    assert all(f"`{tool}`" in result for tool in MEMORY_TOOLS)
    assert "`core_memory_append` is for `context_summary` alone" in result


async def test_a_specialist_has_the_configured_temperature_and_answer_length(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag, temperature=0.5, answer_tokens=700) as registry:
        made = await registry.agent("c1", "GENERAL_HEALTH")
        (row,) = opened.read_now(
            lambda tx: [each for each in tx.letta.agents("c1") if each.role == "GENERAL_HEALTH"]
        )
        (there,) = await registry.server.agents(tag, "role:GENERAL_HEALTH")
        drifts = registry.specs.agent_drift(
            row, there, {label: each.block_id for label, each in blocks_of(opened).items()}
        )
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        result = client.agents.retrieve(agent_id=made).llm_config

    assert (result.temperature, result.max_tokens) == (0.5, 700)
    assert drifts == []


async def test_while_no_agent_can_be_created_health_reports_it_and_the_log_says_why(
    letta: Address, tag: str, opened: Store
) -> None:
    """An error in a setting must be visible although the local brain answers."""
    async with a_registry(letta.base_url, opened, tag, model="openai/nosuch") as registry:
        await registry.check_health()
        with structlog.testing.capture_logs() as logged, pytest.raises(LettaTrouble) as refused:
            await registry.agent("c1", EXTRACTOR)
        with pytest.raises(LettaTrouble):
            await registry.check_health()

    (line,) = [each for each in logged if each["event"] == "letta_agent_not_ready"]
    assert (line["kind"], line["error"]) == ("extractor", refused.value.facts["rule"])
    assert str(line["error"]).startswith("http_4")


async def test_health_is_ok_again_once_an_agent_was_created(letta: Address, tag: str, opened: Store) -> None:
    async def refuse(recipe: Mapping[str, Any]) -> LettaAgent:
        raise LettaTrouble("http_400")

    async with a_registry(letta.base_url, opened, tag) as registry:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry.server, "create_agent", refuse)
            with pytest.raises(LettaTrouble):
                await registry.agent("c1", EXTRACTOR)
        with pytest.raises(LettaTrouble):
            await registry.check_health()

        await registry.agent("c1", EXTRACTOR)

        await registry.check_health()


@pytest.mark.parametrize("over", [False, True], ids=["goes_on", "is_over"])
async def test_a_health_check_retries_the_creation_and_then_reports_ok(
    letta: Address, tag: str, opened: Store, monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    async def refuse(recipe: Mapping[str, Any]) -> LettaAgent:
        raise LettaTrouble("http_400")

    monkeypatch.setattr("orchestrator.letta.agents.RETRY_SECONDS", 0)
    async with a_registry(letta.base_url, opened, tag) as registry:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry.server, "create_agent", refuse)
            with pytest.raises(LettaTrouble):
                await registry.agent("c1", EXTRACTOR)
        if over:
            opened.write_now(lambda tx: tx.conversations.update("c1", status="archived"))

        with pytest.raises(LettaTrouble, match="http_400"):
            await registry.check_health()
        await asyncio.wait([registry.creation("c1", EXTRACTOR)])

        await registry.check_health()
        assert (await registry.find("c1", EXTRACTOR) is None) == over


async def test_a_conversation_begins_with_few_calls_and_its_current_blocks(
    letta: Address, tag: str, opened: Store
) -> None:
    def standing(tx: Transaction) -> Mapping[Label, StoredBlock]:
        row = tx.conversations.lock("c1")
        conversation = Conversation(row.id, row.user_id, row.created_at)
        return Ledger(SystemClock()).read(SqlBlockStore(tx.blocks), conversation, actor="test").stored

    async with before(letta.base_url) as proxy, a_registry(proxy.url, opened, tag) as registry:
        mirror = LettaMirror(LettaCopies(registry, opened), StoredJournal(opened))
        await registry.agent("c1", "GENERAL_HEALTH")
        changes = await mirror.foreign_changes("c1")
        written_over = await mirror.put("c1", opened.write_now(standing))
        extractor = await registry.agent("c1", EXTRACTOR)

    assert proxy.asked == [
        "POST /v1/identities/",
        "POST /v1/agents/",
        "POST /v1/agents/",
        f"GET /v1/agents/{extractor}/core-memory/blocks",
    ]
    assert not changes
    assert not written_over


async def test_two_processes_that_need_an_agent_at_once_create_one(
    letta: Address, tag: str, opened: Store
) -> None:
    async with (
        a_registry(letta.base_url, opened, tag, "worker_1") as one,
        a_registry(letta.base_url, opened, tag, "worker_2") as other,
    ):
        made = await asyncio.gather(*(each.agent("c1", EXTRACTOR) for each in (one, other, one)))
        there = await one.server.agents(tag)
        blocks = await one.server.blocks(tag)

    assert {each.id for each in there} == set(made)
    assert len(set(made)) == 1
    assert len(blocks) == len(Label)


def as_if_the_process_died_before_recording_it(tx: Transaction) -> None:
    tx.unit.connection.execute(
        "UPDATE letta_agents SET agent_id = NULL, recipe = NULL, holder = 'worker_0', expires_at = created_at"
    )
    tx.unit.connection.execute("DELETE FROM letta_blocks")


async def test_an_agent_that_a_dead_process_did_not_record_is_found_again(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag, "worker_1") as registry:
        before = await registry.agent("c1", EXTRACTOR)
        opened.write_now(as_if_the_process_died_before_recording_it)
        after = await registry.agent("c1", EXTRACTOR)
        there = await registry.server.agents(tag)

    assert after == before
    assert len(there) == 1
    assert set(opened.read_now(lambda tx: tx.letta.blocks("c1"))) == set(Label)


async def test_a_changed_specification_updates_the_agent(letta: Address, tag: str, opened: Store) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry:
        before = await registry.agent("c1", EXTRACTOR)
    async with a_registry(letta.base_url, opened, tag, context_window=48_000) as registry:
        after = await registry.agent("c1", EXTRACTOR)

    with Letta(base_url=letta.base_url, max_retries=0) as client:
        agent = client.agents.retrieve(agent_id=after)
    assert after == before
    assert agent.llm_config is not None
    assert agent.llm_config.context_window == 48_000


async def test_an_agent_removed_while_its_specification_changed_gets_the_same_blocks_again(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry:
        before = await registry.agent("c1", EXTRACTOR)
        nutritionist = await registry.agent("c1", "NUTRITION")
        blocks = {label: row.block_id for label, row in blocks_of(opened).items()}
        await registry.server.delete_block(blocks.pop(Label.MEMORY_METADATA))
        await registry.server.delete_agent(before)
        opened.write_now(lambda tx: tx.letta.record_applied("c1", {label.value: "0" * 64 for label in Label}))
    async with a_registry(letta.base_url, opened, tag, context_window=48_000) as registry:
        after = await registry.agent("c1", EXTRACTOR)
        assert await registry.agent("c1", "NUTRITION") == nutritionist
        there = {each.id: each for each in await registry.server.agents(tag)}

    known = blocks_of(opened)
    for agent_id in (after, nutritionist):
        attached = {label: block.id for label, block in there[agent_id].blocks.items()}
        assert attached == {label: row.block_id for label, row in known.items()}
    assert after != before
    assert {label: known[label].block_id for label in blocks} == blocks
    assert {label for label, row in known.items() if row.digest != "0" * 64} == {Label.MEMORY_METADATA}
    made_anew = there[after].blocks[Label.MEMORY_METADATA]
    assert digest(made_anew.value) == known[Label.MEMORY_METADATA].digest
    assert there[after].tools == set(MEMORY_TOOLS)


async def test_a_creation_continues_if_its_caller_is_cancelled(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry, held_back(registry) as let_go:
        waiting = asyncio.create_task(registry.agent("c1", EXTRACTOR))
        making = registry.creation("c1", EXTRACTOR)
        waiting.cancel()
        await asyncio.wait([waiting])
        let_go.set()

        assert await making == await registry.agent("c1", EXTRACTOR)
        assert len(await registry.server.agents(tag)) == 1


async def test_closing_does_not_wait_for_a_server_that_never_answers(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry, held_back(registry):
        registry.prepare("c1")
        making = registry.creation("c1", EXTRACTOR)

        await registry.close()

        assert making.cancelled()
    claimed = opened.write_now(lambda tx: tx.letta.claim("c1", EXTRACTOR, "worker_2", seconds=1))
    assert claimed is not None  # the next caller creates it
    assert not claimed.is_first  # after it has checked whether it exists


async def test_a_removed_conversation_leaves_nothing_in_letta(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry:
        await registry.agent("c1", "NUTRITION")

        await registry.remover.remove_conversation("c1")

        assert await registry.server.agents(tag) == []
        assert await registry.server.blocks(tag) == []
    assert opened.read_now(lambda tx: tx.letta.agents("c1")) == []


async def test_no_agent_is_asked_while_its_blocks_may_be_outdated(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry:
        with pytest.raises(ModelTrouble, match="blocks_not_current"):
            await registry.agent_for("c1", EXTRACTOR)
        made = await registry.agent("c1", EXTRACTOR)
        shown = await registry.agent_for("c1", EXTRACTOR)
        opened.write_now(lambda tx: tx.letta.record_intent("c1", {Label.ACTIVE_SESSION.value: "1" * 64}))
        with pytest.raises(ModelTrouble, match="blocks_not_current"):
            await registry.agent_for("c1", EXTRACTOR)

    assert shown == made
