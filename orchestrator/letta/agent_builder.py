"""Creates one agent in Letta, or repairs the one that exists."""

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from agents.models.requests import EXTRACTOR
from memory_blocks import edits
from memory_blocks.models import Conversation, Label, render
from memory_blocks.trace import digest
from orchestrator.errors import LettaTrouble
from orchestrator.letta.identities import Identities
from orchestrator.letta.server import LettaAgent, LettaServer
from orchestrator.letta.specs import AgentSpecs
from orchestrator.ops import faults
from orchestrator.ops.logs import get_logger
from orchestrator.store import rows
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.letta import Claim

log = get_logger()

CONVERSATION_OVER: Final = "conversation_over"
"""The rule of the error for an archived conversation, which gets no agent. Nothing is wrong with Letta."""


@dataclass(frozen=True, slots=True)
class _Built:
    """An agent that exists now, and its blocks' ids by label.

    `new_digests` has the digests, by label, of the blocks that were created just now with our current text.
    """

    agent_id: str
    blocks: Mapping[str, str]
    is_new: bool
    new_digests: Mapping[str, str]

    @property
    def new_blocks(self) -> Set[str]:
        """The ids of the blocks that were created just now."""
        return {self.blocks[label] for label in self.new_digests}


class AgentBuilder:
    """Brings the agent of a claim to its specification, and records it in our tables.

    `ensure_extractor` creates a conversation's extractor if needed. It comes first, because it brings the
    blocks that the other agents share.
    """

    def __init__(
        self,
        server: LettaServer,
        store: Store,
        specs: AgentSpecs,
        identities: Identities,
        ensure_extractor: Callable[[str], Awaitable[object]],
        *,
        holder: str,
    ) -> None:
        self._server, self._store, self._specs, self._identities = server, store, specs, identities
        self._ensure_extractor, self._holder = ensure_extractor, holder

    async def build(self, claim: Claim) -> str | None:
        """Create or repair the agent, and return its id.

        Returns None if another process took over the claim meanwhile; what was created here is removed.
        """
        conversation_id, role = claim.agent.conversation_id, claim.agent.role
        try:
            built = await self._find_or_create(claim)
            has_passages = await self._keep_archive(claim, built)
        except BaseException:
            await self._store.write(lambda tx: tx.letta.release_claim(conversation_id, role, self._holder))
            raise
        faults.point("after_agent_made")
        fingerprint = self._specs.agent_fingerprint(role, built.blocks)

        def record(tx: Transaction) -> bool:
            if not tx.letta.record_agent(
                conversation_id, role, self._holder, agent_id=built.agent_id, recipe=fingerprint
            ):
                return False
            if role == EXTRACTOR:
                tx.letta.set_blocks(conversation_id, built.blocks)
                tx.letta.record_applied(conversation_id, built.new_digests)
                if not has_passages:
                    tx.letta.forget_passages(conversation_id)
            return True

        if await self._store.write(record):
            log.info("letta_agent_ready", conversation_id=conversation_id, kind=role.lower())
            return built.agent_id
        if built.is_new:
            await self._server.delete_agent(built.agent_id)
        for block_id in built.new_blocks:
            await self._server.delete_block(block_id)
        return None

    async def _find_or_create(self, claim: Claim) -> _Built:
        """The agent may exist already: an earlier attempt left it, or its specification changed."""
        conversation_id, role = claim.agent.conversation_id, claim.agent.role
        found = None if claim.is_first else await self._find(claim.agent)
        if role != EXTRACTOR:
            await self._ensure_extractor(conversation_id)
        journal = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        blocks = {label: row.block_id for label, row in journal.items()}
        if role == EXTRACTOR and (found or blocks):
            blocks = await self._existing_blocks(conversation_id, blocks, found)
        if found is None:
            return await self._create(conversation_id, role, blocks)
        return await self._repair(found, conversation_id, role, blocks)

    async def _find(self, claimed: rows.LettaAgent) -> LettaAgent | None:
        """The agent if it exists: by its id if that is known, else by its tags."""
        if claimed.agent_id is not None:
            return await self._server.find_agent(claimed.agent_id)
        tags = self._specs.agent_tags(claimed.conversation_id, claimed.role)
        agents = await self._server.agents(*tags)
        return next((each for each in agents if each.tags.issuperset(tags)), None)

    async def _create(self, conversation_id: str, role: str, blocks: Mapping[str, str]) -> _Built:
        """Create an agent with these blocks. Missing blocks are created with it, in the same call."""
        person_id, texts = await self._store.read(partial(self._person_and_texts, conversation_id))
        missing = [label for label in Label if label not in blocks]
        request = {
            **self._specs.agent_settings(role),
            "agent_type": "letta_v1_agent",
            "include_base_tools": False,
            **self._specs.agent_labels(conversation_id, role),
            "identity_ids": [await self._identities.ensure(person_id)],
            "tools": list(self._specs.tools(role)),
            "block_ids": list(blocks.values()),
            "memory_blocks": [
                self._specs.new_block(conversation_id, label, texts[label]) for label in missing
            ],
        }
        try:
            created = await self._server.create_agent(request)
        except LettaTrouble:
            self._identities.uncache(person_id)  # the cached identity may have been removed
            raise
        all_blocks = {label: block.id for label, block in created.blocks.items()}
        new_digests = {label.value: digest(texts[label]) for label in missing}
        return _Built(created.id, all_blocks, is_new=True, new_digests=new_digests)

    async def _repair(
        self, found: LettaAgent, conversation_id: str, role: str, blocks: dict[str, str]
    ) -> _Built:
        """Bring an existing agent to its specification. Missing blocks are created."""
        new_digests = {}
        if missing := [label for label in Label if label not in blocks]:
            _, texts = await self._store.read(partial(self._person_and_texts, conversation_id))
            for label in missing:
                request = self._specs.new_block(conversation_id, label, texts[label])
                created = await self._server.create_block(request)
                blocks[label], new_digests[label.value] = created.id, digest(texts[label])
        change = {**self._specs.agent_settings(role), "block_ids": list(blocks.values())}
        if found.tools != set(self._specs.tools(role)):
            change["tool_ids"] = await self._server.tool_ids(self._specs.tools(role))
        if found.owner_tag != self._specs.tag or not found.tags.issuperset(
            self._specs.agent_tags(conversation_id, role)
        ):
            change |= await self._adopt(found, conversation_id, role)
        await self._server.update_agent(found.id, change)
        return _Built(found.id, blocks, is_new=False, new_digests=new_digests)

    async def _adopt(self, found: LettaAgent, conversation_id: str, role: str) -> dict[str, Any]:
        """Return the changes that bring an agent of another tag under ours. That tag is out of use."""
        person_id, _ = await self._store.read(partial(self._person_and_texts, conversation_id))
        if found.owner_tag != self._specs.tag:
            await self._identities.remove_key(f"{found.owner_tag}:{person_id}")
        if role == EXTRACTOR:
            for archive in await self._server.agent_archives(found.id):
                if archive.is_default:
                    await self._server.rename_archive(archive.id, self._specs.archive_name(conversation_id))
        labels = self._specs.agent_labels(conversation_id, role)
        return {**labels, "identity_ids": [await self._identities.ensure(person_id)]}

    async def _existing_blocks(
        self, conversation_id: str, known: Mapping[str, str], found: LettaAgent | None
    ) -> dict[str, str]:
        """The ids of the conversation's blocks that exist, by label. Their settings are repaired.

        Among several blocks of one label, a block that our tables know wins, then one attached to the agent.
        """
        attached = {block.id for block in found.blocks.values()} if found else set()
        tagged = await self._server.blocks(*self._specs.tags(conversation_id))
        untagged_ids = set(known.values()) - {each.id for each in tagged}  # their tags may have been changed
        untagged = [await self._server.find_block(each) for each in untagged_ids]
        existing = [each for each in (*tagged, *untagged) if each and each.label in set(Label)]
        chosen: dict[str, str] = {}
        for block in sorted(existing, key=lambda each: (each.id in known.values(), each.id in attached)):
            chosen[block.label] = block.id  # the last one wins
        for block in existing:
            if block.id in chosen.values() and self._specs.block_drift(conversation_id, block):
                wanted = self._specs.block_settings(Label(block.label))
                tags = list(self._specs.tags(conversation_id))
                await self._server.update_block(block.id, {**wanted, "tags": tags})
        return chosen

    async def _keep_archive(self, claim: Claim, built: _Built) -> bool:
        """Whether the passages archived so far are with the extractor.

        If the extractor is a new agent, it gets the archive of the former one. If it is unclear which archive
        that is, all candidates are removed, and every turn is archived again.
        """
        conversation_id = claim.agent.conversation_id
        if claim.agent.role != EXTRACTOR or claim.agent.agent_id == built.agent_id:
            return True
        if not await self._store.read(lambda tx: tx.letta.has_passages(conversation_id)):
            return True
        archives = await self._server.archives(self._specs.archive_name(conversation_id))
        if len(archives) == 1:
            await self._server.attach_archive(built.agent_id, archives[0].id)
            return True
        for archive in archives:
            await self._server.delete_archive(archive.id)
        return False

    def _person_and_texts(self, conversation_id: str, tx: Transaction) -> tuple[str, Mapping[Label, str]]:
        """The person and the block texts of a conversation. `LettaTrouble` if it is not active any more."""
        found = tx.conversations.get(conversation_id)
        if found is None or found.status != "active":
            raise LettaTrouble(CONVERSATION_OVER)
        stored = SqlBlockStore(tx.blocks).load(conversation_id)
        empty = edits.empty(Conversation(found.id, found.user_id, found.created_at), self._specs.limits)
        texts = {label: stored[label].text if label in stored else render(label, empty) for label in Label}
        return found.user_id, texts
