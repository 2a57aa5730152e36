"""`anamnesis blocks`: what is shown, what is found, and that whoever looks leaves a trace."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memory_blocks.edits import complete_turn
from memory_blocks.ledger import Ledger
from memory_blocks.models import Conversation, Label
from memory_blocks.schema import publications
from orchestrator.cli import cli
from orchestrator.settings import VARIABLES
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from orchestrator.store.invariants import check
from tests.builders import START, CountedIds, HandClock, a_completed_turn
from tests.world import keep_receipts

HERE = "conv_here"
TURNS = 24


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The embedded database, with a conversation whose oldest turns were archived."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(tmp_path))
    clock, path = HandClock(), tmp_path / "anamnesis.db"
    ledger = Ledger(clock)
    store = Store.open(f"sqlite:///{path}", clock=clock, ids=CountedIds(), create=True, synchronous="OFF")

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
    yield path
    assert check(store) == []
    store.close_now()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["blocks", *arguments], prog_name="anamnesis")


def shown(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def rows(database: Path, query: str, *values: str) -> list[Any]:
    with closing(sqlite3.connect(database, isolation_level=None)) as file:
        return file.execute(query, values).fetchall()


def test_the_blocks_are_shown_as_they_stand(database: Path) -> None:
    blocks = shown("show", HERE)

    assert list(blocks) == [label.value for label in Label]
    history = blocks["conversation_history"]
    assert [turn["turn_id"] for turn in history["block"]["turns"]] == list(range(7, TURNS + 1))
    assert (history["revision"], history["limit"], history["level"]) == (TURNS, 32_000, "normal")
    assert "Turn 24" in run("show", HERE, "context_summary").output


@pytest.mark.parametrize("turn", [1, 6, 20, 21, 24])
def test_a_block_is_shown_as_it_stood_after_a_turn(database: Path, turn: int) -> None:
    history = shown("show", HERE, "conversation_history", "--at-turn", str(turn))["conversation_history"]

    first = 1 if turn < 21 else 7
    assert [each["turn_id"] for each in history["block"]["turns"]] == list(range(first, turn + 1))
    assert shown("show", HERE, "conversation_history", "--revision", str(turn)) == {
        "conversation_history": history
    }


def test_whoever_looks_leaves_a_trace_with_their_name_and_without_a_message(database: Path) -> None:
    run("show", HERE, "active_session")

    looked = "SELECT action, message_id, actor, meta FROM alicia_memory_used WHERE actor <> ?"
    traces = rows(database, looked, "context_extractor")
    ((action, message_id, actor, meta),) = traces
    assert (action, message_id) == ("retrieved", None)
    assert actor.startswith("operator")
    about = json.loads(meta)
    assert (about["label"], about["revision"], about["background"]) == ("active_session", TURNS, True)
    assert rows(database, "SELECT count(*) FROM frames") == [(0,)]


def test_the_history_lists_every_revision_and_no_text(database: Path) -> None:
    result = run("history", HERE, "conversation_history", "--json")

    found = [json.loads(line) for line in result.output.splitlines()]
    assert [each["revision"] for each in found] == list(range(1, TURNS + 1))
    assert {each["actor"] for each in found} == {"context_extractor"}
    assert "message 3" not in run("history", HERE).output


def test_a_difference_is_told_by_path_and_by_line(database: Path) -> None:
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


def test_what_departs_is_told_by_path_without_the_text_and_ends_with_1(database: Path) -> None:
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


@pytest.mark.requirement("001-099")
def test_rotating_by_hand_archives_and_is_traced(database: Path) -> None:
    result = run("rotate", HERE)

    assert result.output == "Turns 7 to 21 were archived.\n"
    history = shown("show", HERE, "conversation_history")["conversation_history"]["block"]
    assert [turn["turn_id"] for turn in history["turns"]] == [22, 23, 24]
    actions = rows(database, "SELECT DISTINCT action FROM alicia_memory_used WHERE actor LIKE 'operator%'")
    assert set(actions) == {("updated",), ("retrieved",)}
    assert run("rotate", HERE).output == "There was nothing to archive.\n"


def test_an_export_has_every_turn_once(database: Path) -> None:
    exported = json.loads(run("export", HERE).output)

    turns = [*exported["archived_turns"], *exported["conversation_history"]["block"]["turns"]]
    assert [turn["turn_id"] for turn in turns] == list(range(1, TURNS + 1))
    assert [turn["user_message"]["content"] for turn in turns] == [
        f"message {n}" for n in range(1, TURNS + 1)
    ]


def test_what_is_not_there_is_said_in_a_line(database: Path) -> None:
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
