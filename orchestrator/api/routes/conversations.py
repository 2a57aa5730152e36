"""`/v1/conversations`: starts, lists, shows, renames and archives conversations; tokens for their rooms."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from orchestrator.api.access.checking import caller_of, facts_of
from orchestrator.api.access.pseudonyms import Names, Pseudonyms
from orchestrator.api.access.roles import READS_FACTS, Caller, Role
from orchestrator.api.answers import (
    Answer,
    Cursor,
    Id,
    Limit,
    Moment,
    Page,
    page_of,
    position_cursor,
    problems,
    read_position,
)
from orchestrator.api.body import read_body, read_json, request_body
from orchestrator.api.idempotency import IdempotencyKey, once
from orchestrator.api.ports import Resources, Rooms
from orchestrator.errors import (
    INVALID_FIELD,
    LIVEKIT_NOT_CONFIGURED,
    MISSING_ROLE,
    NUL_IN_TEXT,
    AnamnesisError,
)
from orchestrator.ops.clock import as_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import ConversationEntry, ConversationFilter
from orchestrator.wire.ids import PERSON_RULE, is_person_id

PATH = "/v1/conversations"

Title = Annotated[str, Field(min_length=1, max_length=200)]


class NewConversation(BaseModel):
    """What a conversation begins with. A service names the person; everybody else starts their own."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    title: Title | None = None
    person: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class ConversationChange(BaseModel):
    """What is to change. Archiving a conversation ends its session; it can be read and made active again."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    title: Title | None = None
    status: Literal["active", "archived"] | None = None


class StartedConversation(Answer):
    """The ids of a new conversation and of its room."""

    id: str
    room: str


class ConversationFacts(Answer):
    """A conversation. `person` is a pseudonym for an analyst; `title` is shown to its owner only."""

    id: str
    person: str
    title: str | None
    status: str
    turns: int
    created_at: Moment
    updated_at: Moment


class RoomToken(Answer):
    """What a client needs to join the room of a conversation."""

    url: str
    room: str
    identity: str
    token: str
    topic: str
    expires_at: str


def build_router(rooms: Rooms | None) -> APIRouter:
    """Build the route of room tokens. Without `rooms`, it refuses."""
    router = APIRouter(tags=["conversations"])

    @router.post(f"{PATH}/{{conversation_id}}/token", responses=problems(404, 502))
    async def make_token(request: Request, conversation_id: Id) -> RoomToken:
        """Make a token for the LiveKit room of a conversation; it is valid for five minutes."""
        caller, open_rooms = caller_of(request), require_rooms(rooms)
        person = None if Role.SERVICE in caller.roles else caller.person
        admission = await open_rooms.admit(person, conversation_id)
        return RoomToken(
            url=admission.url,
            room=admission.room,
            identity=admission.identity,
            token=admission.token,
            topic=admission.topic,
            expires_at=as_text(admission.expires_at),
        )

    return router


def build_start(rooms: Rooms | None, resources: Resources | None, body_limit: int) -> APIRouter:
    """Build the route that starts a conversation. It needs LiveKit rooms or the store."""
    router = APIRouter(tags=["conversations"])

    @router.post(
        PATH,
        status_code=201,
        response_model=StartedConversation,
        responses=problems(409, 502),
        openapi_extra=request_body(NewConversation, required=False),
    )
    async def start(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """Start a conversation. The body may be left out."""
        caller, body = caller_of(request), await read_body(request, body_limit)
        new = read_json(body, NewConversation) if body else NewConversation()
        person = _owner_of_new(caller, new)

        async def work() -> Response:
            if rooms is not None:
                conversation_id = await rooms.create(person)
            elif resources is not None:
                made = await resources.store.write(lambda tx: tx.conversations.create(person))
                conversation_id = made.id
                resources.on_created(conversation_id)
            else:
                raise AnamnesisError(LIVEKIT_NOT_CONFIGURED)
            if new.title and resources is not None:
                await resources.store.write(
                    lambda tx: tx.conversations.update(conversation_id, title=new.title)
                )
            started = StartedConversation(id=conversation_id, room=conversation_id)
            return JSONResponse(started.model_dump(by_alias=True), 201)

        if resources is None:
            return await work()
        return await once(resources.store, request, caller.person, idempotency_key, body, work)

    return router


def build_resource(resources: Resources, pseudonyms: Pseudonyms, body_limit: int) -> APIRouter:
    """Build the routes that list, show and change conversations."""
    router = APIRouter(tags=["conversations"])
    store = resources.store

    @router.get(PATH, responses=problems())
    async def show_list(
        request: Request,
        of: Annotated[
            Literal["me", "all"], Query(description="Your own conversations, or (for staff) all.")
        ] = "me",
        person: Annotated[
            str | None, Query(max_length=128, description="Those of one person; for operators and privacy.")
        ] = None,
        status: Literal["active", "archived"] | None = None,
        begun: Annotated[Literal["true"] | None, Query(description="Only those that have a turn.")] = None,
        search: Annotated[
            str | None,
            Query(min_length=1, max_length=200, description="A text in titles or messages; only your own."),
        ] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Page[ConversationFacts]:
        """List conversations, the most recently active first, without their messages."""
        caller = caller_of(request)
        which = replace(_wanted(caller, of, person, status, search), begun=True if begun else None)
        after = read_position(cursor)
        found = await store.read(lambda tx: tx.pages.conversations(which, after, limit + 1))
        return page_of(
            found, limit, lambda entry: position_cursor(entry.position), lambda entry: show(caller, entry)
        )

    @router.get(f"{PATH}/{{conversation_id}}", responses=problems(404))
    async def show_one(request: Request, conversation_id: Id) -> ConversationFacts:
        """Show one conversation, without its messages."""
        caller = caller_of(request)
        return show(caller, await store.read(lambda tx: _entry(tx, caller, conversation_id)))

    @router.patch(
        f"{PATH}/{{conversation_id}}",
        response_model=ConversationFacts,
        responses=problems(404, 409),
        openapi_extra=request_body(ConversationChange),
    )
    async def change(
        request: Request, conversation_id: Id, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Rename, archive or reactivate one of your own conversations."""
        caller, body = caller_of(request), await read_body(request, body_limit)
        given = read_json(body, ConversationChange)
        new = given.model_dump(exclude_none=True)
        if not new:
            raise AnamnesisError(INVALID_FIELD, field="body", rule="must change the title or the status")

        def write(tx: Transaction) -> ConversationEntry:
            tx.conversations.owned(conversation_id, caller.person)
            tx.conversations.update(conversation_id, **new)
            return _entry(tx, caller, conversation_id)

        async def work() -> Response:
            shown = show(caller, await store.write(write))
            return JSONResponse(shown.model_dump(mode="json", by_alias=True))

        return await once(store, request, caller.person, idempotency_key, body, work)

    def show(caller: Caller, entry: ConversationEntry) -> ConversationFacts:
        is_own = entry.user_id == caller.person
        return ConversationFacts(
            id=entry.id,
            person=Names(caller, pseudonyms).person(entry.user_id),
            title=entry.title if is_own else None,
            status=entry.status,
            turns=entry.turns,
            created_at=entry.created_at,
            updated_at=entry.updated_at,
        )

    return router


def require_rooms(rooms: Rooms | None) -> Rooms:
    """Return the rooms, or refuse the request if this server has no LiveKit."""
    if rooms is None:
        raise AnamnesisError(LIVEKIT_NOT_CONFIGURED)
    return rooms


def _owner_of_new(caller: Caller, new: NewConversation) -> str:
    """The person who will own the new conversation. Only a service may name somebody else."""
    if new.person is None or new.person == caller.person:
        if Role.PERSON not in caller.roles:
            raise AnamnesisError(INVALID_FIELD, field="person", rule="a service must name the person")
        return caller.person
    if Role.SERVICE not in caller.roles:
        raise AnamnesisError(MISSING_ROLE, roles=Role.SERVICE.value)
    if not is_person_id(new.person):
        raise AnamnesisError(INVALID_FIELD, field="person", rule=PERSON_RULE)
    return new.person


def _wanted(
    caller: Caller, of: str, person: str | None, status: str | None, search: str | None
) -> ConversationFilter:
    """Which conversations are listed, if the caller may see them. Nobody searches the texts of others."""
    if search is not None and "\0" in search:
        raise AnamnesisError(NUL_IN_TEXT)
    if person is not None and "\0" in person:
        raise AnamnesisError(NUL_IN_TEXT)
    if of == "me" and person in (None, caller.person):
        if Role.PERSON not in caller.roles:
            raise AnamnesisError(MISSING_ROLE, roles=Role.PERSON.value)
        return ConversationFilter(user_id=caller.person, status=status, search=search)
    roles = (Role.OPERATOR, Role.PRIVACY) if person is not None else READS_FACTS
    if not caller.has_any(roles):
        raise AnamnesisError(MISSING_ROLE, roles=", ".join(sorted(roles)))
    if search is not None:
        rule = "only your own conversations can be searched"
        raise AnamnesisError(INVALID_FIELD, field="search", rule=rule)
    return ConversationFilter(user_id=person, status=status)


def _entry(tx: Transaction, caller: Caller, conversation_id: str) -> ConversationEntry:
    row, _ = facts_of(tx, caller, conversation_id)
    latest = tx.turns.latest(row.id)
    turns = latest.number if latest else 0
    return ConversationEntry(
        row.id, row.user_id, row.title, row.status, row.created_at, row.updated_at, turns
    )
