"""`/v1/messages/{id}/explanation`: everything that led to one answer."""

from typing import Any

from fastapi import APIRouter, Request

from orchestrator.api.access.checking import caller_of, item_texts, reason_of
from orchestrator.api.answers import Answer, Id, Moment, problems
from orchestrator.api.ports import Resources
from orchestrator.api.routes.messages import message_of
from orchestrator.inspection.explanation import Explanation, explain
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Message


class Said(Answer):
    """A message with its text."""

    id: str
    content: str
    status: str
    created_at: Moment


class Understood(Answer):
    """How the message was understood and where it was routed, as a revision of the history keeps it."""

    previous_context: str | None
    enriched_message: str | None
    relevant_history: tuple[str, ...]
    intent: str | None
    confidence: float | None
    reasoning: str | None
    specialist: str | None
    revision: int


class BlockUse(Answer):
    """A block that the turn read or wrote, by revision."""

    trace_id: str
    label: str
    action: str
    revision: int | None
    size: int | None
    digest: str | None
    changed: tuple[str, ...]


class MemoryUse(Answer):
    """A long-term memory that was retrieved."""

    trace_id: str
    memory_id: str
    memory_type: str | None
    confidence: float | None
    position: int | None
    role: str | None
    content: str


class SafetyFinding(Answer):
    """What the guard found."""

    id: str
    stage: str
    kind: str
    tier: int
    certainty: str | None
    rules: tuple[str, ...]
    refused: str | None


class ToolCall(Answer):
    """A tool that was called."""

    id: str
    tool_name: str
    status: str
    arguments: Any
    result: Any
    milliseconds: int | None


class Step(Answer):
    """A moment of the turn, and how long after the message it was."""

    name: str
    at: Moment
    milliseconds: int


class ModelUse(Answer):
    """What the models were asked."""

    requests: int
    prompt_tokens: int
    completion_tokens: int
    fallback: str | None
    trouble: str | None


class StationTime(Answer):
    """A station of the turn: when it began, in milliseconds after the attempt did, and how long it took."""

    name: str
    start: float
    milliseconds: float


class ModelRequest(Answer):
    """A request to a model: `request` as it was sent, `readable` with real line breaks.

    `previous` is the readable request with the same role in the turn before, `diff` what differs. Texts that
    were erased are null.
    """

    id: str
    number: int
    role: str
    model: str
    outcome: str
    prompt_tokens: int
    completion_tokens: int
    digest: str
    request: str | None
    readable: str | None
    previous: str | None
    diff: str | None


class WholeExplanation(Answer):
    """One answer's story, in the order of the turn. What is not stored is null or empty."""

    conversation_id: str
    turn: int
    state: str
    error: str | None
    attempts: int
    message: Said
    answer: Said | None
    understood: Understood | None
    blocks: tuple[BlockUse, ...]
    memories: tuple[MemoryUse, ...]
    safety: tuple[SafetyFinding, ...]
    tools: tuple[ToolCall, ...]
    steps: tuple[Step, ...]
    model: ModelUse | None
    prompt: str | None
    prompt_revision: str | None
    stations: tuple[StationTime, ...]
    model_requests: tuple[ModelRequest, ...]
    retrieval_id: str | None
    previous_message_id: str | None
    next_message_id: str | None


def build_router(resources: Resources) -> APIRouter:
    """Build the route."""
    router = APIRouter(tags=["explanations"])

    @router.get("/v1/messages/{message_id}/explanation", responses=problems(404))
    async def show(request: Request, message_id: Id) -> WholeExplanation:
        """Explain the answer to a message; the id of the answer works, too. Leaves traces of the look."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> Explanation:
            message = message_of(tx, message_id)
            row, look = item_texts(tx, caller, message.conversation_id, reason, "message")
            return explain(tx, resources.ledger, row, message, look)

        return to_response(await resources.store.write(read))

    return router


def to_response(explanation: Explanation) -> WholeExplanation:
    """The explanation as the API and the command line show it."""
    answer, run = explanation.answer, explanation.run
    return WholeExplanation(
        conversation_id=explanation.conversation_id,
        turn=explanation.turn,
        state=explanation.state,
        error=explanation.error,
        attempts=explanation.attempts,
        message=_said(explanation.message),
        answer=_said(answer) if answer else None,
        understood=Understood.model_validate(explanation.understood) if explanation.understood else None,
        blocks=tuple(map(BlockUse.model_validate, explanation.blocks)),
        memories=tuple(map(MemoryUse.model_validate, explanation.memories)),
        safety=tuple(map(SafetyFinding.model_validate, explanation.safety)),
        tools=tuple(map(ToolCall.model_validate, explanation.tools)),
        steps=tuple(map(Step.model_validate, explanation.steps)),
        model=ModelUse.model_validate(explanation.model) if explanation.model else None,
        prompt=run.prompt if run else None,
        prompt_revision=run.prompt_revision if run else None,
        stations=tuple(map(StationTime.model_validate, explanation.stations)),
        model_requests=tuple(map(ModelRequest.model_validate, explanation.model_requests)),
        retrieval_id=explanation.retrieval_id,
        previous_message_id=explanation.neighbours.previous_message_id,
        next_message_id=explanation.neighbours.next_message_id,
    )


def _said(message: Message) -> Said:
    return Said(
        id=message.id,
        content=message.contents,
        status=message.completion_status,
        created_at=message.created_at,
    )
