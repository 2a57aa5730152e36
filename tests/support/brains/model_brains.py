"""Brains with a language model for tests, over real endpoints and servers."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import pytest

from agents.models.fallback import Model, ModelBrain, ModelOptions
from agents.models.requests import EXTRACTOR
from agents.models.retries import Breaker, RetryPolicy
from agents.models.servers.letta import LettaAgents, RoleModels
from agents.models.servers.openai import ChatModel
from agents.models.understanding import understanding_schema
from agents.ports import Brief, NoTools, Prompt, Recalled, ToolOutcome, ToolUser
from agents.roster import pick
from agents.sentences import sentences
from agents.tools.toolbox import Tool
from agents.values import Enrichment, Intent, Understanding
from memory_blocks.models import Label, render
from tests.support.builders import a_situation, some_blocks
from tests.support.orchestrators import agents, local_brain, shipped_prompts
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address
from tools.servers.model_endpoint import MODEL, ModelEndpoint

PATIENT: Final = RetryPolicy(reply_seconds=30.0, stall_seconds=30.0, budget_seconds=60.0)
"""Timeouts long enough for a busy machine."""


class Using:
    """A toolbox that records each call."""

    def __init__(self) -> None:
        self.used: list[tuple[str, Mapping[str, Any]]] = []

    async def use(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Record the call; the outcome is always the same."""
        self.used.append((name, arguments))
        return ToolOutcome(True, {"bmi": 23.1, "range": "within"})


def extractor_prompt() -> str:
    """The shipped prompt of the call that reads a message."""
    return shipped_prompts().prompt_named("context_extractor").text


@asynccontextmanager
async def chat_brain(
    endpoint: ModelEndpoint | str,
    *,
    retry_policy: RetryPolicy | None = None,
    breaker: Breaker | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[ModelBrain]:
    """A brain that uses the model at this address."""
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    model = ChatModel(url, "a key", MODEL)
    try:
        yield _around(model, retry_policy, breaker, tools)
    finally:
        await model.close()


@asynccontextmanager
async def letta_brain(
    base_url: str,
    agent_for: Callable[[str, str], Awaitable[str]],
    *,
    retry_policy: RetryPolicy | None = None,
    breaker: Breaker | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[ModelBrain]:
    """A brain that uses the agents of a Letta server."""
    model = LettaAgents(base_url, "", RoleModels(LETTA_MODEL), agent_for)
    try:
        yield _around(model, retry_policy, breaker, tools)
    finally:
        await model.close()


def _around(
    model: Model,
    retry_policy: RetryPolicy | None,
    breaker: Breaker | None,
    tools: Sequence[Tool],
) -> ModelBrain:
    return ModelBrain(
        model,
        local_brain(),
        agents(),
        extractor_prompt(),
        ModelOptions(tools, retry_policy or PATIENT, breaker or Breaker()),
    )


@dataclass
class Cast:
    """Small agents on a Letta server: one per role, for all conversations, created when first needed."""

    base_url: str
    made: dict[str, str] = field(default_factory=dict)

    async def agent_for(self, conversation_id: str, role: str) -> str:
        """The id of the agent with that role."""
        if role not in self.made:
            self.made[role] = await asyncio.to_thread(self._make, role)
        return self.made[role]

    def _make(self, role: str) -> str:
        blocks = some_blocks(0)
        schemas = {EXTRACTOR: understanding_schema(agents().intents)}
        agent: dict[str, Any] = {
            "name": f"{role}-{secrets.token_hex(6)}",
            "agent_type": "letta_v1_agent",
            "include_base_tools": False,
            "message_buffer_autoclear": True,
            "model": LETTA_MODEL,
            "embedding": LETTA_EMBEDDING,
            "system": extractor_prompt() if role == EXTRACTOR else "Be kind.",
            "memory_blocks": [{"label": label, "value": render(label, blocks)} for label in Label],
        }
        if schema := schemas.get(role):
            form = {"name": schema.name, "strict": True, "schema": schema.schema}
            agent["model_settings"] = {
                "provider_type": "openai",
                "response_format": {"type": "json_schema", "json_schema": form},
            }
        made = httpx.post(f"{self.base_url}/v1/agents/", json=agent, timeout=60).raise_for_status().json()
        return str(made["id"])


@pytest.fixture(scope="session")
def cast(letta: Address) -> Cast:
    """One agent per role."""
    return Cast(letta.base_url)


@pytest.fixture
def models(letta: Address) -> ModelEndpoint:
    """The models of the server's agents."""
    return ModelEndpoint(letta.models_url)


def a_brief(message: str, tools: ToolUser | None = None, said: str = "") -> Brief:
    """The input of a specialist for a message."""
    intent = Intent(intent="GENERAL_HEALTH", confidence=0.9, reasoning="As told")
    enrichment = Enrichment(previous_context="Nothing", enriched_message=f'User says: "{message}"')
    prompt = Prompt(name="a", text="Be kind.", revision="1")
    understanding, situation = (
        Understanding(enrichment=enrichment, intent=intent),
        a_situation(some_blocks(0)),
    )
    specialist = pick(intent, agents())
    return Brief(
        specialist, message, understanding, situation, (), Recalled(), prompt, said, tools or NoTools()
    )


async def said(brain: ModelBrain, brief: Brief) -> list[str]:
    """The sentences of its answer."""
    async with aclosing(sentences(brain.speak(brief))) as spoken:
        return [sentence async for sentence in spoken]


async def local_words(brief: Brief) -> str:
    """The answer of the local brain."""
    return "".join([fragment async for fragment in local_brain().speak(brief)])
