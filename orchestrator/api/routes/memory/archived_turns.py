"""`/v1/conversations/{id}/archived-turns`: turns that have left the history block, whole."""

import json
from typing import Any

from fastapi import APIRouter, Request

from orchestrator.api.access.checking import caller_of, facts_of, reason_of, texts_of
from orchestrator.api.answers import (
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
from orchestrator.api.ports import Resources
from orchestrator.errors import TURN_NOT_FOUND, AnamnesisError
from orchestrator.inspection.looks import trace_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import ArchivedEntry
from orchestrator.store.rows import ArchivedTurn

PATH = "/v1/conversations/{conversation_id}/archived-turns"


class ArchivedTurnFacts(Answer):
    """An archived turn in a list, without its text."""

    turn_id: int
    size: int
    digest: str
    archived_at: Moment


class WholeArchivedTurn(ArchivedTurnFacts):
    """An archived turn, as the block had it."""

    value: dict[str, Any]


def build_router(resources: Resources) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["archived turns"])
    store = resources.store

    @router.get(PATH, responses=problems(404))
    async def show_list(
        request: Request, conversation_id: Id, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[ArchivedTurnFacts]:
        """List the archived turns of a conversation in order, without their texts."""
        caller, after = caller_of(request), read_number(cursor, 0)

        def read(tx: Transaction) -> list[ArchivedEntry]:
            facts_of(tx, caller, conversation_id)
            return tx.pages.archived_turns(conversation_id, after, limit + 1)

        found = await store.read(read)
        return page_of(
            found, limit, lambda entry: number_cursor(entry.turn_id), ArchivedTurnFacts.model_validate
        )

    @router.get(f"{PATH}/{{turn}}", responses=problems(404))
    async def show_one(request: Request, conversation_id: Id, turn: Number) -> WholeArchivedTurn:
        """Show one archived turn. If staff reads it, a trace says so."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> ArchivedTurn:
            _, look = texts_of(tx, caller, conversation_id, reason)
            found = tx.unit.find_one(
                ArchivedTurn, conversation_id=conversation_id, turn_id=turn, has_left=True
            )
            if found is None:
                raise AnamnesisError(TURN_NOT_FOUND, latest=tx.blocks.last_left(conversation_id))
            trace_text(tx, conversation_id, look, f"archived turn {turn}")
            return found

        row = await store.write(read)
        return WholeArchivedTurn(
            turn_id=row.turn_id,
            size=len(row.value),
            digest=row.digest,
            archived_at=row.archived_at,
            value=json.loads(row.value),
        )

    return router
