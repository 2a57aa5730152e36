"""The agents and blocks that stand for a conversation in Letta: made when first needed, and once."""

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakValueDictionary

from agents.brains.asking import CLASSIFIER, ENRICHMENT, EXTRACTOR, Schema, intent_schema
from agents.errors import ModelTrouble
from agents.roster import Roster
from memory_blocks.limits import Limits
from memory_blocks.models import Label
from orchestrator import faults, settings
from orchestrator.errors import NOT_FOUND, AnamnesisError, LettaTrouble
from orchestrator.letta_server import LettaAgent, LettaServer
from orchestrator.logs import get_logger
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.store import rows
from orchestrator.store.database import Store, Transaction

log = get_logger()

CLAIM_SECONDS: Final = 30.0
"""How long one process may take to make an agent before another tries."""

LOOK_SECONDS: Final = 0.1
"""How often one looks whether the other has made it."""

MEMORY_TOOLS: Final = ("core_memory_append", "core_memory_replace")
"""With these the extractor edits its blocks; nobody else has them, and most messages do without."""

DESCRIPTIONS: Final[Mapping[Label, str]] = MappingProxyType(
    {
        Label.CONVERSATION_HISTORY: "The complete turn-by-turn conversation with full context, as JSON.",
        Label.ACTIVE_SESSION: "The current session's state and metadata, as JSON.",
        Label.CONTEXT_SUMMARY: "A human-readable summary of the conversation, for quick access to context.",
        Label.MEMORY_METADATA: "Metadata of memory management, and information about the system, as JSON.",
    }
)


class Recipes:
    """What the agent of each role is made of: lean, without memory of its own but the blocks."""

    def __init__(self, letta: settings.Letta, roster: Roster, prompts: PromptShelf) -> None:
        self._letta, self._roster, self._prompts = letta, roster, prompts

    def knows(self, role: str) -> bool:
        """Whether somebody has that role, now that `agents.toml` is as it is."""
        return role in (EXTRACTOR, CLASSIFIER) or role in self._roster.agents

    def recipe(self, role: str) -> dict[str, Any]:
        """What Letta is told, besides whose agent it is."""
        recipe: dict[str, Any] = {
            "system": self._system(role),
            "model": self._letta.model,
            "embedding": self._letta.embedding,
            "context_window_limit": self._letta.context_window,
            "message_buffer_autoclear": True,
        }
        if schema := self._schema(role):
            form = {"name": schema.name, "strict": True, "schema": schema.schema}
            recipe["model_settings"] = {
                "provider_type": "openai",
                "response_format": {"type": "json_schema", "json_schema": form},
            }
        return recipe

    def _system(self, role: str) -> str:
        names = {EXTRACTOR: "context_extractor", CLASSIFIER: "intent_classifier"}
        if role in names:
            return self._prompts.prompt_named(names[role]).text
        return self._prompts.prompt(self._roster.agents[role]).text

    def _schema(self, role: str) -> Schema | None:
        schemas = {EXTRACTOR: ENRICHMENT, CLASSIFIER: intent_schema(self._roster.intents)}
        return schemas.get(role)


class AgentRegistry:
    """Knows which agent stands for which role, and has it made where there is none."""

    def __init__(
        self,
        server: LettaServer,
        store: Store,
        recipes: Recipes,
        limits: Limits,
        *,
        tag: str,
        holder: str,
        claim_seconds: float = CLAIM_SECONDS,
    ) -> None:
        self.server, self.tag = server, tag
        self._store, self._recipes, self._limits = store, recipes, limits
        self._holder, self._claim_seconds = holder, claim_seconds
        self._preparing: set[asyncio.Task[None]] = set()
        self._making: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def agent_for(self, conversation_id: str, role: str) -> str:
        """The id of the agent of that role, or `ModelTrouble`: what a brain asks before it asks the agent.

        Where the blocks could not be shown as they stand, nobody there is asked: they would be read stale.
        """
        if not await self._store.read(partial(are_shown, conversation_id)):
            raise ModelTrouble("blocks_not_shown", blamed=False)
        try:
            return await self.agent(conversation_id, role)
        except LettaTrouble as trouble:
            said, again, after = str(trouble.facts["rule"]), trouble.again, trouble.after
        raise ModelTrouble(said, again=again, after=after)

    async def agent(self, conversation_id: str, role: str) -> str:
        """The id of the agent of that role: as its recipe is now, with the conversation's blocks."""
        recipe = self._recipes.recipe(role)
        async with self._making.setdefault((conversation_id, role), asyncio.Lock()):
            made = await self._store.read(lambda tx: tx.letta.agent(conversation_id, role))
            if (agent_id := _as_wanted(made, recipe)) is not None:
                return agent_id
            return await self._make(conversation_id, role, recipe)

    def prepare(self, conversation_id: str) -> None:
        """Have the extractor and the blocks of a new conversation made, before they are needed."""
        task = asyncio.create_task(self._prepare(conversation_id))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    async def _prepare(self, conversation_id: str) -> None:
        try:
            await self.agent(conversation_id, EXTRACTOR)
        except (AnamnesisError, TimeoutError):
            log.warning(
                "letta_agent_not_ready", conversation_id=conversation_id
            )  # its first turn tries again

    async def close(self) -> None:
        """Wait for what is being prepared, then hang up."""
        await asyncio.gather(*self._preparing)
        await self.server.close()

    def is_current(self, made: rows.LettaAgent) -> bool:
        """Whether an agent is what its recipe is now; one whose role is no more waits to be pruned."""
        if not self._recipes.knows(made.role):
            return True
        return _as_wanted(made, self._recipes.recipe(made.role)) is not None

    async def forget(self, conversation_id: str, *, lost: str = "") -> None:
        """Remove all that stands for a conversation there, and then that it stood here.

        `lost` names an agent that is there no more; once another stands in its place, nothing is removed.
        """
        agents, blocks = await self._store.read(
            lambda tx: (tx.letta.agents(conversation_id), tx.letta.blocks(conversation_id))
        )
        if lost and lost not in {each.agent_id for each in agents}:
            return
        there = await self.server.agents(self.tag, f"conversation:{conversation_id}")
        ids = {each.agent_id for each in agents if each.agent_id} | {each.id for each in there}
        of_blocks = {each.block_id for each in blocks.values()}
        of_blocks |= {block.id for each in there for block in each.blocks.values()}
        for agent_id in ids:
            await self.server.delete_agent(agent_id)
        for block_id in of_blocks:
            await self.server.delete_block(block_id)
        await self._store.write(lambda tx: tx.letta.forget(conversation_id))

    # --- making one -----------------------------------------------------------------------------------------

    async def _make(self, conversation_id: str, role: str, recipe: Mapping[str, Any]) -> str:
        """Make or change it, unless another process does at this moment: then wait for that one."""
        async with asyncio.timeout(2 * self._claim_seconds):
            while True:
                claimed = await self._store.write(
                    lambda tx: tx.letta.claim(
                        conversation_id, role, self._holder, seconds=self._claim_seconds
                    )
                )
                if claimed is not None and (agent_id := await self._carry_out(claimed, recipe)):
                    return agent_id
                await asyncio.sleep(LOOK_SECONDS)
                made = await self._store.read(lambda tx: tx.letta.agent(conversation_id, role))
                if (agent_id := _as_wanted(made, recipe)) is not None:
                    return agent_id

    async def _carry_out(self, claimed: rows.LettaAgent, recipe: Mapping[str, Any]) -> str | None:
        """The agent's id; None when another took over in between, and what was made here is removed."""
        conversation_id, role = claimed.conversation_id, claimed.role
        try:
            agent, is_new = await self._found_or_made(claimed, recipe)
        except BaseException:
            await self._store.write(lambda tx: tx.letta.let_go(conversation_id, role, self._holder))
            raise
        faults.point("after_agent_made")

        def settle(tx: Transaction) -> bool:
            if not tx.letta.made(
                conversation_id, role, self._holder, agent_id=agent.id, recipe=digest_of(recipe)
            ):
                return False
            if role == EXTRACTOR:
                tx.letta.set_blocks(conversation_id, {label: each.id for label, each in agent.blocks.items()})
            return True

        if await self._store.write(settle):
            log.info("letta_agent_ready", conversation_id=conversation_id, kind=role.lower())
            return agent.id
        if is_new:
            await self.server.delete_agent(agent.id)
            for block in agent.blocks.values() if role == EXTRACTOR else ():
                await self.server.delete_block(block.id)
        return None

    async def _found_or_made(
        self, claimed: rows.LettaAgent, recipe: Mapping[str, Any]
    ) -> tuple[LettaAgent, bool]:
        """One that an earlier try left behind is taken, and changed into what it is to be."""
        conversation_id, role = claimed.conversation_id, claimed.role
        tags = (self.tag, f"conversation:{conversation_id}", f"role:{role}")
        for found in await self.server.agents(*tags):
            fits = found.tags.issuperset(tags) and found.blocks.keys() >= set(Label)
            if fits and claimed.agent_id in (None, found.id):
                await self.server.change_agent(found.id, recipe)
                return found, False
        whole = {**recipe, **await self._whose(conversation_id, role), "tags": list(tags)}
        return await self.server.make_agent(whole), True

    async def _whose(self, conversation_id: str, role: str) -> dict[str, Any]:
        """Whose agent it is, and with which blocks: the extractor brings them, the others share them."""
        conversation = await self._store.read(lambda tx: tx.conversations.get(conversation_id))
        if conversation is None:
            raise AnamnesisError(NOT_FOUND)
        person = await self.server.person(f"{self.tag}:{conversation.user_id}", conversation.user_id)
        agent: dict[str, Any] = {
            "agent_type": "letta_v1_agent",
            "include_base_tools": False,
            "name": re.sub(r"[^A-Za-z0-9_-]", "-", f"{self.tag}-{conversation_id}-{role.lower()}"),
            "description": f"{role.lower()} of the conversation {conversation_id}",
            "metadata": {"conversation": conversation_id, "role": role, "house": self.tag},
            "identity_ids": [person],
        }
        if role == EXTRACTOR:
            agent["tools"] = list(MEMORY_TOOLS)
            agent["memory_blocks"] = [self._block(conversation_id, label) for label in Label]
        else:
            await self.agent(conversation_id, EXTRACTOR)
            blocks = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
            agent["block_ids"] = [blocks[label].block_id for label in Label]
        return agent

    def _block(self, conversation_id: str, label: Label) -> dict[str, Any]:
        """A block before anything is shown in it."""
        return {
            "label": label.value,
            "value": "",
            "limit": self._limits.of(label),
            "description": DESCRIPTIONS[label],
            "read_only": False,
            "tags": [self.tag, f"conversation:{conversation_id}"],
        }


def are_shown(conversation_id: str, tx: Transaction) -> bool:
    """Whether every block there is known to be the one that stands here."""
    shown, stored = tx.letta.blocks(conversation_id), tx.blocks.load(conversation_id)
    return len(shown) == len(Label) and all(
        row.intent is None
        and row.digest is not None
        and (label not in stored or stored[label].digest == row.digest)
        for label, row in shown.items()
    )


def digest_of(recipe: Mapping[str, Any]) -> str:
    """By which one sees that an agent was made to another recipe."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


def _as_wanted(made: rows.LettaAgent | None, recipe: Mapping[str, Any]) -> str | None:
    return made.agent_id if made is not None and made.recipe == digest_of(recipe) else None
