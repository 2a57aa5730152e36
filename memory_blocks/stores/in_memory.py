"""Blocks kept in this process, for tests and rehearsals."""

from collections.abc import Mapping, Sequence

from memory_blocks.errors import BlockInvalid, StaleRevision
from memory_blocks.models import Label
from memory_blocks.ports import ArchivedTurn, BlockWrite, Ids, StoredBlock


class InMemoryBlockStore:
    """Every revision and every archived turn, in dictionaries. A commit is whole because it checks first."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._memory_ids: dict[str, dict[Label, str]] = {}
        self._revisions: dict[tuple[str, Label], list[BlockWrite]] = {}
        self._archive: dict[str, dict[int, ArchivedTurn]] = {}

    def load(self, conversation_id: str) -> Mapping[Label, StoredBlock]:
        """The latest revision of each stored block."""
        memory_ids = self._memory_ids.get(conversation_id, {})
        return {
            label: StoredBlock(
                text=kept[-1].text,
                revision=kept[-1].revision,
                digest=kept[-1].digest,
                memory_id=memory_ids[label],
            )
            for label in Label
            if (kept := self._revisions.get((conversation_id, label)))
        }

    def memory_ids(self, conversation_id: str) -> Mapping[Label, str]:
        """The four memory ids, made at the first call."""
        if conversation_id not in self._memory_ids:
            self._memory_ids[conversation_id] = {label: self._ids.new("mem_") for label in Label}
        return dict(self._memory_ids[conversation_id])

    def held(self, conversation_id: str) -> Mapping[int, str]:
        """The whole texts of turns that stand shortened in the block."""
        archive = self._archive.get(conversation_id, {})
        return {turn.turn_id: turn.text for turn in archive.values() if not turn.left}

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        """Check every write and turn, then keep them all."""
        for write in writes:
            stored = self.revisions(conversation_id, write.label)
            latest = stored[-1].revision if stored else 0
            if latest != write.previous_revision:
                raise StaleRevision(write.label, stored=latest, yours=write.previous_revision)
        archive = self._archive.setdefault(conversation_id, {})
        for turn in archived:
            if turn.turn_id in archive and archive[turn.turn_id].left:
                raise BlockInvalid(
                    Label.CONVERSATION_HISTORY, f"turns.turn_{turn.turn_id}", "has left the block already"
                )
        for write in writes:
            self._revisions.setdefault((conversation_id, write.label), []).append(write)
        archive.update({turn.turn_id: turn for turn in archived})
        return self.memory_ids(conversation_id)

    def revisions(self, conversation_id: str, label: Label) -> Sequence[BlockWrite]:
        """Every revision of one block, oldest first."""
        return tuple(self._revisions.get((conversation_id, label), ()))

    def archive(self, conversation_id: str) -> Sequence[ArchivedTurn]:
        """The turns that have left the block, in their order."""
        kept = self._archive.get(conversation_id, {})
        return tuple(kept[turn_id] for turn_id in sorted(kept) if kept[turn_id].left)
