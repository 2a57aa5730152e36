"""The answer of one turn: its stream of sentences, its safety and its record in the blocks, kept together."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Final, TypeVar

import structlog

from agents.errors import AnswerCut
from agents.models import usage
from agents.models.usage import ModelUsage
from agents.ports import Brief, Embedded, Recalled, Situation, ToolUser
from agents.safety.replies.quotations import without_quotations
from agents.stations.understand import understand
from agents.tools.built_in import SEARCH_MEMORY
from agents.tools.toolbox import Toolbox
from agents.values import EMERGENCY, Understanding
from memory_blocks.errors import StaleRevision
from memory_blocks.facts.changes import CurrentFact, Decider
from memory_blocks.ledger.ledger import ReadResult, WriteResult
from memory_blocks.ports import ForeignChange
from orchestrator.errors import (
    FENCED,
    INTERRUPTED,
    POISON_MESSAGE,
    TURN_TIMED_OUT,
    AnamnesisError,
    as_ours,
)
from orchestrator.ops import telemetry
from orchestrator.ops.logs import get_logger
from orchestrator.remember.known import KnownFact
from orchestrator.remember.requests import Settled
from orchestrator.remember.utterances import UTTERANCE
from orchestrator.safety.assessment import SentenceDecision, TurnDecision, UnderstoodMessage
from orchestrator.store.repositories.turn.runs import Run
from orchestrator.turn.model_calls import TurnCalls
from orchestrator.turn.outbox import ConversationWrite, Fence, uninterrupted
from orchestrator.turn.queue import DELAYS, ClaimedTurn
from orchestrator.turn.recalled import (
    MemorySearch,
    beyond,
    changes_after_asking,
    is_about_memory,
    trace_found,
)
from orchestrator.turn.record import Routing, TurnRecord, TurnResult, without_last_turn
from orchestrator.turn.safety import TurnSafety
from orchestrator.turn.services import TurnServices
from orchestrator.turn.stream import AnswerStream
from orchestrator.turn.tools import TurnTools, close_open_calls
from orchestrator.wire.envelope import Scalar, error_envelope
from orchestrator.wire.ids import ErrorId

log = get_logger()

T = TypeVar("T")

OUTCOMES: Final[Mapping[str, telemetry.Outcome]] = MappingProxyType(
    {
        TURN_TIMED_OUT.name: "timed_out",
        POISON_MESSAGE.name: "set_aside",
        INTERRUPTED.name: "interrupted",
    }
)
"""The outcome that telemetry counts for each of these errors; any other error counts as failed."""

CANNOT_CLOSE: Final = (FENCED, *DELAYS)
"""Errors after which a turn cannot be closed now: another worker has it, or nothing can be stored."""

MAX_WRITES: Final = 5
"""How often the blocks are read and written again if another writer changes them in between."""


@asynccontextmanager
async def answering(claimed: ClaimedTurn, services: TurnServices) -> AsyncIterator["Answer"]:
    """An answer that ends exactly once: completed, stopped, or failed with an error."""
    turn, seconds = claimed.turn, services.limits.deadline_seconds
    problem: AnamnesisError | None = None
    is_cancelled = False
    with (
        structlog.contextvars.bound_contextvars(conversation_id=turn.conversation_id, turn=turn.number),
        telemetry.turn(turn.meta, conversation_id=turn.conversation_id) as watched,
        usage.record() as model_usage,
    ):
        answer = Answer(
            claimed,
            services,
            model_usage,
            Run(turn.conversation_id, turn.number, turn.message.id, watched),
        )
        try:
            async with asyncio.timeout(seconds) as scope:
                with claimed.stoppable(scope):
                    yield answer
        except asyncio.CancelledError:
            problem, is_cancelled = AnamnesisError(INTERRUPTED), True
        except Exception as error:
            is_timeout = isinstance(error, TimeoutError) and scope.expired()
            problem = _timeout(claimed, seconds) if is_timeout else _problem_of(error)
        watched.outcome = "stopped" if claimed.stopped else "completed"
        if problem is not None:
            watched.outcome = OUTCOMES.get(problem.problem.name, "failed")
        try:
            with telemetry.station("write"):
                await answer.end(problem)
        except AnamnesisError as error:
            if error.problem is not FENCED:
                raise
            watched.outcome = "interrupted"
            log.warning("turn_lost", error=error.problem.name)
        if is_cancelled:
            raise asyncio.CancelledError


def _timeout(claimed: ClaimedTurn, seconds: float) -> AnamnesisError | None:
    """The error of a turn that ran into its deadline; None if the person stopped it."""
    return None if claimed.stopped else AnamnesisError(TURN_TIMED_OUT, seconds=seconds)


def _problem_of(error: Exception) -> AnamnesisError | None:
    """The error that ended a turn, as a row of our table; None if the answer stays as far as it came."""
    if isinstance(error, AnswerCut):
        log.warning("answer_cut")
        return None
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    ours = as_ours(error)
    if ours is not error:
        log.error("turn_failed", exc_info=error)
    return ours


def _quotable(situation: Situation) -> tuple[str, ...]:
    """What an answer may quote: what the person said in this conversation, and their facts."""
    turns = situation.blocks.conversation_history.turns
    return (*(turn.user_message.content for turn in turns), *_words_of(situation.facts))


def _words_of(facts: Sequence[CurrentFact]) -> tuple[str, ...]:
    """The person's own words in facts, not what a model made of them."""
    own = [fact for fact in facts if fact.decided_by is not Decider.MODEL]
    return (*(fact.value for fact in own), *(fact.words for fact in own))


def _notes_named_by(settled: Settled, situation: Situation) -> tuple[str, ...]:
    """The notes that an answer about a change of the notes names. We say it ourselves, not a model."""
    if settled.offer is None and not settled.understanding.agreed:
        return ()
    return tuple(text for fact in situation.facts for text in (fact.value, fact.words))


async def assess_or_reply(
    answer: "Answer",
    understanding: Understanding,
    known: UnderstoodMessage,
    recalled: Recalled | None = None,
) -> TurnDecision | None:
    """Decide by what the turn knows now. None: safety has answered in a specialist's place.

    The last check of a turn comes with the memories that were found; they are traced after it.
    """
    is_timed = recalled is None  # the last check only compares the intent
    with telemetry.station("guard") if is_timed else nullcontext():
        decision = await answer.assess(known)
    if recalled is not None:
        await answer.show_understanding(recalled, understanding.intent.reasoning)
    if decision.reply is None:
        return decision
    await answer.reply(understanding, decision)
    return None


async def read_again(answer: "Answer") -> None:
    """Have the brain read a message again that it read in haste, because the person may be in danger.

    It comes after the answer, and all that was said is sent first. The first reading stays if this one fails
    or would have to ask the person something, or if the next message arrives meanwhile.
    """
    routing, situation, agents = answer.routing, answer.situation, answer.services.agents
    if routing is None or situation is None or not routing.understanding.in_haste or answer.claimed.stopped:
        return
    await answer.say("")
    trouble = answer.usage.fallback_reason
    calm = replace(situation, urgent=False)
    reading = understand(agents.brain, answer.message, calm, agents.roster.intents)
    found = await answer.claimed.unless_another_waits(reading)
    answer.usage.fallback_reason = trouble  # the answer was no worse for it
    if found is None or changes_after_asking(routing.understanding, ()):
        return
    if not changes_after_asking(found, situation.facts):
        answer.understand(found)
        found = found.model_copy(update={"intent": routing.understanding.intent})
        answer.route(Routing(found, routing.specialist))


async def recall(
    answer: "Answer", embedded: Embedded, understanding: Understanding, situation: Situation
) -> Recalled:
    """Search long-term memory; add facts of other conversations, and leave out what is in the history."""
    turn, given = answer.turn, answer.known_facts(everything=is_about_memory(understanding))
    answer.searched = await answer.services.memory.recall.search(
        embedded,
        turn.conversation.user_id,
        turn.conversation_id,
        [each.memory.id for each in given],
        situation.now.tzinfo or UTC,
    )
    return beyond(situation.blocks, answer.searched, given)


def brief_for(
    answer: "Answer",
    routing: Routing,
    situation: Situation,
    facts: tuple[CurrentFact, ...],
    recalled: Recalled,
    settled: Settled,
) -> Brief:
    """All that the brain needs to answer as the specialist who was picked."""
    agents, specialist = answer.services.agents, routing.specialist
    prompt = agents.prompts.prompt(specialist)
    answer.run.prompt, answer.run.prompt_revision = prompt.name, prompt.revision
    return Brief(
        specialist,
        answer.message,
        routing.understanding,
        situation,
        facts,
        recalled,
        prompt,
        answer.turn.said,
        answer.tools(agents.toolbox.only(specialist.tools)),
        settled.offer,
        settled.undone,
    )


class Answer:
    """One answer while it is made. It owns the transactions; its three parts do the work inside them."""

    def __init__(
        self, claimed: ClaimedTurn, services: TurnServices, model_usage: ModelUsage, run: Run
    ) -> None:
        self.claimed, self.turn, self.services = claimed, claimed.turn, services
        self.usage, self.run = model_usage, run
        self._own_words: tuple[str, ...] = ()
        self._fence = Fence(self.turn.number, claimed.lease.epoch)
        self._stream = AnswerStream(self.turn)
        self._safety = TurnSafety(services.monitor, self.turn)
        self.message = self._safety.decision.resumes or self.turn.message.contents
        """The message that is answered: the turn's own, or an earlier one whose possible danger it denies."""
        self._limits, self._sync = services.limits, services.memory.sync
        self._record = TurnRecord(
            self.turn, services.memory.ledger, follow_up_days=self._limits.follow_up_days
        )
        self._calls = TurnCalls(self.turn.message.id, model_usage)
        self.routing: Routing | None = None
        self.situation: Situation | None = None  # what was known when the answer began
        self._started_at = perf_counter()
        self._context_seconds: float | None = None
        self.searched: Recalled | None = None
        """What the search of long-term memory found; None if the turn ended before it."""

    @property
    def in_danger(self) -> bool:
        """Whether this is a safety answer."""
        return self._safety.decision.assessment.is_danger

    async def begin(self) -> Situation:
        """Start the answer and read the blocks and facts, as they were before this turn.

        A person in danger gets the first sentence before any block or copy of a block is read. An answer of
        which a dead process had sent a sentence is not answered again; a message that fails too often is set
        aside. If the turn answers the message before, the turn that only asked about danger is left out.
        """
        if self.turn.is_cut:
            raise AnamnesisError(INTERRUPTED)
        if self.turn.turn.attempts > self._limits.attempts:
            raise AnamnesisError(POISON_MESSAGE, attempts=self._limits.attempts)
        if self.in_danger:
            await uninterrupted(self._start_with_safety())
        changes = await self._sync.foreign_changes(self.turn.conversation_id)

        def work(write: ConversationWrite) -> ReadResult:
            if not self._stream.is_started:
                self._stream.start(write, self._safety.decision)
            self._record.adopt(write, changes)
            self._calls.bar_if_used_up(write, self._limits.tokens_per_person_and_day)
            return self._record.read(write)

        async def start_and_read() -> tuple[ReadResult, Situation]:
            reading = await self._commit(work, step="begin")
            self._stream.is_started = True
            return reading, self._record.keep(reading, urgent=self.in_danger)

        reading, situation = await uninterrupted(start_and_read())
        await self._sync.copy_if_due(self._record.conversation, reading.stored, changes)
        turns = situation.blocks.conversation_history.turns
        resumed = bool(turns) and turns[-1].user_message.content == self._safety.decision.resumes
        self._own_words = (self.message, *_quotable(situation))
        blocks = without_last_turn(situation.blocks) if resumed else situation.blocks
        self.situation = replace(situation, blocks=blocks)
        return self.situation

    async def settle(self, reading: Understanding, situation: Situation) -> Settled:
        """Decide on a request to change memories: change them, undo a change, or ask the person first."""
        settled = await self._commit(partial(self._record.settle, reading, situation.facts), step="recall")
        self._own_words += (*settled.texts, *_notes_named_by(settled, situation))
        return settled

    def understand(self, understanding: Understanding) -> tuple[CurrentFact, ...]:
        """Take the changes to the facts that the message makes; return the facts that hold after them."""
        facts = self._record.change_facts(understanding.changes, self._stream.answer_id)
        self._own_words += _words_of(facts)
        return facts

    def known_facts(self, *, everything: bool) -> tuple[KnownFact, ...]:
        """Facts from other conversations that this turn is given: those that no earlier turn was, or all."""
        return self._record.known if everything else self._record.new_here

    async def _start_with_safety(self) -> None:
        await self._commit(lambda write: self._stream.start(write, self._safety.decision), step="begin")
        self._stream.is_started = True

    async def assess(self, known: UnderstoodMessage) -> TurnDecision:
        """Decide by what the turn knows now; record what is new, and say at once what cannot wait."""
        decision = self._safety.understand(known)
        if decision.notes:
            await uninterrupted(self._carry_out(decision))
        return decision

    async def _carry_out(self, decision: TurnDecision) -> None:
        def work(write: ConversationWrite) -> None:
            self._safety.write_notes(write, decision.notes)
            for sentence in decision.say_now if self.turn.streaming else ():
                self._stream.send(write, sentence, decision.assessment.meta)

        await self._commit(work, step="sentence")
        if not self._stream.is_sent_whole:
            self._stream.said += decision.say_now

    async def show_understanding(self, recalled: Recalled, reason: str) -> None:
        """Send the traces of the memories that were found and, if the client wants it, the reason."""
        self._context_seconds = perf_counter() - self._started_at
        self._own_words += tuple(hit.content for hit in recalled.memories if hit.memory_type == UTTERANCE)
        if not recalled.memories and not self.turn.reasoning:
            return
        steps = self._steps(reason, *self.usage.take_reasoning())

        def work(write: ConversationWrite) -> None:
            trace_found(write, recalled, self.turn.message.id, limit=self._limits.trace_content_characters)
            self._send_steps(write, steps)

        await self._commit(work, step="recall")

    def route(self, routing: Routing) -> None:
        """Remember how the message was understood and who answers it."""
        self.routing, intent = routing, routing.understanding.intent
        self.run.intent, self.run.confidence = intent.intent, intent.confidence
        self.run.specialist = routing.specialist.agent_type

    def tools(self, toolbox: Toolbox) -> ToolUser:
        """What the specialist calls tools with."""
        turn, services = self.turn, self.services
        search = MemorySearch(turn, self._fence, services)
        return TurnTools(
            toolbox.running(SEARCH_MEMORY, search.run),
            services.outbox,
            turn.conversation_id,
            turn.message.id,
            self._fence,
            turn.client_has_tools,
        )

    async def reply(self, understanding: Understanding, decision: TurnDecision) -> None:
        """Say what safety answers in a specialist's place."""
        understanding = understanding.model_copy(update={"intent": decision.intent})
        self.route(Routing(understanding, self.services.agents.roster.agents[EMERGENCY]))
        for sentence in decision.reply or ():
            await self.say(sentence)

    async def say_checked(self, sentence: str) -> None:
        """Say a sentence of the brain; if it is not allowed, say instead, once per kind of claim, why not."""
        stated = without_quotations(sentence, self._own_words)
        checked = self._safety.check(stated, self.routing.specialist if self.routing else None)
        if not checked.is_refused:
            await self.say(sentence)
            return
        await self._commit(lambda write: self._safety.write_notes(write, checked.notes), step="sentence")
        if not self._stream.has(f"{checked.text} "):
            await self.say(f"{checked.text} ")

    async def say(self, sentence: str) -> None:
        """Send the sentence before this one; this one waits for the next, or for the end."""
        if self._stream.is_sent_whole:
            return
        ready = self._stream.hold_back(sentence)
        if ready is None:
            return
        steps = self._steps(*self.usage.take_reasoning())

        def work(write: ConversationWrite) -> bool:
            self._send_steps(write, steps)
            self._stream.send(write, ready)
            return _stop_is_requested(write, self.turn.number)

        async def send() -> bool:
            stop = self.turn.streaming and await self._commit(work, step="sentence")
            self._stream.said.append(ready)
            return stop

        if await uninterrupted(send()) and not self.claimed.stopped:
            self.claimed.stop()

    async def end(self, problem: AnamnesisError | None) -> None:
        """Write the blocks, send the last sentence or the error, and close the turn."""
        stopped = problem is None and self.claimed.stopped
        last = "" if problem or stopped else self._stream.held_back or ""
        in_blocks = problem is None or problem.problem is not POISON_MESSAGE  # writing it may be what fails
        steps = self._steps(*self.usage.take_reasoning()) if problem is None else []
        sync, here = self._sync, self.turn.conversation_id
        by_agent = self.usage.used_own_tools
        changes = await sync.changes_during_turn(here, by_agent=by_agent) if in_blocks else ()
        for attempt in range(1, MAX_WRITES + 2):
            close = partial(
                self._close,
                attempt=attempt,
                last=last,
                steps=steps,
                problem=problem,
                stopped=stopped,
                changes=changes if in_blocks else None,
            )
            try:
                written = await self._commit(close, step="end")
            except StaleRevision as error:
                self._record.forget()
                if attempt >= MAX_WRITES:  # the error tells the person that this turn is in no block
                    log.error("blocks_not_written", error=error.name, attempts=attempt)
                    problem, last, in_blocks = problem or as_ours(error), "", False
            except Exception as error:
                ours = as_ours(error)
                if ours.problem in CANNOT_CLOSE or attempt > MAX_WRITES:
                    raise  # the turn stays open; the next worker that takes it ends it
                log.error("blocks_not_written", exc_info=error)
                problem, last, in_blocks = problem or ours, "", False
            else:
                log.info(
                    "turn_ended",
                    error=problem.problem.name if problem else None,
                    sentences=len(self._stream.said) + bool(last),
                )
                if written is not None:
                    await sync.copy_if_due(self._record.conversation, written.stored, changes)
                return

    def _steps(self, *reasons: str) -> list[tuple[int, SentenceDecision]]:
        """The reasons as far as they may be shown, numbered; none if the client did not ask for reasons."""
        if not self.turn.reasoning:
            return []
        specialist = self.routing.specialist if self.routing else None
        return self._stream.number_steps(self._safety.check_reason(each, specialist) for each in reasons)

    async def _commit(self, work: Callable[[ConversationWrite], T], *, step: str) -> T:
        with_calls, confirm = self._calls.saved_with(work)
        outbox, conversation_id = self.services.outbox, self.turn.conversation_id
        return confirm(await outbox.commit(conversation_id, with_calls, self._fence, step=step))

    # --- inside a transaction -------------------------------------------------------------------------------

    def _close(
        self,
        write: ConversationWrite,
        *,
        attempt: int,
        last: str,
        steps: Sequence[tuple[int, SentenceDecision]],
        problem: AnamnesisError | None,
        stopped: bool,
        changes: Sequence[ForeignChange] | None,
    ) -> WriteResult | None:
        """Close the turn. If `changes` is None, the blocks are not written; an empty one writes them."""
        stream, decision = self._stream, self._safety.decision
        if problem is None and not stopped and _stop_is_requested(write, self.turn.number):
            stopped, last = True, ""
        if problem is not None:
            close_open_calls(write, self.turn.message.id)
        if problem is None and not stream.is_started:
            stream.start(write, decision)
        text = stream.text + ("" if stream.is_sent_whole else last)
        written = None
        if changes is not None:
            written = self._record.write(write, self._result(text, problem, attempt), changes)
        write.tx.runs.add(self.run, stream.answer_id, problem.problem.name if problem else None)
        if problem is not None and not stream.is_sent_whole:
            self._send_problem(write, problem)
            return written
        meta: dict[str, Scalar] = {**({"stopped": True} if stopped else {}), **_usage_meta(self.usage)}
        self._send_steps(write, steps)
        if self.turn.streaming:
            stream.send(write, last, meta, is_final=True)
        elif not stream.is_sent_whole:
            stream.send_whole(write, text, {**meta, **decision.assessment.meta})
        write.tx.turns.finish(write.conversation.id, self.turn.number)
        return written

    def _result(self, text: str, problem: AnamnesisError | None, attempt: int) -> TurnResult:
        return TurnResult(
            answer=text,
            answer_id=self._stream.answer_id,
            routing=self.routing,
            in_danger=self.in_danger,
            error=problem.problem.name if problem else None,
            context_seconds=self._context_seconds,
            response_seconds=perf_counter() - self._started_at,
            write_attempts=attempt,
        )

    def _send_problem(self, write: ConversationWrite, problem: AnamnesisError) -> None:
        """Send the error that ends the turn. It takes the place of an answer that had not begun."""
        error = error_envelope(
            problem,
            error_id=ErrorId(write.tx.ids.new("err_")),
            conversation_id=write.conversation_id,
            originating_id=self.turn.message.id,
            safety=self._safety.decision.error_prefix,
        )
        write.say(error.body, error.meta)
        if not self.turn.begun and not (self._stream.is_started and self.turn.streaming):
            write.tx.turns.answer(write.conversation.id, self.turn.number, error.body.id)
        write.tx.turns.fail(write.conversation.id, self.turn.number, problem.problem.name)

    def _send_steps(self, write: ConversationWrite, steps: Sequence[tuple[int, SentenceDecision]]) -> None:
        """Send reasons, and record what of them may not be shown."""
        for _, reason in steps:
            self._safety.write_notes(write, reason.notes)
        self._stream.send_steps(write, steps)


def _stop_is_requested(write: ConversationWrite, turn_number: int) -> bool:
    """Whether the person asked to stop, perhaps through another process."""
    turn = write.tx.turns.get(write.conversation.id, turn_number)
    return turn is not None and turn.stop_requested


def _usage_meta(model_usage: ModelUsage) -> dict[str, Scalar]:
    """The meta of an answer's last frame about the models that were asked; nothing if none was."""
    if not model_usage.requests and not model_usage.fallback_reason:
        return {}
    meta: dict[str, Scalar] = {
        "model.asked": model_usage.requests,
        "model.prompt_tokens": model_usage.prompt_tokens,
        "model.completion_tokens": model_usage.completion_tokens,
    }
    if model_usage.fallback_reason:
        meta |= {"model.stood_in": "local", "model.trouble": model_usage.fallback_reason}
    if model_usage.cut_reason:
        meta |= {"model.cut": model_usage.cut_reason}
    return meta
