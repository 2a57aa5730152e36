"""Which brain answers: the embedded one, or one with a model behind it, by settings and as things stand."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from agents.brains.patience import Breaker, Patience
from agents.errors import AgentError
from agents.ports import Brain
from agents.roster import Roster
from agents.tools.toolbox import Toolbox
from orchestrator.errors import BAD_SETTING, AnamnesisError, as_ours
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.settings import Settings
from orchestrator.wire.messages import ModelInfo

if TYPE_CHECKING:
    from agents.brains.letta import LettaAgents
    from agents.brains.local import LocalBrain
    from agents.brains.openai_style import ChatModel

AgentFor: TypeAlias = Callable[[str, str], Awaitable[str]]
"""The id of a Letta agent by conversation and role; `ModelTrouble` where there is none to be had."""


LOOK_SECONDS: Final = 5.0
"""How often one looks whether anybody is there, and how long one waits for an answer to that."""


async def _nothing() -> None:
    """There is nothing to be done."""


@dataclass(frozen=True, slots=True)
class Named:
    """Who answers, as ServerInfo calls it."""

    model: ModelInfo
    backend: str


class Attention:
    """Whether a model answers the house, or the local brain stands in until it does."""

    def __init__(self, failures: int, rest_seconds: float, look: Callable[[], Awaitable[None]]) -> None:
        self.breaker = _Remembering(failures, rest_seconds)
        self._look, self._is_there = look, True

    @property
    def is_paid(self) -> bool:
        """False from when the model is left alone until it has answered, and while nobody is there."""
        return self._is_there and self.breaker.is_answered

    async def keep_looking(self) -> None:
        """For ever: who is not there is noticed before anybody asks, too.

        Of one that takes its time nobody knows more than before: it may only have much to do.
        """
        while True:
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._look()
                        self._is_there = True
            except AnamnesisError:
                self._is_there = False
            await asyncio.sleep(LOOK_SECONDS)


class _Remembering(Breaker):
    """A breaker that knows whether the model has answered since it was last left alone."""

    is_answered = True

    def succeeded(self) -> None:
        super().succeeded()
        self.is_answered = True

    def failed(self, after: float | None) -> None:
        super().failed(after)
        self.is_answered = self.is_answered and not self.is_open


@dataclass(frozen=True, slots=True)
class Mind:
    """A brain, how it is called, who tells whether it is well, and how one takes leave of it."""

    brain: Brain
    named: Named
    local: Named
    answers: Callable[[], Awaitable[None]] | None = None
    close: Callable[[], Awaitable[None]] = _nothing
    attention: Attention | None = None

    def now(self) -> Named:
        """Who answers as things stand: the local brain, while it stands in."""
        return self.named if self.attention is None or self.attention.is_paid else self.local


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
    return Mind(local, _by_itself(local), _by_itself(local))


def _by_itself(local: "LocalBrain") -> Named:
    return Named(ModelInfo(name=local.name, provider="anamnesis"), "embedded")


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
    named = Named(ModelInfo(name=model.name, provider="letta"), "letta")
    return _around(model, named, settings, local, roster, prompts, toolbox)


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
    named = Named(ModelInfo(name=model.name, provider="openai-style"), "chat")
    return _around(model, named, settings, local, roster, prompts, toolbox)


def _around(
    model: "LettaAgents | ChatModel",
    named: Named,
    settings: Settings,
    local: "LocalBrain",
    roster: Roster,
    prompts: PromptShelf,
    toolbox: Toolbox,
) -> Mind:
    from agents.brains.asking import CLASSIFIER, EXTRACTOR
    from agents.brains.modelled import ModelBrain, Sureness

    rules, answers = settings.brain, _looked_after(model.answers)
    attention = Attention(rules.breaker_failures, rules.breaker_seconds, answers)
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
        breaker=attention.breaker,
    )
    return Mind(brain, named, _by_itself(local), answers, model.close, attention)


def _looked_after(answers: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """The same look, with an error of the house's table."""

    async def look() -> None:
        try:
            await answers()
        except AgentError as error:
            raise as_ours(error) from None

    return look
