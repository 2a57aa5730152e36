"""`/v1/safety-events`: what the guard found in messages and answers."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request

from orchestrator.api.access.checking import caller_of, facts_of, item_texts, reason_of
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
from orchestrator.inspection.looks import trace_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import SafetyEntry, SafetyFilter
from orchestrator.store.rows import SafetyEvent


class SafetyEventFacts(Answer):
    """What the guard found, by which rules. It does not quote the person."""

    id: str
    conversation_id: str
    message_id: str
    turn: int | None
    stage: str
    kind: str
    tier: int
    certainty: str | None
    rules: tuple[str, ...]
    created_at: Moment


class WholeSafetyEvent(SafetyEventFacts):
    """The same, with the sentence that was refused and the state of the alert to staff."""

    refused: str | None
    alert: str | None


def given_filter(
    kind: Literal["emergency", "crisis", "guard_failed", "refused"] | None = None,
    certainty: Literal["certain", "possible"] | None = None,
    since: GivenTime | None = None,
    until: GivenTime | None = None,
) -> SafetyFilter:
    """The conditions of a list of safety events, from the query."""
    return SafetyFilter(kind=kind, certainty=certainty, since=since, until=until)


GivenFilter = Annotated[SafetyFilter, Depends(given_filter)]


def build_router(resources: Resources) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["safety events"])
    store = resources.store

    @router.get("/v1/safety-events", responses=problems())
    async def show_all(
        request: Request, which: GivenFilter, of: Of = "me", limit: Limit = 50, cursor: Cursor = None
    ) -> Page[SafetyEventFacts]:
        """List safety events of all your conversations, newest first."""
        person, after = person_of(caller_of(request), of), read_position(cursor)
        found = await store.read(lambda tx: tx.pages.safety_events(which, after, limit + 1, user_id=person))
        return _page(found, limit)

    @router.get("/v1/conversations/{conversation_id}/safety-events", responses=problems(404))
    async def show_list(
        request: Request, conversation_id: Id, which: GivenFilter, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[SafetyEventFacts]:
        """List the safety events of a conversation, newest first."""
        caller, after = caller_of(request), read_position(cursor)

        def read(tx: Transaction) -> list[SafetyEntry]:
            facts_of(tx, caller, conversation_id)
            here = replace(which, conversation_id=conversation_id)
            return tx.pages.safety_events(here, after, limit + 1)

        return _page(await store.read(read), limit)

    @router.get("/v1/safety-events/{event_id}", responses=problems(404))
    async def show_one(request: Request, event_id: Id) -> WholeSafetyEvent:
        """Show one safety event, with the sentence that was refused, if any."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> WholeSafetyEvent:
            found = tx.safety.event(event_id)
            if found is None:
                raise AnamnesisError(ITEM_NOT_FOUND, what="safety event")
            _, look = item_texts(tx, caller, found.conversation_id, reason, "safety event")
            trace_text(tx, found.conversation_id, look, f"safety event {found.id}")
            return _whole(tx, found)

        return await store.write(read)

    return router


def _page(found: list[SafetyEntry], limit: int) -> Page[SafetyEventFacts]:
    return page_of(
        found, limit, lambda entry: position_cursor(entry.position), SafetyEventFacts.model_validate
    )


def _whole(tx: Transaction, event: SafetyEvent) -> WholeSafetyEvent:
    facts = SafetyEventFacts.model_validate(event)
    alert = tx.safety.alert_of(event.id)
    return WholeSafetyEvent(
        **dict(facts), refused=tx.safety.refused_text(event.id), alert=alert.state if alert else None
    )
