"""The port to the ledger. Retrievers get the part of it that reads; only the creators get all of it."""

from collections.abc import Sequence
from typing import Protocol

from orchestrator.remember.ledger.lines import Discussion, Kind, Line, NewLine, Point, RollingSummary
from orchestrator.remember.ledger.marks import MemoryMark


class LedgerReader(Protocol):
    """Reads the ledgers of a conversation. Its methods block: call them from a thread."""

    def lines(self, of: Discussion, kind: Kind) -> list[Line]:
        """All lines in their order; none if there is no ledger."""

    def point(self, of: Discussion, kind: Kind) -> Point | None:
        """The last message that was processed."""

    def summaries(self, of: Discussion) -> list[RollingSummary]:
        """All versions of the rolling summary. The last one is current."""

    def search(self, of: Discussion, keywords: str, limit: int) -> list[Line]:
        """The memories of kind `vector` that have any of the keywords, best first."""


class MemoryLedger(LedgerReader, Protocol):
    """Reads and writes the ledgers. After a crash, each call has happened as a whole or not at all."""

    def append(self, of: Discussion, kind: Kind, after: Point | None, new: Sequence[NewLine]) -> bool:
        """Append the lines of one chunk: of kind `file` exactly one, of kind `vector` one or more.

        Returns False, and appends nothing, if `after` is not the point.
        """

    def change(self, of: Discussion, kind: Kind, changes: Sequence[MemoryMark], at: str) -> None:
        """Append that memories were edited, deleted, restored or erased.

        Erasing also removes the words of the memory, and those of all versions of the rolling summary.
        """

    def add_summary(self, of: Discussion, summary: RollingSummary) -> bool:
        """Append a version of the rolling summary.

        Returns False, and appends nothing, if its number is taken, or if the ledger has lines that it has not
        seen.
        """
