"""What we ask of a Letta server: agents with their blocks, passages and people, in few and plain calls.

It neither compares nor counts when it writes, and one never knows of a call that broke off whether it was
carried out. So its client library repeats nothing by itself, and only what can be done twice without harm is
tried again here; whoever makes something looks first whether it is there. The library takes over a second to
load: nobody imports this module but who needs it, and not on a loop.
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

from agents.brains.lines import retry_after
from orchestrator.errors import LettaTrouble

T = TypeVar("T")

MOST_AT_ONCE: Final = 100
"""How many of a list are asked for at a time."""

CALLS_AT_ONCE: Final = 4
"""It answers one after the other in any case: of more at once, none would be answered for a long while."""

LATEST_MESSAGES: Final = 20
"""How far back one looks for what an agent did with its blocks."""

LONGEST_WAIT_SECONDS: Final = 1.0
"""Who is told to come back later than this, gives up for now."""

ALL_PASSAGES: Final = 10_000
"""Letta takes the nearest of so many, whatever their tags, and looks for the tags among those."""

_ATTEMPTS: Final = 3
_PAUSE: Final = wait_random_exponential(multiplier=0.05, max=0.5)
_PASSING: Final = (408, 409, 425, 429)
_CONNECT_SECONDS: Final = 2.0
_PEOPLE: Final = "/v1/identities/"
_ARCHIVES: Final = "/v1/archives/"
_DEFAULT: Final = "Default archive created automatically"


@dataclass(frozen=True, slots=True)
class LettaBlock:
    """A block as it stands in Letta; `given` is the digest that was written beside its last text of ours."""

    id: str
    label: str
    value: str
    limit: int
    given: str
    description: str = ""
    read_only: bool = False
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LettaAgent:
    """An agent as it stands in Letta; `settings` are named as in its recipe, `house` is whose it was made."""

    id: str
    name: str
    tags: frozenset[str]
    blocks: Mapping[str, LettaBlock]
    tools: frozenset[str] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)
    house: str = ""


@dataclass(frozen=True, slots=True)
class LettaPerson:
    """An identity as it stands in Letta; its key is ours."""

    id: str
    key: str


@dataclass(frozen=True, slots=True)
class LettaArchive:
    """Where passages are kept; it outlives its agent. A default one Letta made by itself, for one agent."""

    id: str
    name: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """That an agent used a memory tool on a block: what it wrote there, and what it wrote that over."""

    label: str
    wrote: frozenset[str]
    over: frozenset[str]

    def explains(self, before: str, after: str) -> bool:
        """Whether a block may have become another by this edit: nothing is said of when it was made."""
        if self.wrote:
            return any(after.count(text) > before.count(text) for text in self.wrote)
        return any(after.count(text) < before.count(text) for text in self.over)


class LettaServer:
    """Pooled connections to one Letta server. Its errors quote what it was sent; ours name a number."""

    def __init__(self, base_url: str, api_key: str = "", *, seconds: float = 10.0) -> None:
        self._seconds, timeout = seconds, httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
        self._letta = AsyncLetta(
            base_url=base_url.rstrip("/"),
            api_key=api_key or None,
            timeout=timeout,
            max_retries=0,
            http_client=httpx.AsyncClient(timeout=timeout, trust_env=False),
        )
        self._agents, self._blocks = self._letta.agents, self._letta.blocks  # loads what they need
        self._room, self._heard_at = asyncio.Semaphore(CALLS_AT_ONCE), 0.0

    async def close(self) -> None:
        """Hang up."""
        await self._letta.close()

    def heard_at(self) -> float:
        """When it last answered anything, be it a refusal, by the clock `monotonic`."""
        return self._heard_at

    async def answers(self) -> None:
        """Ask something that costs it little; an error says that it is down."""
        await self._once(self._letta.health, lambda said: str(said.version))

    # --- people and agents ----------------------------------------------------------------------------------

    async def person(self, key: str, name: str) -> str:
        """The id of the identity with that key, made when missing. The library does not know of them."""
        who = {"identifier_key": key, "name": name, "identity_type": "user"}
        make = partial(self._letta.post, _PEOPLE, cast_to=dict[str, Any], body=who)
        try:
            return await self._once(make, lambda made: str(made["id"]))
        except LettaTrouble as trouble:  # it is there already, or nobody knows whether it is
            if not trouble.again and not trouble.unknown:
                raise
        if not (found := await self._people(identifier_key=key)):
            raise LettaTrouble("no_identity")
        return found[0].id

    async def people(self, key: str = "") -> list[LettaPerson]:
        """The identity with that key; without one, all that there are."""
        if key:
            return await self._people(identifier_key=key)
        found: list[LettaPerson] = []
        after: dict[str, str] = {}
        while True:
            page = await self._people(limit=str(MOST_AT_ONCE), order="asc", **after)
            found += page
            if len(page) < MOST_AT_ONCE:
                return found
            after = {"after": page[-1].id}

    async def delete_person(self, identity_id: str) -> None:
        """Remove an identity; its agents stay. Nothing happens when it is gone already."""
        await self._gone(partial(self._letta.delete, f"{_PEOPLE}{identity_id}", cast_to=object))

    async def _people(self, **query: str) -> list[LettaPerson]:
        found = partial(
            self._letta.get, _PEOPLE, cast_to=list[dict[str, Any]], options={"params": dict(query)}
        )
        return await self._again(found, _persons)

    async def make_agent(self, recipe: Mapping[str, Any]) -> LettaAgent:
        """Make an agent. One whose making broke off may be there: look for its tags."""
        return await self._once(partial(self._agents.create, **recipe), _agent)

    async def change_agent(self, agent_id: str, recipe: Mapping[str, Any]) -> None:
        """Let it be what the recipe says from now on."""
        await self._again(partial(self._agents.update, agent_id, **recipe), _agent)

    async def agents(self, *tags: str) -> list[LettaAgent]:
        """The agents that have all these tags."""
        told: list[Any] = ["agent.blocks", "agent.tags", "agent.tools"]
        found = partial(self._agents.list, tags=tags, match_all_tags=True, include=told)
        return await self._listed(found, _agent)

    async def agent(self, agent_id: str) -> LettaAgent | None:
        """One agent as it stands, whatever its tags; None when it is gone."""
        told: list[Any] = ["agent.blocks", "agent.tags", "agent.tools"]
        return await self._if_there(partial(self._agents.retrieve, agent_id, include=told), _agent)

    async def delete_agent(self, agent_id: str) -> None:
        """Remove it; its blocks and its archive stay behind. Nothing happens when it is gone already."""
        await self._gone(partial(self._agents.delete, agent_id))

    async def tool_ids(self, names: Sequence[str]) -> list[str]:
        """The ids of the server's tools of these names."""
        if not names:
            return []
        found = partial(self._letta.tools.list, names=list(names))
        return await self._again(found, _items(lambda each: str(each.id)))

    # --- blocks ---------------------------------------------------------------------------------------------

    async def make_block(self, recipe: Mapping[str, Any]) -> LettaBlock:
        """Make a block. One whose making broke off may be there: look for its tags."""
        return await self._once(partial(self._blocks.create, **recipe), _block)

    async def change_block(self, block_id: str, form: Mapping[str, Any]) -> None:
        """Let it have that limit and description from now on; its text stays."""
        await self._again(partial(self._blocks.update, block_id, **form), _block)

    async def blocks_of(self, agent_id: str) -> Mapping[str, LettaBlock]:
        """An agent's blocks by label, as they stand."""
        found = await self._again(partial(self._agents.blocks.list, agent_id), _items(_block))
        return {block.label: block for block in found}

    async def block(self, block_id: str) -> LettaBlock:
        """One block as it stands."""
        return await self._again(partial(self._blocks.retrieve, block_id), _block)

    async def block_if_there(self, block_id: str) -> LettaBlock | None:
        """One block as it stands, whatever its tags; None when it is gone."""
        return await self._if_there(partial(self._blocks.retrieve, block_id), _block)

    async def blocks(self, *tags: str) -> list[LettaBlock]:
        """The blocks that have all these tags."""
        return await self._listed(partial(self._blocks.list, tags=tags, match_all_tags=True), _block)

    async def write_block(self, block_id: str, value: str, metadata: Mapping[str, Any]) -> None:
        """Write a text, with what is to be known of it. Where that broke off, nobody knows whether it was."""
        await self._once(partial(self._blocks.update, block_id, value=value, metadata=dict(metadata)), _block)

    async def delete_block(self, block_id: str) -> None:
        """Remove it. Nothing happens when it is gone already."""
        await self._gone(partial(self._blocks.delete, block_id))

    async def memory_edits(self, agent_id: str) -> list[MemoryEdit]:
        """The latest edits that an agent made of its blocks by its tools."""
        latest = partial(self._agents.messages.list, agent_id, limit=LATEST_MESSAGES, order="desc")
        return [edit for edit in await self._again(latest, _items(_edit)) if edit is not None]

    # --- passages -------------------------------------------------------------------------------------------

    async def remember(self, agent_id: str, text: str, tags: Sequence[str]) -> str:
        """Put a passage into an agent's archival memory, and tell its id."""
        made = partial(self._agents.passages.create, agent_id, text=text, tags=list(tags))
        return await self._once(made, lambda passages: str(passages[0].id))

    async def passage_tagged(self, agent_id: str, tag: str) -> str | None:
        """The id of the passage with that tag; None when there is none."""
        search = partial(self._agents.passages.search, agent_id, query=tag, tags=[tag], top_k=ALL_PASSAGES)
        return await self._again(search, lambda found: str(found.results[0].id) if found.results else None)

    async def archives(self, name: str | Omit = omit) -> list[LettaArchive]:
        """The archives of that name; without one, all that there are."""
        return await self._listed(partial(self._letta.archives.list, name=name), _archive)

    async def archives_of(self, agent_id: str) -> list[LettaArchive]:
        """Those that are attached to an agent; none of one that is gone."""
        with _unless_missing():
            return await self._listed(partial(self._letta.archives.list, agent_id=agent_id), _archive)
        return []

    async def is_attached(self, archive_id: str) -> bool:
        """Whether any agent has that archive. The library does not know of this call."""
        ask = partial(self._letta.get, f"{_ARCHIVES}{archive_id}/agents", cast_to=list[dict[str, Any]])
        return await self._again(ask, bool)

    async def attach_archive(self, agent_id: str, archive_id: str) -> None:
        """Let an agent have that archive, and no other; nothing happens when it has."""
        await self._again(partial(self._agents.archives.attach, archive_id, agent_id=agent_id), _nothing)

    async def rename_archive(self, archive_id: str, name: str) -> None:
        """Let it be called so from now on."""
        await self._again(partial(self._letta.archives.update, archive_id, name=name), _archive)

    async def delete_archive(self, archive_id: str) -> None:
        """Remove it with all its passages. Nothing happens when it is gone already."""
        await self._gone(partial(self._letta.archives.delete, archive_id))

    # --- one call -------------------------------------------------------------------------------------------

    async def _once(self, call: Callable[[], Awaitable[Any]], read: Callable[[Any], T]) -> T:
        """One answer, all of it within the time there is: one that drips in is no better than none."""
        with _as_ours():
            async with self._room, asyncio.timeout(self._seconds):
                try:
                    answer = await call()
                except APIStatusError:
                    self._heard_at = monotonic()
                    raise
                self._heard_at = monotonic()
                return read(answer)

    async def _again(self, call: Callable[[], Awaitable[Any]], read: Callable[[Any], T]) -> T:
        """A call that does no harm when it is made twice."""
        asking = AsyncRetrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=_pause,
            retry=retry_if_exception(_worthwhile),
            reraise=True,
        )
        return await asking(self._once, call, read)

    async def _gone(self, delete: Callable[[], Awaitable[Any]]) -> None:
        with _unless_missing():
            await self._again(delete, _nothing)

    async def _if_there(self, call: Callable[[], Awaitable[Any]], read: Callable[[Any], T]) -> T | None:
        with _unless_missing():
            return await self._again(call, read)
        return None

    async def _listed(
        self, call: Callable[..., Awaitable[AsyncArrayPage[Any]]], read: Callable[[Any], T]
    ) -> list[T]:
        """All of a list; the library's own pages go on until one is empty, which costs a call more."""
        found: list[T] = []
        after: str | Omit = omit
        while True:
            ask = partial(call, limit=MOST_AT_ONCE, order="asc", after=after)
            ids, page = await self._again(
                ask, lambda page: ([each.id for each in page.items], _items(read)(page))
            )
            found += page
            if len(ids) < MOST_AT_ONCE:
                return found
            after = ids[-1]


def _items(read: Callable[[Any], T]) -> Callable[[AsyncArrayPage[Any]], list[T]]:
    return lambda page: [read(each) for each in page.items]


def _worthwhile(error: BaseException) -> bool:
    return isinstance(error, LettaTrouble) and error.again and (error.after or 0) <= LONGEST_WAIT_SECONDS


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    told = error.after if isinstance(error, LettaTrouble) else None
    return max(_PAUSE(state), told or 0)


@contextmanager
def _as_ours() -> Iterator[None]:
    """What the library raises, and what comes of an answer that is not what it should be, as our error."""
    try:
        yield
    except APIStatusError as error:
        raise _refusal(error) from None
    except APIConnectionError as error:
        unreached = isinstance(error.__cause__, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))
        rule = "unreachable" if unreached else "broken_off"
        raise LettaTrouble(rule, again=True, unknown=not unreached) from None
    except TimeoutError:
        raise LettaTrouble("broken_off", again=True, unknown=True) from None
    except (APIError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise LettaTrouble("not_understood", again=True, unknown=True) from None


@contextmanager
def _unless_missing() -> Iterator[None]:
    """That something is not there is no trouble."""
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
        again=failed or status in _PASSING,
        unknown=failed,
        after=retry_after(error.response.headers),
    )


# --- what it says -------------------------------------------------------------------------------------------


def _nothing(said: object) -> None:
    """That it answered is enough."""


def _persons(said: object) -> list[LettaPerson]:
    if not isinstance(said, list):
        raise LettaTrouble("not_understood", again=True, unknown=True)
    return [LettaPerson(str(each["id"]), str(each["identifier_key"])) for each in said]


def _agent(said: AgentState) -> LettaAgent:
    blocks = [_block(each) for each in said.blocks or ()]
    return LettaAgent(
        str(said.id),
        str(said.name),
        frozenset(map(str, said.tags or ())),
        {block.label: block for block in blocks},
        frozenset(str(each.name) for each in said.tools or ()),
        _settings(said),
        str((said.metadata or {}).get("house", "")),
    )


def _settings(said: AgentState) -> dict[str, Any]:
    """The form of its replies is told among what is deprecated alone."""
    model, form = said.api_model_settings, said.llm_config.response_format
    replies = form.model_dump(mode="json", by_alias=True) if form else None
    return {
        "system": said.system,
        "model": said.model,
        "embedding": said.embedding,
        "context_window_limit": said.llm_config.context_window,
        "message_buffer_autoclear": said.message_buffer_autoclear,
        "model_settings": {
            **(model.model_dump(mode="json") if model else {}),
            "response_format": replies,
            "response_schema": replies,
        },
    }


def _block(said: Block | BlockResponse) -> LettaBlock:
    """The library does not check what it was told."""
    given = (said.metadata or {}).get("digest")
    return LettaBlock(
        id=str(said.id),
        label=str(said.label),
        value=said.value if isinstance(said.value, str) else "",
        limit=said.limit if isinstance(said.limit, int) else 0,
        given=given if isinstance(given, str) else "",
        description=str(said.description or ""),
        read_only=bool(said.read_only),
        tags=frozenset(map(str, said.tags or ())),
    )


def _archive(said: Archive) -> LettaArchive:
    return LettaArchive(str(said.id), str(said.name), said.description == _DEFAULT)


def _edit(message: object) -> MemoryEdit | None:
    """An edit, if the message calls a memory tool; a model may have called it with anything."""
    with suppress(AttributeError, TypeError, ValueError):
        if isinstance(message, ToolCallMessage) and "memory" in str(message.tool_call.name):
            given = json.loads(message.tool_call.arguments or "")
            texts = {name: text for name, text in given.items() if isinstance(text, str) and text}
            label = texts.pop("label", "")
            over = {name: text for name, text in texts.items() if name.startswith("old")}
            return MemoryEdit(
                label, frozenset(texts[name] for name in texts.keys() - over), frozenset(over.values())
            )
    return None
