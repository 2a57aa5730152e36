"""The ledger follows every change of a memory and of its messages at once, with a model and without one."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import LEDGER_UNREADABLE, AnamnesisError
from orchestrator.remember.changing import MemoryChanges
from orchestrator.remember.creators.background import BackgroundMemories
from orchestrator.remember.creators.generation import RequestOrigin
from orchestrator.remember.ledger.lines import Kind
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.utterances import Remembering, utterance_id
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.frame_records import record
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import ConversationId, MessageId
from orchestrator.wire.messages import ControlVariation
from orchestrator.workflows.manager import WorkflowManager
from orchestrator.workflows.memory_nodes import WorkflowScope
from tests.support.builders import HandClock
from tests.support.memory.creators import HERE, ScriptedModel, a_creator, talk, texts_of
from tests.support.memory.memories import EMBEDDER

SECRET = "My secret is a zebra."
TEA = "I like tea."


async def remembered(
    store: Store, ledger: MemoryLedger, *said: str, **changes: Any
) -> tuple[WorkflowManager, list[str], list[str]]:
    """A conversation in which each of these messages is a memory; the ids of messages and of memories."""
    creator, workflows = a_creator(store, ledger, chunkEstimatedTokenSize=1, **changes)
    ids = talk(store, *(text for each in said for text in (each, "Ok.")))
    await Remembering(store, EMBEDDER).after_turn(HERE.user_id, HERE.id)
    run = await creator.handle_discussion_id_flow(HERE)
    return workflows, ids, run.memories


async def read(workflows: WorkflowManager, folder: Path, node_type: str = "FullChatSummary") -> str:
    """The output of a node that reads memories."""
    path = folder / "read.json"
    node = {"id": "a", "type": node_type, "limit": 50, "returnToUser": True}
    path.write_text(json.dumps([{**node, "input": "zebra;tea"}]))
    output, _ = await workflows.run(workflows.load(path), WorkflowScope(HERE))
    return output


def everywhere(ledger: MemoryLedger, folder: Path) -> str:
    """All that a ledger has, and the bytes of all its files."""
    kept = [
        repr(ledger.lines(HERE, "file")),
        repr(ledger.lines(HERE, "vector")),
        repr(ledger.summaries(HERE)),
    ]
    files = [path for path in (folder / "memories").rglob("*") if path.is_file()]
    return "".join(kept) + "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def replace_message(tx: Transaction, message_id: str, text: str) -> None:
    """Edit a message, as a client does."""
    here = ConversationId(HERE.id)
    body = ControlVariation(
        conversation_id=here, target_id=MessageId(message_id), mode="edit", new_content=text
    )
    record(tx, tx.conversations.lock(HERE.id), Envelope(1, here, body))


def change(store: Store, what: Any) -> None:
    store.write_now(lambda tx: what(MemoryChanges(tx, HERE.user_id, "ann")))


# --- deletions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "vector"])
async def test_an_erased_memory_is_gone_at_once_from_every_file_and_every_answer(
    store: Store, ledger: MemoryLedger, tmp_path: Path, kind: Kind
) -> None:
    vector = kind == "vector"
    workflows, _, (secret, _) = await remembered(store, ledger, SECRET, TEA, useVectorForQualityMemory=vector)
    before = everywhere(ledger, tmp_path)

    change(store, lambda changes: changes.delete(secret, final=True))

    assert "zebra" in before
    assert "zebra" not in everywhere(ledger, tmp_path)
    nodes = ("VectorMemorySearch",) if vector else ("RecentMemory", "FullChatSummary")
    for node in nodes:
        assert await read(workflows, tmp_path, node) == f"Person: {TEA}"


async def test_what_a_process_did_not_do_any_more_the_next_check_does(
    store: Store, ledger: MemoryLedger, tmp_path: Path, clock: HandClock
) -> None:
    _, _, (secret, _) = await remembered(store, ledger, SECRET, TEA)
    store.settle = None
    clock.tick(3 * 86_400)
    change(store, lambda changes: changes.delete(secret, final=True))
    before = everywhere(ledger, tmp_path)

    creator, _ = a_creator(store, ledger)
    await BackgroundMemories(store, creator, idle=timedelta(minutes=30), seconds=60, holder="proc_1").check()

    assert "zebra" in before
    assert "zebra" not in everywhere(ledger, tmp_path)
    assert store.read_now(lambda tx: tx.memory_work.unsettled()) == []


@pytest.mark.parametrize("final", [True, False])
async def test_until_then_no_node_reads_what_was_deleted(
    store: Store, ledger: MemoryLedger, tmp_path: Path, final: bool
) -> None:
    workflows, _, (secret, _) = await remembered(store, ledger, SECRET, TEA)
    store.settle = None
    change(store, lambda changes: changes.delete(secret, final=final))

    for node in ("RecentMemory", "FullChatSummary"):
        assert await read(workflows, tmp_path, node) == f"Person: {TEA}"


async def test_a_change_that_the_ledger_cannot_follow_is_stored_and_tried_again(
    store: Store, ledger: MemoryLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, (secret, _) = await remembered(store, ledger, SECRET, TEA)

    def full(*_: Any) -> None:
        raise AnamnesisError(LEDGER_UNREADABLE, rule="OSError")

    monkeypatch.setattr(ledger, "change", full)
    change(store, lambda changes: changes.delete(secret, final=True))
    monkeypatch.undo()
    before = everywhere(ledger, tmp_path)
    a_creator(store, ledger)[0].settling.settle_all()

    assert "zebra" in before
    assert "zebra" not in everywhere(ledger, tmp_path)


async def test_with_a_model_a_deleted_memory_leaves_the_rolling_summary(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    memories = ("The person's secret is a zebra.", "The person likes tea.")
    rolled = " ".join(memories)
    model = ScriptedModel(*memories, rolled)
    workflows, _, (secret, *_) = await remembered(store, ledger, SECRET, TEA, complete=model)
    before = await read(workflows, tmp_path)
    change(store, lambda changes: changes.delete(secret))
    at_once = await read(workflows, tmp_path)
    model.replies = ["The person said something.", rolled]
    creator, _ = a_creator(store, ledger, chunkEstimatedTokenSize=1, complete=model)
    talk(store, "I said something else.")
    await creator.handle_discussion_id_flow(HERE)

    assert before == rolled
    assert (at_once, await read(workflows, tmp_path)) == (memories[1], memories[1])
    assert "zebra" not in model.prompts[-1]


async def test_a_memory_that_is_made_while_its_message_is_erased_does_not_stay(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (id, _) = talk(store, SECRET, "Ok.")
    await Remembering(store, EMBEDDER).after_turn(HERE.user_id, HERE.id)

    async def slow(prompt: str, caller: RequestOrigin) -> str:
        if prompt.startswith("Summarise"):
            change(store, lambda changes: changes.delete(utterance_id(id), final=True))
        return "The person's secret is a zebra."

    creator, _ = a_creator(store, ledger, complete=slow)
    await creator.handle_discussion_id_flow(HERE)

    assert "zebra" not in everywhere(ledger, tmp_path)
    summaries = [
        each for each in store.read_now(lambda tx: tx.memories.of_person_ever("ann")) if each.content
    ]
    assert summaries == []


async def test_an_erased_message_erases_the_memories_made_of_it(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    _, ids, (secret, _) = await remembered(store, ledger, SECRET, TEA)

    store.write_now(lambda tx: tx.memories.erase(utterance_id(ids[0])))

    assert "zebra" not in everywhere(ledger, tmp_path)
    memory = store.read_now(lambda tx: tx.memories.get_even_deleted(secret))
    assert memory is not None
    assert (memory.content, memory.deleted_at is None) == ("", False)


async def test_a_deletion_that_is_undone_brings_memory_and_summary_back(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    workflows, ids, _ = await remembered(store, ledger, SECRET, TEA)

    store.write_now(lambda tx: tx.memories.delete(utterance_id(ids[0])))
    deleted = await read(workflows, tmp_path)
    store.write_now(lambda tx: tx.memories.restore(utterance_id(ids[0])))

    assert (deleted, await read(workflows, tmp_path)) == (
        f"Person: {TEA}",
        f"Person: {SECRET}\nPerson: {TEA}",
    )


async def test_a_memory_of_a_deleted_conversation_can_be_erased(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    _, _, (secret, _) = await remembered(store, ledger, SECRET, TEA)
    store.write_now(lambda tx: tx.conversations.delete(HERE.id))

    change(store, lambda changes: changes.delete(secret, final=True))

    assert "zebra" not in everywhere(ledger, tmp_path)


async def test_a_deleted_conversation_gets_no_memories(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    creator, _ = a_creator(store, ledger, lookbackMessages=2, messagesBetweenChunks=10)
    making = BackgroundMemories(store, creator, idle=timedelta(minutes=30), seconds=60, holder="proc_1")
    talk(store, SECRET, "Ok.")
    await making.check()
    store.write_now(lambda tx: tx.conversations.delete(HERE.id))

    await making.check()

    assert "zebra" not in everywhere(ledger, tmp_path)


# --- edits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "vector"])
async def test_an_edited_memory_is_read_with_its_new_words_at_once(
    store: Store, ledger: MemoryLedger, tmp_path: Path, kind: Kind
) -> None:
    vector = kind == "vector"
    workflows, _, (secret, _) = await remembered(store, ledger, SECRET, TEA, useVectorForQualityMemory=vector)

    change(store, lambda changes: changes.edit(secret, content="Person: My secret is a lion, with tea."))
    edited = texts_of(ledger, kind)
    read_edited = await read(workflows, tmp_path, "VectorMemorySearch" if vector else "FullChatSummary")
    change(store, lambda changes: changes.undo())

    assert edited == ["Person: My secret is a lion, with tea.", f"Person: {TEA}"]
    assert ("lion" in read_edited, "zebra" in read_edited) == (True, False)
    assert texts_of(ledger, kind) == [f"Person: {SECRET}", f"Person: {TEA}"]


async def test_an_edited_message_supports_no_older_memory_and_is_summarised_with_its_new_words(
    store: Store, ledger: MemoryLedger, tmp_path: Path, clock: HandClock
) -> None:
    workflows, _, _ = await remembered(store, ledger, "I take 90 mg.", TEA)
    (late,) = talk(store, "I weigh 99 kg.")
    await Remembering(store, EMBEDDER).after_turn(HERE.user_id, HERE.id)
    known = store.read_now(lambda tx: tx.memories.of_person("ann"))
    taken = next(each.id for each in known if each.content == "I take 90 mg.")
    clock.tick(1)

    change(store, lambda changes: changes.edit(taken, content="I take 20 mg."))
    change(store, lambda changes: changes.edit(utterance_id(late), content="I weigh 66 kg."))
    clock.tick(1)
    creator, _ = a_creator(store, ledger, clock=clock)
    await creator.handle_discussion_id_flow(HERE)
    await creator.settle(HERE)

    assert texts_of(ledger) == [f"Person: {TEA}", "Person: I weigh 66 kg."]
    assert await read(workflows, tmp_path) == f"Person: {TEA}\nPerson: I weigh 66 kg."


async def test_a_message_that_is_replaced_later_is_in_no_memory(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    workflows, ids, _ = await remembered(store, ledger, "I take 90 mg.", TEA)

    store.write_now(lambda tx: replace_message(tx, ids[0], "I take 20 mg."))
    creator, _ = a_creator(store, ledger)
    at_once = await read(workflows, tmp_path)
    await creator.handle_discussion_id_flow(HERE, whole=True)

    assert at_once == f"Person: {TEA}"
    assert texts_of(ledger) == [f"Person: {TEA}", "Person: I take 20 mg."]
    assert "90 mg" not in await read(workflows, tmp_path)
