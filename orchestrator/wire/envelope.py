"""The envelope: one message with its stanza number and its conversation."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from orchestrator.errors import AnamnesisError
from orchestrator.wire.ids import ConversationId, ErrorId
from orchestrator.wire.messages import Body, ErrorMessage

Scalar: TypeAlias = str | int | float | bool | None
B_co = TypeVar("B_co", bound=Body, covariant=True)


class Envelope(NamedTuple, Generic[B_co]):
    """A message with its stanza number. A tuple, because one is created for every frame."""

    stanza_id: int
    conversation_id: ConversationId
    body: B_co
    meta: Mapping[str, Scalar] | None = None


def error_envelope(
    error: AnamnesisError,
    *,
    error_id: ErrorId,
    conversation_id: ConversationId,
    stanza_id: int = 0,
    originating_id: str | None = None,
    safety: str = "",
) -> Envelope[ErrorMessage]:
    """The ErrorMessage for `error`, with the name of its row in the meta.

    Only an error that ends a turn has a stanza number; others have 0. `safety` is text to put in front.
    """
    row = error.problem
    body = ErrorMessage(
        id=error_id,
        conversation_id=conversation_id,
        code=row.number,
        message=f"{safety}{error}",
        severity=int(row.severity),
        recoverable=row.recoverable,
        originating_id=originating_id,
    )
    return Envelope(stanza_id, conversation_id, body, {"error": row.name})
