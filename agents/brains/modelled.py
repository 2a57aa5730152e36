"""A brain with a model behind it: what the local brain is sure of is not asked, and it stands in at need."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Final, Protocol, TypeVar

from agents import minutes
from agents.brains import asking
from agents.brains.asking import CLASSIFIER, EXTRACTOR, Ask, sayable
from agents.brains.local import LocalBrain
from agents.brains.patience import Breaker, Patience, persist
from agents.errors import AnswerCut, ModelTrouble, Unreadable
from agents.ports import Brief, Embedded, ToolUser
from agents.roster import Roster
from agents.sentences import has_whole_sentence
from agents.tools.toolbox import Tool
from agents.values import UNCLEAR, Enrichment, Intent
from memory_blocks.models import Blocks

T = TypeVar("T")

MOST_ANSWER: Final = 12_000
"""A longer answer is cut: a model that goes round in circles never ends by itself."""

_NO_ANSWER: Final = "the model did not answer"
_NOT_READ: Final = "the model's reply could not be read"


class Model(Protocol):
    """A language model, or agents around one. Raises `ModelTrouble`; what it uses goes into the minutes."""

    @property
    def name(self) -> str:
        """How it is called in ServerInfo."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether it may be asked again where nobody knows if it heard the question."""
        ...

    async def decide(self, ask: Ask) -> str:
        """One whole reply, which should fit the schema of the question."""
        ...

    def speak(self, ask: Ask, tools: ToolUser) -> AsyncGenerator[str, None]:
        """A reply in fragments, with tools used on the way. Closing it ends the work on it."""
        ...


@dataclass(frozen=True, slots=True)
class Sureness:
    """From which confidence on the local brain decides alone: what a message means, where it belongs."""

    context: float = 0.75
    intent: float = 0.6


class ModelBrain:
    """Understands, decides and speaks with a model where that is worth the wait."""

    def __init__(
        self,
        model: Model,
        local: LocalBrain,
        roster: Roster,
        prompts: Mapping[str, str],
        *,
        tools: Sequence[Tool] = (),
        sureness: Sureness | None = None,
        patience: Patience | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self._model, self._local, self._roster, self._prompts = model, local, roster, prompts
        self._tools = tuple(tools)
        self._sureness, self._patience = sureness or Sureness(), patience or Patience()
        self.breaker = breaker or Breaker()

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    async def extract(self, message: str, blocks: Blocks) -> Enrichment:
        """The local brain's enrichment where it is sure; else the model's, with what was known before."""
        local = await self._local.extract(message, blocks)
        if local.quality >= self._sureness.context:
            return local
        ask = asking.to_extract(self._prompts[EXTRACTOR], message, blocks)
        found, why = await self._decided(ask, asking.read_enrichment)
        if found is None:
            minutes.of_this_turn().reason(f"The local brain read the message, since {why}")
            return local
        facts = dict.fromkeys((*local.facts, *found.facts))
        still_open = {"asked_before": local.asked_before, "passed_over": local.passed_over}
        return found.model_copy(update={"facts": tuple(facts), **still_open})

    async def classify(self, enrichment: Enrichment, blocks: Blocks, embedded: Embedded) -> Intent:
        """The local brain's intent where it is sure, else the model's. Either way it says so."""
        local, sure = await self._local.classify(enrichment, blocks, embedded), self._sureness.intent
        if local.intent != UNCLEAR and local.confidence >= sure:
            return _because(local, f"sure without the model: {local.confidence:.2f} is at least {sure:.2f}")
        ask = asking.to_classify(self._prompts[CLASSIFIER], enrichment, blocks, self._roster)
        found, why = await self._decided(ask, partial(asking.read_intent, intents=self._roster.intents))
        return found or _because(local, f"the local brain decided, since {why}")

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The model's answer; the local brain's where the model fails before its first sentence is whole.

        Until then nothing was said. Whoever fails later has its whole sentences stand: `AnswerCut`.
        """
        answer = self._local.speak(brief)
        if not brief.specialist.says:
            with suppress(ModelTrouble):
                answer = await self._asked(partial(self._begun, brief))
        async with aclosing(answer) as fragments:
            async for fragment in fragments:
                yield fragment

    # --- asking the model -----------------------------------------------------------------------------------

    async def _decided(self, ask: Ask, read: Callable[[str], T]) -> tuple[T | None, str]:
        """What the model decided, after one repair at most; or why it did not."""
        taken = minutes.of_this_turn()
        try:
            reply = await self._asked(partial(self._reply, ask))
            try:
                return read(reply), ""
            except Unreadable as unreadable:
                taken.repairs += 1
                again = replace(ask, message=asking.to_repair(ask.message, unreadable.rule))
            return read(await self._asked(partial(self._reply, again))), ""
        except ModelTrouble:
            return None, _NO_ANSWER
        except Unreadable:
            taken.stood_in = taken.stood_in or "reply_unreadable"
            return None, _NOT_READ

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        """With patience; where that ends, the model is not asked again in this turn."""
        taken = minutes.of_this_turn()
        if taken.given_up:
            raise ModelTrouble("given_up")
        try:
            if self._left() <= 0:
                raise ModelTrouble("budget", blamed=False)
            return await persist(ask, self.breaker, self._patience, monotonic() + self._left())
        except ModelTrouble as trouble:
            taken.given_up, taken.stood_in = True, trouble.kind
            raise

    async def _reply(self, ask: Ask) -> str:
        async with self._for_a_reply():
            return await self._model.decide(ask)

    def _left(self) -> float:
        """For how many seconds this turn may still ask."""
        return minutes.of_this_turn().started + self._patience.budget_seconds - monotonic()

    async def _begun(self, brief: Brief) -> AsyncGenerator[str, None]:
        """An answer whose first sentence is whole."""
        its = [tool for tool in self._tools if tool.name in brief.specialist.tools]
        spoken = self._model.speak(asking.to_answer(brief, its), brief.tools)
        text = ""
        try:
            async with self._for_a_reply():
                async for fragment in spoken:
                    text += sayable(fragment)
                    if has_whole_sentence(text):
                        break
            if not text.strip():
                raise ModelTrouble("said_nothing")
        except BaseException:
            await spoken.aclose()
            raise
        return self._going_on(text, spoken)

    async def _going_on(self, text: str, spoken: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
        said = len(text)
        async with aclosing(spoken):
            yield text
            try:
                while said <= MOST_ANSWER:
                    async with self._within(self._patience.stall_seconds):
                        fragment = sayable(await anext(spoken))
                    said += len(fragment)
                    yield fragment
            except StopAsyncIteration:
                return
            except ModelTrouble as trouble:
                kind = trouble.kind
            else:
                kind = "too_long"
        minutes.of_this_turn().cut = kind
        raise AnswerCut(self.name, "speak")

    def _for_a_reply(self) -> AbstractAsyncContextManager[None]:
        """As long as one waits for a reply, and no longer than the turn may ask."""
        left, reply = self._left(), self._patience.reply_seconds
        return self._within(left, "budget") if left < reply else self._within(reply)

    @asynccontextmanager
    async def _within(self, seconds: float, kind: str = "timed_out") -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds) as scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise ModelTrouble(kind, again=self._model.repeatable) from None


def _because(intent: Intent, why: str) -> Intent:
    return intent.model_copy(update={"reasoning": f"{intent.reasoning}; {why}"})
