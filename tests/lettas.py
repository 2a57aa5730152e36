"""A Letta server as tests use it: agents under a tag of their own, and what a plain client reads there."""

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest
from letta_client import Letta

from agents.brains.asking import EXTRACTOR
from memory_blocks.limits import Limits
from memory_blocks.mirrors.letta import LettaMirror
from memory_blocks.models import Label
from memory_blocks.ports import ForeignChange, StoredBlock
from memory_blocks.trace import digest
from orchestrator import settings
from orchestrator.letta_agents import AgentRegistry, Recipes
from orchestrator.letta_blocks import LettaPlace, StoredJournal
from orchestrator.letta_server import LettaServer
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.settings import shipped_config
from orchestrator.store.database import Store, Transaction
from tests.houses import a_store, agents
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address


def letta_settings(base_url: str, tag: str, **chosen: object) -> settings.Letta:
    """What is configured where agents think with the tests' endpoint."""
    given = {
        "letta.base_url": base_url,
        "letta.model": LETTA_MODEL,
        "letta.embedding": LETTA_EMBEDDING,
        "letta.tag": tag,
        **{f"letta.{key}": value for key, value in chosen.items()},
    }
    return settings.load(given=given, environment={}).letta


def recipes(base_url: str, tag: str, **chosen: object) -> Recipes:
    """What agents are made of."""
    return Recipes(
        letta_settings(base_url, tag, **chosen), agents(), PromptShelf(shipped_config() / "prompts")
    )


@pytest.fixture
def tag(letta: Address) -> Iterator[str]:
    """A tag for this test alone; what is left under it afterwards is removed."""
    tag = f"test-{secrets.token_hex(6)}"
    yield tag
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        for agent in client.agents.list(tags=[tag], limit=200):
            client.agents.delete(agent_id=agent.id)
        for block in client.blocks.list(tags=[tag], limit=200):
            client.blocks.delete(block_id=block.id)


def digests_in_letta(client: Letta, tag: str, conversation_id: str) -> dict[str, str | None]:
    """The digests of a conversation's blocks there, of which there is one set."""
    tags = [tag, f"conversation:{conversation_id}", f"role:{EXTRACTOR}"]
    (extractor,) = client.agents.list(tags=tags, match_all_tags=True)
    return {str(each.label): digest(each.value) for each in client.agents.blocks.list(agent_id=extractor.id)}


def digests_here(conversation_id: str, tx: Transaction) -> dict[str, str | None]:
    """The same as they stand in our store."""
    return {label: block.digest for label, block in tx.blocks.load(conversation_id).items()}


def turns_in_letta(client: Letta, extractor: str) -> list[int]:
    """The turns that passages of the agent's archival memory speak of, one by one, in order."""
    tags = [tag for each in client.agents.passages.list(agent_id=extractor) for tag in each.tags or ()]
    ranges = [tag.partition(":")[2].split("-") for tag in tags if tag.startswith("turns:")]
    return sorted(turn for first, last in ranges for turn in range(int(first), int(last) + 1))


@asynccontextmanager
async def a_registry(
    base_url: str, store: Store, tag: str, holder: str = "worker_1", seconds: float = 10.0, **chosen: object
) -> AsyncIterator[AgentRegistry]:
    """A process's knowledge of the agents; `seconds` is its patience for one call."""
    server = LettaServer(base_url, seconds=seconds)
    try:
        yield AgentRegistry(server, store, recipes(base_url, tag, **chosen), Limits(), tag=tag, holder=holder)
    finally:
        await server.close()


@pytest.fixture
def opened(embedded: str) -> Iterator[Store]:
    """A store with Ann's conversation `c1` in it."""
    store = a_store(embedded)
    store.write_now(lambda tx: tx.conversations.create("ann", id="c1"))
    yield store
    store.close_now()


class HandEdited:
    """The Letta mirror, and somebody with a plain client who changes blocks there."""

    def __init__(self, mirror: LettaMirror, client: Letta, store: Store) -> None:
        self._mirror, self._client, self._store = mirror, client, store

    async def put(self, conversation_id: str, blocks: Mapping[Label, StoredBlock]) -> Sequence[ForeignChange]:
        """As the mirror does."""
        return await self._mirror.put(conversation_id, blocks)

    async def foreign(self, conversation_id: str) -> Sequence[ForeignChange]:
        """As the mirror does."""
        return await self._mirror.foreign(conversation_id)

    def text(self, conversation_id: str, label: Label) -> str:
        """A block as whoever looks there sees it."""
        return self._client.blocks.retrieve(block_id=self._id(conversation_id, label)).value

    def append(self, conversation_id: str, label: Label, content: str, *, actor: str) -> None:
        """Write a line more at the end."""
        self._write(conversation_id, label, f"{self.text(conversation_id, label)}\n{content}")

    def replace(self, conversation_id: str, label: Label, old: str, new: str, *, actor: str) -> None:
        """Write another text in place of one."""
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
    """A mirror in Letta; the conversation is begun if it was not."""
    if store.read_now(lambda tx: tx.conversations.get(conversation_id)) is None:
        store.write_now(lambda tx: tx.conversations.create("ann", id=conversation_id))
    with Letta(base_url=by_hand or base_url, max_retries=0) as client:
        async with a_registry(base_url, store, tag, seconds=seconds) as registry:
            yield HandEdited(LettaMirror(LettaPlace(registry, store), StoredJournal(store)), client, store)
