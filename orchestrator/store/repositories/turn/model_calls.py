"""Requests to models, exactly as they were sent, and what they cost."""

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, func, select, update

from orchestrator.store.engine.packing import pack, unpack
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Conversation, ModelCall

SHORTEST_DIGEST: Final = 8
"""How many characters of a digest identify a request."""

MEMORY_ROLE: Final = "memory"
"""The role of a model that makes memories in the background. Its tokens do not count as the person's."""

_calls, _conversations = ModelCall.table, Conversation.table
_TOKENS = Statement(
    select(func.coalesce(func.sum(_calls.c.prompt_tokens + _calls.c.completion_tokens), 0))
    .join(_conversations, _conversations.c.id == _calls.c.conversation_id)
    .where(
        _conversations.c.user_id == bindparam("user_id"),
        _calls.c.role != MEMORY_ROLE,
        _calls.c.created_at >= bindparam("since", type_=_calls.c.created_at.type),
    ),
    int,
)
_MEMORY_TOKENS = Statement(
    select(func.coalesce(func.sum(_calls.c.prompt_tokens + _calls.c.completion_tokens), 0)).where(
        _calls.c.role == MEMORY_ROLE,
        _calls.c.created_at >= bindparam("since", type_=_calls.c.created_at.type),
    ),
    int,
)
_BY_DIGEST = Statement(
    all_of(ModelCall)
    .where(_calls.c.digest >= bindparam("first"), _calls.c.digest < bindparam("last"))
    .order_by(_calls.c.created_at, _calls.c.number, _calls.c.id),
    ModelCall,
)

_ERASE = Statement(
    update(_calls)
    .values(packed=bindparam("nothing"), updated_at=bindparam("now"))
    .where(
        _calls.c.conversation_id.in_(
            select(_conversations.c.id).where(_conversations.c.user_id == bindparam("user_id"))
        )
    ),
    lambda: None,
)


class ModelCalls:
    """The table `model_calls`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(
        self,
        conversation_id: str,
        message_id: str,
        number: int,
        *,
        role: str,
        model: str,
        digest: str,
        request: str,
    ) -> str:
        """Store a request for a message, whose outcome is pending; returns the id of its row."""
        id = self._unit.ids.new("call_")
        self._unit.add(
            ModelCall,
            id=id,
            conversation_id=conversation_id,
            message_id=message_id,
            number=number,
            role=role,
            model=model,
            digest=digest,
            packed=pack(request),
            prompt_tokens=0,
            completion_tokens=0,
            outcome="pending",
        )
        return id

    def end(self, id: str, *, outcome: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Store the outcome of a request and its tokens."""
        self._unit.change(
            ModelCall,
            {"id": id},
            outcome=outcome,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )

    def of_message(self, message_id: str) -> list[ModelCall]:
        """The requests for a message, in order."""
        return self._unit.find(ModelCall, "created_at", "number", "id", message_id=message_id)

    def with_digest(self, beginning: str) -> list[ModelCall]:
        """The requests whose digest begins like this, in order."""
        return self._unit.all(_BY_DIGEST, first=beginning, last=f"{beginning}g")

    def erase_texts(self, user_id: str) -> int:
        """Erase what was sent for a person, for good; returns how many requests. Digest and tokens stay."""
        return self._unit.run(_ERASE, user_id=user_id, nothing=b"")

    def tokens_since(self, user_id: str, since: datetime) -> int:
        """How many tokens models have used for a person's turns since then."""
        tokens: int | None = self._unit.first(_TOKENS, user_id=user_id, since=since)
        return tokens or 0

    def memory_tokens_since(self, since: datetime) -> int:
        """How many tokens models have used since then to make memories of anybody."""
        tokens: int | None = self._unit.first(_MEMORY_TOKENS, since=since)
        return tokens or 0


def request_text(call: ModelCall) -> str | None:
    """The text of a stored request; None if it was erased or is damaged."""
    return unpack(call.packed)
