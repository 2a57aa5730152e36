"""Messages in their order, and the sentences a streamed answer is made of."""

from datetime import datetime

from sqlalchemy import bindparam, func, select

from orchestrator.errors import CONSTRAINT, AnamnesisError
from orchestrator.store.conversations import Conversations
from orchestrator.store.rows import Message, Sentence
from orchestrator.store.statements import Statement, all_of
from orchestrator.store.types import JsonObject
from orchestrator.store.unit import Unit, changing

_messages, _sentences = Message.table, Sentence.table
_here = _messages.c.conversation_id == bindparam("conversation_id")
_BY_ID = Statement(
    all_of(Message).where(_messages.c.id == bindparam("id"), _messages.c.deleted_at.is_(None)), Message
)
_BY_LOCAL_ID = Statement(all_of(Message).where(_here, _messages.c.local_id == bindparam("local_id")), Message)
_IN_ORDER = Statement(
    all_of(Message).where(_here, _messages.c.deleted_at.is_(None)).order_by(_messages.c.sequence_number),
    Message,
)
_LAST = Statement(
    all_of(Message)
    .where(_here, _messages.c.deleted_at.is_(None))
    .order_by(_messages.c.sequence_number.desc())
    .limit(1),
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
_HIGHEST = Statement(select(func.coalesce(func.max(_messages.c.sequence_number), 0)).where(_here), int)
_SAY = Statement(
    changing(_messages)
    .where(_messages.c.id == bindparam("id"), _messages.c.completion_status == "streaming")
    .values(contents=_messages.c.contents + bindparam("text"), completion_status=bindparam("status")),
    lambda: None,
)
_SENTENCES = Statement(
    all_of(Sentence)
    .where(_sentences.c.message_id == bindparam("message_id"), _sentences.c.deleted_at.is_(None))
    .order_by(_sentences.c.sentence_sequence_number),
    Sentence,
)
_HIGHEST_SENTENCE = Statement(
    select(func.coalesce(func.max(_sentences.c.sentence_sequence_number), 0)).where(
        _sentences.c.message_id == bindparam("message_id")
    ),
    int,
)


class Messages:
    """The tables `alicia_messages` and `alicia_sentences`."""

    def __init__(self, unit: Unit, conversations: Conversations) -> None:
        self._unit, self._conversations = unit, conversations

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
        """Add a message at the end; a `local_id` is what an offline client called it."""
        self._conversations.lock(conversation_id)
        highest = self._unit.first(_HIGHEST, conversation_id=conversation_id) or 0
        now = self._unit.now
        id = id or self._unit.ids.new("msg_")
        message = Message(
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
            updated_at=now,
            deleted_at=None,
        )
        self._unit.insert(message)
        return message

    def get(self, id: str) -> Message | None:
        """The one with that id, if there is one and it is not deleted."""
        return self._unit.first(_BY_ID, id=id)

    def by_local_id(self, conversation_id: str, local_id: str) -> Message | None:
        """The one an offline client called so, so that a repeated sync stores nothing twice."""
        return self._unit.first(_BY_LOCAL_ID, conversation_id=conversation_id, local_id=local_id)

    def last(self, conversation_id: str) -> Message | None:
        """The latest message; what comes next follows it unless it says otherwise."""
        return self._unit.first(_LAST, conversation_id=conversation_id)

    def streaming(self, conversation_id: str) -> Message | None:
        """The answer under way; there is one at a time."""
        return self._unit.first(_STREAMING, conversation_id=conversation_id)

    def answers_to(self, conversation_id: str, message_id: str) -> list[Message]:
        """Every answer to a message: the current one and those it replaced."""
        return self._unit.all(_ANSWERS, conversation_id=conversation_id, id=message_id)

    def in_order(self, conversation_id: str) -> list[Message]:
        """The whole conversation."""
        return self._unit.all(_IN_ORDER, conversation_id=conversation_id)

    def begin_answer(self, conversation_id: str, previous_id: str, *, id: str | None = None) -> Message:
        """An answer that has nothing in it yet and streams."""
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
        """Add a sentence to a streaming answer, whose contents grow by it; the final one completes it."""
        status = "completed" if final else "streaming"
        if not self._unit.run(_SAY, id=message_id, text=text, status=status):
            raise AnamnesisError(CONSTRAINT, rule="only a streaming answer goes on")
        highest = self._unit.first(_HIGHEST_SENTENCE, message_id=message_id) or 0
        now = self._unit.now
        sentence = Sentence(
            id=id or self._unit.ids.new("sent_"),
            message_id=message_id,
            sentence_sequence_number=highest + 1,
            text=text,
            audio_type=None,
            audio_format=None,
            duration_ms=None,
            audio_bytesize=None,
            audio_data=None,
            meta=meta,
            completion_status="completed",
            created_at=now,
            updated_at=now,
            deleted_at=None,
        )
        self._unit.insert(sentence)
        return sentence

    def add_audio(
        self,
        sentence_id: str,
        *,
        audio_format: str,
        data: bytes | None,
        duration_ms: int,
        audio_type: str = "output",
    ) -> bool:
        """Keep how a sentence sounded, beside it."""
        return self._unit.change(
            Sentence,
            sentence_id,
            audio_type=audio_type,
            audio_format=audio_format,
            audio_data=data,
            audio_bytesize=None if data is None else len(data),
            duration_ms=duration_ms,
        )

    def fail(self, id: str) -> bool:
        """Close an answer that will not be completed; what it said so far stays."""
        return self._unit.change(Message, id, completion_status="failed")

    def sentences(self, message_id: str) -> list[Sentence]:
        """What an answer is made of, in order."""
        return self._unit.all(_SENTENCES, message_id=message_id)

    def delete(self, id: str) -> bool:
        """Mark a message deleted; its place in the order stays taken."""
        return self._unit.delete(Message, id)
