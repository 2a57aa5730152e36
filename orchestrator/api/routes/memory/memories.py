"""`/v1/memories`: what is remembered of a person for good: read, corrected, pinned, rated, deleted."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from orchestrator.api.access.checking import caller_of, reason_of
from orchestrator.api.access.pseudonyms import Names, Pseudonyms
from orchestrator.api.access.roles import Caller, Role, look_at_texts
from orchestrator.api.answers import (
    Answer,
    Cursor,
    Id,
    Limit,
    Moment,
    Page,
    number_cursor,
    page_of,
    position_cursor,
    problems,
    read_number,
    read_position,
)
from orchestrator.api.body import read_body, read_json, request_body
from orchestrator.api.idempotency import IdempotencyKey, once_within
from orchestrator.api.ports import Resources
from orchestrator.errors import (
    INVALID_FIELD,
    MEMORY_NOT_FOUND,
    MISSING_ROLE,
    NOT_FOUND,
    NUL_IN_TEXT,
    AnamnesisError,
)
from orchestrator.inspection.looks import Look, trace_memory
from orchestrator.inspection.memories import MemoryDecisions
from orchestrator.inspection.memory_views import (
    Conflict,
    Lineage,
    LineagePart,
    MemoryView,
    conflicts_of,
    lineage_of,
    view,
    views,
)
from orchestrator.inspection.memory_views import (
    LedgerLine as LedgerEntryLine,
)
from orchestrator.remember.changing import Act, MemoryChanges
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import MemoryFilter

T = TypeVar("T")

PATH = "/v1/memories"

Content = Annotated[str, Field(min_length=1, max_length=8000)]


class MemoryChange(BaseModel):
    """What is to change. `value` corrects a fact in its conversation, too; a rating of null removes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    content: Content | None = None
    value: Annotated[str, Field(min_length=1, max_length=240)] | None = None
    pinned: bool | None = None
    archived: bool | None = None
    rating: Annotated[int, Field(ge=1, le=5)] | None = None


class UndoneAct(BaseModel):
    """Which act to undo; the last one if it is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    act: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class Source(Answer):
    """Where a memory comes from: the message, and the person's words in it."""

    conversation_id: str | None
    message_id: str | None
    words: str | None


class EarlierValue(Answer):
    """A value that a fact had before."""

    value: str
    said_at: str


class MemoryFacts(Answer):
    """A memory in a list. `content`, `about` and `source` are null unless `texts` was asked for.

    `kind` is fact, utterance, summary, imported or user. `about` says what a fact is about: `allergies`.
    """

    id: str
    kind: str | None
    about: str | None
    content: str | None
    said_at: Moment | None
    speaker: str | None
    source: Source | None
    tags: tuple[str, ...]
    pinned: bool
    archived: bool
    rating: int | None
    importance: float
    confidence: float
    created_at: Moment
    updated_at: Moment


class WholeMemory(MemoryFacts):
    """A memory with everything that is known about it. `person` is whose it is, for analysts a pseudonym."""

    person: Annotated[str, Field(validation_alias="user_id")]
    title: str | None
    subject: str | None
    value: str | None
    true_when: str | None
    times_said: int | None
    current: bool
    conflict: str | None
    history: tuple[EarlierValue, ...]
    edited_at: str | None


class ChangedMemory(Answer):
    """A memory after a change, and the acts that `undo` takes back."""

    memory: WholeMemory
    acts: tuple[str, ...]


class Deletion(Answer):
    """What deleting a memory takes along: memories made from it, and the utterances it rests on.

    Searches do not find these utterances any more; the messages stay in their conversations.
    """

    memories: tuple[WholeMemory, ...]
    derived: tuple[WholeMemory, ...]
    utterances: tuple[WholeMemory, ...]


class DoneAct(Answer):
    """What was changed or deleted. `act` is for `undo`."""

    act: str
    memory_ids: tuple[str, ...]
    can_be_undone: bool


class LedgerLine(Answer):
    """A change of the memory: who made it, when, and the new values. Erased values are null."""

    number: int
    action: str
    actor: str
    changed: dict[str, Any] | None
    created_at: Moment


class Use(Answer):
    """A message for which the memory was read or written."""

    trace_id: str
    conversation_id: str
    message_id: str | None
    action: str
    actor: str | None
    role: str | None
    created_at: Moment


class WholeLineage(Answer):
    """Where a memory comes from, what was made from it, how it changed, and its latest uses.

    `derived` and `changes` are pages; `next_derived` and `next_changes` are the cursors of the next ones.
    """

    memory: WholeMemory
    rests_on: tuple[WholeMemory, ...]
    derived: tuple[WholeMemory, ...]
    next_derived: str | None = None
    changes: tuple[LedgerLine, ...]
    next_changes: str | None = None
    uses: tuple[Use, ...]


class Contradiction(Answer):
    """Two memories that contradict each other; `current` was said later and counts."""

    about: str | None
    subject: str | None
    current: WholeMemory
    other: WholeMemory


def build_router(resources: Resources, pseudonyms: Pseudonyms, body_limit: int) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["memories"])
    _add_lists(router, resources)
    _add_reads(router, resources, pseudonyms)
    _add_changes(router, resources, body_limit)
    return router


def _add_lists(router: APIRouter, resources: Resources) -> None:
    """Add the lists of memories and of contradictions."""
    store = resources.store

    @router.get(PATH, responses=problems())
    async def show_list(
        request: Request,
        person: Annotated[
            str | None, Query(max_length=128, description="Those of one person; for operators and privacy.")
        ] = None,
        kind: Annotated[str | None, Query(pattern=r"^[a-z_]{1,40}$")] = None,
        status: Literal["active", "archived"] = "active",
        pinned: Literal["true"] | None = None,
        search: Annotated[
            str | None, Query(min_length=1, max_length=200, description="A text in your own memories.")
        ] = None,
        texts: Annotated[
            Literal["true"] | None, Query(description="With contents; only of your own memories.")
        ] = None,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Page[MemoryFacts]:
        """List memories, the most recently changed first."""
        owner = _owner(caller_of(request), person, with_texts=bool(search or texts))
        which = MemoryFilter(
            user_id=owner,
            kind=kind,
            archived=status == "archived",
            pinned=True if pinned else None,
            search=search,
        )
        after = read_position(cursor)
        found = await store.read(lambda tx: tx.pages.memories(which, after, limit + 1))
        return page_of(
            found,
            limit,
            lambda entry: position_cursor(entry.position),
            lambda entry: _facts(view(entry), texts),
        )

    @router.get(f"{PATH}/conflicts", responses=problems())
    async def show_conflicts(
        request: Request, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[Contradiction]:
        """Show which of your memories contradict each other, side by side."""
        caller, after = caller_of(request), read_position(cursor)
        found = await store.read(lambda tx: conflicts_of(tx, caller.person, after, limit + 1))
        return page_of(found, limit, lambda each: position_cursor(each.position), _contradiction)


def _add_reads(router: APIRouter, resources: Resources, pseudonyms: Pseudonyms) -> None:
    """Add the routes that show one memory."""
    store = resources.store

    async def look(request: Request, memory_id: str, read: Callable[[Transaction, str, MemoryView], T]) -> T:
        """Read a memory that the caller may see. If staff reads it, a trace says so."""
        caller, reason = caller_of(request), reason_of(request)

        def work(tx: Transaction) -> T:
            found, seen_by = _readable(tx, caller, memory_id, reason)
            trace_memory(
                tx, seen_by, found.user_id, f"memory {found.id}", found.conversation_id, memory_id=found.id
            )
            return read(tx, found.user_id, found)

        return await store.write(work)

    @router.get(f"{PATH}/{{memory_id}}", responses=problems(404))
    async def show_one(request: Request, memory_id: Id) -> WholeMemory:
        """Show one memory with everything that is known about it."""
        found = await look(request, memory_id, lambda tx, owner, found: found)
        return _whole(found, Names(caller_of(request), pseudonyms))

    @router.get(f"{PATH}/{{memory_id}}/lineage", responses=problems(404))
    async def show_lineage(
        request: Request,
        memory_id: Id,
        limit: Limit = 50,
        changes_cursor: Annotated[str | None, Query(alias="changesCursor", max_length=500)] = None,
        derived_cursor: Annotated[str | None, Query(alias="derivedCursor", max_length=500)] = None,
    ) -> WholeLineage:
        """Show where a memory comes from, what was made from it, how it changed, and where it was used."""

        def read(tx: Transaction, owner: str, found: MemoryView) -> Lineage:
            return lineage_of(tx, owner, found, part)

        part = LineagePart(read_number(changes_cursor, 0), read_position(derived_cursor), limit + 1)
        return _lineage(await look(request, memory_id, read), Names(caller_of(request), pseudonyms), limit)

    @router.get(f"{PATH}/{{memory_id}}/deletion", responses=problems(404))
    async def preview(request: Request, memory_id: Id) -> Deletion:
        """Show what deleting one of your memories would take along. Changes nothing."""
        caller = caller_of(request)

        def read(tx: Transaction) -> Deletion:
            found = MemoryChanges(tx, caller.person, "").preview(memory_id)
            groups = (found.memories, found.derived, found.utterances)
            memories, derived, utterances = (
                tuple(map(WholeMemory.model_validate, views(tx, caller.person, each))) for each in groups
            )
            return Deletion(memories=memories, derived=derived, utterances=utterances)

        return await store.read(read)


def _add_changes(router: APIRouter, resources: Resources, body_limit: int) -> None:
    """Add the routes that change one's own memories. Each change leaves traces and can be undone."""

    async def carry_out(
        request: Request, key: str | None, body: bytes, work: Callable[[Transaction, MemoryDecisions], Answer]
    ) -> Response:
        person = caller_of(request).person
        by = Look(f"{Role.PERSON}:{person}", is_own=True)

        def run(tx: Transaction) -> Response:
            done = work(tx, MemoryDecisions(tx, resources.ledger, person, by))
            return JSONResponse(done.model_dump(mode="json", by_alias=True))

        answer = await once_within(resources.store, request, person, key, body, run)
        await resources.on_memories_changed(person)
        return answer

    @router.patch(
        f"{PATH}/{{memory_id}}",
        response_model=ChangedMemory,
        responses=problems(404, 409),
        openapi_extra=request_body(MemoryChange),
    )
    async def change(request: Request, memory_id: Id, idempotency_key: IdempotencyKey = None) -> Response:
        """Correct, pin, rate or archive one of your memories."""
        person, body = caller_of(request).person, await read_body(request, body_limit)
        given = read_json(body, MemoryChange)
        if not given.model_fields_set:
            raise AnamnesisError(INVALID_FIELD, field="body", rule="must change something")

        def work(tx: Transaction, decisions: MemoryDecisions) -> ChangedMemory:
            acts = _change(decisions, memory_id, given)
            memory = MemoryChanges(tx, person, "").get(memory_id)
            (shown,) = views(tx, person, [memory])
            undoable = tuple(act.id for act in acts if act.can_be_undone)
            return ChangedMemory(memory=WholeMemory.model_validate(shown), acts=undoable)

        return await carry_out(request, idempotency_key, body, work)

    @router.delete(f"{PATH}/{{memory_id}}", response_model=DoneAct, responses=problems(404, 409))
    async def delete(
        request: Request,
        memory_id: Id,
        final: Annotated[Literal["true"] | None, Query(description="Erase the content for good.")] = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Delete one of your memories, with everything that its preview shows."""

        def work(tx: Transaction, decisions: MemoryDecisions) -> DoneAct:
            return _done(decisions.carry_out(lambda changes: changes.delete(memory_id, final=bool(final))))

        return await carry_out(request, idempotency_key, b"", work)

    @router.post(
        f"{PATH}/undo",
        response_model=DoneAct,
        responses=problems(404, 409),
        openapi_extra=request_body(UndoneAct, required=False),
    )
    async def undo(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """Undo a change of your memories: the named act, or the last one. The body may be left out."""
        body = await read_body(request, body_limit)
        given = read_json(body, UndoneAct) if body else UndoneAct()

        def work(tx: Transaction, decisions: MemoryDecisions) -> DoneAct:
            return _done(decisions.carry_out(lambda changes: changes.undo(given.act)))

        return await carry_out(request, idempotency_key, body, work)

    @router.post(f"{PATH}/{{memory_id}}/undo", response_model=DoneAct, responses=problems(404, 409))
    async def undo_one(request: Request, memory_id: Id, idempotency_key: IdempotencyKey = None) -> Response:
        """Undo the last change of one of your memories, which may be deleted."""

        def work(tx: Transaction, decisions: MemoryDecisions) -> DoneAct:
            return _done(decisions.carry_out(lambda changes: changes.undo(memory_id=memory_id)))

        return await carry_out(request, idempotency_key, b"", work)


def _change(decisions: MemoryDecisions, memory_id: str, given: MemoryChange) -> list[Act]:
    """Make the changes that are given, each as an act of its own."""
    acts = []
    if given.value is not None:
        acts.append(decisions.correct(memory_id, given.value))
    if given.content is not None:
        acts.append(decisions.edit(memory_id, given.content))
    if (pinned := given.pinned) is not None:
        acts.append(decisions.carry_out(lambda changes: changes.pin(memory_id, pinned=pinned)))
    if (archived := given.archived) is not None:
        acts.append(decisions.carry_out(lambda changes: changes.archive(memory_id, archived=archived)))
    if "rating" in given.model_fields_set:
        acts.append(decisions.carry_out(lambda changes: changes.rate(memory_id, given.rating)))
    return acts


def _done(act: Act) -> DoneAct:
    ids = tuple(kept.memory.id for kept in act.changed)
    return DoneAct(act=act.id, memory_ids=ids, can_be_undone=act.can_be_undone)


def _owner(caller: Caller, person: str | None, *, with_texts: bool) -> str:
    """Whose memories are listed, if the caller may see them. Lists have texts only of one's own."""
    if person in (None, caller.person):
        if Role.PERSON not in caller.roles:
            raise AnamnesisError(MISSING_ROLE, roles=Role.PERSON.value)
        return caller.person
    assert person is not None  # noqa: S101  checked above
    if "\0" in person:
        raise AnamnesisError(NUL_IN_TEXT)
    roles = (Role.OPERATOR, Role.PRIVACY)
    if not caller.has_any(roles):
        raise AnamnesisError(MISSING_ROLE, roles=", ".join(sorted(roles)))
    if with_texts:
        rule = "lists show and search the texts of your own memories only"
        raise AnamnesisError(INVALID_FIELD, field="texts", rule=rule)
    return person


def _readable(tx: Transaction, caller: Caller, memory_id: str, reason: str | None) -> tuple[MemoryView, Look]:
    """A memory that the caller may see, by its id or, if it is their own, by the id of its import."""
    imported = tx.memory_index.by_external_id(caller.person, memory_id)
    found = tx.pages.memory(imported.memory_id if imported else memory_id)
    try:
        if found is None:
            raise AnamnesisError(NOT_FOUND)
        return view(found), look_at_texts(caller, found.user_id, reason)
    except AnamnesisError as error:
        if error.problem is not NOT_FOUND:
            raise
    raise AnamnesisError(MEMORY_NOT_FOUND)


def _facts(found: MemoryView, texts: str | None) -> MemoryFacts:
    shown = MemoryFacts.model_validate(found)
    if texts:
        return shown
    return shown.model_copy(update={"about": None, "content": None, "source": None, "tags": ()})


def _whole(found: MemoryView, names: Names) -> WholeMemory:
    shown = WholeMemory.model_validate(found)
    return shown.model_copy(update={"person": names.person(found.user_id)})


def _lineage(found: Lineage, names: Names, limit: int) -> WholeLineage:
    derived = page_of(
        found.derived, limit, lambda each: position_cursor(each.position), lambda each: _whole(each, names)
    )
    changes = page_of(
        found.changes,
        limit,
        lambda each: number_cursor(each.number),
        lambda each: _change_as_seen(each, found.memory.user_id, names),
    )
    uses = map(Use.model_validate, found.uses)
    return WholeLineage(
        memory=_whole(found.memory, names),
        rests_on=tuple(_whole(each, names) for each in found.rests_on),
        derived=derived.items,
        next_derived=derived.next,
        changes=changes.items,
        next_changes=changes.next,
        uses=tuple(
            each.model_copy(update={"actor": names.actor(each.actor) if each.actor else None})
            for each in uses
        ),
    )


def _change_as_seen(entry: LedgerEntryLine, owner: str, names: Names) -> LedgerLine:
    """A change with the owner's name as the caller sees it. The owner may be named with or without a role."""
    changed = {
        name: names.person(owner) if value == owner else value
        for name, value in (entry.changed or {}).items()
    }
    actor = names.person(owner) if entry.actor == owner else names.actor(entry.actor)
    shown = LedgerLine.model_validate(entry)
    return shown.model_copy(update={"actor": actor, "changed": None if entry.changed is None else changed})


def _contradiction(found: Conflict) -> Contradiction:
    return Contradiction(
        about=found.current.about,
        subject=found.current.subject,
        current=WholeMemory.model_validate(found.current),
        other=WholeMemory.model_validate(found.other),
    )
