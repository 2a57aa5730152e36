"""Turns of a conversation, written to a store as the orchestrator writes them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from memory_blocks.trace import Receipt, digest
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Lease, Message, Sentence, Trace, Turn
from orchestrator.turn.outbox import in_transaction
from orchestrator.turn.traces import of_block
from orchestrator.wire.codec import encode
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import ConversationId
from orchestrator.wire.messages import (
    Acknowledgement,
    AssistantSentence,
    Body,
    MemoryTrace,
    StartAnswer,
    UserMessage,
)
from tests.support.builders import a_history, a_turn

PERSON = "ann"
UNSCORED: Final = {"confidence": None, "similarity_score": None, "position_in_results": None}
"""The fields of a trace that no search produced."""


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """The rows of one finished turn."""

    conversation_id: str
    question: Message
    answer: Message
    traces: tuple[Trace, ...]
    turn: Turn
    lease: Lease


def send(tx: Transaction, conversation_id: str, *bodies: Body, turn: int | None, epoch: int | None) -> None:
    """Number, encode and store frames of the server, as the outbox does."""
    first = tx.conversations.lock(conversation_id).last_server_stanza_id - 1
    here = ConversationId(conversation_id)
    packets = [(body.TYPE, encode(Envelope(first - i, here, body))) for i, body in enumerate(bodies)]
    tx.frames.append_server(conversation_id, first, packets, turn=turn, epoch=epoch)


def ask(tx: Transaction, conversation_id: str, text: str = "I have a headache") -> tuple[Message, Turn]:
    """Store a message of the person, acknowledged and waiting for its turn."""
    last = tx.messages.last(conversation_id)
    question = tx.messages.append(conversation_id, "user", text, previous_id=last.id if last else None)
    turn = tx.turns.enqueue(conversation_id, question.id)
    stanza = tx.conversations.lock(conversation_id).last_client_stanza_id + 1
    body = UserMessage.model_validate(
        {"id": question.id, "conversation_id": conversation_id, "content": text}
    )
    packet = encode(Envelope(stanza, ConversationId(conversation_id), body))
    tx.frames.accept_client(conversation_id, stanza, 2, packet, sender=PERSON, turn=turn.number)
    acknowledged = Acknowledgement(
        conversation_id=ConversationId(conversation_id), acknowledged_stanza_id=stanza, success=True
    )
    send(tx, conversation_id, acknowledged, turn=None, epoch=None)
    return question, turn


def a_trace(tx: Transaction, question: Message, memory_id: str, **changes: Any) -> Trace:
    """A trace of a memory that was found for a message."""
    trace = Trace(
        id=tx.ids.new("trace_"),
        conversation_id=question.conversation_id,
        message_id=question.id,
        memory_id=memory_id,
        memory_type="profile",
        action="retrieved",
        content="Ann likes tea",
        confidence=0.5,
        similarity_score=0.5,
        query_prompt="headache",
        query_prompt_meta={"terms": 1},
        position_in_results=1,
        actor="recall",
        meta={"tags": ["tea"]},
        created_at=tx.now,
        updated_at=tx.now,
        deleted_at=None,
    )
    return replace(trace, **changes)


def keep_receipts(tx: Transaction, conversation_id: str, receipts: Iterable[Receipt]) -> None:
    """Store the traces of a ledger that was used outside a turn."""
    with in_transaction(tx, conversation_id) as page:
        for each in receipts:
            page.say(of_block(each, tx.ids.new("trace_"), conversation_id))


def as_body(trace: Trace) -> MemoryTrace:
    """The message body of a trace."""
    return MemoryTrace.model_validate(
        {
            "id": trace.id,
            "conversation_id": trace.conversation_id,
            "previous_id": trace.message_id,
            "memory_id": trace.memory_id,
            "memory_type": trace.memory_type,
            "action": trace.action,
            "content": trace.content,
            "confidence": trace.confidence,
            "metadata": trace.meta,
        }
    )


def as_sentence(conversation_id: str, sentence: Sentence, *, final: bool = False) -> AssistantSentence:
    """The message body of a sentence."""
    return AssistantSentence.model_validate(
        {
            "id": sentence.id,
            "conversation_id": conversation_id,
            "previous_id": sentence.message_id,
            "sequence": sentence.sentence_sequence_number,
            "text": sentence.text,
            "is_final": final,
        }
    )


def take_turn(tx: Transaction, conversation_id: str, *, holder: str = "worker_1") -> FinishedTurn:
    """Store one whole turn: a message, two sentences, a found memory and a written block."""
    lease = tx.leases.acquire(conversation_id, holder, seconds=15)
    assert lease is not None
    question, turn = ask(tx, conversation_id)
    turn = tx.turns.begin(conversation_id, turn.number, deadline=tx.now)
    answer = tx.messages.begin_answer(conversation_id, question.id)
    tx.turns.answer(conversation_id, turn.number, answer.id)
    owner = tx.conversations.lock(conversation_id).user_id
    memory = tx.memories.add(NewMemory(content="Ann likes tea", user_id=owner))
    found = a_trace(tx, question, memory.id)
    tx.traces.add([found])
    first = tx.messages.say(answer.id, "I am sorry to hear that. ")
    revision = _write_history(tx, conversation_id, turn.number)
    block = tx.blocks.memory_ids(conversation_id)["conversation_history"]
    action = "stored" if revision == 1 else "updated"
    meta = {"label": "conversation_history", "revision": revision}
    written = a_trace(tx, question, block, action=action, memory_type="memory_block", meta=meta, **UNSCORED)
    tx.traces.add([written])
    last = tx.messages.say(answer.id, "Since when?", final=True)
    tx.turns.finish(conversation_id, turn.number)
    bodies: list[Body] = [
        StartAnswer.model_validate(
            {"id": answer.id, "conversation_id": conversation_id, "previous_id": question.id}
        ),
        as_body(found),
        as_sentence(conversation_id, first),
        as_body(written),
        as_sentence(conversation_id, last, final=True),
    ]
    send(tx, conversation_id, *bodies, turn=turn.number, epoch=lease.epoch)
    finished = tx.turns.get(conversation_id, turn.number)
    assert finished is not None
    return FinishedTurn(conversation_id, question, answer, (found, written), finished, lease)


def _write_history(tx: Transaction, conversation_id: str, turn: int) -> int:
    value = a_history([a_turn(number) for number in range(1, turn + 1)]).text
    written = tx.blocks.commit(
        conversation_id,
        "conversation_history",
        value,
        expected=turn - 1,
        digest=digest(value),
        actor="ledger",
        turn=turn,
        schema_version="1.0",
    )
    return written.revision
