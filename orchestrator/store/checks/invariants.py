"""Checks the invariants of `docs/faults.md`, which must hold at any moment, whatever happened before.

Violations are reported with ids and numbers only.
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import select

from orchestrator.store.checks.conversation_blocks import check_blocks
from orchestrator.store.checks.conversation_frames import check_answers, check_frames
from orchestrator.store.checks.ledgers import check_ledgers
from orchestrator.store.checks.queries import check_query, queries
from orchestrator.store.checks.requests import check_requests
from orchestrator.store.checks.soundness import check_database
from orchestrator.store.checks.violations import Found, Violation, tolerating_broken_rows
from orchestrator.store.engine.database import Store
from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Conversation

_CONVERSATIONS: Final = Statement(select(Conversation.table.c.id).order_by(Conversation.table.c.id), str)
_PER_CONVERSATION: Final = {"answers": check_answers, "frames": check_frames, "blocks": check_blocks}


@dataclass(frozen=True, slots=True)
class Report:
    """The violations that a check found, and the number of conversations it checked."""

    violations: list[Violation]
    conversations: int


def check(store: Store, *, quiesced: bool = False, mirrored: bool = False) -> list[Violation]:
    """All violations in a store. With `quiesced`, no turn may be open either."""
    return store.read_now(lambda tx: check_all(tx.unit, quiesced=quiesced, mirrored=mirrored)).violations


def check_all(unit: Unit, *, quiesced: bool = False, mirrored: bool = False) -> Report:
    """Check everything within one transaction, while other processes go on, even if rows are broken.

    `mirrored` says that Letta is configured: then, with `quiesced`, nothing may wait to be written there.
    """
    found = list(check_database(unit))
    for invariant, why, query in queries(quiesced=quiesced, mirrored=mirrored):
        found.extend(tolerating_broken_rows(unit, check_query(unit, invariant, why, query), invariant))
    found.extend(tolerating_broken_rows(unit, check_ledgers(unit), "ledgers"))
    found.extend(tolerating_broken_rows(unit, check_requests(unit), "requests"))
    conversations: list[str] = []
    found.extend(tolerating_broken_rows(unit, _collect(unit, conversations), "conversations"))
    for conversation_id in conversations:
        for name, check_one in _PER_CONVERSATION.items():
            violations = check_one(unit, conversation_id)
            found.extend(tolerating_broken_rows(unit, violations, name, conversation_id))
    return Report(found, len(conversations))


def _collect(unit: Unit, conversations: list[str]) -> Found:
    """Add the ids of all conversations to the list. It finds no violations itself."""
    conversations.extend(unit.all(_CONVERSATIONS))
    yield from ()
