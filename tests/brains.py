"""Brains with a model behind them, to test: over endpoints and servers that are really there."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from agents.brains.asking import CLASSIFIER, EXTRACTOR
from agents.brains.modelled import ModelBrain, Sureness
from agents.brains.openai_style import ChatModel
from agents.brains.patience import Breaker, Patience
from agents.tools.toolbox import Tool
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.settings import shipped_config
from tests.houses import agents, local_brain
from tools.model_endpoint import MODEL, ModelEndpoint

ASKS_ALL: Final = Sureness(context=2.0, intent=2.0)
"""The local brain is never sure enough: the model is asked everything."""

PATIENT: Final = Patience(reply_seconds=30.0, stall_seconds=30.0, budget_seconds=60.0)
"""A busy machine is not a fault."""


def prompts() -> dict[str, str]:
    """The prompts of those who decide, as shipped."""
    shelf = PromptShelf(shipped_config() / "prompts")
    names = {EXTRACTOR: "context_extractor", CLASSIFIER: "intent_classifier"}
    return {role: shelf.prompt_named(name).text for role, name in names.items()}


@asynccontextmanager
async def chat_brain(
    endpoint: ModelEndpoint | str,
    *,
    sureness: Sureness | None = None,
    patience: Patience | None = None,
    breaker: Breaker | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[ModelBrain]:
    """The model at this address, as a brain."""
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    model = ChatModel(url, "a key", MODEL)
    try:
        yield ModelBrain(
            model,
            local_brain(),
            agents(),
            prompts(),
            tools=tools,
            sureness=sureness,
            patience=patience or PATIENT,
            breaker=breaker,
        )
    finally:
        await model.close()
