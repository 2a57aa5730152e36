"""What must hold of a store at any moment, whatever happened before: the invariants of `docs/faults.md`.

Those that one statement can ask are a table of queries that find nothing in a sound store; those about what
was sent read the frames of each conversation. What is found is told in ids and numbers only.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal, cast

from sqlalchemy import bindparam, select

from memory_blocks.ledger import unreadable
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Label
from memory_blocks.trace import digest
from orchestrator.errors import AnamnesisError
from orchestrator.store.database import Store
from orchestrator.store.packing import chain_departures
from orchestrator.store.rows import (
    ArchivedTurn,
    Block,
    BlockRevision,
    Conversation,
    Frame,
    Message,
    SafetyEvent,
    Sentence,
    Trace,
    Turn,
)
from orchestrator.store.soundness import Found, Violation, unsound, without_end
from orchestrator.store.statements import Statement, all_of
from orchestrator.store.traces import is_of_staff
from orchestrator.store.unit import Unit
from orchestrator.wire.codec import MOST_IN_FRAME, open_frame, read
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


@dataclass(frozen=True, slots=True)
class Look:
    """What a look through a store found, and through how many conversations it went."""

    violations: list[Violation]
    conversations: int


def check(store: Store, *, quiesced: bool = False, mirrored: bool = False) -> list[Violation]:
    """Every violation there is. With `quiesced` nothing may be under way either."""
    look = store.read_now(lambda tx: look_through(tx.unit, quiesced=quiesced, mirrored=mirrored))
    return look.violations


def look_through(unit: Unit, *, quiesced: bool = False, mirrored: bool = False) -> Look:
    """The same within a transaction, so that a program may go on meanwhile. Ends whatever it comes upon.

    `mirrored` says that Letta is configured: then, with `quiesced`, nothing may wait to be shown there.
    """
    found = list(unsound(unit))
    for invariant, why, query in _asked(quiesced=quiesced, mirrored=mirrored):
        found.extend(without_end(unit, _ask(unit, invariant, why, query), invariant))
    conversations: list[str] = []
    found.extend(without_end(unit, _gather(unit, conversations), "conversations"))
    for conversation_id in conversations:
        for name, hold in (("answers", _answers_hold), ("frames", _frames_hold), ("blocks", _blocks_hold)):
            found.extend(without_end(unit, hold(unit, conversation_id), name, conversation_id))
    return Look(found, len(conversations))


def _asked(*, quiesced: bool, mirrored: bool) -> Iterator[tuple[str, str, str]]:
    yield from _QUERIES
    if quiesced:
        yield from _WHEN_QUIET
    if quiesced and mirrored:
        yield from _WHEN_MIRRORED


def _ask(unit: Unit, invariant: str, why: str, query: str) -> Found:
    for record in unit.connection.execute(query).fetchall():
        yield Violation(invariant, why, tuple(map(str, record)))


def _gather(unit: Unit, conversations: list[str]) -> Found:
    """The ids of all conversations, put where they are asked for; there is nothing to be found in them."""
    conversations.extend(unit.all(_CONVERSATIONS))
    yield from ()


# --- what one statement can ask ----------------------------------------------------------------------------

_QUERIES: Final = (
    (
        "I2",
        "a message of the person has no turn",
        """SELECT conversation_id, id FROM alicia_messages
        WHERE message_role = 'user' AND local_id IS NULL
          AND id NOT IN (SELECT user_message_id FROM turns)
          AND id NOT IN (SELECT ref FROM alicia_meta WHERE key = 'superseded')""",
    ),
    (
        "I2",
        "a turn asks or answers with a message of the wrong role",
        """SELECT turns.conversation_id, number FROM turns
        JOIN alicia_messages asked ON asked.id = user_message_id
        LEFT JOIN alicia_messages answer ON answer.id = answer_id
        WHERE asked.message_role <> 'user' OR answer.message_role <> 'assistant'""",
    ),
    (
        "I2",
        "a turn is over and its answer is not, or has another end",
        """SELECT turns.conversation_id, number FROM turns
        JOIN alicia_messages answer ON answer.id = answer_id
        WHERE state IN ('completed', 'failed') AND answer.completion_status <> state""",
    ),
    (
        "I3",
        "the turns are not numbered 1..n",
        """SELECT conversation_id FROM turns GROUP BY conversation_id
        HAVING min(number) <> 1 OR max(number) <> count(*)""",
    ),
    (
        "I6",
        "the server's stanzas are not numbered -1..-n",
        """SELECT conversation_id FROM frames WHERE direction = 'server' GROUP BY conversation_id
        HAVING max(stanza_id) <> -1 OR min(stanza_id) <> -count(*)""",
    ),
    (
        "I8",
        "a count is not that of the last frame",
        """SELECT id FROM alicia_conversations
        WHERE last_server_stanza_id <> coalesce((SELECT min(stanza_id) FROM frames
                WHERE conversation_id = alicia_conversations.id AND direction = 'server'), 0)
           OR last_client_stanza_id <> coalesce((SELECT max(stanza_id) FROM frames
                WHERE conversation_id = alicia_conversations.id AND direction = 'client'), 0)""",
    ),
    (
        "I15",
        "a trace names a memory of another person",
        """SELECT used.id FROM alicia_memory_used used
        JOIN alicia_memory memory ON memory.id = memory_id
        JOIN alicia_conversations conversation ON conversation.id = conversation_id
        WHERE memory.user_id <> conversation.user_id""",
    ),
    (
        "I15",
        "a trace names a block of another conversation",
        """SELECT used.id FROM alicia_memory_used used JOIN blocks ON blocks.memory_id = used.memory_id
        WHERE blocks.conversation_id <> used.conversation_id""",
    ),
    (
        "I15",
        "a block is known as something else than a block of its person",
        """SELECT blocks.conversation_id, label FROM blocks
        JOIN alicia_memory memory ON memory.id = memory_id
        JOIN alicia_conversations conversation ON conversation.id = blocks.conversation_id
        WHERE memory.source_type IS NULL OR memory.source_type <> 'memory_block'
           OR memory.user_id IS NULL OR memory.user_id <> conversation.user_id""",
    ),
    (
        "I17",
        "an epoch goes back",
        """SELECT conversation_id, stanza_id FROM (
            SELECT conversation_id, stanza_id, epoch, max(epoch) OVER (
                PARTITION BY conversation_id ORDER BY stanza_id DESC) AS highest
            FROM frames WHERE direction = 'server') AS frame
        WHERE epoch < highest""",
    ),
    (
        "I17",
        "a frame has an epoch that no lease has had",
        """SELECT frames.conversation_id, stanza_id FROM frames
        LEFT JOIN leases ON leases.conversation_id = frames.conversation_id
        WHERE frames.epoch > coalesce(leases.epoch, 0)""",
    ),
    (
        "traces",
        "a trace has one of its two scores",
        "SELECT id FROM alicia_memory_used WHERE (confidence IS NULL) <> (similarity_score IS NULL)",
    ),
    (
        "messages",
        "the messages are not numbered 1..n",
        """SELECT conversation_id FROM alicia_messages GROUP BY conversation_id
        HAVING min(sequence_number) <> 1 OR max(sequence_number) <> count(*)""",
    ),
    (
        "messages",
        "a message comes before the one it follows",
        """SELECT later.conversation_id, later.id FROM alicia_messages later
        JOIN alicia_messages earlier ON earlier.id = later.previous_id
        WHERE earlier.sequence_number > later.sequence_number""",
    ),
    (
        "sentences",
        "the sentences are not numbered 1..n",
        """SELECT message_id FROM alicia_sentences GROUP BY message_id
        HAVING min(sentence_sequence_number) <> 1 OR max(sentence_sequence_number) <> count(*)""",
    ),
    (
        "sentences",
        "a message of the person has sentences",
        """SELECT DISTINCT message_id FROM alicia_sentences
        JOIN alicia_messages message ON message.id = message_id WHERE message_role <> 'assistant'""",
    ),
    (
        "blocks",
        "a block is not its latest revision",
        """SELECT block.conversation_id, block.label FROM blocks block
        JOIN block_revisions latest ON latest.conversation_id = block.conversation_id
            AND latest.label = block.label AND latest.revision = (
                SELECT max(revision) FROM block_revisions
                WHERE conversation_id = block.conversation_id AND label = block.label)
        WHERE block.revision IS NULL OR block.revision <> latest.revision OR block.digest <> latest.digest
           OR block.schema_version <> latest.schema_version""",
    ),
)

_WHEN_QUIET: Final = (
    (
        "I4",
        "a turn is open",
        "SELECT conversation_id, number FROM turns WHERE state IN ('pending', 'in_progress')",
    ),
    (
        "I4",
        "an answer still streams",
        "SELECT conversation_id, id FROM alicia_messages WHERE completion_status IN ('pending', 'streaming')",
    ),
)

_WHEN_MIRRORED: Final = (
    (
        "I12",
        "a block waits to be shown",
        "SELECT conversation_id, label FROM letta_blocks WHERE intent IS NOT NULL",
    ),
    (
        "I12",
        "a passage waits to be shown",
        "SELECT conversation_id, first_turn FROM letta_passages WHERE passage_id IS NULL",
    ),
)

_CONVERSATIONS: Final = Statement(select(Conversation.table.c.id).order_by(Conversation.table.c.id), str)


def _here(row_type: Any, *order: str, **only: Any) -> Statement[Any]:
    """The rows of one conversation, deleted ones too."""
    table = row_type.table
    where = [
        table.c.conversation_id == bindparam("id"),
        *(table.c[name] == is_ for name, is_ in only.items()),
    ]
    return Statement(all_of(row_type).where(*where).order_by(*(table.c[name] for name in order)), row_type)


_TURNS: Final = _here(Turn, "number")
_MESSAGES: Final = _here(Message, "sequence_number")
_TRACES: Final = _here(Trace, "id")
_BLOCKS: Final = _here(Block, "label")
_SAFETY_EVENTS: Final = _here(SafetyEvent, "created_at", "id")
_REVISIONS: Final = _here(BlockRevision, "label", "revision")
_ARCHIVE: Final = _here(ArchivedTurn, "turn_id")
_CLIENT_FRAMES: Final = _here(Frame, "stanza_id", direction="client")
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
_SAID: Final = Statement(
    select(Message.table.c.id, Message.table.c.contents, Sentence.table.c.text)
    .join(Sentence.table, Sentence.table.c.message_id == Message.table.c.id)
    .where(Message.table.c.conversation_id == bindparam("id"))
    .order_by(Message.table.c.sequence_number, Sentence.table.c.sentence_sequence_number),
    lambda *record: record,
)


def _answers_hold(unit: Unit, conversation_id: str) -> Found:
    """An answer that was said in sentences is those sentences, one after the other."""
    said: dict[str, list[str]] = {}
    contents: dict[str, str] = {}
    for message_id, whole, sentence in unit.all(_SAID, id=conversation_id):
        contents[message_id] = whole
        said.setdefault(message_id, []).append(sentence)
    for message_id, sentences in said.items():
        if contents[message_id] != "".join(sentences):
            yield Violation("sentences", "an answer is not its sentences", (conversation_id, message_id))


# --- what was sent -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """A frame, and what it says."""

    frame: Frame
    body: Body
    meta: Mapping[str, Any]


def _frames_hold(unit: Unit, conversation_id: str) -> Found:
    frames: list[_Read] = []
    for frame in (
        *unit.all(_CLIENT_FRAMES, id=conversation_id),
        *unit.all(_SERVER_FRAMES, id=conversation_id),
    ):
        at = (conversation_id, str(frame.stanza_id))
        try:
            opened = open_frame(frame.payload, most=MOST_IN_FRAME)
            number, kind, named = map(opened.fields.get, ("stanzaId", "type", "conversationId"))
            if frame.direction == "client" and not named:
                named = conversation_id  # it asked for a conversation, so it had no id
            if (number, kind, named) != (frame.stanza_id, frame.type, conversation_id):
                yield Violation("I15", "a frame says otherwise than its row", at)
            sender = cast(Literal["client", "server"], frame.direction)
            understood = read(opened, sender=sender)
            frames.append(_Read(frame, understood.body, understood.meta or {}))
        except AnamnesisError:
            yield Violation("frames", "a frame cannot be read", at)
    sent = [each for each in frames if each.frame.direction == "server"]
    messages: list[Message] = unit.all(_MESSAGES, id=conversation_id)
    yield from _traces_match(unit.all(_TRACES, id=conversation_id), sent)
    yield from _messages_match(conversation_id, messages, [each.body for each in frames])
    yield from _sentences_match(conversation_id, unit.all(_SENTENCES, id=conversation_id), sent)
    told = list(_in_place(sent))
    yield from _order_holds(told)
    yield from _safety_first(unit.all(_SAFETY_EVENTS, id=conversation_id), sent)
    variations = sum(isinstance(each.body, ControlVariation) for each in frames)
    yield from _ends_agree(conversation_id, unit.all(_TURNS, id=conversation_id), messages, variations, told)


def _traces_match(traces: Iterable[Trace], sent: Iterable[_Read]) -> Found:
    """I10: each trace went out once, as it is stored; what staff has read is told to nobody."""
    bodies = [each.body for each in sent if isinstance(each.body, MemoryTrace)]
    times = Counter[str](body.id for body in bodies)
    by_id = {str(body.id): body for body in bodies}
    for trace in traces:
        body = by_id.pop(trace.id, None)
        at = (trace.conversation_id, trace.id)
        if times[trace.id] > 1 or (body is None and not is_of_staff(trace)):
            yield Violation("I10", "a trace did not go out once", at)
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
            yield Violation("I10", "a trace went out otherwise than stored", at)
    for unknown in by_id:
        yield Violation("I10", "a trace went out that is not stored", (unknown,))


def _messages_match(conversation_id: str, messages: Iterable[Message], bodies: Iterable[Body]) -> Found:
    """What was told, at once, as a correction or in sentences, is stored so; the synced is not asked for."""
    said: dict[str, tuple[str, str | None, str]] = {}
    corrections = Counter[str | None]()
    for body in bodies:
        match body:
            case UserMessage():
                said.setdefault(body.id, ("user", body.previous_id, body.content))  # it may come again
            case AssistantMessage():
                said[body.id] = ("assistant", body.previous_id, body.content)
            case StartAnswer():
                said[body.id] = ("assistant", body.previous_id, "")
            case AssistantSentence() if body.previous_id in said:
                role, previous_id, text = said[body.previous_id]
                said[body.previous_id] = (role, previous_id, text + body.text)
            case ControlVariation(mode="edit"):
                corrections[body.new_content] += 1
    for message in messages:
        if told := said.pop(message.id, None):
            role, previous_id, text = told
            follows = previous_id in (message.previous_id, None)
            holds = (role, text) == (message.message_role, message.contents) and follows
            if not holds:
                yield Violation("frames", "a message is not as it was told", (conversation_id, message.id))
        else:
            corrections[message.contents] -= 1
    for message_id in said:
        yield Violation("frames", "a message was told that is not stored", (conversation_id, message_id))
    if any(left > 0 for left in corrections.values()):
        yield Violation("frames", "a correction is not stored as it was told", (conversation_id,))


def _sentences_match(conversation_id: str, sentences: Iterable[Sentence], sent: Iterable[_Read]) -> Found:
    stored = {each.id: (each.message_id, each.sentence_sequence_number, each.text) for each in sentences}
    told = {
        str(body.id): (str(body.previous_id), body.sequence, body.text)
        for each in sent
        if isinstance(body := each.body, AssistantSentence)
    }
    for sentence_id in sorted({name for name, _ in stored.items() ^ told.items()}):
        yield Violation("frames", "a sentence is not as it was told", (conversation_id, sentence_id))


@dataclass(frozen=True, slots=True)
class _Told:
    """A frame of the server in its place: in which attempt at a turn, and while which answer streams."""

    sent: _Read
    attempt: tuple[int | None, int | None, int]
    streaming: tuple[int | None, str] | None

    @property
    def at(self) -> tuple[str, str]:
        """Where it stands."""
        return self.sent.frame.conversation_id, str(self.sent.frame.stanza_id)

    @property
    def end(self) -> tuple[str, str] | None:
        """How it ends an answer, and which: an error ends the one that streams, or stands for one itself."""
        match self.sent.body:
            case AssistantSentence(is_final=True, previous_id=answer):
                return "completed", answer
            case AssistantMessage(id=answer):
                return "completed", answer
            case ErrorMessage(id=error):
                return "failed", self.streaming[1] if self.streaming else error
        return None


def _in_place(sent: Iterable[_Read]) -> Iterator[_Told]:
    streaming, ends = None, Counter[int | None]()
    for each in sent:
        turn = each.frame.turn
        told = _Told(each, (turn, each.frame.epoch, ends[turn]), streaming)
        yield told
        if isinstance(each.body, StartAnswer):
            streaming = (turn, str(each.body.id))
        elif told.end:
            streaming = None
            ends[turn] += 1


def _order_holds(told: list[_Told]) -> Found:
    """I16: an answer in sentences begins, its traces and sentences follow, and no other comes between."""
    in_sentences = {each.attempt for each in told if isinstance(each.sent.body, StartAnswer)}
    for each in told:
        turn, streaming = each.sent.frame.turn, each.streaming
        match each.sent.body:
            case StartAnswer() if streaming or turn is None:
                yield Violation("I16", "an answer begins within another, or in no turn", each.at)
            case MemoryTrace(metadata=about) if not (about or {}).get("background"):
                whole = streaming is None and turn is not None and each.attempt not in in_sentences
                if not whole and (streaming is None or streaming[0] != turn):
                    yield Violation("I16", "a trace stands outside of its answer", each.at)
            case AssistantSentence(previous_id=answer) if streaming != (turn, answer):
                yield Violation("I16", "a sentence stands outside of its answer", each.at)
            case AssistantMessage() if streaming:
                yield Violation("I16", "a whole answer stands within another", each.at)


def _safety_first(events: Iterable[SafetyEvent], sent: Iterable[_Read]) -> Found:
    """I18: where danger was heard, an answer's first words are the guard's, and before any trace of it."""
    in_danger = {event.message_id: event for event in events if event.tier}
    answers: dict[str, SafetyEvent] = {}
    for each in sent:
        body = each.body
        at = (each.frame.conversation_id, str(each.frame.stanza_id))
        match body:
            case StartAnswer() if event := in_danger.get(body.previous_id):
                answers[body.id] = event
                if event.stage == "message" and body.safety is None:
                    yield Violation("I18", "an answer to a person in danger does not say that it is one", at)
            case MemoryTrace() if body.previous_id in {
                event.message_id for event in answers.values() if event.stage == "message"
            }:
                yield Violation("I18", "a trace comes before the safety sentence", at)
            case AssistantSentence() if body.previous_id in answers and "guard" not in each.meta:
                del answers[body.previous_id]
                if "safety" not in each.meta:
                    yield Violation("I18", "a sentence comes before the safety sentence", at)
            case AssistantMessage() if body.previous_id in in_danger and "safety" not in each.meta:
                yield Violation("I18", "an answer to a person in danger is not the guard's", at)


def _ends_agree(
    conversation_id: str, turns: list[Turn], messages: Iterable[Message], variations: int, told: list[_Told]
) -> Found:
    """I5: each answer ends once, as its row says, and each turn with the latest of its answers."""
    states: dict[str, str] = {}
    ends: dict[int | None, list[tuple[str, str]]] = {turn.number: [] for turn in turns}
    for each in told:
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
    over = [turn for turn in turns if turn.state in ("completed", "failed")]
    for turn in over:
        if ends[turn.number][-1:] != [(turn.state, turn.answer_id)]:
            at = (conversation_id, str(turn.number))
            yield Violation("I5", "a turn is over and was not told so, or told otherwise", at)
    told_whole = [  # a safety answer to a client that does not stream: the blocks are written after it
        turn
        for turn in turns
        if turn not in over and turn.answer_id and ends[turn.number][-1:] == [("completed", turn.answer_id)]
    ]
    if sum(map(len, ends.values())) != len(over) + len(told_whole) + variations:
        yield Violation("I5", "answers did not end as often as they were asked for", (conversation_id,))
    for message in messages:
        is_answer = message.message_role == "assistant" and message.local_id is None
        if is_answer and states.get(message.id) != message.completion_status:
            yield Violation("I5", "an answer is not as it was told", (conversation_id, message.id))


# --- the blocks --------------------------------------------------------------------------------------------


def _blocks_hold(unit: Unit, conversation_id: str) -> Found:
    """Digests are those of the texts, each write left one trace, no turn is lost or kept twice."""
    blocks = {block.label: block for block in unit.all(_BLOCKS, id=conversation_id)}
    traces: list[Trace] = unit.all(_TRACES, id=conversation_id)
    written = Counter(_revision(trace) for trace in traces if trace.action in ("stored", "updated"))
    for label, group in groupby(unit.all(_REVISIONS, id=conversation_id), lambda each: each.label):
        revisions = list(group)
        for revision, why in chain_departures(revisions):
            yield Violation("blocks", why, (conversation_id, label, str(revision)))
        for each in revisions:
            known_as = blocks[label].memory_id if label in blocks else ""
            if written[known_as, each.revision] != 1:
                at = (conversation_id, label, str(each.revision))
                yield Violation("I9", "a revision of a block has not one trace", at)
    for label, block in blocks.items():
        if block.value is not None and digest(block.value) != block.digest:
            yield Violation("blocks", "a block is not its latest revision", (conversation_id, label))
    limits = {_revision(trace): (trace.meta or {}).get("limit") for trace in traces}
    for label, block in blocks.items():
        if block.value is None:
            continue
        limit = limits.get((block.memory_id, block.revision))
        if len(block.value) > (limit if isinstance(limit, int) else DEFAULTS.of(Label(label))):
            yield Violation("I13", "a block is longer than it may be", (conversation_id, label))
        if unreadable(Label(label), block.value):
            yield Violation("I13", "a block is not of its kind", (conversation_id, label))
    archive = unit.all(_ARCHIVE, id=conversation_id)
    for turn in archive:
        if digest(turn.value) != turn.digest:
            where = (conversation_id, str(turn.turn_id))
            yield Violation("blocks", "an archived turn's digest is not that of its text", where)
    history = blocks.get("conversation_history")
    active = _turn_ids(history.value) if history and history.value else []
    left = [turn.turn_id for turn in archive if turn.has_left]
    if active is None:
        return  # it is not of its kind, as was said
    if left + active != list(range(1, len(left) + len(active) + 1)):
        yield Violation("I11", "archived and active turns are not 1..n", (conversation_id,))
    if not {turn.turn_id for turn in archive if not turn.has_left} <= set(active):
        yield Violation("I11", "a turn is kept beside a block it is not in", (conversation_id,))


def _revision(trace: Trace) -> tuple[str, object]:
    """Which revision of which block a trace is of; its limit is the one that was in force then."""
    return trace.memory_id, (trace.meta or {}).get("revision")


def _turn_ids(value: str) -> list[int] | None:
    try:
        return [int(turn["turn_id"]) for turn in json.loads(value)["turns"]]
    except (ValueError, KeyError, TypeError):
        return None
