"""Turns: each message of a person waits its turn, runs, and ends completed or failed."""

from datetime import datetime

from sqlalchemy import bindparam, func, or_, select

from orchestrator.errors import CONSTRAINT, AnamnesisError
from orchestrator.store.conversations import Conversations
from orchestrator.store.rows import Turn
from orchestrator.store.statements import Statement, all_of
from orchestrator.store.unit import Unit, changing

_table = Turn.table
_here = _table.c.conversation_id == bindparam("conversation_id")
_this = (_here, _table.c.number == bindparam("number"))
_open = or_(_table.c.state == "pending", _table.c.state == "in_progress")
_HIGHEST = Statement(select(func.coalesce(func.max(_table.c.number), 0)).where(_here), int)
_ONE = Statement(all_of(Turn).where(*_this), Turn)
_OF_MESSAGE = Statement(all_of(Turn).where(_table.c.user_message_id == bindparam("message_id")), Turn)
_waiting = _table.alias()
_first_waiting = select(func.min(_waiting.c.number)).where(
    _waiting.c.conversation_id == bindparam("conversation_id"),
    or_(_waiting.c.state == "pending", _waiting.c.state == "in_progress"),
)
# By number, which the index of states knows: else SQLite goes through every turn there was.
_NEXT = Statement(all_of(Turn).where(_here, _table.c.number == _first_waiting.scalar_subquery()), Turn)
_WAITING = Statement(select(func.count()).select_from(_table).where(_here, _open), int)
_OPEN = Statement(
    select(_table.c.conversation_id).where(_open).distinct().order_by(_table.c.conversation_id), str
)
_TO_STOP = Statement(
    select(_table.c.conversation_id, _table.c.number).where(_open, _table.c.stop_requested),
    lambda conversation_id, number: (conversation_id, number),
)
_LATEST = Statement(all_of(Turn).where(_here).order_by(_table.c.number.desc()).limit(1), Turn)
_STOP = Statement(changing(_table).where(*_this, _open).values(stop_requested=True), lambda: None)
_STOP_BEFORE = Statement(
    changing(_table).where(_here, _table.c.number < bindparam("number"), _open).values(stop_requested=True),
    lambda: None,
)
_AGAIN = Statement(
    changing(_table)
    .where(*_this)
    .values(
        user_message_id=bindparam("user_message_id"),
        answer_id=None,
        state="pending",
        attempts=0,
        error=None,
        variation=bindparam("mode"),
        target_id=bindparam("target_id"),
        stop_requested=False,
        deadline=None,
        started_at=None,
        ended_at=None,
    ),
    lambda: None,
)
_BEGIN = Statement(
    changing(_table)
    .where(*_this)
    .values(
        state="in_progress",
        attempts=_table.c.attempts + 1,
        error=None,
        deadline=bindparam("deadline"),
        started_at=bindparam("now"),
        ended_at=None,
    ),
    lambda: None,
)
_ANSWER = Statement(
    changing(_table).where(*_this, _table.c.state == "in_progress").values(answer_id=bindparam("answer_id")),
    lambda: None,
)
_END = Statement(
    changing(_table)
    .where(*_this, _open)
    .values(state=bindparam("state"), error=bindparam("error"), ended_at=bindparam("now")),
    lambda: None,
)


class Turns:
    """The table `turns`."""

    def __init__(self, unit: Unit, conversations: Conversations) -> None:
        self._unit, self._conversations = unit, conversations

    def enqueue(self, conversation_id: str, user_message_id: str) -> Turn:
        """A message waits for its answer."""
        self._conversations.lock(conversation_id)
        highest = self._unit.first(_HIGHEST, conversation_id=conversation_id) or 0
        now = self._unit.now
        turn = Turn(
            conversation_id=conversation_id,
            number=highest + 1,
            user_message_id=user_message_id,
            answer_id=None,
            state="pending",
            attempts=0,
            error=None,
            variation=None,
            target_id=None,
            stop_requested=False,
            deadline=None,
            created_at=now,
            updated_at=now,
            started_at=None,
            ended_at=None,
        )
        self._unit.insert(turn)
        return turn

    def get(self, conversation_id: str, number: int) -> Turn | None:
        """A turn by its number."""
        return self._unit.first(_ONE, conversation_id=conversation_id, number=number)

    def of_message(self, user_message_id: str) -> Turn | None:
        """The turn a message has."""
        return self._unit.first(_OF_MESSAGE, message_id=user_message_id)

    def next_open(self, conversation_id: str) -> Turn | None:
        """What is to be done next: the earliest turn that runs or waits."""
        return self._unit.first(_NEXT, conversation_id=conversation_id)

    def waiting(self, conversation_id: str) -> int:
        """How many turns wait or run."""
        return self._unit.first(_WAITING, conversation_id=conversation_id) or 0

    def latest(self, conversation_id: str) -> Turn | None:
        """The newest turn, whatever became of it."""
        return self._unit.first(_LATEST, conversation_id=conversation_id)

    def to_stop(self) -> list[tuple[str, int]]:
        """The turns under way of which the person wants no more: the conversation of each, and its number."""
        return self._unit.all(_TO_STOP)

    def request_stop(self, conversation_id: str, number: int) -> None:
        """The person wants no more of it; whoever answers it, in whichever process, will see."""
        self._one(_STOP, conversation_id, number)

    def stop_before(self, conversation_id: str, number: int) -> None:
        """What runs or waits before that turn gives way to it."""
        self._unit.run(_STOP_BEFORE, conversation_id=conversation_id, number=number)

    def again(self, turn: Turn, *, mode: str, target_id: str, user_message_id: str) -> None:
        """Let a turn that is over be answered anew: again, corrected, or from where it stopped."""
        self._one(
            _AGAIN,
            turn.conversation_id,
            turn.number,
            mode=mode,
            target_id=target_id,
            user_message_id=user_message_id,
        )

    def conversations_with_open(self) -> list[str]:
        """Where something is left to do; the first question after a restart."""
        return self._unit.all(_OPEN)

    def begin(self, conversation_id: str, number: int, *, deadline: datetime) -> Turn:
        """Take it up. The attempt counts before the work, so that one that kills the process counts too."""
        self._one(_BEGIN, conversation_id, number, deadline=deadline)
        turn = self.get(conversation_id, number)
        assert turn is not None  # noqa: S101  it was changed just now
        return turn

    def answer(self, conversation_id: str, number: int, answer_id: str) -> None:
        """The answer now given; another attempt gives another one, and the latest counts."""
        self._one(_ANSWER, conversation_id, number, answer_id=answer_id)

    def finish(self, conversation_id: str, number: int) -> None:
        """It was answered."""
        self._one(_END, conversation_id, number, state="completed", error=None)

    def fail(self, conversation_id: str, number: int, error: str) -> None:
        """It could not be answered; `error` is a name of the table of errors."""
        self._one(_END, conversation_id, number, state="failed", error=error)

    def _one(self, statement: Statement[None], conversation_id: str, number: int, **given: object) -> None:
        if not self._unit.run(statement, conversation_id=conversation_id, number=number, **given):
            raise AnamnesisError(CONSTRAINT, rule="a turn that is over, or never was, is not touched")
