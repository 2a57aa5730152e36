"""Copies the blocks to agents of a Letta server, and finds what others edited there.

Letta neither compares a write with what it replaces nor keeps a history. So we write the digest of each text
next to it. Others who edit the text leave the digest unchanged, which is how an edit is found.
A journal records each write before and after it happens, so that a crash in between can be completed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol
from weakref import WeakValueDictionary

from memory_blocks.models import Label
from memory_blocks.ports import Changes, ForeignChange, StoredBlock, StoredBlocks
from memory_blocks.trace import digest

FRESH_SECONDS: Final = 1.0
"""For how long `put` uses what `foreign_changes` has read. An edit made in between is overwritten."""

UNKNOWN_AUTHOR: Final = "letta:somebody"
"""The actor of an edit that no agent is known to have made."""


@dataclass(frozen=True, slots=True)
class CopiedText:
    """The text of a block in Letta, and the digest that we wrote next to our last text."""

    text: str
    written_digest: str

    @property
    def is_ours(self) -> bool:
        """Whether we wrote this text, as the latest one or an earlier one."""
        return digest(self.text) == self.written_digest


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The digest of the last text known to be in Letta, and of a text whose write has not been confirmed."""

    applied: str | None
    intent: str | None


class CopyStore(Protocol):
    """Reads and writes the copy in Letta. Raises `MirrorUnavailable`."""

    async def read(self, conversation_id: str) -> Mapping[Label, CopiedText]:
        """The blocks in Letta; empty if the conversation has none there yet."""

    async def write(self, conversation_id: str, label: Label, block: StoredBlock) -> None:
        """Write one text. When this returns, Letta has the text."""

    async def author(self, conversation_id: str, label: Label, text: str) -> str | None:
        """The agent that edited the block into this text; None if no agent did."""


class Journal(Protocol):
    """Records which texts we write to Letta; stored in our own database."""

    async def entries(self, conversation_id: str) -> Mapping[Label, JournalEntry]:
        """What is known about each block."""

    async def record_intent(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """Record that these texts are about to be written."""

    async def record_applied(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """Record that Letta has these texts."""


class LettaMirror:
    """A `BlockMirror` that copies the blocks to Letta."""

    def __init__(self, copies: CopyStore, journal: Journal) -> None:
        self._copies, self._journal = copies, journal
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._listed: dict[str, tuple[float, Mapping[Label, CopiedText]]] = {}
        self._reported: dict[str, Sequence[ForeignChange]] = {}

    async def put(self, conversation_id: str, blocks: StoredBlocks, handled: Changes = ()) -> Changes:
        """Write the blocks that differ in Letta. If there are edits not in `handled`, return them instead.

        Until those edits are handled, the journal keeps these blocks as not yet written. A write that a crash
        interrupted is found in Letta or done again; the text is the same. If `foreign_changes` has just found
        no edit, Letta's blocks are not read again.
        """
        async with self._lock(conversation_id):
            read_at, copies = self._listed.pop(conversation_id, (0.0, {}))
            if monotonic() - read_at > FRESH_SECONDS:
                copies = await self._copies.read(conversation_id)
            entries = await self._journal.entries(conversation_id)
            changes = await self._find_changes(conversation_id, copies, entries, handled)
            if unhandled := [each for each in changes if each not in handled]:
                edited = {each.label for each in unhandled} & blocks.keys()
                await self._journal.record_intent(
                    conversation_id, {label: blocks[label].digest for label in edited}
                )
                return unhandled
            entries = await self._complete_writes(conversation_id, copies, entries)
            outdated = {
                label: block
                for label, block in blocks.items()
                if not _is_copy_of(copies.get(label), block)
                or entries.get(label) != JournalEntry(block.digest, None)
            }
            if outdated:
                digests = {label: block.digest for label, block in outdated.items()}
                await self._journal.record_intent(conversation_id, digests)
                await self._write(conversation_id, outdated)
                await self._journal.record_applied(conversation_id, digests)
            self._reported.pop(conversation_id, None)
            return ()

    async def foreign_changes(self, conversation_id: str) -> Changes:
        """What others edited in Letta since our last write."""
        async with self._lock(conversation_id):
            copies = await self._copies.read(conversation_id)
            entries = await self._journal.entries(conversation_id)
            await self._complete_writes(conversation_id, copies, entries)
            changes = await self._find_changes(conversation_id, copies, entries)
            if not changes:  # somebody who edits is likely to edit again
                self._remember_listed(conversation_id, copies)
            return changes

    def _remember_listed(self, conversation_id: str, copies: Mapping[Label, CopiedText]) -> None:
        """Keep what was read for a `put` that follows soon, and drop what was read too long ago."""
        now = monotonic()
        fresh = {key: each for key, each in self._listed.items() if now - each[0] <= FRESH_SECONDS}
        self._listed = {**fresh, conversation_id: (now, copies)}

    def _lock(self, conversation_id: str) -> asyncio.Lock:
        return self._locks.setdefault(conversation_id, asyncio.Lock())

    async def _write(self, conversation_id: str, blocks: Mapping[Label, StoredBlock]) -> None:
        writes = (self._copies.write(conversation_id, label, block) for label, block in blocks.items())
        outcomes = await asyncio.gather(*writes, return_exceptions=True)  # let every write end before raising
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _complete_writes(
        self, conversation_id: str, copies: Mapping[Label, CopiedText], entries: Mapping[Label, JournalEntry]
    ) -> Mapping[Label, JournalEntry]:
        """Record as applied what Letta has and the journal only intends, and return the new entries.

        Such entries remain if a process died, or if the outcome of a write was unknown.
        """
        applied = {
            label: copy.written_digest
            for label, copy in copies.items()
            if (entry := entries.get(label)) and entry.intent == copy.written_digest and copy.is_ours
        }
        if applied:
            await self._journal.record_applied(conversation_id, applied)
        return {**entries, **{label: JournalEntry(written, None) for label, written in applied.items()}}

    async def _find_changes(
        self,
        conversation_id: str,
        copies: Mapping[Label, CopiedText],
        entries: Mapping[Label, JournalEntry],
        handled: Sequence[ForeignChange] = (),
    ) -> list[ForeignChange]:
        """What others edited. The author of an edit is looked up once.

        Looking it up again would fail after the edit was adopted: it no longer differs from our text.
        """
        reported = (*self._reported.pop(conversation_id, ()), *handled)
        known = {(each.label, each.text, each.digest): each for each in reported}
        changes = []
        for label, copy in copies.items():
            entry = entries.get(label)
            if entry is None or (entry.applied is None and entry.intent is None) or copy.is_ours:
                continue  # we never wrote there, or the text is ours
            written = copy.written_digest or entry.applied or entry.intent or ""
            if (change := known.get((label, copy.text, written))) is None:
                author = await self._copies.author(conversation_id, label, copy.text)
                change = ForeignChange(label, copy.text, written, author or UNKNOWN_AUTHOR)
            changes.append(change)
        if changes:
            self._reported[conversation_id] = changes
        return changes


def _is_copy_of(copy: CopiedText | None, block: StoredBlock) -> bool:
    return copy is not None and copy.written_digest == block.digest and copy.is_ours
