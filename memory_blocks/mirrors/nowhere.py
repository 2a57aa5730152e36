"""No mirror: the blocks are shown nowhere else, and nobody else changes them."""

from collections.abc import Mapping, Sequence

from memory_blocks.models import Label
from memory_blocks.ports import ForeignChange, StoredBlock


class Nowhere:
    """What stands behind the port when there is no other place."""

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        """Nothing is shown."""
        return ()

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        """Nothing was changed."""
        return ()
