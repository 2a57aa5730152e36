"""An answer under way: what is said is stored and sent, and however it ends, the blocks remember it.

One sentence is always held back: what the turn wrote is traced before the last one, which says that it is.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Final

import structlog

from agents import minutes
from agents.errors import AnswerCut
from agents.minutes import Minutes
from agents.ports import Recalled, ToolUser
from agents.questions import kinds_asked
from agents.roster import Roster, Specialist
from agents.specialist import next_topics
from agents.tools.toolbox import Toolbox
from agents.values import COORDINATOR, EMERGENCY, Enrichment, Intent
from memory_blocks.edits import CompletedTurn, complete_turn
from memory_blocks.errors import StaleRevision
from memory_blocks.ledger import Ledger, Reading, Written
from memory_blocks.models import AgentResponse, Blocks, Conversation, UserMessage, changed
from memory_blocks.ports import ForeignChange
from memory_blocks.trace import Receipt
from orchestrator import telemetry, traces
from orchestrator.errors import (
    BUSY,
    FENCED,
    INTERRUPTED,
    POISON_MESSAGE,
    STORAGE_FULL,
    STORAGE_UNAVAILABLE,
    TURN_TIMED_OUT,
    AnamnesisError,
    as_ours,
)
from orchestrator.logs import get_logger
from orchestrator.outbox import Fence, Outbox, Page, beside, uninterrupted
from orchestrator.shown import Shown
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.tooling import Tooling, close_open
from orchestrator.turnstile import Ticket
from orchestrator.watch import About, Hearing, Watch, remembered, spoken_of
from orchestrator.wire.envelope import Scalar, error_envelope
from orchestrator.wire.ids import ErrorId, MessageId, SentenceId
from orchestrator.wire.messages import AssistantMessage, AssistantSentence, ReasoningStep, StartAnswer

log = get_logger()

READER: Final = "context_extractor"
"""Who reads and writes the blocks in a turn."""

OUTCOMES: Final[Mapping[str, telemetry.Outcome]] = MappingProxyType(
    {
        TURN_TIMED_OUT.name: "timed_out",
        POISON_MESSAGE.name: "set_aside",
        INTERRUPTED.name: "interrupted",
    }
)
"""How a turn is counted that ended with one of these; with any other, it failed."""

NOT_NOW: Final = (FENCED, BUSY, STORAGE_FULL, STORAGE_UNAVAILABLE)
"""The store refuses whatever one says: another worker has the turn, or nothing can be written."""

EARLIER_SESSIONS: Final = 3
"""How many of a person's earlier conversations a new one knows of."""

TRIES: Final = 5
"""How often the blocks are read again when someone else wrote them in between."""


@asynccontextmanager
async def answering(
    ticket: Ticket,
    outbox: Outbox,
    ledger: Ledger,
    shown: Shown,
    watch: Watch,
    *,
    deadline_seconds: float,
    attempts: int,
) -> AsyncIterator["Answer"]:
    """An answer that ends once: completed, stopped, or failed with an error that says what to do next."""
    turn = ticket.turn
    problem: AnamnesisError | None = None
    cut_off = False
    with (
        structlog.contextvars.bound_contextvars(conversation_id=turn.conversation_id, turn=turn.number),
        telemetry.turn(turn.meta, conversation_id=turn.conversation_id) as watched,
        minutes.taken() as taken,
    ):
        answer = Answer(ticket, outbox, ledger, shown, watch, attempts, taken)
        try:
            async with asyncio.timeout(deadline_seconds) as scope:
                with ticket.stoppable(scope):
                    yield answer
        except asyncio.CancelledError:
            problem, cut_off = AnamnesisError(INTERRUPTED), True
        except Exception as error:
            problem = _problem(error, scope, ticket, deadline_seconds)
        watched.outcome = "stopped" if ticket.stopped else "completed"
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
        if cut_off:
            raise asyncio.CancelledError


def _problem(
    error: Exception, scope: asyncio.Timeout, ticket: Ticket, deadline_seconds: float
) -> AnamnesisError | None:
    """What ended the turn, in our words; None when the person stopped it, or what was said stands."""
    if isinstance(error, TimeoutError) and scope.expired():
        return None if ticket.stopped else AnamnesisError(TURN_TIMED_OUT, seconds=deadline_seconds)
    if isinstance(error, AnswerCut):
        log.warning("answer_cut")
        return None
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    ours = as_ours(error)
    if ours is not error:
        log.error("turn_failed", exc_info=error)
    return ours


def told_of(taken: Minutes) -> dict[str, Scalar]:
    """What the last frame of an answer says of the models that were asked for it; nothing where none was."""
    if not taken.asked and not taken.stood_in:
        return {}
    said: dict[str, Scalar] = {
        "model.asked": taken.asked,
        "model.prompt_tokens": taken.prompt_tokens,
        "model.completion_tokens": taken.completion_tokens,
    }
    if taken.stood_in:
        said |= {"model.stood_in": "local", "model.trouble": taken.stood_in}
    if taken.cut:
        said |= {"model.cut": taken.cut}
    return said


class Answer:
    """What one turn has said so far, and what it has found out."""

    def __init__(
        self,
        ticket: Ticket,
        outbox: Outbox,
        ledger: Ledger,
        shown: Shown,
        watch: Watch,
        attempts: int,
        taken: Minutes,
    ) -> None:
        turn = ticket.turn
        self._minutes = taken
        self._reasons = 0
        self._last_steps: list[tuple[int, str]] = []
        self._attempts = attempts
        self._span = telemetry.ids()  # now: a transaction's thread is in no span
        self._write_attempts = 1
        self._ticket = ticket
        self._turn = turn
        self._outbox = outbox
        self._ledger = ledger
        self._shown = shown
        self._watch = watch
        self._heard = remembered(turn.heard)
        self._spoken_of = self._times_spoken_of()
        self._told = turn.told
        self._about = About(turn.conversation_id, turn.message.id, turn.number)
        self._fence = Fence(turn.number, ticket.lease.epoch)
        self._id = turn.turn.answer_id or ""
        self._conversation = Conversation(
            turn.conversation_id, turn.conversation.user_id, turn.conversation.created_at
        )
        self._reading: Reading | None = None
        self._begun = False
        self._said: list[str] = []
        self._held: str | None = None
        self._enrichment: Enrichment | None = None
        self._intent: Intent | None = None
        self._specialist: Specialist | None = None
        self._started = perf_counter()
        self._context_seconds: float | None = None

    async def begin(self) -> Blocks:
        """Say that an answer comes, and read the blocks: as they were before this turn.

        To a person in danger the first words go out before anything else is touched, be it mirror or block.
        One that had begun when its process died is not spoken over, and one that never gets to begin is given
        up at last.
        """
        if self._turn.begun:
            raise AnamnesisError(INTERRUPTED)
        if self._turn.turn.attempts > self._attempts:
            raise AnamnesisError(POISON_MESSAGE, attempts=self._attempts)
        if self._heard.is_danger:
            await uninterrupted(self._begin_with_safety())
        changes = await self._shown.changes(self._turn.conversation_id)

        def work(page: Page) -> Reading:
            if not self._begun:
                self._start(page)
            self._adopt(page, changes)
            return self._read(page)

        async def settle() -> Reading:
            self._reading = await self._outbox.commit(
                self._turn.conversation_id, work, self._fence, step="begin"
            )
            self._begun = True
            return self._reading

        reading = await uninterrupted(settle())
        await self._shown.show(self._conversation, reading.stored, changes)
        return self._before_this_turn(reading.blocks)

    @property
    def in_danger(self) -> bool:
        """Whether this is a safety answer."""
        return self._heard.is_danger

    async def _begin_with_safety(self) -> None:
        await self._outbox.commit(self._turn.conversation_id, self._start, self._fence, step="begin")
        self._begun = True

    async def heard(self, hearing: Hearing) -> Hearing:
        """Take in what was heard in the enriched message; what is graver, or of a graver kind, is said now.

        So is that the guard failed, where no danger was heard. What is new is kept, said or not. Gives what
        this turn has heard by now: it can only rise.
        """
        before, begun_with = self._heard, self._words()[:1]
        self._heard = before.raised_by(hearing)
        graver = (self._heard.meta, self._words()[:1]) != (before.meta, begun_with)
        if graver:
            self._spoken_of = self._times_spoken_of()
        fails = hearing.failed and not before.failed
        if fails or graver or not set(hearing.verdict.rule_ids) <= set(before.verdict.rule_ids):
            first = self._words()[:1] if graver else ()
            await uninterrupted(self._keep_heard(replace(hearing, failed=fails), first))
        if hearing.doubtful and not self._heard.is_danger:
            await self.say(f"{self._watch.wording.error} ")
        return self._heard

    async def _keep_heard(self, hearing: Hearing, first: Sequence[str]) -> None:
        def work(page: Page) -> None:
            self._watch.note(page.tx, self._about, "enriched", hearing)
            for words in first if self._turn.streaming else ():
                page.say(self._sentence(page, words, final=False), self._heard.meta)

        await self._outbox.commit(self._turn.conversation_id, work, self._fence, step="sentence")
        if not self._told:
            self._said += first

    async def reassure(self, enrichment: Enrichment, roster: Roster) -> None:
        """Say the rest of a safety answer, after its first words."""
        self.routed(enrichment, self._heard.intent, roster.agents[EMERGENCY])
        for sentence in self._words()[1:]:
            await self.say(sentence)

    async def refuse(self, sentence: str, rules: Sequence[str]) -> None:
        """Keep a sentence that was not allowed; what is said in its place, is said once."""

        def work(page: Page) -> None:
            self._watch.note_refusal(page.tx, self._about, sentence, rules)

        await self._outbox.commit(self._turn.conversation_id, work, self._fence, step="sentence")
        instead = f"{self._watch.wording.refused} "
        if instead not in (*self._said, self._held):
            await self.say(instead)

    async def understood(self, recalled: Recalled, intent: Intent) -> None:
        """Show which long-term memories were retrieved and, to who wants to see it, why the intent is it."""
        self._context_seconds = perf_counter() - self._started
        if not recalled.memories and not self._turn.reasoning:
            return

        def work(page: Page) -> None:
            for hit in recalled.memories:
                page.say(
                    traces.of_memory(
                        hit,
                        page.tx.ids.new("trace_"),
                        page.conversation.id,
                        self._turn.message.id,
                        actor=READER,
                        snippet=self._ledger.snippet,
                    )
                )
            self._reason(page, steps)

        steps = self._steps(intent.reasoning, *self._minutes.take_reasons())
        await self._outbox.commit(self._turn.conversation_id, work, self._fence, step="recall")

    def _steps(self, *reasons: str) -> list[tuple[int, str]]:
        """These reasons with their numbers; none where nobody asked for them."""
        if not self._turn.reasoning:
            return []
        first = self._reasons + 1
        self._reasons += len(reasons)
        return list(enumerate(reasons, first))

    def tools(self, toolbox: Toolbox) -> ToolUser:
        """Who uses tools in this turn, and keeps that they were."""
        turn = self._turn
        return Tooling(
            toolbox, self._outbox, turn.conversation_id, turn.message.id, self._fence, turn.client_has_tools
        )

    def routed(self, enrichment: Enrichment, intent: Intent, specialist: Specialist) -> None:
        """Keep what was understood and who answers, for the blocks."""
        self._enrichment, self._intent, self._specialist = enrichment, intent, specialist

    async def say(self, sentence: str) -> None:
        """Send the sentence before this one; this one waits for the next, or for the end."""
        if self._told:
            return
        held, self._held = self._held, sentence
        if held is None:
            return
        steps = self._steps(*self._minutes.take_reasons())

        def work(page: Page) -> bool:
            self._reason(page, steps)
            page.say(self._sentence(page, held, final=False))
            return self._stop_requested(page)

        async def settle() -> bool:
            stop = self._turn.streaming and await self._outbox.commit(
                self._turn.conversation_id, work, self._fence, step="sentence"
            )
            self._said.append(held)
            return stop

        if await uninterrupted(settle()) and not self._ticket.stopped:
            self._ticket.stop()

    async def end(self, problem: AnamnesisError | None) -> None:
        """Write the blocks, trace it, say the last sentence or what went wrong, and close the turn."""
        stopped = problem is None and self._ticket.stopped
        last = None if problem or stopped else self._held
        remember = problem is None or problem.problem is not POISON_MESSAGE  # its turn may be what is deadly
        self._last_steps = self._steps(*self._minutes.take_reasons()) if problem is None else []
        changes = await self._shown.changes(self._turn.conversation_id) if remember else ()
        for attempt in range(TRIES + 1):
            self._write_attempts = attempt + 1
            try:
                written = await self._outbox.commit(
                    self._turn.conversation_id,
                    partial(
                        self._close,
                        last=last or "",
                        problem=problem,
                        stopped=stopped,
                        changes=changes if remember else None,
                    ),
                    self._fence,
                    step="end",
                )
            except StaleRevision as error:
                self._reading = None
                if attempt >= TRIES - 1:  # the person is told that this turn is in no block
                    log.error("blocks_not_written", error=error.name, attempts=attempt + 1)
                    problem, last, remember = problem or as_ours(error), None, False
            except Exception as error:
                ours = as_ours(error)
                if ours.problem in NOT_NOW or attempt == TRIES:
                    raise  # whoever takes the turn up next ends it
                log.error("blocks_not_written", exc_info=error)
                problem, last, remember = problem or ours, None, False
            else:
                log.info(
                    "turn_ended",
                    error=problem.problem.name if problem else None,
                    sentences=len(self._said) + bool(last),
                )
                if written is not None:
                    await self._shown.show(self._conversation, written.stored, changes)
                return

    # --- inside a transaction -------------------------------------------------------------------------------

    def _start(self, page: Page) -> None:
        """The answer begins, with what must be said first; a whole one is then already told."""
        self._id = page.tx.ids.new("msg_")
        words = self._words()
        if self._turn.streaming:
            page.say(
                StartAnswer(
                    id=MessageId(self._id),
                    conversation_id=page.conversation_id,
                    previous_id=MessageId(self._turn.answers_id),
                    answer_type="text",
                    safety=self._heard.on_the_wire,
                ),
                self._span,
            )
            self._said = []
            for first in words[:1]:
                page.say(self._sentence(page, first, final=False), self._heard.meta)
                self._said = [first]
            page.tx.turns.answer(page.conversation.id, self._turn.number, self._id)
        elif self._heard.is_danger:
            self._said, self._told = list(words), True
            self._tell_whole(page, "".join(words), self._heard.meta)
        else:
            self._said = list(words)

    def _words(self) -> tuple[str, ...]:
        return self._watch.words(self._heard, self._spoken_of)

    def _times_spoken_of(self) -> int:
        """How often this danger was spoken of; an earlier attempt at this answer did so, too."""
        turn = self._turn
        return spoken_of(turn.heard_before, self._heard.verdict, turn.number) + (
            turn.turn.variation is not None
        )

    def _tell_whole(self, page: Page, said: str, meta: Mapping[str, Scalar]) -> None:
        page.say(
            AssistantMessage(
                id=MessageId(self._id),
                conversation_id=page.conversation_id,
                previous_id=MessageId(self._turn.answers_id),
                content=said,
                timestamp=page.tx.now,
            ),
            {**meta, **self._span},
        )
        page.tx.turns.answer(page.conversation.id, self._turn.number, self._id)

    def _read(self, page: Page) -> Reading:
        if self._turn.number == 1 and not page.tx.blocks.load(page.conversation.id):
            self._look_back(page)
        reading = self._ledger.read(SqlBlockStore(page.tx.blocks), self._conversation, actor=READER)
        self._trace(page, reading.receipts)
        return reading

    def _look_back(self, page: Page) -> None:
        """Let the first turn's session begin with the person's earlier ones, each of which keeps a trace."""
        tx, here = page.tx, page.conversation
        latest = tx.conversations.of_person(here.user_id, most=EARLIER_SESSIONS + 1)
        found, looked_at = [], []
        for each in reversed([other for other in latest if other.created_at < here.created_at]):
            other = Conversation(each.id, each.user_id, each.created_at)
            if known := self._ledger.earlier(SqlBlockStore(tx.blocks), other, actor=READER):
                found.append(known[0])
                looked_at.append((other, known[1]))
        self._conversation = replace(self._conversation, earlier=tuple(found))
        looked_at.sort(key=lambda look: (look[0].started_at, look[0].id), reverse=True)
        for other, receipt in looked_at:  # from the latest on, as all do: nobody waits for one who waits
            with beside(tx, other.id) as its_page:
                its_page.say(traces.of_block(receipt, tx.ids.new("trace_"), other.id))

    def _adopt(self, page: Page, changes: Sequence[ForeignChange]) -> Reading | None:
        """The blocks with what others changed where they are shown, too; None where nobody did."""
        if not changes:
            return None
        adopted = self._ledger.adopt(SqlBlockStore(page.tx.blocks), self._conversation, changes)
        self._trace(page, adopted.receipts)
        return adopted

    def _trace(self, page: Page, receipts: Iterable[Receipt]) -> None:
        for receipt in receipts:
            trace = traces.of_block(
                receipt, page.tx.ids.new("trace_"), page.conversation.id, self._turn.message.id
            )
            page.say(trace)

    def _reason(self, page: Page, steps: Iterable[tuple[int, str]]) -> None:
        """Tell who wants to know why it was understood and is answered like this, in what may be said."""
        for sequence, reason in steps:
            refused = self._watch.refusals(reason, self._specialist)
            if refused:
                self._watch.note_refusal(page.tx, self._about, reason, refused)
            content = self._watch.wording.refused if refused else reason
            page.say(
                ReasoningStep(
                    id=page.tx.ids.new("step_"),
                    conversation_id=page.conversation_id,
                    message_id=MessageId(self._id),
                    sequence=sequence,
                    content=content,
                )
            )

    def _close(
        self,
        page: Page,
        *,
        last: str,
        problem: AnamnesisError | None,
        stopped: bool,
        changes: Sequence[ForeignChange] | None,
    ) -> Written | None:
        """The blocks as they were written; without `changes`, not even with none of them, they are not."""
        if problem is None and not stopped and self._stop_requested(page):
            stopped, last = True, ""
        if problem is not None:
            close_open(page, self._turn.message.id)
        if problem is None and not self._begun:
            self._start(page)
        said = "".join(self._said) + ("" if self._told else last)
        written = None if changes is None else self._remember(page, said, problem, changes)
        if problem is not None and not self._told:
            self._say_problem(page, problem)
            return written
        meta: dict[str, Scalar] = {**({"stopped": True} if stopped else {}), **told_of(self._minutes)}
        self._reason(page, self._last_steps)
        if self._turn.streaming:
            page.say(self._sentence(page, last, final=True), meta)
        elif not self._told:
            self._tell_whole(page, said, {**meta, **self._heard.meta})
        page.tx.turns.finish(page.conversation.id, self._turn.number)
        return written

    def _stop_requested(self, page: Page) -> bool:
        """Whether the person wants no more of it; another process may have been told so."""
        turn = page.tx.turns.get(page.conversation.id, self._turn.number)
        return turn is not None and turn.stop_requested

    def _say_problem(self, page: Page, problem: AnamnesisError) -> None:
        """The error that closes the turn; an answer that had not begun stands under the error's own id."""
        error = error_envelope(
            problem,
            error_id=ErrorId(page.tx.ids.new("err_")),
            conversation_id=page.conversation_id,
            originating_id=self._turn.message.id,
            safety="" if self._heard.is_danger else f"{self._watch.wording.error} ",
        )
        page.say(error.body, error.meta)
        if not self._turn.begun and not (self._begun and self._turn.streaming):
            page.tx.turns.answer(page.conversation.id, self._turn.number, error.body.id)
        page.tx.turns.fail(page.conversation.id, self._turn.number, problem.problem.name)

    def _remember(
        self, page: Page, said: str, problem: AnamnesisError | None, changes: Sequence[ForeignChange]
    ) -> Written:
        reading = self._adopt(page, changes) or self._reading or self._read(page)
        blocks = complete_turn(
            reading.blocks, self._completed(reading.blocks, said, problem), page.tx.now, self._ledger.limits
        )
        written = self._ledger.write(
            SqlBlockStore(page.tx.blocks),
            self._conversation,
            reading,
            blocks,
            actor=READER,
            turn=blocks.conversation_history.total_turns,  # as the blocks count: some turns are in none
        )
        self._trace(page, written.receipts)
        return written

    # --- values ---------------------------------------------------------------------------------------------

    def _sentence(self, page: Page, text: str, *, final: bool) -> AssistantSentence:
        return AssistantSentence(
            id=SentenceId(page.tx.ids.new("sent_")),
            conversation_id=page.conversation_id,
            previous_id=MessageId(self._id),
            sequence=len(self._said) + 1,
            text=text,
            is_final=final,
        )

    def _completed(self, blocks: Blocks, said: str, problem: AnamnesisError | None) -> CompletedTurn:
        """What this turn leaves behind, under the id it has, or had, in the blocks."""
        before = self._before_this_turn(blocks)
        turns = before.conversation_history.turns
        agent = self._specialist
        content = self._turn.said + said
        left = CompletedTurn(
            turn_id=before.next_turn,
            timestamp=max(self._turn.message.created_at, turns[-1].timestamp)
            if turns
            else self._turn.message.created_at,
            user_message=UserMessage(content=self._turn.message.contents, message_id=self._turn.message.id),
            response=None
            if problem and not content
            else AgentResponse(
                agent_type=agent.agent_type if agent else EMERGENCY if self._heard.is_danger else COORDINATOR,
                content=content,
                response_id=self._id or self._turn.answers_id,
            ),
            context_seconds=self._context_seconds,
            response_seconds=perf_counter() - self._started,
            error=problem.problem.name if problem else None,
            write_attempts=self._write_attempts,
        )
        if self._enrichment is None or self._intent is None or agent is None:
            return left
        known = self._enrichment.known
        return replace(
            left,
            enrichment=self._enrichment.for_block(),
            intent=self._intent.for_block(),
            agent_name=agent.display_name,
            agent_scope=agent.scope,
            topic=self._enrichment.topic,
            trigger=self._enrichment.trigger,
            phase=self._enrichment.phase,
            facts=known,
            asked_now=kinds_asked(content),
            sure_enough=agent.agent_type != COORDINATOR,
            asked_before=self._enrichment.asked_before,
            next_topics=next_topics(agent, known),
            context_quality=self._enrichment.quality,
            corrected=self._enrichment.corrected,
            sentiment=self._enrichment.sentiment,
        )

    def _before_this_turn(self, blocks: Blocks) -> Blocks:
        """The blocks without this turn, where an earlier answer to it stands in them already."""
        history = blocks.conversation_history
        if not history.turns or history.turns[-1].user_message.message_id not in self._turn.message_ids:
            return blocks
        turns = history.turns[:-1]
        return replace(
            blocks, conversation_history=changed(history, turns=turns, total_turns=history.total_turns - 1)
        )
