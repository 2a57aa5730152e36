"""The lines that say that a memory was deleted, restored or erased. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from orchestrator.remember.ledger.lines import Action, Line, NewLine, states

_AFTER: Final[dict[Action, tuple[Action, ...]]] = {
    "deleted": ("memory", "restored"),
    "restored": ("deleted",),
    "erased": ("memory", "restored", "deleted"),
}
"""Which actions may follow which. An erased memory stays erased."""


def mark_of(lines: Sequence[Line], memory_id: str, action: Action, at: str) -> NewLine | None:
    """The line to append; None if the ledger does not have the memory, or if it is in that state already."""
    now = states(lines).get(memory_id)
    if now is None or now not in _AFTER.get(action, ()):
        return None
    made = next(line for line in lines if line.memory_id == memory_id and line.action == "memory")
    values = {name: getattr(made, name) for name in NewLine.__dataclass_fields__}
    return replace(NewLine(**values), action=action, at=at, body=None, dropped=0, chunk=0, messages=())
