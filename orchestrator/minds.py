"""Which brain answers: the embedded one, or one with a model behind it, by the settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from agents.errors import AgentError
from agents.ports import Brain
from agents.roster import Roster
from agents.tools.toolbox import Toolbox
from orchestrator.errors import BAD_SETTING, AnamnesisError, as_ours
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.settings import Settings
from orchestrator.wire.messages import ModelInfo

if TYPE_CHECKING:
    from agents.brains.local import LocalBrain
    from agents.brains.modelled import Model

AgentFor: TypeAlias = Callable[[str, str], Awaitable[str]]
"""The id of a Letta agent by conversation and role; `ModelTrouble` where there is none to be had."""


async def _nothing() -> None:
    """There is nothing to be done."""


@dataclass(frozen=True, slots=True)
class Mind:
    """A brain, how ServerInfo calls it, who tells whether it is well, and how one takes leave of it."""

    brain: Brain
    model: ModelInfo
    backend: str
    answers: Callable[[], Awaitable[None]] | None = None
    close: Callable[[], Awaitable[None]] = _nothing


def choose(
    settings: Settings,
    local: "LocalBrain",
    roster: Roster,
    prompts: PromptShelf,
    toolbox: Toolbox,
    agent_for: AgentFor | None = None,
) -> Mind:
    """The brain that the settings name; what a library of another one needs is not imported.

    Letta goes before a chat endpoint. `agent_for` tells the id of its agent by conversation and role.
    """
    if settings.letta.base_url and agent_for is not None:
        return _over_letta(settings, local, roster, prompts, toolbox, agent_for)
    if settings.chat.endpoint:
        return _over_chat(settings, local, roster, prompts, toolbox)
    return Mind(local, ModelInfo(name=local.name, provider="anamnesis"), "embedded")


def _over_letta(
    settings: Settings,
    local: "LocalBrain",
    roster: Roster,
    prompts: PromptShelf,
    toolbox: Toolbox,
    agent_for: AgentFor,
) -> Mind:
    from agents.brains.letta import LettaAgents

    letta = settings.letta
    model = LettaAgents(letta.base_url, letta.api_key.get_secret_value(), letta.model, agent_for)
    brain = _around(model, settings, local, roster, prompts, toolbox)
    return Mind(
        brain,
        ModelInfo(name=model.name, provider="letta"),
        "letta",
        _looked_after(model.answers),
        model.close,
    )


def _over_chat(
    settings: Settings, local: "LocalBrain", roster: Roster, prompts: PromptShelf, toolbox: Toolbox
) -> Mind:
    from agents.brains.asking import CLASSIFIER, EXTRACTOR
    from agents.brains.openai_style import ChatModel

    chat = settings.chat
    if not chat.model:
        where = settings.origins.get("chat.endpoint", "")
        raise AnamnesisError(BAD_SETTING, key="chat.endpoint", where=where, rule="needs chat.model beside it")
    model = ChatModel(
        chat.endpoint,
        chat.api_key.get_secret_value(),
        chat.model,
        {EXTRACTOR: chat.extractor_model, CLASSIFIER: chat.classifier_model},
    )
    brain = _around(model, settings, local, roster, prompts, toolbox)
    info = ModelInfo(name=model.name, provider="openai-style")
    return Mind(brain, info, "chat", _looked_after(model.answers), model.close)


def _around(
    model: "Model",
    settings: Settings,
    local: "LocalBrain",
    roster: Roster,
    prompts: PromptShelf,
    toolbox: Toolbox,
) -> Brain:
    from agents.brains.asking import CLASSIFIER, EXTRACTOR
    from agents.brains.modelled import ModelBrain, Sureness
    from agents.brains.patience import Breaker, Patience

    rules = settings.brain
    return ModelBrain(
        model,
        local,
        roster,
        {
            EXTRACTOR: prompts.prompt_named("context_extractor").text,
            CLASSIFIER: prompts.prompt_named("intent_classifier").text,
        },
        tools=toolbox.tools,
        sureness=Sureness(rules.sure_context, rules.sure_intent),
        patience=Patience(rules.reply_seconds, rules.stall_seconds, rules.budget_seconds, rules.attempts),
        breaker=Breaker(rules.breaker_failures, rules.breaker_seconds),
    )


def _looked_after(answers: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """The same look, with an error of the house's table."""

    async def look() -> None:
        try:
            await answers()
        except AgentError as error:
            raise as_ours(error) from None

    return look
