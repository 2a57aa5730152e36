"""The next revision of a block, as a write and as it is stored afterwards."""

from memory_blocks.models import SCHEMA_VERSION, Label
from memory_blocks.ports import BlockWrite, StoredBlock
from memory_blocks.trace import digest


def next_revision(
    label: Label,
    before: StoredBlock,
    text: str,
    actor: str,
    turn: int | None = None,
    *,
    restores: bool = False,
) -> BlockWrite:
    """The write that replaces `before` by `text`."""
    return BlockWrite(
        label=label,
        text=text,
        digest=digest(text),
        previous_revision=before.revision,
        revision=before.revision + 1,
        actor=actor,
        turn=turn,
        schema_version=SCHEMA_VERSION,
        restores=restores,
    )


def stored_after(write: BlockWrite, memory_id: str) -> StoredBlock:
    """The block as stored once the write is committed."""
    return StoredBlock(write.text, write.revision, write.digest, memory_id)
