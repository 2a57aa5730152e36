"""Which brain answers: the embedded one, or one with a model behind it, by the settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    settings: Settings, local: "LocalBrain", roster: Roster, prompts: PromptShelf, toolbox: Toolbox
) -> Mind:
    """The brain that the settings name. What a library of another one needs is imported only for that one."""
    if settings.chat.endpoint:
        return _over_chat(settings, local, roster, prompts, toolbox)
    return Mind(local, ModelInfo(name=local.name, provider="anamnesis"), "embedded")


def _over_chat(
    settings: Settings, local: "LocalBrain", roster: Roster, prompts: PromptShelf, toolbox: Toolbox
) -> Mind:
    chat = settings.chat
    if not chat.model:
        where = settings.origins.get("chat.endpoint", "")
        raise AnamnesisError(BAD_SETTING, key="chat.endpoint", where=where, rule="needs chat.model beside it")

    from agents.brains.asking import CLASSIFIER, EXTRACTOR
    from agents.brains.modelled import ModelBrain, Sureness
    from agents.brains.openai_style import ChatModel
    from agents.brains.patience import Breaker, Patience

    model = ChatModel(
        chat.endpoint,
        chat.api_key.get_secret_value(),
        chat.model,
        {EXTRACTOR: chat.extractor_model, CLASSIFIER: chat.classifier_model},
    )
    rules = settings.brain
    brain = ModelBrain(
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

    async def answers() -> None:
        try:
            await model.answers()
        except AgentError as error:
            raise as_ours(error) from None

    return Mind(brain, ModelInfo(name=model.name, provider="openai-style"), "chat", answers, model.close)
