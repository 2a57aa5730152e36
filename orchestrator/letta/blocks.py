"""What the Letta mirror needs: reading and writing the blocks in Letta, and a journal in our own tables."""

import asyncio
from collections.abc import Mapping
from typing import Final
from weakref import WeakSet

from agents.models.requests import EXTRACTOR
from memory_blocks.errors import MirrorUnavailable
from memory_blocks.ledger.adopt import EXTRACTOR_ACTOR
from memory_blocks.mirrors.letta import CopiedText, JournalEntry
from memory_blocks.models import SCHEMA_VERSION, Label
from memory_blocks.ports import StoredBlock
from memory_blocks.trace import digest
from orchestrator.errors import LettaTrouble
from orchestrator.letta.agents import AgentRegistry
from orchestrator.letta.server import LettaBlock, LettaServer
from orchestrator.ops import faults
from orchestrator.ops.waiting import Waiting
from orchestrator.store import rows
from orchestrator.store.engine.database import Store

MAX_WRITES: Final = 3
"""How often a text is written at most, if a write fails or its outcome is unknown."""

PAUSE_SECONDS: Final = 0.05
"""Pause before the second write. It doubles with each further one."""

CREATION_WAIT: Final = Waiting(silent_seconds=30.0, longest_seconds=30.0)


class LettaCopies:
    """The copies of a conversation's blocks, which belong to its extractor in Letta.

    If the extractor is not created within the waiting time, the mirror is unavailable for this conversation.
    Later calls do not wait for the same creation again.
    """

    def __init__(self, registry: AgentRegistry, store: Store, creation_wait: Waiting = CREATION_WAIT) -> None:
        self._registry, self._store, self._creation_wait = registry, store, creation_wait
        self._waited_for: WeakSet[asyncio.Task[str]] = WeakSet()

    async def read(self, conversation_id: str) -> Mapping[Label, CopiedText]:
        """The extractor's blocks. If somebody removed the agent or a block, it is created again first."""
        copies = await self._read_existing(conversation_id)
        if copies is None:
            copies = await self._read_existing(conversation_id)
        if copies is None:
            raise MirrorUnavailable(soon=True)
        return copies

    async def _read_existing(self, conversation_id: str) -> Mapping[Label, CopiedText] | None:
        """The extractor's blocks; None if the agent or a block is missing: the next call creates it."""
        agent_id = await self._extractor(conversation_id)
        try:
            found = await self._server.agent_blocks(agent_id)
        except LettaTrouble as trouble:
            if not trouble.is_missing:
                raise _unavailable(trouble) from None
            await self._registry.mark_missing(conversation_id, EXTRACTOR, agent_id)
            return None
        known = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        missing = {
            Label(label) for label, row in known.items() if not _has_id(found.get(label), row.block_id)
        }
        if missing:
            await self._registry.mark_blocks_missing(conversation_id, missing)
            return None
        return {label: _copy_text(found[label], known[label]) for label in Label if label in known}

    async def write(self, conversation_id: str, label: Label, block: StoredBlock) -> None:
        """Write a block's text. If the outcome is unknown, read the block before writing again."""
        known = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        block_id = known[label].block_id
        metadata = {
            "conversation": conversation_id,
            "revision": block.revision,
            "digest": block.digest,
            "schema_version": SCHEMA_VERSION,
        }
        for attempt in range(MAX_WRITES):
            try:
                await self._server.write_block(block_id, block.text, metadata)
                faults.point("after_block_put")
                return
            except LettaTrouble as trouble:
                if not trouble.retryable or attempt == MAX_WRITES - 1:
                    raise _unavailable(trouble) from None
                pause = max(trouble.retry_after or 0, PAUSE_SECONDS * 2**attempt)
                outcome_unknown = trouble.outcome_unknown
            await asyncio.sleep(pause)
            if outcome_unknown and await self._has_text(block_id, block.digest):
                return

    async def author(self, conversation_id: str, label: Label, text: str) -> str | None:
        """The extractor's name, if one of its memory tool calls explains how `text` differs from ours.

        The time of the call is not compared, because that would require the clocks of two machines to agree.
        """
        ours = await self._store.read(lambda tx: tx.blocks.load(conversation_id).get(label))
        before = (ours and ours.value) or ""
        agent_id = await self._extractor(conversation_id)
        try:
            edits = await self._server.memory_edits(agent_id)
        except LettaTrouble as trouble:
            raise _unavailable(trouble) from None
        if any(edit.label == label and edit.explains(before, text) for edit in edits):
            return EXTRACTOR_ACTOR
        return None

    @property
    def _server(self) -> LettaServer:
        return self._registry.server

    async def _extractor(self, conversation_id: str) -> str:
        """The extractor's id. Waits for its creation, but only once per creation."""
        if (agent_id := await self._registry.find(conversation_id, EXTRACTOR)) is not None:
            return agent_id
        creation = self._registry.creation(conversation_id, EXTRACTOR)
        if creation not in self._waited_for:
            self._waited_for.add(creation)
            await self._creation_wait.finishes(creation)
        if not creation.done():
            raise MirrorUnavailable(soon=True)
        try:
            return creation.result()
        except LettaTrouble as trouble:
            raise _unavailable(trouble) from None

    async def _has_text(self, block_id: str, wanted: str) -> bool:
        try:
            found = await self._server.block(block_id)
        except LettaTrouble as trouble:
            raise _unavailable(trouble) from None
        return found.written_digest == wanted and digest(found.value) == wanted


class StoredJournal:
    """The mirror's journal, in the table `letta_blocks`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def entries(self, conversation_id: str) -> Mapping[Label, JournalEntry]:
        """What the journal knows of each block."""
        known = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        return {Label(label): JournalEntry(row.digest, row.intent) for label, row in known.items()}

    async def record_intent(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """Record that the texts with these digests are about to be written."""
        await self._store.write(lambda tx: tx.letta.record_intent(conversation_id, _by_name(digests)))
        faults.point("after_intent_commit")

    async def record_applied(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """Record that the texts with these digests were written."""
        await self._store.write(lambda tx: tx.letta.record_applied(conversation_id, _by_name(digests)))
        faults.point("after_applied_commit")


def _unavailable(trouble: LettaTrouble) -> MirrorUnavailable:
    return MirrorUnavailable(for_one=not trouble.is_general)


def _copy_text(found: LettaBlock, row: rows.LettaBlock) -> CopiedText:
    """The text of a block in Letta, and its digest.

    Letta drops the metadata, with the digest, of a block that it created together with an agent.
    """
    return CopiedText(found.value, found.written_digest or row.digest or "")


def _has_id(found: LettaBlock | None, block_id: str) -> bool:
    return found is not None and found.id == block_id


def _by_name(digests: Mapping[Label, str]) -> dict[str, str]:
    return {label.value: text for label, text in digests.items()}
