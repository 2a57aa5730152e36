"""The mirror that copies nothing, used when no other place is configured."""

from memory_blocks.ports import Changes, StoredBlocks


class NoMirror:
    """A `BlockMirror` without a copy."""

    async def put(self, conversation_id: str, blocks: StoredBlocks, handled: Changes = ()) -> Changes:
        """Does nothing."""
        return ()

    async def foreign_changes(self, conversation_id: str) -> Changes:
        """Always empty."""
        return ()
