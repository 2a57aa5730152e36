"""The port to the ledger. Retrievers get the part of it that reads; only the creators get all of it."""

from collections.abc import Sequence
from typing import Protocol

from orchestrator.remember.ledger.lines import Action, Discussion, Kind, Line, NewLine, Point, Summary


class LedgerReader(Protocol):
    """Reads the ledgers of a conversation. Its methods block: call them from a thread."""

    def lines(self, of: Discussion, kind: Kind) -> list[Line]:
        """All lines in their order; none if there is no ledger."""

    def point(self, of: Discussion, kind: Kind) -> Point | None:
        """The last message that was processed."""

    def summaries(self, of: Discussion) -> list[Summary]:
        """All versions of the rolling summary. The last one is current."""

    def search(self, of: Discussion, keywords: str, limit: int) -> list[Line]:
        """The memories of kind `vector` that have any of the keywords, best first."""


class MemoryLedger(LedgerReader, Protocol):
    """Reads and writes the ledgers. After a crash, each call has happened as a whole or not at all."""

    def append(self, of: Discussion, kind: Kind, after: Point | None, new: Sequence[NewLine]) -> bool:
        """Append the lines of one chunk: of kind `file` exactly one, of kind `vector` one or more.

        Returns False, and appends nothing, if `after` is not the point.
        """

    def mark(self, of: Discussion, kind: Kind, memory_id: str, action: Action, at: str) -> None:
        """Append that a memory was deleted, restored or erased. Erasing also removes its words."""

    def add_summary(self, of: Discussion, summary: Summary) -> bool:
        """Append a version of the rolling summary. Returns False if its number is taken."""

    def erase_summaries(self, of: Discussion) -> None:
        """Remove the words of all versions of the rolling summary."""
