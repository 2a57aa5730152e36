"""`anamnesis memory status`, `lineage` and `reindex`, and `anamnesis workflow`, as scripts use them."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.ops.clock import SystemClock
from orchestrator.store.engine.database import Store
from orchestrator.wire.ids import RandomIds
from tests.support.commands import run
from tests.support.memory.creators import talk

pytestmark = pytest.mark.usefixtures("nothing_configured")

SAID = (
    "I take 20 mg of lisinopril every morning.",
    "Thank you. Anything else?",
    "Penicillin gives me a rash.",
    "I will remember that.",
)
MAKE = [{"id": "a", "type": "QualityMemory"}, {"id": "b", "type": "FullChatSummary", "returnToUser": True}]


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """A conversation with four messages; returns their ids."""
    (tmp_path / "config").mkdir()
    shipped = json.loads(Path("config/memory.json").read_text())
    changes = {"lookbackMessages": 0, "messagesBetweenChunks": 1, "chunkEstimatedTokenSize": 20}
    (tmp_path / "config" / "memory.json").write_text(json.dumps({**shipped, **changes}))
    (tmp_path / "make.json").write_text(json.dumps(MAKE))
    (tmp_path / "data").mkdir(mode=0o700)
    url = f"sqlite:///{tmp_path / 'data' / 'anamnesis.db'}"
    store = Store.open(url, clock=SystemClock(), ids=RandomIds(), create=True)
    ids = talk(store, *SAID)
    store.close_now()
    return ids


def ours(tmp_path: Path, *arguments: str | Path) -> Any:
    done = run("--config", tmp_path / "config", *arguments, "--json")
    assert done.exit_code == 0, done.output
    return (
        [json.loads(line) for line in done.stdout.splitlines()]
        if "status" in arguments
        else json.loads(done.stdout)
    )


def make(tmp_path: Path) -> Any:
    return ours(tmp_path, "workflow", "run", tmp_path / "make.json", "--conversation", "conv_1")


def test_status_shows_what_is_behind(ids: list[str], tmp_path: Path) -> None:
    (before,) = ours(tmp_path, "memory", "status")
    made = make(tmp_path)
    (after,) = ours(tmp_path, "memory", "status")

    assert (before["messages"], before["behind"], before["memories"]) == (4, 4, 0)
    assert (after["behind"], after["memories"], after["broken"]) == (0, 2, [])
    assert made["output"] == f"Person: {SAID[0]}\nPerson: {SAID[2]}"
    assert [node["type"] for node in made["nodes"]] == ["QualityMemory", "FullChatSummary"]


def test_status_says_if_a_ledger_does_not_follow_all_changes(ids: list[str], tmp_path: Path) -> None:
    store = Store.open(
        f"sqlite:///{tmp_path / 'data' / 'anamnesis.db'}", clock=SystemClock(), ids=RandomIds()
    )
    before = run("memory", "status").stdout
    store.write_now(lambda tx: tx.memory_work.note_change("conv_1"))
    store.close_now()

    after = run("memory", "status").stdout

    says = "the ledger does not follow all changes of memories yet"
    assert (says in before, says in after) == (False, True)


def test_status_reports_a_ledger_that_was_changed(ids: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    (file,) = (tmp_path / "data" / "memories").rglob("*_memories.jsonl")
    file.write_text(file.read_text().replace("20 mg", "90 mg"))

    done = run("memory", "status")

    assert (done.exit_code, "line 1: a line's text is not the one it was written with" in done.stdout) == (
        1,
        True,
    )
    assert "90 mg" not in done.output


def test_status_and_check_report_a_summary_that_was_changed(ids: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    status_of_sound, sound = run("memory", "status"), run("check")
    (file,) = (tmp_path / "data" / "memories").rglob("*_summary.jsonl")
    file.write_text(file.read_text().replace("20 mg", "90 mg"))

    status, checked = run("memory", "status"), run("check")

    assert status_of_sound.exit_code == 0, status_of_sound.output
    new = set(checked.output.splitlines()) - set(sound.output.splitlines())
    assert [line[:3] for line in new if line[0] == "I"] == ["I25"]
    for done in (status, checked):
        assert done.exit_code == 1
        assert "summary 1: a line's text is not the one it was written with" in done.output


def test_the_two_kinds_of_memories_have_a_lineage_of_their_own(ids: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    config = tmp_path / "config" / "memory.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "useVectorForQualityMemory": True}))
    make(tmp_path)
    whole = ours(tmp_path, "memory", "lineage", "conv_1")
    chunks = whole["chunks"]

    for chunk in chunks:
        for id in (chunk["memories"][0]["id"], chunk["id"]):
            found = ours(tmp_path, "memory", "lineage", id)
            assert found["chunks"] == [chunk]
            assert found["summary"] == (whole["summary"] if chunk["kind"] == "file" else None)
    assert {chunk["kind"] for chunk in chunks} == {"file", "vector"}


def test_without_a_model_a_workflow_that_needs_one_is_replaced_by_picked_sentences(
    ids: list[str], tmp_path: Path
) -> None:
    config = tmp_path / "config" / "memory.json"
    changes = {"useVectorForQualityMemory": True, "vectorMemoryWorkflowName": "topics"}
    config.write_text(json.dumps({**json.loads(config.read_text()), **changes}))

    make(tmp_path)

    (status,) = ours(tmp_path, "memory", "status")
    assert (status["behind"], status["memories"], status["error"]) == (0, 2, None)


def test_bad_input_is_refused_with_a_plain_sentence(ids: list[str], tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    searches = tmp_path / "searches.json"
    searches.write_text(json.dumps([{"id": "a", "type": "VectorMemorySearch", "returnToUser": True}]))
    make_file, inputs = tmp_path / "make.json", ["--input", "x"] * 5

    refused = [
        run("workflow", "check", deep),
        run("workflow", "run", make_file, "--messages", deep),
        run("workflow", "run", make_file, *inputs),
        run("workflow", "run", make_file, "--conversation", "conv_1", "--messages", deep),
        run("workflow", "check", searches),
    ]

    assert [each.exit_code for each in refused] == [2] * 5
    says = ("cannot be read as JSON", "no JSON array", "4 times", "without --conversation", "no input")
    for each, text in zip(refused, says, strict=True):
        assert text in each.output


def test_lineage_leads_from_each_to_all_the_others(ids: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    whole = ours(tmp_path, "memory", "lineage", "conv_1")

    first = whole["chunks"][0]
    memory = first["memories"][0]["id"]
    found = [ours(tmp_path, "memory", "lineage", id) for id in (memory, ids[0], ids[1], first["id"])]
    of_turn = run("memory", "lineage", "conv_1:7", "--json")
    summary = ours(tmp_path, "memory", "lineage", whole["summary"]["id"])
    shown = run("memory", "lineage", memory)

    assert [each["chunks"] for each in found] == [[first]] * 4
    assert [message["text"] for message in first["messages"]] == list(SAID[:2])
    assert whole["summary"]["memory"] == whole["chunks"][-1]["memories"][0]["id"]
    assert (first["id"], whole["summary"]["id"]) == ("conv_1#file:1", "conv_1#summary:1")
    assert summary == whole
    assert [each["summary"] for each in found] == [whole["summary"]] * 4
    assert of_turn.exit_code == 2
    assert f"memory {memory}  memory" in shown.stdout
    for wrong in ("nonsense", "conv_1#file:99", "conv_1#99", "conv_1#summary:9", f"conv_1:{'9' * 20}"):
        refused = run("memory", "lineage", wrong)
        assert (refused.exit_code, "There is no such" in refused.output) == (2, True), refused.output


def test_lineage_of_an_old_summary_shows_that_version_and_what_it_held(
    ids: list[str], tmp_path: Path
) -> None:
    make(tmp_path)
    first, second = ours(tmp_path, "memory", "lineage", "conv_1")["chunks"]
    gone = first["memories"][0]["id"]
    assert run("memory", "delete", "ann", gone).exit_code == 0

    old, new = (ours(tmp_path, "memory", "lineage", f"conv_1#summary:{number}") for number in (1, 2))
    of_deleted = ours(tmp_path, "memory", "lineage", gone)

    assert [chunk["id"] for chunk in old["chunks"]] == [first["id"], second["id"]]
    assert old["chunks"][0]["memories"][0]["state"] == "deleted"
    assert (old["summary"]["number"], new["summary"]["number"]) == (1, 2)
    assert new["chunks"] == [second]
    assert (len(of_deleted["chunks"]), of_deleted["summary"]) == (1, None)


def test_lineage_shows_the_memories_of_a_deleted_conversation(ids: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    whole = ours(tmp_path, "memory", "lineage", "conv_1")
    url = f"sqlite:///{tmp_path / 'data' / 'anamnesis.db'}"
    store = Store.open(url, clock=SystemClock(), ids=RandomIds())
    store.write_now(lambda tx: tx.conversations.delete("conv_1"))
    store.close_now()

    first = whole["chunks"][0]
    named = ("conv_1", whole["summary"]["id"], first["id"], first["memories"][0]["id"], ids[0])
    found = [ours(tmp_path, "memory", "lineage", id) for id in named]

    assert found[:2] == [whole] * 2
    assert [each["chunks"] for each in found[2:]] == [[first]] * 3


def test_lineage_says_if_a_message_is_in_no_memory_yet(ids: list[str], tmp_path: Path) -> None:
    found = ours(tmp_path, "memory", "lineage", ids[2])

    assert found["chunks"] == []
    assert [message["text"] for message in found["notInAMemoryYet"]] == [SAID[2]]


def test_reindex_stores_what_is_missing_and_brings_nothing_back(ids: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    run("memory", "reindex", "ann")
    gone, kept = [
        each["memories"][0]["id"] for each in ours(tmp_path, "memory", "lineage", "conv_1")["chunks"]
    ]
    assert run("memory", "delete", "ann", gone).exit_code == 0

    first = run("memory", "reindex", "ann", "--json")
    (file,) = (tmp_path / "data" / "memories").rglob("*_memories.jsonl")
    again = run("memory", "reindex", "ann", "--json")

    listed = run("memory", "list", "ann", "--json").stdout
    assert json.loads(first.stdout)["stored"] == json.loads(again.stdout)["stored"] == 0
    assert (gone in listed, kept in listed) == (False, True)
    assert [json.loads(line)["action"] for line in file.read_text().splitlines()][-1] == "deleted"


def test_a_workflow_is_checked_without_running_it(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps([{"id": "a", "type": "Nonsense", "returnToUser": True}]))

    good = run("workflow", "check", "config/workflows/topics.json")
    bad = run("workflow", "check", wrong)

    assert (good.exit_code, good.stdout) == (0, "2 nodes: Standard, Standard\n")
    assert (bad.exit_code, "unknown type Nonsense" in bad.output) == (2, True)


def test_without_a_conversation_a_workflow_reads_only_the_messages(tmp_path: Path) -> None:
    messages = tmp_path / "messages.json"
    messages.write_text(json.dumps([{"role": "user", "content": "I like tea."}]))
    file = tmp_path / "make.json"
    file.write_text(json.dumps(MAKE))

    done = run("workflow", "run", file, "--messages", messages)
    asked = run("workflow", "run", "config/workflows/topics.json", "--input", "x")

    assert (done.exit_code, done.stdout) == (0, "Person: I like tea.\n")
    assert not (tmp_path / "data" / "memories").exists()
    assert (asked.exit_code, "no model is configured" in asked.output) == (2, True)
