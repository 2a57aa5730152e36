"""What each message means for the tables: the database mirrors the protocol here, and nowhere else.

Live frames and the replay of stored ones both come by here, so that the frames of a conversation, recorded
again in an empty database, give its tables. What a row needs and no frame carries is derived, never drawn by
lot.
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from functools import singledispatch
from typing import Any, TypeAlias

from orchestrator.store.database import Transaction
from orchestrator.store.rows import Conversation, Trace
from orchestrator.store.types import JsonObject
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
SETTINGS = ("client_version", "preferred_language", "device", "features")
"""What of a Configuration stays in force until another one changes it."""


def record(tx: Transaction, conversation: Conversation, envelope: Envelope[Body]) -> None:
    """Put what a frame says into the tables. Every frame that is kept comes by here, once."""
    again = isinstance(envelope.body, UserMessage) and tx.messages.get(envelope.body.id) is not None
    if again:  # it was sent once more under another number
        return
    _record(envelope.body, tx, conversation, envelope.stanza_id)
    if envelope.meta:
        about = subject(envelope.body) or conversation.id  # a first Configuration does not know it yet
        for key, value in envelope.meta.items():
            text = value if isinstance(value, str) else json.dumps(value)
            tx.meta.add(about, key, text, id=derived("meta_", conversation.id, envelope.stanza_id, key))


def derived(prefix: str, *parts: object) -> str:
    """An id of the usual form that is the same whenever it is made of the same parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return prefix + urlsafe_b64encode(digest).decode()[:21]


def edited(conversation_id: str, stanza_id: int) -> str:
    """The id of the message that a ControlVariation of mode `edit` makes."""
    return derived("msg_", conversation_id, "edit", stanza_id)


def synced(conversation_id: str, local_id: str) -> str:
    """The id of a message that a client kept while it was offline."""
    return derived("msg_", conversation_id, "sync", local_id)


def remembered(conversation_id: str, request_id: str) -> str:
    """The id of the memory that a MemoryAction makes."""
    return derived("mem_", conversation_id, request_id)


def request(conversation_id: str, body: Request) -> str:
    """The id of what a person asked for besides an answer: a note, or a change of a memory."""
    what = "memory" if isinstance(body, MemoryAction) else "note"
    return derived("req_", conversation_id, what, body.id)


def first_asked(tx: Transaction, conversation_id: str, body: Request) -> int | None:
    """The stanza that first asked for it: whatever comes later under that id is the same again, or wrong."""
    known = tx.meta.get(derived("meta_", request(conversation_id, body)))
    return int(known.value) if known else None


def _remember_asking(tx: Transaction, conversation_id: str, body: Request, stanza_id: int) -> None:
    about = request(conversation_id, body)
    tx.meta.add(about, "stanza", str(stanza_id), id=derived("meta_", about))


def subject(body: Body) -> str:
    """What the meta of an envelope is about."""
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
    """Most kinds of message leave nothing but their frame."""


@_record.register
def _(body: Configuration, tx: Transaction, conversation: Conversation, _: int) -> None:
    said = {name: getattr(body, name) for name in SETTINGS if getattr(body, name) is not None}
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}
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
    """A numbered one of the server closes an answer; one that had not begun stands under the error's id."""
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
    if tx.notes.ever(body.id) is not None:
        return
    about: JsonObject | None = {"commentaryType": body.commentary_type} if body.commentary_type else None
    by = conversation.user_id if stanza_id > 0 else "anamnesis"
    tx.notes.add(
        conversation.id, body.content, id=body.id, message_id=body.message_id, created_by=by, meta=about
    )
    _remember_asking(tx, conversation.id, body, stanza_id)


@_record.register
def _(body: UserNote, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    about: JsonObject | None = {"category": body.category} if body.category else None
    match body.action:
        case "create":
            if tx.notes.ever(body.id) is not None:
                return  # it was sent once more, perhaps after the note was changed
            tx.notes.add(
                conversation.id,
                body.content,
                id=body.id,
                message_id=body.message_id,
                created_by=conversation.user_id,
                meta=about,
            )
            _remember_asking(tx, conversation.id, body, stanza_id)
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
    """Sound that belongs to a sentence stands beside it; any other is a recording of its own."""
    if body.sentence_id:
        tx.messages.add_audio(
            body.sentence_id, audio_format=body.format, data=body.data, duration_ms=body.duration_ms
        )
        return
    tx.audio.add(
        conversation.id,
        id=derived("audio_", conversation.id, stanza_id),
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
        if not follows_something(tx, conversation.id, item, body):
            continue
        tx.messages.append(
            conversation.id,
            item.role,
            item.contents,
            id=synced(conversation.id, item.local_id),
            previous_id=_synced_previous(tx, conversation.id, item),
            local_id=item.local_id,
            created_at=item.created_at,
        )


def follows_something(
    tx: Transaction, conversation_id: str, item: EarlierMessage, request: SyncRequest
) -> bool:
    """Whether what an earlier message says it followed is here, or was sent along, be it kept or not."""
    return (
        item.previous_id is None
        or any(item.previous_id == other.local_id for other in request.messages)
        or _named_previous(tx, conversation_id, item.previous_id) is not None
    )


def _synced_previous(tx: Transaction, conversation_id: str, item: EarlierMessage) -> str | None:
    """What an earlier message followed: the one it names, else the last one."""
    named = item.previous_id and _named_previous(tx, conversation_id, item.previous_id)
    if named:
        return named
    last = tx.messages.last(conversation_id)
    return last.id if last else None


def _named_previous(tx: Transaction, conversation_id: str, named: str) -> str | None:
    """The message of this conversation that is meant, by the client's own id or by ours."""
    for candidate in (tx.messages.by_local_id(conversation_id, named), tx.messages.get(named)):
        if candidate is not None and candidate.conversation_id == conversation_id:
            return candidate.id
    return None


@_record.register
def _(body: ControlVariation, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    """What is answered again or corrected stays readable, and is marked superseded."""
    target = tx.messages.get(body.target_id)
    if target is None or body.mode == "continue":
        return
    branch = _branch(tx, conversation.id, target.id)
    if body.mode == "regenerate" and target.message_role == "user":
        next(branch)  # the message itself stands
    for each in branch:
        if not any(pair.key == "superseded" for pair in tx.meta.of(each)):
            tx.meta.add(each, "superseded", "true", id=derived("meta_", each, "superseded"))
    if body.mode == "edit":
        tx.messages.append(
            conversation.id,
            "user",
            body.new_content or "",
            id=edited(conversation.id, stanza_id),
            previous_id=target.previous_id,
        )


def _branch(tx: Transaction, conversation_id: str, message_id: str) -> Iterator[str]:
    """A message with all that was answered to it, and what these answers were gone on with."""
    yield message_id
    for answer in tx.messages.answers_to(conversation_id, message_id):
        yield from _branch(tx, conversation_id, answer.id)


@_record.register
def _(body: MemoryAction, tx: Transaction, conversation: Conversation, stanza_id: int) -> None:
    """A request is carried out once, however often it is sent: a row of meta remembers it."""
    if first_asked(tx, conversation.id, body) is not None:
        return
    _remember_asking(tx, conversation.id, body, stanza_id)
    draft = body.memory
    columns: dict[str, Any] = {}
    if draft is not None:
        given = {"content": draft.content, "pinned": draft.pinned, "user_rating": draft.rating}
        columns = {name: value for name, value in given.items() if value is not None}
        if draft.category is not None:
            columns["tags"] = (draft.category,)
    match body.action:
        case "create":
            memory_id = remembered(conversation.id, body.id)
            if tx.memories.ever(memory_id) is None:
                tx.memories.add(
                    columns.pop("content"),
                    id=memory_id,
                    user_id=conversation.user_id,
                    created_by=conversation.user_id,
                    source_type="user",
                    source_info={"conversation": conversation.id},
                    tags=columns.pop("tags", ()),
                    pinned=columns.pop("pinned", False),
                )
                if columns:
                    tx.memories.update(memory_id, **columns)
        case "update":
            tx.memories.update(_named(body), **columns)
        case "pin":
            tx.memories.update(_named(body), pinned=columns.get("pinned", True))
        case "archive":
            tx.memories.update(_named(body), archived=True)
        case "delete":
            tx.memories.delete(_named(body))


def _named(body: MemoryAction) -> str:
    return body.memory_id or ""
