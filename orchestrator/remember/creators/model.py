"""Asks the model for the creators of memories, within a budget of their own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Protocol

from agents.errors import ModelTrouble
from agents.models import usage
from agents.models.requests import USER, ModelRequest, Utterance
from agents.models.usage import ModelUsage
from agents.ports import NoTools, ToolUser
from orchestrator.errors import MEMORY_NOT_MADE, AnamnesisError
from orchestrator.ops.foreground import Attempt, Foreground
from orchestrator.remember.creators.generation import RequestOrigin
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.turn.model_calls import MEMORY_ROLE

_INSTRUCTIONS: Final = "You help to remember conversations between a person and a health companion."
INTERRUPTED: Final = "turns_run"
ATTEMPTS: Final = 3
"""How often a request is sent that turns interrupt."""


class Speaker(Protocol):
    """A language model."""

    def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        """Yield a reply in fragments."""


class Completion:
    """Sends prompts to a model. Each request is stored with the conversation that it is made for."""

    def __init__(
        self,
        model: Speaker,
        store: Store,
        *,
        seconds: float,
        tokens_per_day: int,
        foreground: Foreground | None = None,
    ) -> None:
        """A reply may take `seconds`. All requests of a day may have `tokens_per_day`; 0 is no limit.

        Requests wait while turns of `foreground` run. One that is being answered when a turn begins is
        cancelled and sent again afterwards, because a model server may answer one request at a time.
        """
        self._model, self._store = model, store
        self._seconds, self._tokens_per_day = seconds, tokens_per_day
        self._foreground = foreground or Foreground()

    async def __call__(self, prompt: str, caller: RequestOrigin) -> str:
        """The reply to a prompt. Raises `MEMORY_NOT_MADE` if there is none, or if the budget is used up."""
        if self._tokens_per_day and await self._store.read(_tokens_today) >= self._tokens_per_day:
            raise AnamnesisError(MEMORY_NOT_MADE, rule="the tokens of this day are used up")
        conversation_id = caller.discussion.id if caller.discussion else "none"
        request = ModelRequest(
            MEMORY_ROLE, conversation_id, _INSTRUCTIONS, "", (Utterance(USER, prompt),), prompt
        )
        reply, rule = "", INTERRUPTED
        for _ in range(ATTEMPTS):
            if rule == INTERRUPTED and await self._foreground.is_idle_within(self._seconds):
                reply, rule = await self._reply(request, caller)
        if rule:
            raise AnamnesisError(MEMORY_NOT_MADE, rule=f"the model did not answer ({rule})")
        return reply

    async def _reply(self, request: ModelRequest, caller: RequestOrigin) -> tuple[str, str]:
        """The reply to a request, and an empty text; or an empty reply, and why there is none."""
        attempt = Attempt()
        with usage.record() as used:
            try:
                async with asyncio.timeout(self._seconds) as scope:
                    with self._foreground.interrupting(attempt, scope):
                        async with aclosing(self._model.speak(request, NoTools())) as fragments:
                            return "".join([fragment async for fragment in fragments]), ""
            except ModelTrouble as trouble:
                return "", trouble.kind
            except TimeoutError:
                return "", INTERRUPTED if attempt.is_interrupted else "timed_out"
            finally:
                await self._store_calls(used, caller)

    async def _store_calls(self, used: ModelUsage, caller: RequestOrigin) -> None:
        of, message_id = caller.discussion, caller.message_id
        if of is None or message_id is None:
            return

        def work(tx: Transaction) -> None:
            for number, call in enumerate(used.calls, 1):
                id = tx.model_calls.add(
                    of.id,
                    message_id,
                    number,
                    role=call.role,
                    model=call.model,
                    digest=call.digest,
                    request=call.request,
                )
                tx.model_calls.end(
                    id,
                    outcome=call.outcome,
                    prompt_tokens=call.prompt_tokens,
                    completion_tokens=call.completion_tokens,
                )

        await self._store.write(work)


def _tokens_today(tx: Transaction) -> int:
    midnight = tx.now.replace(hour=0, minute=0, second=0, microsecond=0)
    return tx.model_calls.memory_tokens_since(midnight)
