"""Chooses the brain that answers: by the settings, and by whether the model is available."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from agents.errors import AgentError
from agents.models.retries import Breaker, RetryPolicy
from agents.ports import Brain
from agents.roster import Roster
from agents.tools.toolbox import Toolbox
from orchestrator.errors import BAD_SETTING, AnamnesisError, as_ours
from orchestrator.local_models import MODEL_AWAY, NO_MODEL
from orchestrator.prompts import PromptFiles
from orchestrator.settings import COMMAND_LINE, Settings
from orchestrator.wire.messages import ModelInfo

if TYPE_CHECKING:
    from agents.models.servers.letta import LettaAgents
    from agents.models.servers.openai import ChatModel


class LettaDirectory(Protocol):
    """Knows the agents of a Letta server by conversation and role."""

    async def agent_for(self, conversation_id: str, role: str) -> str:
        """The agent's id, created if needed; raises `ModelTrouble` if there is none."""

    async def forget_missing(self, conversation_id: str, role: str, agent_id: str) -> bool:
        """Whether this agent does not exist any more; if so, `agent_for` creates another one."""

    async def turns_behind(self, conversation_id: str) -> int:
        """How many of the latest turns the blocks of the agents lack."""


EMBEDDED: Final = "embedded"
"""The backend while the local brain answers."""

CHECK_SECONDS: Final = 5.0
"""How often a model on our own network is checked, and how long a check may take."""

HOSTED_CHECK_SECONDS: Final = 300.0
"""How often a model on the Internet is checked. Turns notice sooner whether it answers."""


async def _nothing() -> None:
    """Closes a brain that holds nothing open."""


@contextmanager
def our_errors() -> Iterator[None]:
    """Raise an AnamnesisError instead of an error of the agents."""
    try:
        yield
    except AgentError as error:
        raise as_ours(error) from None


@dataclass(frozen=True, slots=True)
class BrainName:
    """The name of a brain, as ServerInfo gives it."""

    model: ModelInfo
    backend: str


class ModelStatus:
    """Whether the model answers. While it does not, the local brain answers in its place."""

    def __init__(
        self,
        failures: int,
        rest_seconds: float,
        check: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = monotonic,
        *,
        is_hosted: bool = False,
    ) -> None:
        """`is_hosted`: the model is on the Internet, so it is checked rarely."""
        self.breaker = _RecoveringBreaker(failures, rest_seconds, clock=clock)
        self._check, self._clock, self._is_hosted = check, clock, is_hosted
        self._failed_at: float | None = None
        self._checked_at: float | None = None

    @property
    def available(self) -> bool:
        """False from when the breaker opens or a check fails until the model has answered again."""
        answered = self.breaker.answered_at
        is_reachable = self._failed_at is None or (answered is not None and answered > self._failed_at)
        return is_reachable and self.breaker.has_recovered

    async def check(self) -> None:
        """Raise if the model is not reachable. One that answered within the usual pause is not asked."""
        latest = max(filter(None, (self._checked_at, self.breaker.answered_at)), default=None)
        is_fresh = latest is not None and self._clock() - latest < self._pause
        if is_fresh and self.available:
            return
        try:
            await self._check()
        except AnamnesisError:
            self._failed_at = self._clock()
            raise
        self._failed_at, self._checked_at = None, self._clock()

    @property
    def _pause(self) -> float:
        return HOSTED_CHECK_SECONDS if self._is_hosted else CHECK_SECONDS

    async def keep_checking(self) -> None:
        """Runs until cancelled: checks the model, so that a failure is known before a turn needs it.

        A check that takes too long changes nothing: the model may only be busy.
        """
        while True:
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_SECONDS):
                        await self.check()
            except AnamnesisError:
                pass  # `available` says so
            await asyncio.sleep(self._pause)


class _RecoveringBreaker(Breaker):
    """A breaker that knows whether the model has answered since the breaker last opened."""

    has_recovered = True
    answered_at: float | None = None

    def record_success(self) -> None:
        super().record_success()
        self.has_recovered, self.answered_at = True, self._clock()

    def record_failure(self, retry_after: float | None) -> None:
        super().record_failure(retry_after)
        self.has_recovered = self.has_recovered and not self.is_open


@dataclass(frozen=True, slots=True)
class SelectedBrain:
    """A brain, its name, the name of its fallback, how to close it, and whether its model answers."""

    brain: Brain
    name: BrainName
    fallback: BrainName
    close: Callable[[], Awaitable[None]] = _nothing
    status: ModelStatus | None = None

    def now(self) -> BrainName:
        """The name of the brain that answers now."""
        return self.name if self.status is None or self.status.available else self.fallback

    @property
    def notice(self) -> str | None:
        """What a person should know: that there is no language model, or that it does not answer now."""
        if self.status is None:
            return NO_MODEL
        return None if self.status.available else MODEL_AWAY.format(name=self.name.model.name)


def choose(
    settings: Settings,
    local: Brain,
    roster: Roster,
    prompts: PromptFiles,
    toolbox: Toolbox,
    agents: LettaDirectory | None = None,
) -> SelectedBrain:
    """The brain that the settings name: Letta, else a chat endpoint, else the local brain.

    Only the library of the chosen one is imported. With Letta, `agents` finds its agents.
    """
    if settings.letta.base_url and agents is not None:
        _refuse_model_beside_letta(settings)
        model, name = _letta(settings, agents)
    elif settings.chat.model or settings.chat.endpoint:
        model, name = _chat(settings)
    else:
        return SelectedBrain(local, _local_name(local), _local_name(local))

    from agents.models.fallback import ModelBrain, ModelOptions

    async def check() -> None:
        with our_errors():
            await model.check_health()

    rules = settings.brain
    address = settings.letta.base_url if name.backend == "letta" else settings.chat.endpoint
    status = ModelStatus(
        rules.breaker_failures, rules.breaker_seconds, check, is_hosted=is_on_the_internet(address)
    )
    brain = ModelBrain(
        model,
        local,
        roster,
        prompts.prompt_named("context_extractor").text,
        ModelOptions(
            tools=toolbox.tools,
            retry_policy=RetryPolicy(
                rules.reply_seconds, rules.stall_seconds, rules.budget_seconds, rules.attempts
            ),
            breaker=status.breaker,
            request_tokens=settings.chat.request_tokens,
        ),
    )
    return SelectedBrain(brain, name, _local_name(local), model.close, status)


def is_on_the_internet(address: str) -> bool:
    """Whether an address names a host that is neither this machine nor one of its own network."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith((".local", ".internal", ".lan", ".localhost"))


def _local_name(local: Brain) -> BrainName:
    return BrainName(ModelInfo(name=local.name, provider="anamnesis"), EMBEDDED)


def _refuse_model_beside_letta(settings: Settings) -> None:
    """Refuse `--model` if Letta is configured: nobody could say which of the two gets the messages."""
    if settings.origins.get("chat.model") == COMMAND_LINE:
        rule = "cannot be used together with --model; unset it, or name its model with letta.model"
        where = settings.origins.get("letta.base_url", "")
        raise AnamnesisError(BAD_SETTING, key="letta.base_url", where=where, rule=rule)


def _letta(settings: Settings, agents: LettaDirectory) -> "tuple[LettaAgents | ChatModel, BrainName]":
    from agents.models.requests import EXTRACTOR
    from agents.models.servers.letta import LettaAgents, RoleModels

    letta, rules = settings.letta, settings.brain
    model = LettaAgents(
        letta.base_url,
        letta.api_key.get_secret_value(),
        RoleModels(letta.model, {EXTRACTOR: letta.extractor_model}),
        agents.agent_for,
        agents.forget_missing,
        partial(Breaker, rules.breaker_failures, rules.breaker_seconds),
        agents.turns_behind,
    )
    return model, BrainName(ModelInfo(name=model.name, provider="letta"), "letta")


def _chat(settings: Settings) -> "tuple[LettaAgents | ChatModel, BrainName]":
    model = chat_model(settings)
    return model, BrainName(ModelInfo(name=model.name, provider="openai-style"), "chat")


def chat_model(settings: Settings) -> "ChatModel":
    """The model behind the chat endpoint that the settings name. Raises if they name none."""
    from agents.models.requests import EXTRACTOR
    from agents.models.servers.openai import ChatModel, ChatOptions

    chat = settings.chat
    if not chat.model:
        where = settings.origins.get("chat.endpoint", "")
        raise AnamnesisError(BAD_SETTING, key="chat.endpoint", where=where, rule="needs chat.model, too")
    return ChatModel(
        chat.endpoint,
        chat.api_key.get_secret_value(),
        chat.model,
        {EXTRACTOR: chat.extractor_model},
        ChatOptions(chat.temperature, chat.answer_tokens),
    )
