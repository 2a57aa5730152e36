"""Removes agents, and everything that belongs to a conversation, from Letta."""

from orchestrator.letta.identities import Identities
from orchestrator.letta.server import LettaServer
from orchestrator.letta.specs import AgentSpecs
from orchestrator.store import rows
from orchestrator.store.engine.database import Store


class Remover:
    """Removes what is no longer needed in Letta."""

    def __init__(self, server: LettaServer, store: Store, specs: AgentSpecs, identities: Identities) -> None:
        self._server, self._store, self._specs, self._identities = server, store, specs, identities

    async def remove_conversation(self, conversation_id: str) -> None:
        """Remove a conversation's agents, archives and blocks from Letta, then their rows from our tables.

        The person's identity is removed too, unless another conversation of theirs is active.
        """
        known_agents, known_blocks = await self._store.read(
            lambda tx: (tx.letta.agents(conversation_id), tx.letta.blocks(conversation_id))
        )
        tags = self._specs.tags(conversation_id)
        agents, blocks = await self._server.agents(*tags), await self._server.blocks(*tags)
        for agent_id in {each.agent_id for each in known_agents if each.agent_id} | {
            each.id for each in agents
        }:
            await self.remove_agent(agent_id)
        for archive in await self._server.archives(self._specs.archive_name(conversation_id)):
            await self._server.delete_archive(archive.id)
        for block_id in {each.block_id for each in known_blocks.values()} | {each.id for each in blocks}:
            await self._server.delete_block(block_id)
        if person_id := await self._store.read(lambda tx: tx.letta.departed_person(conversation_id)):
            await self._identities.remove(person_id)
        await self._store.write(lambda tx: tx.letta.forget(conversation_id))

    async def remove_former(self, agent: rows.LettaAgent) -> None:
        """Remove an agent whose role does not exist any more, and its row. The blocks stay."""
        agent_id = agent.agent_id or ""
        await self.remove_agent(agent_id)
        await self._store.write(lambda tx: tx.letta.forget_agent(agent.conversation_id, agent.role, agent_id))

    async def remove_agent(self, agent_id: str) -> None:
        """Remove an agent and its default archive, which Letta would keep with everything in it."""
        for archive in await self._server.agent_archives(agent_id):
            if archive.is_default:
                await self._server.delete_archive(archive.id)
        await self._server.delete_agent(agent_id)
