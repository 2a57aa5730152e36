"""Client of a Letta server: agents, blocks, passages, archives and identities.

Letta does not compare versions when it writes, and a call that broke off may or may not have been carried
out. So Letta's client library retries nothing here. Only calls that do no harm when made twice are retried;
before creating something, callers check whether it exists.

The library takes over a second to load. Import this module only where it is needed, and not on an event loop.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

import httpx
from letta_client import APIConnectionError, APIError, APIStatusError, AsyncLetta, Omit, omit
from letta_client.pagination import AsyncArrayPage
from letta_client.types import AgentState, Archive, BlockResponse
from letta_client.types.agents import Block, ToolCallMessage
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from agents.models.servers.http import parse_retry_after
from orchestrator.errors import LettaTrouble

T = TypeVar("T")

PAGE_SIZE: Final = 100
"""How many items of a list are requested at a time."""

CONCURRENT_CALLS: Final = 4
"""How many calls run at a time. Letta handles them one by one, so more would only make each wait longer."""

LATEST_MESSAGES: Final = 20
"""How many of an agent's latest messages are searched for edits of its blocks."""

LONGEST_WAIT_SECONDS: Final = 1.0
"""Longest pause before a retry. If Letta asks for a longer one, the call fails."""

ALL_PASSAGES: Final = 10_000
"""Result limit of a passage search. Letta applies it before it filters by tag, so it must cover them all."""

_ATTEMPTS: Final = 3
_BACKOFF: Final = wait_random_exponential(multiplier=0.05, max=0.5)
_RETRYABLE_STATUSES: Final = (408, 409, 425, 429)
_CONNECT_SECONDS: Final = 2.0
_IDENTITIES: Final = "/v1/identities/"
_ARCHIVES: Final = "/v1/archives/"
_DEFAULT_ARCHIVE: Final = "Default archive created automatically"
_AGENT_FIELDS: Final[list[Any]] = ["agent.blocks", "agent.tags", "agent.tools"]


@dataclass(frozen=True, slots=True)
class LettaBlock:
    """A block in Letta. `written_digest` is the digest that we wrote together with our last text."""

    id: str
    label: str
    value: str
    limit: int
    written_digest: str
    description: str = ""
    read_only: bool = False
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LettaAgent:
    """An agent in Letta. `settings` has the keys of its specification; `owner_tag` is its creator's tag."""

    id: str
    name: str
    tags: frozenset[str]
    blocks: Mapping[str, LettaBlock]
    tools: frozenset[str] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)
    owner_tag: str = ""


@dataclass(frozen=True, slots=True)
class LettaIdentity:
    """The identity of a person in Letta. We choose its key."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class LettaArchive:
    """A store of passages, which outlives its agent. Letta creates a default one for an agent by itself."""

    id: str
    name: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """A call of a memory tool by an agent: the texts it wrote into a block, and the texts they replaced."""

    label: str
    written: frozenset[str]
    replaced: frozenset[str]

    def explains(self, before: str, after: str) -> bool:
        """Whether this edit can have turned `before` into `after`. The time of the edit is not considered."""
        if self.written:
            return any(after.count(text) > before.count(text) for text in self.written)
        return any(after.count(text) < before.count(text) for text in self.replaced)


class LettaServer:
    """Pooled connections to one Letta server.

    Letta's errors quote what was sent to it. Ours carry only a status code or a rule.
    """

    def __init__(self, base_url: str, api_key: str = "", *, seconds: float = 10.0) -> None:
        self._seconds, timeout = seconds, httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
        self._letta = AsyncLetta(
            base_url=base_url.rstrip("/"),
            api_key=api_key or None,
            timeout=timeout,
            max_retries=0,
            http_client=httpx.AsyncClient(timeout=timeout, trust_env=False),
        )
        self._agents, self._blocks = self._letta.agents, self._letta.blocks  # loads their modules now
        self._slots, self._last_response_at = asyncio.Semaphore(CONCURRENT_CALLS), 0.0

    async def close(self) -> None:
        """Close the connections."""
        await self._letta.close()

    def last_response_at(self) -> float:
        """When the server last responded, even with an error; on the clock of `monotonic`."""
        return self._last_response_at

    async def check_health(self) -> None:
        """Raise `LettaTrouble` if the server does not respond."""
        await self._call(self._letta.health, lambda health: str(health.version))

    # --- identities and agents ------------------------------------------------------------------------------

    async def ensure_identity(self, key: str, name: str) -> str:
        """The id of the identity with this key, created if needed. The library has no call for it."""
        body = {"identifier_key": key, "name": name, "identity_type": "user"}
        create = partial(self._letta.post, _IDENTITIES, cast_to=dict[str, Any], body=body)
        try:
            return await self._call(create, lambda created: str(created["id"]))
        except LettaTrouble as trouble:  # it exists already, or it is unknown whether it was created
            if not trouble.retryable and not trouble.outcome_unknown:
                raise
        if not (found := await self._identities(identifier_key=key)):
            raise LettaTrouble("no_identity")
        return found[0].id

    async def identities(self, key: str = "") -> list[LettaIdentity]:
        """The identity with this key; without a key, all identities."""
        if key:
            return await self._identities(identifier_key=key)
        found: list[LettaIdentity] = []
        after: dict[str, str] = {}
        while True:
            page = await self._identities(limit=str(PAGE_SIZE), order="asc", **after)
            found += page
            if len(page) < PAGE_SIZE:
                return found
            after = {"after": page[-1].id}

    async def delete_identity(self, identity_id: str) -> None:
        """Delete an identity, if it exists. Its agents stay."""
        await self._delete(partial(self._letta.delete, f"{_IDENTITIES}{identity_id}", cast_to=object))

    async def _identities(self, **query: str) -> list[LettaIdentity]:
        get = partial(
            self._letta.get, _IDENTITIES, cast_to=list[dict[str, Any]], options={"params": dict(query)}
        )
        return await self._retry(get, _parse_identities)

    async def create_agent(self, request: Mapping[str, Any]) -> LettaAgent:
        """Create an agent. If the call breaks off, the agent may exist: search for its tags."""
        return await self._call(partial(self._agents.create, **request), _parse_agent)

    async def update_agent(self, agent_id: str, change: Mapping[str, Any]) -> None:
        """Change an agent's settings."""
        await self._retry(partial(self._agents.update, agent_id, **change), _parse_agent)

    async def agents(self, *tags: str) -> list[LettaAgent]:
        """The agents that have all these tags."""
        get = partial(self._agents.list, tags=tags, match_all_tags=True, include=_AGENT_FIELDS)
        return await self._list(get, _parse_agent)

    async def find_agent(self, agent_id: str) -> LettaAgent | None:
        """One agent, whatever its tags; None if it does not exist."""
        return await self._find(partial(self._agents.retrieve, agent_id, include=_AGENT_FIELDS), _parse_agent)

    async def delete_agent(self, agent_id: str) -> None:
        """Delete an agent, if it exists. Its blocks and its archive stay."""
        await self._delete(partial(self._agents.delete, agent_id))

    async def tool_ids(self, names: Sequence[str]) -> list[str]:
        """The ids of the server's tools with these names."""
        if not names:
            return []
        get = partial(self._letta.tools.list, names=list(names))
        return await self._retry(get, _each_item(lambda tool: str(tool.id)))

    # --- blocks ---------------------------------------------------------------------------------------------

    async def create_block(self, request: Mapping[str, Any]) -> LettaBlock:
        """Create a block. If the call breaks off, the block may exist: search for its tags."""
        return await self._call(partial(self._blocks.create, **request), _parse_block)

    async def update_block(self, block_id: str, change: Mapping[str, Any]) -> None:
        """Change a block's settings. Its text stays."""
        await self._retry(partial(self._blocks.update, block_id, **change), _parse_block)

    async def agent_blocks(self, agent_id: str) -> Mapping[str, LettaBlock]:
        """An agent's blocks by label."""
        found = await self._retry(partial(self._agents.blocks.list, agent_id), _each_item(_parse_block))
        return {block.label: block for block in found}

    async def block(self, block_id: str) -> LettaBlock:
        """One block."""
        return await self._retry(partial(self._blocks.retrieve, block_id), _parse_block)

    async def find_block(self, block_id: str) -> LettaBlock | None:
        """One block, whatever its tags; None if it does not exist."""
        return await self._find(partial(self._blocks.retrieve, block_id), _parse_block)

    async def blocks(self, *tags: str) -> list[LettaBlock]:
        """The blocks that have all these tags."""
        return await self._list(partial(self._blocks.list, tags=tags, match_all_tags=True), _parse_block)

    async def write_block(self, block_id: str, value: str, metadata: Mapping[str, Any]) -> None:
        """Write a text and its metadata. If the call breaks off, it is unknown whether it was written."""
        write = partial(self._blocks.update, block_id, value=value, metadata=dict(metadata))
        await self._call(write, _parse_block)

    async def delete_block(self, block_id: str) -> None:
        """Delete a block, if it exists."""
        await self._delete(partial(self._blocks.delete, block_id))

    async def memory_edits(self, agent_id: str) -> list[MemoryEdit]:
        """The latest edits that an agent made to its blocks with its tools."""
        get = partial(self._agents.messages.list, agent_id, limit=LATEST_MESSAGES, order="desc")
        return [edit for edit in await self._retry(get, _each_item(_parse_edit)) if edit is not None]

    # --- passages and archives ------------------------------------------------------------------------------

    async def create_passage(self, agent_id: str, text: str, tags: Sequence[str]) -> str:
        """Add a passage to an agent's archival memory, and return its id."""
        create = partial(self._agents.passages.create, agent_id, text=text, tags=list(tags))
        return await self._call(create, lambda passages: str(passages[0].id))

    async def find_passage(self, agent_id: str, tag: str) -> str | None:
        """The id of the passage with this tag; None if there is none."""
        search = partial(self._agents.passages.search, agent_id, query=tag, tags=[tag], top_k=ALL_PASSAGES)
        return await self._retry(search, lambda found: str(found.results[0].id) if found.results else None)

    async def archives(self, name: str | Omit = omit) -> list[LettaArchive]:
        """The archives with this name; without a name, all archives."""
        return await self._list(partial(self._letta.archives.list, name=name), _parse_archive)

    async def agent_archives(self, agent_id: str) -> list[LettaArchive]:
        """The archives attached to an agent; none if the agent does not exist."""
        with _ignore_missing():
            return await self._list(partial(self._letta.archives.list, agent_id=agent_id), _parse_archive)
        return []

    async def is_attached(self, archive_id: str) -> bool:
        """Whether any agent has this archive. The library has no call for it."""
        get = partial(self._letta.get, f"{_ARCHIVES}{archive_id}/agents", cast_to=list[dict[str, Any]])
        return await self._retry(get, bool)

    async def attach_archive(self, agent_id: str, archive_id: str) -> None:
        """Make this archive an agent's only one."""
        await self._retry(partial(self._agents.archives.attach, archive_id, agent_id=agent_id), _ignore)

    async def rename_archive(self, archive_id: str, name: str) -> None:
        """Give an archive another name."""
        await self._retry(partial(self._letta.archives.update, archive_id, name=name), _parse_archive)

    async def delete_archive(self, archive_id: str) -> None:
        """Delete an archive with all its passages, if it exists."""
        await self._delete(partial(self._letta.archives.delete, archive_id))

    # --- one call -------------------------------------------------------------------------------------------

    async def _call(self, call: Callable[[], Awaitable[Any]], parse: Callable[[Any], T]) -> T:
        """Make one call and parse its response. The time limit includes receiving the whole body."""
        with _translate_errors():
            async with self._slots, asyncio.timeout(self._seconds):
                try:
                    response = await call()
                except APIStatusError:
                    self._last_response_at = monotonic()
                    raise
                self._last_response_at = monotonic()
                return parse(response)

    async def _retry(self, call: Callable[[], Awaitable[Any]], parse: Callable[[Any], T]) -> T:
        """Make a call that does no harm when made twice, with retries."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=_pause,
            retry=retry_if_exception(_should_retry),
            reraise=True,
        )
        return await retrying(self._call, call, parse)

    async def _delete(self, delete: Callable[[], Awaitable[Any]]) -> None:
        with _ignore_missing():
            await self._retry(delete, _ignore)

    async def _find(self, call: Callable[[], Awaitable[Any]], parse: Callable[[Any], T]) -> T | None:
        with _ignore_missing():
            return await self._retry(call, parse)
        return None

    async def _list(
        self, call: Callable[..., Awaitable[AsyncArrayPage[Any]]], parse: Callable[[Any], T]
    ) -> list[T]:
        """All items of a list. We page ourselves: the library would ask for one more, empty page."""

        def parse_page(page: AsyncArrayPage[Any]) -> tuple[list[Any], list[T]]:
            return [each.id for each in page.items], _each_item(parse)(page)

        found: list[T] = []
        after: str | Omit = omit
        while True:
            get = partial(call, limit=PAGE_SIZE, order="asc", after=after)
            ids, items = await self._retry(get, parse_page)
            found += items
            if len(ids) < PAGE_SIZE:
                return found
            after = ids[-1]


def _each_item(parse: Callable[[Any], T]) -> Callable[[AsyncArrayPage[Any]], list[T]]:
    return lambda page: [parse(each) for each in page.items]


def _should_retry(error: BaseException) -> bool:
    return (
        isinstance(error, LettaTrouble)
        and error.retryable
        and (error.retry_after or 0) <= LONGEST_WAIT_SECONDS
    )


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    retry_after = error.retry_after if isinstance(error, LettaTrouble) else None
    return max(_BACKOFF(state), retry_after or 0)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn the library's errors, and those of parsing an unexpected response, into `LettaTrouble`."""
    try:
        yield
    except APIStatusError as error:
        raise _refusal(error) from None
    except APIConnectionError as error:
        unreached = isinstance(error.__cause__, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
        rule = "unreachable" if unreached else "broken_off"
        raise LettaTrouble(rule, retryable=True, outcome_unknown=not unreached) from None
    except TimeoutError:
        raise LettaTrouble("broken_off", retryable=True, outcome_unknown=True) from None
    except (APIError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise _not_understood() from None


@contextmanager
def _ignore_missing() -> Iterator[None]:
    """Suppress the error that something does not exist."""
    try:
        yield
    except LettaTrouble as trouble:
        if not trouble.is_missing:
            raise


def _refusal(error: APIStatusError) -> LettaTrouble:
    status = error.status_code
    failed = status >= httpx.codes.INTERNAL_SERVER_ERROR
    return LettaTrouble(
        f"http_{status}",
        retryable=failed or status in _RETRYABLE_STATUSES,
        outcome_unknown=failed,
        retry_after=parse_retry_after(error.response.headers),
    )


def _not_understood() -> LettaTrouble:
    return LettaTrouble("not_understood", retryable=True, outcome_unknown=True)


# --- parsing responses; the library does not check what it received -----------------------------------------


def _ignore(response: object) -> None:
    """Ignore the content of a response."""


def _parse_identities(response: object) -> list[LettaIdentity]:
    if not isinstance(response, list):
        raise _not_understood()
    return [LettaIdentity(str(each["id"]), str(each["identifier_key"])) for each in response]


def _parse_agent(agent: AgentState) -> LettaAgent:
    blocks = [_parse_block(each) for each in agent.blocks or ()]
    return LettaAgent(
        str(agent.id),
        str(agent.name),
        frozenset(map(str, agent.tags or ())),
        {block.label: block for block in blocks},
        frozenset(str(each.name) for each in agent.tools or ()),
        _parse_settings(agent),
        str((agent.metadata or {}).get("house", "")),
    )


def _parse_settings(agent: AgentState) -> dict[str, Any]:
    """An agent's settings, with the keys of its specification.

    Letta reports the reply's schema only in its deprecated field `llm_config`.
    """
    model, reply_format = agent.api_model_settings, agent.llm_config.response_format
    schema = reply_format.model_dump(mode="json", by_alias=True) if reply_format else None
    return {
        "system": agent.system,
        "model": agent.model,
        "embedding": agent.embedding,
        "context_window_limit": agent.llm_config.context_window,
        "message_buffer_autoclear": agent.message_buffer_autoclear,
        "model_settings": {
            **(model.model_dump(mode="json") if model else {}),
            "response_format": schema,
            "response_schema": schema,
        },
    }


def _parse_block(block: Block | BlockResponse) -> LettaBlock:
    written_digest = (block.metadata or {}).get("digest")
    return LettaBlock(
        id=str(block.id),
        label=str(block.label),
        value=block.value if isinstance(block.value, str) else "",
        limit=block.limit if isinstance(block.limit, int) else 0,
        written_digest=written_digest if isinstance(written_digest, str) else "",
        description=str(block.description or ""),
        read_only=bool(block.read_only),
        tags=frozenset(map(str, block.tags or ())),
    )


def _parse_archive(archive: Archive) -> LettaArchive:
    return LettaArchive(str(archive.id), str(archive.name), archive.description == _DEFAULT_ARCHIVE)


def _parse_edit(message: object) -> MemoryEdit | None:
    """The edit, if this message calls a memory tool. A model can call it with any arguments."""
    with suppress(AttributeError, TypeError, ValueError):
        if isinstance(message, ToolCallMessage) and "memory" in str(message.tool_call.name):
            arguments = json.loads(message.tool_call.arguments or "")
            texts = {name: text for name, text in arguments.items() if isinstance(text, str) and text}
            label = texts.pop("label", "")
            replaced = {name: text for name, text in texts.items() if name.startswith("old")}
            written = frozenset(texts[name] for name in texts.keys() - replaced)
            return MemoryEdit(label, written, frozenset(replaced.values()))
    return None
