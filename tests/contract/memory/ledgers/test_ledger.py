"""The ledger of memories made from conversations, as files and as tables on both databases."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.ops.clock import as_text
from orchestrator.remember.ledger import vector_db
from orchestrator.remember.ledger.files import FileLedger, safe_name
from orchestrator.remember.ledger.lines import (
    Discussion,
    Kind,
    MemoryBody,
    NewLine,
    Point,
    alive,
    broken_rules,
    broken_summaries,
    next_summary,
    sha256,
)
from orchestrator.remember.ledger.marks import MemoryMark
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.remember.ledger.tables import TableLedger
from orchestrator.store.engine.database import Store
from tests.support.builders import START, CountedIds, HandClock
from tests.support.stores import empty_store

HERE = Discussion("ann", "conv_1")
AT = as_text(START)
KINDS: tuple[Kind, ...] = ("file", "vector")


@pytest.fixture(params=["files", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryLedger]:
    if request.param == "files":
        yield FileLedger(tmp_path)
        return
    with empty_store(request.param, request, tmp_path) as url:
        store = Store.open(url, clock=HandClock(), ids=CountedIds(), synchronous="OFF", connections=1)
        store.write_now(lambda tx: tx.conversations.create(HERE.user_id, id=HERE.id))
        texts = {f"m{number}": f"message {number}" for number in range(1, 9)}
        store.write_now(
            lambda tx: [tx.messages.append(HERE.id, "user", text, id=id) for id, text in texts.items()]
        )
        yield TableLedger(store)
        store.close_now()


def at(number: int) -> Point:
    return Point(f"m{number}", number, sha256(f"message {number}"))


def a_line(number: int, text: str = "", **fields: object) -> NewLine:
    made = NewLine(
        action="memory",
        memory_id=f"mem{number}",
        chunk=number,
        point=at(number),
        messages=(f"m{number}",),
        rests_on=(f"m{number}",),
        maker="local",
        dropped=0,
        at=AT,
        body=MemoryBody(text or f"memory {number}"),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def fill(ledger: MemoryLedger, kind: Kind, *texts: str) -> None:
    before = None
    for number, text in enumerate(texts, 1):
        assert ledger.append(HERE, kind, before, [a_line(number, text)])
        before = at(number)


@pytest.mark.parametrize("kind", KINDS)
def test_a_ledger_keeps_lines_in_order_and_chains_them(ledger: MemoryLedger, kind: Kind) -> None:
    assert (ledger.lines(HERE, kind), ledger.point(HERE, kind)) == ([], None)

    fill(ledger, kind, "one", "two", "three")

    lines = ledger.lines(HERE, kind)
    assert [line.body.text for line in lines if line.body] == ["one", "two", "three"]
    assert [line.number for line in lines] == [1, 2, 3]
    assert ledger.point(HERE, kind) == at(3)
    assert list(broken_rules(lines)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_after_another_point_than_the_last_is_refused(ledger: MemoryLedger, kind: Kind) -> None:
    fill(ledger, kind, "one")
    before = ledger.lines(HERE, kind)

    again = ledger.append(HERE, kind, None, [a_line(1, "one again")])
    ahead = ledger.append(HERE, kind, at(2), [a_line(3)])

    assert (again, ahead) == (False, False)
    assert ledger.lines(HERE, kind) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_line_breaks_the_chain(ledger: MemoryLedger, kind: Kind) -> None:
    fill(ledger, kind, "one", "two")
    first, second = ledger.lines(HERE, kind)

    assert [number for number, _ in broken_rules([replace(first, body=MemoryBody("other")), second])] == [1]
    assert [number for number, _ in broken_rules([replace(first, maker="x"), second])] == [1]
    assert [number for number, _ in broken_rules([second])] == [2]


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_memories_stay_in_the_ledger_and_can_be_restored(ledger: MemoryLedger, kind: Kind) -> None:
    fill(ledger, kind, "one", "two")

    ledger.change(HERE, kind, [MemoryMark("mem1", "deleted")], AT)
    ledger.change(HERE, kind, [MemoryMark("mem1", "deleted")], AT)
    deleted = [line.memory_id for line in alive(ledger.lines(HERE, kind))]
    ledger.change(HERE, kind, [MemoryMark("mem1", "restored")], AT)

    lines = ledger.lines(HERE, kind)
    assert deleted == ["mem2"]
    assert [line.action for line in lines] == ["memory", "memory", "deleted", "restored"]
    assert [line.memory_id for line in alive(lines)] == ["mem1", "mem2"]
    assert (ledger.point(HERE, kind), list(broken_rules(lines))) == (at(2), [])


@pytest.mark.parametrize("kind", KINDS)
def test_an_erased_memory_leaves_no_words_and_an_unbroken_chain(
    ledger: MemoryLedger, kind: Kind, tmp_path: Path
) -> None:
    fill(ledger, kind, "the secret zebra", "two")

    ledger.change(HERE, kind, [MemoryMark("mem1", "erased")], AT)
    ledger.change(HERE, kind, [MemoryMark("mem1", "restored")], AT)

    lines = ledger.lines(HERE, kind)
    assert [line.memory_id for line in alive(lines)] == ["mem2"]
    assert list(broken_rules(lines)) == []
    if isinstance(ledger, FileLedger):
        assert b"zebra" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_the_two_kinds_do_not_mix(ledger: MemoryLedger) -> None:
    fill(ledger, "file", "one")

    assert (ledger.lines(HERE, "vector"), ledger.point(HERE, "vector")) == ([], None)


def test_a_summary_is_linked_to_the_last_memory_it_holds(ledger: MemoryLedger) -> None:
    fill(ledger, "file", "one", "two")
    first, second = lines = ledger.lines(HERE, "file")

    one = next_summary(None, "one", first, lines, "local", START)
    two = next_summary(one, "one two", second, lines, "local", START)
    added = [ledger.add_summary(HERE, each) for each in (one, two, two)]

    assert added == [True, True, False]
    assert ledger.summaries(HERE) == [one, two]
    assert list(broken_summaries([one, two], lines)) == []
    assert [number for number, _ in broken_summaries([one, two], [first])] == [2]


def test_a_summary_that_was_changed_breaks_its_chain(ledger: MemoryLedger) -> None:
    fill(ledger, "file", "one")
    lines = ledger.lines(HERE, "file")
    summary = next_summary(None, "one", lines[0], lines, "local", START)

    assert [number for number, _ in broken_summaries([replace(summary, text="two")], lines)] == [1]
    assert [number for number, _ in broken_summaries([replace(summary, seen=2)], lines)] == [1]


def test_a_summary_is_refused_if_the_ledger_has_changed_since(ledger: MemoryLedger) -> None:
    fill(ledger, "file", "the secret zebra", "two")
    lines = ledger.lines(HERE, "file")
    summary = next_summary(None, "the secret zebra", lines[-1], lines, "model", START)
    ledger.change(HERE, "file", [MemoryMark("mem1", "erased")], AT)

    assert not ledger.add_summary(HERE, summary)
    assert ledger.summaries(HERE) == []


def test_erasing_a_memory_erases_every_summary(ledger: MemoryLedger) -> None:
    fill(ledger, "file", "the secret zebra", "two")
    lines = ledger.lines(HERE, "file")
    assert ledger.add_summary(HERE, next_summary(None, "the zebra", lines[-1], lines, "local", START))

    ledger.change(HERE, "file", [MemoryMark("mem1", "erased")], AT)

    assert [each.text for each in ledger.summaries(HERE)] == [None]
    assert list(broken_summaries(ledger.summaries(HERE), ledger.lines(HERE, "file"))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_memory_has_its_new_words_and_keeps_its_place(ledger: MemoryLedger, kind: Kind) -> None:
    fill(ledger, kind, "one zebra", "two")

    ledger.change(HERE, kind, [MemoryMark("mem1", "edited", MemoryBody("one lion"))], AT)
    ledger.change(HERE, kind, [MemoryMark("mem1", "edited", MemoryBody("one lion"))], AT)
    edited = [line.body.text for line in alive(ledger.lines(HERE, kind)) if line.body]
    ledger.change(HERE, kind, [MemoryMark("mem1", "erased")], AT)

    lines = ledger.lines(HERE, kind)
    assert edited == ["one lion", "two"]
    assert [line.action for line in lines] == ["memory", "memory", "edited", "erased"]
    assert "lion" not in repr(lines) + repr(ledger.search(HERE, "lion", 5))
    assert (ledger.point(HERE, kind), list(broken_rules(lines))) == (at(2), [])


def test_an_edited_memory_is_found_by_its_new_words_only(ledger: MemoryLedger) -> None:
    fill_bodies(ledger, MemoryBody("zebra"))

    ledger.change(HERE, "vector", [MemoryMark("mem1", "edited", MemoryBody("lion"))], AT)

    (line,) = ledger.search(HERE, "lion", 5)
    assert line.body == MemoryBody("lion")
    assert found(ledger, "zebra") == []


# --- search -------------------------------------------------------------------------------------------------


def found(ledger: MemoryLedger, keywords: str, limit: int = 10) -> list[str]:
    return [line.memory_id for line in ledger.search(HERE, keywords, limit)]


def fill_bodies(ledger: MemoryLedger, *bodies: MemoryBody) -> None:
    new = [a_line(number, body=body, point=at(1)) for number, body in enumerate(bodies, 1)]
    assert ledger.append(HERE, "vector", None, new)


@pytest.mark.requirement("004-018")
@pytest.mark.parametrize("column", vector_db.COLUMNS)
def test_each_column_is_indexed(ledger: MemoryLedger, column: str) -> None:
    values = dict.fromkeys(("title", "summary", "text"), "tea")
    name = "text" if column == "memory_text" else column
    wanted = ("zebra",) if column in ("entities", "key_phrases") else "zebra"
    fill_bodies(ledger, MemoryBody("tea"), MemoryBody(**{**values, name: wanted}))  # type: ignore[arg-type]

    assert found(ledger, "zebra") == ["mem2"]


@pytest.mark.requirement("004-019", "004-020", "004-039")
def test_a_hit_in_the_title_comes_before_one_in_the_text(ledger: MemoryLedger) -> None:
    fill_bodies(
        ledger,
        MemoryBody("a zebra, among many other words", "x", "y"),
        MemoryBody("other words, none of them asked for", "zebra", "y"),
        MemoryBody("nothing at all, only more words", "x", "y"),
    )

    assert found(ledger, "zebra") == ["mem2", "mem1"]


@pytest.mark.requirement("004-019")
def test_the_weights_can_be_changed(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path, {**vector_db.WEIGHTS, "title": 0.1, "memory_text": 9.0})
    fill_bodies(
        ledger, MemoryBody("a zebra, among many other words", "x"), MemoryBody("only other words", "zebra")
    )

    assert found(ledger, "zebra") == ["mem1", "mem2"]


@pytest.mark.requirement("004-035", "004-038")
def test_keywords_are_phrases_joined_by_or(ledger: MemoryLedger) -> None:
    fill_bodies(
        ledger,
        MemoryBody("blood is red"),
        MemoryBody("high blood pressure"),
        MemoryBody("pressure of blood"),
        MemoryBody("tea"),
    )

    assert set(found(ledger, "tea;blood pressure")) == {"mem2", "mem4"}
    assert found(ledger, "  ;; ") == found(ledger, "") == []


@pytest.mark.requirement("004-037")
def test_only_sixty_keywords_count(ledger: MemoryLedger) -> None:
    fill_bodies(ledger, MemoryBody("zebra"))
    others = [f"word{number}" for number in range(60)]

    assert found(ledger, ";".join([*others[:59], "zebra"])) == ["mem1"]
    assert found(ledger, ";".join([*others, "zebra"])) == []


@pytest.mark.requirement("004-036")
@given(keywords=st.text() | st.text(alphabet="\"'()*-+:^{}[]AND OR NEAR;\\\0\n.,zebra"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_any_input_is_safe(tmp_path: Path, keywords: str) -> None:
    ledger = FileLedger(tmp_path)
    if not ledger.lines(HERE, "vector"):
        fill_bodies(ledger, MemoryBody("zebra"))

    assert set(found(ledger, keywords)) <= {"mem1"}
    assert "mem1" in found(ledger, f"{keywords};zebra"[-200:])


def test_deleted_memories_are_not_found_until_they_are_restored(ledger: MemoryLedger) -> None:
    fill_bodies(ledger, MemoryBody("zebra"), MemoryBody("zebra"))

    ledger.change(HERE, "vector", [MemoryMark("mem1", "deleted")], AT)
    deleted = found(ledger, "zebra")
    ledger.change(HERE, "vector", [MemoryMark("mem1", "restored")], AT)

    assert (deleted, set(found(ledger, "zebra"))) == (["mem2"], {"mem1", "mem2"})


# --- the files ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("004-011", "004-012", "004-013")
def test_the_memories_file_has_one_record_per_line_and_is_only_appended_to(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path)
    fill(ledger, "file", "one")
    path = tmp_path / "ann" / "conv_1_memories.jsonl"
    before = path.read_bytes()

    assert ledger.append(HERE, "file", at(1), [a_line(2, "two")])

    after = path.read_bytes()
    assert after.startswith(before)
    records = [json.loads(line) for line in after.splitlines()]
    assert [(record["text"], record["hash"]) for record in records] == [
        ("one", sha256("message 1")),
        ("two", sha256("message 2")),
    ]
    assert [record["previous"] for record in records] == [None, records[0]["digest"]]


@pytest.mark.requirement("004-016", "004-017", "004-021")
def test_the_database_of_vector_memories_is_made_when_first_needed(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path)
    path = tmp_path / "ann" / "conv_1_vector_memory.db"
    ledger.search(HERE, "tea", 3)
    absent = not path.exists()

    fill_bodies(ledger, MemoryBody("the summary", "title", "the summary", ("Ann",), ("tea time",)))

    connection = sqlite3.connect(path)
    text, metadata = connection.execute("SELECT memory_text, metadata_json FROM memories").fetchone()
    tracker = connection.execute("SELECT discussion_id, last_processed_hash FROM vector_memory_tracker")
    whole = json.loads(metadata)
    assert absent
    assert (text, whole["title"], whole["entities"]) == ("the summary", "title", ["Ann"])
    assert tracker.fetchall() == [("conv_1", sha256("message 1"))]
    assert path.stat().st_mode & 0o077 == 0
    connection.close()


def test_a_line_that_a_crash_cut_does_not_count_and_is_removed_by_the_next(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path)
    fill(ledger, "file", "one")
    path = tmp_path / "ann" / "conv_1_memories.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"text": "half a li')

    lines = ledger.lines(HERE, "file")
    appended = ledger.append(HERE, "file", at(1), [a_line(2, "two")])

    assert [line.number for line in lines] == [1]
    assert appended
    assert list(broken_rules(ledger.lines(HERE, "file"))) == []


@pytest.mark.requirement("004-010")
def test_two_people_never_share_a_file(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path)
    names = ["ann", "Ann", "ANN", "../ann", "a/nn", ".", "..", "~ann", "ä", "x" * 100, "con", "ann "]
    for name in names:
        assert ledger.append(Discussion(name, "conv_1"), "file", None, [a_line(1, f"of {name}")])

    for name in names:
        (line,) = ledger.lines(Discussion(name, "conv_1"), "file")
        assert line.body == MemoryBody(f"of {name}")
    assert len({path.parent for path in tmp_path.rglob("*_memories.jsonl")}) == len(names)
    assert all(path.parent.parent == tmp_path for path in tmp_path.rglob("*_memories.jsonl"))


@given(one=st.text(min_size=1, max_size=70), other=st.text(min_size=1, max_size=70))
def test_names_of_files_are_safe_and_different_for_different_ids(one: str, other: str) -> None:
    for id in (one, other):
        assert {"/", "\\", "\0", "."} & set(safe_name(id)) == set()
    assert (safe_name(one).lower() == safe_name(other).lower()) == (one == other)
