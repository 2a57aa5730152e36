"""What is done in Letta beside the turns: what fell behind is shown, what rotated out archived, what is over
removed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, Literal

from agents.brains.asking import EXTRACTOR
from memory_blocks.models import Conversation, Label
from memory_blocks.ports import StoredBlock
from memory_blocks.trace import digest
from orchestrator import faults
from orchestrator.errors import AnamnesisError, LettaTrouble
from orchestrator.letta_agents import CLAIM_SECONDS, AgentRegistry
from orchestrator.letta_server import LettaBlock
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
    """How something in Letta stands: an agent, a block or a person, by its id; an agent also by its name."""

    state: State
    conversation_id: str
    what: str
    role: str = ""
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What our tables say: agents that were made, blocks by conversation and label, which conversations are
    over, for which somebody makes something at this moment, and who has one that goes on."""

    agents: Sequence[rows.LettaAgent]
    blocks: Mapping[str, Mapping[str, str]]
    over: Set[str]
    busy: Set[str]
    people: Set[str]

    @property
    def conversations(self) -> Set[str]:
        """All for which something stands there, or may in a moment."""
        return {*self.blocks, *self.over, *self.busy, *(each.conversation_id for each in self.agents)}

    def has_agent(self, id: str, conversation_id: str) -> bool:
        """Whether that agent is somebody's, or may be so in a moment."""
        return conversation_id in self.busy or any(each.agent_id == id for each in self.agents)

    def has_block(self, id: str, conversation_id: str) -> bool:
        """Whether that block is."""
        return conversation_id in self.busy or id in self.blocks.get(conversation_id, {}).values()


class Upkeep:
    """Looks after what stands in Letta, in the background or when told to. Others may do so, too."""

    def __init__(self, registry: AgentRegistry, store: Store, shown: Shown, *, holder: str) -> None:
        self._registry, self._store, self._shown, self._holder = registry, store, shown, holder

    async def keep_looking(self) -> None:
        """For ever: make good what turns left undone while Letta was away, archive what rotated out, and
        remove what stands for conversations that are over."""
        while True:
            try:
                await self.look(SETTLED)
            except (AnamnesisError, TimeoutError) as error:
                kind = error.problem.name if isinstance(error, AnamnesisError) else "timed_out"
                log.warning("letta_not_looked_after", error=kind)
            except Exception as error:  # whatever it is, somebody has to look again
                log.error("letta_not_looked_after", exc_info=error)
            await asyncio.sleep(EVERY_SECONDS)

    async def look(self, settled: timedelta = timedelta()) -> int:
        """Do what is to be done now; tell for how many conversations something was.

        What one conversation is refused keeps no other waiting, unless that would be told the same.
        """
        over, behind = await self._store.read(lambda tx: (tx.letta.over(), tx.letta.behind(tx.now - settled)))
        for conversation_id in over:
            await self._alone(self._registry.forget, conversation_id)
        for conversation_id in behind:
            await self._alone(self.catch_up, conversation_id)
        rotated = await self._store.read(lambda tx: tx.letta.to_archive(EXTRACTOR))
        for conversation_id in rotated:
            await self._alone(self.archive, conversation_id)
        return len({*over, *behind, *rotated})

    async def _alone(self, do: Callable[[str], Awaitable[None]], conversation_id: str) -> None:
        try:
            await do(conversation_id)
        except AnamnesisError as error:
            if isinstance(error, LettaTrouble) and error.is_general:
                raise
            log.warning("letta_not_looked_after", conversation_id=conversation_id, error=error.problem.name)

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
        if not await self._store.write(partial(_claim, conversation_id, self._holder)):
            return  # somebody else is at it
        try:
            planned = await self._store.write(partial(_planned, conversation_id))
            faults.point("after_plan_commit")
            for passage, turns in planned:
                if not await self._store.write(partial(_renew, conversation_id, self._holder)):
                    return  # this took so long that somebody else goes on with it
                await self._keep(agent_id, passage, turns)
        except LettaTrouble as trouble:
            if trouble.is_missing:
                await self._registry.lost(conversation_id, EXTRACTOR, agent_id)
                self._registry.prepare(conversation_id)
            raise
        finally:
            await self._store.write(lambda tx: tx.letta.let_go(conversation_id, EXTRACTOR, self._holder))

    async def _keep(
        self, agent_id: str, passage: rows.LettaPassage, turns: Sequence[rows.ArchivedTurn]
    ) -> None:
        known_by = f"digest:{passage.digest}"
        passage_id = await self._registry.server.passage_tagged(agent_id, known_by)
        if passage_id is None:
            tags = [
                f"conversation:{passage.conversation_id}",
                f"turns:{passage.first_turn}-{passage.last_turn}",
                known_by,
            ]
            passage_id = await self._registry.server.remember(agent_id, _text(turns), tags)
            faults.point("after_passage_put")
        await self._store.write(partial(_kept, passage, passage_id))
        faults.point("after_kept_commit")

    async def inspect(self) -> list[Found]:
        """Everything that stands there or should, and how.

        Who is there is asked first: what begins meanwhile is known here and not yet looked for there.
        """
        server, tag = self._registry.server, self._registry.tag
        blocks = await server.blocks(tag)
        there = {each.id: each for each in await server.agents(tag)}
        people = await server.people()
        archives = [
            each for each in await server.archives() if each.name.startswith(self._registry.archive_name())
        ]
        known = await self._store.read(_known)
        found: list[Found] = []
        for agent in known.agents:
            conversation_id, id = agent.conversation_id, agent.agent_id or ""
            standing = there.get(id) or await server.agent(id)  # it may have another tag
            ids = known.blocks.get(conversation_id, {})
            state: State = "ok"
            drifts: list[str] = []
            if conversation_id in known.over:
                state = "over"
            elif standing is None:
                state = "missing"
            elif drifts := self._registry.drifts(agent, standing, ids):
                state = "drifted"
            what = ": ".join(filter(None, [f"agent {agent.role.lower()}", ", ".join(drifts)]))
            name = standing.name if standing else ""
            found.append(Found(state, conversation_id, what, agent.role, agent.agent_id or "", name))
            if agent.role == EXTRACTOR and state != "over":
                tagged = {each.id: each for each in blocks}
                by_label = {
                    label: block
                    for label, id in ids.items()
                    if (block := tagged.get(id) or await server.block_if_there(id))
                }
                found.extend(await self._compare(conversation_id, by_label))
        for id, each in there.items():
            if not known.has_agent(id, _conversation_of(each.tags)):
                found.append(
                    Found("orphaned", _conversation_of(each.tags), f"agent {id}", id=id, name=each.name)
                )
        for block in blocks:
            if not known.has_block(block.id, _conversation_of(block.tags)):
                found.append(
                    Found("orphaned", _conversation_of(block.tags), f"block {block.id}", id=block.id)
                )
        conversations = {self._registry.archive_name(each): each for each in known.conversations}
        for archive in archives:
            conversation_id = conversations.get(archive.name, "")
            if conversation_id:
                state = "over" if conversation_id in known.over else "ok"
                found.append(Found(state, conversation_id, "archive", id=archive.id))
            elif not await server.is_attached(
                archive.id
            ):  # else it may be of a house whose tag begins as ours
                found.append(Found("orphaned", "", f"archive {archive.id}", id=archive.id))
        ours = {self._registry.key(each) for each in known.people}
        for person in people:
            if person.key.startswith(self._registry.key()) and person.key not in ours:
                found.append(Found("orphaned", "", f"person {person.id}", id=person.id))
        return found

    async def _compare(self, conversation_id: str, there: Mapping[str, LettaBlock]) -> Sequence[Found]:
        """Whether each block there is ours: the same digest of the same text, in the same form."""
        stored = await self._store.read(lambda tx: SqlBlockStore(tx.blocks).load(conversation_id))
        found = []
        for label in Label:
            state: State = "ok"
            drifts: list[str] = []
            if label not in there:
                state = "missing"
            elif drifts := self._registry.block_drifts(conversation_id, there[label]):
                state = "drifted"
            elif label in stored and not await self._is_shown(there[label], stored[label].digest):
                state = "behind"
            what = ": ".join(filter(None, [f"block {label}", ", ".join(drifts)]))
            id = there[label].id if label in there else ""
            found.append(Found(state, conversation_id, what, EXTRACTOR, id))
        return found

    async def _is_shown(self, listed: LettaBlock, wanted: str) -> bool:
        """Its text may have been written since the list was made."""
        return (
            digest(listed.value) == wanted
            or digest((await self._registry.server.block(listed.id)).value) == wanted
        )

    async def sync(self) -> list[Found]:
        """Bring agents to their recipes and blocks to what stands here; what is still wrong afterwards."""
        to_renew: set[tuple[str, str]] = set()
        for each in await self.inspect():
            if each.state == "missing" and each.what.startswith("agent"):
                await self._registry.lost(each.conversation_id, each.role, each.id)
            elif each.state == "missing":
                label = Label(each.what.removeprefix("block "))
                await self._registry.lost_blocks(each.conversation_id, {label})
            if each.state == "drifted" or (each.state == "missing" and each.role == EXTRACTOR):
                to_renew.add((each.conversation_id, each.role))
        for conversation_id, role in sorted(to_renew, key=lambda each: each[1] != EXTRACTOR):
            await self._registry.renew(conversation_id, role)
        for each in await self.inspect():
            if each.state == "behind":
                await self.catch_up(each.conversation_id)
        await self.look()
        return [each for each in await self.inspect() if each.state in ("behind", "drifted", "missing")]

    async def prune(self) -> list[Found]:
        """Remove what belongs to archived conversations, to none or to nobody that we know; tell what."""
        gone = [each for each in await self.inspect() if each.state in ("over", "orphaned")]
        for conversation_id in {each.conversation_id for each in gone if each.state == "over"}:
            await self._registry.forget(conversation_id)
        server = self._registry.server
        remove = {
            "agent": self._registry.remove_agent,
            "archive": server.delete_archive,
            "block": server.delete_block,
            "person": server.delete_person,
        }
        for each in gone:
            if each.state == "orphaned":
                await remove[each.what.split()[0]](each.id)
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


def _renew(conversation_id: str, holder: str, tx: Transaction) -> bool:
    return tx.letta.renew(conversation_id, EXTRACTOR, holder, seconds=CLAIM_SECONDS)


def _known(tx: Transaction) -> _Known:
    agents = tx.letta.all_agents()
    blocks: dict[str, dict[str, str]] = {}
    for each in tx.letta.all_blocks():
        blocks.setdefault(each.conversation_id, {})[each.label] = each.block_id
    return _Known(
        [each for each in agents if each.agent_id],
        blocks,
        set(tx.letta.over()),
        {each.conversation_id for each in agents if each.expires_at is not None and each.expires_at > tx.now},
        tx.letta.people(),
    )


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
