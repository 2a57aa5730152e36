"""What is done with each frame of a client, inside one transaction: stored and answered, or refused whole."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Final

from orchestrator import faults
from orchestrator.errors import (
    CURSOR_TOO_HIGH,
    ID_REUSE,
    INVALID_FIELD,
    MEMORY_NOT_FOUND,
    NOT_ALLOWED,
    NOT_LATEST_TURN,
    OTHER_CONVERSATION,
    OVERLOADED,
    SESSION_REPLACED,
    STANZA_OUT_OF_ORDER,
    TOOL_UNKNOWN,
    TURN_RUNNING,
    AnamnesisError,
)
from orchestrator.mirror import Request, edited, first_asked, follows_something, record, remembered
from orchestrator.outbox import Page
from orchestrator.store.database import Transaction
from orchestrator.store.memories import MEMORY_BLOCK
from orchestrator.store.rows import Conversation, Memory, Message, Note, Turn
from orchestrator.store.safety import STAYS_OPEN
from orchestrator.watch import About, Hearing, Watch
from orchestrator.watch import remembered as heard_in
from orchestrator.wire.codec import MOST_IN_FRAME, decode
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
"""What gets an Acknowledgement or a confirmation of its own, besides Configuration: the next stored frame."""

STREAMING: Final = ("streaming",)
"""The features of a client that names none."""

OF_THIS_CONVERSATION: Final = "must be a message of this conversation"
FOLLOWS_NOTHING: Final = f"`previousId`: {OF_THIS_CONVERSATION}."
"""Why an earlier message cannot be kept, in the words in which any other wrong field is told of."""

SHORT_REPLY: Final = 200
"""How long, in characters, a message may be that means something only with the question before it."""

MOST_ASKED: Final = 6
"""How many messages back a question is looked for that nobody answered yet."""

OPEN_TOOL_STATES: Final = ("pending", "running")
OPEN_TURN_STATES: Final = ("pending", "in_progress")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who speaks on a connection: the person, and which of their connections it is.

    One that comes through the room of a conversation belongs to that conversation, and to no other.
    """

    person_id: str
    connection_id: str
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many messages of a conversation may wait for an answer, and how much of a memory a trace shows."""

    waiting: int
    snippet: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation that a connection is now in: its row, and the last server stanza the client has seen."""

    conversation: Conversation
    seen: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """One frame of a client, as it came and as it was understood."""

    envelope: Envelope[Body]
    type: int
    packet: bytes
    visitor: Visitor
    allowance: Allowance
    watch: Watch
    heard: Hearing = field(default_factory=Hearing)
    """What was heard in it, before anything was written."""
    synced: Mapping[str, Hearing] = field(default_factory=dict)
    """What was heard in the messages of a SyncRequest, by the client's own ids."""


@dataclass(frozen=True, slots=True)
class Consequence:
    """What follows once the frame is stored: turns to take, the one to stop, settings to tell."""

    to_answer: bool = False
    to_stop: int | None = None
    configured: bool = False


def find_conversation(tx: Transaction, arrival: Arrival) -> Opened:
    """The conversation of this person that a first Configuration names; nothing is written."""
    found = tx.conversations.owned(arrival.envelope.conversation_id, arrival.visitor.person_id)
    return _as_seen(found, _first(arrival))


def open_conversation(tx: Transaction, arrival: Arrival) -> Opened:
    """The conversation that a first Configuration asks for: a new one, or one of this person's."""
    envelope, body, person_id = arrival.envelope, _first(arrival), arrival.visitor.person_id
    if envelope.conversation_id:
        tx.conversations.lock(envelope.conversation_id)
        opened = find_conversation(tx, arrival)
    else:
        opened = _as_seen(tx.conversations.create(person_id), body)
    conversation = opened.conversation
    if envelope.stanza_id > conversation.last_client_stanza_id:
        _keep(tx, conversation.id, arrival)
    else:
        envelope = envelope._replace(meta=None)  # a frame that is not kept says nothing about the kept ones
    if body.features is None:
        envelope = envelope._replace(body=body.model_copy(update={"features": STREAMING}))
    record(tx, conversation, envelope)
    tx.connections.take(conversation.id, arrival.visitor.connection_id)
    faults.point("before_open_commit")
    return Opened(tx.conversations.owned(conversation.id, person_id), opened.seen)


def _first(arrival: Arrival) -> Configuration:
    assert isinstance(arrival.envelope.body, Configuration)  # noqa: S101 - nothing else comes first
    return arrival.envelope.body


def _as_seen(conversation: Conversation, body: Configuration) -> Opened:
    sent = -conversation.last_server_stanza_id
    seen = sent if body.last_sequence_seen is None else body.last_sequence_seen
    if seen > sent:
        raise AnamnesisError(CURSOR_TOO_HIGH, seen=seen, sent=sent)
    return Opened(conversation, seen)


def accept(page: Page, arrival: Arrival) -> Consequence:
    """Store a frame and what it means, and answer it. What is refused leaves nothing behind."""
    envelope = arrival.envelope
    if page.tx.connections.current(page.conversation.id) != arrival.visitor.connection_id:
        raise AnamnesisError(SESSION_REPLACED)
    last = page.conversation.last_client_stanza_id
    if envelope.stanza_id > last:
        consequence = _handle(envelope.body, page, arrival)
        _keep(page.tx, page.conversation.id, arrival)
        return consequence
    stored = page.tx.frames.client_frame(page.conversation.id, envelope.stanza_id)
    if stored is None or stored.payload != arrival.packet:
        raise AnamnesisError(STANZA_OUT_OF_ORDER, stanza=envelope.stanza_id, last=last)
    return _answer_again(page, arrival.envelope.body, stored.position)


def _keep(tx: Transaction, conversation_id: str, arrival: Arrival) -> None:
    tx.frames.accept_client(
        conversation_id,
        arrival.envelope.stanza_id,
        arrival.type,
        arrival.packet,
        sender=arrival.visitor.person_id,
    )


def _answer_again(page: Page, body: Body, position: int) -> Consequence:
    """The same frame once more: it gets the answer it got, which was stored next to it, and nothing else."""
    if isinstance(body, ANSWERED) and (answer := page.tx.frames.at(page.conversation.id, position + 1)):
        page.say(decode(answer.payload, sender="server", most=MOST_IN_FRAME).body)
    return Consequence(configured=isinstance(body, Configuration))


def _acknowledge(page: Page, arrival: Arrival, *, success: bool = True) -> None:
    page.say(
        Acknowledgement(
            conversation_id=page.conversation_id,
            acknowledged_stanza_id=arrival.envelope.stanza_id,
            success=success,
        )
    )


# --- one function for each kind of frame -------------------------------------------------------------------


@singledispatch
def _handle(body: Body, page: Page, arrival: Arrival) -> Consequence:
    """Frames that are kept and ask for nothing: the client's own errors and acknowledgements, and sound."""
    if isinstance(body, AudioChunk) and body.sentence_id:
        raise AnamnesisError(NOT_ALLOWED, what="Sound for a sentence of the assistant")
    record(page.tx, page.conversation, arrival.envelope)
    return Consequence()


@_handle.register
def _(body: Configuration, page: Page, arrival: Arrival) -> Consequence:
    if body.conversation_id and body.conversation_id != page.conversation.id:
        raise AnamnesisError(OTHER_CONVERSATION)
    sent = -page.conversation.last_server_stanza_id
    if body.last_sequence_seen is not None and body.last_sequence_seen > sent:
        raise AnamnesisError(CURSOR_TOO_HIGH, seen=body.last_sequence_seen, sent=sent)
    record(page.tx, page.conversation, arrival.envelope)
    return Consequence(configured=True)


@_handle.register
def _(body: UserMessage, page: Page, arrival: Arrival) -> Consequence:
    known = page.tx.messages.get(body.id)
    if known is not None:
        if (known.conversation_id, known.message_role, known.contents) != (
            page.conversation.id,
            "user",
            body.content,
        ):
            raise AnamnesisError(ID_REUSE)
        record(page.tx, page.conversation, arrival.envelope)
        _acknowledge(page, arrival)
        return Consequence()
    _check_message(page, body.previous_id, "body.previousId")
    last = page.tx.messages.last(page.conversation.id)
    latest = page.tx.turns.latest(page.conversation.id)
    number = latest.number + 1 if latest else 1
    earlier = heard_in(page.tx.safety.heard_last(page.conversation.id, number))
    heard = _as_reply(arrival, body.content, still_asked(page.tx, last, arrival.watch), earlier)
    waiting = page.tx.turns.waiting(page.conversation.id)
    if waiting >= arrival.allowance.waiting and not heard.is_danger:
        raise AnamnesisError(OVERLOADED, most=arrival.allowance.waiting)
    running = page.tx.turns.next_open(page.conversation.id) if heard.is_danger else None
    record(page.tx, page.conversation, arrival.envelope)
    turn = page.tx.turns.enqueue(page.conversation.id, body.id)
    _give_way(page, About(page.conversation.id, body.id, turn.number), heard, arrival.watch)
    _acknowledge(page, arrival)
    return Consequence(to_answer=True, to_stop=running.number if running else None)


def still_asked(tx: Transaction, last: Message | None, watch: Watch) -> str | None:
    """What a reply may be a reply to: a bare "yes" means what the questions before it make of it.

    They are those of the last answer, and of the ones before it to which nothing was said but a "hm".
    """
    asked: list[str] = []
    for _ in range(MOST_ASKED):
        if last is None:
            break
        if last.message_role == "assistant":
            asked.append(last.contents)
        elif len(last.contents) > SHORT_REPLY or not watch.says_nothing(last.contents):
            break
        last = tx.messages.get(last.previous_id) if last.previous_id else None
    return "\n".join(reversed(asked)) or None


def _asked_before(page: Page, message_id: str, watch: Watch) -> str | None:
    """What an earlier message was a reply to."""
    message = page.tx.messages.get(message_id)
    before = page.tx.messages.get(message.previous_id) if message and message.previous_id else None
    return still_asked(page.tx, before, watch)


def _as_reply(arrival: Arrival, said: str, asked: str | None, earlier: Hearing) -> Hearing:
    """What was heard, and what a few words are as a reply to the question as it is stored.

    After a safety answer, those that bring nothing of their own leave the danger as it was `earlier`.
    """
    if len(said) > SHORT_REPLY:
        return arrival.heard
    heard = arrival.heard.raised_by(arrival.watch.hear(said, asked)) if asked else arrival.heard
    return arrival.watch.hear_still(said, asked or "", earlier, heard) if earlier.is_danger else heard


def _give_way(page: Page, about: About, heard: Hearing, watch: Watch) -> None:
    """Keep what was heard in a message; what runs or waits before a person in danger is stopped."""
    watch.note(page.tx, about, "message", heard)
    if heard.is_danger and about.turn is not None:
        page.tx.turns.stop_before(about.conversation_id, about.turn)


@_handle.register
def _(body: ControlStop, page: Page, arrival: Arrival) -> Consequence:
    turn = _to_stop(page, body)
    if turn is not None:
        page.tx.turns.request_stop(page.conversation.id, turn.number)
    record(page.tx, page.conversation, arrival.envelope)
    _acknowledge(page, arrival, success=turn is not None)
    return Consequence(to_stop=turn.number if turn else None)


def _to_stop(page: Page, body: ControlStop) -> Turn | None:
    """The turn that is meant, by its answer or its message; without a target, the one under way."""
    turn = page.tx.turns.next_open(page.conversation.id)
    if turn is None or body.stop_type == "speech":  # nothing is read aloud here
        return None
    if body.target_id in (None, turn.answer_id):
        return turn
    named = page.tx.turns.of_message(body.target_id or "")
    here = named is not None and named.conversation_id == page.conversation.id
    return named if named is not None and here and named.state in OPEN_TURN_STATES else None


@_handle.register
def _(body: ControlVariation, page: Page, arrival: Arrival) -> Consequence:
    turn = page.tx.turns.latest(page.conversation.id)
    if turn is None or body.target_id not in _targets(turn, body.mode):
        raise AnamnesisError(NOT_LATEST_TURN)
    if turn.state in OPEN_TURN_STATES:
        raise AnamnesisError(TURN_RUNNING)
    if body.mode == "continue" and not _was_cut_short(page, body.target_id):
        raise AnamnesisError(NOT_ALLOWED, what="Going on with an answer that was not stopped")
    record(page.tx, page.conversation, arrival.envelope)
    message_id = (
        edited(page.conversation.id, arrival.envelope.stanza_id)
        if body.mode == "edit"
        else turn.user_message_id
    )
    page.tx.turns.again(turn, mode=body.mode, target_id=body.target_id, user_message_id=message_id)
    if body.mode == "edit":
        heard = _as_reply(
            arrival,
            body.new_content or "",
            _asked_before(page, turn.user_message_id, arrival.watch),
            heard_in(page.tx.safety.heard_last(page.conversation.id, turn.number)),
        )
        _give_way(page, About(page.conversation.id, message_id, turn.number), heard, arrival.watch)
    _acknowledge(page, arrival)
    return Consequence(to_answer=True)


def _targets(turn: Turn, mode: str) -> tuple[str | None, ...]:
    """What of a turn can be named; an answer that never began has no id that a client knows."""
    match mode:
        case "edit":
            return (turn.user_message_id,)
        case "continue":
            return (turn.answer_id,)
        case _:
            return turn.answer_id, turn.user_message_id


def _was_cut_short(page: Page, answer_id: str) -> bool:
    answer = page.tx.messages.get(answer_id)
    stopped = any(meta.key == "stopped" for meta in page.tx.meta.of(answer_id))
    return stopped or (answer is not None and answer.completion_status == "failed")


@_handle.register
def _(body: Commentary, page: Page, arrival: Arrival) -> Consequence:
    _check_message(page, body.message_id, "body.messageId")
    known = page.tx.notes.ever(body.id)
    if known is not None and (
        known.conversation_id != page.conversation.id or body.content not in _contents(page, known, body)
    ):
        raise AnamnesisError(ID_REUSE)
    record(page.tx, page.conversation, arrival.envelope)
    _acknowledge(page, arrival)
    return Consequence()


@_handle.register
def _(body: UserNote, page: Page, arrival: Arrival) -> Consequence:
    _check_message(page, body.message_id, "body.messageId")
    known = page.tx.notes.ever(body.id)
    if known is not None and known.conversation_id != page.conversation.id:
        raise AnamnesisError(ID_REUSE)
    if known is not None and body.action == "create" and body.content not in _contents(page, known, body):
        raise AnamnesisError(ID_REUSE)
    record(page.tx, page.conversation, arrival.envelope)
    can_be = known is not None and (known.deleted_at is None or body.action == "delete")
    page.say(
        NoteConfirmation(
            conversation_id=page.conversation_id,
            request_id=body.id,
            note_id=body.id,
            message_id=body.message_id,
            success=can_be or body.action == "create",
        )
    )
    return Consequence()


def _contents(page: Page, note: Note, body: UserNote | Commentary) -> Iterator[str]:
    """What a note says and, if it was changed since, what it said when it was made."""
    yield note.content
    first = _first_asked(page, body)
    if isinstance(first, UserNote | Commentary):
        yield first.content


def _first_asked(page: Page, body: Request) -> Body | None:
    """What was first asked for under that id, as it was asked."""
    stanza_id = first_asked(page.tx, page.conversation.id, body)
    frame = None if stanza_id is None else page.tx.frames.client_frame(page.conversation.id, stanza_id)
    return decode(frame.payload, sender="client", most=MOST_IN_FRAME).body if frame else None


@_handle.register
def _(body: MemoryAction, page: Page, arrival: Arrival) -> Consequence:
    first = _first_asked(page, body)
    if first is not None and first != body:
        raise AnamnesisError(ID_REUSE)
    created = body.action == "create"
    memory_id = remembered(page.conversation.id, body.id) if created else body.memory_id or ""
    done = first is not None or (not created and _is_deleted(page, body))
    record(page.tx, page.conversation, arrival.envelope)
    page.say(
        MemoryConfirmation(
            conversation_id=page.conversation_id,
            request_id=body.id,
            memory_id=MemoryId(memory_id),
            action=body.action,
            success=True,
        )
    )
    if not done:
        _trace_memory(page, body, page.tx.memories.ever(memory_id), arrival.allowance.snippet)
    return Consequence()


def _is_deleted(page: Page, body: MemoryAction) -> bool:
    """Whether the memory to be changed is gone, which is all the better if it is to be deleted."""
    memory = page.tx.memories.ever(body.memory_id or "")
    if memory is None or memory.user_id != page.conversation.user_id:
        raise AnamnesisError(MEMORY_NOT_FOUND)
    if memory.source_type == MEMORY_BLOCK:
        raise AnamnesisError(NOT_ALLOWED, what="Changing a memory block this way")
    if memory.deleted_at is not None and body.action != "delete":
        raise AnamnesisError(MEMORY_NOT_FOUND)
    return memory.deleted_at is not None


def _trace_memory(page: Page, body: MemoryAction, memory: Memory | None, snippet: int) -> None:
    """The person's own change is traced like any other: outside a turn, it hangs on the last message."""
    if memory is None:
        return
    last = page.tx.messages.last(page.conversation.id)
    page.say(
        MemoryTrace(
            id=TraceId(page.tx.ids.new("trace_")),
            conversation_id=page.conversation_id,
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
def _(body: SyncRequest, page: Page, arrival: Arrival) -> Consequence:
    messages, here = page.tx.messages, page.conversation.id
    new = {
        item.local_id: item
        for item in reversed(body.messages)  # of two with one id, the first is kept
        if isinstance(item, EarlierMessage)
        and item.local_id in arrival.synced
        and messages.by_local_id(here, item.local_id) is None
    }
    record(page.tx, page.conversation, arrival.envelope)
    for item in new.values():
        if (stored := messages.by_local_id(here, item.local_id)) and stored.contents == item.contents:
            lately = page.tx.now - item.created_at < STAYS_OPEN
            about = About(here, stored.id, None)
            arrival.watch.note(page.tx, about, "message", arrival.synced[item.local_id], lately=lately)
    page.say(
        SyncResponse(
            conversation_id=page.conversation_id,
            synced_messages=tuple(_what_became_of(item, body, page) for item in body.messages),
            synced_at=page.tx.now,
        )
    )
    return Consequence()


def _what_became_of(
    item: EarlierMessage | UnreadableMessage, request: SyncRequest, page: Page
) -> SyncedMessage:
    if isinstance(item, UnreadableMessage):
        return SyncedMessage(local_id=item.local_id, status="conflict", conflict=item.conflict)
    stored = page.tx.messages.by_local_id(page.conversation.id, item.local_id)
    if stored is None and not follows_something(page.tx, page.conversation.id, item, request):
        return SyncedMessage(local_id=item.local_id, status="conflict", conflict=FOLLOWS_NOTHING)
    if stored is None or (stored.message_role, stored.contents) != (item.role, item.contents):
        return SyncedMessage(local_id=item.local_id, status="conflict", conflict=ID_REUSE.says)
    return SyncedMessage(local_id=item.local_id, server_id=MessageId(stored.id), status="synced")


@_handle.register
def _(body: ToolUseResult, page: Page, arrival: Arrival) -> Consequence:
    use = page.tx.tools.get(body.request_id)
    if use is None or use.conversation_id != page.conversation.id or use.status not in OPEN_TOOL_STATES:
        raise AnamnesisError(TOOL_UNKNOWN)
    record(page.tx, page.conversation, arrival.envelope)
    _acknowledge(page, arrival)
    return Consequence()


def _check_message(page: Page, message_id: str | None, field: str) -> None:
    if message_id is None:
        return
    message = page.tx.messages.get(message_id)
    if message is None or message.conversation_id != page.conversation.id:
        raise AnamnesisError(INVALID_FIELD, field=field, rule=OF_THIS_CONVERSATION)
