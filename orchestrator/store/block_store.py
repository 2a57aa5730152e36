"""Stores the memory blocks in the tables: the ledger's `BlockStore`, within one transaction."""

from collections.abc import Mapping, Sequence

from memory_blocks.errors import BlockInvalid, StaleRevision
from memory_blocks.facts.changes import FactChange
from memory_blocks.models import Label
from memory_blocks.ports import ArchivedTurn, BlockWrite, QuarantinedText, Revision, StoredBlock
from orchestrator.errors import CONSTRAINT, STALE_REVISION, AnamnesisError
from orchestrator.store.engine import packing
from orchestrator.store.repositories.memory.blocks import Blocks


class SqlBlockStore:
    """A `BlockStore` that uses the tables in one transaction."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def load(self, conversation_id: str) -> Mapping[Label, StoredBlock]:
        """The latest revision of each stored block."""
        return {
            Label(label): StoredBlock(
                block.value or "", block.revision or 0, block.digest or "", block.memory_id
            )
            for label, block in self._blocks.load(conversation_id).items()
        }

    def memory_ids(self, conversation_id: str) -> Mapping[Label, str]:
        """The memory id of each of the four blocks."""
        return {Label(label): id for label, id in self._blocks.memory_ids(conversation_id).items()}

    def shortened_turns(self, conversation_id: str) -> Mapping[int, str]:
        """The whole texts of turns that the block has shortened."""
        return self._blocks.held(conversation_id)

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        """Store all of it, or raise; the transaction then stores nothing."""
        try:
            for write in writes:
                self._blocks.commit(
                    conversation_id,
                    write.label,
                    write.text,
                    expected=write.previous_revision,
                    digest=write.digest,
                    actor=write.actor,
                    turn=write.turn,
                    schema_version=write.schema_version,
                    restores=write.restores,
                )
            for turn in archived:
                self._blocks.archive(
                    conversation_id, turn.turn_id, turn.text, digest=turn.digest, has_left=turn.has_left
                )
        except AnamnesisError as error:
            raise _as_block_error(error) from None
        return self.memory_ids(conversation_id)

    def archived_turns(self, conversation_id: str) -> Sequence[ArchivedTurn]:
        """The turns that have left the block, in order."""
        turns = self._blocks.archived(conversation_id)
        return [ArchivedTurn(turn.turn_id, turn.value, turn.digest) for turn in turns]

    def last_archived_turn(self, conversation_id: str) -> int:
        """The id of the latest turn that has left the block."""
        return self._blocks.last_left(conversation_id)

    def revisions(self, conversation_id: str, label: Label) -> Sequence[Revision]:
        """All stored revisions, oldest first."""
        return [
            Revision(
                revision=each.revision,
                size=each.size,
                digest=each.digest,
                previous_digest=each.previous_digest,
                actor=each.actor,
                turn=each.turn,
                schema_version=each.schema_version,
                written_at=each.created_at,
            )
            for each in self._blocks.revisions(conversation_id, label)
        ]

    def text_at(self, conversation_id: str, label: Label, revision: int) -> str | None:
        """The text of a revision, or None if it does not match its digest."""
        return self._blocks.text_at(conversation_id, label, revision)

    def revision_at_turn(self, conversation_id: str, label: Label, turn: int) -> int | None:
        """The revision that was current after that turn."""
        return self._blocks.revision_at_turn(conversation_id, label, turn)

    def chain_departures(self, conversation_id: str, label: Label) -> Sequence[tuple[int, str]]:
        """The stored revisions that break the chain of digests, each with the broken rule."""
        return list(packing.chain_departures(self._blocks.revisions(conversation_id, label)))

    def delete_revisions(self, conversation_id: str, label: Label, before: int) -> None:
        """Delete older revisions that no newer one needs."""
        self._blocks.forget(conversation_id, label, before)

    def fact_changes(self, conversation_id: str, after: int = 0) -> Sequence[FactChange]:
        """The changes to the facts, in order, without the first `after` ones."""
        return self._blocks.facts.changes(conversation_id, after)

    def add_fact_changes(self, conversation_id: str, changes: Sequence[FactChange]) -> None:
        """Append changes to the facts."""
        self._blocks.facts.add(conversation_id, changes)

    def quarantine(self, conversation_id: str, label: Label, text: str, *, reason: str, actor: str) -> str:
        """Store an invalid text for inspection; returns its id."""
        return self._blocks.quarantine(conversation_id, label, text, reason=reason, actor=actor).id

    def quarantined_texts(self, conversation_id: str) -> Sequence[QuarantinedText]:
        """All invalid texts that were stored for inspection."""
        return [
            QuarantinedText(each.id, Label(each.label), each.value, each.reason, each.actor, each.created_at)
            for each in self._blocks.quarantined(conversation_id)
        ]


def _as_block_error(error: AnamnesisError) -> Exception:
    """The ledger's error for an error of the tables."""
    if error.problem is STALE_REVISION:
        facts = error.facts
        return StaleRevision(str(facts["label"]), int(facts["stored"]), int(facts["yours"]))
    if error.problem is CONSTRAINT:
        return BlockInvalid(Label.CONVERSATION_HISTORY, "turns", str(error.facts["rule"]))
    return error
