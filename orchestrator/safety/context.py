"""What a message is judged with: the question that it may answer, and the danger of the message before it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

from orchestrator.ops.logs import get_logger
from orchestrator.safety.assessment import Assessment
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Message

log = get_logger()

T = TypeVar("T")

SHORT_REPLY: Final = 200
"""Up to how many characters a message may depend on the question before it."""

MAX_MESSAGES_BACK: Final = 6
"""How many messages back an open question is searched for."""


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
    earlier = Assessment.from_events(tx.safety.recent_danger(conversation_id, number))
    return MessageContext(_open_question(tx, guard, last), earlier)


def _open_question(tx: Transaction, guard: SaysNothing, last: Message | None) -> str | None:
    """The last answer, and the answers before it to which the person said nothing but a "hm"."""
    answers: list[str] = []
    for _ in range(MAX_MESSAGES_BACK):
        if last is None:
            break
        if last.message_role == "assistant":
            answers.append(last.contents)
        elif len(last.contents) > SHORT_REPLY or not checked(
            partial(guard.says_nothing, last.contents), False
        ):
            break
        last = tx.messages.get(last.previous_id) if last.previous_id else None
    return "\n".join(reversed(answers)) or None


def checked(check: Callable[[], T], otherwise: T) -> T:
    """The result of a check by the guard; `otherwise` if the check fails, which is logged."""
    try:
        return check()
    except Exception as error:
        log.error("guard_failed", exc_info=error)
        return otherwise
