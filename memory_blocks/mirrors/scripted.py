"""A mirror in this process whose blocks a test or a rehearsal changes, as an agent's tools would."""

from collections.abc import Mapping, Sequence

from memory_blocks.errors import MirrorUnavailable
from memory_blocks.models import Label
from memory_blocks.ports import ForeignChange, StoredBlock


class ScriptedMirror:
    """What was put, and what became of it. While it is `silent`, it does not answer."""

    def __init__(self) -> None:
        self.silent = False
        self._given: dict[tuple[str, Label], StoredBlock] = {}
        self._now: dict[tuple[str, Label], tuple[str, str]] = {}

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        """Show these blocks, unless something was changed there that nobody followed: then tell it."""
        if unseen := [each for each in await self.foreign(conversation_id) if each not in followed]:
            return unseen
        for label, block in blocks.items():
            self._given[conversation_id, label] = block
            self._now.pop((conversation_id, label), None)
        return ()

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        """What was changed since."""
        if self.silent:
            raise MirrorUnavailable
        return [
            ForeignChange(label, text, self._given[here, label].digest, actor)
            for (here, label), (text, actor) in self._now.items()
            if here == conversation_id
        ]

    def text(self, conversation_id: str, label: Label) -> str:
        """A block as whoever looks there sees it."""
        changed = self._now.get((conversation_id, label))
        return changed[0] if changed else self._given[conversation_id, label].text

    def texts(self, conversation_id: str) -> Mapping[str, str]:
        """All blocks that are shown of a conversation."""
        return {label: self.text(here, label) for here, label in self._given if here == conversation_id}

    def append(self, conversation_id: str, label: Label, content: str, *, actor: str) -> None:
        """What `core_memory_append` does: a line more at the end."""
        self._now[conversation_id, label] = f"{self.text(conversation_id, label)}\n{content}", actor

    def replace(self, conversation_id: str, label: Label, old: str, new: str, *, actor: str) -> None:
        """What `core_memory_replace` does: another text in place of one."""
        self._now[conversation_id, label] = self.text(conversation_id, label).replace(old, new), actor
