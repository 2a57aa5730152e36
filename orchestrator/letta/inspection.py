"""Compares what exists in Letta with our own tables."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Literal

from agents.models.requests import EXTRACTOR
from memory_blocks.models import Label
from memory_blocks.ports import StoredBlock
from memory_blocks.trace import digest
from orchestrator.letta.agents import AgentRegistry, turns_behind
from orchestrator.letta.server import LettaAgent, LettaArchive, LettaBlock, LettaIdentity
from orchestrator.store import rows
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store, Transaction

State = Literal["ok", "due", "behind", "drifted", "missing", "over", "orphaned"]
"""`due`: the text lacks the latest turns, and is written when the conversation pauses.
`behind`: the text is not current. `drifted`: the settings differ. `missing`: it does not exist in Letta.
`over`: its conversation is archived or deleted. `orphaned`: our tables do not know it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one agent, block, archive or identity. Only agents have a name."""

    state: State
    conversation_id: str
    what: str
    role: str = ""
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What our tables say.

    `blocks` are ids by conversation and label. `over` are conversations that are archived or deleted, `busy`
    those for which a process is creating something now. `people` have an active conversation.
    """

    agents: Sequence[rows.LettaAgent]
    blocks: Mapping[str, Mapping[str, str]]
    over: Set[str]
    busy: Set[str]
    people: Set[str]

    @property
    def conversations(self) -> Set[str]:
        """All conversations that have something in Letta, or may have soon."""
        return {*self.blocks, *self.over, *self.busy, *(each.conversation_id for each in self.agents)}

    def may_own_agent(self, id: str, conversation_id: str) -> bool:
        """Whether an agent belongs to a conversation, or may have been created for it just now."""
        return conversation_id in self.busy or any(each.agent_id == id for each in self.agents)

    def may_own_block(self, id: str, conversation_id: str) -> bool:
        """Whether a block belongs to a conversation, or may have been created for it just now."""
        return conversation_id in self.busy or id in self.blocks.get(conversation_id, {}).values()


@dataclass(frozen=True, slots=True)
class _Existing:
    """What exists in Letta under our tag, or with a name or key that begins with it."""

    agents: Mapping[str, LettaAgent]
    blocks: Mapping[str, LettaBlock]
    archives: Sequence[LettaArchive]
    identities: Sequence[LettaIdentity]


class Inspector:
    """Finds what is missing, outdated, changed or left over in Letta. It changes nothing."""

    def __init__(self, registry: AgentRegistry, store: Store) -> None:
        self._registry, self._store = registry, store
        self._server, self._specs = registry.server, registry.specs

    async def inspect(self) -> list[Finding]:
        """The state of everything that exists in Letta or should.

        List Letta before reading our own tables. A conversation created in between would otherwise look like
        an orphan.
        """
        existing = await self._list_existing()
        known = await self._store.read(_read_known)
        return [
            *(await self._known_agents(known, existing)),
            *_orphans(known, existing),
            *(await self._archives(known, existing.archives)),
            *self._orphaned_identities(known, existing.identities),
        ]

    async def _list_existing(self) -> _Existing:
        blocks = await self._server.blocks(self._specs.tag)
        agents = await self._server.agents(self._specs.tag)
        identities = await self._server.identities()
        archives = await self._server.archives()
        return _Existing(
            {each.id: each for each in agents},
            {each.id: each for each in blocks},
            [each for each in archives if each.name.startswith(self._specs.archive_name())],
            [each for each in identities if each.key.startswith(self._specs.identity_key())],
        )

    async def _known_agents(self, known: _Known, existing: _Existing) -> list[Finding]:
        """The agents that our tables know, each extractor followed by its blocks."""
        found: list[Finding] = []
        for row in known.agents:
            conversation_id, id = row.conversation_id, row.agent_id or ""
            agent = existing.agents.get(id) or await self._server.find_agent(id)  # its tags may be changed
            block_ids = known.blocks.get(conversation_id, {})
            state: State = "ok"
            drift: list[str] = []
            if conversation_id in known.over:
                state = "over"
            elif agent is None:
                state = "missing"
            elif drift := self._specs.agent_drift(row, agent, block_ids):
                state = "drifted"
            what = _with_drift(f"agent {row.role.lower()}", drift)
            found.append(Finding(state, conversation_id, what, row.role, id, agent.name if agent else ""))
            if row.role == EXTRACTOR and state != "over":
                found.extend(await self._known_blocks(conversation_id, block_ids, existing))
        return found

    async def _known_blocks(
        self, conversation_id: str, ids: Mapping[str, str], existing: _Existing
    ) -> list[Finding]:
        """The four blocks of a conversation, compared with ours."""
        blocks = {
            label: block
            for label, id in ids.items()
            if (block := existing.blocks.get(id) or await self._server.find_block(id))
        }
        stored, copied = await self._store.read(partial(_stored_and_copied, conversation_id))
        found = []
        for label in Label:
            block = blocks.get(label)
            state: State = "ok"
            drift: list[str] = []
            if block is None:
                state = "missing"
            elif drift := self._specs.block_drift(conversation_id, block):
                state = "drifted"
            elif label in stored and not await self._has_text(block, stored[label].digest):
                state = "due" if digest(block.value) == copied.get(label) else "behind"
            what = _with_drift(f"block {label}", drift)
            found.append(Finding(state, conversation_id, what, EXTRACTOR, block.id if block else ""))
        return found

    async def _has_text(self, listed: LettaBlock, wanted: str) -> bool:
        """Whether a block has our text. One that differs is read again: a turn may just have written it."""
        return digest(listed.value) == wanted or digest((await self._server.block(listed.id)).value) == wanted

    async def _archives(self, known: _Known, archives: Sequence[LettaArchive]) -> list[Finding]:
        conversations = {self._specs.archive_name(each): each for each in known.conversations}
        found = []
        for archive in archives:
            conversation_id = conversations.get(archive.name, "")
            if conversation_id:
                state: State = "over" if conversation_id in known.over else "ok"
                found.append(Finding(state, conversation_id, "archive", id=archive.id))
            # an attached archive may belong to another server, whose tag begins with ours
            elif not await self._server.is_attached(archive.id):
                found.append(Finding("orphaned", "", f"archive {archive.id}", id=archive.id))
        return found

    def _orphaned_identities(self, known: _Known, identities: Sequence[LettaIdentity]) -> Iterator[Finding]:
        keys = {self._specs.identity_key(each) for each in known.people}
        for identity in identities:
            if identity.key not in keys:
                yield Finding("orphaned", "", f"person {identity.id}", id=identity.id)


def _orphans(known: _Known, existing: _Existing) -> Iterator[Finding]:
    """The agents and blocks with our tag that our tables do not know."""
    for agent in existing.agents.values():
        conversation_id = _conversation_of(agent.tags)
        if not known.may_own_agent(agent.id, conversation_id):
            yield Finding("orphaned", conversation_id, f"agent {agent.id}", id=agent.id, name=agent.name)
    for block in existing.blocks.values():
        conversation_id = _conversation_of(block.tags)
        if not known.may_own_block(block.id, conversation_id):
            yield Finding("orphaned", conversation_id, f"block {block.id}", id=block.id)


def _with_drift(what: str, drift: Sequence[str]) -> str:
    return f"{what}: {', '.join(drift)}" if drift else what


def _conversation_of(tags: frozenset[str]) -> str:
    return next((tag.partition(":")[2] for tag in sorted(tags) if tag.startswith("conversation:")), "")


def _stored_and_copied(
    conversation_id: str, tx: Transaction
) -> tuple[Mapping[Label, StoredBlock], Mapping[str, str | None]]:
    """The blocks of a conversation, and the digests of earlier texts that Letta may have for now."""
    may_wait = turns_behind(conversation_id, tx) is not None
    copied = tx.letta.blocks(conversation_id) if may_wait else {}
    stored = SqlBlockStore(tx.blocks).load(conversation_id)
    return stored, {label: row.digest for label, row in copied.items()}


def _read_known(tx: Transaction) -> _Known:
    agents = tx.letta.all_agents()
    blocks: dict[str, dict[str, str]] = {}
    for each in tx.letta.all_blocks():
        blocks.setdefault(each.conversation_id, {})[each.label] = each.block_id
    return _Known(
        [each for each in agents if each.agent_id],
        blocks,
        set(tx.letta.ended()),
        {each.conversation_id for each in agents if each.expires_at is not None and each.expires_at > tx.now},
        tx.letta.people_with_active_conversations(),
    )
