"""The memory blocks in one turn: read when it starts, written with the completed turn when it ends."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from agents.facts import as_reading, changes_of, known_values
from agents.ports import Situation
from agents.questions import kinds_asked
from agents.roster import Specialist
from agents.specialist import asked_before, next_topics
from agents.values import COORDINATOR, EMERGENCY, ActKind, FactReading, Offer, Understanding
from memory_blocks.edits import CompletedTurn, complete_turn
from memory_blocks.facts.changes import (
    CurrentFact,
    FactChange,
    Op,
    after_others,
    current_facts,
    withdrawals,
)
from memory_blocks.facts.edits import change_facts
from memory_blocks.facts.view import changes_in, concern_now
from memory_blocks.ledger.adopt import adopt
from memory_blocks.ledger.ledger import Ledger, ReadResult, WriteResult
from memory_blocks.models import AgentResponse, Blocks, Conversation, EarlierSession, UserMessage, changed
from memory_blocks.ports import ForeignChange
from memory_blocks.trace import Receipt
from orchestrator.errors import AnamnesisError
from orchestrator.ops.clock import in_time_zone
from orchestrator.remember import requests
from orchestrator.remember.changing import ACT, Act, MemoryChanges
from orchestrator.remember.facts import FACT, Kept, remember_facts
from orchestrator.remember.forgetting import (
    delete_derived,
    forget,
    forget_everything,
    forgotten,
    is_for_good,
    leave_out,
)
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


@dataclass(frozen=True, slots=True)
class FactsRead:
    """The changes to the facts of a conversation, as they were read."""

    stored: tuple[FactChange, ...] = ()
    changes: tuple[FactChange, ...] = ()
    """The stored ones; if there are none, those that the facts of older blocks amount to."""

    @classmethod
    def of(cls, write: ConversationWrite, blocks: Blocks) -> "FactsRead":
        """Read them."""
        stored = tuple(write.tx.facts.changes(write.conversation.id))
        return cls(stored, stored or changes_in(blocks.active_session))


class TurnRecord:
    """Reads and writes the blocks of one turn's conversation, each with its traces, inside a transaction."""

    def __init__(self, turn: OpenTurn, ledger: Ledger, *, follow_up_days: float = 0) -> None:
        self._turn, self._ledger = turn, ledger
        self._follow_up_for = timedelta(days=follow_up_days)
        self._reading: ReadResult | None = None
        self._facts = self._understood_with = FactsRead()
        self.known: tuple[KnownFact, ...] = ()
        """The lasting facts from the person's other conversations."""
        self.new_here: tuple[KnownFact, ...] = ()
        """Those of them that no earlier turn of this conversation was given."""
        self._follow_up: EarlierSession | None = None
        self._offered: Offer | None = None
        self._offers: Offer | None = None
        self._undoes: list[requests.DoneRequest] = []
        self._readings: tuple[FactReading, ...] | None = None
        self._answer_id = ""
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
        self._facts = FactsRead.of(write, reading.blocks)
        self.known = known_facts(write.tx, write.conversation.user_id, write.conversation.id)
        traced = write.tx.traces.memories_of(write.conversation.id, FACT) if self.known else ()
        self.new_here = tuple(each for each in self.known if each.memory.id not in traced)
        self._offered = requests.open_offer(write.tx, write.conversation.id, self._turn.number)
        self._read_at = write.tx.now
        return reading

    def keep(self, reading: ReadResult, *, urgent: bool) -> Situation:
        """Remember what was read, once the transaction is committed; all of it without this turn."""
        self._reading = reading
        blocks = self._before_this_turn(reading.blocks)
        now = in_time_zone(self._read_at, self._turn.conversation.preferences.get("time_zone"))
        facts = with_known(self.known, self._before(self._facts.changes))
        return Situation(blocks, facts, now, urgent, self._follow_up, self._offered)

    def change_facts(self, readings: tuple[FactReading, ...], answer_id: str) -> tuple[CurrentFact, ...]:
        """Take what was read from the message as changes; the facts that hold after them."""
        self._readings, self._answer_id = readings, answer_id
        self._understood_with, before = self._facts, self._facts.changes
        blocks = self._reading.blocks if self._reading else None
        return with_known(self.known, (*before, *self._changes(before, blocks)))

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
        read = self._facts if reading is self._reading else FactsRead.of(write, reading.blocks)
        made = self._changes(read.changes, reading.blocks)
        if self._readings is not None and read is not self._understood_with:
            known = {fact.id for fact in current_facts(self._understood_with.changes)}
            made = after_others(made, known, current_facts(read.changes))
        facts = current_facts((*read.changes, *made))
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
            known=read.stored,
        )
        self._trace(write, written.receipts)
        self._give_title(write, facts)
        kept_or_forgotten = self._undo(write)
        kept_or_forgotten += self._remember(write, made, reading.blocks, result.routing)
        for kept in kept_or_forgotten:
            trace_id = write.tx.ids.new("trace_")
            write.say(
                traces.of_kept(kept, trace_id, write.conversation.id, self._turn.message.id, actor=ACTOR)
            )
        return written

    # --- requests to change what is remembered --------------------------------------------------------------

    def settle(
        self, understanding: Understanding, facts: Sequence[CurrentFact], write: ConversationWrite
    ) -> requests.Settled:
        """Decide on a request to change memories: change them, undo a change, or ask the person first."""
        tx, user_id = write.tx, write.conversation.user_id
        agreed = self._offered.changes if understanding.agreed and self._offered else ()
        kinds = {act.kind for act in understanding.acts}
        undone: tuple[str, ...] | None = None
        if ActKind.UNDO in kinds:
            self._undoes = self._requests_to_undo(write)
            own = [each for each in self._undoes if each.conversation_id == write.conversation.id]
            back = (change for each in own for change in requests.withdrawals_of(tx, each))
            changes = (*understanding.changes, *map(as_reading, back))
            understanding = understanding.model_copy(update={"changes": changes})
            values = (value for each in own for value in requests.values_before(tx, user_id, each))
            undone = tuple(dict.fromkeys(values))
        asked = list(understanding.proposed)
        if ActKind.CORRECT in kinds:
            known = {fact.id: fact for fact in facts}
            asked += [
                change
                for change in understanding.changes
                if (change.op is Op.REPLACE or change.op.ends)
                and change.target in known
                and requests.must_ask(tx, user_id, known[change.target])
            ]
        if asked or understanding.forgets_all:
            left = tuple(change for change in understanding.changes if change not in asked)
            understanding = understanding.model_copy(update={"changes": left})
            final = is_for_good(self._turn.message.contents)
            everything = understanding.forgets_all
            self._offers = requests.preview(tx, user_id, asked, for_good=final, everything=everything)
        changes = (*agreed, *understanding.changes)
        understanding = understanding.model_copy(update={"changes": changes})
        return requests.Settled(understanding, self._offers, undone)

    def _requests_to_undo(self, write: ConversationWrite) -> list[requests.DoneRequest]:
        """The last request of this conversation, with what it changed in others."""
        done = requests.done_requests(write.tx, write.conversation.user_id)
        last = next((each for each in done if each.conversation_id == write.conversation.id), None)
        return [each for each in done if each is last or (last and last.act and each.act == last.act)]

    def _remember(
        self, write: ConversationWrite, made: Sequence[FactChange], blocks: Blocks, routing: Routing | None
    ) -> list[Kept]:
        """Bring memories up to date, and do what the person asked for and agreed to.

        A request to forget is not remembered itself.
        """
        tx, message, user_id = write.tx, self._turn.message, self._turn.conversation.user_id
        understanding = routing.understanding if routing else None
        acts = {act.kind for act in understanding.acts} if understanding else set()
        facts = forgotten(made)
        if self._offered or self._offers:
            offers = None if routing is None or routing.specialist.agent_type == EMERGENCY else self._offers
            requests.save_offer(tx, write.conversation.id, self._turn.number, offers)
        if facts or ActKind.FORGET in acts:
            leave_out(tx, user_id, write.conversation.id, message.id)
        agreed = self._offered if understanding and understanding.agreed else None
        changing = [each for each in made if each.target and (each.op is Op.REPLACE or each.op.ends)]
        is_asked = bool(changing) and (bool(facts) or agreed is not None or ActKind.CORRECT in acts)
        act_id = MemoryChanges(tx, user_id, user_id).new_act()
        kept = remember_facts(tx, user_id, made, note={ACT: act_id} if is_asked else {})
        act = None
        if agreed and agreed.everything:
            act = forget_everything(tx, user_id, final=agreed.for_good, act=act_id)
        elif facts:
            turns = self._before_this_turn(blocks).conversation_history.turns
            asked = turns[-1].user_message.content if turns else ""
            act = forget(tx, user_id, facts, final=is_for_good(message.contents, asked), act=act_id)
        elif agreed:
            targets = [each.target for each in agreed.changes if each.target]
            act = delete_derived(tx, user_id, targets, act=act_id)
        if (act or is_asked) and (act is None or act.can_be_undone):
            changed_memories = bool(act or kept)
            requests.save_done(
                tx, user_id, write.conversation.id, changing, act_id if changed_memories else None
            )
        if act is not None:
            forget_facts(tx, self._ledger, user_id, act, ACTOR, here=write.conversation.id)
        return [*kept, *(act.changed if act else ())]

    def _undo(self, write: ConversationWrite) -> list[Kept]:
        """Undo what the person asked to undo, also in the other conversations that it had changed."""
        kept: list[Kept] = []
        user_id = write.conversation.user_id
        for done in self._undoes:
            if done.conversation_id != write.conversation.id:
                kept += withdraw_request(write.tx, self._ledger, user_id, done, ACTOR)
                continue
            requests.forget_done(write.tx, done)
            with suppress(AnamnesisError):  # somebody has changed or restored a memory since
                if done.act is not None:
                    kept += MemoryChanges(write.tx, user_id, user_id).undo(done.act).changed
        return kept

    def _give_title(self, write: ConversationWrite, facts: Sequence[CurrentFact]) -> None:
        """Name a conversation without a title after its first concern."""
        concern = concern_now(facts)
        if write.conversation.title is None and concern is not None:
            title = f"{concern.value[:1].upper()}{concern.value[1:]}"
            write.tx.conversations.update(write.conversation.id, title=title)

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


def change_facts_of(
    tx: Transaction, ledger: Ledger, conversation_id: str, changes: Sequence[FactChange], actor: str
) -> None:
    """Change the facts of a conversation outside of its turns, with the traces of it."""
    with in_transaction(tx, conversation_id) as write:
        here = Conversation(write.conversation.id, write.conversation.user_id, write.conversation.created_at)
        written = change_facts(ledger, SqlBlockStore(tx.blocks), here, changes, actor=actor)
        for receipt in written.receipts:
            write.say(traces.of_block(receipt, tx.ids.new("trace_"), conversation_id))


def forget_facts(
    tx: Transaction, ledger: Ledger, user_id: str, act: Act, actor: str, *, here: str | None = None
) -> None:
    """Forget the facts of deleted memories in the conversations that have them, apart from `here`."""
    gone = [kept.memory for kept in act.changed if kept.memory.deleted_at is not None]
    by_conversation = requests.forgetting(tx, user_id, gone)
    for conversation_id in sorted(by_conversation):  # all writers lock in this order
        changes = by_conversation[conversation_id]
        if conversation_id != here:
            change_facts_of(tx, ledger, conversation_id, changes, actor)
            if act.can_be_undone:
                requests.save_done(tx, user_id, conversation_id, changes, act.id)


def withdraw_request(
    tx: Transaction, ledger: Ledger, user_id: str, done: requests.DoneRequest, actor: str
) -> list[Kept]:
    """Withdraw the changes to facts that a request made; returns the memories that change with them."""
    requests.forget_done(tx, done)
    changes = requests.withdrawals_of(tx, done)
    if not changes:
        return []
    change_facts_of(tx, ledger, done.conversation_id, changes, actor)
    return remember_facts(tx, user_id, changes)


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
