"""The history of a conversation as the creators of memories read it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from orchestrator.remember.ledger.lines import Point, sha256
from orchestrator.remember.utterances import utterance_id
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Message

PERSON: Final = "user"
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_UNFINISHED: Final = ("pending", "streaming")


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message of the person, or an answer. `number` is its place in the conversation.

    `forgotten`: the person deleted it from their memories, so that no memory may be made of its words.
    `edited`: the words as somebody corrected them in the memory of the message.
    """

    id: str
    number: int
    role: str
    text: str
    at: datetime
    forgotten: bool = False
    edited: str | None = None

    @classmethod
    def of(cls, role: str, text: str) -> "HistoryMessage":
        """A text without a place in a conversation."""
        return cls("", 0, role, text, _NEVER)

    @property
    def is_person(self) -> bool:
        """Whether the person said it."""
        return self.role == PERSON

    @property
    def words(self) -> str:
        """The text that memories may use."""
        return "" if self.forgotten else self.edited or self.text

    @property
    def point(self) -> Point:
        """This message as the last one that was processed."""
        return Point(self.id, self.number, sha256(self.text))


def history_after(tx: Transaction, conversation_id: str, after: Point | None) -> list[HistoryMessage]:
    """The messages after a point, up to the first that is not complete yet; replaced ones are left out."""
    found: list[HistoryMessage] = []
    for message in tx.messages.after(conversation_id, after.number if after else 0):
        if message.completion_status in _UNFINISHED and message.message_role != PERSON:
            break
        if message.message_role != "system" and not is_superseded(tx, message.id):
            found.append(_said(tx, message))
    return found


def is_superseded(tx: Transaction, message_id: str) -> bool:
    """Whether a message was replaced by another one."""
    return any(pair.key == "superseded" for pair in tx.meta.of(message_id))


def _said(tx: Transaction, message: Message) -> HistoryMessage:
    memory = tx.memories.get_even_deleted(utterance_id(message.id))
    return HistoryMessage(
        message.id,
        message.sequence_number,
        message.message_role,
        message.contents,
        message.created_at,
        forgotten=memory is not None and memory.deleted_at is not None,
        edited=memory.content if memory is not None and memory.content != message.contents else None,
    )


def transcript(chunk: tuple[HistoryMessage, ...]) -> str:
    """A chunk as text, with the speaker before each message. Forgotten messages are left out."""
    return "\n".join(f"{_speaker(said)}: {said.words}" for said in chunk if said.words.strip())


def _speaker(said: HistoryMessage) -> str:
    return "Person" if said.is_person else "Assistant"
