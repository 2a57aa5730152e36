"""The lines that say that a memory was edited, deleted, restored or erased. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.remember.ledger.lines import ALIVE, Action, Line, MemoryBody, NewLine, chained, states

_AFTER: Final[dict[Action, tuple[Action, ...]]] = {
    "edited": ALIVE,
    "deleted": ALIVE,
    "restored": ("deleted",),
    "erased": (*ALIVE, "deleted"),
}
"""Which actions may follow which. An erased memory stays erased."""


@dataclass(frozen=True, slots=True)
class MemoryMark:
    """What happened to a memory. `body` has its new words if it was edited."""

    memory_id: str
    action: Action
    body: MemoryBody | None = None


def marks(lines: Sequence[Line], changes: Iterable[MemoryMark], at: str) -> list[Line]:
    """The lines to append. A change of an unknown memory, or one that was made already, is left out."""
    now = states(lines)
    made = {line.memory_id: line for line in lines if line.action == "memory"}
    words = {line.memory_id: line.body for line in lines if line.body}
    new = []
    for change in changes:
        id = change.memory_id
        if now.get(id) not in _AFTER.get(change.action, ()):
            continue
        if change.action == "edited" and change.body in (None, words.get(id)):
            continue
        values = {name: getattr(made[id], name) for name in NewLine.__dataclass_fields__}
        line = replace(NewLine(**values), action=change.action, at=at, chunk=0, messages=(), dropped=0)
        new.append(replace(line, body=change.body if change.action == "edited" else None))
        now[id] = change.action
    return chained(lines[-1] if lines else None, new)


def erased_by(lines: Iterable[Line]) -> frozenset[str]:
    """The memories that these lines erase."""
    return frozenset(line.memory_id for line in lines if line.action == "erased")
