"""Messages, and the sentences of streamed answers."""

from datetime import datetime

from sqlalchemy import Integer, bindparam, literal, select

from orchestrator.errors import CONSTRAINT, AnamnesisError
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.engine.unit import Unit, changing
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.repositories.conversation.conversations import Conversations
from orchestrator.store.rows import Message, Sentence

_messages = Message.table
_here = _messages.c.conversation_id == bindparam("conversation_id")
_LATEST = Statement(
    all_of(Message)
    .where(_here, _messages.c.deleted_at.is_(None))
    .order_by(_messages.c.sequence_number.desc())
    .limit(bindparam("limit")),
    Message,
)
_STREAMING = Statement(
    all_of(Message).where(_here, _messages.c.completion_status == "streaming").limit(1), Message
)
_ANSWERS = Statement(
    all_of(Message)
    .where(_here, _messages.c.previous_id == bindparam("id"), _messages.c.message_role == "assistant")
    .order_by(_messages.c.sequence_number),
    Message,
)
_PAGE = Statement(
    all_of(Message)
    .where(_here, _messages.c.deleted_at.is_(None), _messages.c.sequence_number > bindparam("after"))
    .order_by(_messages.c.sequence_number)
    .limit(bindparam("limit")),
    Message,
)
_AFTER = Statement(
    all_of(Message)
    .where(_here, _messages.c.deleted_at.is_(None), _messages.c.sequence_number > bindparam("number"))
    .order_by(_messages.c.sequence_number),
    Message,
)
_first = (
    select(_messages.c.id, _messages.c.previous_id, literal(1).label("step"))
    .where(_messages.c.id == bindparam("id"), _messages.c.deleted_at.is_(None))
    .cte("steps", recursive=True)
)
_steps = _first.union_all(
    select(_messages.c.id, _messages.c.previous_id, _first.c.step + 1).where(
        _messages.c.id == _first.c.previous_id,
        _messages.c.deleted_at.is_(None),
        _first.c.step < bindparam("limit", type_=Integer),
    )
)
_BACKWARDS = Statement(
    all_of(Message).join(_steps, _steps.c.id == _messages.c.id).order_by(_steps.c.step), Message
)
_ADD_TEXT = Statement(
    changing(_messages)
    .where(_messages.c.id == bindparam("id"), _messages.c.completion_status == "streaming")
    .values(contents=_messages.c.contents + bindparam("text"), completion_status=bindparam("status")),
    lambda: None,
)


class Messages(ById[Message]):
    """The tables `alicia_messages` and `alicia_sentences`."""

    row_type = Message

    def __init__(self, unit: Unit, conversations: Conversations) -> None:
        super().__init__(unit)
        self._conversations = conversations

    def append(
        self,
        conversation_id: str,
        role: str,
        contents: str,
        *,
        id: str | None = None,
        previous_id: str | None = None,
        completion_status: str = "completed",
        local_id: str | None = None,
        created_at: datetime | None = None,
    ) -> Message:
        """Add a message at the end. `local_id` is the id that an offline client gave it."""
        self._conversations.lock(conversation_id)
        highest = self._unit.highest(Message, "sequence_number", conversation_id=conversation_id)
        now = self._unit.now
        id = id or self._unit.ids.new("msg_")
        return self._unit.add(
            Message,
            id=id,
            conversation_id=conversation_id,
            sequence_number=highest + 1,
            previous_id=previous_id,
            message_role=role,
            contents=contents,
            local_id=local_id,
            server_id=id,
            sync_status="synced",
            synced_at=now if local_id else None,
            completion_status=completion_status,
            created_at=created_at or now,
        )

    def by_local_id(self, conversation_id: str, local_id: str) -> Message | None:
        """The message with that id of an offline client, so that a repeated sync stores nothing twice."""
        here = {"conversation_id": conversation_id, "local_id": local_id}
        return self._unit.find_one(Message, even_deleted=True, **here)

    def last(self, conversation_id: str) -> Message | None:
        """The latest message."""
        return self._unit.first(_LATEST, conversation_id=conversation_id, limit=1)

    def latest(self, conversation_id: str, *, limit: int) -> list[Message]:
        """The newest messages of a conversation, in their order."""
        return self._unit.all(_LATEST, conversation_id=conversation_id, limit=limit)[::-1]

    def backwards(self, id: str, *, limit: int) -> list[Message]:
        """A message, the one that it follows, and so on: at most `limit`, up to one that is deleted."""
        return self._unit.all(_BACKWARDS, id=id, limit=limit)

    def streaming(self, conversation_id: str) -> Message | None:
        """The answer that is being streamed; there is at most one."""
        return self._unit.first(_STREAMING, conversation_id=conversation_id)

    def answers_to(self, conversation_id: str, message_id: str) -> list[Message]:
        """All answers to a message: the current one and those it replaced."""
        return self._unit.all(_ANSWERS, conversation_id=conversation_id, id=message_id)

    def after(self, conversation_id: str, number: int) -> list[Message]:
        """All messages of a conversation with a higher sequence number."""
        return self._unit.all(_AFTER, conversation_id=conversation_id, number=number)

    def in_order(self, conversation_id: str) -> list[Message]:
        """All messages of a conversation."""
        return self._unit.find(Message, "sequence_number", conversation_id=conversation_id)

    def page(self, conversation_id: str, after: int, limit: int) -> list[Message]:
        """Messages of a conversation after that sequence number, in order, with their texts."""
        return self._unit.all(_PAGE, conversation_id=conversation_id, after=after, limit=limit)

    def begin_answer(self, conversation_id: str, previous_id: str, *, id: str | None = None) -> Message:
        """Start a streamed answer, still empty."""
        return self.append(
            conversation_id, "assistant", "", id=id, previous_id=previous_id, completion_status="streaming"
        )

    def say(
        self,
        message_id: str,
        text: str,
        *,
        id: str | None = None,
        final: bool = False,
        meta: JsonObject | None = None,
    ) -> Sentence:
        """Add a sentence to a streamed answer; the final one completes it."""
        status = "completed" if final else "streaming"
        if not self._unit.run(_ADD_TEXT, id=message_id, text=text, status=status):
            raise AnamnesisError(CONSTRAINT, rule="a sentence needs a streaming answer")
        highest = self._unit.highest(Sentence, "sentence_sequence_number", message_id=message_id)
        return self._unit.add(
            Sentence,
            id=id or self._unit.ids.new("sent_"),
            message_id=message_id,
            sentence_sequence_number=highest + 1,
            text=text,
            meta=meta,
            completion_status="completed",
        )

    def add_audio(
        self,
        sentence_id: str,
        *,
        audio_format: str,
        data: bytes | None,
        duration_ms: int,
        audio_type: str = "output",
    ) -> bool:
        """Store the audio of a sentence."""
        changed = self._unit.change(
            Sentence,
            {"id": sentence_id},
            audio_type=audio_type,
            audio_format=audio_format,
            audio_data=data,
            audio_bytesize=None if data is None else len(data),
            duration_ms=duration_ms,
        )
        return changed == 1

    def fail(self, id: str) -> bool:
        """End an answer as failed; its sentences stay."""
        return self.update(id, completion_status="failed")

    def sentences(self, message_id: str) -> list[Sentence]:
        """The sentences of an answer, in order."""
        return self._unit.find(Sentence, "sentence_sequence_number", message_id=message_id)
