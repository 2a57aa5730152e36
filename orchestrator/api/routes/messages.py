"""`/v1/conversations/{id}/messages`, `/v1/messages/{id}` and notes: what was said and noted."""

from fastapi import APIRouter, Request

from orchestrator.api.access.checking import caller_of, facts_of, item_texts, reason_of, texts_of
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
from orchestrator.api.ports import Resources
from orchestrator.errors import ITEM_NOT_FOUND, AnamnesisError
from orchestrator.inspection.looks import trace_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import MessageEntry, NoteEntry
from orchestrator.store.rows import Message


class MessageFacts(Answer):
    """A message in a list, without its text."""

    id: str
    sequence_number: int
    previous_id: str | None
    role: str
    status: str
    characters: int
    created_at: Moment


class WholeMessage(Answer):
    """A message with its text."""

    id: str
    conversation_id: str
    sequence_number: int
    previous_id: str | None
    role: str
    status: str
    content: str
    created_at: Moment


class TranscriptMessage(Answer):
    """A message in a transcript. A superseded one was edited, or is an answer that was replaced."""

    id: str
    sequence_number: int
    previous_id: str | None
    role: str
    status: str
    superseded: bool
    content: str
    created_at: Moment


class NoteText(Answer):
    """What the person noted about a message; about the whole conversation if `message_id` is null."""

    id: str
    message_id: str | None
    content: str
    created_at: Moment


def build_router(resources: Resources) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["messages"])
    store = resources.store

    @router.get("/v1/conversations/{conversation_id}/messages", responses=problems(404))
    async def show_list(
        request: Request, conversation_id: Id, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[MessageFacts]:
        """List the messages of a conversation in order, without their texts."""
        caller, after = caller_of(request), read_number(cursor, 0)

        def read(tx: Transaction) -> list[MessageEntry]:
            facts_of(tx, caller, conversation_id)
            return tx.pages.messages(conversation_id, after, limit + 1)

        found = await store.read(read)
        return page_of(
            found, limit, lambda entry: number_cursor(entry.sequence_number), MessageFacts.model_validate
        )

    @router.get("/v1/conversations/{conversation_id}/transcript", responses=problems(404))
    async def show_transcript(
        request: Request, conversation_id: Id, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[TranscriptMessage]:
        """Show what was said in a conversation, in order. If staff reads it, each page leaves a trace."""
        caller, reason, after = caller_of(request), reason_of(request), read_number(cursor, 0)

        def read(tx: Transaction) -> list[TranscriptMessage]:
            row, look = texts_of(tx, caller, conversation_id, reason)
            found = tx.messages.page(row.id, after, limit + 1)
            if shown := found[:limit]:
                numbers = f"{shown[0].sequence_number} to {shown[-1].sequence_number}"
                trace_text(tx, row.id, look, f"the messages {numbers}")
            return [_said(tx, each) for each in found]

        found = await store.write(read)
        return page_of(found, limit, lambda each: number_cursor(each.sequence_number), lambda each: each)

    @router.get("/v1/conversations/{conversation_id}/notes", responses=problems(404))
    async def show_notes(
        request: Request, conversation_id: Id, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[NoteText]:
        """Show the notes of a conversation, the newest first. If staff reads them, a trace says so."""
        caller, reason, after = caller_of(request), reason_of(request), read_position(cursor)

        def read(tx: Transaction) -> list[NoteEntry]:
            row, look = texts_of(tx, caller, conversation_id, reason)
            found = tx.pages.notes(row.id, after, limit + 1)
            if shown := found[:limit]:
                trace_text(tx, row.id, look, f"{len(shown)} notes")
            return found

        found = await store.write(read)
        return page_of(found, limit, lambda each: position_cursor(each.position), NoteText.model_validate)

    @router.get("/v1/messages/{message_id}", responses=problems(404))
    async def show_one(request: Request, message_id: Id) -> WholeMessage:
        """Show one message with its text. If staff reads it, a trace says so."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> Message:
            found = message_of(tx, message_id)
            _, look = item_texts(tx, caller, found.conversation_id, reason, "message")
            trace_text(tx, found.conversation_id, look, f"message {found.id}")
            return found

        return _whole(await store.write(read))

    return router


def message_of(tx: Transaction, message_id: str) -> Message:
    """The message with that id."""
    found = tx.messages.get(message_id)
    if found is None:
        raise AnamnesisError(ITEM_NOT_FOUND, what="message")
    return found


def _said(tx: Transaction, row: Message) -> TranscriptMessage:
    return TranscriptMessage(
        id=row.id,
        sequence_number=row.sequence_number,
        previous_id=row.previous_id,
        role=row.message_role,
        status=row.completion_status,
        superseded=any(pair.key == "superseded" for pair in tx.meta.of(row.id)),
        content=row.contents,
        created_at=row.created_at,
    )


def _whole(row: Message) -> WholeMessage:
    return WholeMessage(
        id=row.id,
        conversation_id=row.conversation_id,
        sequence_number=row.sequence_number,
        previous_id=row.previous_id,
        role=row.message_role,
        status=row.completion_status,
        content=row.contents,
        created_at=row.created_at,
    )
