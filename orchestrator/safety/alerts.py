"""Sends alerts about danger to staff, by a webhook, and repeats each until it arrives or is given up.

An alert is a stored row before it is sent, so neither a crash nor a webhook that is down loses it. It names
the message and how grave the danger is; it never contains what the person wrote.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from agents.safety.verdict import ABOUT
from orchestrator.errors import ALERTS_NOT_SENT, AnamnesisError
from orchestrator.ops.clock import as_text
from orchestrator.ops.logs import get_logger
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import SafetyAlert, SafetyEvent

log = get_logger()

POLL_SECONDS: Final = 1.0
LONGEST_WAIT: Final = timedelta(minutes=5)
MAX_DOUBLINGS: Final = 9
"""How often the wait between two attempts doubles; it is then longer than `LONGEST_WAIT`."""
OVERDUE: Final = timedelta(minutes=1)
"""If an alert is not sent this long after its time, health says that no process sends alerts."""
REPORTED_FOR: Final = timedelta(days=1)
"""How long health reports an alert that was given up, unless a later one arrives."""


class AlertSender:
    """Sends the alerts that are due, one after the other. If several processes run, one of them sends each.

    `deliver` returns the name of the reason why an alert did not arrive, or None if it did.
    """

    def __init__(
        self, store: Store, deliver: Callable[[dict[str, Any]], Awaitable[str | None]], attempts: int
    ) -> None:
        self._store, self._deliver, self._attempts = store, deliver, attempts

    async def run(self) -> None:
        """Runs until cancelled: sends the alerts that are due."""
        while True:
            try:
                while await self.send_one():
                    pass
            except AnamnesisError as error:
                log.warning("alerts_failed", error=error.problem.name)
            await asyncio.sleep(POLL_SECONDS)

    async def send_one(self) -> bool:
        """Send the next alert that is due; returns False if none is."""
        if not await self._store.read(lambda tx: tx.safety.is_due(tx.now)):
            return False
        taken = await self._store.write(_take)
        if taken is None:
            return False
        alert, event = taken
        failure = await self._deliver(_payload(alert, event))
        if failure is None:
            log.info("alert_sent", attempt=alert.attempts, kind=event.kind, tier=event.tier)
            await self._store.write(lambda tx: tx.safety.mark_sent(alert))
        else:
            log.warning("alert_not_sent", error=failure, attempt=alert.attempts, kind=event.kind)
            await self._store.write(partial(_postpone, alert, failure, alert.attempts < self._attempts))
        return True

    async def check(self) -> None:
        """Raise if staff do not get alerts: one failed, was given up, or is not sent by any process."""
        if failure := await self._store.read(_find_failure):
            raise AnamnesisError(ALERTS_NOT_SENT, rule=failure)


def _find_failure(tx: Transaction) -> str | None:
    if tx.safety.is_due(tx.now - OVERDUE):
        return "overdue"
    return tx.safety.why_undelivered(tx.now - REPORTED_FOR)


def _take(tx: Transaction) -> tuple[SafetyAlert, SafetyEvent] | None:
    alert = tx.safety.take_due(tx.now + LONGEST_WAIT)
    event = tx.safety.event(alert.event_id) if alert else None
    return (alert, event) if alert and event else None


def _postpone(alert: SafetyAlert, failure: str, again: bool, tx: Transaction) -> None:
    wait = min(timedelta(seconds=2 ** min(alert.attempts, MAX_DOUBLINGS)), LONGEST_WAIT)
    tx.safety.mark_not_sent(alert, failure, tx.now + wait if again else None)


def _payload(alert: SafetyAlert, event: SafetyEvent) -> dict[str, Any]:
    return {
        "id": alert.id,
        "conversationId": event.conversation_id,
        "messageId": event.message_id,
        "turn": event.turn,
        "stage": event.stage,
        "kind": event.kind,
        "tier": event.tier,
        "rules": [rule for rule in event.rules if not rule.startswith(ABOUT)],
        "at": as_text(event.created_at),
    }
