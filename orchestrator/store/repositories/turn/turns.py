"""Turns: each message of a person is pending, then in progress, and ends completed or failed."""

from datetime import datetime

from sqlalchemy import bindparam, func, or_, select

from orchestrator.errors import CONSTRAINT, AnamnesisError
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit, changing
from orchestrator.store.repositories.conversation.conversations import Conversations
from orchestrator.store.rows import Message, Turn

_table = Turn.table
_here = _table.c.conversation_id == bindparam("conversation_id")
_this = (_here, _table.c.number == bindparam("number"))
_open = or_(_table.c.state == "pending", _table.c.state == "in_progress")
_waiting = _table.alias()
_first_waiting = select(func.min(_waiting.c.number)).where(
    _waiting.c.conversation_id == bindparam("conversation_id"),
    or_(_waiting.c.state == "pending", _waiting.c.state == "in_progress"),
)
# By number, so that SQLite uses the index of states; otherwise it would read all turns.
_NEXT = Statement(all_of(Turn).where(_here, _table.c.number == _first_waiting.scalar_subquery()), Turn)
_COUNT_OPEN = Statement(select(func.count()).select_from(_table).where(_here, _open), int)
_COUNT_ALL_OPEN = Statement(select(func.count()).select_from(_table).where(_open), int)
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
_REOPEN = Statement(
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
_said = select(Message.table.c.id).where(
    Message.table.c.id == _table.c.answer_id, Message.table.c.contents != ""
)
_PUT_BACK = Statement(
    changing(_table)
    .where(*_this, _table.c.state == "in_progress", ~_said.exists())
    .values(state="pending", attempts=_table.c.attempts - 1, deadline=None, started_at=None),
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
        """Add a turn for a message."""
        self._conversations.lock(conversation_id)
        highest = self._unit.highest(Turn, "number", conversation_id=conversation_id)
        return self._unit.add(
            Turn,
            conversation_id=conversation_id,
            number=highest + 1,
            user_message_id=user_message_id,
            state="pending",
            attempts=0,
            stop_requested=False,
        )

    def get(self, conversation_id: str, number: int) -> Turn | None:
        """A turn by its number."""
        return self._unit.find_one(Turn, conversation_id=conversation_id, number=number)

    def of_message(self, user_message_id: str) -> Turn | None:
        """The turn of a message."""
        return self._unit.find_one(Turn, user_message_id=user_message_id)

    def next_open(self, conversation_id: str) -> Turn | None:
        """The earliest turn that is pending or in progress."""
        return self._unit.first(_NEXT, conversation_id=conversation_id)

    def count_open(self, conversation_id: str) -> int:
        """How many turns are pending or in progress."""
        return self._unit.first(_COUNT_OPEN, conversation_id=conversation_id) or 0

    def count_open_everywhere(self) -> int:
        """How many turns of all conversations are pending or in progress."""
        return self._unit.first(_COUNT_ALL_OPEN) or 0

    def latest(self, conversation_id: str) -> Turn | None:
        """The newest turn, in any state."""
        return self._unit.first(_LATEST, conversation_id=conversation_id)

    def to_stop(self) -> list[tuple[str, int]]:
        """The open turns that the person has asked to stop, each with its conversation."""
        return self._unit.all(_TO_STOP)

    def request_stop(self, conversation_id: str, number: int) -> None:
        """Ask the process that answers the turn to stop."""
        self._update(_STOP, conversation_id, number)

    def stop_before(self, conversation_id: str, number: int) -> None:
        """Ask to stop all open turns before that one."""
        self._unit.run(_STOP_BEFORE, conversation_id=conversation_id, number=number)

    def reopen(self, turn: Turn, *, mode: str, target_id: str, user_message_id: str) -> None:
        """Reopen an ended turn, to answer it again, with an edited message, or to continue its answer."""
        self._update(
            _REOPEN,
            turn.conversation_id,
            turn.number,
            mode=mode,
            target_id=target_id,
            user_message_id=user_message_id,
        )

    def conversations_with_open(self) -> list[str]:
        """The conversations with open turns, for example after a restart."""
        return self._unit.all(_OPEN)

    def begin(self, conversation_id: str, number: int, *, deadline: datetime) -> Turn:
        """Start a turn. The attempt is counted first, so that one that kills the process counts, too."""
        self._update(_BEGIN, conversation_id, number, deadline=deadline)
        turn = self.get(conversation_id, number)
        assert turn is not None  # noqa: S101  it was just updated
        return turn

    def put_back(self, conversation_id: str, number: int) -> None:
        """Undo `begin` if nothing was said yet: an attempt that the store refused does not count."""
        self._unit.run(_PUT_BACK, conversation_id=conversation_id, number=number)

    def answer(self, conversation_id: str, number: int, answer_id: str) -> None:
        """Set the answer of the turn; a later attempt sets another one."""
        self._update(_ANSWER, conversation_id, number, answer_id=answer_id)

    def finish(self, conversation_id: str, number: int) -> None:
        """End the turn as completed."""
        self._update(_END, conversation_id, number, state="completed", error=None)

    def fail(self, conversation_id: str, number: int, error: str) -> None:
        """End the turn as failed; `error` is a name of the table of errors."""
        self._update(_END, conversation_id, number, state="failed", error=error)

    def _update(self, statement: Statement[None], conversation_id: str, number: int, **given: object) -> None:
        if not self._unit.run(statement, conversation_id=conversation_id, number=number, **given):
            raise AnamnesisError(CONSTRAINT, rule="a turn must exist and be open")
