"""Which Letta agent belongs to which role of a conversation. Agents are created when first needed, once."""

import asyncio
from collections.abc import Set
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final

from agents.errors import ModelTrouble
from agents.models.requests import EXTRACTOR
from memory_blocks.models import Label
from orchestrator.errors import LettaTrouble
from orchestrator.letta.agent_builder import CONVERSATION_OVER, AgentBuilder
from orchestrator.letta.identities import Identities
from orchestrator.letta.removal import Remover
from orchestrator.letta.server import LettaServer
from orchestrator.letta.specs import AgentSpecs
from orchestrator.ops.logs import get_logger
from orchestrator.store.engine.database import Store, Transaction

log = get_logger()

CLAIM_SECONDS: Final = 30.0
"""How long one process may take to create an agent before another process tries."""

POLL_SECONDS: Final = 0.1
"""How often a process checks whether another one has created the agent."""

BLOCKS_NOT_CURRENT: Final = "blocks_not_current"
"""Why the local brain answers: the blocks in Letta lack something. Turns of older releases say
`blocks_not_shown`."""

CLOSE_SECONDS: Final = 2.0
"""How long closing waits for agents that are being created. A half-created one is later found by its tags."""

CARRIED_TURNS: Final = 5
"""How many of the latest turns the blocks in Letta may lack. The message to an agent has these turns."""

RETRY_SECONDS: Final = 5.0
"""How long after a failure a health check starts another attempt."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """The last agent that could not be created, by conversation and role: why, and when."""

    key: tuple[str, str]
    rule: str
    at: float


class AgentRegistry:
    """Finds the agent of a role of a conversation, and has it created or repaired if needed."""

    def __init__(
        self,
        server: LettaServer,
        store: Store,
        specs: AgentSpecs,
        *,
        holder: str,
        claim_seconds: float = CLAIM_SECONDS,
    ) -> None:
        identities = Identities(server, specs)
        self.server, self.specs = server, specs
        self.remover = Remover(server, store, specs, identities)
        self._builder = AgentBuilder(
            server, store, specs, identities, partial(self.agent, role=EXTRACTOR), holder=holder
        )
        self._store, self._holder, self._claim_seconds = store, holder, claim_seconds
        self._tasks: dict[tuple[str, str], asyncio.Task[str]] = {}
        self._failure: _Failure | None = None

    async def agent_for(self, conversation_id: str, role: str) -> str:
        """The id of the agent that a brain may ask now; `ModelTrouble` if there is none.

        No agent may be asked while the blocks in Letta lack something that its message does not have.
        """
        usable, agent_id = await self._store.read(partial(self._usable_agent, conversation_id, role))
        if usable and agent_id is None:
            try:
                agent_id = await self.agent(conversation_id, role)
            except LettaTrouble as trouble:
                rule = str(trouble.facts["rule"])
                raise ModelTrouble(
                    rule, retryable=trouble.retryable, retry_after=trouble.retry_after
                ) from None
            # the agent may have been created with other blocks
            usable = await self.copies_may_wait(conversation_id)
        if not usable or agent_id is None:
            raise ModelTrouble(BLOCKS_NOT_CURRENT, counts_against_model=False)
        return agent_id

    async def turns_behind(self, conversation_id: str) -> int:
        """How many of the latest turns the message to an agent must have, because its blocks lack them."""
        return await self._store.read(partial(turns_behind, conversation_id)) or 0

    async def copies_may_wait(self, conversation_id: str) -> bool:
        """Whether the blocks in Letta lack so little that a message to an agent can have it."""
        return await self._store.read(partial(turns_behind, conversation_id)) is not None

    async def agent(self, conversation_id: str, role: str) -> str:
        """The id of the agent of a role, created or updated to its current specification if needed.

        If the caller is cancelled, the creation continues.
        """
        if (agent_id := await self.find(conversation_id, role)) is not None:
            return agent_id
        return await asyncio.shield(self.creation(conversation_id, role))

    async def find(self, conversation_id: str, role: str) -> str | None:
        """The agent's id if our tables say that it fits its specification. Letta is not asked."""
        return await self._store.read(partial(self._current_agent, conversation_id, role))

    def creation(self, conversation_id: str, role: str) -> asyncio.Task[str]:
        """The task that creates or updates an agent. It is started if it is not running."""
        key = conversation_id, role
        if key not in self._tasks:
            task = asyncio.create_task(self._create(conversation_id, role))
            task.add_done_callback(partial(self._finish, key))
            self._tasks[key] = task
        return self._tasks[key]

    def prepare(self, conversation_id: str) -> None:
        """Start creating the extractor and the blocks of a new conversation, before they are needed."""
        self.creation(conversation_id, EXTRACTOR)

    async def check_health(self) -> None:
        """Raise `LettaTrouble` if the last agent could not be created.

        A wrong model name, for example, prevents every creation although Letta itself is well. The failed
        creation is tried again in the background, so that a later check can succeed.
        """
        if self._failure is None:
            return
        if monotonic() - self._failure.at >= RETRY_SECONDS:
            self.creation(*self._failure.key)
        raise LettaTrouble(self._failure.rule)

    async def close(self) -> None:
        """Wait a moment for agents that are being created, then close the connections."""
        if self._tasks:
            _, unfinished = await asyncio.wait(self._tasks.values(), timeout=CLOSE_SECONDS)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        await self.server.close()

    async def mark_missing(self, conversation_id: str, role: str, agent_id: str) -> None:
        """Record that an agent does not exist any more. Its next use creates it with the same blocks."""
        await self._store.write(lambda tx: tx.letta.forget_agent(conversation_id, role, agent_id))

    async def forget_missing(self, conversation_id: str, role: str, agent_id: str) -> bool:
        """Whether an agent does not exist any more; if so, its next use creates it.

        Letta is asked for the agent itself: a 404 for another address must not create a second agent.
        """
        try:
            if await self.server.find_agent(agent_id) is not None:
                return False
        except LettaTrouble:
            return False
        await self.mark_missing(conversation_id, role, agent_id)
        log.warning("letta_agent_missing", conversation_id=conversation_id, kind=role.lower())
        return True

    async def mark_blocks_missing(self, conversation_id: str, labels: Set[Label]) -> None:
        """Record that the extractor does not have these blocks. No agent is asked until it has them again."""
        await self._store.write(lambda tx: tx.letta.forget_blocks(conversation_id, sorted(labels)))

    async def repair(self, conversation_id: str, role: str) -> None:
        """Bring an agent and its blocks back to their specification, whatever was changed in Letta."""
        await self._store.write(lambda tx: tx.letta.mark_outdated(conversation_id, role))
        await self.agent(conversation_id, role)

    async def _create(self, conversation_id: str, role: str) -> str:
        """Create or update the agent. If another process is doing so, wait for that process."""
        mine, seconds = (conversation_id, role, self._holder), self._claim_seconds
        try:
            async with asyncio.timeout(2 * seconds):
                while True:
                    if (agent_id := await self.find(conversation_id, role)) is not None:
                        return agent_id
                    claimed = await self._store.write(lambda tx: tx.letta.claim(*mine, seconds=seconds))
                    if claimed is not None and (agent_id := await self._builder.build(claimed)):
                        return agent_id
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise LettaTrouble("not_made", retryable=True) from None

    def _finish(self, key: tuple[str, str], task: asyncio.Task[str]) -> None:
        """Remember or clear a failure when a creation task ends."""
        del self._tasks[key]
        if task.cancelled():
            return
        error = task.exception()
        rule = str(error.facts["rule"]) if isinstance(error, LettaTrouble) else ""
        if rule and rule != CONVERSATION_OVER:
            self._failure = _Failure(key, rule, monotonic())
        elif error is None or (rule and self._failure and self._failure.key == key):
            self._failure = None  # an agent was created, or the one that failed is not needed any more
        if error is not None:
            reason = rule or type(error).__name__
            log.warning("letta_agent_not_ready", conversation_id=key[0], kind=key[1].lower(), error=reason)

    # --- inside a transaction -------------------------------------------------------------------------------

    def _usable_agent(self, conversation_id: str, role: str, tx: Transaction) -> tuple[bool, str | None]:
        usable = turns_behind(conversation_id, tx) is not None
        return usable, self._current_agent(conversation_id, role, tx)

    def _current_agent(self, conversation_id: str, role: str, tx: Transaction) -> str | None:
        known = tx.letta.agent(conversation_id, role)
        if known is None or known.agent_id is None:
            return None
        blocks = {label: row.block_id for label, row in tx.letta.blocks(conversation_id).items()}
        return known.agent_id if known.recipe == self.specs.agent_fingerprint(role, blocks) else None


def blocks_are_synced(conversation_id: str, tx: Transaction) -> bool:
    """Whether every block in Letta is known to have our current text, with no write under way."""
    return turns_behind(conversation_id, tx) == 0


def turns_behind(conversation_id: str, tx: Transaction) -> int | None:
    """How many of the latest turns the blocks in Letta lack; None if that is not known.

    It is not known while a write is under way or after one that failed, if the blocks lack more than
    `CARRIED_TURNS`, or if they lack an edit.
    """
    known, stored = tx.letta.blocks(conversation_id), tx.blocks.load(conversation_id)
    if len(known) != len(Label):
        return None
    behind = 0
    for label, row in known.items():
        if row.intent is not None or row.digest is None:
            return None
        if label in stored and stored[label].digest != row.digest:
            latest = tx.blocks.latest_revisions(conversation_id, label, CARRIED_TURNS + 1)
            digests = [digest for digest, _ in latest]
            if row.digest not in digests:
                return None
            missing = latest[: digests.index(row.digest)]
            if any(turn is None for _, turn in missing):
                return None
            behind = max(behind, len(missing))
    return behind
