"""Explains one answer: everything that is stored about how it came about, in the order of the turn."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_blocks.ledger.ledger import Ledger
from memory_blocks.models import Label
from orchestrator.errors import ITEM_NOT_FOUND, REVISION_NOT_FOUND, AnamnesisError
from orchestrator.inspection.blocks import BlockInspector
from orchestrator.inspection.looks import Look, trace_text
from orchestrator.inspection.requests import ModelRequest, requests_for
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Conversation as ConversationRow
from orchestrator.store.rows import Message, SafetyEvent, ToolUse, Trace, Turn, TurnRun


@dataclass(frozen=True, slots=True)
class BlockUse:
    """A block that the turn read or wrote, by revision."""

    trace_id: str
    label: str
    action: str
    revision: int | None
    size: int | None
    digest: str | None
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """A long-term memory that was retrieved."""

    trace_id: str
    memory_id: str
    memory_type: str | None
    confidence: float | None
    position: int | None
    role: str | None
    content: str


@dataclass(frozen=True, slots=True)
class Understood:
    """How the message was understood and where it was routed, as a revision of the history keeps it."""

    previous_context: str | None
    enriched_message: str | None
    relevant_history: tuple[str, ...]
    intent: str | None
    confidence: float | None
    reasoning: str | None
    specialist: str | None
    revision: int


@dataclass(frozen=True, slots=True)
class SafetyFinding:
    """What the guard found."""

    id: str
    stage: str
    kind: str
    tier: int
    certainty: str | None
    rules: tuple[str, ...]
    refused: str | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that was called."""

    id: str
    tool_name: str
    status: str
    arguments: Any
    result: Any
    milliseconds: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """A moment of the turn, and how many milliseconds after the message it was."""

    name: str
    at: datetime
    milliseconds: int


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What the models were asked."""

    requests: int
    prompt_tokens: int
    completion_tokens: int
    fallback: str | None
    trouble: str | None


@dataclass(frozen=True, slots=True)
class StationTime:
    """A station of the turn: when it began, in milliseconds after the attempt did, and how long it took."""

    name: str
    start: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The person's messages of the turns before and after this one, if there are any."""

    previous_message_id: str | None
    next_message_id: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer's whole story."""

    conversation_id: str
    turn: int
    state: str
    error: str | None
    attempts: int
    message: Message
    answer: Message | None
    understood: Understood | None
    blocks: tuple[BlockUse, ...]
    memories: tuple[MemoryUse, ...]
    safety: tuple[SafetyFinding, ...]
    tools: tuple[ToolCall, ...]
    steps: tuple[Step, ...]
    model: ModelUse | None
    run: TurnRun | None
    stations: tuple[StationTime, ...]
    model_requests: tuple[ModelRequest, ...]
    retrieval_id: str | None
    neighbours: Neighbours


def turn_of(tx: Transaction, message: Message) -> Turn:
    """The turn that a message began, or that an answer belongs to, even one that was replaced."""
    found = (
        tx.turns.of_message(message.id)
        or tx.unit.find_one(Turn, answer_id=message.id)
        or (tx.turns.of_message(message.previous_id) if message.previous_id else None)
    )
    if found is None:
        raise AnamnesisError(ITEM_NOT_FOUND, what="turn of this message")
    return found


def explain(
    tx: Transaction, ledger: Ledger, conversation: ConversationRow, message: Message, look: Look
) -> Explanation:
    """Explain the answer to a message; `message` is the person's message or the answer itself."""
    turn = turn_of(tx, message)
    question = tx.messages.get_even_deleted(turn.user_message_id)
    if question is None:
        raise AnamnesisError(ITEM_NOT_FOUND, what="message")
    answer_id = message.id if message.message_role == "assistant" else turn.answer_id
    answer = tx.messages.get(answer_id) if answer_id else None
    trace_text(tx, conversation.id, look, f"the explanation of message {question.id}")
    traces = tx.traces.of_message(question.id)
    blocks = tuple(_block_use(each) for each in traces if _is_block(each))
    tools = tx.unit.find(ToolUse, "sequence_number", conversation_id=conversation.id, message_id=question.id)
    before = tx.turns.get(conversation.id, turn.number - 1)
    after = tx.turns.get(conversation.id, turn.number + 1)
    neighbours = Neighbours(
        before.user_message_id if before else None, after.user_message_id if after else None
    )
    run = _run_of(tx, question, answer_id)
    searches = tx.memory_index.retrievals_of_message(conversation.id, question.id)
    return Explanation(
        conversation_id=conversation.id,
        turn=turn.number,
        state=turn.state,
        error=turn.error,
        attempts=turn.attempts,
        message=question,
        answer=answer,
        understood=_understood(BlockInspector(tx, ledger, conversation, look), blocks, question.id),
        blocks=blocks,
        memories=tuple(_memory_use(each) for each in traces if not _is_block(each)),
        safety=tuple(_finding(tx, each) for each in tx.safety.of_message(question.id)),
        tools=tuple(_tool_call(each) for each in tools),
        steps=tuple(_steps(tx, turn, question, answer, traces)),
        model=_model_use(tx, answer),
        run=run,
        stations=tuple(
            StationTime(each.station, each.start_ms, each.milliseconds)
            for each in (tx.runs.stations(run.id) if run else ())
        ),
        model_requests=requests_for(tx, question.id, neighbours.previous_message_id),
        retrieval_id=searches[-1].id if searches else None,
        neighbours=neighbours,
    )


def _run_of(tx: Transaction, question: Message, answer_id: str | None) -> TurnRun | None:
    """The attempt that gave this answer, else the latest one; None if its turn is older than the table."""
    runs = tx.runs.of_message(question.id)
    found = [run for run in runs if run.answer_id == answer_id] or runs
    return found[-1] if found else None


def _is_block(trace: Trace) -> bool:
    return trace.memory_type == "memory_block"


def _block_use(trace: Trace) -> BlockUse:
    about: dict[str, Any] = trace.meta or {}
    return BlockUse(
        trace.id,
        str(about.get("label", "")),
        trace.action,
        about.get("revision"),
        about.get("size"),
        about.get("digest"),
        tuple(about.get("changed") or ()),
    )


def _memory_use(trace: Trace) -> MemoryUse:
    about: dict[str, Any] = trace.meta or {}
    return MemoryUse(
        trace.id,
        trace.memory_id,
        trace.memory_type,
        trace.confidence,
        trace.position_in_results,
        about.get("role"),
        trace.content,
    )


def _understood(inspector: BlockInspector, blocks: Iterable[BlockUse], message_id: str) -> Understood | None:
    """The message's entry in the revision of the history that its turn wrote; None if none is kept."""
    history = Label.CONVERSATION_HISTORY
    written = [each.revision for each in blocks if each.label == history and each.action != "retrieved"]
    revision = max((each for each in written if each is not None), default=0)
    if not revision:
        return None
    try:
        text = inspector.text(history, revision=revision).text
    except AnamnesisError as error:
        if error.problem is not REVISION_NOT_FOUND:
            raise
        return None  # `blocks.revisions_kept` has let it go
    for turn in json.loads(text)["turns"]:
        if turn["user_message"]["message_id"] == message_id:
            return _as_understood(turn, revision)
    return None


def _as_understood(turn: dict[str, Any], revision: int) -> Understood:
    enrichment = turn.get("context_enrichment") or {}
    intent = turn.get("intent_classification") or {}
    response = turn.get("agent_response") or {}
    return Understood(
        previous_context=enrichment.get("previous_context"),
        enriched_message=enrichment.get("enriched_message"),
        relevant_history=tuple(enrichment.get("relevant_history") or ()),
        intent=intent.get("intent"),
        confidence=intent.get("confidence"),
        reasoning=intent.get("reasoning"),
        specialist=response.get("agent_type"),
        revision=revision,
    )


def _finding(tx: Transaction, event: SafetyEvent) -> SafetyFinding:
    refused = tx.safety.refused_text(event.id)
    return SafetyFinding(event.id, event.stage, event.kind, event.tier, event.certainty, event.rules, refused)


def _tool_call(use: ToolUse) -> ToolCall:
    taken = None if use.completed_at is None else _milliseconds(use.created_at, use.completed_at)
    return ToolCall(use.id, use.tool_name, use.status, use.tool_arguments, use.tool_result, taken)


def _steps(
    tx: Transaction, turn: Turn, question: Message, answer: Message | None, traces: Sequence[Trace]
) -> Iterable[Step]:
    """The moments of the turn that are stored, in order."""
    said = [each.created_at for each in tx.messages.sentences(answer.id)] if answer else []
    read = [each.created_at for each in traces if each.action == "retrieved"]
    written = [each.created_at for each in traces if each.action != "retrieved"]
    moments = {
        "received": question.created_at,
        "started": turn.started_at,
        "memory_read": min(read, default=None),
        "first_sentence": min(said, default=None),
        "memory_written": max(written, default=None),
        "last_sentence": max(said, default=None),
        "ended": turn.ended_at,
    }
    for name, at in moments.items():
        if at is not None:
            yield Step(name, at, _milliseconds(question.created_at, at))


def _milliseconds(start: datetime, end: datetime) -> int:
    return round((end - start).total_seconds() * 1000)


def _model_use(tx: Transaction, answer: Message | None) -> ModelUse | None:
    meta = {pair.key: pair.value for pair in tx.meta.of(answer.id)} if answer else {}
    if "model.asked" not in meta:
        return None
    return ModelUse(
        requests=int(meta["model.asked"]),
        prompt_tokens=int(meta.get("model.prompt_tokens", 0)),
        completion_tokens=int(meta.get("model.completion_tokens", 0)),
        fallback=meta.get("model.stood_in"),
        trouble=meta.get("model.trouble") or meta.get("model.cut"),
    )
