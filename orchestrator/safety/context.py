"""What a message is judged with: the question that it may answer, and what was said and found before it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Final, Protocol, TypeVar

from agents.safety.conversation.denials import Exchange
from agents.safety.verdict import STILL
from orchestrator.ops.logs import get_logger
from orchestrator.safety.assessment import Assessment
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.turn.safety import STAYS_OPEN
from orchestrator.store.rows import Message, SafetyEvent

log = get_logger()

T = TypeVar("T")

SHORT_REPLY: Final = 200
"""Up to how many characters a message may depend on the question before it."""

MAX_MESSAGES_BACK: Final = 8
"""How many messages back an open question, or a danger that was denied, is searched for."""


class SaysNothing(Protocol):
    """Recognises messages such as "hm", which leave the question before them open."""

    def says_nothing(self, text: str) -> bool:
        """Whether the text neither answers a question nor says anything of its own."""


@dataclass(frozen=True, slots=True)
class MessageContext:
    """What the store says about the conversation before a message."""

    question: str | None = None
    """The questions that the message may answer: a bare "yes" means what they make of it."""
    earlier: Assessment = field(default_factory=Assessment)
    """The assessment of the message before, if it is not long ago."""
    exchanges: tuple[Exchange, ...] = ()
    """The person's last messages, newest first, each with what the assistant had said before it."""
    asked: frozenset[str] = frozenset()
    """The kinds of possible danger that the person was asked about in the last hours."""


def read_context(
    tx: Transaction, guard: SaysNothing, conversation_id: str, *, is_edit: bool = False
) -> MessageContext:
    """The context of the person's next message, or of the latest one if that is being edited."""
    latest = tx.turns.latest(conversation_id)
    if is_edit and latest is not None:
        number, edited = latest.number, tx.messages.get(latest.user_message_id)
        last = tx.messages.get(edited.previous_id) if edited and edited.previous_id else None
    else:
        number, last = latest.number + 1 if latest else 1, tx.messages.last(conversation_id)
    earlier = Assessment.from_events(standing_events(tx, conversation_id, number))
    messages = tx.messages.backwards(last.id, limit=MAX_MESSAGES_BACK) if last else []
    since = tx.now - STAYS_OPEN
    asked = frozenset(
        event.kind
        for event in tx.safety.of_conversation(conversation_id)
        if event.certainty == "possible" and event.created_at > since
    )
    return MessageContext(_open_question(guard, messages), earlier, tuple(_exchanges(messages)), asked)


def standing_events(tx: Transaction, conversation_id: str, number: int) -> tuple[SafetyEvent, ...]:
    """The safety events of the message before a turn. They say whether an earlier danger still counts.

    A danger that later messages only carried over counts for at most six hours after it was found.
    """
    last = tx.safety.recent_danger(conversation_id, number)
    if not any(STILL in event.rules for event in last):
        return last
    since = tx.now - STAYS_OPEN
    is_fresh = any(
        event.tier and STILL not in event.rules and event.created_at > since
        for event in tx.safety.of_conversation(conversation_id)
    )
    return last if is_fresh else ()


def _open_question(guard: SaysNothing, messages: Iterable[Message]) -> str | None:
    """The last answer, and the answers before it to which the person said nothing but a "hm"."""
    answers: list[str] = []
    for message in messages:
        if message.message_role == "assistant":
            answers.append(message.contents)
        elif len(message.contents) > SHORT_REPLY or not checked(
            partial(guard.says_nothing, message.contents), False
        ):
            break
    return "\n".join(reversed(answers)) or None


def _exchanges(messages: Sequence[Message]) -> Iterator[Exchange]:
    """The person's messages, each with the answer before it."""
    for message, before in zip_longest(messages, messages[1:]):
        if message.message_role != "assistant":
            is_answer = before is not None and before.message_role == "assistant"
            yield before.contents if is_answer else "", message.contents


def checked(check: Callable[[], T], otherwise: T) -> T:
    """The result of a check by the guard; `otherwise` if the check fails, which is logged."""
    try:
        return check()
    except Exception as error:
        log.error("guard_failed", exc_info=error)
        return otherwise
