"""`anamnesis conversations`, `explain`, `traces`, `export` and `keys`: what they print and leave."""

import asyncio
import csv
import io
import json
import select
import signal
import stat
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import Trace, metadata
from tests.contract.api.serving import a_site
from tests.support.commands import run, start
from tests.support.orchestrators import ANN, BOB, a_store, an_orchestrator
from tests.support.protocol_client import conversing

SAID = "I am having a headache"


@pytest.fixture
async def talk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nothing_configured: None) -> tuple[str, str]:
    """A data folder with a conversation of two turns; its id, and that of the second message."""
    data = tmp_path / "data"
    data.mkdir()
    assert run("--data", data, "db", "upgrade").exit_code == 0
    address = f"sqlite:///{data / 'anamnesis.db'}"
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.ask(SAID)
            second = await peer.say("8")
            await peer.answer()
        async with conversing(orchestrator, BOB) as other:
            await other.ask("My knee hurts")
        await orchestrator.store.write(
            lambda tx: tx.conversations.update(peer.conversation_id, title="Headache")
        )
    return peer.conversation_id, second


def stored(folder: Path) -> Store:
    return a_store(f"sqlite:///{folder / 'data' / 'anamnesis.db'}")


def looks(folder: Path) -> list[Trace]:
    """The traces that operators have left."""
    store = stored(folder)
    try:
        found = store.read_now(lambda tx: tx.unit.find(Trace, "created_at", "id"))
    finally:
        store.close_now()
    return [trace for trace in found if (trace.actor or "").startswith("operator")]


def lines(*arguments: str) -> list[dict[str, Any]]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_conversations_are_listed_and_searched(talk: tuple[str, str]) -> None:
    conversation, _ = talk

    everyone, of_ann = lines("conversations"), lines("conversations", "--user", ANN)
    found, none = lines("conversations", "--search", "KNEE"), run("conversations", "--status", "archived")
    shown = run("conversations", "--user", ANN).stdout

    assert {each["person"] for each in everyone} == {ANN, BOB}
    assert [(each["id"], each["title"], each["turns"]) for each in of_ann] == [(conversation, "Headache", 2)]
    assert [each["person"] for each in found] == [BOB]
    assert none.stdout == "No conversation was found.\n"
    assert conversation in shown
    assert "Headache" in shown


def test_an_answer_is_explained_and_the_look_is_traced(talk: tuple[str, str], tmp_path: Path) -> None:
    conversation, message = talk

    told = json.loads(run("explain", message, "--json").stdout)
    shown = run("explain", told["answer"]["id"]).stdout
    unknown = run("explain", "msg_nobodys")

    assert (told["conversationId"], told["turn"], told["message"]["content"]) == (conversation, 2, "8")
    for expected in (
        "Turn 2",
        'User says: "8"',
        "intent GENERAL_HEALTH (0.90): As scripted",
        "answered by GENERAL_HEALTH",
        "updated   conversation_history revision 2",
        "I understand.",
        "first_sentence",
        "with the prompt general_health, revision ",
        " ms  understand",
    ):
        assert expected in shown
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    assert "There is no such message." in unknown.stderr
    assert {trace.content.partition(" ")[0] for trace in looks(tmp_path)} >= {"read"}


def test_what_a_model_was_sent_is_shown_with_its_difference_from_the_turn_before(
    talk: tuple[str, str], tmp_path: Path
) -> None:
    conversation, message = talk
    store = stored(tmp_path)
    first = store.read_now(lambda tx: tx.messages.in_order(conversation))[0].id

    def keep(tx: Transaction) -> None:
        for id, said in ((first, SAID), (message, "8")):
            request = json.dumps({"content": f"Rules.\nThey say: {said}"})
            tx.model_calls.add(conversation, id, 1, role="SLEEP", model="m", digest="0" * 64, request=request)

    store.write_now(keep)
    store.close_now()

    plain = run("explain", message).stdout
    shown = run("explain", message, "--requests", "--diff").stdout
    of_first = run("explain", first, "--diff").stdout

    assert "Request 1 to m as SLEEP: pending" in plain
    assert "They say: 8" not in plain
    assert "\n-They say: I am having a headache" in shown
    assert "\n+They say: 8" in shown
    assert "(there is no such request in the turn before, or it is the same)" in of_first


def test_traces_are_filtered_and_those_of_all_conversations_are_listed(talk: tuple[str, str]) -> None:
    conversation, _ = talk

    all_of_one = lines("traces", conversation)
    stored_ones = lines("traces", conversation, "--action", "stored")
    sessions = lines("traces", conversation, "--label", "active_session")
    of_all = lines("traces", "--limit", "3")
    shown = run("traces", "--actor", "context_extractor", "--limit", "1").stdout
    later = run("traces", "--since", "2999-01-01").stdout

    assert len(all_of_one) == 16
    assert {each["action"] for each in stored_ones} == {"stored"}
    assert len(stored_ones) == 4
    assert {each["meta"]["label"] for each in sessions} == {"active_session"}
    assert len(of_all) == 3
    assert not any("content" in each or "meta" in each for each in of_all)
    assert "by context_extractor" in shown
    assert later == "No memory has been read or written yet.\n"


def test_new_traces_are_followed_until_the_command_is_interrupted(
    talk: tuple[str, str], tmp_path: Path
) -> None:
    conversation, _ = talk
    data = str(tmp_path / "data")
    following = start("traces", "--follow", "--json", "--actor", "operator", ANAMNESIS_DATA_DIR=data)
    try:
        assert following.stdout is not None
        found = None
        deadline = time.monotonic() + 60
        while found is None and time.monotonic() < deadline:
            run("blocks", "show", conversation, "active_session")  # again, until the command follows
            found = _line_within(following, 2)
        assert found is not None
        trace = json.loads(found)
        assert (trace["label"], trace["conversation_id"]) == ("active_session", conversation)
        assert "content" not in trace
    finally:
        following.send_signal(signal.SIGINT)
        _, errors = following.communicate(timeout=30)
    assert errors == ""


def _line_within(process: Any, seconds: float) -> str | None:
    """The next line of a process, if it comes in time."""
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline() if ready else None


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "md"])
def test_a_conversation_is_exported_in_each_format(talk: tuple[str, str], tmp_path: Path, form: str) -> None:
    conversation, _ = talk
    before = len(looks(tmp_path))

    text = run("export", conversation, "--format", form).stdout
    file = tmp_path / f"export.{form}"
    done = run("export", conversation, "--format", form, "--output", file)

    match form:
        case "json":
            whole = json.loads(text)
            assert [each["contents"] for each in whole["messages"]][::2] == [SAID, "8"]
            assert whole["conversation"]["title"] == "Headache"
            assert len(whole["blocks"]) == 4
            assert len(whole["turns"]) == 2
            assert whole["traces"]
            assert [each["specialist"] for each in whole["runs"]] == ["GENERAL_HEALTH"] * 2
            assert whole["runs"][0]["stations"][0]["station"] == "read"
        case "jsonl":
            kinds = [json.loads(line)["kind"] for line in text.splitlines()]
            assert (kinds.count("message"), kinds.count("block"), kinds.count("turn")) == (4, 4, 2)
        case "csv":
            rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode())))
            assert [row["contents"] for row in rows][::2] == [SAID, "8"]
            assert [row["message_role"] for row in rows] == ["user", "assistant"] * 2
        case "md":
            assert text.startswith("# Headache\n")
            assert f"> {SAID}\n" in text
            assert "=== CONVERSATION SUMMARY ===" in text
    assert (done.exit_code, done.stdout) == (0, "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(looks(tmp_path)) > before


def test_an_export_that_cannot_be_written_says_so(talk: tuple[str, str], tmp_path: Path) -> None:
    refused = run("export", talk[0], "--output", tmp_path / "missing" / "file.json")
    unknown = run("export", "conv_nobodys")

    assert refused.exit_code == unknown.exit_code == 2
    assert "cannot be written" in refused.stderr
    assert SAID not in refused.stderr
    assert "There is no such conversation." in unknown.stderr


def test_a_key_is_made_shown_once_and_revoked(talk: tuple[str, str], tmp_path: Path) -> None:
    made = run("keys", "create", "report", "--user", "eve", "--role", "operator", "--days", "7", "--json")
    key = json.loads(made.stdout)
    plain = run("keys", "create", "another", "--user", "ida")

    (first, second) = lines("keys", "list")
    shown = run("keys", "list").stdout
    asyncio.run(_opens(key["key"], tmp_path, 200))
    revoked, again = run("keys", "revoke", key["id"]), run("keys", "revoke", key["id"])
    asyncio.run(_opens(key["key"], tmp_path, 401))

    assert (first["id"], first["user"], first["roles"], first["state"]) == (
        key["id"],
        "eve",
        ["operator"],
        "valid",
    )
    assert (second["roles"], second["scopes"]) == (["person"], ["*"])
    secret = key["key"].partition(".")[2]
    assert secret not in shown + json.dumps(first)
    assert plain.stdout.startswith("key_")
    assert "shown only now" in plain.stderr
    assert (revoked.exit_code, again.exit_code) == (0, 1)
    assert lines("keys", "list")[0]["state"] == "revoked"


async def _opens(key: str, folder: Path, status: int) -> None:
    """Ask a server of the same data for the session of a key."""
    async with a_site(f"sqlite:///{folder / 'data' / 'anamnesis.db'}", folder) as site:
        answer: httpx.Response = await site.http.get(
            "/v1/session", headers={"Authorization": f"Bearer {key}"}
        )
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--scope", "texts:read"), "granted only with a reason"),
        (("--scope", "everything"), "must be one of"),
        (("--role", "king"), "is not one of"),
        (("--days", "0"), "is not in the range"),
    ],
)
def test_a_key_that_says_too_little_is_not_made(
    talk: tuple[str, str], options: tuple[str, str], says: str
) -> None:
    refused = run("keys", "create", "x", "--user", "eve", *options)

    assert refused.exit_code == 2
    assert says in refused.stderr
    assert lines("keys", "list") == []


def test_reading_with_a_command_leaves_a_trace_and_changes_nothing_else(
    talk: tuple[str, str], tmp_path: Path
) -> None:
    conversation, _ = talk
    file = tmp_path / "memories.jsonl"
    file.write_text(json.dumps({"id": "m1", "text": "I adopted a dog called Rex."}) + "\n")
    assert run("memory", "import", ANN, file).exit_code == 0
    for arguments, more in (
        (("memory", "list", ANN), ()),
        (("memory", "show", ANN, "m1"), ()),
        (("memory", "export", ANN), ()),
        (("memory", "delete", ANN, "m1", "--dry-run"), ()),
        (("memory", "search", ANN, "What is the dog called?"), ("retrievals",)),
        (("traces", conversation), ()),
        (("conversations", "--search", "headache"), ()),
    ):
        before, known = rows_of(tmp_path), looks(tmp_path)

        done = run(*arguments)

        after, new = rows_of(tmp_path), [each for each in looks(tmp_path) if each not in known]
        assert done.exit_code == 0, done.output
        assert [each.conversation_id for each in new] == [conversation], arguments
        assert new[0].action == "retrieved"
        assert "Rex" not in new[0].content
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {"alicia_memory_used", *more}, arguments


def test_no_reading_command_changes_anything_but_the_access_trace(
    talk: tuple[str, str], tmp_path: Path
) -> None:
    conversation, message = talk
    file = tmp_path / "memories.jsonl"
    file.write_text(json.dumps({"id": "m1", "text": "I adopted a dog called Rex."}) + "\n")
    queries = tmp_path / "queries.jsonl"
    queries.write_text(json.dumps({"id": "q1", "query": "dog"}) + "\n")
    assert run("memory", "import", ANN, file).exit_code == 0
    assert run("memory", "status").exit_code == 0  # settles the ledgers
    before = rows_of(tmp_path)

    for arguments in (
        ("memory", "list", ANN, "--all", "--json"),
        ("memory", "show", ANN, "m1", "--json"),
        ("memory", "export", ANN),
        ("memory", "report", ANN),
        ("memory", "status", "--json"),
        ("memory", "lineage", conversation),
        ("memory", "search", ANN, "dog", "--explain"),
        ("memory", "search", ANN, "dog", "--why", "m1"),
        ("memory", "search", ANN, "--queries", queries, "--json"),
        ("memory", "search", ANN, "memory://m1", "--mode", "tiered"),
        ("blocks", "show", conversation),
        ("blocks", "history", conversation),
        ("blocks", "export", conversation),
        ("blocks", "quarantine", conversation),
        ("blocks", "validate", conversation),
        ("blocks", "verify", conversation),
        ("facts", "show", conversation),
        ("conversations",),
        ("explain", message),
        ("traces", conversation),
        ("export", conversation),
        ("keys", "list"),
        ("check", "--json"),
    ):
        done = run(*arguments)
        assert done.exit_code == 0, (arguments, done.output)

    after = rows_of(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"alicia_memory_used", "retrievals"}
    assert set(before["alicia_memory_used"]) < set(after["alicia_memory_used"])


def rows_of(folder: Path) -> dict[str, list[str]]:
    """All rows of all tables."""

    def read(tx: Transaction) -> dict[str, list[str]]:
        statements = {name: f"SELECT * FROM {name}" for name in metadata.tables}  # noqa: S608
        return {name: sorted(map(str, tx.unit.connection.execute(s))) for name, s in statements.items()}

    store = stored(folder)
    try:
        return store.read_now(read)
    finally:
        store.close_now()
