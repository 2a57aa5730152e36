"""Every place where the memory blocks touch the world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memory_blocks.models import Label


class Clock(Protocol):
    """Tells the time, so that tests can. Never goes back within one process."""

    def now(self) -> datetime:
        """The present moment, in UTC, cut to milliseconds."""
        ...


class Ids(Protocol):
    """Gives new identifiers, so that tests can foresee them."""

    def new(self, prefix: str) -> str:
        """A fresh identifier behind `prefix`, such as `msg_…`."""
        ...


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """One block as it is kept: its text, which revision that is, and the memory it is known as."""

    text: str
    revision: int
    digest: str
    memory_id: str


@dataclass(frozen=True, slots=True)
class BlockWrite:
    """A block's next revision, with the one it replaces; 0 is the empty block, which is never stored.

    `restores` says that what stands there now is known not to be what was written, and is kept elsewhere.
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
    """What is known of a block as it once stood, without its text; it names the digest of the one before."""

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
    """A turn's whole text, outside of the block.

    `left` is false while the turn still stands in the block, shortened: its whole text is then kept beside
    the block, and replaced by a later one under the same turn id. Once it has left, it stands for good.
    """

    turn_id: int
    text: str
    digest: str
    left: bool = True


@dataclass(frozen=True, slots=True)
class SetAside:
    """A text that could not stand: why, whose it was or who found it, and when."""

    id: str
    label: Label
    text: str
    reason: str
    actor: str
    found_at: datetime


class BlockStore(Protocol):
    """Keeps blocks, bound to one transaction of whoever made it: nothing here commits that transaction."""

    def load(self, conversation_id: str) -> Mapping[Label, StoredBlock]:
        """The latest revision of each stored block; none of a conversation that has had no turn."""
        ...

    def memory_ids(self, conversation_id: str) -> Mapping[Label, str]:
        """The memory each of the four blocks is known as; made when missing, the same ever after."""
        ...

    def held(self, conversation_id: str) -> Mapping[int, str]:
        """The whole texts of turns that stand shortened in the block (`left` is false), by turn id."""
        ...

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        """Keep all of it or none, and tell the memory ids.

        `StaleRevision` when a stored revision is not the one a write replaces, or when what stands there is
        not what was written as that revision, unless the write restores it. A turn leaves once:
        archiving one that has left already is `BlockInvalid`.
        """
        ...

    def archive(self, conversation_id: str) -> Sequence[ArchivedTurn]:
        """The turns that have left the block, in their order."""
        ...

    def last_left(self, conversation_id: str) -> int:
        """The id of the latest turn that has left the block; 0 when none has."""
        ...

    def revisions(self, conversation_id: str, label: Label) -> Sequence[Revision]:
        """Every revision that is kept, oldest first."""
        ...

    def text_at(self, conversation_id: str, label: Label, revision: int) -> str | None:
        """The text of a revision; None when it is not kept, or is not what was written."""
        ...

    def revision_at_turn(self, conversation_id: str, label: Label, turn: int) -> int | None:
        """The revision that stood after that turn; None when none did, or it is not kept."""
        ...

    def chain_departures(self, conversation_id: str, label: Label) -> Sequence[tuple[int, str]]:
        """Where the kept revisions are no chain of what was written: the revision, and the rule."""
        ...

    def forget(self, conversation_id: str, label: Label, before: int) -> None:
        """Revisions before that one need not be kept any longer."""
        ...

    def quarantine(self, conversation_id: str, label: Label, text: str, *, reason: str, actor: str) -> str:
        """Keep a text that could not stand, and tell the id it is kept under."""
        ...

    def set_aside(self, conversation_id: str) -> Sequence[SetAside]:
        """Every text that could not stand, in the order in which they were found."""
        ...


@dataclass(frozen=True, slots=True)
class ForeignChange:
    """A block as somebody left it in the mirror; `digest` is that of the text the mirror had been given."""

    label: Label
    text: str
    digest: str
    actor: str


class BlockMirror(Protocol):
    """Shows the blocks somewhere else, where others may change them. The store stays the truth.

    Nothing is asked of that other place but to keep texts: neither limits nor versions, nor that two writes
    are told apart. Where it does not answer, the adapter raises `MirrorUnavailable`; what it did by then is
    made good by the next `put`.
    """

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        """Show these blocks from now on: told after every commit, and before somebody there reads them.

        What others changed there since the last `put` is written over only if it is among `followed`, which
        the store has kept. Anything else is told, as far as that place lets one know, and nothing is written:
        follow it, and put again. Where these blocks are shown already, nothing is done.
        """
        ...

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        """What was changed over there since the last `put`."""
        ...
