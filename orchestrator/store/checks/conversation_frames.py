"""Checks that the frames of a conversation agree with its messages, sentences, traces, turns and safety."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from sqlalchemy import bindparam, select

from agents.safety.verdict import SILENT
from orchestrator.errors import AnamnesisError
from orchestrator.store.checks.violations import Found, Violation
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.turn.traces import is_of_viewer
from orchestrator.store.rows import Frame, Message, SafetyEvent, Sentence, Trace, Turn
from orchestrator.wire.codec import MAX_FRAME_BYTES, open_frame, read
from orchestrator.wire.messages import (
    AssistantMessage,
    AssistantSentence,
    Body,
    ControlVariation,
    ErrorMessage,
    MemoryTrace,
    StartAnswer,
    UserMessage,
)

_SERVER_FRAMES: Final = Statement(
    all_of(Frame)
    .where(Frame.table.c.conversation_id == bindparam("id"), Frame.table.c.direction == "server")
    .order_by(Frame.table.c.stanza_id.desc()),
    Frame,
)
_SENTENCES: Final = Statement(
    all_of(Sentence)
    .join(Message.table, Sentence.table.c.message_id == Message.table.c.id)
    .where(Message.table.c.conversation_id == bindparam("id")),
    Sentence,
)
_CONTENTS_AND_SENTENCES: Final = Statement(
    select(Message.table.c.id, Message.table.c.contents, Sentence.table.c.text)
    .join(Sentence.table, Sentence.table.c.message_id == Message.table.c.id)
    .where(Message.table.c.conversation_id == bindparam("id"))
    .order_by(Message.table.c.sequence_number, Sentence.table.c.sentence_sequence_number),
    lambda *record: record,
)


def check_answers(unit: Unit, conversation_id: str) -> Found:
    """The contents of an answer are its sentences, joined."""
    texts: dict[str, list[str]] = {}
    contents: dict[str, str] = {}
    for message_id, whole, sentence in unit.all(_CONTENTS_AND_SENTENCES, id=conversation_id):
        contents[message_id] = whole
        texts.setdefault(message_id, []).append(sentence)
    for message_id, sentences in texts.items():
        if contents[message_id] != "".join(sentences):
            at = (conversation_id, message_id)
            yield Violation("sentences", "the contents of an answer are not its sentences", at)


@dataclass(frozen=True, slots=True)
class _DecodedFrame:
    """A stored frame and its message."""

    frame: Frame
    body: Body
    meta: Mapping[str, Any]


def check_frames(unit: Unit, conversation_id: str) -> Found:
    """All frames can be decoded and agree with the rows."""
    frames: list[_DecodedFrame] = []
    here: dict[str, Any] = {"conversation_id": conversation_id, "even_deleted": True}
    for frame in (
        *unit.find(Frame, "stanza_id", direction="client", **here),
        *unit.all(_SERVER_FRAMES, id=conversation_id),
    ):
        at = (conversation_id, str(frame.stanza_id))
        try:
            opened = open_frame(frame.payload, max_bytes=MAX_FRAME_BYTES)
            number, kind, named = map(opened.fields.get, ("stanzaId", "type", "conversationId"))
            if frame.direction == "client" and not named:
                named = conversation_id  # it started the conversation, so it had no id yet
            if (number, kind, named) != (frame.stanza_id, frame.type, conversation_id):
                yield Violation("I15", "a frame differs from its row", at)
            sender = cast(Literal["client", "server"], frame.direction)
            envelope = read(opened, sender=sender)
            frames.append(_DecodedFrame(frame, envelope.body, envelope.meta or {}))
        except AnamnesisError:
            yield Violation("frames", "a frame cannot be read", at)
    sent = [each for each in frames if each.frame.direction == "server"]
    messages = unit.find(Message, "sequence_number", **here)
    yield from _check_traces(unit.find(Trace, "id", **here), sent)
    yield from _check_messages(conversation_id, messages, [each.body for each in frames])
    yield from _check_sentences(conversation_id, unit.all(_SENTENCES, id=conversation_id), sent)
    steps = list(_steps(sent))
    yield from _check_order(steps)
    yield from _check_safety(unit.find(SafetyEvent, "created_at", "id", **here), sent)
    variations = sum(isinstance(each.body, ControlVariation) for each in frames)
    turns = unit.find(Turn, "number", **here)
    yield from _check_ends(conversation_id, turns, messages, variations, steps)


def _check_traces(traces: Iterable[Trace], sent: Iterable[_DecodedFrame]) -> Found:
    """I10: each trace was sent once, as it is stored. Traces of operators are not sent."""
    bodies = [each.body for each in sent if isinstance(each.body, MemoryTrace)]
    times = Counter[str](body.id for body in bodies)
    by_id = {str(body.id): body for body in bodies}
    for trace in traces:
        body = by_id.pop(trace.id, None)
        at = (trace.conversation_id, trace.id)
        if times[trace.id] > 1 or (body is None and not is_of_viewer(trace)):
            yield Violation("I10", "a trace was not sent exactly once", at)
        elif body is not None and (
            body.previous_id,
            body.memory_id,
            body.memory_type,
            body.action,
            body.content,
            body.confidence,
            body.metadata,
        ) != (
            trace.message_id,
            trace.memory_id,
            trace.memory_type,
            trace.action,
            trace.content,
            trace.confidence,
            trace.meta,
        ):
            yield Violation("I10", "a trace was sent differently than stored", at)
    for unknown in by_id:
        yield Violation("I10", "a trace was sent that is not stored", (unknown,))


def _check_messages(conversation_id: str, messages: Iterable[Message], bodies: Iterable[Body]) -> Found:
    """Each message is stored as it was sent: whole, as an edit, or in sentences. Synced ones are skipped."""
    sent: dict[str, tuple[str, str | None, str]] = {}
    edits = Counter[str | None]()
    for body in bodies:
        match body:
            case UserMessage():
                sent.setdefault(body.id, ("user", body.previous_id, body.content))  # it may be sent again
            case AssistantMessage():
                sent[body.id] = ("assistant", body.previous_id, body.content)
            case StartAnswer():
                sent[body.id] = ("assistant", body.previous_id, "")
            case AssistantSentence() if body.previous_id in sent:
                role, previous_id, text = sent[body.previous_id]
                sent[body.previous_id] = (role, previous_id, text + body.text)
            case ControlVariation(mode="edit"):
                edits[body.new_content] += 1
    for message in messages:
        if found := sent.pop(message.id, None):
            role, previous_id, text = found
            follows = previous_id in (message.previous_id, None)
            agrees = (role, text) == (message.message_role, message.contents) and follows
            if not agrees:
                yield Violation("frames", "a message differs from its frames", (conversation_id, message.id))
        else:
            edits[message.contents] -= 1
    for message_id in sent:
        yield Violation("frames", "a message was sent that is not stored", (conversation_id, message_id))
    if any(left > 0 for left in edits.values()):
        yield Violation("frames", "an edited message is not stored as it was sent", (conversation_id,))


def _check_sentences(
    conversation_id: str, sentences: Iterable[Sentence], sent: Iterable[_DecodedFrame]
) -> Found:
    """The stored sentences are those that were sent."""
    stored = {each.id: (each.message_id, each.sentence_sequence_number, each.text) for each in sentences}
    in_frames = {
        str(body.id): (str(body.previous_id), body.sequence, body.text)
        for each in sent
        if isinstance(body := each.body, AssistantSentence)
    }
    for sentence_id in sorted({name for name, _ in stored.items() ^ in_frames.items()}):
        yield Violation("frames", "a sentence differs from its frame", (conversation_id, sentence_id))


@dataclass(frozen=True, slots=True)
class _Step:
    """A frame of the server, with the attempt at a turn it belongs to and the answer that is streaming."""

    sent: _DecodedFrame
    attempt: tuple[int | None, int | None, int]
    streaming: tuple[int | None, str] | None

    @property
    def at(self) -> tuple[str, str]:
        """The conversation and the stanza number."""
        return self.sent.frame.conversation_id, str(self.sent.frame.stanza_id)

    @property
    def end(self) -> tuple[str, str] | None:
        """The state and id of the answer it ends. An error ends the streaming answer, or is one itself."""
        match self.sent.body:
            case AssistantSentence(is_final=True, previous_id=answer):
                return "completed", answer
            case AssistantMessage(id=answer):
                return "completed", answer
            case ErrorMessage(id=error):
                return "failed", self.streaming[1] if self.streaming else error
        return None


def _steps(sent: Iterable[_DecodedFrame]) -> Iterator[_Step]:
    streaming, ends = None, Counter[int | None]()
    for each in sent:
        turn = each.frame.turn
        step = _Step(each, (turn, each.frame.epoch, ends[turn]), streaming)
        yield step
        if isinstance(each.body, StartAnswer):
            streaming = (turn, str(each.body.id))
        elif step.end:
            streaming = None
            ends[turn] += 1


def _check_order(steps: list[_Step]) -> Found:
    """I16: StartAnswer comes before the traces and sentences of an answer, and answers do not overlap."""
    in_sentences = {each.attempt for each in steps if isinstance(each.sent.body, StartAnswer)}
    for each in steps:
        turn, streaming = each.sent.frame.turn, each.streaming
        match each.sent.body:
            case StartAnswer() if streaming or turn is None:
                yield Violation("I16", "an answer begins within another, or in no turn", each.at)
            case MemoryTrace(metadata=about) if not (about or {}).get("background"):
                whole = streaming is None and turn is not None and each.attempt not in in_sentences
                if not whole and (streaming is None or streaming[0] != turn):
                    yield Violation("I16", "a trace is outside its answer", each.at)
            case AssistantSentence(previous_id=answer) if streaming != (turn, answer):
                yield Violation("I16", "a sentence is outside its answer", each.at)
            case AssistantMessage() if streaming:
                yield Violation("I16", "a whole answer is within another", each.at)


def _check_safety(events: Iterable[SafetyEvent], sent: Iterable[_DecodedFrame]) -> Found:
    """I18: the answer to a message with danger begins with the safety sentence, before any trace.

    A danger that only stays, or is over or denied, is not said again.
    """
    in_danger = {event.message_id: event for event in events if event.tier and SILENT.isdisjoint(event.rules)}
    answers: dict[str, SafetyEvent] = {}
    for each in sent:
        body = each.body
        at = (each.frame.conversation_id, str(each.frame.stanza_id))
        match body:
            case StartAnswer() if event := in_danger.get(body.previous_id):
                answers[body.id] = event
                if event.stage == "message" and body.safety is None:
                    yield Violation(
                        "I18", "an answer to a person in danger is not marked as a safety answer", at
                    )
            case MemoryTrace() if body.previous_id in {
                event.message_id for event in answers.values() if event.stage == "message"
            }:
                yield Violation("I18", "a trace comes before the safety sentence", at)
            case AssistantSentence() if body.previous_id in answers and "guard" not in each.meta:
                del answers[body.previous_id]
                if "safety" not in each.meta:
                    yield Violation("I18", "a sentence comes before the safety sentence", at)
            case AssistantMessage() if body.previous_id in in_danger and "safety" not in each.meta:
                yield Violation("I18", "an answer to a person in danger is not the safety answer", at)


def _check_ends(
    conversation_id: str, turns: list[Turn], messages: Iterable[Message], variations: int, steps: list[_Step]
) -> Found:
    """I5: each answer ends once, with the state of its row, and each turn with its latest answer."""
    states: dict[str, str] = {}
    ends: dict[int | None, list[tuple[str, str]]] = {turn.number: [] for turn in turns}
    for each in steps:
        if isinstance(each.sent.body, StartAnswer):
            states[each.sent.body.id] = "streaming"
        if end := each.end:
            state, answer = end
            if states.get(answer, "streaming") != "streaming":
                yield Violation("I5", "an answer ends twice", each.at)
            if each.sent.frame.turn not in ends:
                yield Violation("I5", "an answer ends in no turn", each.at)
            ends.setdefault(each.sent.frame.turn, []).append(end)
            states[answer] = state
    ended = [turn for turn in turns if turn.state in ("completed", "failed")]
    for turn in ended:
        if ends[turn.number][-1:] != [(turn.state, turn.answer_id)]:
            at = (conversation_id, str(turn.number))
            yield Violation("I5", "a turn has ended, but its frames say otherwise", at)
    sent_whole = [  # safety answers to clients that do not stream, sent before the blocks are written
        turn
        for turn in turns
        if turn not in ended and turn.answer_id and ends[turn.number][-1:] == [("completed", turn.answer_id)]
    ]
    if sum(map(len, ends.values())) != len(ended) + len(sent_whole) + variations:
        yield Violation("I5", "the number of ended answers is not the number of requests", (conversation_id,))
    for message in messages:
        is_answer = message.message_role == "assistant" and message.local_id is None
        if is_answer and states.get(message.id) != message.completion_status:
            yield Violation(
                "I5", "the state of an answer differs from its frames", (conversation_id, message.id)
            )
