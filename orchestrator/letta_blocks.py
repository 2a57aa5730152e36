"""Where the Letta mirror reads, writes and keeps its journal: the server's blocks, and our own tables."""

import asyncio
from collections.abc import Mapping
from typing import Final

from agents.brains.asking import EXTRACTOR
from memory_blocks.errors import MirrorUnavailable
from memory_blocks.mirrors.letta import Noted, ShownText
from memory_blocks.models import SCHEMA_VERSION, Label
from memory_blocks.ports import StoredBlock
from memory_blocks.trace import digest
from orchestrator import faults
from orchestrator.errors import LettaTrouble
from orchestrator.letta_agents import AgentRegistry
from orchestrator.letta_server import LettaServer
from orchestrator.logs import get_logger
from orchestrator.store.database import Store

log = get_logger()

WRITES: Final = 3
"""How often a text is written at most, where what came of it is not known or was not good."""

PAUSE_SECONDS: Final = 0.05
MAKING_SECONDS: Final = 30.0


class LettaPlace:
    """The blocks of the agents that stand for a conversation.

    One whose agent takes longer to be made than `making_seconds` has no place yet; the others have theirs.
    """

    def __init__(
        self, registry: AgentRegistry, store: Store, *, making_seconds: float = MAKING_SECONDS
    ) -> None:
        self._registry, self._store, self._making_seconds = registry, store, making_seconds

    async def read(self, conversation_id: str) -> Mapping[Label, ShownText]:
        """The blocks of its extractor, which is made when there is none, and anew where it was removed."""
        agent_id = await self._extractor(conversation_id)
        try:
            found = await self._server.blocks_of(agent_id)
        except LettaTrouble as trouble:
            if trouble.is_missing:
                await self._renew(conversation_id, agent_id)
            raise MirrorUnavailable(for_one=trouble.is_missing) from None
        return {label: ShownText(found[label].value, found[label].given) for label in Label if label in found}

    async def write(self, conversation_id: str, label: Label, block: StoredBlock) -> None:
        """Write by the block's id; where nobody knows whether it was, look before it is written again."""
        rows = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        block_id = rows[label].block_id
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
                    raise MirrorUnavailable from None
                wait, unknown = max(trouble.after or 0, PAUSE_SECONDS * 2**attempt), trouble.unknown
            await asyncio.sleep(wait)
            if unknown and await self._holds(block_id, block.digest):
                return

    async def author(self, conversation_id: str, label: Label) -> str | None:
        """Its extractor, if that used a memory tool on the block since it was shown last."""
        row = await self._store.read(lambda tx: tx.letta.blocks(conversation_id).get(label))
        agent_id = await self._extractor(conversation_id)
        try:
            edits = await self._server.memory_edits(agent_id)
        except LettaTrouble:
            raise MirrorUnavailable from None
        shown_at = row.updated_at.replace(microsecond=0) if row else None  # Letta tells whole seconds
        if any(edit.label == label and (shown_at is None or edit.at >= shown_at) for edit in edits):
            return "letta:context_extractor"
        return None

    @property
    def _server(self) -> LettaServer:
        return self._registry.server

    async def _extractor(self, conversation_id: str) -> str:
        try:
            async with asyncio.timeout(self._making_seconds):
                return await self._registry.agent(conversation_id, EXTRACTOR)
        except LettaTrouble:
            raise MirrorUnavailable from None
        except TimeoutError:
            self._registry.prepare(conversation_id)  # for whoever asks next
            raise MirrorUnavailable(for_one=True) from None

    async def _renew(self, conversation_id: str, agent_id: str) -> None:
        """Somebody removed the agent: whoever asks next has all of it made again."""
        try:
            await self._registry.forget(conversation_id, lost=agent_id)
        except LettaTrouble:
            log.warning("letta_agent_not_ready", conversation_id=conversation_id)

    async def _holds(self, block_id: str, wanted: str) -> bool:
        try:
            found = await self._server.block(block_id)
        except LettaTrouble:
            raise MirrorUnavailable from None
        return found.given == wanted and digest(found.value) == wanted


class StoredJournal:
    """The mirror's journal, in the table `letta_blocks`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def noted(self, conversation_id: str) -> Mapping[Label, Noted]:
        """What is known of each block."""
        rows = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        return {Label(label): Noted(row.digest, row.intent) for label, row in rows.items()}

    async def intend(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """These texts are about to be written."""
        await self._store.write(lambda tx: tx.letta.intend(conversation_id, _plain(digests)))
        faults.point("after_intent_commit")

    async def applied(self, conversation_id: str, digests: Mapping[Label, str]) -> None:
        """These texts stand there."""
        await self._store.write(lambda tx: tx.letta.applied(conversation_id, _plain(digests)))
        faults.point("after_applied_commit")


def _plain(digests: Mapping[Label, str]) -> dict[str, str]:
    return {label.value: text for label, text in digests.items()}
