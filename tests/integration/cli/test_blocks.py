"""`anamnesis blocks`: what it prints, what it detects, and that each read leaves a trace."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memory_blocks.edits import complete_turn
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.models import Conversation, Label
from memory_blocks.schema import publications
from memory_blocks.trace import digest
from orchestrator.cli import cli
from orchestrator.settings import VARIABLES
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.packing import pack
from tests.support.builders import START, CountedIds, HandClock, a_completed_turn
from tests.support.stored_turns import keep_receipts

HERE = "conv_here"
FILE = "anamnesis.db"
TURNS = 24


@contextmanager
def written(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Store]:
    """An SQLite database with a conversation whose oldest turns were archived."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(folder))
    clock = HandClock()
    ledger = Ledger(clock)
    url = f"sqlite:///{folder / FILE}"
    store = Store.open(url, clock=clock, ids=CountedIds(), create=True, synchronous="OFF")

    def take_turn(tx: Transaction) -> None:
        here = Conversation(HERE, "user_456", START)
        reading = ledger.read(SqlBlockStore(tx.blocks), here, actor="context_extractor")
        number = reading.blocks.next_turn
        turn = a_completed_turn(number, message=f"message {number}")
        written = ledger.write(
            SqlBlockStore(tx.blocks),
            here,
            reading,
            complete_turn(reading.blocks, turn, clock.tick()),
            actor="context_extractor",
            turn=number,
        )
        keep_receipts(tx, HERE, written.receipts)

    store.write_now(lambda tx: tx.conversations.create("user_456", id=HERE))
    for _ in range(TURNS):
        store.write_now(take_turn)
    yield store
    store.close_now()


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The path of its file. At the end, all invariants must hold."""
    with written(monkeypatch, tmp_path) as store:
        yield tmp_path / FILE
        assert check(store) == []


@pytest.fixture
def loose_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The path of its file, for a test that damages it."""
    with written(monkeypatch, tmp_path):
        yield tmp_path / FILE


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["blocks", *arguments], prog_name="anamnesis")


def printed(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def rows(database: Path, query: str, *values: str | bytes) -> list[Any]:
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        return file.execute(query, values).fetchall()


def test_the_current_blocks_are_printed(database: Path) -> None:
    blocks = printed("show", HERE)

    assert list(blocks) == [label.value for label in Label]
    history = blocks["conversation_history"]
    assert [turn["turn_id"] for turn in history["block"]["turns"]] == list(range(7, TURNS + 1))
    assert (history["revision"], history["limit"], history["level"]) == (TURNS, 32_000, "normal")
    assert "Turn 24" in run("show", HERE, "context_summary").output


@pytest.mark.parametrize("turn", [1, 6, 20, 21, 24])
def test_a_block_is_printed_as_it_was_after_a_turn(database: Path, turn: int) -> None:
    history = printed("show", HERE, "conversation_history", "--at-turn", str(turn))["conversation_history"]

    first = 1 if turn < 21 else 7
    assert [each["turn_id"] for each in history["block"]["turns"]] == list(range(first, turn + 1))
    assert printed("show", HERE, "conversation_history", "--revision", str(turn)) == {
        "conversation_history": history
    }


def test_a_read_by_an_operator_leaves_a_trace_with_their_name_and_without_a_message(database: Path) -> None:
    told_before = rows(database, "SELECT count(*) FROM frames")

    run("show", HERE, "active_session")

    looked = "SELECT action, message_id, actor, meta FROM alicia_memory_used WHERE actor <> ?"
    traces = rows(database, looked, "context_extractor")
    ((action, message_id, actor, meta),) = traces
    assert (action, message_id) == ("retrieved", None)
    assert actor.startswith("operator")
    about = json.loads(meta)
    assert (about["label"], about["revision"], about["background"]) == ("active_session", TURNS, True)
    assert rows(database, "SELECT count(*) FROM frames") == told_before


def test_the_history_lists_every_revision_and_no_text(database: Path) -> None:
    result = run("history", HERE, "conversation_history", "--json")

    found = [json.loads(line) for line in result.output.splitlines()]
    assert [each["revision"] for each in found] == list(range(1, TURNS + 1))
    assert {each["actor"] for each in found} == {"context_extractor"}
    assert "message 3" not in run("history", HERE).output


def test_a_diff_lists_paths_and_lines(database: Path) -> None:
    json_diff = run("diff", HERE, "conversation_history", "20", "21").output
    text_diff = run("diff", HERE, "context_summary", "1", "2").output

    assert '- turns.turn_1.user_message.content: "message 1"' in json_diff
    assert '+ turns.turn_21.user_message.content: "message 21"' in json_diff
    assert "~ total_turns: 20 → 21" in json_diff
    assert "turn_8" not in json_diff
    assert "+ Turn 2 (10:32): User reports having a headache" in text_diff


def test_sound_blocks_are_valid_and_their_chain_holds(database: Path) -> None:
    for command in ("validate", "verify"):
        result = run(command, HERE)
        assert (result.exit_code, result.output) == (0, "no departures\n")


def test_a_broken_rule_is_listed_by_path_without_the_text_and_exits_with_1(database: Path) -> None:
    value = rows(database, "SELECT value FROM blocks WHERE label = 'active_session'")[0][0]
    bad = value.replace('"ACTIVE"', '"I am in pain"')
    rows(database, "UPDATE blocks SET value = ? WHERE label = 'active_session'", bad)

    result = run("validate", HERE)

    assert result.exit_code == 1
    assert result.output == (
        "active_session, at $: is not what was written\n"
        "active_session, at session_info.status: is none of ACTIVE, PAUSED, ENDED\n"
        "2 departures\n"
    )
    run("show", HERE)
    assert run("validate", HERE).exit_code == 0
    assert rows(database, "SELECT label, value FROM block_quarantine") == [("active_session", bad)]


def test_a_revision_that_was_changed_breaks_the_chain(database: Path) -> None:
    before = rows(
        database, "SELECT packed FROM block_revisions WHERE label = 'active_session' AND revision = 9"
    )
    rows(
        database,
        "UPDATE block_revisions SET packed = x'00' WHERE label = 'active_session' AND revision = 9",
    )

    result = run("verify", HERE, "--json")

    departures = json.loads(result.output)["departures"]
    assert result.exit_code == 1
    assert departures[0] == {
        "label": "active_session",
        "path": "revision 9",
        "rule": "a revision's digest is not that of its text",
    }
    rows(
        database,
        "UPDATE block_revisions SET packed = ? WHERE label = 'active_session' AND revision = 9",
        *before[0],
    )


FORGED = [
    ("DELETE FROM block_revisions WHERE label = 'active_session' AND revision = 24", "revision 24"),
    ("DELETE FROM block_revisions WHERE label = 'active_session'", "revision 24"),
    ("DELETE FROM block_revisions WHERE label = 'active_session' AND revision < 3", "revision 3"),
    ("UPDATE block_revisions SET actor = 'x' WHERE label = 'active_session' AND revision = 7", "revision 7"),
    ("UPDATE block_revisions SET turn = 3 WHERE label = 'active_session' AND revision = 7", "revision 7"),
    ("UPDATE block_revisions SET turn = 3 WHERE label = 'context_summary' AND revision = 7", "revision 7"),
    ("UPDATE block_revisions SET turn = 3 WHERE label = 'memory_metadata' AND revision = 23", "revision 23"),
    (
        "UPDATE block_revisions SET created_at = replace(created_at, '2024-', '2023-')"
        " WHERE label = 'active_session' AND revision = 7",
        "revision 7",
    ),
    (
        "UPDATE archived_turns SET value = replace(value, 'message 2', 'message 9') WHERE turn_id = 2",
        "archived turn 2",
    ),
    ("DELETE FROM archived_turns WHERE turn_id = 2", "archived turn 3"),
    ("UPDATE blocks SET value = value || ' ' WHERE label = 'active_session'", "revision 24"),
]


@pytest.mark.parametrize(("statement", "place"), FORGED)
def test_a_changed_record_is_detected(loose_database: Path, statement: str, place: str) -> None:
    rows(loose_database, statement)

    result = run("verify", HERE, "--json")

    departures = json.loads(result.output)["departures"]
    assert (result.exit_code, departures[0]["path"]) == (1, place)
    assert "message" not in result.output


def test_a_change_with_matching_digests_is_detected_by_the_traces(loose_database: Path) -> None:
    where = "WHERE label = 'active_session'"
    (text,) = rows(loose_database, f"SELECT value FROM blocks {where}")[0]  # noqa: S608
    forged = text.replace('"total_exchanges":24', '"total_exchanges":23')
    rows(loose_database, f"UPDATE blocks SET value = ?, digest = ? {where}", forged, digest(forged))  # noqa: S608
    rows(
        loose_database,
        f"UPDATE block_revisions SET base = NULL, packed = ?, digest = ? {where} AND revision = 24",  # noqa: S608
        pack(forged),
        digest(forged),
    )
    (turn,) = rows(loose_database, "SELECT value FROM archived_turns WHERE turn_id = 2")[0]
    other = turn.replace("message 2", "message 9")
    rows(
        loose_database,
        "UPDATE archived_turns SET value = ?, digest = ? WHERE turn_id = 2",
        other,
        digest(other),
    )

    result = run("verify", HERE)

    assert result.exit_code == 1
    assert result.output == (
        "active_session, at revision 24: has another digest than the trace of its write\n"
        "conversation_history, at archived turn 2: differs from its text in the block\n"
        "2 departures\n"
    )


def test_one_violation_is_reported_once(loose_database: Path) -> None:
    rows(loose_database, "DELETE FROM archived_turns WHERE turn_id = 2")

    assert run("verify", HERE).output.endswith("\n1 departure\n")


def test_quarantined_texts_are_listed_printed_and_exported(database: Path) -> None:
    rows(database, "UPDATE blocks SET value = 'I am in pain' WHERE label = 'active_session'")

    shown = run("show", HERE, "active_session")
    listed = run("quarantine", HERE)
    (kept,) = [json.loads(line) for line in run("quarantine", HERE, "--json").output.splitlines()]
    read = run("quarantine", HERE, kept["id"])

    assert f"active_session was not valid and is in quarantine as {kept['id']}" in shown.stderr
    assert "I am in pain" not in shown.output
    assert "could not stand" not in run("show", HERE).stderr
    assert (kept["label"], kept["reason"]) == ("active_session", "$: is not what was written")
    assert kept["id"] in listed.output
    assert "I am in pain" not in listed.output
    assert read.output.endswith("\nI am in pain\n")
    assert [each["text"] for each in json.loads(run("export", HERE).output)["quarantined"]] == [
        "I am in pain"
    ]
    looked = rows(
        database,
        "SELECT count(*) FROM alicia_memory_used WHERE action = 'retrieved' AND meta LIKE ?",
        f"%{kept['id']}%",
    )
    assert looked == [(2,)]
    assert run("quarantine", HERE, "quar_none").exit_code == 2


def test_an_empty_quarantine_is_reported_as_empty(database: Path) -> None:
    assert run("quarantine", HERE).output == "Nothing is in quarantine.\n"


@pytest.mark.requirement("001-099")
def test_rotating_by_hand_archives_and_is_traced(database: Path) -> None:
    result = run("rotate", HERE)

    assert result.output == "Turns 7 to 21 were archived.\n"
    history = printed("show", HERE, "conversation_history")["conversation_history"]["block"]
    assert [turn["turn_id"] for turn in history["turns"]] == [22, 23, 24]
    actions = rows(database, "SELECT DISTINCT action FROM alicia_memory_used WHERE actor LIKE 'operator%'")
    assert set(actions) == {("updated",), ("retrieved",)}
    assert run("rotate", HERE).output == "There was nothing to archive.\n"


def test_an_export_has_every_turn_once(database: Path) -> None:
    exported = json.loads(run("export", HERE).output)

    turns = [*exported["archived_turns"], *exported["conversation_history"]["block"]["turns"]]
    assert [(each["op"], each["value"]) for each in exported["fact_changes"]] == [("add", "headache")]
    assert [turn["turn_id"] for turn in turns] == list(range(1, TURNS + 1))
    assert [turn["user_message"]["content"] for turn in turns] == [
        f"message {n}" for n in range(1, TURNS + 1)
    ]


def test_missing_things_are_reported_in_one_line(database: Path) -> None:
    nobody, never = run("show", "conv_nobody"), run("show", HERE, "--revision", "99")
    not_yet = run("show", HERE, "--at-turn", "25")

    assert (nobody.exit_code, never.exit_code, not_yet.exit_code) == (2, 2, 2)
    assert "has none after turn 24" in not_yet.output
    assert "There is no such conversation." in nobody.output
    assert "has no such revision" in never.output


def test_the_schemas_are_written_into_a_folder(tmp_path: Path) -> None:
    run("schemas", str(tmp_path / "schemas"))

    written = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "schemas").iterdir()}
    assert written == dict(publications())
