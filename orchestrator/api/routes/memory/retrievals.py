"""`/v1/retrievals`: searches of long-term memory, and the journey of one from its query to the answer."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from orchestrator.api.access.checking import caller_of, item_of, reason_of
from orchestrator.api.access.pseudonyms import Names, Pseudonyms
from orchestrator.api.access.roles import person_of
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
from orchestrator.errors import ITEM_NOT_FOUND, AnamnesisError
from orchestrator.inspection.journey import Budget, Candidate, Counts, Journey, journey_of
from orchestrator.inspection.looks import trace_memory
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import RetrievalEntry, RetrievalFilter
from orchestrator.wire.ids import ID_PATTERN

GivenId = Annotated[str | None, Query(pattern=ID_PATTERN)]


class RetrievalFacts(Answer):
    """A search in a list. `person` is a pseudonym for an analyst."""

    id: str
    person: str
    conversation_id: str | None
    message_id: str | None
    recipe: str
    mode: str
    milliseconds: float
    created_at: Moment


class WholeRetrieval(Answer):
    """The journey of a search: candidates, which of them were included, and which the answer was given."""

    id: str
    conversation_id: str | None
    message_id: str | None
    query: str
    recipe: str
    mode: str
    period: str | None
    threshold: float | None
    package_type: str | None
    milliseconds: float
    created_at: Moment
    budget: Budget | None
    counts: Counts
    candidates: tuple[Candidate, ...]


def build_router(resources: Resources, pseudonyms: Pseudonyms) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["retrievals"])
    store = resources.store

    @router.get("/v1/retrievals", responses=problems())
    async def show_list(
        request: Request,
        of: Of = "me",
        conversation: GivenId = None,
        message: GivenId = None,
        since: GivenTime | None = None,
        until: GivenTime | None = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Page[RetrievalFacts]:
        """List searches of long-term memory, newest first, without queries and results."""
        caller, after = caller_of(request), read_position(cursor)
        names = Names(caller, pseudonyms)
        which = RetrievalFilter(
            user_id=person_of(caller, of),
            conversation_id=conversation,
            message_id=message,
            since=since,
            until=until,
        )

        def to_facts(entry: RetrievalEntry) -> RetrievalFacts:
            return RetrievalFacts(
                id=entry.id,
                person=names.person(entry.user_id),
                conversation_id=entry.conversation_id,
                message_id=entry.message_id,
                recipe=entry.recipe,
                mode=entry.mode,
                milliseconds=entry.milliseconds,
                created_at=entry.created_at,
            )

        found = await store.read(lambda tx: tx.pages.retrievals(which, after, limit + 1))
        return page_of(found, limit, lambda entry: position_cursor(entry.position), to_facts)

    @router.get("/v1/retrievals/{retrieval_id}", responses=problems(404))
    async def show_one(request: Request, retrieval_id: Id) -> WholeRetrieval:
        """Show the journey of one search. If staff reads it, a trace says so."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> Journey:
            found = tx.memory_index.retrieval(retrieval_id)
            if found is None:
                raise AnamnesisError(ITEM_NOT_FOUND, what="retrieval")
            look = item_of(caller, found.user_id, reason, "retrieval")
            trace_memory(tx, look, found.user_id, f"retrieval {found.id}", found.conversation_id)
            return journey_of(tx, found)

        return _to_response(await store.write(read))

    return router


def _to_response(journey: Journey) -> WholeRetrieval:
    row = journey.retrieval
    return WholeRetrieval(
        id=row.id,
        conversation_id=row.conversation_id,
        message_id=row.message_id,
        query=journey.query,
        recipe=row.recipe,
        mode=row.mode,
        period=journey.period,
        threshold=journey.threshold,
        package_type=journey.package_type,
        milliseconds=row.milliseconds,
        created_at=row.created_at,
        budget=journey.budget,
        counts=journey.counts,
        candidates=journey.candidates,
    )
