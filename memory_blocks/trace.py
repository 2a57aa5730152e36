"""The record of one read or write of a block: a MemoryTrace is made from it."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memory_blocks.limits import Limits, level, utilization
from memory_blocks.models import Label, Level
from memory_blocks.ports import StoredBlock

MAX_PATHS: Final = 40


class Action(StrEnum):
    """What was done with the block. Its first revision is stored, each later one is an update."""

    RETRIEVED = "retrieved"
    STORED = "stored"
    UPDATED = "updated"


@dataclass(frozen=True, slots=True)
class Receipt:
    """Who read or wrote which block, the state of the block then, and one line about it (`content`).

    `quarantined` is the id of a text in quarantine: the invalid text that this write replaced, the edit that
    was refused, or the text that was read there.
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
    quarantined: str | None = None


def receipt(
    label: Label,
    block: StoredBlock,
    action: Action,
    actor: str,
    content: str,
    limits: Limits,
    *,
    changed: tuple[str, ...] = (),
    quarantined: str | None = None,
) -> Receipt:
    """The receipt for a block in its present state; of many changed paths, the first forty are named."""
    size, limit = len(block.text), limits.of(label)
    return Receipt(
        label=label,
        memory_id=block.memory_id,
        action=action,
        actor=actor,
        revision=block.revision,
        size=size,
        limit=limit,
        utilization=utilization(size, limit),
        level=level(size, limit, limits),
        digest=block.digest,
        changed=changed[:MAX_PATHS],
        content=content,
        quarantined=quarantined,
    )


def digest(text: str) -> str:
    """The SHA-256 of a text, in hex. It identifies a text without showing it."""
    return hashlib.sha256(text.encode()).hexdigest()
