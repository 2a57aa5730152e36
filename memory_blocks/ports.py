"""The protocols this package needs from others, and the values that pass through them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from memory_blocks.facts.changes import FactChange
from memory_blocks.models import Label


class Clock(Protocol):
    """Gives the current time; tests use their own clock. Never goes back within one process."""

    def now(self) -> datetime:
        """The current time in UTC, cut to milliseconds."""


class Ids(Protocol):
    """Makes new identifiers; tests use predictable ones."""

    def new(self, prefix: str) -> str:
        """A new identifier that begins with `prefix`, such as `msg_…`."""


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One block as stored: its text, the number of that revision, and the id of its memory."""

    text: str
    revision: int
    digest: str
    memory_id: str


@dataclass(frozen=True, slots=True)
class BlockWrite:
    """The next revision of a block, and the one it replaces. Revision 0, the empty block, is not stored.

    `restores` is true if the stored text is known to be wrong and is already in quarantine.
    """

    label: Label
    text: str
    digest: str
    previous_revision: int
    revision: int
    actor: str
    turn: int | None
    schema_version: str
    restores: bool = False


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a block without its text. `previous_digest` is that of the revision before."""

    revision: int
    size: int
    digest: str
    previous_digest: str | None
    actor: str
    turn: int | None
    schema_version: str
    written_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """The whole text of a turn, kept outside of the block.

    While `has_left` is false, the block still holds the turn in a shortened form; a turn that replaces it
    under the same turn id also replaces this text. Once the turn has left, its text never changes.
    """

    turn_id: int
    text: str
    digest: str
    has_left: bool = True


@dataclass(frozen=True, slots=True)
class QuarantinedText:
    """A text that is not a valid block: why, who wrote or found it, and when it was found."""

    id: str
    label: Label
    text: str
    reason: str
    actor: str
    found_at: datetime


class BlockStore(Protocol):
    """Stores blocks inside one transaction of the caller. Nothing here commits that transaction."""

    def load(self, conversation_id: str) -> Mapping[Label, StoredBlock]:
        """The latest revision of each stored block; empty before the first turn."""

    def memory_ids(self, conversation_id: str) -> Mapping[Label, str]:
        """The memory id of each of the four blocks. Missing ones are created; they never change."""

    def shortened_turns(self, conversation_id: str) -> Mapping[int, str]:
        """The whole texts of the turns that are shortened in the block, by turn id."""

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        """Store all of it or nothing, and return the memory ids.

        Raises `StaleRevision` if the stored revision is not the one that a write replaces, or if the stored
        text is not what was written as that revision and the write does not restore it. Raises `BlockInvalid`
        if a turn that has left the block is archived again.
        """

    def archived_turns(self, conversation_id: str) -> Sequence[ArchivedTurn]:
        """The turns that have left the block, in order."""

    def last_archived_turn(self, conversation_id: str) -> int:
        """The id of the latest turn that has left the block; 0 if none has."""

    def revisions(self, conversation_id: str, label: Label) -> Sequence[Revision]:
        """Every stored revision, oldest first."""

    def text_at(self, conversation_id: str, label: Label, revision: int) -> str | None:
        """The text of a revision; None if it is not stored, or is not what was written."""

    def revision_at_turn(self, conversation_id: str, label: Label, turn: int) -> int | None:
        """The latest revision after that turn; None if there was none, or it is not stored."""

    def chain_departures(self, conversation_id: str, label: Label) -> Sequence[tuple[int, str]]:
        """Where the stored revisions do not form the chain that was written: the revision, and the rule."""

    def delete_revisions(self, conversation_id: str, label: Label, before: int) -> None:
        """Allow the store to delete the revisions before that one."""

    def fact_changes(self, conversation_id: str, after: int = 0) -> Sequence[FactChange]:
        """The changes to the facts, in the order in which they were made, without the first `after` ones.

        None is ever altered or deleted.
        """

    def add_fact_changes(self, conversation_id: str, changes: Sequence[FactChange]) -> None:
        """Append changes to the facts."""

    def quarantine(self, conversation_id: str, label: Label, text: str, *, reason: str, actor: str) -> str:
        """Put an invalid text into quarantine, and return its id there."""

    def quarantined_texts(self, conversation_id: str) -> Sequence[QuarantinedText]:
        """Every text in quarantine, in the order in which they were found."""


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """A block as somebody else edited it in the mirror. `digest` is that of the text they edited."""

    label: Label
    text: str
    digest: str
    actor: str


StoredBlocks: TypeAlias = Mapping[Label, StoredBlock]
Changes: TypeAlias = Sequence[ForeignChange]


class BlockMirror(Protocol):
    """Copies the blocks to another place, where others may edit them. The store stays authoritative.

    The other place only has to keep texts. It needs no limits, no versions, and no way to tell two writes
    apart. If it does not answer, the adapter raises `MirrorUnavailable`; the next `put` completes whatever
    was left half done.
    """

    async def put(self, conversation_id: str, blocks: StoredBlocks, handled: Changes = ()) -> Changes:
        """Copy these blocks: called after every commit, and before an agent there reads them.

        Edits that others made since the last `put` are overwritten only if they are in `handled`, which means
        that the store has adopted or quarantined them. If there are other edits, this writes nothing and
        returns them, as far as the place reveals them; handle them and call `put` again. If the copy is up to
        date, this does nothing.
        """

    async def foreign_changes(self, conversation_id: str) -> Changes:
        """What others edited there since the last `put`."""
