"""Workflows: what their nodes read and return, and that reading changes nothing and asks no model."""

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import MEMORY_NOT_MADE, WORKFLOW_INVALID, AnamnesisError
from orchestrator.remember.creators import quality_memory
from orchestrator.remember.creators.generation import CHUNK_BREAK, filled
from orchestrator.remember.creators.history import HistoryMessage
from orchestrator.remember.creators.status import statuses
from orchestrator.remember.ledger import vector_db
from orchestrator.remember.ledger.lines import alive
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.store.engine.database import Store
from orchestrator.store.rows import metadata
from orchestrator.workflows import manager, memory_nodes, retrievers
from orchestrator.workflows.manager import WorkflowManager
from orchestrator.workflows.memory_nodes import WorkflowScope
from orchestrator.workflows.retrievers import NO_DISCUSSION, NO_MEMORIES, NO_SUMMARY, Reading, Retrieved
from tests.support.builders import START
from tests.support.memory.creators import HERE, ScriptedModel, a_creator, talk, texts_of

IN_CONVERSATION = WorkflowScope(HERE)
TEA = json.dumps(dict.fromkeys(("title", "summary", "entities", "key_phrases"), "tea"))
READS = {"id": "a", "type": "RecentMemory", "returnToUser": True}
ASKS = {"id": "a", "type": "Standard", "returnToUser": True}


async def remembered(store: Store, ledger: MemoryLedger, *said: str, **changes: Any) -> WorkflowManager:
    """A conversation in which each of these messages is a memory."""
    creator, workflows = a_creator(store, ledger, chunkEstimatedTokenSize=1, **changes)
    talk(store, *(text for each in said for text in (each, "Ok.")))
    await creator.handle_discussion_id_flow(HERE)
    return workflows


async def run(
    workflows: WorkflowManager, folder: Path, *nodes: dict[str, Any], scope: WorkflowScope = IN_CONVERSATION
) -> str:
    """Write a workflow to a file, and run it. The last node returns to the user, unless another says so."""
    made = [{"id": f"node{number}", **node} for number, node in enumerate(nodes, 1)]
    if not any("returnToUser" in node for node in made):
        made[-1]["returnToUser"] = True
    path = folder / "test.json"
    path.write_text(json.dumps(made))
    output, _ = await workflows.run(workflows.load(path), scope)
    return output


# --- the retrievers -----------------------------------------------------------------------------------------


@pytest.mark.requirement("004-033", "004-007", "004-008")
@pytest.mark.parametrize("node_type", ["RecentMemory", "RecentMemorySummarizerTool"])
async def test_recent_memory_reads_the_last_memories(
    store: Store, ledger: MemoryLedger, tmp_path: Path, node_type: str
) -> None:
    workflows = await remembered(store, ledger, *(f"Message {number}." for number in range(1, 6)))

    two = await run(workflows, tmp_path, {"type": node_type, "limit": 2})
    four = await run(workflows, tmp_path, {"type": node_type, "limit": 4})

    assert two == CHUNK_BREAK.join(("Person: Message 4.", "Person: Message 5."))
    assert four.count(CHUNK_BREAK) == 3


@pytest.mark.requirement("004-002", "004-034", "004-040")
async def test_without_a_conversation_nodes_read_only_the_messages(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    workflows = await remembered(store, ledger, "A memory.")
    said = [
        HistoryMessage(f"{role}{number}", number, role, f"{begin} {number}.", START)
        for number in range(1, 6)
        for role, begin in (("user", "Turn"), ("assistant", "Answer"))
    ]
    scope = WorkflowScope(None, said)

    recent = await run(workflows, tmp_path, {"type": "RecentMemory", "limit": 2}, scope=scope)
    search = await run(workflows, tmp_path, {"type": "VectorMemorySearch", "input": "memory"}, scope=scope)
    summary = await run(workflows, tmp_path, {"type": "FullChatSummary"}, scope=scope)
    made = await run(workflows, tmp_path, {"type": "QualityMemory"}, scope=scope)

    assert recent.split("\n") == [
        *("Person: Turn 4.", "Assistant: Answer 4."),
        *("Person: Turn 5.", "Assistant: Answer 5."),
    ]
    assert search == NO_DISCUSSION
    assert "memory" not in summary + made
    assert "Turn 3." in made


@pytest.mark.requirement("004-041", "004-014")
async def test_the_full_chat_summary_is_the_rolling_summary(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    workflows = await remembered(store, ledger, "I take 5 mg of tea.", "I like Paris.")

    output = await run(workflows, tmp_path, {"type": "FullChatSummary"})

    assert output == ledger.summaries(HERE)[-1].text == "Person: I take 5 mg of tea.\nPerson: I like Paris."


@pytest.mark.requirement("004-039", "004-035")
async def test_the_vector_search_returns_summaries_best_first(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    workflows = await remembered(
        store, ledger, "Tea is nice.", "Blood pressure 140.", "Cake.", useVectorForQualityMemory=True
    )
    scope = WorkflowScope(HERE, inputs=("blood pressure;cake",))

    output = await run(
        workflows, tmp_path, {"type": "VectorMemorySearch", "input": "{agent1Input}", "limit": 5}, scope=scope
    )

    found = output.split(CHUNK_BREAK)
    assert set(found) == {"Person: Blood pressure 140.", "Person: Cake."}
    assert found == [line.body.text for line in ledger.search(HERE, "blood pressure;cake", 5) if line.body]


async def test_a_conversation_without_memories_is_answered_with_a_plain_sentence(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    _, workflows = a_creator(store, ledger)
    talk(store, "Hello.")

    assert await run(workflows, tmp_path, {"type": "RecentMemory"}) == NO_MEMORIES
    assert await run(workflows, tmp_path, {"type": "FullChatSummary"}) == NO_SUMMARY


@pytest.mark.requirement("004-006", "004-003")
async def test_retrieval_asks_no_model_and_changes_no_memory(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    model = ScriptedModel()
    for vector in (False, True):
        model.replies = [TEA] * vector
        workflows = await remembered(
            store, ledger, "Tea, and more of it.", complete=model, useVectorForQualityMemory=vector
        )
    before, asked = everything(store, tmp_path), len(model.prompts)

    for node in ("RecentMemory", "RecentMemorySummarizerTool", "FullChatSummary"):
        await run(workflows, tmp_path, {"type": node})
    await run(workflows, tmp_path, {"type": "VectorMemorySearch", "input": "tea"})

    after = everything(store, tmp_path)
    assert asked == len(model.prompts) > 0
    assert {name for name in after if after[name] != before.get(name)} == {
        *("alicia_memory_used", "frames", "alicia_conversations")
    }
    traces = store.read_now(lambda tx: tx.traces.of_conversation(HERE.id))
    read = [trace for trace in traces if trace.action == "retrieved"]
    assert len(read) == len(traces) - len(before["alicia_memory_used"]) == 4
    assert {(trace.actor, (trace.meta or {})["background"]) for trace in read} == {("workflow", True)}


def everything(store: Store, folder: Path) -> dict[str, Any]:
    """All rows of all tables, and the contents of all files of the ledger."""

    def rows(tx: Any) -> dict[str, Any]:
        return {
            name: sorted(map(repr, tx.unit.connection.execute(f"SELECT * FROM {name}").fetchall()))  # noqa: S608
            for name in metadata.tables
        }

    files = [path for path in (folder / "memories").rglob("*") if path.is_file()]
    return store.read_now(rows) | {path.name: path.read_bytes() for path in files}


# --- a new retriever ----------------------------------------------------------------------------------------


def first_five_memories(reading: Reading) -> Retrieved:
    """The first five memories of a conversation: the example of the source document."""
    lines = alive(reading.ledger.lines(reading.discussion, "file")) if reading.discussion else []
    return retrievers.joined(lines[:5])


@pytest.mark.requirement("004-044", "004-045", "004-046")
async def test_a_new_retriever_is_one_function_and_one_registration(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    _, workflows = a_creator(store, ledger)
    talk(store, "Hello.")
    workflows.register("FirstFiveMemories", first_five_memories)
    none = await run(workflows, tmp_path, {"type": "FirstFiveMemories"})
    await remembered(store, ledger, *(f"Message {number}." for number in range(1, 8)))

    seven = await run(workflows, tmp_path, {"type": "FirstFiveMemories"})

    assert none == "No memories have been generated yet"
    assert seven == "--ChunkBreak--".join(texts_of(ledger)[:5])
    assert len(texts_of(ledger)) > 5


# --- loading and running ------------------------------------------------------------------------------------


@pytest.mark.requirement("004-009", "004-008")
@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([{"id": "a", "type": "Nonsense", "returnToUser": True}], "unknown type Nonsense"),
        ([{"id": "a", "type": "RecentMemory"}], "no node has returnToUser"),
        ([ASKS], "has no prompt"),
        ([{**READS, "colour": "red"}], "colour"),
        ([{**ASKS, "prompt": "{agent1Output}"}], "{agent1Output}"),
        ([{**ASKS, "prompt": "{agent5Input}"}], "{agent5Input}"),
        ([READS, READS], "the same id"),
        ([], "not a list of nodes"),
        ({"nodes": []}, "not a list of nodes"),
        ("not json", "cannot be read as JSON"),
    ],
)
def test_a_workflow_that_cannot_run_is_refused_when_it_is_loaded(
    tmp_path: Path, nodes: Any, says: str
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(nodes if isinstance(nodes, str) else json.dumps(nodes))

    with pytest.raises(AnamnesisError) as refused:
        WorkflowManager([tmp_path]).load(path)

    assert refused.value.problem is WORKFLOW_INVALID
    assert says in str(refused.value)


def test_a_name_of_a_workflow_is_never_a_path(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.json").write_text("[]")

    with pytest.raises(AnamnesisError, match="no such file"):
        WorkflowManager([tmp_path / "inside"]).named("../outside")


@pytest.mark.requirement("004-051", "004-049")
async def test_the_last_node_that_returns_to_the_user_is_the_result(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    model = ScriptedModel("first", "second", "third")
    _, workflows = a_creator(store, ledger, complete=model)

    output = await run(
        workflows,
        tmp_path,
        {"type": "Standard", "prompt": "one", "returnToUser": True},
        {"type": "Standard", "prompt": "after {agent1Output}", "returnToUser": True},
        {"type": "Standard", "prompt": "{agent1Output} and {agent2Output}", "returnToUser": False},
        scope=WorkflowScope(),
    )

    assert output == "second"
    assert model.prompts == ["one", "after first", "first and second"]


@pytest.mark.requirement("004-048", "004-049")
def test_placeholders_are_replaced_once_and_what_is_put_in_is_not_read() -> None:
    prompt = '{agent1Input} {agent4Input} {agent2Output} {agent9Input} {other} {"json": 1}'

    result = filled(prompt, ("{agent2Output}", "", "", "four"), ("x", "two"))

    assert result == '{agent2Output} four two  {other} {"json": 1}'


async def test_a_workflow_that_makes_memories_may_not_call_itself(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "circle.json").write_text('[{"id": "a", "type": "QualityMemory", "returnToUser": true}]')
    creator, _ = a_creator(store, ledger, folder=tmp_path, fileMemoryWorkflowName="circle")
    talk(store, "Hello, tea.")

    made = await creator.handle_discussion_id_flow(HERE)

    assert (made.error, ledger.lines(HERE, "file")) == ("workflow_invalid", [])


@pytest.mark.requirement("004-007")
async def test_the_shipped_workflow_makes_memories_and_returns_the_summary(
    store: Store, ledger: MemoryLedger
) -> None:
    _, workflows = a_creator(store, ledger)
    talk(store, "I like tea.")

    output, steps = await workflows.run(workflows.named("remember"), IN_CONVERSATION)

    assert output == "Person: I like tea."
    assert [step.type for step in steps] == ["QualityMemory", "FullChatSummary"]


@pytest.mark.requirement("004-024", "004-043")
async def test_a_node_that_makes_memories_runs_the_creator_once_and_leaves_a_log_of_its_path(
    store: Store,
    ledger: MemoryLedger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = {"id": "one", "type": "Standard", "prompt": "{agent1Input}", "returnToUser": True}
    (tmp_path / "mine.json").write_text(json.dumps([node]))
    creator, workflows = a_creator(
        store,
        ledger,
        folder=tmp_path,
        complete=ScriptedModel("The person likes tea."),
        fileMemoryWorkflowName="mine",
    )
    talk(store, "I like tea.")
    called: list[Any] = []
    original = creator.handle_discussion_id_flow

    async def counted(of: Any, **options: Any) -> Any:
        called.append(of)
        return await original(of, **options)

    monkeypatch.setattr(creator, "handle_discussion_id_flow", counted)

    output = await run(workflows, tmp_path, {"type": "QualityMemory"})

    assert (called, output) == ([HERE], "The person likes tea.")
    ran = [json.loads(line) for line in capsys.readouterr().err.splitlines() if "workflow_node_ran" in line]
    assert [(line["label"], line["kind"]) for line in ran] == [
        ("mine", "Standard"),
        ("test", "QualityMemory"),
    ]
    (trace,) = store.read_now(lambda tx: tx.traces.of_conversation(HERE.id))
    (line,) = ledger.lines(HERE, "file")
    assert (trace.action, trace.memory_id, line.maker) == ("stored", line.memory_id, "workflow:mine")


async def test_a_node_whose_memories_cannot_be_made_fails(
    store: Store, ledger: MemoryLedger, tmp_path: Path
) -> None:
    trouble = AnamnesisError(MEMORY_NOT_MADE, rule="test")
    creator, workflows = a_creator(store, ledger, complete=ScriptedModel(trouble))
    talk(store, "I like tea.")

    with pytest.raises(AnamnesisError, match="memory_not_made"):
        await run(workflows, tmp_path, {"type": "QualityMemory"})
    (status,) = statuses(store, ledger, "file")
    await creator.handle_discussion_id_flow(HERE)
    (later,) = statuses(store, ledger, "file")

    assert (status.error, later.error) == ("memory_not_made", None)


# --- who writes ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("004-042")
def test_the_five_components_are_modules_and_only_the_router_and_the_registrar_know_others() -> None:
    creator, retriever, db_layer, router, registrar = (
        Path(str(module.__file__)).stem
        for module in (quality_memory, retrievers, vector_db, memory_nodes, manager)
    )
    known = {}
    for module in (quality_memory, retrievers, vector_db, memory_nodes, manager):
        tree = ast.parse(inspect.getsource(module))
        sources = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        imported = {name for each in sources for name in (str(each.module).split(".")[-1],)}
        imported |= {alias.name for each in sources for alias in each.names}
        known[Path(str(module.__file__)).stem] = imported & {creator, retriever, db_layer, router, registrar}

    assert known == {
        creator: set(),
        retriever: set(),
        db_layer: set(),
        router: {creator, retriever},
        registrar: {router, retriever},
    }


WRITING = {"append", "change", "add_summary"}


@pytest.mark.requirement("004-003", "004-004")
def test_only_the_creator_writes_the_ledger() -> None:
    root = Path(str(quality_memory.__file__)).parents[2]
    writers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in WRITING
        and ast.unparse(node.value).endswith("ledger")
        and "store/" not in path.as_posix()
    }

    assert writers == {"remember/creators/quality_memory.py", "remember/creators/settling.py"}
    tree = ast.parse(inspect.getsource(retrievers))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert {"MemoryLedger", "QualityMemory", "Store", "Complete"} & used == set()
