"""Turns that rotated out of the blocks, copied into Letta's archival memory as passages."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from agents.models.requests import EXTRACTOR
from memory_blocks.trace import digest
from orchestrator.errors import LettaTrouble
from orchestrator.letta.agents import CLAIM_SECONDS, AgentRegistry
from orchestrator.ops import faults
from orchestrator.store import rows
from orchestrator.store.engine.database import Store, Transaction

MAX_PASSAGE: Final = 4_000
"""Maximum length of a passage of several turns. A single longer turn is a passage of its own."""


class PassageArchive:
    """Writes each archived turn into Letta once, also if several processes try."""

    def __init__(self, registry: AgentRegistry, store: Store, *, holder: str) -> None:
        self._registry, self._store, self._holder = registry, store, holder

    async def archive(self, conversation_id: str) -> None:
        """Write a conversation's archived turns that are not in Letta yet.

        Which turns form a passage is first committed in our tables. Before a passage is written, Letta is
        searched for it, because an earlier attempt may have broken off after writing it.
        """
        mine = conversation_id, EXTRACTOR, self._holder
        agent_id = await self._registry.agent(conversation_id, EXTRACTOR)
        if not await self._store.write(lambda tx: tx.letta.claim(*mine, seconds=CLAIM_SECONDS)):
            return  # another process is doing it
        try:
            planned = await self._store.write(partial(_plan, conversation_id))
            faults.point("after_plan_commit")
            for passage, turns in planned:
                if not await self._store.write(lambda tx: tx.letta.renew_claim(*mine, seconds=CLAIM_SECONDS)):
                    return  # the claim expired, and another process took over
                await self._write(agent_id, passage, turns)
        except LettaTrouble as trouble:
            if trouble.is_missing:
                await self._registry.mark_missing(conversation_id, EXTRACTOR, agent_id)
                self._registry.prepare(conversation_id)
            raise
        finally:
            await self._store.write(lambda tx: tx.letta.release_claim(*mine))

    async def _write(
        self, agent_id: str, passage: rows.LettaPassage, turns: Sequence[rows.ArchivedTurn]
    ) -> None:
        digest_tag = f"digest:{passage.digest}"
        passage_id = await self._registry.server.find_passage(agent_id, digest_tag)
        if passage_id is None:
            tags = [
                f"conversation:{passage.conversation_id}",
                f"turns:{passage.first_turn}-{passage.last_turn}",
                digest_tag,
            ]
            passage_id = await self._registry.server.create_passage(agent_id, _text(turns), tags)
            faults.point("after_passage_put")
        await self._store.write(lambda tx: tx.letta.record_passage(passage, passage_id))
        faults.point("after_kept_commit")


# --- inside a transaction -----------------------------------------------------------------------------------


def _plan(conversation_id: str, tx: Transaction) -> list[tuple[rows.LettaPassage, list[rows.ArchivedTurn]]]:
    """Decide which turns form a passage. Returns all passages that are not known to be in Letta."""
    for turns in _group(tx.letta.turns_without_passage(conversation_id)):
        tx.letta.plan_passage(conversation_id, [turn.turn_id for turn in turns], digest(_text(turns)))
    return tx.letta.planned_passages(conversation_id)


# --- values -------------------------------------------------------------------------------------------------


def _group(turns: Sequence[rows.ArchivedTurn]) -> Iterator[list[rows.ArchivedTurn]]:
    """Group consecutive turns that fit into one passage."""
    group: list[rows.ArchivedTurn] = []
    for turn in turns:
        size = sum(len(each.value) for each in group)
        if group and (turn.turn_id != group[-1].turn_id + 1 or size + len(turn.value) > MAX_PASSAGE):
            yield group
            group = []
        group.append(turn)
    if group:
        yield group


def _text(turns: Sequence[rows.ArchivedTurn]) -> str:
    return "\n".join(turn.value for turn in turns)
