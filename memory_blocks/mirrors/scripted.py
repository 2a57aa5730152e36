"""A mirror in this process. A test edits the blocks in it, as the tools of an agent would."""

from collections.abc import Mapping

from memory_blocks.errors import MirrorUnavailable
from memory_blocks.models import Label
from memory_blocks.ports import Changes, ForeignChange, StoredBlock, StoredBlocks


class ScriptedMirror:
    """Keeps the blocks that were put, and the edits of the test. While it is `silent`, it does not answer."""

    def __init__(self) -> None:
        self.silent = False
        self._put: dict[tuple[str, Label], StoredBlock] = {}
        self._edits: dict[tuple[str, Label], tuple[str, str]] = {}

    async def put(self, conversation_id: str, blocks: StoredBlocks, handled: Changes = ()) -> Changes:
        """Copy these blocks; if there are edits that are not in `handled`, copy nothing and return them."""
        changes = await self.foreign_changes(conversation_id)
        if unhandled := [each for each in changes if each not in handled]:
            return unhandled
        for label, block in blocks.items():
            self._put[conversation_id, label] = block
            self._edits.pop((conversation_id, label), None)
        return ()

    async def foreign_changes(self, conversation_id: str) -> Changes:
        """What was edited since the last `put`."""
        if self.silent:
            raise MirrorUnavailable
        return [
            ForeignChange(label, text, self._put[here, label].digest, actor)
            for (here, label), (text, actor) in self._edits.items()
            if here == conversation_id
        ]

    def text(self, conversation_id: str, label: Label) -> str:
        """The present text of a block in this mirror."""
        changed = self._edits.get((conversation_id, label))
        return changed[0] if changed else self._put[conversation_id, label].text

    def texts(self, conversation_id: str) -> Mapping[str, str]:
        """The present texts of all blocks of a conversation."""
        return {label: self.text(here, label) for here, label in self._put if here == conversation_id}

    def append(self, conversation_id: str, label: Label, content: str, *, actor: str) -> None:
        """Append a line to a block's copy, as an agent's tool `core_memory_append` does in Letta."""
        self._edits[conversation_id, label] = f"{self.text(conversation_id, label)}\n{content}", actor

    def replace(self, conversation_id: str, label: Label, old: str, new: str, *, actor: str) -> None:
        """Replace a part of the text, as Letta's `core_memory_replace` does."""
        self._edits[conversation_id, label] = self.text(conversation_id, label).replace(old, new), actor
