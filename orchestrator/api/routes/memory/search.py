"""`POST /v1/memories/search`: searches the memories of the person who asks."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.api.access.checking import caller_of
from orchestrator.api.answers import problems
from orchestrator.api.body import read_body, read_json, request_body
from orchestrator.api.ports import Memories
from orchestrator.errors import MEMORY_NOT_SEARCHED, AnamnesisError


class SearchBody(BaseModel):
    """The body of a search."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, strict=True)

    query: Annotated[str, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    retrieval_mode: Literal["flat", "packed", "tiered"] = "flat"
    token_budget: Annotated[int, Field(ge=1)] | None = None
    recipe: Annotated[str, Field(max_length=60)] | None = None
    skip_repair: bool = False


def build_router(memories: Memories | None, body_limit: int) -> APIRouter:
    """Build the route. Without `memories`, it refuses."""
    router = APIRouter(tags=["memories"])

    @router.post("/v1/memories/search", responses=problems(), openapi_extra=request_body(SearchBody))
    async def search(request: Request) -> dict[str, Any]:
        """Search the caller's own memories by words and by meaning, best first."""
        person = caller_of(request).person
        body = read_json(await read_body(request, body_limit), SearchBody)
        if memories is None:
            raise AnamnesisError(MEMORY_NOT_SEARCHED)
        found = await asyncio.to_thread(
            memories.search_for,
            person,
            body.query,
            limit=body.limit,
            mode=body.retrieval_mode,
            token_budget=body.token_budget,
            recipe=body.recipe,
            skip_repair=body.skip_repair,
        )
        return respond(person, found)

    return router


def respond(person: str, found: dict[str, Any]) -> dict[str, Any]:
    """The response: the result, with its summaries grouped. A summary that is missing is left out."""
    names = {"retrieval": "retrievalSummary", "packaging": "packagingSummary", "assembly": "assemblySummary"}
    observability = {name: found[key] for name, key in names.items() if key in found}
    optional = {
        "tier_assignments": "tierAssignments",
        "expand_ids": "expandIds",
        "estimated_context_tokens": "estimatedContextTokens",
        "lesson_check": "lessonCheck",
        "consensus_result": "consensusResult",
        "packaging_signal": "packagingSignal",
    }
    return {
        "count": len(found["memories"]),
        "retrieval_mode": found["retrievalMode"],
        "scope": {"kind": "user", "userId": person},
        "memories": found["memories"],
        "injection_text": found["injectionText"],
        "citations": found["citations"],
        **{name: found[key] for name, key in optional.items() if key in found},
        **({"observability": observability} if observability else {}),
    }
