"""Checks the ledgers of long-term memory (I23): each is an unbroken chain that ends where its head says."""

from typing import Final

from sqlalchemy import select

from orchestrator.store.checks.violations import Found, Violation
from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.memory.ledger import MemoryLedger, departures
from orchestrator.store.rows import MemoryHead

WRONG_HEAD: Final = "a ledger does not end where its head says"

_PEOPLE: Final = Statement(select(MemoryHead.table.c.user_id).order_by(MemoryHead.table.c.user_id), str)


def check_ledgers(unit: Unit) -> Found:
    """All violations in the ledgers. The person's id is not reported; the entry's number is."""
    ledger = MemoryLedger(unit)
    for user_id in unit.all(_PEOPLE):
        entries, head = ledger.of_person(user_id), ledger.head(user_id)
        for number, why in departures(entries):
            yield Violation("I23", why, (entries[0].memory_id, str(number)))
        last = (len(entries), entries[-1].digest if entries else None)
        if head is not None and (head.entries, head.digest) != last:
            yield Violation("I23", WRONG_HEAD, (str(head.entries), str(len(entries))))
