"""The receipt of one read or write of a block: what a MemoryTrace is made from."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memory_blocks.models import Label, Level

SNIPPET: Final = 1000
MOST_PATHS: Final = 40


class Action(StrEnum):
    """What was done with the block; its first revision is stored, the later ones are updates."""

    RETRIEVED = "retrieved"
    STORED = "stored"
    UPDATED = "updated"


@dataclass(frozen=True, slots=True)
class Receipt:
    """Who did what to which block, and how the block stood then. `content` is the beginning of its text.

    Where this write put a block back that could not stand, `quarantined` says where that one is kept.
    """

    label: Label
    memory_id: str
    action: Action
    actor: str
    revision: int
    size: int
    limit: int
    utilization: float
    level: Level
    digest: str
    changed: tuple[str, ...]
    content: str
    truncated: bool
    quarantined: str | None = None


def digest(text: str) -> str:
    """The SHA-256 of a text, in hex: by it a revision is known without its content."""
    return hashlib.sha256(text.encode()).hexdigest()
