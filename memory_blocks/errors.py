"""The errors of this package. None of them quotes what a block says.

BlockError
├── BlockInvalid        a block breaks a rule; says the path and the rule
├── BlockTooLarge       a block would exceed its limit
├── HistoryFull         the history would have too many turns
├── StaleRevision       somebody else has written the block since it was read
└── MirrorUnavailable   the mirror of the blocks does not answer

`name` and `facts` fit the row of the same name in the orchestrator's table of errors, which this package
cannot import. The orchestrator uses that row to report the error on the wire.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar


class BlockError(Exception):
    """Base class. `facts` are labels, paths, rules and numbers, never content."""

    name: ClassVar[str]

    def __init__(self, message: str, **facts: int | str) -> None:
        super().__init__(message)
        self.facts: Mapping[str, int | str] = MappingProxyType(facts)


class BlockInvalid(BlockError):
    """A block breaks a rule. Nothing was written."""

    name = "block_invalid"

    def __init__(self, label: str, path: str, rule: str) -> None:
        super().__init__(f"block {label}, at {path}: {rule}", label=label, path=path, rule=rule)


class BlockTooLarge(BlockError):
    """A block would exceed its limit, and rotation cannot help. Nothing was written."""

    name = "block_too_large"

    def __init__(self, label: str, size: int, most: int) -> None:
        super().__init__(
            f"block {label} would have {size} characters, at most {most}", label=label, size=size, most=most
        )


class HistoryFull(BlockError):
    """The history would have too many turns, and rotation is switched off. Nothing was written."""

    name = "history_full"

    def __init__(self, label: str, turns: int, most: int) -> None:
        super().__init__(
            f"block {label} would have {turns} turns, at most {most}", label=label, turns=turns, most=most
        )


class StaleRevision(BlockError):
    """Somebody else has written the block since it was read. Read it again."""

    name = "stale_revision"

    def __init__(self, label: str, stored: int, yours: int) -> None:
        super().__init__(
            f"block {label} has revision {stored}, not {yours}", label=label, stored=stored, yours=yours
        )


class MirrorUnavailable(BlockError):
    """The mirror of the blocks does not answer. The stored blocks are not affected.

    `for_one`: only one conversation is affected. `soon`: its copy is being created, so asking again costs
    no wait.
    """

    name = "mirror_unavailable"

    def __init__(self, *, for_one: bool = False, soon: bool = False) -> None:
        super().__init__("the mirror of the blocks does not answer")
        self.for_one, self.soon = for_one or soon, soon
