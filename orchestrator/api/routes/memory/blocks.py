"""`/v1/conversations/{id}/blocks`: the four memory blocks, now, at a revision or after a turn."""

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from memory_blocks.models import Label
from orchestrator.api.access.checking import caller_of, facts_of, reason_of, texts_of
from orchestrator.api.access.pseudonyms import Names, Pseudonyms
from orchestrator.api.answers import (
    LARGEST_NUMBER,
    Answer,
    Cursor,
    Id,
    Limit,
    Moment,
    Number,
    Page,
    number_cursor,
    page_of,
    problems,
    read_number,
)
from orchestrator.api.idempotency import IdempotencyKey, once
from orchestrator.api.ports import Resources
from orchestrator.inspection.blocks import BlockFacts, BlockInspector, BlockText
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import RevisionEntry

T = TypeVar("T")

PATH = "/v1/conversations/{conversation_id}/blocks"

AtTurn = Annotated[
    int | None,
    Query(alias="atTurn", ge=1, le=LARGEST_NUMBER, description="As the blocks were after this turn."),
]


class RevisionFacts(Answer):
    """A revision of a block: who wrote it, when and in which turn. A person is a pseudonym for an analyst."""

    revision: int
    size: int
    digest: str
    actor: str
    turn: int | None
    schema_version: str
    created_at: Moment


class BlockState(Answer):
    """How full a block is. Revision 0 is the empty block before the first turn; nobody wrote it."""

    label: str
    revision: int
    size: int
    limit: int
    utilization: float
    level: str
    digest: str
    written: RevisionFacts | None


class WholeBlock(BlockState):
    """A block with its text. `value` is the text read as JSON; null for the summary, which is plain text."""

    text: str
    value: dict[str, Any] | None


class BlockStates(Answer):
    """The state of all four blocks."""

    items: tuple[BlockState, ...]


class LineChange(Answer):
    """One difference: `+` added, `-` removed, `~` changed, and a line for people to read."""

    sign: str
    line: str


class BlockDiff(Answer):
    """What differs between two revisions of a block."""

    label: str
    first: int
    second: int
    changes: tuple[LineChange, ...]


class Departure(Answer):
    """A rule that a block breaks, and where."""

    label: str
    path: str
    rule: str


class Validation(Answer):
    """Whether the blocks keep all rules, and those they break."""

    valid: bool
    departures: tuple[Departure, ...]


class Rotated(Answer):
    """The numbers of the turns that were archived."""

    archived_turns: tuple[int, ...]


def build_router(resources: Resources, pseudonyms: Pseudonyms) -> APIRouter:
    """Build the routes. Those that show a text leave a trace; those that do not, leave none."""
    router = APIRouter(tags=["blocks"])
    store, ledger = resources.store, resources.ledger

    async def inspect(request: Request, conversation_id: str, work: Callable[[BlockInspector], T]) -> T:
        caller, reason = caller_of(request), reason_of(request)

        def run(tx: Transaction) -> T:
            row, look = texts_of(tx, caller, conversation_id, reason)
            return work(BlockInspector(tx, ledger, row, look))

        return await store.write(run)

    @router.get(PATH, responses=problems(404))
    async def show_list(request: Request, conversation_id: Id, at_turn: AtTurn = None) -> BlockStates:
        """How full the four blocks are, without their texts."""
        caller = caller_of(request)

        def read(tx: Transaction) -> list[BlockFacts]:
            row, look = facts_of(tx, caller, conversation_id)
            return BlockInspector(tx, ledger, row, look).facts(turn=at_turn)

        names = Names(caller, pseudonyms)
        return BlockStates(items=tuple(_state(each, names) for each in await store.read(read)))

    @router.post(f"{PATH}/validate", response_model=Validation, responses=problems(404, 409))
    async def validate(
        request: Request, conversation_id: Id, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """List every rule that the blocks break. Changes nothing, but leaves a trace of the look."""

        async def work() -> Response:
            found = await inspect(request, conversation_id, BlockInspector.validate)
            departures = tuple(Departure(label=a, path=b, rule=c) for a, b, c in found)
            return _json(Validation(valid=not departures, departures=departures))

        return await once(store, request, caller_of(request).person, idempotency_key, b"", work)

    @router.post(f"{PATH}/rotate", response_model=Rotated, responses=problems(404, 409, 412))
    async def rotate(
        request: Request, conversation_id: Id, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Archive all but the last turns now, whether or not rotation is due."""

        async def work() -> Response:
            return _json(
                Rotated(archived_turns=await inspect(request, conversation_id, BlockInspector.rotate))
            )

        return await once(store, request, caller_of(request).person, idempotency_key, b"", work)

    @router.get(f"{PATH}/{{label}}", responses=problems(404))
    async def show_one(
        request: Request, conversation_id: Id, label: Label, at_turn: AtTurn = None
    ) -> WholeBlock:
        """Show a block with its text, now or after a turn."""
        found = await inspect(request, conversation_id, lambda found: found.text(label, turn=at_turn))
        return _whole(found, Names(caller_of(request), pseudonyms))

    add_revisions(router, resources, pseudonyms, inspect)
    return router


def add_revisions(
    router: APIRouter, resources: Resources, pseudonyms: Pseudonyms, inspect: Callable[..., Any]
) -> None:
    """Add the routes of earlier revisions."""
    store = resources.store

    @router.get(f"{PATH}/{{label}}/revisions", responses=problems(404))
    async def show_revisions(
        request: Request, conversation_id: Id, label: Label, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[RevisionFacts]:
        """List the revisions of a block, newest first, without their texts."""
        caller, before = caller_of(request), read_number(cursor, LARGEST_NUMBER)

        def read(tx: Transaction) -> list[RevisionEntry]:
            facts_of(tx, caller, conversation_id)
            return tx.pages.revisions(conversation_id, label, before, limit + 1)

        found, names = await store.read(read), Names(caller, pseudonyms)
        return page_of(
            found,
            limit,
            lambda entry: number_cursor(entry.revision),
            lambda entry: _revision(RevisionFacts.model_validate(entry), names),
        )

    @router.get(f"{PATH}/{{label}}/revisions/{{revision}}", responses=problems(404))
    async def show_revision(
        request: Request, conversation_id: Id, label: Label, revision: Number
    ) -> WholeBlock:
        """Show one revision of a block with its text."""
        found = await inspect(request, conversation_id, lambda found: found.text(label, revision=revision))
        return _whole(found, Names(caller_of(request), pseudonyms))

    @router.get(f"{PATH}/{{label}}/diff", responses=problems(404))
    async def show_diff(
        request: Request,
        conversation_id: Id,
        label: Label,
        first: Annotated[int, Query(ge=1, le=LARGEST_NUMBER)],
        second: Annotated[int, Query(ge=1, le=LARGEST_NUMBER)],
    ) -> BlockDiff:
        """Show what differs between two revisions of a block."""
        changes = await inspect(request, conversation_id, lambda found: found.diff(label, first, second))
        return BlockDiff(
            label=label.value,
            first=first,
            second=second,
            changes=tuple(map(LineChange.model_validate, changes)),
        )


def _revision(facts: RevisionFacts, names: Names) -> RevisionFacts:
    return facts.model_copy(update={"actor": names.actor(facts.actor)})


def _state(facts: BlockFacts, names: Names) -> BlockState:
    state = BlockState.model_validate(facts)
    written = _revision(state.written, names) if state.written else None
    return state.model_copy(update={"written": written})


def _whole(block: BlockText, names: Names) -> WholeBlock:
    facts = _state(block.facts, names)
    value = None if facts.label == Label.CONTEXT_SUMMARY else json.loads(block.text)
    return WholeBlock(**dict(facts), text=block.text, value=value)


def _json(answer: Answer) -> Response:
    return JSONResponse(answer.model_dump(mode="json", by_alias=True))
