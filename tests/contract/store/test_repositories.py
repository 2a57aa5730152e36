"""What each repository stores and finds."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_blocks.trace import digest
from orchestrator.errors import (
    CONSTRAINT,
    INVALID_FIELD,
    NOT_FOUND,
    STALE_REVISION,
    STANZA_OUT_OF_ORDER,
    TOOL_UNKNOWN,
    AnamnesisError,
    Problem,
)
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.statements import IsRow
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import (
    LABELS,
    Audio,
    Conversation,
    Memory,
    Message,
    Meta,
    Note,
    Sentence,
    ToolUse,
    Trace,
)
from tests.support.builders import HandClock
from tests.support.stored_turns import PERSON, FinishedTurn, a_trace, ask, take_turn

MEMORY_TRACE = 14


def begin(store: Store, person: str = PERSON) -> Conversation:
    return store.write_now(lambda tx: tx.conversations.create(person))


def refused(problem: Problem, store: Store, work: Callable[[Transaction], Any]) -> AnamnesisError:
    with pytest.raises(AnamnesisError) as caught:
        store.write_now(work)
    assert caught.value.problem is problem
    return caught.value


def a_turn(store: Store) -> FinishedTurn:
    conversation = begin(store)
    return store.write_now(lambda tx: take_turn(tx, conversation.id))


# --- conversations -----------------------------------------------------------------------------------------


def test_a_new_conversation_is_active_and_has_a_room_of_its_name(store: Store, clock: HandClock) -> None:
    made = store.write_now(lambda tx: tx.conversations.create(PERSON, preferences={"language": "de"}))

    found = store.read_now(lambda tx: tx.conversations.owned(made.id, PERSON))

    assert found == made
    assert found == Conversation(
        id=made.id,
        user_id=PERSON,
        livekit_room_name=made.id,
        title=None,
        status="active",
        preferences={"language": "de"},
        last_client_stanza_id=0,
        last_server_stanza_id=0,
        created_at=clock.moment,
        updated_at=clock.moment,
        deleted_at=None,
    )


def test_another_persons_conversation_gives_the_same_error_as_an_unknown_id(store: Store) -> None:
    theirs = begin(store, "bob")

    refused(NOT_FOUND, store, lambda tx: tx.conversations.owned(theirs.id, PERSON))
    refused(NOT_FOUND, store, lambda tx: tx.conversations.owned("conv_none", PERSON))
    refused(NOT_FOUND, store, lambda tx: tx.messages.append("conv_none", "user", "hello"))


def test_a_persons_conversations_are_listed_with_the_last_active_first(
    store: Store, clock: HandClock
) -> None:
    first = begin(store)
    clock.tick()
    second = begin(store)
    begin(store, "bob")
    clock.tick()
    store.write_now(lambda tx: tx.conversations.update(first.id, title="Headache"))

    found = store.read_now(lambda tx: tx.conversations.of_person(PERSON))

    assert [each.id for each in found] == [first.id, second.id]
    assert found[0].title == "Headache"


# --- messages and sentences --------------------------------------------------------------------------------


@pytest.mark.requirement("003-019", "003-020")
def test_messages_are_numbered_from_1_without_gaps_and_linked(store: Store) -> None:
    conversation = begin(store)
    other = begin(store)

    for _ in range(2):
        store.write_now(lambda tx: take_turn(tx, conversation.id))
    store.write_now(lambda tx: take_turn(tx, other.id))

    found = store.read_now(lambda tx: tx.messages.in_order(conversation.id))
    assert [message.sequence_number for message in found] == [1, 2, 3, 4]
    assert [message.previous_id for message in found] == [None, *(message.id for message in found[:-1])]
    assert store.read_now(lambda tx: tx.messages.last(conversation.id)) == found[-1]
    assert store.read_now(lambda tx: tx.messages.after(conversation.id, 2)) == found[2:]


def test_messages_are_followed_backwards_up_to_a_limit_or_a_deleted_one(store: Store) -> None:
    conversation = begin(store)
    for _ in range(3):
        store.write_now(lambda tx: take_turn(tx, conversation.id))
    found = store.read_now(lambda tx: tx.messages.in_order(conversation.id))

    assert store.read_now(lambda tx: tx.messages.backwards(found[-1].id, limit=4)) == found[:1:-1]
    assert store.read_now(lambda tx: tx.messages.backwards(found[1].id, limit=4)) == found[1::-1]
    store.write_now(lambda tx: tx.messages.delete(found[2].id))
    assert store.read_now(lambda tx: tx.messages.backwards(found[-1].id, limit=9)) == found[:2:-1]


@pytest.mark.requirement("003-034", "003-035")
def test_an_answer_consists_of_its_sentences(loose_store: Store) -> None:
    conversation = begin(loose_store)
    seen: list[Message | None] = []

    def answer(tx: Transaction) -> None:
        message = tx.messages.begin_answer(
            conversation.id, tx.messages.append(conversation.id, "system", "").id
        )
        seen.append(tx.messages.get(message.id))
        for text, final in (("One. ", False), ("Two.\n", False), ("Three.", True)):
            tx.messages.say(message.id, text, final=final)
            seen.append(tx.messages.get(message.id))

    loose_store.write_now(answer)

    assert [each and (each.contents, each.completion_status) for each in seen] == [
        ("", "streaming"),
        ("One. ", "streaming"),
        ("One. Two.\n", "streaming"),
        ("One. Two.\nThree.", "completed"),
    ]


def test_an_answer_that_has_ended_takes_no_more_sentences(store: Store) -> None:
    done = a_turn(store)

    refused(CONSTRAINT, store, lambda tx: tx.messages.say(done.answer.id, "And another thing."))

    assert store.read_now(lambda tx: len(tx.messages.sentences(done.answer.id))) == 2


def test_the_sentences_of_a_failed_answer_stay(loose_store: Store) -> None:
    conversation = begin(loose_store)

    def fail(tx: Transaction) -> str:
        question, _ = ask(tx, conversation.id)
        answer = tx.messages.begin_answer(conversation.id, question.id)
        tx.messages.say(answer.id, "I was about to")
        tx.messages.fail(answer.id)
        return answer.id

    failed = loose_store.write_now(fail)

    found = loose_store.read_now(lambda tx: tx.messages.get(failed))
    assert found is not None
    assert (found.contents, found.completion_status) == ("I was about to", "failed")


@pytest.mark.requirement("003-023", "003-024", "003-025", "003-026")
def test_an_offline_message_is_found_by_the_id_of_its_client(store: Store, clock: HandClock) -> None:
    conversation = begin(store)
    earlier = clock.moment - timedelta(days=1)
    synced = store.write_now(
        lambda tx: tx.messages.append(
            conversation.id, "user", "hello", local_id="local_1", created_at=earlier
        )
    )

    found = store.read_now(lambda tx: tx.messages.by_local_id(conversation.id, "local_1"))

    assert found == synced
    assert (found.server_id, found.sync_status, found.synced_at) == (synced.id, "synced", clock.moment)
    assert found.created_at == earlier


@pytest.mark.requirement("003-043", "003-164")
def test_a_sentence_has_its_audio_and_its_time(store: Store, clock: HandClock) -> None:
    done = a_turn(store)
    first, last = store.read_now(lambda tx: tx.messages.sentences(done.answer.id))
    clock.tick(1.5)

    store.write_now(
        lambda tx: tx.messages.add_audio(first.id, audio_format="opus_48000", data=b"123", duration_ms=20)
    )

    sounding, _ = store.read_now(lambda tx: tx.messages.sentences(done.answer.id))
    assert (sounding.audio_type, sounding.audio_format, sounding.duration_ms) == ("output", "opus_48000", 20)
    assert (sounding.audio_bytesize, sounding.audio_data) == (3, b"123")
    assert sounding.updated_at - sounding.created_at == timedelta(seconds=1.5)
    assert (first.sentence_sequence_number, last.sentence_sequence_number) == (1, 2)


# --- memories and traces -----------------------------------------------------------------------------------


@pytest.mark.requirement("003-056", "003-057")
@given(vector=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=1024))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_vector_keeps_its_dimensions(shared_store: Store, vector: list[float]) -> None:
    kept = shared_store.write_now(
        lambda tx: tx.memories.add(
            NewMemory(content="tea", user_id=PERSON, embeddings=tuple(vector), embeddings_info={"model": "m"})
        )
    )

    found = shared_store.read_now(lambda tx: tx.memories.get(kept.id))

    assert found is not None
    assert found.embeddings == tuple(vector)
    assert found.embeddings_info == {"model": "m", "dimensions": len(vector)}


@pytest.mark.parametrize("shared_store", ["postgres"], indirect=True)
def test_padding_keeps_the_cosine(shared_store: Store) -> None:
    one, other = (0.1, 0.7, -0.2), (0.3, 0.1, 0.9)
    kept = shared_store.write_now(
        lambda tx: [
            tx.memories.add(NewMemory(content="tea", user_id="eve", embeddings=vector))
            for vector in (one, other)
        ]
    )
    query = """SELECT 1 - (a.embeddings <=> b.embeddings) FROM alicia_memory a, alicia_memory b
        WHERE a.id = %s AND b.id = %s"""

    (cosine,) = shared_store.read_now(
        lambda tx: tx.unit.connection.execute(query, [memory.id for memory in kept]).fetchone()
    )

    expected = sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)
    assert cosine == pytest.approx(expected, abs=1e-6)


@pytest.mark.requirement("003-058", "003-059")
def test_a_memory_has_medium_importance_and_full_confidence_by_default(store: Store) -> None:
    empty = "'[]'" if store.driver.dialect.name == "sqlite" else "'{}'"
    moment = "'2024-01-15T10:30:00.000Z'"
    columns = "id, content, entities, key_phrases, tags, created_at, updated_at"
    values = f"'mem_1', 'tea', {empty}, {empty}, {empty}, {moment}, {moment}"
    insert = f"INSERT INTO alicia_memory ({columns}) VALUES ({values})"  # noqa: S608
    store.write_now(lambda tx: tx.unit.connection.execute(insert))

    found = store.read_now(lambda tx: tx.memories.get("mem_1"))

    assert found is not None
    assert (found.importance, found.confidence, found.pinned, found.archived) == (0.5, 1.0, False, False)


@pytest.mark.requirement("003-060", "003-064", "003-065", "003-066")
def test_pinned_memories_come_first_and_archived_ones_not_at_all(store: Store, clock: HandClock) -> None:
    def remember(tx: Transaction) -> list[Memory]:
        return [
            tx.memories.add(NewMemory(content=what, user_id=PERSON, tags=("drink", what)))
            for what in ("tea", "milk", "rum")
        ]

    tea, milk, rum = store.write_now(remember)
    store.write_now(lambda tx: tx.memories.add(NewMemory(content="coffee", user_id="bob")))
    store.write_now(lambda tx: tx.memories.update(tea.id, pinned=True, user_rating=5))
    store.write_now(lambda tx: tx.memories.update(milk.id, archived=True))
    clock.tick()
    store.write_now(lambda tx: tx.memories.update(rum.id, content="no rum"))

    found = store.read_now(lambda tx: tx.memories.of_person(PERSON))

    assert [memory.content for memory in found] == ["tea", "no rum"]
    assert (found[0].user_rating, found[0].tags) == (5, ("drink", "tea"))
    assert store.read_now(lambda tx: tx.memories.get(milk.id)) is not None


@pytest.mark.requirement(
    "000-006", "000-041", "000-042", "000-043", "000-045", "000-046", "000-048", "003-084", "003-162"
)
def test_a_trace_is_stored_as_it_was_sent(store: Store) -> None:
    done = a_turn(store)

    found = store.read_now(lambda tx: tx.traces.of_message(done.question.id))
    frames = store.read_now(lambda tx: tx.frames.of_type(done.conversation_id, MEMORY_TRACE))

    bodies = {body["id"]: body for body in (msgpack.unpackb(frame.payload)["body"] for frame in frames)}
    assert len(found) == len(bodies) == 2
    for trace in found:
        sent = bodies[trace.id]
        assert sent["conversationId"] == trace.conversation_id
        assert sent["previousId"] == sent["messageId"] == trace.message_id
        assert sent["memoryId"] == trace.memory_id
        assert sent.get("memoryType") == trace.memory_type
        assert sent["action"] == trace.action
        assert sent["content"] == trace.content
        assert sent.get("confidence") == sent.get("relevance") == trace.confidence == trace.similarity_score
        assert sent["metadata"] == trace.meta


@pytest.mark.requirement("000-048", "003-079")
def test_meta_and_metadata_of_a_trace_are_the_same(store: Store) -> None:
    done = a_turn(store)
    query = "SELECT count(*) FROM alicia_memory_used WHERE meta = metadata"

    same = store.read_now(lambda tx: tx.unit.connection.execute(query).fetchone())

    assert same == (len(done.traces),)


@pytest.mark.requirement("000-012", "000-010")
def test_a_trace_may_have_no_type_no_message_and_name_an_answer(loose_store: Store) -> None:
    done = a_turn(loose_store)

    def add(tx: Transaction) -> list[Trace]:
        memory_id = done.traces[0].memory_id
        kept = [
            a_trace(tx, done.question, memory_id, memory_type=None, meta=None, query_prompt_meta=None),
            a_trace(tx, done.question, memory_id, message_id=done.answer.id),
            a_trace(tx, done.question, memory_id, message_id=None, actor="bea"),
        ]
        tx.traces.add(kept)
        return kept

    kept = loose_store.write_now(add)

    assert loose_store.read_now(lambda tx: [tx.traces.get(each.id) for each in kept]) == kept


@pytest.mark.requirement("003-085")
def test_the_uses_of_memories_can_be_queried(store: Store, clock: HandClock) -> None:
    conversation = begin(store)
    turns = []
    for _ in range(3):
        turns.append(store.write_now(lambda tx: take_turn(tx, conversation.id)))
        clock.tick(86_400)
    ask_sql: Callable[[str], list[Any]] = lambda sql: store.read_now(  # noqa: E731
        lambda tx: tx.unit.connection.execute(sql).fetchall()
    )

    influence = store.read_now(lambda tx: tx.traces.of_message(turns[1].question.id))
    of_memory = store.read_now(lambda tx: tx.traces.of_memory(turns[0].traces[0].memory_id))
    debugging = ask_sql(
        """SELECT content, similarity_score FROM alicia_memory_used
        WHERE action = 'retrieved' AND similarity_score < 0.6 ORDER BY created_at"""
    )
    over_time = ask_sql(
        """SELECT created_at, count(*), avg(similarity_score) FROM alicia_memory_used
        WHERE action = 'retrieved' GROUP BY created_at ORDER BY created_at"""
    )
    queries = ask_sql(
        """SELECT query_prompt, count(*) FROM alicia_memory_used
        WHERE position_in_results = 1 GROUP BY query_prompt"""
    )

    assert [trace.id for trace in influence] == [trace.id for trace in turns[1].traces]
    assert of_memory == [turns[0].traces[0]]
    assert debugging == [("Ann likes tea", 0.5)] * 3
    assert [tuple(day)[1:] for day in over_time] == [(1, 0.5)] * 3
    assert queries == [("headache", 3)]


# --- notes, tools, recordings, metadata --------------------------------------------------------------------


@pytest.mark.requirement("003-095")
def test_a_note_is_about_a_message_or_about_the_conversation(store: Store) -> None:
    done = a_turn(store)

    def remark(tx: Transaction) -> list[Note]:
        on_message = tx.notes.add(
            done.conversation_id,
            "good",
            created_by=PERSON,
            message_id=done.answer.id,
            meta={"category": "praise"},
        )
        return [on_message, tx.notes.add(done.conversation_id, "long", created_by="bea")]

    notes = store.write_now(remark)

    assert store.read_now(lambda tx: tx.notes.of_conversation(done.conversation_id)) == notes


@pytest.mark.requirement("003-163")
def test_tool_calls_are_found_by_their_conversation(store: Store, clock: HandClock) -> None:
    done = a_turn(store)
    request: Callable[[Transaction], ToolUse] = lambda tx: tx.tools.request(  # noqa: E731
        done.conversation_id, done.answer.id, "clock", {"zone": "UTC"}
    )
    good, bad = store.write_now(request), store.write_now(request)
    store.write_now(lambda tx: tx.tools.start(good.id))
    clock.tick()

    store.write_now(lambda tx: tx.tools.succeed(good.id, ["12:00"]))
    store.write_now(lambda tx: tx.tools.fail(bad.id, "it stands still"))

    first, second = store.read_now(lambda tx: tx.tools.of_conversation(done.conversation_id))
    assert (first.status, first.tool_result, first.error_message) == ("success", ["12:00"], None)
    assert (second.status, second.tool_result, second.error_message) == ("error", None, "it stands still")
    assert (first.sequence_number, second.sequence_number) == (1, 2)
    assert first.completed_at == second.completed_at == clock.moment
    refused(TOOL_UNKNOWN, store, lambda tx: tx.tools.succeed(good.id, 1))
    refused(TOOL_UNKNOWN, store, lambda tx: tx.tools.fail("tool_none", "?"))


def test_a_recording_may_get_its_message_later(store: Store) -> None:
    done = a_turn(store)
    heard = store.write_now(
        lambda tx: tx.audio.add(
            done.conversation_id,
            audio_type="input",
            audio_format="opus_48000",
            data=b"\0\xff",
            duration_ms=900,
        )
    )

    store.write_now(
        lambda tx: tx.audio.update(
            heard.id,
            message_id=done.question.id,
            transcription=done.question.contents,
            transcription_meta={"confidence": 0.9},
        )
    )

    (found,) = store.read_now(lambda tx: tx.audio.of_message(done.conversation_id, done.question.id))
    expected = replace(
        heard,
        message_id=done.question.id,
        transcription=done.question.contents,
        transcription_meta={"confidence": 0.9},
    )
    assert found == expected


@pytest.mark.requirement("003-140", "003-165")
def test_any_row_can_have_meta_pairs(store: Store) -> None:
    done = a_turn(store)
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"

    def describe(tx: Transaction) -> None:
        tx.meta.add(done.conversation_id, "client", "web 1.2")
        tx.meta.add(done.question.id, "messaging.trace_id", trace_id)
        tx.meta.add(done.question.id, "source", "microphone")

    store.write_now(describe)

    about = store.read_now(lambda tx: tx.meta.of(done.question.id))
    (spanned,) = store.read_now(lambda tx: tx.meta.find("messaging.trace_id", trace_id))
    assert {meta.key: meta.value for meta in about} == {
        "messaging.trace_id": trace_id,
        "source": "microphone",
    }
    assert spanned.ref == done.question.id


# --- what all tables of the protocol have in common --------------------------------------------------------

KINDS = (Conversation, Message, Sentence, Memory, Trace, Note, ToolUse, Audio, Meta)
CREATED = ["003-010", "003-028", "003-047", "003-067", "003-081", "003-092", "003-105", "003-121", "003-132"]
UPDATED = ["003-011", "003-029", "003-048", "003-068", "003-082", "003-093", "003-106", "003-122", "003-133"]
DELETED = ["003-012", "003-030", "003-049", "003-069", "003-083", "003-094", "003-107", "003-123", "003-134"]
CHANGEABLE: dict[type[IsRow], str] = {
    Conversation: "title",
    Message: "contents",
    Sentence: "audio_format",
    Memory: "content",
    Trace: "content",
    Note: "content",
    ToolUse: "tool_name",
    Audio: "transcription",
    Meta: "value",
}


def one_of_each(store: Store) -> dict[type[IsRow], tuple[Any, Callable[[Transaction], Any]]]:
    """A row of each kind, and a way to find it again as normal reads do."""
    done = a_turn(store)
    here, asked = done.conversation_id, done.question.id

    def make(tx: Transaction) -> dict[type[IsRow], tuple[Any, Callable[[Transaction], Any]]]:
        note = tx.notes.add(here, "good", created_by=PERSON)
        tool = tx.tools.request(here, asked, "clock", {})
        audio = tx.audio.add(here, audio_type="input", audio_format="opus")
        tx.meta.add(asked, "source", "microphone")
        (meta,) = tx.meta.of(asked)
        sentence, _ = tx.messages.sentences(done.answer.id)
        memory_id, trace_id = done.traces[0].memory_id, done.traces[0].id
        return {
            Conversation: (tx.conversations.get(here), lambda tx: tx.conversations.get(here)),
            Message: (tx.messages.get(asked), lambda tx: tx.messages.get(asked)),
            Sentence: (
                sentence,
                lambda tx: [s for s in tx.messages.sentences(done.answer.id) if s.id == sentence.id],
            ),
            Memory: (tx.memories.get(memory_id), lambda tx: tx.memories.get(memory_id)),
            Trace: (tx.traces.get(trace_id), lambda tx: tx.traces.get(trace_id)),
            Note: (note, lambda tx: tx.notes.get(note.id)),
            ToolUse: (tool, lambda tx: tx.tools.get(tool.id)),
            Audio: (audio, lambda tx: tx.audio.get(audio.id)),
            Meta: (meta, lambda tx: tx.meta.of(asked)),
        }

    return store.write_now(make)


DELETE: dict[type[IsRow], Callable[[Transaction, str], bool]] = {
    Conversation: lambda tx, id: tx.conversations.delete(id),
    Message: lambda tx, id: tx.messages.delete(id),
    Sentence: lambda tx, id: tx.unit.change(Sentence, {"id": id}, deleted_at=tx.now) == 1,
    Memory: lambda tx, id: tx.memories.delete(id),
    Trace: lambda tx, id: tx.traces.delete(id),
    Note: lambda tx, id: tx.notes.delete(id),
    ToolUse: lambda tx, id: tx.tools.delete(id),
    Audio: lambda tx, id: tx.audio.delete(id),
    Meta: lambda tx, id: tx.meta.delete(id),
}


@pytest.mark.requirement(*CREATED, *UPDATED)
def test_a_change_sets_updated_at_and_nothing_else(loose_store: Store, clock: HandClock) -> None:
    made = one_of_each(loose_store)
    before = clock.moment
    clock.tick()

    for kind, (row, find) in made.items():

        def change(tx: Transaction, kind: type[IsRow] = kind, id: str = row.id) -> bool:
            return tx.unit.change(kind, {"id": id}, **{CHANGEABLE[kind]: "new"}) == 1

        assert loose_store.write_now(change)
        found = loose_store.read_now(find)
        (found,) = found if isinstance(found, list) else (found,)
        assert found == replace(row, **{CHANGEABLE[kind]: "new", "updated_at": clock.moment})
        assert found.created_at == before


@pytest.mark.requirement(*DELETED)
def test_a_deleted_row_is_hidden_and_kept(loose_store: Store, clock: HandClock) -> None:
    made = one_of_each(loose_store)
    clock.tick()

    for kind in reversed(KINDS):
        row, find = made[kind]

        def delete(tx: Transaction, kind: type[IsRow] = kind, id: str = row.id) -> bool:
            return DELETE[kind](tx, id)

        def count(tx: Transaction, kind: type[IsRow] = kind) -> object:
            query = f"SELECT count(*) FROM {kind.table.name} WHERE deleted_at IS NOT NULL"  # noqa: S608
            return tx.unit.connection.execute(query).fetchone()

        assert loose_store.write_now(delete)
        assert not loose_store.read_now(find)
        assert not loose_store.write_now(delete)
        assert loose_store.read_now(count) == (1,)


# --- frames ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("003-008", "003-009")
def test_frames_are_counted_on_both_sides_and_kept_in_their_common_order(store: Store) -> None:
    done = a_turn(store)
    store.write_now(lambda tx: take_turn(tx, done.conversation_id))

    conversation = store.read_now(lambda tx: tx.conversations.get(done.conversation_id))
    frames = store.read_now(lambda tx: tx.frames.in_order(done.conversation_id))

    assert conversation is not None
    assert (conversation.last_client_stanza_id, conversation.last_server_stanza_id) == (2, -12)
    assert [frame.stanza_id for frame in frames] == [1, -1, -2, -3, -4, -5, -6, 2, -7, -8, -9, -10, -11, -12]
    assert [frame.position for frame in frames] == list(range(1, 15))


def test_a_replay_returns_unseen_frames_byte_for_byte(store: Store) -> None:
    done = a_turn(store)
    everything = store.read_now(lambda tx: tx.frames.after(done.conversation_id, 0))

    rest = store.read_now(lambda tx: tx.frames.after(done.conversation_id, 4))
    some = store.read_now(lambda tx: tx.frames.after(done.conversation_id, 2, limit=2))

    assert [frame.stanza_id for frame in everything] == [-1, -2, -3, -4, -5, -6]
    assert rest == everything[4:]
    assert some == everything[2:4]
    assert all(msgpack.unpackb(frame.payload)["stanzaId"] == frame.stanza_id for frame in everything)


def test_a_client_may_leave_gaps_and_not_go_back(loose_store: Store) -> None:
    conversation = begin(loose_store)

    def accept(stanza: int) -> Callable[[Transaction], Any]:
        return lambda tx: tx.frames.accept_client(conversation.id, stanza, 2, b"?", sender=PERSON)

    loose_store.write_now(accept(3))
    kept = loose_store.write_now(accept(7))

    for stanza in (7, 6, 3):
        error = refused(STANZA_OUT_OF_ORDER, loose_store, accept(stanza))
        assert error.facts == {"stanza": stanza, "last": 7}

    assert loose_store.read_now(lambda tx: tx.frames.client_frame(conversation.id, 7)) == kept
    assert loose_store.read_now(lambda tx: tx.frames.client_frame(conversation.id, 6)) is None
    refused(NOT_FOUND, loose_store, lambda tx: tx.frames.accept_client("none", 1, 2, b"?", sender=PERSON))


def test_the_server_leaves_no_gap(store: Store) -> None:
    done = a_turn(store)

    def append(first: int) -> Callable[[Transaction], Any]:
        return lambda tx: tx.frames.append_server(done.conversation_id, first, [(8, b"!")])

    for wrong in (-6, -8, 1):
        refused(CONSTRAINT, store, append(wrong))

    assert store.write_now(lambda tx: tx.frames.append_server(done.conversation_id, -7, [])) == []


# --- turns and leases --------------------------------------------------------------------------------------


def test_turns_are_taken_in_the_order_of_their_messages(loose_store: Store, clock: HandClock) -> None:
    conversation = begin(loose_store)
    asked = [loose_store.write_now(lambda tx: ask(tx, conversation.id)) for _ in range(2)]
    deadline = clock.moment + timedelta(seconds=60)

    def attempt(tx: Transaction) -> None:
        turn = tx.turns.next_open(conversation.id)
        assert turn is not None
        tx.turns.begin(conversation.id, turn.number, deadline=deadline)

    for _ in range(3):
        loose_store.write_now(attempt)
    loose_store.write_now(lambda tx: tx.turns.fail(conversation.id, 1, "poison_message"))

    first = loose_store.read_now(lambda tx: tx.turns.of_message(asked[0][0].id))
    assert first is not None
    assert (first.number, first.state, first.attempts, first.error) == (1, "failed", 3, "poison_message")
    assert (first.deadline, first.ended_at) == (deadline, clock.moment)
    second = loose_store.read_now(lambda tx: tx.turns.next_open(conversation.id))
    assert second == asked[1][1]
    assert loose_store.read_now(lambda tx: tx.turns.conversations_with_open()) == [conversation.id]


def test_a_turn_that_has_ended_does_not_change(store: Store) -> None:
    done = a_turn(store)

    refused(CONSTRAINT, store, lambda tx: tx.turns.finish(done.conversation_id, 1))
    refused(CONSTRAINT, store, lambda tx: tx.turns.fail(done.conversation_id, 1, "internal"))
    refused(CONSTRAINT, store, lambda tx: tx.turns.answer(done.conversation_id, 1, done.answer.id))
    refused(CONSTRAINT, store, lambda tx: tx.turns.finish(done.conversation_id, 2))

    assert store.read_now(lambda tx: tx.turns.conversations_with_open()) == []


def test_a_lease_is_free_once_it_expired_or_was_released(store: Store, clock: HandClock) -> None:
    conversation = begin(store)
    take: Callable[[str], Any] = lambda holder: store.write_now(  # noqa: E731
        lambda tx: tx.leases.acquire(conversation.id, holder, seconds=15)
    )
    first = take("one")
    again = take("one")
    clock.tick(14)
    refused_to_other = take("two")
    clock.tick(1)
    second = take("two")
    store.write_now(lambda tx: tx.leases.release(second))
    third = take("one")
    renewed = store.write_now(lambda tx: tx.leases.renew(third, seconds=60))

    assert refused_to_other is None
    assert [lease.epoch for lease in (first, again, second, third, renewed)] == [1, 1, 2, 3, 3]
    assert renewed.expires_at == clock.moment + timedelta(seconds=60)


def test_a_lease_from_a_clock_that_was_set_back_does_not_last(store: Store, clock: HandClock) -> None:
    conversation = begin(store)
    clock.tick(86_400)
    first = store.write_now(lambda tx: tx.leases.acquire(conversation.id, "one", seconds=15))
    clock.tick(-86_400)

    second = store.write_now(lambda tx: tx.leases.acquire(conversation.id, "two", seconds=15))

    assert first is not None
    assert second is not None
    assert (second.holder, second.epoch) == ("two", first.epoch + 1)


def test_a_lease_that_was_renewed_while_another_waited_for_it_is_left_alone(
    store: Store, clock: HandClock
) -> None:
    conversation = begin(store)
    clock.tick(1)
    first = store.write_now(lambda tx: tx.leases.acquire(conversation.id, "one", seconds=15))
    clock.tick(-1)

    second = store.write_now(lambda tx: tx.leases.acquire(conversation.id, "two", seconds=15))

    assert first is not None
    assert second is None


# --- blocks ------------------------------------------------------------------------------------------------


def write_summary(text: str, expected: int, conversation_id: str) -> Callable[[Transaction], Any]:
    """Write a summary without the ledger: any text is accepted and no trace is stored."""
    return lambda tx: tx.blocks.commit(
        conversation_id,
        "context_summary",
        text,
        expected=expected,
        digest=digest(text),
        actor="ledger",
        turn=None,
        schema_version="1.0",
    )


def text_at(conversation_id: str, revision: int, tx: Transaction) -> str | None:
    return tx.blocks.text_at(conversation_id, "context_summary", revision)


def test_each_block_has_one_memory_row_of_its_person_without_its_text(store: Store) -> None:
    conversation = begin(store)

    known = store.write_now(lambda tx: tx.blocks.memory_ids(conversation.id))
    again = store.read_now(lambda tx: tx.blocks.memory_ids(conversation.id))

    assert known == again
    assert set(known) == set(LABELS)
    memory = store.read_now(lambda tx: tx.memories.get(known["context_summary"]))
    assert memory is not None
    assert (memory.user_id, memory.source_type, memory.content) == (PERSON, "memory_block", "")
    assert store.read_now(lambda tx: tx.memories.of_person(PERSON)) == []
    assert store.read_now(lambda tx: tx.blocks.load(conversation.id)) == {}


def test_a_block_has_its_last_text_and_its_revisions_form_a_chain(loose_store: Store) -> None:
    store = loose_store
    conversation = begin(store)
    for revision, text in enumerate(("first", "second ä\n", "third")):
        store.write_now(write_summary(text, revision, conversation.id))

    block = store.read_now(lambda tx: tx.blocks.load(conversation.id))["context_summary"]
    history = store.read_now(lambda tx: tx.blocks.revisions(conversation.id, "context_summary"))

    assert (block.revision, block.value, block.digest) == (3, "third", digest("third"))
    texts = [store.read_now(partial(text_at, conversation.id, each.revision)) for each in history]
    assert texts == ["first", "second ä\n", "third"]
    assert [each.size for each in history] == [5, 9, 5]
    assert [each.previous_digest for each in history] == [None, digest("first"), digest("second ä\n")]


@pytest.mark.parametrize("nobody", ["a | User: b", "a\nb", "x" * 129])
def test_a_person_with_an_invalid_id_cannot_start_a_conversation(loose_store: Store, nobody: str) -> None:
    refused(INVALID_FIELD, loose_store, lambda tx: tx.conversations.create(nobody))


def test_a_stale_revision_is_refused(loose_store: Store) -> None:
    store = loose_store
    conversation = begin(store)
    store.write_now(write_summary("first", 0, conversation.id))

    for expected in (0, 2):
        error = refused(STALE_REVISION, store, write_summary("mine", expected, conversation.id))
        assert error.facts == {"label": "context_summary", "stored": 1, "yours": expected}

    block = store.read_now(lambda tx: tx.blocks.load(conversation.id))["context_summary"]
    assert block.value == "first"


def test_a_shortened_turn_is_kept_whole_and_archived_once(loose_store: Store) -> None:
    conversation = begin(loose_store)

    def archive(text: str, *, has_left: bool = True) -> Callable[[Transaction], None]:
        return lambda tx: tx.blocks.archive(conversation.id, 1, text, digest=digest(text), has_left=has_left)

    for text in ('{"a":1}', '{"a":2}'):
        loose_store.write_now(archive(text, has_left=False))

    held = loose_store.read_now(lambda tx: tx.blocks.held(conversation.id))
    before = loose_store.read_now(lambda tx: tx.blocks.archived(conversation.id))
    loose_store.write_now(archive('{"a":3}'))
    refused(CONSTRAINT, loose_store, archive('{"a":4}'))

    (archived,) = loose_store.read_now(lambda tx: tx.blocks.archived(conversation.id))
    assert (held, before) == ({1: '{"a":2}'}, [])
    assert archived.value == '{"a":3}'
    assert loose_store.read_now(lambda tx: tx.blocks.held(conversation.id)) == {}


def test_an_invalid_text_is_quarantined_with_its_reason(store: Store) -> None:
    conversation = begin(store)

    kept = store.write_now(
        lambda tx: tx.blocks.quarantine(
            conversation.id, "active_session", "{", reason="not JSON", actor="agent"
        )
    )

    assert store.read_now(lambda tx: tx.blocks.quarantined(conversation.id)) == [kept]


def test_the_states_of_many_conversations_are_read_at_once(store: Store) -> None:
    def open_some(tx: Transaction) -> list[str]:
        ids = [tx.conversations.create("ann").id for _ in range(120)]
        for number, id in enumerate(ids):
            tx.connections.take(id, f"link_{number}")
        return ids

    ids = store.write_now(open_some)

    standing = store.read_now(lambda tx: tx.connections.states([*ids, "conv_none"]))
    assert {id: each.connection_id for id, each in standing.items()} == {
        id: f"link_{number}" for number, id in enumerate(ids)
    }
    assert {each.sent for each in standing.values()} == {0}
    assert store.read_now(lambda tx: tx.connections.states([])) == {}
