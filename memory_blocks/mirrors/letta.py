"""The blocks as agents of a Letta server have them: written as intent, put and applied, and read back.

Letta compares nothing when it writes and keeps no history. What tells a text of ours from one that somebody
changed is the digest that we write beside it: it stands for the text as it was given, and others who change
the text leave it as it is.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from weakref import WeakValueDictionary

from memory_blocks.models import Label
from memory_blocks.ports import ForeignChange, StoredBlock
from memory_blocks.trace import digest

SOMEBODY: Final = "letta:somebody"
"""Who changed a block there, where nothing says that an agent did."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A block as it stands there, and the digest that was written beside the last text of ours."""

    text: str
    given: str

    @property
    def is_ours(self) -> bool:
        """Whether the text is one that we wrote, be it the latest or not."""
        return digest(self.text) == self.given


@dataclass(frozen=True, slots=True)
class Noted:
    """What the journal knows: the digest that stands there, and the one that may, if a write is under way."""

    applied: str | None
    intent: str | None


class Place(Protocol):
    """Where the blocks are shown. Raises `MirrorUnavailable`."""

    async def read(self, conversation_id: str) -> Mapping[Label, ShownText]:
        """The blocks as they stand; none of a conversation for which there are none yet."""
        ...

    async def write(self, conversation_id: str, label: Label, block: StoredBlock) -> None:
        """Write one text; when it returns, the text stands there."""
        ...

    async def author(self, conversation_id: str, label: Label, text: str) -> str | None:
        """Which agent made that text of the block, if one did."""
        ...


class Journal(Protocol):
    """What was written there, kept beside the blocks themselves."""

    async def noted(self, conversation_id: str) -> Mapping[Label, Noted]:
        """What is known of each block."""
        ...

    async def intend(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """These texts are about to be written."""
        ...

    async def applied(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """These texts stand there."""
        ...


class LettaMirror:
    """Shows the blocks in Letta, and tells what was changed there."""

    def __init__(self, place: Place, journal: Journal) -> None:
        self._place, self._journal = place, journal
        self._busy: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._looked_at: dict[str, Mapping[Label, ShownText]] = {}
        self._told: dict[str, Sequence[ForeignChange]] = {}

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        """Write what does not stand there, unless others changed what nobody followed: then tell it.

        Until that is followed and written over, these blocks count as not shown.
        A text that was to be written when somebody died is found there or written again: it is the same.
        Right after a look that found everything as it is to be, nothing is asked.
        """
        async with self._alone(conversation_id):
            looked_at = self._looked_at.pop(conversation_id, {})
            if all(_stands(looked_at.get(label), block) for label, block in blocks.items()):
                return ()
            there = await self._place.read(conversation_id)
            noted = await self._journal.noted(conversation_id)
            changes = await self._changes(conversation_id, there, noted, followed)
            if unseen := [each for each in changes if each not in followed]:
                hidden = {each.label for each in unseen} & blocks.keys()
                await self._journal.intend(conversation_id, {each: blocks[each].digest for each in hidden})
                return unseen
            noted = await self._settle(conversation_id, there, noted)
            wrong = {
                label: block
                for label, block in blocks.items()
                if not _stands(there.get(label), block) or noted.get(label) != Noted(block.digest, None)
            }
            if wrong:
                digests = {label: block.digest for label, block in wrong.items()}
                await self._journal.intend(conversation_id, digests)
                await self._write(conversation_id, wrong)
                await self._journal.applied(conversation_id, digests)
            self._told.pop(conversation_id, None)
            return ()

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        """What was changed there since the last text of ours."""
        async with self._alone(conversation_id):
            there = await self._place.read(conversation_id)
            noted = await self._journal.noted(conversation_id)
            settled = await self._settle(conversation_id, there, noted)
            self._looked_at[conversation_id] = {
                label: text for label, text in there.items() if settled.get(label) == Noted(text.given, None)
            }
            return await self._changes(conversation_id, there, noted)

    def _alone(self, conversation_id: str) -> asyncio.Lock:
        return self._busy.setdefault(conversation_id, asyncio.Lock())

    async def _write(self, conversation_id: str, blocks: Mapping[Label, StoredBlock]) -> None:
        writing = (self._place.write(conversation_id, label, block) for label, block in blocks.items())
        outcomes = await asyncio.gather(*writing, return_exceptions=True)  # the others come to their end, too
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _settle(
        self, conversation_id: str, there: Mapping[Label, ShownText], noted: Mapping[Label, Noted]
    ) -> Mapping[Label, Noted]:
        """Close what a process left open that died, or whose write had an outcome nobody knew.

        Tells what is noted then.
        """
        found = {
            label: text.given
            for label, text in there.items()
            if (known := noted.get(label)) and known.intent == text.given and text.is_ours
        }
        if found:
            await self._journal.applied(conversation_id, found)
        return {**noted, **{label: Noted(given, None) for label, given in found.items()}}

    async def _changes(
        self,
        conversation_id: str,
        there: Mapping[Label, ShownText],
        noted: Mapping[Label, Noted],
        followed: Sequence[ForeignChange] = (),
    ) -> list[ForeignChange]:
        """What others wrote there. Whose it is, is asked once: what was adopted since explains nothing."""
        told = (*self._told.pop(conversation_id, ()), *followed)
        known_as = {(each.label, each.text, each.digest): each for each in told}
        changes = []
        for label, text in there.items():
            known = noted.get(label)
            if known is None or (known.applied is None and known.intent is None) or text.is_ours:
                continue  # nothing was ever shown there, or it is what was shown
            given = text.given or known.applied or known.intent or ""
            if (change := known_as.get((label, text.text, given))) is None:
                author = await self._place.author(conversation_id, label, text.text)
                change = ForeignChange(label, text.text, given, author or SOMEBODY)
            changes.append(change)
        if changes:
            self._told[conversation_id] = changes
        return changes


def _stands(shown: ShownText | None, block: StoredBlock) -> bool:
    return shown is not None and shown.given == block.digest and shown.is_ours
