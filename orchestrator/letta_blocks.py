"""Where the Letta mirror reads, writes and keeps its journal: the server's blocks, and our own tables."""

import asyncio
from collections.abc import Mapping
from typing import Final
from weakref import WeakSet

from agents.brains.asking import EXTRACTOR
from memory_blocks.errors import MirrorUnavailable
from memory_blocks.mirrors.letta import Noted, ShownText
from memory_blocks.models import SCHEMA_VERSION, Label
from memory_blocks.ports import StoredBlock
from memory_blocks.trace import digest
from orchestrator import faults
from orchestrator.errors import LettaTrouble
from orchestrator.letta_agents import AgentRegistry
from orchestrator.letta_server import LettaBlock, LettaServer
from orchestrator.store import rows
from orchestrator.store.database import Store
from orchestrator.waiting import Waiting

WRITES: Final = 3
"""How often a text is written at most, where what came of it is not known or was not good."""

PAUSE_SECONDS: Final = 0.05
MAKING: Final = Waiting(silent_seconds=30.0, longest_seconds=30.0)


class LettaPlace:
    """The blocks of the agents that stand for a conversation.

    One whose agent is not made while it is waited for has no place yet, and is not waited for again until it
    is; the others have theirs.
    """

    def __init__(self, registry: AgentRegistry, store: Store, making: Waiting = MAKING) -> None:
        self._registry, self._store, self._waiting = registry, store, making
        self._waited_for: WeakSet[asyncio.Task[str]] = WeakSet()

    async def read(self, conversation_id: str) -> Mapping[Label, ShownText]:
        """The blocks of its extractor. What somebody removed, be it agent or block, is made again."""
        agent_id = await self._extractor(conversation_id)
        try:
            found = await self._server.blocks_of(agent_id)
        except LettaTrouble as trouble:
            if not trouble.is_missing:
                raise _unavailable(trouble) from None
            await self._registry.lost(conversation_id, EXTRACTOR, agent_id)
            self._registry.prepare(conversation_id)
            raise MirrorUnavailable(soon=True) from None
        known = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        if gone := {
            Label(label) for label, row in known.items() if not _is_there(found.get(label), row.block_id)
        }:
            await self._registry.lost_blocks(conversation_id, gone)
            self._registry.prepare(conversation_id)
            raise MirrorUnavailable(soon=True)
        return {label: _shown(found[label], known[label]) for label in Label if label in known}

    async def write(self, conversation_id: str, label: Label, block: StoredBlock) -> None:
        """Write by the block's id; where nobody knows whether it was, look before it is written again."""
        known = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        block_id = known[label].block_id
        about = {
            "conversation": conversation_id,
            "revision": block.revision,
            "digest": block.digest,
            "schema_version": SCHEMA_VERSION,
        }
        for attempt in range(WRITES):
            try:
                await self._server.write_block(block_id, block.text, about)
                faults.point("after_block_put")
                return
            except LettaTrouble as trouble:
                if not trouble.again or attempt == WRITES - 1:
                    raise _unavailable(trouble) from None
                wait, unknown = max(trouble.after or 0, PAUSE_SECONDS * 2**attempt), trouble.unknown
            await asyncio.sleep(wait)
            if unknown and await self._holds(block_id, block.digest):
                return

    async def author(self, conversation_id: str, label: Label, text: str) -> str | None:
        """Its extractor, if that used a memory tool on the block with what tells the text from ours.

        When that was is not asked: the clocks of two machines would have to agree.
        """
        ours = await self._store.read(lambda tx: tx.blocks.load(conversation_id).get(label))
        before = (ours and ours.value) or ""
        agent_id = await self._extractor(conversation_id)
        try:
            edits = await self._server.memory_edits(agent_id)
        except LettaTrouble as trouble:
            raise _unavailable(trouble) from None
        if any(edit.label == label and edit.explains(before, text) for edit in edits):
            return "letta:context_extractor"
        return None

    @property
    def _server(self) -> LettaServer:
        return self._registry.server

    async def _extractor(self, conversation_id: str) -> str:
        if (agent_id := await self._registry.made(conversation_id, EXTRACTOR)) is not None:
            return agent_id
        making = self._registry.making(conversation_id, EXTRACTOR)
        if making not in self._waited_for:
            self._waited_for.add(making)
            await self._waiting.ends(making)
        if not making.done():
            raise MirrorUnavailable(soon=True)
        try:
            return making.result()
        except LettaTrouble as trouble:
            raise _unavailable(trouble) from None

    async def _holds(self, block_id: str, wanted: str) -> bool:
        try:
            found = await self._server.block(block_id)
        except LettaTrouble as trouble:
            raise _unavailable(trouble) from None
        return found.given == wanted and digest(found.value) == wanted


class StoredJournal:
    """The mirror's journal, in the table `letta_blocks`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def noted(self, conversation_id: str) -> Mapping[Label, Noted]:
        """What is known of each block."""
        known = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        return {Label(label): Noted(row.digest, row.intent) for label, row in known.items()}

    async def intend(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """These texts are about to be written."""
        await self._store.write(lambda tx: tx.letta.intend(conversation_id, _plain(digests)))
        faults.point("after_intent_commit")

    async def applied(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """These texts stand there."""
        await self._store.write(lambda tx: tx.letta.applied(conversation_id, _plain(digests)))
        faults.point("after_applied_commit")


def _unavailable(trouble: LettaTrouble) -> MirrorUnavailable:
    return MirrorUnavailable(for_one=not trouble.is_general)


def _shown(found: LettaBlock, row: rows.LettaBlock) -> ShownText:
    """What stands there. Beside one just made there is no digest: Letta drops what is given with it."""
    return ShownText(found.value, found.given or row.digest or "")


def _is_there(found: LettaBlock | None, block_id: str) -> bool:
    return found is not None and found.id == block_id


def _plain(digests: Mapping[Label, str]) -> dict[str, str]:
    return {label.value: text for label, text in digests.items()}
