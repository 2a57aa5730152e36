"""Work in Letta outside of turns: updating blocks that are behind, archiving turns, removing leftovers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from agents.models.requests import EXTRACTOR
from memory_blocks.models import Conversation, Label
from memory_blocks.ports import StoredBlock
from orchestrator.errors import AnamnesisError, LettaTrouble
from orchestrator.letta.agents import AgentRegistry
from orchestrator.letta.inspection import Finding, Inspector
from orchestrator.letta.passages import PassageArchive
from orchestrator.letta.specs import FORMER_ROLES
from orchestrator.ops.logs import get_logger
from orchestrator.store import rows
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.turn.block_sync import BlockSync

log = get_logger()

INTERVAL_SECONDS: Final = 5.0
"""Pause between two runs in the background."""

SETTLE_TIME: Final = timedelta(seconds=5)
"""A block written more recently than this is left to its turn, which may still be copying it."""


class Upkeep:
    """Keeps Letta in order, in the background or on command. Several processes may do so at the same time."""

    def __init__(
        self,
        registry: AgentRegistry,
        store: Store,
        sync: BlockSync,
        *,
        holder: str,
        settle_time: timedelta = SETTLE_TIME,
    ) -> None:
        self._registry, self._store, self._sync = registry, store, sync
        self._settle_time = max(settle_time, SETTLE_TIME)
        self._inspector = Inspector(registry, store)
        self._passages = PassageArchive(registry, store, holder=holder)

    async def run(self) -> None:
        """Run until cancelled: do what is due, every few seconds."""
        while True:
            try:
                await self.run_once(self._settle_time)
            except (AnamnesisError, TimeoutError) as error:
                kind = error.problem.name if isinstance(error, AnamnesisError) else "timed_out"
                log.warning("letta_upkeep_failed", error=kind)
            except Exception as error:  # the next run must happen whatever went wrong
                log.error("letta_upkeep_failed", exc_info=error)
            await asyncio.sleep(INTERVAL_SECONDS)

    async def run_once(self, settle_time: timedelta = timedelta()) -> int:
        """Do what is due now, and return for how many conversations something was due.

        Removes what belongs to archived conversations and agents of former roles, updates blocks that are
        behind, and archives turns that rotated out. A failure of one conversation does not stop the others,
        unless it affects them too.
        """
        over, behind, former = await self._store.read(
            lambda tx: (
                tx.letta.ended(),
                tx.letta.outdated(tx.now - settle_time),
                {each.conversation_id: each for role in FORMER_ROLES for each in tx.letta.with_role(role)},
            )
        )
        for conversation_id in over:
            await self._isolated(self._registry.remover.remove_conversation, conversation_id)
        for conversation_id, agent in former.items():
            if conversation_id not in over:
                await self._isolated(partial(self._remove_former, agent), conversation_id)
        for conversation_id in behind:
            await self._isolated(self.update_blocks, conversation_id)
        rotated = await self._store.read(lambda tx: tx.letta.unarchived(EXTRACTOR))
        for conversation_id in rotated:
            await self._isolated(self.archive, conversation_id)
        return len({*over, *behind, *rotated, *former})

    async def _isolated(self, work: Callable[[str], Awaitable[None]], conversation_id: str) -> None:
        """Log a failure that concerns only this conversation; raise any other."""
        try:
            await work(conversation_id)
        except AnamnesisError as error:
            if isinstance(error, LettaTrouble) and error.is_general:
                raise
            log.warning("letta_upkeep_failed", conversation_id=conversation_id, error=error.problem.name)

    async def _remove_former(self, agent: rows.LettaAgent, conversation_id: str) -> None:
        await self._registry.remover.remove_former(agent)

    async def update_blocks(self, conversation_id: str) -> None:
        """Copy a conversation's current blocks to Letta."""
        found = await self._store.read(partial(_load_blocks, conversation_id))
        if found is not None:
            await self._sync.copy(*found)

    async def archive(self, conversation_id: str) -> None:
        """Copy the turns that rotated out into Letta's archival memory, each once."""
        await self._passages.archive(conversation_id)

    async def inspect(self) -> list[Finding]:
        """The state of everything that exists in Letta or should."""
        return await self._inspector.inspect()

    async def sync(self) -> list[Finding]:
        """Repair agents and blocks, and return what is still wrong afterwards."""
        to_repair: set[tuple[str, str]] = set()
        for each in await self.inspect():
            if each.state == "missing" and each.what.startswith("agent"):
                await self._registry.mark_missing(each.conversation_id, each.role, each.id)
            elif each.state == "missing":
                label = Label(each.what.removeprefix("block "))
                await self._registry.mark_blocks_missing(each.conversation_id, {label})
            if each.state == "drifted" or (each.state == "missing" and each.role == EXTRACTOR):
                to_repair.add((each.conversation_id, each.role))
        for conversation_id, role in sorted(to_repair, key=lambda each: each[1] != EXTRACTOR):
            await self._registry.repair(conversation_id, role)
        for each in await self.inspect():
            if each.state in ("behind", "due"):
                await self.update_blocks(each.conversation_id)
        await self.run_once()
        return [each for each in await self.inspect() if each.state in ("behind", "drifted", "missing")]

    async def prune(self) -> list[Finding]:
        """Remove what belongs to archived conversations or is orphaned, and return it."""
        leftovers = [each for each in await self.inspect() if each.state in ("over", "orphaned")]
        for conversation_id in {each.conversation_id for each in leftovers if each.state == "over"}:
            await self._registry.remover.remove_conversation(conversation_id)
        server = self._registry.server
        remove = {
            "agent": self._registry.remover.remove_agent,
            "archive": server.delete_archive,
            "block": server.delete_block,
            "person": server.delete_identity,
        }
        for each in leftovers:
            if each.state == "orphaned":
                await remove[each.what.split()[0]](each.id)
        return leftovers


def _load_blocks(
    conversation_id: str, tx: Transaction
) -> tuple[Conversation, Mapping[Label, StoredBlock]] | None:
    found = tx.conversations.get(conversation_id)
    if found is None:
        return None
    conversation = Conversation(found.id, found.user_id, found.created_at)
    return conversation, SqlBlockStore(tx.blocks).load(conversation_id)
