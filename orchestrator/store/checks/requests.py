"""Checks the kept requests to models (I24): each can be unpacked, unless its text was erased."""

from typing import Final

from sqlalchemy import select

from orchestrator.store.checks.violations import Found, Violation
from orchestrator.store.engine.packing import unpack
from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import ModelCall

UNREADABLE: Final = "the text of a request to a model cannot be unpacked"

_calls = ModelCall.table
_PACKED: Final = Statement(
    select(_calls.c.id, _calls.c.packed).order_by(_calls.c.id), lambda id, packed: (id, packed)
)


def check_requests(unit: Unit) -> Found:
    """All violations in the kept requests."""
    for id, packed in unit.all(_PACKED):
        if packed and unpack(packed) is None:
            yield Violation("I24", UNREADABLE, (id,))
