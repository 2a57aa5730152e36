"""Handles each frame of a client inside one transaction: the frame is stored and answered, or refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Final

from orchestrator.errors import (
    CURSOR_TOO_HIGH,
    ID_REUSE,
    INVALID_FIELD,
    MEMORY_NOT_FOUND,
    NOT_ALLOWED,
    NOT_LATEST_TURN,
    OTHER_CONVERSATION,
    OVERLOADED,
    SERVER_BUSY,
    SESSION_REPLACED,
    STANZA_OUT_OF_ORDER,
    TOOL_UNKNOWN,
    TURN_RUNNING,
    AnamnesisError,
)
from orchestrator.ops import faults
from orchestrator.remember.changing import MemoryChanges
from orchestrator.remember.facts import Kept
from orchestrator.safety.assessment import MessageDecision, MessageRef, write_notes
from orchestrator.store.engine.database import Transaction
from orchestrator.store.frame_records import (
    Request,
    created_memory_id,
    edited_message_id,
    first_request_stanza,
    has_known_previous,
    record,
)
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK
from orchestrator.store.repositories.turn.safety import STAYS_OPEN
from orchestrator.store.rows import Conversation, Memory, Note, Turn
from orchestrator.turn import traces
from orchestrator.turn.outbox import ConversationWrite
from orchestrator.wire.codec import MAX_FRAME_BYTES, decode
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import MemoryId, MessageId, TraceId
from orchestrator.wire.messages import (
    Acknowledgement,
    AudioChunk,
    Body,
    Commentary,
    Configuration,
    ControlStop,
    ControlVariation,
    EarlierMessage,
    MemoryAction,
    MemoryConfirmation,
    MemoryTrace,
    NoteConfirmation,
    SyncedMessage,
    SyncRequest,
    SyncResponse,
    ToolUseResult,
    UnreadableMessage,
    UserMessage,
    UserNote,
)

ANSWERED: Final = (
    UserMessage,
    ControlStop,
    ControlVariation,
    Commentary,
    ToolUseResult,
    UserNote,
    MemoryAction,
    SyncRequest,
)
"""Frames whose answer, an Acknowledgement or a confirmation, is the next stored frame."""

STREAMING: Final = ("streaming",)
"""The features of a client that does not name any."""

OF_THIS_CONVERSATION: Final = "must be a message of this conversation"
FOLLOWS_NOTHING: Final = f"`previousId`: {OF_THIS_CONVERSATION}."
"""Why an earlier message cannot be stored, worded like the error about any other wrong field."""

OPEN_TOOL_STATES: Final = ("pending", "running")
OPEN_TURN_STATES: Final = ("pending", "in_progress")


@dataclass(frozen=True, slots=True)
class ConnectedPerson:
    """The person on a connection, and the id of the connection."""

    person_id: str
    connection_id: str
    conversation_id: str | None = None
    """The only conversation that the connection may use, if it came through that conversation's room."""


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """What one connection may do, and how much it is shown."""

    waiting: int
    """How many messages of a conversation may wait for an answer."""
    waiting_everywhere: int
    """How many messages of all conversations may wait for an answer."""
    snippet: int
    """How many characters of a memory a trace shows."""
    bad_frames_per_minute: int
    """A connection that sends more frames that are refused is closed."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation that a connection has opened, and the last server stanza that the client has seen."""

    conversation: Conversation
    seen: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """One frame of a client: its bytes, its envelope, and what is done about its safety."""

    envelope: Envelope[Body]
    type: int
    packet: bytes
    person: ConnectedPerson
    safety: MessageDecision = field(default_factory=MessageDecision)
    synced: Mapping[str, MessageDecision] = field(default_factory=dict)
    """The decisions about the messages of a SyncRequest, by the client's own ids; calm ones are left out."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What the session does once the frame is stored: answer, stop a turn, send the settings."""

    to_answer: str | None = None
    """The id of the message that is answered."""
    to_stop: int | None = None
    configured: bool = False


def find_conversation(tx: Transaction, arrival: Arrival) -> Opened:
    """The conversation of this person that a first Configuration names. Nothing is written."""
    found = tx.conversations.owned(arrival.envelope.conversation_id, arrival.person.person_id)
    return _opened_at(found, _configuration(arrival))


def open_conversation(tx: Transaction, arrival: Arrival) -> Opened:
    """Open the conversation that a first Configuration asks for: a new one, or one of this person."""
    envelope, body, person_id = arrival.envelope, _configuration(arrival), arrival.person.person_id
    if envelope.conversation_id:
        tx.conversations.lock(envelope.conversation_id)
        opened = find_conversation(tx, arrival)
    else:
        opened = _opened_at(tx.conversations.create(person_id), body)
    conversation = opened.conversation
    if envelope.stanza_id > conversation.last_client_stanza_id:
        _store_frame(tx, conversation.id, arrival)
    else:
        # A frame that is not stored must not change the meta of the stored one.
        envelope = envelope._replace(meta=None)
    if body.features is None:
        envelope = envelope._replace(body=body.model_copy(update={"features": STREAMING}))
    record(tx, conversation, envelope)
    tx.connections.take(conversation.id, arrival.person.connection_id)
    faults.point("before_open_commit")
    return Opened(tx.conversations.owned(conversation.id, person_id), opened.seen)


def _configuration(arrival: Arrival) -> Configuration:
    assert isinstance(arrival.envelope.body, Configuration)  # noqa: S101 - the session passes nothing else
    return arrival.envelope.body


def _opened_at(conversation: Conversation, body: Configuration) -> Opened:
    """The conversation with the last stanza that the client says it has seen."""
    sent = -conversation.last_server_stanza_id
    seen = sent if body.last_sequence_seen is None else body.last_sequence_seen
    if seen > sent:
        raise AnamnesisError(CURSOR_TOO_HIGH, seen=seen, sent=sent)
    return Opened(conversation, seen)


def accept(write: ConversationWrite, arrival: Arrival, limits: ConversationLimits) -> Consequence:
    """Store a frame with its rows, and answer it. A frame that is refused changes nothing."""
    envelope = arrival.envelope
    if write.tx.connections.current(write.conversation.id) != arrival.person.connection_id:
        raise AnamnesisError(SESSION_REPLACED)
    last = write.conversation.last_client_stanza_id
    if envelope.stanza_id > last:
        consequence = _handle(envelope.body, write, arrival, limits)
        _store_frame(write.tx, write.conversation.id, arrival)
        return consequence
    stored = write.tx.frames.client_frame(write.conversation.id, envelope.stanza_id)
    if stored is None or stored.payload != arrival.packet:
        raise AnamnesisError(STANZA_OUT_OF_ORDER, stanza=envelope.stanza_id, last=last)
    return _answer_again(write, arrival.envelope.body, stored.position)


def _store_frame(tx: Transaction, conversation_id: str, arrival: Arrival) -> None:
    tx.frames.accept_client(
        conversation_id,
        arrival.envelope.stanza_id,
        arrival.type,
        arrival.packet,
        sender=arrival.person.person_id,
    )


def _answer_again(write: ConversationWrite, body: Body, position: int) -> Consequence:
    """Repeat the answer to a frame that is sent again. It was stored right after the frame."""
    if isinstance(body, ANSWERED) and (answer := write.tx.frames.at(write.conversation.id, position + 1)):
        write.say(decode(answer.payload, sender="server", max_bytes=MAX_FRAME_BYTES).body)
    return Consequence(configured=isinstance(body, Configuration))


def _acknowledge(write: ConversationWrite, arrival: Arrival, *, success: bool = True) -> None:
    write.say(
        Acknowledgement(
            conversation_id=write.conversation_id,
            acknowledged_stanza_id=arrival.envelope.stanza_id,
            success=success,
        )
    )


# --- one function for each kind of frame -------------------------------------------------------------------


@singledispatch
def _handle(
    body: Body, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    """Frames that are stored and not answered: the client's errors and acknowledgements, and audio."""
    if isinstance(body, AudioChunk) and body.sentence_id:
        raise AnamnesisError(NOT_ALLOWED, what="Audio for a sentence of the assistant")
    record(write.tx, write.conversation, arrival.envelope)
    return Consequence()


@_handle.register
def _handle_configuration(
    body: Configuration, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    if body.conversation_id and body.conversation_id != write.conversation.id:
        raise AnamnesisError(OTHER_CONVERSATION)
    sent = -write.conversation.last_server_stanza_id
    if body.last_sequence_seen is not None and body.last_sequence_seen > sent:
        raise AnamnesisError(CURSOR_TOO_HIGH, seen=body.last_sequence_seen, sent=sent)
    record(write.tx, write.conversation, arrival.envelope)
    return Consequence(configured=True)


@_handle.register
def _handle_message(
    body: UserMessage, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    known = write.tx.messages.get(body.id)
    if known is not None:
        if (known.conversation_id, known.message_role, known.contents) != (
            write.conversation.id,
            "user",
            body.content,
        ):
            raise AnamnesisError(ID_REUSE)
        record(write.tx, write.conversation, arrival.envelope)
        _acknowledge(write, arrival)
        return Consequence()
    _check_message(write, body.previous_id, "body.previousId")
    is_danger = arrival.safety.is_danger
    if not is_danger:
        _check_room(write, limits)
    running = write.tx.turns.next_open(write.conversation.id) if is_danger else None
    record(write.tx, write.conversation, arrival.envelope)
    turn = write.tx.turns.enqueue(write.conversation.id, body.id)
    _record_safety(write, MessageRef(write.conversation.id, body.id, turn.number), arrival.safety)
    _acknowledge(write, arrival)
    return Consequence(to_answer=body.id, to_stop=running.number if running else None)


def _check_room(write: ConversationWrite, limits: ConversationLimits) -> None:
    """Raise if too many messages wait already. Nobody then waits longer than the server can foresee."""
    if write.tx.turns.count_open(write.conversation.id) >= limits.waiting:
        raise AnamnesisError(OVERLOADED, most=limits.waiting)
    if write.tx.turns.count_open_everywhere() >= limits.waiting_everywhere:
        raise AnamnesisError(SERVER_BUSY, most=limits.waiting_everywhere)


def _record_safety(write: ConversationWrite, message: MessageRef, decision: MessageDecision) -> None:
    """Store what was found in a message. If the person is in danger, stop the turns before this one."""
    write_notes(write.tx, message, decision.notes)
    if decision.is_danger and message.turn is not None:
        write.tx.turns.stop_before(message.conversation_id, message.turn)


@_handle.register
def _handle_stop(
    body: ControlStop, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    turn = _turn_to_stop(write, body)
    if turn is not None:
        write.tx.turns.request_stop(write.conversation.id, turn.number)
    record(write.tx, write.conversation, arrival.envelope)
    _acknowledge(write, arrival, success=turn is not None)
    return Consequence(to_stop=turn.number if turn else None)


def _turn_to_stop(write: ConversationWrite, body: ControlStop) -> Turn | None:
    """The turn that the frame names by its answer or its message; without a target, the running one."""
    turn = write.tx.turns.next_open(write.conversation.id)
    if turn is None or body.stop_type == "speech":  # there is no speech yet
        return None
    if body.target_id in (None, turn.answer_id):
        return turn
    named = write.tx.turns.of_message(body.target_id or "")
    here = named is not None and named.conversation_id == write.conversation.id
    return named if named is not None and here and named.state in OPEN_TURN_STATES else None


@_handle.register
def _handle_variation(
    body: ControlVariation, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    turn = write.tx.turns.latest(write.conversation.id)
    if turn is None or body.target_id not in _targets(turn, body.mode):
        raise AnamnesisError(NOT_LATEST_TURN)
    if turn.state in OPEN_TURN_STATES:
        raise AnamnesisError(TURN_RUNNING)
    if body.mode == "continue" and not _was_cut_short(write, body.target_id):
        raise AnamnesisError(NOT_ALLOWED, what="Continuing an answer that was not stopped")
    record(write.tx, write.conversation, arrival.envelope)
    message_id = (
        edited_message_id(write.conversation.id, arrival.envelope.stanza_id)
        if body.mode == "edit"
        else turn.user_message_id
    )
    write.tx.turns.reopen(turn, mode=body.mode, target_id=body.target_id, user_message_id=message_id)
    if body.mode == "edit":
        _record_safety(write, MessageRef(write.conversation.id, message_id, turn.number), arrival.safety)
    _acknowledge(write, arrival)
    return Consequence(to_answer=message_id)


def _targets(turn: Turn, mode: str) -> tuple[str | None, ...]:
    """The ids by which a client may name the turn. An answer that never began has no id that it knows."""
    match mode:
        case "edit":
            return (turn.user_message_id,)
        case "continue":
            return (turn.answer_id,)
        case _:
            return turn.answer_id, turn.user_message_id


def _was_cut_short(write: ConversationWrite, answer_id: str) -> bool:
    answer = write.tx.messages.get(answer_id)
    stopped = any(meta.key == "stopped" for meta in write.tx.meta.of(answer_id))
    return stopped or (answer is not None and answer.completion_status == "failed")


@_handle.register
def _handle_commentary(
    body: Commentary, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    _check_message(write, body.message_id, "body.messageId")
    known = write.tx.notes.get_even_deleted(body.id)
    if known is not None and (
        known.conversation_id != write.conversation.id or body.content not in _contents(write, known, body)
    ):
        raise AnamnesisError(ID_REUSE)
    record(write.tx, write.conversation, arrival.envelope)
    _acknowledge(write, arrival)
    return Consequence()


@_handle.register
def _handle_note(
    body: UserNote, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    _check_message(write, body.message_id, "body.messageId")
    known = write.tx.notes.get_even_deleted(body.id)
    if known is not None and known.conversation_id != write.conversation.id:
        raise AnamnesisError(ID_REUSE)
    if known is not None and body.action == "create" and body.content not in _contents(write, known, body):
        raise AnamnesisError(ID_REUSE)
    record(write.tx, write.conversation, arrival.envelope)
    can_be = known is not None and (known.deleted_at is None or body.action == "delete")
    write.say(
        NoteConfirmation(
            conversation_id=write.conversation_id,
            request_id=body.id,
            note_id=body.id,
            message_id=body.message_id,
            success=can_be or body.action == "create",
        )
    )
    return Consequence()


def _contents(write: ConversationWrite, note: Note, body: UserNote | Commentary) -> Iterator[str]:
    """The content of a note and, if it was changed, its first content."""
    yield note.content
    first = _first_request(write, body)
    if isinstance(first, UserNote | Commentary):
        yield first.content


def _first_request(write: ConversationWrite, body: Request) -> Body | None:
    """The first request that the client made under this id."""
    stanza_id = first_request_stanza(write.tx, write.conversation.id, body)
    frame = None if stanza_id is None else write.tx.frames.client_frame(write.conversation.id, stanza_id)
    return decode(frame.payload, sender="client", max_bytes=MAX_FRAME_BYTES).body if frame else None


@_handle.register
def _handle_memory_action(
    body: MemoryAction, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    first = _first_request(write, body)
    if first is not None and first != body:
        raise AnamnesisError(ID_REUSE)
    created = body.action == "create"
    memory_id = created_memory_id(write.conversation.id, body.id) if created else body.memory_id or ""
    done = first is not None or (not created and _is_deleted(write, body))
    taken_along = [] if done or created else _change_memory(write, body)
    record(write.tx, write.conversation, arrival.envelope)
    write.say(
        MemoryConfirmation(
            conversation_id=write.conversation_id,
            request_id=body.id,
            memory_id=MemoryId(memory_id),
            action=body.action,
            success=True,
        )
    )
    if not done:
        _trace_memory(write, body, write.tx.memories.get_even_deleted(memory_id), limits.snippet)
    for kept in taken_along:
        trace_id = write.tx.ids.new("trace_")
        write.say(traces.of_kept(kept, trace_id, write.conversation_id, None, actor="person"))
    return Consequence()


def _change_memory(write: ConversationWrite, body: MemoryAction) -> list[Kept]:
    """Carry out a request, so that it can be undone; returns the other memories that it took along.

    A deletion takes along what was derived from the memory and the utterances that it rests on.
    """
    user_id, id, draft = write.conversation.user_id, body.memory_id or "", body.memory
    changes, acts = MemoryChanges(write.tx, user_id, user_id), []
    match body.action:
        case "update" if draft is not None:
            if draft.content is not None:
                acts.append(changes.edit(id, content=draft.content))
            if draft.category is not None:
                acts.append(changes.edit(id, tags=(draft.category,)))
            if draft.pinned is not None:
                acts.append(changes.pin(id, pinned=draft.pinned))
            if draft.rating is not None:
                acts.append(changes.rate(id, draft.rating))
        case "pin":
            pinned = draft.pinned if draft else None
            acts.append(changes.pin(id, pinned=True if pinned is None else pinned))
        case "archive":
            acts.append(changes.archive(id))
        case "delete":
            acts.append(changes.delete(id))
    return [kept for act in acts for kept in act.changed if kept.memory.id != id]


def _is_deleted(write: ConversationWrite, body: MemoryAction) -> bool:
    """Whether the memory is deleted already, which is no error if it is to be deleted."""
    memory = write.tx.memories.get_even_deleted(body.memory_id or "")
    if memory is None or memory.user_id != write.conversation.user_id:
        raise AnamnesisError(MEMORY_NOT_FOUND)
    if memory.source_type == MEMORY_BLOCK:
        raise AnamnesisError(NOT_ALLOWED, what="Changing a memory block this way")
    if memory.deleted_at is not None and body.action != "delete":
        raise AnamnesisError(MEMORY_NOT_FOUND)
    return memory.deleted_at is not None


def _trace_memory(write: ConversationWrite, body: MemoryAction, memory: Memory | None, snippet: int) -> None:
    """Send the trace of the person's own change. Outside a turn it belongs to the last message."""
    if memory is None:
        return
    last = write.tx.messages.last(write.conversation.id)
    write.say(
        MemoryTrace(
            id=TraceId(write.tx.ids.new("trace_")),
            conversation_id=write.conversation_id,
            previous_id=MessageId(last.id) if last else None,
            memory_id=MemoryId(memory.id),
            memory_type="user_note",
            action="stored" if body.action == "create" else "updated",
            content=memory.content[:snippet],
            metadata={"agent": "person", "background": True, "changed": [body.action]}
            | ({"truncated": True} if len(memory.content) > snippet else {}),
        )
    )


@_handle.register
def _handle_sync(
    body: SyncRequest, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    messages, here = write.tx.messages, write.conversation.id
    new = {
        item.local_id: item
        for item in reversed(body.messages)  # if two have the same id, the first counts
        if isinstance(item, EarlierMessage)
        and item.local_id in arrival.synced
        and messages.by_local_id(here, item.local_id) is None
    }
    record(write.tx, write.conversation, arrival.envelope)
    for item in new.values():
        if (stored := messages.by_local_id(here, item.local_id)) and stored.contents == item.contents:
            is_recent = write.tx.now - item.created_at < STAYS_OPEN
            notes = arrival.synced[item.local_id].notes
            write_notes(write.tx, MessageRef(here, stored.id, None), notes, is_recent=is_recent)
    write.say(
        SyncResponse(
            conversation_id=write.conversation_id,
            synced_messages=tuple(_sync_result(item, body, write) for item in body.messages),
            synced_at=write.tx.now,
        )
    )
    return Consequence()


def _sync_result(
    item: EarlierMessage | UnreadableMessage, request: SyncRequest, write: ConversationWrite
) -> SyncedMessage:
    if isinstance(item, UnreadableMessage):
        return SyncedMessage(local_id=item.local_id, status="conflict", conflict=item.conflict)
    stored = write.tx.messages.by_local_id(write.conversation.id, item.local_id)
    if stored is None and not has_known_previous(write.tx, write.conversation.id, item, request):
        return SyncedMessage(local_id=item.local_id, status="conflict", conflict=FOLLOWS_NOTHING)
    if stored is None or (stored.message_role, stored.contents) != (item.role, item.contents):
        return SyncedMessage(local_id=item.local_id, status="conflict", conflict=ID_REUSE.says)
    return SyncedMessage(local_id=item.local_id, server_id=MessageId(stored.id), status="synced")


@_handle.register
def _handle_tool_result(
    body: ToolUseResult, write: ConversationWrite, arrival: Arrival, limits: ConversationLimits
) -> Consequence:
    use = write.tx.tools.get(body.request_id)
    if use is None or use.conversation_id != write.conversation.id or use.status not in OPEN_TOOL_STATES:
        raise AnamnesisError(TOOL_UNKNOWN)
    record(write.tx, write.conversation, arrival.envelope)
    _acknowledge(write, arrival)
    return Consequence()


def _check_message(write: ConversationWrite, message_id: str | None, field: str) -> None:
    if message_id is None:
        return
    message = write.tx.messages.get(message_id)
    if message is None or message.conversation_id != write.conversation.id:
        raise AnamnesisError(INVALID_FIELD, field=field, rule=OF_THIS_CONVERSATION)
