"""What we ask of a Letta server: agents with their blocks, passages and people, in few and plain calls.

It neither compares nor counts when it writes, and one never knows of a call that broke off whether it was
carried out. So only what can be done twice without harm is tried again here; whoever makes something looks
first whether it is there.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from orchestrator.errors import LettaTrouble

MOST_AT_ONCE: Final = 100
"""How many of a list are asked for at a time."""

LATEST_MESSAGES: Final = 20
"""How far back one looks for what an agent did with its blocks."""

LONGEST_WAIT_SECONDS: Final = 1.0
"""Who is told to come back later than this, gives up for now."""

_ATTEMPTS: Final = 3
_PAUSE: Final = wait_random_exponential(multiplier=0.05, max=0.5)
_PASSING: Final = (408, 409, 425, 429)
_CONNECT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class LettaBlock:
    """A block as it stands in Letta; `given` is the digest that was written beside its last text of ours."""

    id: str
    label: str
    value: str
    limit: int
    given: str


@dataclass(frozen=True, slots=True)
class LettaAgent:
    """An agent as it stands in Letta."""

    id: str
    name: str
    tags: frozenset[str]
    blocks: Mapping[str, LettaBlock]


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """That an agent used a memory tool on a block, and when."""

    label: str
    at: datetime


class LettaServer:
    """Pooled connections to one Letta server. Its errors quote what it was sent; ours name a number."""

    def __init__(self, base_url: str, api_key: str = "", *, seconds: float = 10.0) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{base_url.rstrip('/')}/v1/",
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS),
            trust_env=False,
        )

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()

    async def answers(self) -> None:
        """Ask something that costs it little; an error says that it is down."""
        await self._once("GET", "health/")

    # --- people and agents ----------------------------------------------------------------------------------

    async def person(self, key: str, name: str) -> str:
        """The id of the identity with that key, made when missing."""
        query = {"identifier_key": key}
        if not (found := await self._get("identities/", query)):
            with_type = {"identifier_key": key, "name": name, "identity_type": "user"}
            try:
                return str((await self._once("POST", "identities/", with_type))["id"])
            except LettaTrouble as trouble:  # another was quicker, or nobody knows who was
                if not trouble.again and not trouble.unknown:
                    raise
            found = await self._get("identities/", query)
        if not found:
            raise LettaTrouble("no_identity")
        return str(found[0]["id"])

    async def make_agent(self, recipe: Mapping[str, Any]) -> LettaAgent:
        """Make an agent. One whose making broke off may be there: look for its tags."""
        return _agent(await self._once("POST", "agents/", recipe))

    async def change_agent(self, agent_id: str, recipe: Mapping[str, Any]) -> None:
        """Let it be what the recipe says from now on."""
        await self._again("PATCH", f"agents/{agent_id}", recipe)

    async def agents(self, *tags: str) -> list[LettaAgent]:
        """The agents that have all these tags."""
        query = {"tags": list(tags), "match_all_tags": True, "include": ["agent.blocks", "agent.tags"]}
        return [_agent(each) async for each in self._listed("agents/", query)]

    async def delete_agent(self, agent_id: str) -> None:
        """Remove it; its blocks stay behind. Nothing happens when it is gone already."""
        await self._delete(f"agents/{agent_id}")

    # --- blocks ---------------------------------------------------------------------------------------------

    async def blocks_of(self, agent_id: str) -> Mapping[str, LettaBlock]:
        """An agent's blocks by label, as they stand."""
        found = await self._get(f"agents/{agent_id}/core-memory/blocks", {})
        return {block.label: block for block in map(_block, found)}

    async def block(self, block_id: str) -> LettaBlock:
        """One block as it stands."""
        return _block(await self._again("GET", f"blocks/{block_id}"))

    async def blocks(self, *tags: str) -> list[LettaBlock]:
        """The blocks that have all these tags."""
        query: dict[str, Any] = {"tags": list(tags), "match_all_tags": True}
        return [_block(each) async for each in self._listed("blocks/", query)]

    async def write_block(self, block_id: str, value: str, metadata: Mapping[str, Any]) -> None:
        """Write a text, with what is to be known of it. Where that broke off, nobody knows whether it was."""
        await self._once("PATCH", f"blocks/{block_id}", {"value": value, "metadata": metadata})

    async def delete_block(self, block_id: str) -> None:
        """Remove it. Nothing happens when it is gone already."""
        await self._delete(f"blocks/{block_id}")

    async def memory_edits(self, agent_id: str) -> list[MemoryEdit]:
        """The latest edits that an agent made of its blocks by its tools."""
        query = {"limit": LATEST_MESSAGES, "order": "desc"}
        edits = []
        for each in await self._get(f"agents/{agent_id}/messages", query):
            call = each.get("tool_call") or {}
            if each.get("message_type") == "tool_call_message" and "memory" in str(call.get("name")):
                with suppress(
                    ValueError, TypeError, AttributeError
                ):  # a model may have called it with anything
                    label = json.loads(call["arguments"]).get("label")
                    edits.append(MemoryEdit(str(label), datetime.fromisoformat(each["date"])))
        return edits

    # --- passages -------------------------------------------------------------------------------------------

    async def remember(self, agent_id: str, text: str, tags: Sequence[str]) -> str:
        """Put a passage into an agent's archival memory, and tell its id."""
        made = await self._once("POST", f"agents/{agent_id}/archival-memory", {"text": text, "tags": tags})
        return str(made[0]["id"])

    async def passage_tagged(self, agent_id: str, tag: str) -> str | None:
        """The id of the passage with that tag; None when there is none."""
        query = {"query": tag, "tags": [tag], "top_k": 1}
        found = await self._again("GET", f"agents/{agent_id}/archival-memory/search", query=query)
        return str(found["results"][0]["id"]) if found["results"] else None

    # --- one call -------------------------------------------------------------------------------------------

    async def _listed(self, path: str, query: Mapping[str, Any]) -> AsyncIterator[Mapping[str, Any]]:
        after: dict[str, Any] = {}
        while True:
            page = await self._get(path, {**query, **after, "limit": MOST_AT_ONCE, "order": "asc"})
            for each in page:
                yield each
            if len(page) < MOST_AT_ONCE:
                return
            after = {"after": page[-1]["id"]}

    async def _get(self, path: str, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self._again("GET", path, query=query)
        return found

    async def _delete(self, path: str) -> None:
        try:
            await self._again("DELETE", path)
        except LettaTrouble as trouble:
            if not trouble.is_missing:
                raise

    async def _again(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """A call that does no harm when it is made twice."""
        asking = AsyncRetrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=_pause,
            retry=retry_if_exception(_worthwhile),
            reraise=True,
        )
        return await asking(self._once, method, path, body, query)

    async def _once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        async with _as_ours():
            answer = await self._http.request(method, path, json=body, params=query)
        if not answer.is_success:
            status = answer.status_code
            again = status in _PASSING or status >= httpx.codes.INTERNAL_SERVER_ERROR
            unknown = status >= httpx.codes.INTERNAL_SERVER_ERROR
            after = answer.headers.get("retry-after", "")
            raise LettaTrouble(
                f"http_{status}",
                again=again,
                unknown=unknown,
                after=float(after) if after.replace(".", "", 1).isdecimal() else None,
            )
        try:
            return json.loads(answer.content or b"null")
        except ValueError:
            raise LettaTrouble("not_understood", again=True, unknown=True) from None


def _worthwhile(error: BaseException) -> bool:
    return isinstance(error, LettaTrouble) and error.again and (error.after or 0) <= LONGEST_WAIT_SECONDS


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    told = error.after if isinstance(error, LettaTrouble) else None
    return max(_PAUSE(state), told or 0)


@asynccontextmanager
async def _as_ours() -> AsyncIterator[None]:
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
        raise LettaTrouble("unreachable", again=True) from None
    except httpx.HTTPError:
        raise LettaTrouble("broken_off", again=True, unknown=True) from None


def _agent(said: Mapping[str, Any]) -> LettaAgent:
    blocks = [_block(each) for each in said.get("blocks") or ()]
    return LettaAgent(
        str(said["id"]),
        str(said.get("name")),
        frozenset(map(str, said.get("tags") or ())),
        {block.label: block for block in blocks},
    )


def _block(said: Mapping[str, Any]) -> LettaBlock:
    given = (said.get("metadata") or {}).get("digest")
    value, limit = said.get("value"), said.get("limit")
    return LettaBlock(
        id=str(said["id"]),
        label=str(said.get("label")),
        value=value if isinstance(value, str) else "",
        limit=limit if isinstance(limit, int) else 0,
        given=given if isinstance(given, str) else "",
    )
