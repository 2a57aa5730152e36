"""`/v1/messages/{id}/explanation`: everything that led to one answer."""

from fastapi import APIRouter, Request

from orchestrator.api.access.checking import caller_of, item_texts, reason_of
from orchestrator.api.answers import Answer, Id, Moment, problems
from orchestrator.api.ports import Resources
from orchestrator.api.routes.messages import message_of
from orchestrator.inspection.explanation import (
    BlockUse,
    Explanation,
    MemoryUse,
    ModelUse,
    SafetyFinding,
    StationTime,
    ToolCall,
    Understood,
    explain,
)
from orchestrator.inspection.requests import ModelRequest
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Message


class ExplainedMessage(Answer):
    """A message with its text."""

    id: str
    content: str
    status: str
    created_at: Moment


class Step(Answer):
    """A moment of the turn, and how long after the message it was."""

    name: str
    at: Moment
    milliseconds: int


class WholeExplanation(Answer):
    """One answer's story, in the order of the turn. What is not stored is null or empty."""

    conversation_id: str
    turn: int
    state: str
    error: str | None
    attempts: int
    message: ExplainedMessage
    answer: ExplainedMessage | None
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
        message=_message(explanation.message),
        answer=_message(answer) if answer else None,
        understood=explanation.understood,
        blocks=explanation.blocks,
        memories=explanation.memories,
        safety=explanation.safety,
        tools=explanation.tools,
        steps=tuple(map(Step.model_validate, explanation.steps)),
        model=explanation.model,
        prompt=run.prompt if run else None,
        prompt_revision=run.prompt_revision if run else None,
        stations=explanation.stations,
        model_requests=explanation.model_requests,
        retrieval_id=explanation.retrieval_id,
        previous_message_id=explanation.neighbours.previous_message_id,
        next_message_id=explanation.neighbours.next_message_id,
    )


def _message(message: Message) -> ExplainedMessage:
    return ExplainedMessage(
        id=message.id,
        content=message.contents,
        status=message.completion_status,
        created_at=message.created_at,
    )
