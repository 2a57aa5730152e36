"""A mirror in this process whose blocks a test or a rehearsal changes, as an agent's tools would."""

from collections.abc import Mapping, Sequence

from memory_blocks.models import Label
from memory_blocks.ports import ForeignChange, StoredBlock


class ScriptedMirror:
    """What was put, and what became of it."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, Label], StoredBlock] = {}
        self._now: dict[tuple[str, Label], tuple[str, str]] = {}

    async def put(self, conversation_id: str, blocks: Mapping[Label, StoredBlock]) -> None:
        """Show these blocks, over whatever is there."""
        for label, block in blocks.items():
            self._given[conversation_id, label] = block
            self._now.pop((conversation_id, label), None)

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        """What was changed since."""
        return [
            ForeignChange(label, text, self._given[here, label].digest, actor)
            for (here, label), (text, actor) in self._now.items()
            if here == conversation_id
        ]

    def text(self, conversation_id: str, label: Label) -> str:
        """A block as whoever looks there sees it."""
        changed = self._now.get((conversation_id, label))
        return changed[0] if changed else self._given[conversation_id, label].text

    def append(self, conversation_id: str, label: Label, content: str, *, actor: str) -> None:
        """What `core_memory_append` does: a line more at the end."""
        self._now[conversation_id, label] = f"{self.text(conversation_id, label)}\n{content}", actor

    def replace(self, conversation_id: str, label: Label, old: str, new: str, *, actor: str) -> None:
        """What `core_memory_replace` does: another text in place of one."""
        self._now[conversation_id, label] = self.text(conversation_id, label).replace(old, new), actor
