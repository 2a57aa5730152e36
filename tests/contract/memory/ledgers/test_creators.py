"""Making memories of conversations: exactly once, traceable, and only from what was said."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import sentences
from orchestrator.errors import MEMORY_NOT_MADE, AnamnesisError
from orchestrator.remember.creators import generation, quality_memory
from orchestrator.remember.creators.checking import SummaryCheck
from orchestrator.remember.creators.history import HistoryMessage
from orchestrator.remember.creators.status import statuses
from orchestrator.remember.ledger.lines import Discussion, alive, sha256
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.utterances import Remembering
from orchestrator.store.engine.database import Store
from tests.support.builders import START, HandClock
from tests.support.memory.creators import HERE, TERMS, ScriptedModel, a_creator, problems, talk, texts_of
from tests.support.memory.memories import EMBEDDER

TALK = (
    "Hello, I take 20 mg of lisinopril every morning.",
    "Thank you. Do you have any allergies?",
    "Yes, penicillin gives me a rash since 2019.",
    "I will remember that. Anything else?",
    "My sister Maria has asthma.",
    "Is she treated?",
    "Yes.",
    "Good.",
)
TOPIC = {
    "title": "Lisinopril",
    "summary": "The person takes 20 mg of lisinopril.",
    "entities": ["lisinopril"],
}
TOPIC["key_phrases"] = ["every morning"]


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- a run --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("004-001", "004-023", "004-024", "004-025", "004-022")
async def test_a_run_makes_memories_of_what_is_new_and_a_second_run_of_nothing(
    store: Store, ledger: MemoryLedger
) -> None:
    model = ScriptedModel()
    creator, _ = a_creator(store, ledger, complete=model)
    talk(store, *TALK[:4])

    first = await creator.handle_discussion_id_flow(HERE)
    before, asked = ledger.lines(HERE, "file"), len(model.prompts)
    again = await creator.handle_discussion_id_flow(HERE)
    unchanged = ledger.lines(HERE, "file")
    talk(store, *TALK[4:])
    third = await creator.handle_discussion_id_flow(HERE)

    assert (first.messages, again.messages, third.messages) == (4, 0, 4)
    assert unchanged == before
    assert ledger.lines(HERE, "file")[: len(before)] == before
    assert TALK[0] not in "".join(model.prompts[asked:])
    assert problems(store, ledger) == []


@pytest.mark.requirement("004-022")
async def test_a_run_without_new_messages_asks_no_model_and_adds_no_row(
    store: Store, ledger: MemoryLedger
) -> None:
    for kind, vector in (("file", False), ("vector", True)):
        model = ScriptedModel(*[json.dumps(TOPIC)] * 2) if vector else ScriptedModel()
        creator, _ = a_creator(store, ledger, complete=model, useVectorForQualityMemory=vector)
        talk(store, *TALK[:2])
        await creator.handle_discussion_id_flow(HERE)
        asked, lines = len(model.prompts), ledger.lines(HERE, kind)  # type: ignore[arg-type]

        await creator.handle_discussion_id_flow(HERE)

        assert asked > 0
        assert len(model.prompts) == asked
        assert ledger.lines(HERE, kind) == lines  # type: ignore[arg-type]


@pytest.mark.requirement("004-026")
@pytest.mark.parametrize(("vector", "kind", "other"), [(True, "vector", "file"), (False, "file", "vector")])
async def test_the_configuration_chooses_the_kind_of_memories(
    store: Store, ledger: MemoryLedger, vector: bool, kind: Any, other: Any
) -> None:
    creator, _ = a_creator(store, ledger, useVectorForQualityMemory=vector)
    talk(store, *TALK)

    await creator.handle_discussion_id_flow(HERE)

    assert texts_of(ledger, kind)
    assert ledger.lines(HERE, other) == []
    assert problems(store, ledger, kind=kind) == []


async def test_the_newest_messages_wait_until_the_session_is_over(store: Store, ledger: MemoryLedger) -> None:
    creator, _ = a_creator(store, ledger, lookbackMessages=2, messagesBetweenChunks=4)
    talk(store, *TALK[:4])

    waiting = await creator.handle_discussion_id_flow(HERE)
    over = await creator.handle_discussion_id_flow(HERE, whole=True)

    assert (waiting.messages, over.messages) == (0, 4)


async def test_an_answer_that_is_not_complete_waits_with_all_that_follows(
    store: Store, ledger: MemoryLedger
) -> None:
    creator, _ = a_creator(store, ledger)
    (first,) = talk(store, TALK[0])
    store.write_now(lambda tx: tx.messages.begin_answer(HERE.id, first, id="ans_1"))
    store.write_now(lambda tx: tx.messages.append(HERE.id, "user", TALK[2]))

    before = await creator.handle_discussion_id_flow(HERE)
    store.write_now(lambda tx: tx.messages.say("ans_1", "Good.", final=True))
    after = await creator.handle_discussion_id_flow(HERE)

    assert (before.messages, after.messages) == (1, 2)
    assert problems(store, ledger) == []


async def test_two_runs_at_the_same_time_make_each_memory_once(store: Store, ledger: MemoryLedger) -> None:
    creators = [a_creator(store, ledger, complete=ScriptedModel())[0] for _ in range(3)]
    talk(store, *TALK)

    await asyncio.gather(*(each.handle_discussion_id_flow(HERE) for each in creators))
    await creators[0].handle_discussion_id_flow(HERE)

    assert problems(store, ledger) == []


# --- how memories are made ----------------------------------------------------------------------------------


@pytest.mark.requirement("004-005", "004-032")
async def test_without_a_workflow_the_model_is_asked_with_the_configured_prompt(
    store: Store, ledger: MemoryLedger
) -> None:
    model = ScriptedModel("The person takes 20 mg of lisinopril.")
    creator, _ = a_creator(store, ledger, complete=model, chunkEstimatedTokenSize=1000)
    talk(store, *TALK[:2])

    await creator.handle_discussion_id_flow(HERE)

    assert model.prompts[0] == f"Summarise: Person: {TALK[0]}\nAssistant: {TALK[1]}"
    assert texts_of(ledger) == ["The person takes 20 mg of lisinopril."]
    assert ledger.lines(HERE, "file")[0].maker == "model:scripted"


@pytest.mark.requirement("004-005", "004-027", "004-028", "004-029", "004-048", "004-047", "004-050")
async def test_a_file_workflow_gets_four_inputs_and_its_output_is_stored_as_it_is(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    node = {"id": "one", "type": "Standard", "returnToUser": True}
    prompt = "A:{agent1Input}|B:{agent2Input}|C:{agent3Input}|D:{agent4Input}"
    (tmp_path / "mine.json").write_text(json.dumps([{**node, "prompt": prompt}]))
    model = ScriptedModel("First memory.", "Summary so far.", "Second memory.", "Second.", "Third  memory.\n")
    creator, _ = a_creator(
        store,
        ledger,
        complete=model,
        folder=tmp_path,
        fileMemoryWorkflowName="mine",
        recentMemories=1,
        chunkEstimatedTokenSize=1000,
    )
    words = ["First words", "Second words", "Third words, and a summary so far, of a memory"]
    for each in words:
        talk(store, f"{each} first second third memory summary.", "Ok.")
        await creator.handle_discussion_id_flow(HERE)

    scoped = [prompt for prompt in model.prompts if prompt.startswith("A:")]
    assert scoped[0].endswith("|B:|C:|D:")
    assert scoped[2].split("|")[1:] == [
        "B:Second memory.",
        "C:First memory.--ChunkBreak--Second memory.",
        "D:Second.",
    ]
    assert texts_of(ledger) == ["First memory.", "Second memory.", "Third  memory.\n"]
    assert ledger.lines(HERE, "file")[0].maker == "workflow:mine"


@pytest.mark.requirement("004-027", "004-030", "004-031", "004-043", "004-049", "004-052", "004-053")
async def test_the_two_node_example_stores_one_memory_per_object(store: Store, ledger: MemoryLedger) -> None:
    objects = [TOPIC, {**TOPIC, "title": "A rash", "summary": "Penicillin gives a rash."}, {"title": "None"}]
    model = ScriptedModel("1. medicines 2. allergies", f"```json\n{json.dumps(objects)}\n```")
    creator, _ = a_creator(
        store,
        ledger,
        complete=model,
        useVectorForQualityMemory=True,
        vectorMemoryWorkflowName="topics",
        chunkEstimatedTokenSize=1000,
    )
    talk(store, *TALK[:4])

    run = await creator.handle_discussion_id_flow(HERE)

    assert "The topics identified were: 1. medicines 2. allergies" in model.prompts[1]
    assert texts_of(ledger, "vector") == [TOPIC["summary"], "Penicillin gives a rash."]
    assert (run.chunks, len(run.memories)) == (1, 2)
    assert [line.body.title for line in ledger.search(HERE, "rash", 5) if line.body] == ["A rash"]
    assert problems(store, ledger, kind="vector") == []


@pytest.mark.requirement("004-031", "004-054")
@pytest.mark.parametrize(
    ("output", "stored"),
    [
        (json.dumps(TOPIC), 1),
        (json.dumps([TOPIC]), 1),
        (f"```\n{json.dumps(TOPIC)}\n```", 1),
        (json.dumps({**TOPIC, "entities": "lisinopril"}), 1),
        ("The person takes 20 mg of lisinopril.", 0),
        ("[1, 2]", 0),
        (json.dumps({"title": "x"}), 0),
        ("[" * 100_000, 0),
    ],
    ids=["object", "array", "fenced", "entities as text", "prose", "numbers", "fields missing", "too deep"],
)
async def test_the_output_of_a_vector_workflow_is_json_or_the_chunk_is_tried_again(
    store: Store, ledger: MemoryLedger, output: str, stored: int
) -> None:
    creator, _ = a_creator(store, ledger, complete=ScriptedModel(output), useVectorForQualityMemory=True)
    talk(store, *TALK[:1])

    run = await creator.handle_discussion_id_flow(HERE)

    assert len(ledger.lines(HERE, "vector")) == stored
    assert (ledger.point(HERE, "vector") is None) == (run.error == "memory_not_made") == (stored == 0)


@pytest.mark.requirement("004-054")
async def test_entities_and_key_phrases_are_searchable_as_text(store: Store, ledger: MemoryLedger) -> None:
    topic = {**TOPIC, "key_phrases": "every morning"}
    creator, _ = a_creator(
        store, ledger, complete=ScriptedModel(json.dumps(topic)), useVectorForQualityMemory=True
    )
    talk(store, TALK[0])

    await creator.handle_discussion_id_flow(HERE)

    assert len(ledger.search(HERE, "every morning", 5)) == len(ledger.search(HERE, "lisinopril", 5)) == 1


async def test_a_chunk_that_failed_is_tried_again_and_nothing_after_it_is_done_before(
    store: Store, ledger: MemoryLedger
) -> None:
    trouble = AnamnesisError(MEMORY_NOT_MADE, rule="test")
    model = ScriptedModel("The person said something.", trouble)
    creator, _ = a_creator(store, ledger, complete=model, chunkEstimatedTokenSize=1)
    talk(store, *TALK[:3])

    failed = await creator.handle_discussion_id_flow(HERE)
    done = len(ledger.lines(HERE, "file"))
    again = await creator.handle_discussion_id_flow(HERE)

    assert (failed.error, failed.messages, done) == ("memory_not_made", 2, 2)
    assert (again.error, again.messages) == ("", 1)
    assert problems(store, ledger) == []


async def test_without_a_model_sentences_are_picked_and_never_changed(
    store: Store, ledger: MemoryLedger
) -> None:
    creator, _ = a_creator(store, ledger, chunkEstimatedTokenSize=1000)
    talk(store, *TALK)

    await creator.handle_discussion_id_flow(HERE)

    (text,) = texts_of(ledger)
    person, assistant = " ".join(TALK[::2]), " ".join(TALK[1::2])
    for line in text.split("\n"):
        speaker, _, words = line.partition(": ")
        assert words in {"Person": person, "Assistant": assistant}[speaker]
    assert "Assistant: Is she treated?\nPerson: Yes." in text
    assert "Good." not in text


async def test_a_sentence_that_the_messages_do_not_support_is_dropped_and_counted(
    store: Store, ledger: MemoryLedger
) -> None:
    right, *wrong = (
        "The person takes 20 mg of lisinopril.",
        "The person takes 40 mg of lisinopril.",
        "The person takes metformin.",
    )
    creator, _ = a_creator(store, ledger, complete=ScriptedModel(" ".join((right, *wrong))))
    talk(store, *TALK[:1])

    run = await creator.handle_discussion_id_flow(HERE)

    assert texts_of(ledger) == [right]
    assert (run.dropped, ledger.lines(HERE, "file")[0].dropped) == (2, 2)


async def test_a_title_and_lists_that_only_the_assistant_said_are_not_stored(
    store: Store, ledger: MemoryLedger
) -> None:
    topic = {
        "title": "Person takes ibuprofen 400 mg",
        "summary": "The person has a rash.",
        "entities": ["ibuprofen", "a rash"],
        "key_phrases": ["400 mg", "rash"],
    }
    creator, _ = a_creator(
        store,
        ledger,
        complete=ScriptedModel(json.dumps(topic)),
        useVectorForQualityMemory=True,
        chunkEstimatedTokenSize=1000,
    )
    talk(store, "I have a rash.", "Do you take ibuprofen 400 mg? You take ibuprofen 400 mg.")

    await creator.handle_discussion_id_flow(HERE)

    (line,) = ledger.lines(HERE, "vector")
    assert line.body is not None
    assert (line.body.title, line.body.entities) == ("The person has a rash.", ("a rash",))
    assert line.body.key_phrases == ("rash",)


async def test_what_the_assistant_said_does_not_become_a_fact_in_the_rolling_summary(
    store: Store, ledger: MemoryLedger
) -> None:
    memories = "The assistant asked about ibuprofen. The person has a rash."
    model = ScriptedModel(memories, "The person takes ibuprofen. The person has a rash.")
    creator, _ = a_creator(store, ledger, complete=model, chunkEstimatedTokenSize=1000)
    talk(store, "I have a rash.", "Do you take ibuprofen?")

    await creator.handle_discussion_id_flow(HERE)

    assert texts_of(ledger) == [memories]
    assert ledger.summaries(HERE)[-1].text == "The person has a rash."


async def test_a_rolling_summary_that_is_too_long_loses_whole_sentences(
    store: Store, ledger: MemoryLedger
) -> None:
    words = "The person has a rash. The person takes 20 mg of lisinopril. The person takes 25 mg of zinc."
    model = ScriptedModel(words, f"The person takes insulin. {words}")
    creator, _ = a_creator(store, ledger, complete=model, chunkEstimatedTokenSize=1000, summaryCharacters=80)
    talk(store, "I have a rash. I take 20 mg of lisinopril. I take 25 mg of zinc.")

    run = await creator.handle_discussion_id_flow(HERE)

    (status,) = statuses(store, ledger, "file")
    text = ledger.summaries(HERE)[-1].text or ""
    check = SummaryCheck.of_memories([words], TERMS)
    assert text == "The person has a rash. The person takes 20 mg of lisinopril."
    assert all(check.supports(sentence) for sentence in sentences.cut(text))
    assert (run.dropped, status.dropped) == (1, 1)


async def test_a_rolling_summary_whose_first_sentence_is_too_long_is_picked(
    store: Store, ledger: MemoryLedger
) -> None:
    model = ScriptedModel("The person has a rash.", "The person has, as was said, a rash.")
    creator, _ = a_creator(store, ledger, complete=model, summaryCharacters=25)
    talk(store, "I have a rash, as was said.")

    await creator.handle_discussion_id_flow(HERE)

    (summary,) = ledger.summaries(HERE)
    assert (summary.text, summary.maker) == ("The person has a rash.", "local")


async def test_if_nothing_of_a_summary_is_supported_sentences_are_picked(
    store: Store, ledger: MemoryLedger
) -> None:
    creator, _ = a_creator(store, ledger, complete=ScriptedModel("Bob takes metformin."))
    talk(store, *TALK[:1])

    await creator.handle_discussion_id_flow(HERE)

    assert texts_of(ledger) == [f"Person: {TALK[0]}"]
    assert ledger.lines(HERE, "file")[0].maker == "local"


@pytest.mark.parametrize("has_model", [True, False])
async def test_picking_and_checking_run_outside_of_the_event_loop(
    store: Store, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch, has_model: bool
) -> None:
    ran: dict[str, set[int]] = {}

    def recorded(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            ran.setdefault(name, set()).add(threading.get_ident())
            return work(*args)

        return run

    for name in ("roll", "summarise", "_fitting"):
        monkeypatch.setattr(generation, name, recorded(name, getattr(generation, name)))
    for name in ("of_memories", "check", "__init__"):
        bound = name == "of_memories"  # a class method: what is read from the class has its class already
        work = recorded(name, getattr(SummaryCheck, name))
        monkeypatch.setattr(SummaryCheck, name, staticmethod(work) if bound else work)
    for name in ("_unheld", "next_summary"):
        monkeypatch.setattr(quality_memory, name, recorded(name, getattr(quality_memory, name)))
    model = ScriptedModel() if has_model else None
    creator, _ = a_creator(store, ledger, complete=model, chunkEstimatedTokenSize=1)
    talk(store, *(f"I take {number} mg of lisinopril." for number in range(6)))

    run = await creator.handle_discussion_id_flow(HERE)

    checks = {"of_memories", "check", "__init__", "_fitting"} if has_model else {"roll"}
    assert len(run.memories) == 3
    assert ran.keys() >= checks | {"summarise", "_unheld", "next_summary"}
    assert threading.get_ident() not in set().union(*ran.values())


# --- without a conversation ---------------------------------------------------------------------------------


@pytest.mark.requirement("004-001", "004-002")
async def test_without_a_conversation_nothing_is_stored(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    creator, _ = a_creator(store, ledger)
    messages = [
        HistoryMessage("m1", 1, "user", TALK[0], START),
        HistoryMessage("m2", 2, "assistant", TALK[1], START),
    ]

    text = await creator.without_discussion(messages)

    assert text == f"Person: {TALK[0]}"
    assert store.read_now(lambda tx: tx.memories.of_person_ever("ann")) == []
    assert files_in(tmp_path / "memories") == []


@pytest.mark.requirement("004-010")
async def test_the_memories_of_two_people_do_not_mix(store: Store, ledger: MemoryLedger) -> None:
    creator, _ = a_creator(store, ledger)
    talk(store, *TALK)
    other = Discussion("bob", HERE.id)

    await creator.handle_discussion_id_flow(HERE)

    assert (ledger.lines(other, "file"), ledger.summaries(other)) == ([], [])
    assert store.read_now(lambda tx: tx.memories.of_person_ever("bob")) == []


# --- the index ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("004-012", "004-014", "004-015")
async def test_a_memory_names_its_messages_and_the_summary_names_its_last_memory(
    store: Store, ledger: MemoryLedger
) -> None:
    creator, _ = a_creator(store, ledger)
    ids = talk(store, *TALK)

    await creator.handle_discussion_id_flow(HERE)

    lines = ledger.lines(HERE, "file")
    assert lines[-1].point.hash == sha256(TALK[-1])
    assert [id for line in lines for id in line.messages] == ids
    assert ledger.summaries(HERE)[-1].hash in {line.digest for line in lines}
    stored = store.read_now(lambda tx: tx.memories.get(lines[0].memory_id))
    assert stored is not None
    assert (stored.source_type, stored.content) == ("summary", texts_of(ledger)[0])


async def test_each_memory_stored_is_a_trace_of_the_background(store: Store, ledger: MemoryLedger) -> None:
    creator, _ = a_creator(store, ledger)
    talk(store, *TALK)

    run = await creator.handle_discussion_id_flow(HERE)

    traces = store.read_now(lambda tx: tx.traces.of_conversation(HERE.id))
    assert sorted(trace.memory_id for trace in traces) == sorted(run.memories)
    assert all(trace.action == "stored" and (trace.meta or {})["background"] for trace in traces)
    frames = store.read_now(lambda tx: tx.frames.in_order(HERE.id))
    assert len(frames) == len(traces)


async def test_a_deleted_memory_never_comes_back(store: Store, ledger: MemoryLedger) -> None:
    creator, _ = a_creator(store, ledger)
    talk(store, *TALK)
    run = await creator.handle_discussion_id_flow(HERE)
    gone = run.memories[0]
    text = next(line.body.text for line in ledger.lines(HERE, "file") if line.body and line.memory_id == gone)
    store.write_now(lambda tx: tx.memories.delete(gone))

    await creator.handle_discussion_id_flow(HERE)
    await creator.settle(HERE)

    assert store.read_now(lambda tx: tx.memories.get(gone)) is None
    assert gone not in [line.memory_id for line in alive(ledger.lines(HERE, "file"))]
    assert text not in (ledger.summaries(HERE)[-1].text or "")
    store.write_now(lambda tx: tx.memories.restore(gone))
    await creator.handle_discussion_id_flow(HERE)
    assert text in texts_of(ledger)
    assert text in (ledger.summaries(HERE)[-1].text or "")


async def test_a_memory_that_is_missing_in_the_index_is_stored_again_unless_it_was_deleted(
    store: Store, ledger: MemoryLedger, clock: HandClock
) -> None:
    creator, _ = a_creator(store, ledger)
    talk(store, *TALK)
    first, second, *_ = (await creator.handle_discussion_id_flow(HERE)).memories
    store.write_now(lambda tx: tx.memories.delete(first))
    await creator.settle(HERE)

    def lose(tx: Any) -> None:
        for table in ("memory_index", "memory_ledger"):
            tx.unit.connection.execute(f"DELETE FROM {table}")  # noqa: S608
        tx.unit.connection.execute("UPDATE memory_heads SET entries = 0, digest = NULL")
        tx.unit.connection.execute("DELETE FROM alicia_memory_used")
        tx.unit.connection.execute("DELETE FROM alicia_memory")

    store.write_now(lose)
    await creator.settle(HERE)

    assert store.read_now(lambda tx: tx.memories.get_even_deleted(first)) is None
    assert store.read_now(lambda tx: tx.memories.get(second)) is not None


async def test_an_erased_memory_leaves_the_ledger_and_every_summary(
    store: Store, ledger: MemoryLedger
) -> None:
    creator, _ = a_creator(store, ledger, chunkEstimatedTokenSize=1)
    talk(store, "My secret is a zebra.", "Ok.", "I like tea.", "Ok.")
    run = await creator.handle_discussion_id_flow(HERE)
    store.write_now(lambda tx: tx.memories.erase(run.memories[0]))

    await creator.handle_discussion_id_flow(HERE)

    assert "zebra" not in repr(ledger.lines(HERE, "file")) + repr(ledger.summaries(HERE))
    assert "tea" in (ledger.summaries(HERE)[-1].text or "")


async def test_a_message_that_the_person_deleted_is_in_no_memory(store: Store, ledger: MemoryLedger) -> None:
    creator, _ = a_creator(store, ledger, chunkEstimatedTokenSize=1000)
    remembering = Remembering(store, EMBEDDER)
    talk(store, "My secret is a zebra.", "Ok.")
    await creator.handle_discussion_id_flow(HERE)
    talk(store, "Another zebra, and 5 cups of tea.", "Ok.")
    await remembering.after_turn(HERE.user_id, HERE.id)
    known = store.read_now(lambda tx: tx.memories.of_person("ann"))
    said = [memory.id for memory in known if memory.source_type == "utterance"]
    store.write_now(lambda tx: [tx.memories.delete(id) for id in said])

    await creator.handle_discussion_id_flow(HERE)

    assert texts_of(ledger) == []
    assert "zebra" not in repr(ledger.summaries(HERE)[-1])
    summaries = [
        each
        for each in store.read_now(lambda tx: tx.memories.of_person("ann"))
        if each.source_type == "summary"
    ]
    assert summaries == []
