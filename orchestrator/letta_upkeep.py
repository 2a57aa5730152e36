"""What is done in Letta beside the turns: what fell behind is shown, what rotated out archived, what is over
removed."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, Literal

from agents.brains.asking import EXTRACTOR
from memory_blocks.models import Conversation, Label
from memory_blocks.ports import StoredBlock
from memory_blocks.trace import digest
from orchestrator import faults
from orchestrator.errors import AnamnesisError
from orchestrator.letta_agents import CLAIM_SECONDS, AgentRegistry
from orchestrator.logs import get_logger
from orchestrator.shown import Shown
from orchestrator.store import rows
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction

log = get_logger()

EVERY_SECONDS: Final = 5.0
SETTLED: Final = timedelta(seconds=5)
"""A block that was written later than this may be in the hands of its own turn."""

MOST_IN_PASSAGE: Final = 4_000
"""As many turns as stay within these characters become one passage; a longer one is one by itself."""

State = Literal["ok", "behind", "drifted", "missing", "over", "orphaned"]


@dataclass(frozen=True, slots=True)
class Found:
    """How something in Letta stands: an agent, a block or a conversation, by its id or label."""

    state: State
    conversation_id: str
    what: str
    role: str = ""


class Upkeep:
    """Looks after what stands in Letta, in the background or when told to. Others may do so, too."""

    def __init__(self, registry: AgentRegistry, store: Store, shown: Shown, *, holder: str) -> None:
        self._registry, self._store, self._shown, self._holder = registry, store, shown, holder

    async def keep_looking(self) -> None:
        """For ever: make good what turns left undone while Letta was away, and archive what rotated out."""
        while True:
            try:
                await self.look(SETTLED)
            except (AnamnesisError, TimeoutError) as error:
                kind = error.problem.name if isinstance(error, AnamnesisError) else "timed_out"
                log.warning("letta_not_looked_after", error=kind)
            await asyncio.sleep(EVERY_SECONDS)

    async def look(self, settled: timedelta = timedelta()) -> int:
        """Do what is to be done now; tell for how many conversations something was."""
        behind = await self._store.read(lambda tx: tx.letta.behind(tx.now - settled))
        for conversation_id in behind:
            await self.catch_up(conversation_id)
        rotated = await self._store.read(lambda tx: tx.letta.to_archive(EXTRACTOR))
        for conversation_id in rotated:
            await self.archive(conversation_id)
        return len({*behind, *rotated})

    async def catch_up(self, conversation_id: str) -> None:
        """Show a conversation's blocks as they stand here."""
        found = await self._store.read(partial(_as_stored, conversation_id))
        if found is not None:
            await self._shown.show(*found)

    async def archive(self, conversation_id: str) -> None:
        """Put turns that rotated out into Letta's archival memory, each once.

        What is to be kept as one passage is settled here first; whether it is there already is asked there.
        """
        agent_id = await self._registry.agent(conversation_id, EXTRACTOR)
        claim = partial(_claim, conversation_id, self._holder)
        if not await self._store.write(claim):
            return  # somebody else is at it
        try:
            planned = await self._store.write(partial(_planned, conversation_id))
            faults.point("after_plan_commit")
            for passage, turns in planned:
                known_by = f"digest:{passage.digest}"
                passage_id = await self._registry.server.passage_tagged(agent_id, known_by)
                if passage_id is None:
                    tags = [
                        f"conversation:{conversation_id}",
                        f"turns:{passage.first_turn}-{passage.last_turn}",
                        known_by,
                    ]
                    passage_id = await self._registry.server.remember(agent_id, _text(turns), tags)
                    faults.point("after_passage_put")
                kept = partial(_kept, passage, passage_id)
                await self._store.write(kept)
                faults.point("after_kept_commit")
        finally:
            await self._store.write(lambda tx: tx.letta.let_go(conversation_id, EXTRACTOR, self._holder))

    async def inspect(self) -> list[Found]:
        """Everything that stands there or should, and how."""
        server, tag = self._registry.server, self._registry.tag
        there = {each.id: each for each in await server.agents(tag)}
        ours, over = await self._store.read(_known)
        found = []
        for agent in ours:
            state: State = "ok"
            if agent.conversation_id in over:
                state = "over"
            elif agent.agent_id not in there:
                state = "missing"
            elif not self._registry.is_current(agent):
                state = "drifted"
            found.append(Found(state, agent.conversation_id, f"agent {agent.role.lower()}", agent.role))
            if agent.role == EXTRACTOR and agent.agent_id in there and state != "over":
                found.extend(await self._compare(agent))
        known = {each.agent_id for each in ours}
        for id, each in there.items():
            if id not in known:
                found.append(Found("orphaned", _conversation_of(each.tags), f"agent {id}"))
        return found

    async def _compare(self, agent: rows.LettaAgent) -> Sequence[Found]:
        """Whether each block there is ours: the same digest of the same text."""
        conversation_id = agent.conversation_id
        shown = await self._registry.server.blocks_of(agent.agent_id or "")
        stored = await self._store.read(lambda tx: SqlBlockStore(tx.blocks).load(conversation_id))
        return [
            Found(
                "missing"
                if label not in shown
                else "ok"
                if label not in stored or digest(shown[label].value) == stored[label].digest
                else "behind",
                conversation_id,
                f"block {label}",
            )
            for label in Label
        ]

    async def sync(self) -> list[Found]:
        """Bring agents to their recipes and blocks to what stands here; what is still wrong afterwards."""
        for each in await self.inspect():
            if each.state == "missing" and each.what.startswith("agent"):
                await self._registry.forget(each.conversation_id)
                await self._registry.agent(each.conversation_id, EXTRACTOR)
            elif each.state == "drifted":
                await self._registry.agent(each.conversation_id, each.role)
        for each in await self.inspect():
            if each.state == "behind":
                await self.catch_up(each.conversation_id)
        await self.look()
        return [each for each in await self.inspect() if each.state in ("behind", "drifted", "missing")]

    async def prune(self) -> list[Found]:
        """Remove what belongs to archived conversations, or to none that we know; tell what that was."""
        gone = [each for each in await self.inspect() if each.state in ("over", "orphaned")]
        for conversation_id in {each.conversation_id for each in gone if each.state == "over"}:
            await self._registry.forget(conversation_id)
        server = self._registry.server
        orphans = {each.what.removeprefix("agent ") for each in gone if each.state == "orphaned"}
        ours, _ = await self._store.read(_known)
        for agent in await server.agents(self._registry.tag):
            if agent.id in orphans:
                await server.delete_agent(agent.id)
        blocks = await self._store.read(partial(_blocks_of, {each.conversation_id for each in ours}))
        for block in await server.blocks(self._registry.tag):
            if block.id not in blocks:
                gone.append(Found("orphaned", "", f"block {block.id}"))
                await server.delete_block(block.id)
        return gone


# --- inside a transaction -----------------------------------------------------------------------------------


def _as_stored(
    conversation_id: str, tx: Transaction
) -> tuple[Conversation, Mapping[Label, StoredBlock]] | None:
    found = tx.conversations.get(conversation_id)
    if found is None:
        return None
    conversation = Conversation(found.id, found.user_id, found.created_at)
    return conversation, SqlBlockStore(tx.blocks).load(conversation_id)


def _claim(conversation_id: str, holder: str, tx: Transaction) -> bool:
    return tx.letta.claim(conversation_id, EXTRACTOR, holder, seconds=CLAIM_SECONDS) is not None


def _planned(
    conversation_id: str, tx: Transaction
) -> list[tuple[rows.LettaPassage, list[rows.ArchivedTurn]]]:
    for turns in _together(tx.letta.uncovered(conversation_id)):
        tx.letta.plan(conversation_id, [turn.turn_id for turn in turns], digest(_text(turns)))
    return tx.letta.planned(conversation_id)


def _kept(passage: rows.LettaPassage, passage_id: str, tx: Transaction) -> None:
    tx.letta.kept(passage, passage_id)


def _known(tx: Transaction) -> tuple[list[rows.LettaAgent], set[str]]:
    agents = [each for row in tx.letta.of_role(EXTRACTOR) for each in tx.letta.agents(row.conversation_id)]
    return [each for each in agents if each.agent_id], set(tx.letta.over(EXTRACTOR))


def _blocks_of(conversation_ids: set[str], tx: Transaction) -> set[str]:
    return {row.block_id for each in conversation_ids for row in tx.letta.blocks(each).values()}


# --- values -------------------------------------------------------------------------------------------------


def _together(turns: Sequence[rows.ArchivedTurn]) -> Iterator[list[rows.ArchivedTurn]]:
    """Turns that follow each other and have room in one passage."""
    group: list[rows.ArchivedTurn] = []
    for turn in turns:
        size = sum(len(each.value) for each in group)
        if group and (turn.turn_id != group[-1].turn_id + 1 or size + len(turn.value) > MOST_IN_PASSAGE):
            yield group
            group = []
        group.append(turn)
    if group:
        yield group


def _text(turns: Sequence[rows.ArchivedTurn]) -> str:
    return "\n".join(turn.value for turn in turns)


def _conversation_of(tags: frozenset[str]) -> str:
    return next((tag.partition(":")[2] for tag in sorted(tags) if tag.startswith("conversation:")), "")
