"""The blocks of `memory_blocks`, kept in the tables: the ledger's store, bound to one transaction."""

from collections.abc import Mapping, Sequence

from memory_blocks.errors import BlockInvalid, StaleRevision
from memory_blocks.models import Label
from memory_blocks.ports import ArchivedTurn, BlockWrite, StoredBlock
from orchestrator.errors import CONSTRAINT, STALE_REVISION, AnamnesisError
from orchestrator.store.blocks import Blocks


class SqlBlockStore:
    """A `BlockStore` over the tables of one transaction."""

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
        """The memory each of the four blocks is known as."""
        return {Label(label): id for label, id in self._blocks.memory_ids(conversation_id).items()}

    def held(self, conversation_id: str) -> Mapping[int, str]:
        """The whole texts of turns that stand shortened in the block."""
        return self._blocks.held(conversation_id)

    def commit(
        self, conversation_id: str, writes: Sequence[BlockWrite], archived: Sequence[ArchivedTurn]
    ) -> Mapping[Label, str]:
        """Keep all of it, or raise; the transaction then keeps none."""
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
                )
            for turn in archived:
                self._blocks.archive(
                    conversation_id, turn.turn_id, turn.text, digest=turn.digest, has_left=turn.left
                )
        except AnamnesisError as error:
            raise _in_their_words(error) from None
        return self.memory_ids(conversation_id)


def _in_their_words(error: AnamnesisError) -> Exception:
    """What the tables refused, as the ledger knows it."""
    if error.problem is STALE_REVISION:
        facts = error.facts
        return StaleRevision(str(facts["label"]), int(facts["stored"]), int(facts["yours"]))
    if error.problem is CONSTRAINT:
        return BlockInvalid(Label.CONVERSATION_HISTORY, "turns", str(error.facts["rule"]))
    return error
