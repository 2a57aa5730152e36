"""What can go wrong with a block, said without quoting it.

BlockError
├── BlockInvalid        a block is not what it must be, at a path, by a rule
├── BlockTooLarge       a block would pass its limit
├── HistoryFull         the history would have more turns than it may
├── StaleRevision       someone else wrote the block in between
└── MirrorUnavailable   the place where the blocks are shown, too, does not answer

`name` and `facts` fit the row of the same name in the house's table of errors, so that the house can say
them on the wire; this package cannot know that table.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar


class BlockError(Exception):
    """The base of this package's errors. Facts are labels, paths, rules and numbers, never content."""

    name: ClassVar[str]

    def __init__(self, says: str, **facts: int | str) -> None:
        super().__init__(says)
        self.facts: Mapping[str, int | str] = MappingProxyType(facts)


class BlockInvalid(BlockError):
    """A block departs from what it must be; nothing was written."""

    name = "block_invalid"

    def __init__(self, label: str, path: str, rule: str) -> None:
        super().__init__(f"block {label}, at {path}: {rule}", label=label, path=path, rule=rule)


class BlockTooLarge(BlockError):
    """A block would pass its limit and nothing may be rotated out of it; nothing was written."""

    name = "block_too_large"

    def __init__(self, label: str, size: int, most: int) -> None:
        super().__init__(
            f"block {label} would have {size} characters, at most {most}", label=label, size=size, most=most
        )


class HistoryFull(BlockError):
    """The history would have more turns than it may, and rotation is switched off; nothing was written."""

    name = "history_full"

    def __init__(self, label: str, turns: int, most: int) -> None:
        super().__init__(
            f"block {label} would have {turns} turns, at most {most}", label=label, turns=turns, most=most
        )


class StaleRevision(BlockError):
    """The block was written by someone else since it was read; read it again."""

    name = "stale_revision"

    def __init__(self, label: str, stored: int, yours: int) -> None:
        super().__init__(
            f"block {label} has revision {stored}, not {yours}", label=label, stored=stored, yours=yours
        )


class MirrorUnavailable(BlockError):
    """The place where the blocks are shown, too, does not answer; what is stored stands.

    `for_one` says that this is so for one conversation, and nothing is wrong with the others; `soon` that its
    place is being made, so that one who asks again is told at once.
    """

    name = "mirror_unavailable"

    def __init__(self, *, for_one: bool = False, soon: bool = False) -> None:
        super().__init__("the mirror of the blocks does not answer")
        self.for_one, self.soon = for_one or soon, soon
