"""Writes the rows of each message: the only place that maps the protocol to the tables.

New frames and stored ones are recorded by the same code, so recording the frames of a conversation again in
an empty database gives the same rows. An id that no frame has is derived from the frame, never random.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from functools import singledispatch
from typing import Any, TypeAlias

from orchestrator.store.engine.database import Transaction
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Conversation, Trace
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.messages import (
    AssistantMessage,
    AssistantSentence,
    AudioChunk,
    Body,
    Commentary,
    Configuration,
    ControlVariation,
    EarlierMessage,
    ErrorMessage,
    MemoryAction,
    MemoryTrace,
    StartAnswer,
    SyncRequest,
    ToolUseRequest,
    ToolUseResult,
    UserMessage,
    UserNote,
)

Request: TypeAlias = MemoryAction | UserNote | Commentary
SETTINGS = ("client_version", "preferred_language", "time_zone", "device", "features")
"""The fields of a Configuration that stay in force until another one changes them."""


def record(tx: Transaction, conversation: Conversation, envelope: Envelope[Body]) -> None:
    """Write the rows of a frame. It is called once for each stored frame."""
    again = isinstance(envelope.body, UserMessage) and tx.messages.get(envelope.body.id) is not None
    if again:  # the client sent it again with another stanza number
        return
    _record(envelope.body, tx, conversation, envelope.stanza_id)
    if envelope.meta:
        # A first Configuration does not know the id of its conversation yet.
        about = subject_of_meta(envelope.body) or conversation.id
        for key, value in envelope.meta.items():
            text = value if isinstance(value, str) else json.dumps(value)
            tx.meta.add(about, key, text, id=derived_id("meta_", conversation.id, envelope.stanza_id, key))


def derived_id(prefix: str, *parts: object) -> str:
    """An id that depends only on the given parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return prefix + urlsafe_b64encode(digest).decode()[:21]


def edited_message_id(conversation_id: str, stanza_id: int) -> str:
    """The id of the message that a ControlVariation with mode `edit` creates."""
    return derived_id("msg_", conversation_id, "edit", stanza_id)


def synced_message_id(conversation_id: str, local_id: str) -> str:
    """The id of a message that a client had stored while it was offline."""
    return derived_id("msg_", conversation_id, "sync", local_id)


def created_memory_id(conversation_id: str, request_id: str) -> str:
    """The id of the memory that a MemoryAction creates."""
    return derived_id("mem_", conversation_id, request_id)


def request_id(conversation_id: str, body: Request) -> str:
    """The id of a request for a note or for a change of a memory."""
    what = "memory" if isinstance(body, MemoryAction) else "note"
    return derived_id("req_", conversation_id, what, body.id)


def first_request_stanza(tx: Transaction, conversation_id: str, body: Request) -> int | None:
    """The stanza of the first request with this id, or None. A later one is a repetition or an error."""
    known = tx.meta.get(derived_id("meta_", request_id(conversation_id, body)))
    return int(known.value) if known else None


def _remember_request(tx: Transaction, conversation_id: str, body: Request, stanza_id: int) -> None:
    about = request_id(conversation_id, body)
    tx.meta.add(about, "stanza", str(stanza_id), id=derived_id("meta_", about))


def subject_of_meta(body: Body) -> str:
    """The id of the row that the meta of an envelope belongs to."""
    match body:
        case AssistantSentence():
            return body.previous_id
        case ToolUseResult():
            return body.request_id
        case (
            UserMessage()
            | AssistantMessage()
            | StartAnswer()
            | MemoryTrace()
            | ErrorMessage()
            | ToolUseRequest()
            | Commentary()
            | UserNote()
        ):
            return body.id
        case _:
            return body.conversation_id


@singledispatch
def _record(body: Body, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    """By default, a message has no rows of its own."""


@_record.register
def _(body: Configuration, tx: Transaction, conversation: Conversation, _: int) -> None:
    given = {name: getattr(body, name) for name in SETTINGS if getattr(body, name) is not None}
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    if settings:
        tx.conversations.update(conversation.id, preferences={**conversation.preferences, **settings})


@_record.register
def _(body: UserMessage, tx: Transaction, conversation: Conversation, _: int) -> None:
    last = None if body.previous_id else tx.messages.last(conversation.id)
    previous_id = body.previous_id or (last.id if last else None)
    tx.messages.append(conversation.id, "user", body.content, id=body.id, previous_id=previous_id)


@_record.register
def _(body: AssistantMessage, tx: Transaction, conversation: Conversation, _: int) -> None:
    tx.messages.append(conversation.id, "assistant", body.content, id=body.id, previous_id=body.previous_id)


@_record.register
def _(body: StartAnswer, tx: Transaction, conversation: Conversation, _: int) -> None:
    tx.messages.begin_answer(conversation.id, body.previous_id, id=body.id)


@_record.register
def _(body: AssistantSentence, tx: Transaction, conversation: Conversation, _: int) -> None:
    tx.messages.say(body.previous_id, body.text, id=body.id, final=body.is_final)


@_record.register
def _(body: ErrorMessage, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    """A numbered error of the server ends an answer; if none has begun, it is stored as an empty one."""
    if stanza_id >= 0 or body.originating_id is None:
        return
    if streaming := tx.messages.streaming(conversation.id):
        tx.messages.fail(streaming.id)
    else:
        tx.messages.append(
            conversation.id,
            "assistant",
            "",
            id=body.id,
            previous_id=body.originating_id,
            completion_status="failed",
        )


@_record.register
def _(body: MemoryTrace, tx: Transaction, conversation: Conversation, _: int) -> None:
    about: dict[str, Any] = body.metadata or {}
    trace = Trace(
        id=body.id,
        conversation_id=conversation.id,
        message_id=body.previous_id,
        memory_id=body.memory_id,
        memory_type=body.memory_type,
        action=body.action,
        content=body.content,
        confidence=body.confidence,
        similarity_score=body.confidence,
        query_prompt=about.get("queryPrompt"),
        query_prompt_meta=None,
        position_in_results=about.get("position"),
        actor=about.get("agent"),
        meta=body.metadata,
        created_at=tx.now,
        updated_at=tx.now,
        deleted_at=None,
    )
    tx.traces.add([trace])


@_record.register
def _(body: Commentary, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    if tx.notes.get_even_deleted(body.id) is not None:
        return
    about: JsonObject | None = {"commentaryType": body.commentary_type} if body.commentary_type else None
    by = conversation.user_id if stanza_id > 0 else "anamnesis"
    tx.notes.add(
        conversation.id, body.content, id=body.id, message_id=body.message_id, created_by=by, meta=about
    )
    _remember_request(tx, conversation.id, body, stanza_id)


@_record.register
def _(body: UserNote, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    about: JsonObject | None = {"category": body.category} if body.category else None
    match body.action:
        case "create":
            if tx.notes.get_even_deleted(body.id) is not None:
                return  # sent again, perhaps after the note was changed
            tx.notes.add(
                conversation.id,
                body.content,
                id=body.id,
                message_id=body.message_id,
                created_by=conversation.user_id,
                meta=about,
            )
            _remember_request(tx, conversation.id, body, stanza_id)
        case "update":
            tx.notes.update(body.id, content=body.content, **({"meta": about} if about else {}))
        case "delete":
            tx.notes.delete(body.id)


@_record.register
def _(body: ToolUseRequest, tx: Transaction, conversation: Conversation, _: int) -> None:
    tx.tools.request(conversation.id, body.message_id, body.tool_name, body.parameters, id=body.id)


@_record.register
def _(body: ToolUseResult, tx: Transaction, conversation: Conversation, _: int) -> None:
    if body.success:
        tx.tools.succeed(body.request_id, body.result)
    else:
        tx.tools.fail(body.request_id, body.error_message or str(body.error_code or "failed"))


@_record.register
def _(body: AudioChunk, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    """Audio of a sentence is stored in its row; other audio is a recording of its own."""
    if body.sentence_id:
        tx.messages.add_audio(
            body.sentence_id, audio_format=body.format, data=body.data, duration_ms=body.duration_ms
        )
        return
    tx.audio.add(
        conversation.id,
        id=derived_id("audio_", conversation.id, stanza_id),
        audio_type="input" if stanza_id > 0 else "output",
        audio_format=body.format,
        data=body.data,
        duration_ms=body.duration_ms,
        livekit_track_sid=body.track_sid,
    )


@_record.register
def _(body: SyncRequest, tx: Transaction, conversation: Conversation, _: int) -> None:
    for item in body.messages:
        if not isinstance(item, EarlierMessage) or tx.messages.by_local_id(conversation.id, item.local_id):
            continue
        if not has_known_previous(tx, conversation.id, item, body):
            continue
        tx.messages.append(
            conversation.id,
            item.role,
            item.contents,
            id=synced_message_id(conversation.id, item.local_id),
            previous_id=_synced_previous(tx, conversation.id, item),
            local_id=item.local_id,
            created_at=item.created_at,
        )


def has_known_previous(
    tx: Transaction, conversation_id: str, item: EarlierMessage, request: SyncRequest
) -> bool:
    """Whether the message that an earlier message follows is stored or in the same request."""
    return (
        item.previous_id is None
        or any(item.previous_id == other.local_id for other in request.messages)
        or _named_previous(tx, conversation_id, item.previous_id) is not None
    )


def _synced_previous(tx: Transaction, conversation_id: str, item: EarlierMessage) -> str | None:
    """The message that an earlier message follows: the one it names, else the last one."""
    named = item.previous_id and _named_previous(tx, conversation_id, item.previous_id)
    if named:
        return named
    last = tx.messages.last(conversation_id)
    return last.id if last else None


def _named_previous(tx: Transaction, conversation_id: str, named: str) -> str | None:
    """The id of the message in this conversation with that id, given by the client or by us."""
    for candidate in (tx.messages.by_local_id(conversation_id, named), tx.messages.get(named)):
        if candidate is not None and candidate.conversation_id == conversation_id:
            return candidate.id
    return None


@_record.register
def _(body: ControlVariation, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    """The replaced messages stay in the tables, marked as superseded."""
    target = tx.messages.get(body.target_id)
    if target is None or body.mode == "continue":
        return
    branch = _branch(tx, conversation.id, target.id)
    if body.mode == "regenerate" and target.message_role == "user":
        next(branch)  # the message itself is not replaced
    for each in branch:
        if not any(pair.key == "superseded" for pair in tx.meta.of(each)):
            tx.meta.add(each, "superseded", "true", id=derived_id("meta_", each, "superseded"))
            tx.memory_work.note_change(conversation.id)
    if body.mode == "edit":
        tx.messages.append(
            conversation.id,
            "user",
            body.new_content or "",
            id=edited_message_id(conversation.id, stanza_id),
            previous_id=target.previous_id,
        )


def _branch(tx: Transaction, conversation_id: str, message_id: str) -> Iterator[str]:
    """The ids of a message, of the answers to it, and of their continuations."""
    yield message_id
    for answer in tx.messages.answers_to(conversation_id, message_id):
        yield from _branch(tx, conversation_id, answer.id)


@_record.register
def _(body: MemoryAction, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    """Carry out a request once, however often it is sent; a row of meta remembers it."""
    if first_request_stanza(tx, conversation.id, body) is not None:
        return
    _remember_request(tx, conversation.id, body, stanza_id)
    draft = body.memory
    columns: dict[str, Any] = {}
    if draft is not None:
        given = {"content": draft.content, "pinned": draft.pinned, "user_rating": draft.rating}
        columns = {name: value for name, value in given.items() if value is not None}
        if draft.category is not None:
            columns["tags"] = (draft.category,)
    match body.action:
        case "create":
            memory_id = created_memory_id(conversation.id, body.id)
            if tx.memories.get_even_deleted(memory_id) is None:
                tx.memories.add(
                    NewMemory(
                        content=columns.pop("content"),
                        id=memory_id,
                        user_id=conversation.user_id,
                        created_by=conversation.user_id,
                        source_type="user",
                        source_info={"conversation": conversation.id},
                        tags=columns.pop("tags", ()),
                        pinned=columns.pop("pinned", False),
                    )
                )
                if columns:
                    tx.memories.update(memory_id, **columns)
        case "update":
            _set(tx, _memory_id(body), **columns)
        case "pin":
            _set(tx, _memory_id(body), pinned=columns.get("pinned", True))
        case "archive":
            _set(tx, _memory_id(body), archived=True)
        case "delete":
            tx.memories.delete(_memory_id(body))


def _set(tx: Transaction, memory_id: str, **columns: Any) -> None:
    """Set columns of a memory that differ. The server has set them already; a rebuilt database has not."""
    memory = tx.memories.get(memory_id)
    new = {name: value for name, value in columns.items() if getattr(memory, name, value) != value}
    if new:
        tx.memories.update(memory_id, **new)


def _memory_id(body: MemoryAction) -> str:
    return body.memory_id or ""
