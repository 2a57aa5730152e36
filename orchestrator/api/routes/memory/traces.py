"""`/v1/traces`: which memory was read or written, by whom; as a list, one by one, and live."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import StreamingResponse

from memory_blocks.models import Label
from orchestrator.api.access.checking import (
    AccessCheck,
    caller_of,
    facts_of,
    item_of,
    item_texts,
    reason_of,
)
from orchestrator.api.access.pseudonyms import Names, Pseudonyms
from orchestrator.api.access.roles import READS_FACTS, Caller, Role
from orchestrator.api.answers import (
    Answer,
    Cursor,
    GivenTime,
    Id,
    Limit,
    Moment,
    Of,
    Page,
    page_of,
    position_cursor,
    problems,
    read_position,
)
from orchestrator.api.ports import Resources
from orchestrator.errors import ITEM_NOT_FOUND, MISSING_ROLE, AnamnesisError
from orchestrator.inspection.live import CHECK_SECONDS, TraceFeed
from orchestrator.inspection.looks import trace_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import Position, TraceEntry, TraceFilter
from orchestrator.store.repositories.conversation.conversations import looks_id
from orchestrator.store.rows import Trace
from orchestrator.wire.ids import ID_PATTERN

Text = Annotated[str | None, Query(pattern=r"^[^\x00]{1,200}$")]


class TraceFacts(Answer):
    """A trace in a list, without its content. `reason` is why staff looked; analysts do not see it.

    People among the actors have pseudonyms for analysts.
    """

    id: str
    conversation_id: str
    message_id: str | None
    memory_id: str
    memory_type: str | None
    action: str
    actor: str | None
    confidence: float | None
    label: str | None
    revision: int | None
    level: str | None
    utilization: float | None
    background: bool
    reason: str | None
    created_at: Moment


class WholeTrace(TraceFacts):
    """A trace with the line that says what was read or changed, and all of its metadata."""

    content: str
    metadata: dict[str, Any] | None


def given_filter(
    action: Literal["retrieved", "stored", "updated"] | None = None,
    type: Text = None,
    label: Label | None = None,
    actor: Annotated[
        str | None,
        Query(
            pattern=r"^[^\x00]{1,200}$",
            description="An actor, or the part before the colon for all such actors.",
        ),
    ] = None,
    since: GivenTime | None = None,
    until: GivenTime | None = None,
    conversation: Annotated[
        str | None, Query(pattern=ID_PATTERN, description="Only the traces of this conversation.")
    ] = None,
) -> TraceFilter:
    """The conditions of a list of traces, from the query."""
    return TraceFilter(
        conversation_id=conversation,
        action=action,
        memory_type=type,
        label=label.value if label else None,
        actor=actor,
        since=since,
        until=until,
    )


GivenFilter = Annotated[TraceFilter, Depends(given_filter)]


@dataclass(frozen=True, slots=True)
class TraceView:
    """Which traces a caller gets, and how they look to them."""

    names: Names
    which: TraceFilter
    is_own: bool

    def facts(self, entry: TraceEntry) -> TraceFacts:
        """A trace as the caller sees it."""
        return trace_facts(entry, self.names, is_own=self.is_own)


def build_router(
    resources: Resources, pseudonyms: Pseudonyms, feed: TraceFeed, access: AccessCheck
) -> APIRouter:
    """Build the routes. `feed` knows of new traces; `access` tells when a caller's key has expired."""
    router = APIRouter(tags=["traces"])
    store = resources.store

    @router.get("/v1/traces", responses=problems())
    async def show_all(
        request: Request, which: GivenFilter, of: Of = "me", limit: Limit = 50, cursor: Cursor = None
    ) -> Page[TraceFacts]:
        """List traces, newest first, without their contents. An auditor gets the reads of staff."""
        after = read_position(cursor)
        seen = within_reach(Names(caller_of(request), pseudonyms), of, which)
        found = await store.read(lambda tx: read_page(tx, seen.which, after, limit + 1))
        return _page(found, limit, seen)

    @router.get("/v1/conversations/{conversation_id}/traces", responses=problems(404))
    async def show_list(
        request: Request, conversation_id: Id, which: GivenFilter, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[TraceFacts]:
        """List the traces of a conversation, newest first, without their contents."""
        names, after = Names(caller_of(request), pseudonyms), read_position(cursor)
        names.refuse_if_hidden(which.actor)

        def read(tx: Transaction) -> Page[TraceFacts]:
            _, look = facts_of(tx, names.caller, conversation_id)
            here = replace(which, conversation_id=conversation_id)
            found = tx.pages.traces(here, after, limit + 1)
            return _page(found, limit, TraceView(names, here, look.is_own))

        return await store.read(read)

    @router.get(
        "/v1/traces/stream",
        response_class=StreamingResponse,
        responses={
            200: {"content": {"text/event-stream": {}}, "description": "Server-sent events"},
            **problems(),
        },
    )
    async def follow(
        request: Request,
        which: GivenFilter,
        of: Of = "me",
        last_event_id: Annotated[str | None, Header(max_length=500)] = None,
    ) -> StreamingResponse:
        """Send new traces as server-sent events. The id of an event is the cursor to go on from."""
        seen = within_reach(Names(caller_of(request), pseudonyms), of, which)
        after = read_position(last_event_id)
        stream = _events(feed, seen, after, request, access)
        return StreamingResponse(stream, media_type="text/event-stream")

    @router.get("/v1/traces/{trace_id}", responses=problems(404))
    async def show_one(request: Request, trace_id: Id) -> WholeTrace:
        """Show one trace with its content. If staff reads it, another trace says so."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> tuple[Trace, bool]:
            found = tx.traces.get(trace_id)
            if found is None:
                raise AnamnesisError(ITEM_NOT_FOUND, what="trace")
            here = tx.conversations.get_even_deleted(found.conversation_id)
            if here is not None and here.id == looks_id(here.user_id):
                look = item_of(caller, here.user_id, reason, "trace")
            else:
                _, look = item_texts(tx, caller, found.conversation_id, reason, "trace")
            trace_text(tx, found.conversation_id, look, f"trace {found.id}")
            return found, look.is_own

        row, is_own = await store.write(read)
        names = Names(caller, pseudonyms)
        facts = trace_facts(_entry(row), names, is_own=is_own)
        return WholeTrace(
            **dict(facts), content=row.content, metadata=_metadata(row.meta, names, is_own=is_own)
        )

    return router


def within_reach(names: Names, of: str, which: TraceFilter) -> TraceView:
    """Narrow a filter to what the caller may see."""
    names.refuse_if_hidden(which.actor)
    return TraceView(names, _narrowed(names.caller, of, which), is_own=of == "me")


def _narrowed(caller: Caller, of: str, which: TraceFilter) -> TraceFilter:
    if of == "me":
        if Role.PERSON in caller.roles:
            return replace(which, user_id=caller.person)
        needed: tuple[Role, ...] = (Role.PERSON,)
    elif caller.has_any(READS_FACTS):
        return which
    elif Role.AUDITOR in caller.roles:
        return replace(which, by_staff=True)
    else:
        needed = (*READS_FACTS, Role.AUDITOR)
    raise AnamnesisError(MISSING_ROLE, roles=", ".join(sorted(needed)))


def read_page(tx: Transaction, which: TraceFilter, after: Position | None, limit: int) -> list[TraceEntry]:
    """Part of a list of traces, of one person or of all."""
    if which.user_id is None:
        return tx.pages.traces(which, after, limit)
    return tx.pages.traces_of_person(which.user_id, replace(which, user_id=None), after, limit)


async def _events(
    feed: TraceFeed, seen: TraceView, after: Position | None, request: Request, access: AccessCheck
) -> AsyncIterator[str]:
    """The events of one stream, until the caller's key ends. Comments let proxies keep it open."""
    yield ": following\n\n"
    following = feed.follow(seen.which, after, check_seconds=CHECK_SECONDS)
    async with aclosing(following) as traces:
        async for entry in traces:
            if entry is None:
                if not await access.is_still_valid(request):
                    return
                yield ": still here\n\n"
                continue
            body = seen.facts(entry).model_dump_json(by_alias=True)
            yield f"id: {position_cursor(entry.position)}\nevent: trace\ndata: {body}\n\n"


def _page(found: list[TraceEntry], limit: int, seen: TraceView) -> Page[TraceFacts]:
    return page_of(found, limit, lambda entry: position_cursor(entry.position), seen.facts)


def trace_facts(entry: TraceEntry, names: Names, *, is_own: bool) -> TraceFacts:
    """The part of a trace that lists show. Metadata keys that quote a person are left out."""
    about: dict[str, Any] = entry.meta or {}
    return TraceFacts(
        id=entry.id,
        conversation_id=entry.conversation_id,
        message_id=entry.message_id,
        memory_id=entry.memory_id,
        memory_type=entry.memory_type,
        action=entry.action,
        actor=names.actor(entry.actor) if entry.actor else None,
        confidence=entry.confidence,
        label=about.get("label"),
        revision=about.get("revision"),
        level=about.get("level"),
        utilization=about.get("utilization"),
        background=bool(about.get("background", False)),
        reason=names.reason(about.get("reason"), is_own=is_own),
        created_at=entry.created_at,
    )


def _metadata(about: dict[str, Any] | None, names: Names, *, is_own: bool) -> dict[str, Any] | None:
    """The metadata of a trace, with the names and the reason as the caller sees them."""
    if about is None:
        return None
    shown = dict(about)
    if isinstance(agent := about.get("agent"), str):
        shown["agent"] = names.actor(agent)
    if "reason" in about:
        shown["reason"] = names.reason(about["reason"], is_own=is_own)
    return shown


def _entry(row: Trace) -> TraceEntry:
    return TraceEntry(
        row.id,
        row.conversation_id,
        row.message_id,
        row.memory_id,
        row.memory_type,
        row.action,
        row.actor,
        row.confidence,
        row.meta,
        row.created_at,
    )
