"""Safety events of messages, and the alerts to staff about them."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, bindparam, exists, func, or_, select

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Message, SafetyAlert, SafetyEvent, SafetyRefusal, Turn

STAYS_OPEN: Final = timedelta(hours=6)
"""How long after a safety answer a message without content of its own is still read together with it."""

_turns, _messages = Turn.table, Message.table
_events, _alerts = SafetyEvent.table, SafetyAlert.table
_OF_TURN = Statement(
    all_of(SafetyEvent)
    .join(_turns, _turns.c.user_message_id == _events.c.message_id)
    .where(
        _turns.c.conversation_id == bindparam("conversation_id"),
        _turns.c.number == bindparam("number"),
        _events.c.tier > 0,
        _events.c.created_at > bindparam("since", type_=_events.c.created_at.type),
    )
    .order_by(_events.c.created_at, _events.c.id),
    SafetyEvent,
)


def _sequence_number_of(number: str) -> ColumnElement[int]:
    """The sequence number of a turn's message; NULL if there is no such turn."""
    return (
        select(_messages.c.sequence_number)
        .join(_turns, _turns.c.user_message_id == _messages.c.id)
        .where(_turns.c.conversation_id == bindparam("conversation_id"), _turns.c.number == bindparam(number))
        .scalar_subquery()
    )


_SYNCED = Statement(
    all_of(SafetyEvent)
    .join(_messages, _messages.c.id == _events.c.message_id)
    .where(
        _events.c.conversation_id == bindparam("conversation_id"),
        _events.c.turn.is_(None),
        _events.c.tier > 0,
        _messages.c.created_at > bindparam("since", type_=_messages.c.created_at.type),
        _messages.c.sequence_number > func.coalesce(_sequence_number_of("number"), 0),
        _messages.c.sequence_number
        < func.coalesce(_sequence_number_of("next"), _messages.c.sequence_number + 1),
    )
    .order_by(_events.c.created_at, _events.c.id),
    SafetyEvent,
)
_DUE = Statement(
    all_of(SafetyAlert)
    .where(
        _alerts.c.state == "pending", _alerts.c.next_at <= bindparam("until", type_=_alerts.c.next_at.type)
    )
    .order_by(_alerts.c.next_at, _alerts.c.id)
    .limit(1)
    .with_for_update(skip_locked=True),
    SafetyAlert,
)
_ANY_DUE = Statement(
    select(_alerts.c.id)
    .where(
        _alerts.c.state == "pending", _alerts.c.next_at <= bindparam("until", type_=_alerts.c.next_at.type)
    )
    .limit(1),
    str,
)
_later = _alerts.alias("later")
_WHY_UNDELIVERED = Statement(
    select(_alerts.c.error)
    .where(
        _alerts.c.error.is_not(None),
        or_(
            _alerts.c.state == "pending",
            and_(
                _alerts.c.state == "given_up",
                _alerts.c.updated_at > bindparam("since", type_=_alerts.c.updated_at.type),
                ~exists().where(_later.c.state == "sent", _later.c.updated_at >= _alerts.c.updated_at),
            ),
        ),
    )
    .order_by(_alerts.c.updated_at.desc())
    .limit(1),
    str,
)


class Safety:
    """The tables `safety_events`, `safety_alerts` and `safety_refusals`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def record(
        self,
        conversation_id: str,
        message_id: str,
        turn: int | None,
        *,
        stage: str,
        kind: str,
        tier: int,
        certainty: str | None = None,
        rules: Iterable[str],
        alert: bool,
        refused: str = "",
    ) -> SafetyEvent:
        """Store a safety event, the sentence it refused if any, and an alert to staff if `alert`."""
        now, ids = self._unit.now, self._unit.ids
        id, found = ids.new("safe_"), tuple(rules)
        event = SafetyEvent(id, conversation_id, message_id, turn, stage, kind, tier, found, now, certainty)
        self._unit.insert(event)
        if refused:
            self._unit.insert(SafetyRefusal(event.id, refused, now))
        if alert:
            self._unit.insert(SafetyAlert(ids.new("alert_"), event.id, "pending", 0, now, None, now, now))
        return event

    def of_message(self, message_id: str) -> list[SafetyEvent]:
        """The safety events of a message, in order."""
        return self._unit.find(SafetyEvent, "created_at", "id", message_id=message_id)

    def of_conversation(self, conversation_id: str) -> list[SafetyEvent]:
        """The safety events of a conversation, in order."""
        return self._unit.find(SafetyEvent, "created_at", "id", conversation_id=conversation_id)

    def all(self) -> list[SafetyEvent]:
        """All safety events, in order."""
        found = self._unit.every(SafetyEvent, "id")
        return sorted(found, key=lambda event: (event.created_at, event.id))

    def danger_before(self, conversation_id: str, message_id: str, number: int) -> tuple[SafetyEvent, ...]:
        """The events with danger in other messages of the conversation, up to that turn."""
        return tuple(
            event
            for event in self.of_conversation(conversation_id)
            if event.tier and event.message_id != message_id and (event.turn or 0) <= number
        )

    def recent_danger(self, conversation_id: str, number: int) -> tuple[SafetyEvent, ...]:
        """The recent events with danger in the message of the turn before this one.

        Messages that came in a SyncRequest between the two turns count, too.
        """
        where: dict[str, Any] = {
            "conversation_id": conversation_id,
            "number": number - 1,
            "since": self._unit.now - STAYS_OPEN,
        }
        return (*self._unit.all(_OF_TURN, **where), *self._unit.all(_SYNCED, **where, next=number))

    def event(self, id: str) -> SafetyEvent | None:
        """An event by its id."""
        return self._unit.find_one(SafetyEvent, id=id)

    def alert_of(self, event_id: str) -> SafetyAlert | None:
        """The alert about an event; None if there is none."""
        return self._unit.find_one(SafetyAlert, event_id=event_id)

    def refused_text(self, event_id: str) -> str | None:
        """The sentence that was refused; None if none was."""
        refusal = self._unit.find_one(SafetyRefusal, event_id=event_id)
        return refusal.said if refusal else None

    def is_due(self, until: datetime) -> bool:
        """Whether an alert was due by then."""
        return self._unit.first(_ANY_DUE, until=until) is not None

    def why_undelivered(self, since: datetime) -> str | None:
        """The error of an alert that is being retried, or was given up since then with no later success."""
        return self._unit.first(_WHY_UNDELIVERED, since=since)

    def take_due(self, until: datetime) -> SafetyAlert | None:
        """An alert to send now. It is postponed to `until`, so that no other process sends it as well."""
        due = self._unit.first(_DUE, until=self._unit.now)
        if due is None:
            return None
        taken = replace(due, attempts=due.attempts + 1, next_at=until)
        self._set_alert(taken, "pending", until, due.error)
        return taken

    def mark_sent(self, alert: SafetyAlert) -> None:
        """Record that the alert was delivered."""
        self._set_alert(alert, "sent", alert.next_at, None)

    def mark_not_sent(self, alert: SafetyAlert, error: str, again_at: datetime | None) -> None:
        """Record that sending failed. It is tried again at `again_at`, or never if that is None."""
        state = "given_up" if again_at is None else "pending"
        self._set_alert(alert, state, again_at or alert.next_at, error)

    def _set_alert(self, alert: SafetyAlert, state: str, next_at: datetime, error: str | None) -> None:
        new = {"state": state, "attempts": alert.attempts, "next_at": next_at, "error": error}
        self._unit.change(SafetyAlert, {"id": alert.id}, **new)
