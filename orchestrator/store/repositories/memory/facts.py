"""Changes to the facts of conversations. They are only added."""

from collections.abc import Sequence

from sqlalchemy import bindparam, func, select

from memory_blocks.facts import changes as facts
from memory_blocks.facts.changes import Decider, Op
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Conversation, FactChange

_changes, _conversations = FactChange.table, Conversation.table
_OF_CONVERSATION = Statement(
    all_of(FactChange)
    .where(
        _changes.c.conversation_id == bindparam("conversation_id"),
        _changes.c.position > bindparam("after"),
    )
    .order_by(_changes.c.position),
    FactChange,
)
_latest = (
    select(_conversations.c.id, _conversations.c.updated_at)
    .where(_conversations.c.user_id == bindparam("user_id"), _conversations.c.deleted_at.is_(None))
    .order_by(_conversations.c.updated_at.desc(), _conversations.c.id)
    .limit(bindparam("limit"))
    .subquery()
)
_OF_PERSON = Statement(
    all_of(FactChange)
    .join(_latest, _latest.c.id == _changes.c.conversation_id)
    .order_by(_latest.c.updated_at.desc(), _latest.c.id, _changes.c.position),
    FactChange,
)
_LAST_POSITION = Statement(
    select(func.max(_changes.c.position)).where(_changes.c.conversation_id == bindparam("conversation_id")),
    lambda position: position or 0,
)


class Facts:
    """The table `fact_changes`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def changes(self, conversation_id: str, after: int = 0) -> list[facts.FactChange]:
        """The changes of a conversation, in the order in which they were made, without the first `after`."""
        found = self._unit.all(_OF_CONVERSATION, conversation_id=conversation_id, after=after)
        return [as_change(row) for row in found]

    def of_person(self, user_id: str, *, limit: int) -> list[tuple[str, facts.FactChange]]:
        """The changes of a person's latest conversations, at most `limit` of them, each with its id."""
        found = self._unit.all(_OF_PERSON, user_id=user_id, limit=limit)
        return [(row.conversation_id, as_change(row)) for row in found]

    def is_lasting(self, id: str) -> bool:
        """Whether a change exists and is about something lasting."""
        found = self._unit.find_one(FactChange, id=id)
        return found is not None and found.stable

    def add(self, conversation_id: str, changes: Sequence[facts.FactChange]) -> None:
        """Append changes."""
        (last,) = self._unit.all(_LAST_POSITION, conversation_id=conversation_id)
        for position, change in enumerate(changes, start=last + 1):
            self._unit.insert(_as_row(conversation_id, position, change, self._unit))


def as_change(row: FactChange) -> facts.FactChange:
    """The change that a row of the table holds."""
    return facts.FactChange(
        id=row.id,
        op=Op(row.op),
        target=row.target,
        kind=row.kind,
        subject=row.subject,
        about=row.about,
        value=row.value,
        stable=row.stable,
        true_when=row.true_when,
        said_at=row.said_at,
        turn=row.turn,
        message_id=row.message_id,
        words=row.words,
        decided_by=Decider(row.decided_by),
        confidence=row.confidence,
    )


def _as_row(conversation_id: str, position: int, change: facts.FactChange, unit: Unit) -> FactChange:
    return FactChange(
        id=change.id,
        conversation_id=conversation_id,
        position=position,
        op=change.op.value,
        target=change.target,
        kind=change.kind,
        subject=change.subject,
        about=change.about,
        value=change.value,
        stable=change.stable,
        true_when=change.true_when,
        said_at=change.said_at,
        turn=change.turn,
        message_id=change.message_id,
        words=change.words,
        decided_by=change.decided_by.value,
        confidence=change.confidence,
        created_at=unit.now,
    )
