"""A Letta server in tests: agents with their own tag, and what a plain client reads there."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from letta_client import Letta
from letta_client.types import BlockResponse

from agents.models.requests import EXTRACTOR
from memory_blocks.limits import DEFAULTS, Limits
from memory_blocks.mirrors.letta import LettaMirror
from memory_blocks.models import Label
from memory_blocks.ports import ForeignChange, StoredBlock
from memory_blocks.trace import digest
from orchestrator import settings
from orchestrator.letta.agents import AgentRegistry, blocks_are_synced
from orchestrator.letta.blocks import LettaCopies, StoredJournal
from orchestrator.letta.server import LettaAgent, LettaServer
from orchestrator.letta.specs import AgentSpecs
from orchestrator.store.engine.database import Store, Transaction
from tests.support.orchestrators import a_store, agents, shipped_prompts
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address


def letta_settings(base_url: str, tag: str, **chosen: object) -> settings.LettaSettings:
    """The settings for agents that use the model endpoint of the tests."""
    given = {
        "letta.base_url": base_url,
        "letta.model": LETTA_MODEL,
        "letta.embedding": LETTA_EMBEDDING,
        "letta.tag": tag,
        **{f"letta.{key}": value for key, value in chosen.items()},
    }
    return settings.load(given=given, environment={}).letta


def some_specs(base_url: str, tag: str, limits: Limits = DEFAULTS, **chosen: object) -> AgentSpecs:
    """The specifications of agents, with these settings."""
    prompts = shipped_prompts(in_blocks=True)
    return AgentSpecs(letta_settings(base_url, tag, **chosen), agents(), prompts, limits)


@pytest.fixture
def tag(letta: Address) -> Iterator[str]:
    """A tag for this test alone. On a server that we did not start, what is left under it is deleted."""
    tag = f"test-{secrets.token_hex(6)}"
    yield tag
    if "LETTA_BASE_URL" not in os.environ:
        return  # this server is deleted after the run
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        for agent in client.agents.list(tags=[tag], limit=200):
            client.agents.delete(agent_id=agent.id)
        for block in client.blocks.list(tags=[tag], limit=200):
            client.blocks.delete(block_id=block.id)


def digests_in_letta(client: Letta, tag: str, conversation_id: str) -> dict[str, str | None]:
    """The digests of a conversation's blocks in Letta. There must be one set."""
    tags = [tag, f"conversation:{conversation_id}", f"role:{EXTRACTOR}"]
    (extractor,) = client.agents.list(tags=tags, match_all_tags=True).items  # one page needs one request
    blocks = client.agents.blocks.list(agent_id=extractor.id).items
    return {str(each.label): digest(each.value) for each in blocks}


def digests_here(conversation_id: str, tx: Transaction) -> dict[str, str | None]:
    """The digests of the same blocks in our store."""
    return {label: block.digest for label, block in tx.blocks.load(conversation_id).items()}


def turns_in_letta(client: Letta, extractor: str) -> list[int]:
    """The turns in the passages of the agent's archival memory, in order."""
    tags = [tag for each in client.agents.passages.list(agent_id=extractor) for tag in each.tags or ()]
    ranges = [tag.partition(":")[2].split("-") for tag in tags if tag.startswith("turns:")]
    return sorted(turn for first, last in ranges for turn in range(int(first), int(last) + 1))


@asynccontextmanager
async def a_registry(
    base_url: str,
    store: Store,
    tag: str,
    holder: str = "worker_1",
    seconds: float = 10.0,
    limits: Limits = DEFAULTS,
    **chosen: object,
) -> AsyncIterator[AgentRegistry]:
    """The registry of one process; one call may take `seconds`."""
    server = LettaServer(base_url, seconds=seconds)
    try:
        yield AgentRegistry(server, store, some_specs(base_url, tag, limits, **chosen), holder=holder)
    finally:
        await server.close()


@asynccontextmanager
async def held_back(registry: AgentRegistry) -> AsyncIterator[asyncio.Event]:
    """A registry whose server creates no agent before the event is set."""
    let_go, make = asyncio.Event(), registry.server.create_agent

    async def make_at_last(recipe: Mapping[str, Any]) -> LettaAgent:
        await let_go.wait()
        return await make(recipe)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry.server, "create_agent", make_at_last)
        yield let_go


async def until_synced(store: Store, conversation_id: str) -> None:
    """Wait until Letta has what the last turn wrote. The last sentence does not wait for it."""
    while not await store.read(partial(blocks_are_synced, conversation_id)):  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(0.05)


def assert_all_stand(blocks: Iterable[BlockResponse], store: Store, conversation_id: str) -> None:
    """Assert that a plain client reads the four stored blocks, with our limits and metadata."""
    stored = store.read_now(lambda tx: tx.blocks.load(conversation_id))
    there = {each.label: each for each in blocks}
    assert {label: (each.limit, each.value) for label, each in there.items()} == {
        label: (Limits().of(label), stored[label].value) for label in Label
    }
    noted = {label: each.metadata or {} for label, each in there.items()}
    assert {label: (each["digest"], each["revision"]) for label, each in noted.items()} == {
        label: (digest(each.value), stored[str(label)].revision) for label, each in there.items()
    }
    assert {label: digest(each.value) for label, each in there.items()} == {
        label: stored[label].digest for label in Label
    }


@pytest.fixture
def opened(embedded: str) -> Iterator[Store]:
    """A store with Ann's conversation `c1` in it."""
    store = a_store(embedded)
    store.write_now(lambda tx: tx.conversations.create("ann", id="c1"))
    yield store
    store.close_now()


class HandEdited:
    """The Letta mirror, with methods that change its blocks with a plain client."""

    def __init__(self, mirror: LettaMirror, client: Letta, store: Store) -> None:
        self._mirror, self._client, self._store = mirror, client, store

    async def put(
        self,
        conversation_id: str,
        blocks: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> Sequence[ForeignChange]:
        """See the mirror."""
        return await self._mirror.put(conversation_id, blocks, followed)

    async def foreign_changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        """See the mirror."""
        return await self._mirror.foreign_changes(conversation_id)

    def text(self, conversation_id: str, label: Label) -> str:
        """The text of a block in Letta."""
        return self._client.blocks.retrieve(block_id=self._id(conversation_id, label)).value

    def append(self, conversation_id: str, label: Label, content: str, *, actor: str) -> None:
        """Append a line to a block in Letta."""
        self._write(conversation_id, label, f"{self.text(conversation_id, label)}\n{content}")

    def replace(self, conversation_id: str, label: Label, old: str, new: str, *, actor: str) -> None:
        """Replace a text in a block in Letta."""
        self._write(conversation_id, label, self.text(conversation_id, label).replace(old, new))

    def _id(self, conversation_id: str, label: Label) -> str:
        return self._store.read_now(lambda tx: tx.letta.blocks(conversation_id))[label].block_id

    def _write(self, conversation_id: str, label: Label, value: str) -> None:
        self._client.blocks.update(block_id=self._id(conversation_id, label), value=value)


@asynccontextmanager
async def a_mirror(
    base_url: str,
    store: Store,
    tag: str,
    conversation_id: str = "c1",
    *,
    by_hand: str = "",
    seconds: float = 10.0,
) -> AsyncIterator[HandEdited]:
    """A mirror in Letta. The conversation is created if it does not exist."""
    if store.read_now(lambda tx: tx.conversations.get(conversation_id)) is None:
        store.write_now(lambda tx: tx.conversations.create("ann", id=conversation_id))
    with Letta(base_url=by_hand or base_url, max_retries=0) as client:
        async with a_registry(base_url, store, tag, seconds=seconds) as registry:
            yield HandEdited(LettaMirror(LettaCopies(registry, store), StoredJournal(store)), client, store)
