"""The brain with a language model, and with a fallback brain that does the model's work where it fails."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Final, Protocol, TypeVar

from agents.errors import AnswerCut, ModelTrouble, UnreadableReply
from agents.models import usage
from agents.models.gate import is_bare_yes, is_sure_without_model, plain_questions
from agents.models.replies import without_control_characters
from agents.models.requests import MOST_TOKENS, ModelRequest, answer_request, understand_request
from agents.models.retries import Breaker, RetryPolicy, call_with_retries
from agents.models.understanding import parse_understanding
from agents.ports import Brain, Brief, Situation, ToolUser
from agents.roster import Roster
from agents.sentences import has_whole_sentence
from agents.tools.toolbox import Tool
from agents.values import ActKind, FactReading, Understanding
from memory_blocks.facts.changes import Op

T = TypeVar("T")

MAX_ANSWER: Final = 12_000
"""Maximum length of an answer. A longer one is cut: a model that repeats itself never ends on its own."""

_READING_SHARE: Final = 0.5
"""The share of a turn's budget that the reading may use up, so that a slow one leaves time for the answer."""

_NO_ANSWER: Final = "the model did not answer"
_UNREADABLE: Final = "the model's reply could not be read"
_USED_UP: Final = "the tokens of this person for today are used up"


class Model(Protocol):
    """A language model, or agents with one. Raises `ModelTrouble`, and records its cost in `usage`."""

    @property
    def name(self) -> str:
        """The model's name in ServerInfo."""

    @property
    def repeatable(self) -> bool:
        """Whether a request may be sent again if it is unknown whether the first one arrived."""

    async def decide(self, request: ModelRequest) -> str:
        """Return one whole reply, which should fit the request's schema."""

    def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        """Yield a reply in fragments, and use tools on the way. Closing the generator ends the request."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What may differ between brains with a model."""

    tools: Sequence[Tool] = ()
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    breaker: Breaker = field(default_factory=Breaker)
    request_tokens: int = MOST_TOKENS


class ModelBrain:
    """Asks a model what a message means and what to answer; the fallback brain does what the model cannot.

    `prompt` is the system prompt of the call that reads a message.
    """

    def __init__(
        self,
        model: Model,
        fallback: Brain,
        roster: Roster,
        prompt: str,
        options: ModelOptions | None = None,
    ) -> None:
        options = options or ModelOptions()
        self._model, self._fallback, self._roster, self._prompt = model, fallback, roster, prompt
        self._tools, self._request_tokens = tuple(options.tools), options.request_tokens
        self._policy, self.breaker = options.retry_policy, options.breaker
        self._plain_questions = plain_questions(each.interview for each in roster.agents.values())

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def understand(self, message: str, situation: Situation) -> Understanding:
        """The model's reading. The fallback brain's only if it cannot be wrong, or if the model fails.

        The reasoning says who decided, and whether the two readings differ.
        """
        local = await self._fallback.understand(message, situation)
        if situation.urgent:
            local = local.model_copy(update={"in_haste": True})
            return _with_reason(local, "decided locally, since the person may be in danger")
        if local.agreed and is_bare_yes(message):
            return _with_reason(local, "decided locally, since the person agreed to what was offered")
        answer = _last_answer(situation)
        if is_sure_without_model(message, answer, situation, local, self._plain_questions):
            return _with_reason(local, "decided locally, since it answers a plain question plainly")
        request = understand_request(self._prompt, message, situation, self._roster, self._request_tokens)
        parse = partial(parse_understanding, situation=situation, intents=self._roster.intents)
        found, failure = await self._decide(request, parse)
        if found is None:
            return _with_reason(local, f"decided locally, since {failure}")
        found = _asked_first(found, local, situation)
        kept = ("asked_before", "passed_over", "sentiment")
        update = {name: getattr(local.enrichment, name) for name in kept}
        found = found.model_copy(update={"enrichment": found.enrichment.model_copy(update=update)})
        return _with_reason(found, "; ".join(("decided by the model", *differences(found, local))))

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The model's answer; the fallback brain's if the model fails before its first whole sentence.

        Nothing is sent before that. If the model fails later, its whole sentences stay: `AnswerCut`.
        """
        answer = self._fallback.speak(brief)
        if not brief.specialist.says and not _changes_memory(brief):
            with suppress(ModelTrouble):
                answer = await self._call(partial(self._start_answer, brief))
        async with aclosing(answer) as fragments:
            async for fragment in fragments:
                yield fragment

    # --- asking the model -----------------------------------------------------------------------------------

    async def _decide(self, request: ModelRequest, parse: Callable[[str], T]) -> tuple[T | None, str]:
        """The model's parsed reply, after at most one repair; or None and why there is none."""
        turn_usage = usage.current()
        try:
            reply = await self._call(partial(self._reply, request), _READING_SHARE)
            try:
                return parse(reply), ""
            except UnreadableReply as unreadable:
                turn_usage.repairs += 1
                repair = request.with_repair(unreadable.rule)
            return parse(await self._call(partial(self._reply, repair), _READING_SHARE)), ""
        except ModelTrouble as trouble:
            return None, _USED_UP if trouble.kind == usage.DAILY_TOKENS else _NO_ANSWER
        except UnreadableReply:
            turn_usage.fallback_reason = turn_usage.fallback_reason or "reply_unreadable"
            return None, _UNREADABLE

    async def _call(self, call: Callable[[], Awaitable[T]], share: float = 1.0) -> T:
        """Call the model with retries, within a share of the turn's budget.

        A decision that failed does not forbid the answer.
        """
        turn_usage = usage.current()
        try:
            if turn_usage.barred_by:
                raise ModelTrouble(turn_usage.barred_by, counts_against_model=False)
            if self._seconds_left(share) <= 0:
                raise ModelTrouble("budget", counts_against_model=False)
            deadline = monotonic() + self._seconds_left(share)
            return await call_with_retries(call, self.breaker, self._policy, deadline)
        except ModelTrouble as trouble:
            turn_usage.fallback_reason = trouble.kind
            raise

    async def _reply(self, request: ModelRequest) -> str:
        async with self._reply_timeout(_READING_SHARE):
            return await self._model.decide(request)

    def _seconds_left(self, share: float = 1.0) -> float:
        """How many seconds are left of a share of this turn's budget."""
        return usage.current().started + share * self._policy.budget_seconds - monotonic()

    async def _start_answer(self, brief: Brief) -> AsyncGenerator[str, None]:
        """Wait for the first whole sentence, and return the answer from its beginning."""
        tools = [tool for tool in self._tools if tool.name in brief.specialist.tools]
        request = answer_request(brief, tools, self._request_tokens)
        fragments = self._model.speak(request, brief.tools)
        text = ""
        try:
            async with self._reply_timeout():
                async for fragment in fragments:
                    text += without_control_characters(fragment)
                    if has_whole_sentence(text):
                        break
            if not text.strip():
                raise ModelTrouble("said_nothing")
        except BaseException:
            await fragments.aclose()
            raise
        return self._continue_answer(text, fragments)

    async def _continue_answer(
        self, text: str, fragments: AsyncGenerator[str, None]
    ) -> AsyncGenerator[str, None]:
        length = len(text)
        async with aclosing(fragments):
            yield text
            try:
                while length <= MAX_ANSWER:
                    async with self._timeout(self._policy.stall_seconds):
                        fragment = without_control_characters(await anext(fragments))
                    length += len(fragment)
                    yield fragment
            except StopAsyncIteration:
                return
            except ModelTrouble as trouble:
                reason = trouble.kind
            else:
                reason = "too_long"
        usage.current().cut_reason = reason
        raise AnswerCut(self.name, "speak")

    def _reply_timeout(self, share: float = 1.0) -> AbstractAsyncContextManager[None]:
        """The time limit of one reply, or what is left of a share of the turn's budget if that is less."""
        left, reply = self._seconds_left(share), self._policy.reply_seconds
        return self._timeout(left, "budget") if left < reply else self._timeout(reply)

    @asynccontextmanager
    async def _timeout(self, seconds: float, kind: str = "timed_out") -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds) as scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise ModelTrouble(kind, retryable=self._model.repeatable) from None


def _changes_memory(brief: Brief) -> bool:
    """Whether the answer asks before something remembered is changed, or says that it was changed."""
    asks = any(act.kind in (ActKind.FORGET, ActKind.UNDO) for act in brief.understanding.acts)
    return asks or brief.understanding.agreed or brief.offer is not None


def _asked_first(found: Understanding, local: Understanding, situation: Situation) -> Understanding:
    """A reading in which nothing is forgotten before the person was asked once.

    A reading that does all that was just offered agrees to the offer; one that does a part of it makes a
    smaller offer. What it ends beside the offer is only proposed if the person asks to forget. The local
    reading decides only where the model's changes nothing of what is meant.
    """
    offered = situation.offer.changes if situation.offer else ()
    done = tuple(each for each in offered if any(_does(change, each) for change in found.changes))
    left = tuple(each for each in found.changes if not any(_does(each, change) for change in offered))
    is_request = any(act.kind is ActKind.FORGET for act in found.acts)
    ending = tuple(each for each in left if each.op.ends and each.target) if is_request else ()
    proposed = tuple(change.model_copy(update={"op": Op.FORGET}) for change in ending)
    changes = tuple(each for each in left if not (is_request and each.op.ends))
    if done and len(done) == len(offered):
        return found.model_copy(update={"changes": changes, "proposed": proposed, "agreed": True})
    if done or proposed:
        return found.model_copy(update={"changes": changes, "proposed": (*done, *proposed)})
    if is_request:
        meant = {"proposed": local.proposed, "forgets_all": local.forgets_all}
        return found.model_copy(update={"changes": changes, **meant})
    return found.model_copy(update={"agreed": local.agreed and not found.changes})


def _does(change: FactReading, offered: FactReading) -> bool:
    """Whether a change is the one that was offered."""
    if change.target != offered.target or change.target is None:
        return False
    if offered.op.ends:
        return change.op.ends
    return change.op is offered.op and change.value.casefold() == offered.value.casefold()


def differences(found: Understanding, local: Understanding) -> Iterator[str]:
    """In what a local reading of the same message differs from the model's."""
    if local.intent.intent != found.intent.intent:
        yield f"the local reading would be {local.intent.intent}"
    readings = [
        {(each.op, each.kind, each.subject.casefold(), each.value.casefold()) for each in reading.changes}
        for reading in (found, local)
    ]
    if readings[0] != readings[1]:
        yield "the local reading would change other facts"


def _with_reason(reading: Understanding, who: str) -> Understanding:
    reasoning = f"{reading.intent.reasoning}; {who}"
    return reading.model_copy(update={"intent": reading.intent.model_copy(update={"reasoning": reasoning})})


def _last_answer(situation: Situation) -> str:
    turns = situation.blocks.conversation_history.turns
    answer = turns[-1].agent_response if turns else None
    return answer.content if answer else ""
