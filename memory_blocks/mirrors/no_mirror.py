"""The mirror that copies nothing, used when no other place is configured."""

from collections.abc import Mapping, Sequence

from memory_blocks.models import Label
from memory_blocks.ports import ForeignChange, StoredBlock


class NoMirror:
    """A `BlockMirror` without a copy."""

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        handled: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        """Does nothing."""
        return ()

    async def foreign_changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        """Always empty."""
        return ()
