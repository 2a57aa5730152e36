"""The memory blocks in one turn: read when it starts, written with the completed turn when it ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from agents.facts import changes_of, known_values
from agents.ports import Situation
from agents.questions import kinds_asked
from agents.roster import Specialist
from agents.specialist import asked_before, next_topics
from agents.values import COORDINATOR, EMERGENCY, ActKind, FactReading, Understanding
from memory_blocks.edits import CompletedTurn, complete_turn
from memory_blocks.facts.changes import CurrentFact, FactChange, after_others, current_facts, withdrawals
from memory_blocks.facts.view import concern_now
from memory_blocks.ledger.adopt import adopt
from memory_blocks.ledger.ledger import Ledger, ReadResult, WriteResult
from memory_blocks.models import AgentResponse, Blocks, Conversation, EarlierSession, UserMessage, changed
from memory_blocks.ports import ForeignChange
from memory_blocks.trace import Receipt
from orchestrator.ops.clock import in_time_zone
from orchestrator.remember.facts import FACT, Kept, remember_facts
from orchestrator.remember.forgetting import forget, forgotten, is_for_good, leave_out
from orchestrator.remember.known import KnownFact, known_facts, with_known
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Transaction
from orchestrator.turn import traces
from orchestrator.turn.outbox import ConversationWrite, in_transaction
from orchestrator.turn.queue import OpenTurn

ACTOR: Final = "context_extractor"
"""The name under which a turn reads and writes the blocks."""

EARLIER_SESSIONS: Final = 3
"""How many earlier conversations of the person the first turn of a new one reads."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How a message was understood and which specialist answers it."""

    understanding: Understanding
    specialist: Specialist


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn came to, for the blocks."""

    answer: str
    answer_id: str
    routing: Routing | None
    """None if the turn ended before a specialist was chosen."""
    in_danger: bool
    error: str | None
    """The name of the error that ended the turn."""
    context_seconds: float | None
    response_seconds: float
    write_attempts: int


class TurnRecord:
    """Reads and writes the blocks of one turn's conversation, each with its traces, inside a transaction."""

    def __init__(self, turn: OpenTurn, ledger: Ledger, *, follow_up_days: float = 0) -> None:
        self._turn, self._ledger = turn, ledger
        self._follow_up_for = timedelta(days=follow_up_days)
        self._reading: ReadResult | None = None
        self._stored: tuple[FactChange, ...] = ()
        self.known: tuple[KnownFact, ...] = ()
        """The lasting facts from the person's other conversations."""
        self.new_here: tuple[KnownFact, ...] = ()
        """Those of them that no earlier turn of this conversation was given."""
        self._follow_up: EarlierSession | None = None
        self._readings: tuple[FactReading, ...] | None = None
        self._answer_id, self._facts_read = "", frozenset[str]()
        self._read_at: datetime = turn.message.created_at
        self.conversation = Conversation(
            turn.conversation_id, turn.conversation.user_id, turn.conversation.created_at
        )

    def read(self, write: ConversationWrite) -> ReadResult:
        """Read the blocks."""
        if self._turn.number == 1 and not write.tx.blocks.load(write.conversation.id):
            self._read_earlier_sessions(write)
        reading = self._ledger.read(SqlBlockStore(write.tx.blocks), self.conversation, actor=ACTOR)
        self._trace(write, reading.receipts)
        self._stored = self._fact_changes(write, reading.blocks)
        self.known = known_facts(write.tx, write.conversation.user_id, write.conversation.id)
        traced = write.tx.traces.memories_of(write.conversation.id, FACT) if self.known else ()
        self.new_here = tuple(each for each in self.known if each.memory.id not in traced)
        self._read_at = write.tx.now
        return reading

    def keep(self, reading: ReadResult, *, urgent: bool) -> Situation:
        """Remember what was read, once the transaction is committed; all of it without this turn."""
        self._reading = reading
        blocks = self._before_this_turn(reading.blocks)
        now = in_time_zone(self._read_at, self._turn.conversation.preferences.get("time_zone"))
        facts = with_known(self.known, self._before(self._stored))
        return Situation(blocks, facts, now, urgent, self._follow_up)

    def change_facts(self, readings: tuple[FactReading, ...], answer_id: str) -> tuple[CurrentFact, ...]:
        """Take what was read from the message as changes; the facts that hold after them."""
        self._readings, self._answer_id = readings, answer_id
        self._facts_read = frozenset(fact.id for fact in current_facts(self._stored))
        blocks = self._reading.blocks if self._reading else None
        return with_known(self.known, (*self._stored, *self._changes(self._stored, blocks)))

    def forget(self) -> None:
        """Forget what was read: another writer has changed the blocks, so they are read again."""
        self._reading = None

    def adopt(self, write: ConversationWrite, changes: Sequence[ForeignChange]) -> ReadResult | None:
        """Take over what others changed in the copies of the blocks; None if they changed nothing."""
        if not changes:
            return None
        adopted = adopt(self._ledger, SqlBlockStore(write.tx.blocks), self.conversation, changes)
        self._trace(write, adopted.receipts)
        return adopted

    def write(
        self, write: ConversationWrite, result: TurnResult, changes: Sequence[ForeignChange]
    ) -> WriteResult:
        """Write the completed turn to the blocks."""
        reading = self.adopt(write, changes) or self._reading or self.read(write)
        stored = self._stored if reading is self._reading else self._fact_changes(write, reading.blocks)
        made = self._changes(stored, reading.blocks)
        if self._readings is not None:
            made = after_others(made, self._facts_read, current_facts(stored))
        facts = current_facts((*stored, *made))
        completed = _completed_turn(self._turn, self._before_this_turn(reading.blocks), result, facts)
        blocks = complete_turn(reading.blocks, completed, write.tx.now, self._ledger.limits)
        written = self._ledger.write(
            SqlBlockStore(write.tx.blocks),
            self.conversation,
            reading,
            blocks,
            actor=ACTOR,
            turn=blocks.conversation_history.total_turns,  # the blocks' own count: some turns are in no block
            changes=made,
        )
        self._trace(write, written.receipts)
        self._give_title(write, facts)
        kept_or_forgotten = remember_facts(write.tx, self._turn.conversation.user_id, made)
        kept_or_forgotten += self._forget(write, made, reading.blocks, result.routing)
        for kept in kept_or_forgotten:
            trace_id = write.tx.ids.new("trace_")
            write.say(
                traces.of_kept(kept, trace_id, write.conversation.id, self._turn.message.id, actor=ACTOR)
            )
        return written

    def _forget(
        self, write: ConversationWrite, made: Sequence[FactChange], blocks: Blocks, routing: Routing | None
    ) -> list[Kept]:
        """Forget what the person asked to forget. A request to do so is not remembered itself."""
        facts, message, user_id = forgotten(made), self._turn.message, self._turn.conversation.user_id
        acts = routing.understanding.acts if routing else ()
        if facts or any(act.kind is ActKind.FORGET for act in acts):
            leave_out(write.tx, user_id, write.conversation.id, message.id)
        if not facts:
            return []
        turns = self._before_this_turn(blocks).conversation_history.turns
        asked = turns[-1].user_message.content if turns else ""
        return forget(write.tx, user_id, facts, final=is_for_good(message.contents, asked))

    def _give_title(self, write: ConversationWrite, facts: Sequence[CurrentFact]) -> None:
        """Name a conversation without a title after its first concern."""
        concern = concern_now(facts)
        if write.conversation.title is None and concern is not None:
            title = f"{concern.value[:1].upper()}{concern.value[1:]}"
            write.tx.conversations.update(write.conversation.id, title=title)

    def _fact_changes(self, write: ConversationWrite, blocks: Blocks) -> tuple[FactChange, ...]:
        return self._ledger.fact_changes(SqlBlockStore(write.tx.blocks), self.conversation, blocks)

    def _before(self, stored: tuple[FactChange, ...]) -> tuple[FactChange, ...]:
        """The changes without those of an earlier answer to the same message."""
        return (*stored, *self._withdrawals(stored, turn=1))

    def _changes(self, stored: tuple[FactChange, ...], blocks: Blocks | None) -> tuple[FactChange, ...]:
        """What this turn changes; nothing as long as its message is not understood.

        It withdraws what an earlier answer to the same message changed.
        """
        if self._readings is None:
            return ()
        turn = self._before_this_turn(blocks).next_turn if blocks else 1
        made = changes_of(
            self._readings,
            turn=turn,
            message_id=self._turn.message.id,
            answer_id=self._answer_id,
            said_at=self._turn.message.created_at,
        )
        return (*self._withdrawals(stored, turn), *made)

    def _withdrawals(self, stored: tuple[FactChange, ...], turn: int) -> tuple[FactChange, ...]:
        return withdrawals(
            stored,
            self._turn.message_ids,
            turn=turn,
            message_id=self._turn.message.id,
            answer_id=self._answer_id,
            said_at=self._turn.message.created_at,
        )

    def _read_earlier_sessions(self, write: ConversationWrite) -> None:
        """Add the person's earlier conversations to what the first turn reads. Each gets a trace of it."""
        tx, here = write.tx, write.conversation
        latest = tx.conversations.of_person(here.user_id, limit=EARLIER_SESSIONS + 1)
        found, receipts = [], []
        for each in reversed([other for other in latest if other.created_at < here.created_at]):
            other = Conversation(each.id, each.user_id, each.created_at)
            if known := self._ledger.earlier_session(SqlBlockStore(tx.blocks), other, actor=ACTOR):
                found.append(known[0])
                receipts.append((other, known[1]))
        self.conversation = replace(self.conversation, earlier=tuple(found))
        if found and tx.now - found[-1].ended_at <= self._follow_up_for:
            self._follow_up = found[-1] if _has_open_concern(tx, found[-1]) else None
        receipts.sort(key=lambda each: (each[0].started_at, each[0].id), reverse=True)
        for other, receipt in receipts:  # every turn locks them in this order, so no two block each other
            with in_transaction(tx, other.id) as other_write:
                other_write.say(traces.of_block(receipt, tx.ids.new("trace_"), other.id))

    def _trace(self, write: ConversationWrite, receipts: Iterable[Receipt]) -> None:
        for receipt in receipts:
            trace_id = write.tx.ids.new("trace_")
            write.say(traces.of_block(receipt, trace_id, write.conversation.id, self._turn.message.id))

    def _before_this_turn(self, blocks: Blocks) -> Blocks:
        """The blocks without this turn, which they contain if its message was answered before."""
        turns = blocks.conversation_history.turns
        is_in_blocks = bool(turns) and turns[-1].user_message.message_id in self._turn.message_ids
        return without_last_turn(blocks) if is_in_blocks else blocks


def _has_open_concern(tx: Transaction, session: EarlierSession) -> bool:
    """Whether a conversation was about a complaint, and nobody was in danger in it."""
    facts = current_facts(tx.facts.changes(session.session_id))
    return concern_now(facts) is not None and not tx.safety.of_conversation(session.session_id)


def without_last_turn(blocks: Blocks) -> Blocks:
    """The blocks without the newest turn of their history."""
    history = blocks.conversation_history
    history = changed(history, turns=history.turns[:-1], total_turns=history.total_turns - 1)
    return replace(blocks, conversation_history=history)


def _completed_turn(
    turn: OpenTurn, before: Blocks, result: TurnResult, facts: Sequence[CurrentFact]
) -> CompletedTurn:
    """The turn as the blocks keep it. `before` are the blocks without it; `facts` are those after it."""
    turns, created = before.conversation_history.turns, turn.message.created_at
    routing, content = result.routing, turn.said + result.answer
    unrouted = EMERGENCY if result.in_danger else COORDINATOR
    completed = CompletedTurn(
        turn_id=before.next_turn,
        timestamp=max(created, turns[-1].timestamp) if turns else created,
        user_message=UserMessage(content=turn.message.contents, message_id=turn.message.id),
        response=None
        if result.error and not content
        else AgentResponse(
            agent_type=routing.specialist.agent_type if routing else unrouted,
            content=content,
            response_id=result.answer_id or turn.answers_id,
        ),
        context_seconds=result.context_seconds,
        response_seconds=result.response_seconds,
        error=result.error,
        write_attempts=result.write_attempts,
        facts=tuple(facts),
    )
    if routing is None:
        return completed
    enrichment, specialist = routing.understanding.enrichment, routing.specialist
    known = known_values(facts)
    answers = tuple(each.agent_response.content for each in turns if each.agent_response)
    return replace(
        completed,
        enrichment=enrichment.for_block(),
        intent=routing.understanding.intent.for_block(),
        agent_name=specialist.display_name,
        agent_scope=specialist.scope,
        topic=enrichment.topic,
        trigger=enrichment.trigger,
        phase=enrichment.phase,
        asked_now=kinds_asked(content),
        sure_enough=specialist.agent_type != COORDINATOR,
        asked_before=asked_before(answers, known),
        next_topics=next_topics(specialist, known),
        context_quality=enrichment.quality,
        corrected=enrichment.corrected,
        sentiment=enrichment.sentiment,
    )
