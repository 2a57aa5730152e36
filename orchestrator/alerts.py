"""Tells staff that danger was heard, by a webhook: again and again until it arrives, or is given up.

What is to be told is a row before it is sent, so neither a crash nor a webhook that is down loses it. It says
where danger was heard and how grave it is; what the person wrote stays in the house.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from orchestrator.clock import as_text
from orchestrator.errors import ALERTS_NOT_SENT, AnamnesisError
from orchestrator.logs import get_logger
from orchestrator.store.database import Store, Transaction
from orchestrator.store.rows import SafetyAlert, SafetyEvent

log = get_logger()

LOOK_SECONDS: Final = 1.0
LONGEST_WAIT: Final = timedelta(minutes=5)
MOST_DOUBLED: Final = 9
"""How often the wait for the next attempt doubles; by then it is the longest."""
OVERDUE: Final = timedelta(minutes=1)
"""How long after its time an alert that nobody has sent means that nobody sends any."""
REMEMBERED: Final = timedelta(days=1)
"""How long an alert that was given up is told of, unless another arrives."""


class AlertDesk:
    """Sends what is due, one after the other; of several processes, one sends each.

    `deliver` tells why an alert did not arrive, by a name.
    """

    def __init__(
        self, store: Store, deliver: Callable[[dict[str, Any]], Awaitable[str | None]], attempts: int
    ) -> None:
        self._store, self._deliver, self._attempts = store, deliver, attempts

    async def run(self) -> None:
        """For ever: send what is due."""
        while True:
            try:
                while await self.send_one():
                    pass
            except AnamnesisError as error:
                log.warning("alerts_failed", error=error.problem.name)
            await asyncio.sleep(LOOK_SECONDS)

    async def send_one(self) -> bool:
        """Send the next alert that is due; false when none is."""
        if not await self._store.read(lambda tx: tx.safety.is_due(tx.now)):
            return False
        taken = await self._store.write(_take)
        if taken is None:
            return False
        alert, event = taken
        why = await self._deliver(_told(alert, event))
        if why is None:
            log.info("alert_sent", attempt=alert.attempts, kind=event.kind, tier=event.tier)
            await self._store.write(lambda tx: tx.safety.sent(alert))
        else:
            log.warning("alert_not_sent", error=why, attempt=alert.attempts, kind=event.kind)
            await self._store.write(partial(_put_off, alert, why, alert.attempts < self._attempts))
        return True

    async def arrive(self) -> None:
        """Raise where staff is not told: an alert was sent in vain or given up, or is not sent at all."""
        if why := await self._store.read(_trouble):
            raise AnamnesisError(ALERTS_NOT_SENT, rule=why)


def _trouble(tx: Transaction) -> str | None:
    if tx.safety.is_due(tx.now - OVERDUE):
        return "overdue"
    return tx.safety.not_arrived(tx.now - REMEMBERED)


def _take(tx: Transaction) -> tuple[SafetyAlert, SafetyEvent] | None:
    alert = tx.safety.take_due(tx.now + LONGEST_WAIT)
    event = tx.safety.event(alert.event_id) if alert else None
    return (alert, event) if alert and event else None


def _put_off(alert: SafetyAlert, why: str, again: bool, tx: Transaction) -> None:
    wait = min(timedelta(seconds=2 ** min(alert.attempts, MOST_DOUBLED)), LONGEST_WAIT)
    tx.safety.not_sent(alert, why, tx.now + wait if again else None)


def _told(alert: SafetyAlert, event: SafetyEvent) -> dict[str, Any]:
    return {
        "id": alert.id,
        "conversationId": event.conversation_id,
        "messageId": event.message_id,
        "turn": event.turn,
        "stage": event.stage,
        "kind": event.kind,
        "tier": event.tier,
        "rules": list(event.rules),
        "at": as_text(event.created_at),
    }
